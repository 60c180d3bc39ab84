//! Multicast, clones, resubmit, recirculate, digests, truncation, timestamps, the CPU port.

use crate::common;

use common::*;
use num_bigint::BigUint;
use p4rack_switch::{CloneSession, Config, Keep, PortConfig, Replica, Replicas, Switch};
use p4rack_wire::Nanos;

fn replicas(list: &[(u16, u16)]) -> Vec<Replica> {
    list.iter().map(|&(port, instance)| Replica { port, instance }).collect()
}

fn session(list: &[(u16, u16)]) -> CloneSession {
    CloneSession { replicas: replicas(list).into(), ..CloneSession::default() }
}

#[test]
fn multicast_goes_to_all_members() {
    let mut bench = Parts {
        ingress: "sm.mcast_grp = hdr.eth.kind; sm.egress_spec = 1;",
        egress: "
            hdr.eth.src = (bit<48>)(sm.egress_rid ++ sm.instance_type[15:0]);
            if (sm.egress_port == sm.ingress_port) { mark_to_drop(sm); }",
        ..Parts::default()
    }
    .run();
    bench
        .switch
        .multicast_group_set(7, replicas(&[(1, 10), (2, 20), (3, 30), (3, 31), (9, 0)]))
        .expect("valid");
    let out = bench.send(1, &eth(1, 7, b"abc"));
    let seen: Vec<(u16, u8, u8)> = out.iter().map(|(port, frame)| (*port, frame[9], frame[11])).collect();
    assert_eq!(seen, [(2, 20, 5), (3, 30, 5), (3, 31, 5)]);
    assert!(out.iter().all(|(_, frame)| frame.ends_with(b"abc")));
    assert_eq!(bench.drops(), [("egress_drop", 1), ("no_such_port", 1)]);
    assert!(bench.send(1, &eth(1, 8, &[])).is_empty());
    assert_eq!(bench.drops()[1], ("no_such_port", 1));
    assert_eq!(bench.switch.stats(bench.now).replicas, 5);
    assert!(bench.switch.multicast_group_set(0, Replicas::default()).is_err());
    assert!(bench.switch.multicast_group_set(1, replicas(&[(1, 1), (1, 1)])).is_err());
    bench.switch.multicast_group_remove(7).expect("there");
    assert!(bench.send(1, &eth(1, 7, &[])).is_empty());
}

/// A copy for 2 that 3 and then 4 replace, and one for 1 alone.
fn with_backups() -> Replicas {
    Replicas::new(vec![replicas(&[(2, 20), (3, 30), (4, 40)]), replicas(&[(1, 10)])])
}

#[test]
fn a_backup_stands_in_for_a_replica_while_its_port_is_down() {
    let mut bench = Parts {
        ingress: "
            clone(CloneType.I2E, 5);
            sm.mcast_grp = hdr.eth.kind; sm.egress_spec = 1;",
        egress: "hdr.eth.src = (bit<48>)sm.egress_rid;",
        ..Parts::default()
    }
    .run();
    bench.switch.multicast_group_set(7, with_backups()).expect("valid");
    let config = CloneSession { replicas: with_backups(), ..CloneSession::default() };
    bench.switch.clone_session_set(5, config).expect("valid");
    let mut seen = |changes: &[(u16, bool)]| {
        changes.iter().for_each(|&(port, up)| bench.switch.set_port_up(port, up));
        let out = bench.send(4, &eth(1, 7, &[]));
        let mut seen: Vec<(u16, u8)> = out.iter().map(|(port, frame)| (*port, frame[11])).collect();
        seen.sort_unstable();
        // Each of the clone's copies goes where the group's does.
        assert!(seen.chunks(2).all(|pair| pair[0] == pair[1]), "{seen:?}");
        seen.dedup();
        seen
    };
    assert_eq!(seen(&[]), [(1, 10), (2, 20)]);
    assert_eq!(seen(&[(2, false)]), [(1, 10), (3, 30)]);
    assert_eq!(seen(&[(3, false)]), [(1, 10), (4, 40)]);
    assert_eq!(seen(&[(2, true)]), [(1, 10), (2, 20)], "the preferred one is back");
    assert_eq!(seen(&[(2, false), (4, false)]), [(1, 10), (2, 20)], "all are down: to the first");
    assert_eq!(seen(&[(3, true)]), [(1, 10), (3, 30)]);
    // A group set while a port is down takes it into account; so does one that another switch
    // prepared.
    bench.switch.multicast_group_set(7, with_backups()).expect("valid");
    let mut other = Switch::new(bench.switch.config().clone());
    other.load(p4rack_switch::Pipeline::compile(&bench.program).expect("as before"));
    other.multicast_group_set(7, with_backups()).expect("valid");
    bench.switch.adopt(other, Keep::All);
    assert_eq!(bench.send(4, &eth(1, 7, &[])).iter().map(|(port, _)| *port).max(), Some(3));
}

