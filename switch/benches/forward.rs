//! Cost of a frame, in and out: `cargo bench -p p4rack-switch`.

#[path = "../tests/common/mod.rs"]
mod common;

use common::{Bench, mac};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use p4rack_switch::{Config, Pipeline, Switch};
use p4rack_wire::Nanos;
use std::hint::black_box;

/// A program as it is generated for a rack.
const PL2: &str = include_str!("../../codegen/tests/golden/pl2-clock/pl2-incast.p4");

/// Times one frame through the switch, which must come out at `to`.
fn measure(c: &mut Criterion, name: &str, switch: Switch, frame: &[u8], to: u16) {
    time(c, name, switch, frame, to, |switch, frame, now, out| switch.forward_frame(1, frame, now, out));
}

/// Times several frames in turn, each with the port by which it must come out.
fn measure_turns(c: &mut Criterion, name: &str, mut switch: Switch, frames: &[(Vec<u8>, u16)]) {
    let mut group = c.benchmark_group(name);
    group.throughput(Throughput::Elements(frames.len() as u64));
    let (mut out, mut now) = (Vec::new(), 0);
    group.bench_function(BenchmarkId::from_parameter(format!("{} frames", frames.len())), |bencher| {
        bencher.iter(|| {
            for (frame, to) in frames {
                now += 1_000;
                let left = switch.forward_frame(1, black_box(frame), Nanos(now), &mut out);
                assert_eq!(left, Some(*to));
            }
        });
    });
    group.finish();
}

/// The same through a queue.
fn measure_queued(c: &mut Criterion, name: &str, switch: Switch, frame: &[u8], to: u16) {
    time(c, name, switch, frame, to, |switch, frame, now, out| {
        switch.handle_frame(1, frame, now);
        switch.poll_transmit(now, out)
    });
}

fn time(
    c: &mut Criterion,
    name: &str,
    mut switch: Switch,
    frame: &[u8],
    to: u16,
    mut pass: impl FnMut(&mut Switch, &[u8], Nanos, &mut Vec<u8>) -> Option<u16>,
) {
    let mut group = c.benchmark_group(name);
    group.throughput(Throughput::Elements(1));
    let mut out = Vec::new();
    let mut now = 0;
    group.bench_function(BenchmarkId::from_parameter(format!("{} bytes", frame.len())), |bencher| {
        bencher.iter(|| {
            now += 1_000;
            assert_eq!(pass(&mut switch, black_box(frame), Nanos(now), &mut out), Some(to));
        });
    });
    group.finish();
}

fn l2(c: &mut Criterion) {
    for len in [64, 1514] {
        let frame = common::eth(mac(2), 0x88b5, &vec![7; len - 14]);
        measure(c, "l2_forward", common::l2_switch().switch, &frame, 2);
        measure_queued(c, "l2_forward_queued", common::l2_switch().switch, &frame, 2);
    }
}

/// The same program as generated for two architectures: plain switching of a rack.
const PLAIN: [(&str, &str); 3] = [
    ("rack_v1model", include_str!("../../codegen/tests/golden/l2/pl2-incast.p4")),
    ("rack_tna", include_str!("../../codegen/tests/golden/l2-tna/pl2-incast.p4")),
    ("rack_t2na", include_str!("../../codegen/tests/golden/l2-t2na/pl2-incast.p4")),
];

fn plain(c: &mut Criterion) {
    for (name, text) in PLAIN {
        for len in [64, 1514] {
            let mut frame = common::eth(mac(2), 0x0800, &vec![7; len - 14]);
            frame[6..12].copy_from_slice(&mac(1).to_be_bytes()[2..]);
            measure(c, name, rack(text), &frame, 2);
            measure_queued(c, &format!("{name}_queued"), rack(text), &frame, 2);
        }
    }
}

fn rack(text: &str) -> Switch {
    let program = common::compile(text);
    let mut switch = Switch::new(Config { cpu_port: Some(510), ..common::config() });
    switch.load(Pipeline::compile(&program).expect("generated programs are within the switch's reach"));
    let mut bench = Bench { switch, program, now: Nanos(0) };
    bench.add_hosts(text);
    bench.switch
}

fn pl2(c: &mut Criterion) {
    let from_one = |kind: u16, payload: &[u8]| {
        let mut frame = common::eth(mac(2), kind, payload);
        frame[6..12].copy_from_slice(&mac(1).to_be_bytes()[2..]);
        frame
    };
    // Version 1, RSV, one slot, a cell; padded to the shortest frame.
    let rsv = |cell: u8| {
        let mut rsv = vec![0x11, 1, cell];
        rsv.resize(46, 0);
        from_one(0x88b5, &rsv)
    };
    // A VLAN names the cell.
    let data = |cell: u8| from_one(0x8100, &[&[0xa0, 100 + cell, 8, 0], &[7; 46][..]].concat());
    // Reservations by turns in both halves of a lane, each followed by its frame: as an honest host does.
    let turns = [(rsv(0), 1), (data(0), 2), (rsv(1), 1), (data(1), 2)];
    measure_turns(c, "pl2_rsv_and_data", rack(PL2), &turns);
    // The reservation before it sent nothing: a second pass.
    measure(c, "pl2_rsv_again", rack(PL2), &rsv(0), 1);
    measure(c, "pl2_best_effort", rack(PL2), &from_one(0x0800, &[7; 46]), 2);
}

criterion_group!(benches, l2, plain, pl2);
criterion_main!(benches);
