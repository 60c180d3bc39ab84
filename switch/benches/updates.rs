//! How long a single write by the control plane keeps packets waiting: `cargo bench -p p4rack-switch --bench updates`.
//!
//! Each sequence runs three times from the start, and of each step the shortest time counts, which leaves out the
//! times at which the kernel ran something else.

#![allow(clippy::disallowed_methods, reason = "a measurement reads the clock")]

#[path = "../tests/common/mod.rs"]
mod common;

use common::{Bench, Parts, exact, mask};
use p4rack_p4::ir::Matcher;
use p4rack_switch::TableEntry;
use p4rack_wire::quantiles;
use std::io::Write;
use std::time::{Duration, Instant};

fn spread(number: u64) -> u64 {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 16
}

fn table(kind: &str) -> Bench {
    let locals = format!(
        "action forward(bit<9> port) {{ sm.egress_spec = port; }}
         table t {{ key = {{ hdr.eth.dst: {kind}; }} actions = {{ forward; }}
                    default_action = forward(1); size = 1000000; }}"
    );
    Parts { ingress_locals: &locals, ingress: "t.apply();", ..common::L2 }.run()
}

/// Updates that the daemon runs before packets get a turn.
const TURN: usize = 16;

fn report(name: &str, mut times: Vec<Duration>) {
    let turn = times.chunks(TURN).map(|turn| turn.iter().sum::<Duration>()).max().unwrap_or_default();
    times.sort_unstable();
    let micros = |share| quantiles::of_sorted(&times, share).unwrap_or_default().as_nanos() as f64 / 1e3;
    let (half, most, rare, worst) = (micros(0.5), micros(0.99), micros(0.999), micros(1.0));
    let line = format!(
        "{name}: p50 {half:.2} µs, p99 {most:.2} µs, p99.9 {rare:.2} µs, longest {worst:.2} µs; \
         longest {TURN} in a row {:.1} µs",
        turn.as_nanos() as f64 / 1e3
    );
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// Inserts `count` entries, then deletes them.
fn measure(kind: &str, name: &str, count: u64, keys: impl Fn(u64) -> (Matcher, i32)) {
    let mut inserts = vec![Duration::MAX; count as usize];
    let mut deletes = inserts.clone();
    for _ in 0..3 {
        let mut bench = table(kind);
        let (table, call) = (bench.table("t"), bench.call("t", "forward", &[2]));
        for number in 0..count {
            let (matcher, priority) = keys(number);
            let entry = TableEntry { priority, ..TableEntry::new(vec![matcher], call.clone()) };
            let start = Instant::now();
            bench.switch.insert(table, entry).expect("is new");
            inserts[number as usize] = inserts[number as usize].min(start.elapsed());
        }
        for number in 0..count {
            let (matcher, priority) = keys(number);
            let start = Instant::now();
            bench.switch.delete(table, &[matcher], priority).expect("is there");
            deletes[number as usize] = deletes[number as usize].min(start.elapsed());
        }
    }
    report(&format!("{name}: insert"), inserts);
    report(&format!("{name}: delete"), deletes);
}

fn main() {
    if std::env::args().any(|arg| arg == "--test") {
        return;
    }
    measure("exact", "1 M exact keys", 1_000_000, |number| (exact(spread(number)), 0));
    let priority = |number: u64| 1 + (number * 7919 % 10_000) as i32;
    measure("ternary", "10 k ternary keys, 32 masks", 10_000, |number| {
        let bits = 0xffff_ffff_0000 | (number % 32);
        (mask(spread(number) & bits, bits), priority(number))
    });
    measure("ternary", "10 k ternary keys, 10 k masks", 10_000, |number| {
        let bits = 0xffff_ffff_0000 | number;
        (mask(spread(number) & bits, bits), priority(number))
    });
    measure("range", "10 k ranges", 10_000, |number| {
        let lo = spread(number);
        let hi = (lo + (1 << (number % 40))).min((1 << 48) - 1);
        (Matcher::Range { lo: lo.into(), hi: hi.into() }, priority(number))
    });
    let mut bench = table("exact");
    (0..1_000_000).for_each(|number| bench.add("t", vec![exact(spread(number))], 0, "forward", &[2]));
    let mut times = Vec::new();
    for _ in 0..3 {
        let (mut from, mut step) = (Some(0), 0);
        while let Some(at) = from {
            let start = Instant::now();
            let (_, next) = bench.switch.entries_from(bench.table("t"), at, 64).expect("is a table");
            let time = start.elapsed();
            match times.get_mut(step) {
                Some(shortest) => *shortest = time.min(*shortest),
                None => times.push(time),
            }
            (from, step) = (next, step + 1);
        }
    }
    report("1 M exact keys: read of 64", times);
}