#[test]
fn no_two_replicas_have_the_same_port_and_instance_backups_included() {
    let mut bench = l2_switch();
    let twice = Replicas::new(vec![replicas(&[(2, 20), (1, 10)]), replicas(&[(1, 10)])]);
    let session = CloneSession { replicas: twice.clone(), ..CloneSession::default() };
    assert!(bench.switch.clone_session_set(5, session).is_err());
    let error = bench.switch.multicast_group_set(7, twice).expect_err("twice");
    assert_eq!(error.to_string(), "multicast group 7: port 1 with instance 10 occurs twice");
    let many = Replicas::new(vec![(1..=1025).map(|instance| Replica { port: 1, instance }).collect()]);
    assert!(bench.switch.multicast_group_set(7, many).is_err());
}

#[test]
fn an_ingress_clone_is_what_came_in() {
    let mut bench = Parts {
        meta: "@field_list(3) bit<16> kept; bit<16> lost;",
        ingress: "
            meta.kept = 0x1234; meta.lost = 0x5678;
            clone_preserving_field_list(CloneType.I2E, 5, 3);
            hdr.eth.dst = 9;
            sm.egress_spec = 1;
            if (hdr.eth.kind == 1) { mark_to_drop(sm); }",
        egress: "hdr.eth.src = (bit<48>)(meta.kept ++ meta.lost ++ sm.instance_type[15:0]);",
        ..Parts::default()
    }
    .run();
    assert_eq!(bench.pass(1, &eth(7, 0, b"xyz")).0, 1);
    assert_eq!(bench.drops(), [("no_clone_session", 1)]);
    let mut config = session(&[(2, 0), (3, 0)]);
    config.packet_length_bytes = 15;
    bench.switch.clone_session_set(5, config).expect("valid");
    let mut out = bench.send(1, &eth(7, 0, b"xyz"));
    out.sort();
    assert_eq!(out[0], (1, [&[0, 0, 0, 0, 0, 9, 0x12, 0x34, 0x56, 0x78, 0, 0, 0, 0][..], b"xyz"].concat()));
    assert_eq!(out[1], (2, [&[0, 0, 0, 0, 0, 7, 0x12, 0x34, 0, 0, 0, 1, 0, 0][..], b"x"].concat()));
    assert_eq!(out[2].0, 3);
    // The clone of a dropped packet lives.
    assert_eq!(bench.send(1, &eth(7, 1, &[])).len(), 2);
}

#[test]
fn an_egress_clone_has_its_headers() {
    let mut bench = Parts {
        headers: "eth_t extra;",
        meta: "@field_list(1) bit<16> kept; bit<16> lost;",
        ingress: "sm.egress_spec = 1;",
        egress: "
            if (sm.instance_type == 0) {
                hdr.extra.setValid();
                hdr.extra.dst = 0xabc;
                meta.kept = 0x1111; meta.lost = 0x2222;
                clone_preserving_field_list(CloneType.E2E, 1, 1);
            } else {
                hdr.eth.src = (bit<48>)(meta.kept ++ meta.lost ++ sm.instance_type[15:0]);
            }",
        deparser: "pkt.emit(hdr.extra);",
        ..Parts::default()
    }
    .run();
    bench.switch.clone_session_set(1, session(&[(2, 0)])).expect("valid");
    let mut out = bench.send(1, &eth(7, 0, b"xyz"));
    out.sort();
    assert_eq!(out.len(), 2);
    assert_eq!((out[0].0, out[0].1.len()), (1, 31));
    assert_eq!((out[1].0, &out[1].1[6..12]), (2, &[0x11, 0x11, 0, 0, 0, 2][..]));
    assert_eq!(out[1].1[14..20], [0, 0, 0, 0, 0x0a, 0xbc]);
}

