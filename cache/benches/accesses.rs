//! Accesses a second of each policy, and the bytes of its tables for each block of local memory. The goal is 20 million on one
//! core for all policies that do not know the future.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use p4rack_cache::{Actions, Block, Build, POLICIES, Shape};
use std::hint::black_box;

const FOOTPRINT: u32 = 1 << 16;
const CAPACITY: u32 = FOOTPRINT / 10;
const ACCESSES: usize = 1 << 20;

/// Three of four accesses go to a small hot part, others to runs and to any block.
fn trace() -> Vec<Block> {
    let mut state = 1u64;
    let mut random = move |limit: u32| {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (((state >> 32) * u64::from(limit)) >> 32) as u32
    };
    let mut trace = Vec::with_capacity(ACCESSES + 16);
    while trace.len() < ACCESSES {
        match random(16) {
            0..12 => {
                let hot = random(CAPACITY);
                trace.push(random(hot + 1));
            }
            12 => trace.push(random(FOOTPRINT)),
            _ => {
                let first = random(FOOTPRINT - 16);
                trace.extend(first..first + 16);
            }
        }
    }
    trace
}

fn accesses(criterion: &mut Criterion) {
    let trace = trace();
    let mut group = criterion.benchmark_group("accesses");
    group.throughput(Throughput::Elements(trace.len() as u64)).sample_size(10);
    for definition in POLICIES.iter().filter(|one| matches!(one.build, Build::Online(_))) {
        let shape = Shape::new(FOOTPRINT, CAPACITY, 8);
        let mut policy = definition.open(&shape, &[]).unwrap_or_else(|error| panic!("{error}"));
        let tables = policy.metadata_bytes() as f64 / f64::from(CAPACITY);
        println!("{}: {tables:.1} bytes of tables for each block of local memory", definition.name);
        let mut actions = Actions::default();
        group.bench_function(definition.name, |bencher| {
            bencher.iter(|| {
                for block in &trace {
                    black_box(policy.access(*block, block % 4 == 0, &mut actions));
                }
            });
        });
    }
    group.finish();
}

criterion_group!(benches, accesses);
criterion_main!(benches);
