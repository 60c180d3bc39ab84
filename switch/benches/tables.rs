//! Cost of a look-up, by kind of table and number of entries: `cargo bench -p p4rack-switch --bench tables`.
//!
//! Each figure is a whole frame's trip; the first one, of a table with one entry, is the cost of the rest of the
//! trip.

#[path = "../tests/common/mod.rs"]
mod common;

use common::{Bench, Parts, exact, mask};
use criterion::{Criterion, criterion_group, criterion_main};
use p4rack_p4::ir::Matcher;
use p4rack_wire::Nanos;
use std::hint::black_box;

/// Keys are spread like this, so that neighbours are no neighbours in memory.
fn spread(number: u64) -> u64 {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 16
}

fn table(kind: &str) -> Bench {
    let locals = format!(
        "action forward(bit<9> port) {{ sm.egress_spec = port; }}
         table t {{ key = {{ hdr.eth.dst: {kind}; }} actions = {{ forward; }}
                    default_action = forward(1); size = 1048576; }}"
    );
    Parts { ingress_locals: &locals, ingress: "t.apply();", ..common::L2 }.run()
}

/// A frame for each of up to 4096 keys.
fn measure(c: &mut Criterion, name: &str, mut bench: Bench, keys: impl Fn(u64) -> u64) {
    let frames: Vec<Vec<u8>> = (0..4096).map(|number| common::eth(keys(number), 0x88b5, &[7; 50])).collect();
    let (mut out, mut now, mut at) = (Vec::new(), 0, 0);
    c.bench_function(name, |bencher| {
        bencher.iter(|| {
            now += 1_000;
            at = (at + 1) % frames.len();
            bench.switch.forward_frame(1, black_box(&frames[at]), Nanos(now), &mut out)
        });
    });
}

fn exact_tables(c: &mut Criterion) {
    for count in [1, 10_000, 1_000_000] {
        let mut bench = table("exact");
        (0..count).for_each(|number| bench.add("t", vec![exact(spread(number))], 0, "forward", &[2]));
        measure(c, &format!("exact/{count}"), bench, |number| spread(number * 997 % count));
    }
}

fn lpm_tables(c: &mut Criterion) {
    for count in [10_000u64, 100_000] {
        let mut bench = table("lpm");
        // Lengths 8 to 48, most of them long.
        let prefix = |number: u64| {
            let length = 48 - (number % 41) * (number % 7) / 6;
            let mask = (1u64 << 48) - (1 << (48 - length));
            (spread(number) & mask, mask)
        };
        for number in 0..count {
            let (value, bits) = prefix(number);
            let call = bench.call("t", "forward", &[2]);
            let entry = p4rack_switch::TableEntry::new(vec![mask(value, bits)], call);
            // Short prefixes occur twice.
            let _ = bench.switch.insert(bench.table("t"), entry);
        }
        measure(c, &format!("lpm/{count}"), bench, |number| spread(number * 997 % count));
    }
}

fn ternary_tables(c: &mut Criterion) {
    for (count, masks) in [(10_000u64, 8), (10_000, 32), (10_000, 10_000)] {
        let mut bench = table("ternary");
        let bits = |number: u64| {
            let number = number % masks;
            // 32 of 48 bits, and others by the number.
            (0xffff_ffff_0000 & !(1 << (16 + number % 32))) | ((number * 7919) & 0xffff)
        };
        for number in 0..count {
            let mask = mask(spread(number) & bits(number), bits(number));
            bench.add("t", vec![mask], 1 + (number * 7919 % count) as i32, "forward", &[2]);
        }
        measure(c, &format!("ternary/{count}/masks/{masks}"), bench, |number| spread(number * 997 % count));
    }
}

fn range_tables(c: &mut Criterion) {
    let count = 10_000u64;
    let mut bench = table("range");
    for number in 0..count {
        let lo = spread(number);
        let hi = (lo + (1 << (number % 40))).min((1 << 48) - 1);
        let range = Matcher::Range { lo: lo.into(), hi: hi.into() };
        bench.add("t", vec![range], 1 + (number * 7919 % count) as i32, "forward", &[2]);
    }
    measure(c, &format!("range/{count}"), bench, |number| spread(number * 997 % count) + 1);
}

criterion_group!(benches, exact_tables, lpm_tables, ternary_tables, range_tables);
criterion_main!(benches);