#[test]
fn clones_of_clones_end() {
    let mut bench =
        Parts { ingress: "sm.egress_spec = 1;", egress: "clone(CloneType.E2E, 1);", ..Parts::default() }
            .run_on(Config { recirculation_limit: 5, ..config() });
    bench.switch.clone_session_set(1, session(&[(2, 0)])).expect("valid");
    assert_eq!(bench.send(1, &eth(7, 0, &[])).len(), 6);
    assert_eq!(bench.drops(), [("recirculation_limit", 1)]);
}

#[test]
fn recirculation_parses_again() {
    let mut bench = Parts {
        types: "header byte_t { bit<8> b; }",
        headers: "byte_t more; byte_t[4] bytes;",
        meta: "@field_list(2) bit<8> round; bit<8> lost;",
        parser: "
            state parse { transition select(sm.instance_type) { 4: again; default: accept; } }
            state again { pkt.extract(hdr.more); transition accept; }",
        ingress: "
            hdr.eth.src[15:8] = meta.lost;
            hdr.eth.src[7:0] = (bit<8>)sm.instance_type;
            sm.egress_spec = 2;",
        egress: "
            meta.lost = 1;
            if (meta.round < 3) {
                meta.round = meta.round + 1;
                hdr.bytes[0].setValid();
                hdr.bytes[0].b = meta.round;
                recirculate_preserving_field_list(2);
            }",
        deparser: "pkt.emit(hdr.bytes); pkt.emit(hdr.more);",
        ..Parts::default()
    }
    .run();
    let (port, out) = bench.pass(1, &eth(7, 0, b"x"));
    assert_eq!((port, &out[10..12]), (2, &[0, 4][..]));
    assert_eq!(out[14..], [3, 2, 1, b'x']);
    let stats = bench.switch.stats(bench.now);
    assert_eq!((stats.recirculations, stats.ports[1].tx_frames), (3, 1));

    let forever = Parts { egress: "recirculate_preserving_field_list(0);", ..L2 };
    let mut bench = Parts { ingress: "sm.egress_spec = 1;", ..forever }.run();
    assert!(bench.send(1, &eth(7, 0, &[])).is_empty());
    assert_eq!(bench.drops(), [("recirculation_limit", 1)]);
    assert_eq!(bench.switch.stats(bench.now).recirculations, 65);
}

#[test]
fn a_resubmit_starts_over() {
    let mut bench = Parts {
        meta: "@field_list(1) bit<8> round; bit<8> lost;",
        ingress: "
            hdr.eth.src[7:0] = hdr.eth.src[7:0] + 1;
            sm.egress_spec = 1;
            if (meta.round < 2) {
                meta.round = meta.round + 1;
                meta.lost = 9;
                resubmit_preserving_field_list(1);
            } else {
                hdr.eth.dst = (bit<48>)(meta.round ++ meta.lost ++ sm.instance_type[7:0]);
            }",
        ..Parts::default()
    }
    .run();
    let out = bench.pass(1, &eth(7, 0, b"x")).1;
    // The headers are those that came in: one increment, not three.
    assert_eq!((&out[..6], out[11]), (&[0, 0, 0, 2, 0, 6][..], 10));
    assert_eq!(bench.switch.stats(bench.now).resubmits, 2);
}

