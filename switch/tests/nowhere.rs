//! Frames for ports that do not exist: they pass egress, where a program may recirculate or clone them, and end there.

use crate::common;

use common::*;
use p4rack_switch::{CloneSession, Config, PortConfig, Replica, Replicas};
use p4rack_wire::Nanos;

/// Counts packets in egress, by port.
const SEEN: &str = "register<bit<32>>(512) seen;";
const COUNT: &str =
    "bit<32> n; bit<32> at = (bit<32>) sm.egress_port; seen.read(n, at); seen.write(at, n + 1);";

#[test]
fn a_program_recirculates_through_a_port_that_does_not_exist() {
    let mut bench = Parts {
        ingress: "if (sm.instance_type == 4) { sm.egress_spec = 2; hdr.eth.kind = 0x1111; } else { sm.egress_spec = 500; }",
        egress: "if (sm.egress_port == 500) { recirculate_preserving_field_list(0); }",
        ..Parts::default()
    }
    .run();
    for _ in 0..3 {
        assert_eq!(bench.pass(1, &eth(1, 7, b"abc")), (2, eth(1, 0x1111, b"abc")));
    }
    assert_eq!(bench.drops(), []);
    assert_eq!(bench.switch.stats(bench.now).recirculations, 3);
}

#[test]
fn what_is_sent_there_is_counted_behind_egress_and_so_are_clones_and_replicas() {
    let mut bench = Parts {
        ingress: "sm.egress_spec = 500;
            if (hdr.eth.kind == 1) { clone(CloneType.I2E, 5); }
            if (hdr.eth.kind == 2) { sm.mcast_grp = 7; }",
        egress_locals: SEEN,
        egress: COUNT,
        ..Parts::default()
    }
    .run();
    let replicas = |ports: &[u16]| -> Replicas {
        ports.iter().map(|&port| Replica { port, instance: 1 }).collect::<Vec<_>>().into()
    };
    let session = CloneSession { replicas: replicas(&[501, 3]), ..CloneSession::default() };
    bench.switch.clone_session_set(5, session).expect("a session");
    bench.switch.multicast_group_set(7, replicas(&[502, 511, 4])).expect("a group");
    let seen = |bench: &Bench, ports: &[u64]| -> Vec<u64> {
        ports.iter().map(|port| bench.register("seen", *port)).collect()
    };
    assert_eq!(bench.send(1, &eth(1, 0, &[])), []);
    assert_eq!((seen(&bench, &[500]), bench.drops()), (vec![1], vec![("no_such_port", 1)]));
    assert_eq!(bench.send(1, &eth(1, 1, &[])), [(3, eth(1, 1, &[]))]);
    assert_eq!((seen(&bench, &[500, 501, 3]), bench.drops()), (vec![2, 1, 1], vec![("no_such_port", 3)]));
    assert_eq!(bench.send(1, &eth(1, 2, &[])), [(4, eth(1, 2, &[]))]);
    // Only ingress takes the drop port for a drop.
    assert_eq!((seen(&bench, &[502, 511, 4]), bench.drops()), (vec![1, 1, 1], vec![("no_such_port", 5)]));
    assert_eq!(bench.switch.buffered_bytes(), 0);
    // There is no port to show.
    let ports: Vec<u16> = bench.switch.stats(bench.now).ports.iter().map(|port| port.port).collect();
    assert_eq!(ports, [1, 2, 3, 4, 510]);
}

#[test]
fn the_queue_for_such_ports_is_short_and_served_like_the_fastest_port() {
    let ports = vec![PortConfig::new(1, 1_000_000), PortConfig::new(2, 8_000_000)];
    let arrival_burst = Nanos::MAX;
    let config = Config { ports, arrival_burst, buffer_bytes: 256 * 1024, ..Config::default() };
    let mut bench = Parts {
        ingress: "if (hdr.eth.kind == 2) { sm.egress_spec = 2; } else { sm.egress_spec = 300 + (bit<9>) hdr.eth.kind; }",
        egress_locals: SEEN,
        egress: COUNT,
        ..Parts::default()
    }
    .run_on(config);
    for at in 0..100 {
        assert_eq!(bench.send(1, &eth(1, 10 + at % 3, &[0; 986])), []);
    }
    let count = |bench: &Bench, name: &str| bench.drops().iter().find(|d| d.0 == name).map_or(0, |d| d.1);
    let limit = 256 * 1024 / 16;
    assert!(
        (limit - 1_004..=limit).contains(&bench.switch.buffered_bytes()),
        "{}",
        bench.switch.buffered_bytes()
    );
    let (refused, gone) = (count(&bench, "queue_limit"), count(&bench, "no_such_port"));
    assert!(refused > 80 && gone <= 2, "{refused} refused, {gone} gone");
    // Others have their room.
    assert_eq!(bench.pass(1, &eth(1, 2, &[])).0, 2);
    // At 8 Mb/s, a frame of 1000 bytes takes 1024 µs with all that a wire adds.
    let before = count(&bench, "no_such_port");
    bench.now += Nanos(5 * 1_024_000);
    assert_eq!(bench.collect(), []);
    assert!((4..=6).contains(&(count(&bench, "no_such_port") - before)));
    while let Some(due) = bench.switch.next_timeout() {
        bench.now = bench.now.max(due);
        assert_eq!(bench.collect(), []);
    }
    assert_eq!(count(&bench, "no_such_port") + count(&bench, "queue_limit"), 100);
    assert_eq!(bench.switch.buffered_bytes(), 0);
}
