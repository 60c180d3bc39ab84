//! The traffic manager under overload: frames that are sent, wait, and are dropped, for each rule of the buffer. The
//! tables are snapshots, since every figure in them should change only on purpose.

use crate::common;

use common::*;
use p4rack_switch::{Config, PortConfig, PortStats};
use p4rack_wire::{Nanos, quantiles};
use std::fmt::Write;

/// Forwards by destination address, in the class that the frame's type gives.
const CLASSES: Parts<'static> = Parts { ingress: "dmac.apply(); sm.priority = (bit<3>) hdr.eth.kind;", ..L2 };

/// Number of frames in a run.
const FRAMES: u64 = 20_000;

/// Frames from port 1, at 1.2 Gb/s on average, to ports of 100 Mb/s, 400 Mb/s and 10 Gb/s. Returns the table.
fn overload(name: &str, change: impl FnOnce(&mut Config)) -> String {
    let ports = [(1, 0), (2, 100_000_000), (3, 400_000_000), (4, 10_000_000_000)]
        .map(|(n, rate)| PortConfig::new(n, rate));
    let mut config = Config { ports: ports.into(), buffer_bytes: 64 * 1024, ..Config::default() };
    change(&mut config);
    let mut bench = CLASSES.run_on(config);
    (2..=4).for_each(|port| bench.add("dmac", vec![exact(mac(port))], 0, "forward", &[port.into()]));

    let mut seed = 1u64;
    let mut random = |n: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % n
    };
    let (mut sent, mut out) = ([[0u64; 8]; 3], Vec::new());
    let mut drain = |bench: &mut Bench| {
        while let Some(port) = bench.switch.poll_transmit(bench.now, &mut out) {
            sent[usize::from(port) - 2][usize::from(out[13])] += 1;
        }
    };
    let arrivals: Vec<(u64, u16, u16, usize)> = (0..FRAMES)
        .map(|_| (random(10_000), 2 + random(3) as u16, random(8) as u16, 46 + random(1455) as usize))
        .collect();
    for (wait, port, class, len) in arrivals {
        let at = bench.now + Nanos(wait);
        while let Some(due) = bench.switch.next_timeout().filter(|due| *due < at) {
            bench.now = due.max(bench.now);
            drain(&mut bench);
        }
        bench.now = at;
        bench.switch.handle_frame(1, &eth(mac(port), class, &vec![0; len]), at);
        drain(&mut bench);
    }
    let stats = bench.switch.stats(bench.now);
    let queued: u64 = stats.ports.iter().flat_map(|port| port.queues).map(|queue| queue.frames).sum();
    let dropped: u64 = stats.drops.iter().map(|(_, count)| count).sum();
    assert_eq!(sent.iter().flatten().sum::<u64>() + queued + dropped, FRAMES, "{name}");
    assert!(stats.buffer_max_bytes <= 64 * 1024, "{name}");

    let mut text = format!("{name}: {queued} frames wait, {dropped} were dropped\n");
    for (port, sent) in stats.ports[1..4].iter().zip(sent) {
        let most = port.queues.map(|queue| queue.max_bytes);
        let _ = writeln!(text, "  port {}: depth {}", port.port, depths(port));
        let _ = writeln!(text, "    sent by class     {}", row(sent));
        let _ = writeln!(text, "    most bytes queued {}", row(most));
        for (reason, count) in &port.drops {
            let _ = writeln!(text, "    {} {count}", reason.name());
        }
    }
    text
}

fn row(figures: [u64; 8]) -> String {
    figures.map(|figure| format!("{figure:>6}")).concat()
}

/// Quantiles of a port's depth over time, and its maximum.
fn depths(port: &PortStats) -> String {
    let quantile = |share: f64| {
        quantiles::weighted(port.histogram.iter().map(|bin| (bin.depth_bytes, bin.nanos)), share).unwrap_or(0)
    };
    format!("{} half of the time, {} at p99, {} at most", quantile(0.5), quantile(0.99), port.queue_max_bytes)
}

#[test]
fn each_rule_of_the_buffer_decides_who_is_dropped() {
    let text = [
        overload("one buffer for all", |_| {}),
        overload("a quarter reserved for classes 4 to 7", |config| config.reserved_bytes = 16 * 1024),
        overload("dynamic thresholds, 100 %", |config| config.dynamic_percent = Some(100)),
        overload("8 KiB per queue", |config| {
            config.ports.iter_mut().for_each(|port| port.queue_limit_bytes = Some(8 * 1024));
        }),
    ]
    .join("\n");
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!("congestion", text);
    });
}