/// While a frame is on its way back, others continue, and the metadata that its program kept comes
/// back with it.
#[test]
fn a_next_pass_may_take_time() {
    for (ingress, egress) in [
        ("if (meta.round < 2) { meta.round = meta.round + 1; resubmit_preserving_field_list(1); }", ""),
        ("", "if (meta.round < 2) { meta.round = meta.round + 1; recirculate_preserving_field_list(1); }"),
    ] {
        let ingress = format!("sm.egress_spec = 1; if (hdr.eth.kind == 7) {{ {ingress} }}");
        let egress = format!("if (hdr.eth.kind == 7) {{ {egress} }} hdr.eth.src = (bit<48>)meta.round;");
        let mut bench = Parts {
            meta: "@field_list(1) bit<8> round;",
            ingress: &ingress,
            egress: &egress,
            ..Parts::default()
        }
        .run_on(Config { pass_delay: Nanos(400), ..config() });
        let (start, mut out) = (bench.now, Vec::new());
        bench.switch.handle_frame(1, &eth(1, 7, &[]), start);
        assert_eq!(bench.switch.poll_transmit(start, &mut out), None);
        bench.switch.handle_frame(1, &eth(1, 8, &[]), start);
        assert_eq!((bench.switch.poll_transmit(start, &mut out), out[11]), (Some(1), 0));
        for nth in 1..=2 {
            let now = start + Nanos(400 * nth);
            assert_eq!(bench.switch.next_timeout(), Some(now));
            let sent = bench.switch.poll_transmit(now, &mut out);
            assert_eq!(sent, (nth == 2).then_some(1), "{nth}");
        }
        assert_eq!((out[11], bench.switch.next_timeout()), (2, None));
    }
}

#[test]
fn digests_wait_for_the_controller() {
    let mut bench = Parts {
        types: "struct learn_t { bit<48> mac; bit<9> port; }",
        ingress: "digest<learn_t>(1, { hdr.eth.src, sm.ingress_port }); sm.egress_spec = 1;",
        ..Parts::default()
    }
    .run_on(Config { digest_queue: 2, ..config() });
    for port in 1..=3 {
        bench.send(port, &eth(7, 0, &[]));
    }
    let first = bench.switch.poll_digest().expect("waits");
    assert_eq!(first.values, [BigUint::from(0x0200_0000_0009u64), BigUint::from(1u8)]);
    assert_eq!(first.time, Nanos(2_000));
    assert_eq!(bench.switch.poll_digest().expect("waits").values[1], BigUint::from(2u8));
    assert_eq!(bench.switch.poll_digest(), None);
    assert_eq!(bench.switch.stats(bench.now).digests_lost, 1);
}

#[test]
fn a_digest_may_be_a_single_value() {
    let mut bench = Parts {
        ingress: "digest(1, sm.ingress_port); digest(2, hdr.eth.kind == 7); sm.egress_spec = 1;",
        ..Parts::default()
    }
    .run();
    bench.send(3, &eth(7, 7, &[]));
    let mut values =
        std::iter::from_fn(|| bench.switch.poll_digest()).map(|digest| (digest.digest, digest.values));
    assert_eq!(values.next(), Some((0, vec![BigUint::from(3u8)])));
    assert_eq!(values.next(), Some((1, vec![BigUint::from(1u8)])));
    assert_eq!(values.next(), None);
}

#[test]
fn truncation_cuts_what_is_sent() {
    let mut bench = Parts {
        ingress: "truncate(20); sm.egress_spec = 1;",
        egress: "hdr.eth.src = 1;",
        ..Parts::default()
    }
    .run();
    assert_eq!(bench.pass(1, &eth(7, 0, &[5; 100])).1.len(), 20);
    assert_eq!(bench.pass(1, &eth(7, 0, &[5; 2])).1.len(), 16);
}

#[test]
fn timestamps_and_depths_are_in_metadata() {
    let mut bench = Parts {
        types: "header stamp_t { bit<48> ingress; bit<48> egress; bit<32> enq; bit<32> delta; bit<8> before; bit<8> behind; bit<32> len; }",
        headers: "stamp_t stamp;",
        ingress: "sm.egress_spec = 1;",
        egress: "
            hdr.stamp.setValid();
            hdr.stamp.ingress = sm.ingress_global_timestamp;
            hdr.stamp.egress = sm.egress_global_timestamp;
            hdr.stamp.enq = sm.enq_timestamp;
            hdr.stamp.delta = sm.deq_timedelta;
            hdr.stamp.before = (bit<8>)sm.enq_qdepth;
            hdr.stamp.behind = (bit<8>)sm.deq_qdepth;
            hdr.stamp.len = sm.packet_length;",
        deparser: "pkt.emit(hdr.stamp);",
        ..Parts::default()
    }
    .run_on(Config { time_unit_ns: 1000, clock_zero: Nanos(1_000_000), ..config() });
    for frame in 0..3u8 {
        bench.switch.handle_frame(2, &eth(7, 0, &[frame; 6]), Nanos(5_000_000 + u64::from(frame)));
    }
    bench.now = Nanos(7_999_999);
    let out = bench.collect();
    assert_eq!(out.len(), 3);
    let number = |bytes: &[u8]| bytes.iter().fold(0u64, |sum, byte| sum << 8 | u64::from(*byte));
    let stamp = &out[1].1[14..];
    assert_eq!(number(&stamp[..6]), 4_000);
    assert_eq!(number(&stamp[6..12]), 6_999);
    assert_eq!(number(&stamp[12..16]), 4_000);
    assert_eq!(number(&stamp[16..20]), 2_999);
    assert_eq!((stamp[20], stamp[21]), (1, 1));
    assert_eq!(number(&stamp[22..26]), 20);
}

