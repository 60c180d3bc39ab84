//! What a frame costs: `cargo bench -p p4rack-switch`.

#[path = "../tests/common/mod.rs"]
mod common;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use p4rack_wire::Nanos;
use std::hint::black_box;

fn forward(c: &mut Criterion) {
    let mut group = c.benchmark_group("l2_forward");
    group.throughput(Throughput::Elements(1));
    for len in [64, 1514] {
        let mut switch = common::l2_switch().switch;
        let frame = common::eth(common::mac(2), 0x88b5, &vec![7; len - 14]);
        let mut out = Vec::new();
        let mut now = 0;
        group.bench_function(format!("{len}_bytes"), |bencher| {
            bencher.iter(|| {
                now += 1_000;
                switch.handle_frame(1, black_box(&frame), Nanos(now));
                black_box(switch.poll_transmit(Nanos(now), &mut out))
            });
        });
    }
    group.finish();
}

criterion_group!(benches, forward);
criterion_main!(benches);
