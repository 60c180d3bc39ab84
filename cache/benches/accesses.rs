//! Accesses a second of each policy, and the bytes of its tables for each block of local memory. The goal is 20 million on one
//! core for all policies that do not know the future. On a trace made of runs, of which most policies miss most, and on two of the
//! examples' traces behind a CPU's small caches, with a tenth of their blocks local.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use p4rack_cache::{Actions, Block, Build, POLICIES, Shape};
use p4rack_trace::synth::Recipe;
use p4rack_trace::{CpuCache, MODELS, Memory, Places};
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

/// Blocks of 512 bytes that a recipe's program accesses behind the CPU's caches, without gaps, and how many there are.
fn example(name: &str) -> (Vec<Block>, u32) {
    let file = format!("{}/../examples/traces/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{file}: {error}"));
    let recipe = Recipe::read(&text, &file).unwrap_or_else(|error| panic!("{error}"));
    let model = MODELS.iter().find(|model| model.name == "small").expect("is listed");
    let (mut caches, mut lines) = (CpuCache::new(model), Vec::new());
    recipe.make(&mut |access| {
        caches.access(&access, &mut |memory| {
            let (Memory::Fill { line, .. } | Memory::WriteBack { line }) = memory;
            lines.push(line);
        });
        true
    });
    let places = Places::new(lines.iter().copied());
    let block = |line: &u64| (places.of(*line).expect("was placed") / 8) as Block;
    (lines.iter().map(block).collect(), places.pages() as u32 * 8)
}

fn accesses(criterion: &mut Criterion) {
    measure(criterion, "accesses", &trace(), FOOTPRINT);
    for name in ["ycsb-b", "pagerank"] {
        let (trace, footprint) = example(name);
        measure(criterion, name, &trace, footprint);
    }
}

/// A group of all policies on a trace, with a tenth of its blocks local.
fn measure(criterion: &mut Criterion, name: &str, trace: &[Block], footprint: u32) {
    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::Elements(trace.len() as u64)).sample_size(10);
    for definition in POLICIES.iter().filter(|one| matches!(one.build, Build::Online(_))) {
        let shape = Shape::new(footprint, footprint / 10, 8);
        let mut policy = definition.open(&shape, &[]).unwrap_or_else(|error| panic!("{error}"));
        let tables = policy.metadata_bytes() as f64 / f64::from(shape.capacity);
        println!("{}: {tables:.1} bytes of tables for each block of local memory", definition.name);
        let mut actions = Actions::default();
        group.bench_function(definition.name, |bencher| {
            bencher.iter(|| {
                for block in trace {
                    black_box(policy.access(*block, block % 4 == 0, &mut actions));
                }
            });
        });
    }
    group.finish();
}

criterion_group!(benches, accesses);
criterion_main!(benches);