#[test]
fn the_cpu_port_is_a_port_of_its_own() {
    let mut bench = Parts {
        types: "@controller_header(\"packet_in\") header in_t { bit<9> port; bit<7> pad; }
                @controller_header(\"packet_out\") header out_t { bit<9> port; bit<7> pad; }",
        headers: "in_t pin; eth_t inner;",
        ingress: "
            if (sm.ingress_port == 510) { sm.egress_spec = (bit<9>)hdr.eth.kind; }
            else { sm.egress_spec = 510; }",
        egress: "if (sm.egress_port == 510) { hdr.pin.setValid(); hdr.pin.port = sm.ingress_port; }",
        deparser: "pkt.emit(hdr.pin);",
        ..Parts::default()
    }
    .run_on(Config { cpu_queue_frames: 2, ..config() });
    for port in 1..=3 {
        assert!(bench.send(port, &eth(7, 0, b"up")).is_empty());
    }
    let mut out = Vec::new();
    assert!(bench.switch.poll_cpu(&mut out));
    assert_eq!(out[14..], [0, 0x80, b'u', b'p']);
    assert!(bench.switch.poll_cpu(&mut out));
    assert!(!bench.switch.poll_cpu(&mut out));
    assert_eq!(bench.drops(), [("cpu_queue_full", 1)]);
    assert_eq!(bench.pass(510, &eth(7, 3, b"down")).0, 3);
    let stats = bench.switch.stats(bench.now);
    let cpu = stats.ports.last().expect("the CPU port");
    assert_eq!((cpu.port, cpu.rx_frames, cpu.tx_frames), (510, 1, 2));
}

#[test]
fn priority_chooses_the_queue() {
    let ports = vec![PortConfig::new(1, 0), PortConfig::new(2, 1_000_000_000)];
    let mut bench =
        Parts { ingress: "sm.priority = hdr.eth.kind[2:0]; sm.egress_spec = 2;", ..Parts::default() }
            .run_on(Config { ports, ..config() });
    for kind in [0, 3, 7, 3] {
        bench.switch.handle_frame(1, &eth(1, kind, &[0; 100]), Nanos(1));
    }
    let mut order = Vec::new();
    while let Some(at) = bench.switch.next_timeout() {
        bench.now = at.max(Nanos(1));
        order.extend(bench.collect().iter().map(|(_, frame)| (bench.now.0, frame[13])));
    }
    // 138 bytes on the wire at 1 Gb/s: 1104 ns.
    assert_eq!(order, [(1, 7), (1105, 3), (2209, 3), (3313, 0)]);
}

#[test]
fn loading_a_program_clears_everything_but_the_ports() {
    let mut bench = l2_switch();
    bench.switch.multicast_group_set(1, replicas(&[(1, 1)])).expect("valid");
    bench.switch.handle_frame(1, &eth(mac(2), 0, &[]), bench.now);
    bench.switch.load(p4rack_switch::Pipeline::compile(&bench.program).expect("as before"));
    assert!(bench.collect().is_empty());
    assert_eq!(bench.drops(), [("program_replaced", 1)]);
    assert!(bench.switch.entries(bench.table("dmac")).expect("there").is_empty());
    assert!(bench.switch.multicast_groups().is_empty());
    assert_eq!(bench.switch.stats(bench.now).ports[0].rx_frames, 1);
    bench.switch.reset_stats(bench.now);
    assert!(bench.drops().is_empty());
}
