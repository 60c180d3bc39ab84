//! The packet path allocates nothing once it has run.

#[path = "../../tests/allocations.rs"]
mod allocations;
mod common;

use p4rack_wire::Nanos;

#[test]
fn forwarding_allocates_nothing_in_steady_state() {
    let mut switch = common::l2_switch().switch;
    let frame = |port, len: usize| common::eth(common::mac(port), 0x88b5, &vec![7; len - 14]);
    let frames = [frame(2, 64), frame(3, 1514), frame(9, 64)];
    let mut out = Vec::new();
    let mut sent = 0;
    let mut pass = |switch: &mut p4rack_switch::Switch, rounds: u64, from: u64| {
        for round in from..from + rounds {
            let now = Nanos(round * 1_000);
            for frame in &frames {
                switch.handle_frame(1, frame, now);
                switch.handle_frame(1, frame, now);
            }
            while switch.poll_transmit(now, &mut out).is_some() {
                sent += 1;
            }
        }
    };
    pass(&mut switch, 10, 0);
    let before = allocations::count();
    pass(&mut switch, 10_000, 10);
    assert_eq!(allocations::count() - before, 0);
    assert_eq!(sent, 4 * 10_010);
}

/// The same where the half behind the queue parses the output of the one before.
#[test]
fn tna_allocates_nothing_in_steady_state() {
    for text in [
        include_str!("../../examples/tna-forward.p4"),
        include_str!("../../tests/tna/mirror.p4"),
        include_str!("../../tests/tna/multicast.p4"),
        include_str!("../../tests/tna/resubmit.p4"),
        include_str!("../../tests/tna/recirculate.p4"),
    ] {
        let program = common::compile(text);
        let mut switch = p4rack_switch::Switch::new(common::config());
        switch.load(p4rack_switch::Pipeline::compile(&program).expect("the switch takes it"));
        let replicas = [2, 3].map(|port| p4rack_switch::Replica { port, instance: 1 }).to_vec();
        let session = p4rack_switch::CloneSession { replicas: replicas.clone().into(), ..Default::default() };
        switch.clone_session_set(5, session).expect("a session");
        switch.multicast_group_set(7, replicas).expect("a group");
        let frames: Vec<Vec<u8>> = (0..8).map(|first| [&[first], &[0; 1400][..]].concat()).collect();
        let (mut out, mut sent) = (Vec::new(), 0u64);
        let mut pass = |switch: &mut p4rack_switch::Switch, rounds: std::ops::Range<u64>| {
            for round in rounds {
                let now = Nanos(round * 1_000);
                for frame in &frames {
                    sent += u64::from(switch.forward_frame(1, frame, now, &mut out).is_some());
                    switch.handle_frame(4, frame, now);
                    while switch.poll_transmit(now, &mut out).is_some() {
                        sent += 1;
                    }
                }
            }
        };
        pass(&mut switch, 1..30);
        let before = allocations::count();
        pass(&mut switch, 30..500);
        assert_eq!(allocations::count() - before, 0, "{}", program.name);
        assert!(sent > 499, "{sent}");
    }
}

/// A hash of which the control plane exchanges two parts.
#[test]
fn a_changed_hash_allocates_nothing_in_steady_state() {
    let program = common::compile(include_str!("../../switchd/tests/bfruntime/kinds.p4"));
    let at = program.instances.iter().position(|instance| instance.named.name.ends_with("mixed"));
    let hash = p4rack_p4::ir::InstanceId(at.expect("its hash of two fields") as u32);
    let mut switch = p4rack_switch::Switch::new(common::config());
    switch.load(p4rack_switch::Pipeline::compile(&program).expect("the switch takes it"));
    let part = |start| p4rack_switch::HashPart { field: 1, start, bits: 8, order: 1 };
    let config = p4rack_switch::HashConfig {
        parts: Some(vec![part(0), part(8)]),
        algorithm: None,
        rotate: 0,
        extend: false,
    };
    let frame = |low, high| [&[11, 1, low, high][..], &[0; 60][..]].concat();
    let (mut out, mut at) = (Vec::new(), 0u64);
    let mut answer = |switch: &mut p4rack_switch::Switch, frame: &[u8]| {
        at += 1_000;
        switch.forward_frame(1, frame, Nanos(at), &mut out).expect("it leaves");
        [out[2], out[3]]
    };
    let whole = answer(&mut switch, &frame(2, 3));
    switch.hash_config(hash, Some(config)).expect("it is changeable");
    let changed = answer(&mut switch, &frame(2, 3));
    assert_ne!(changed, whole);
    let (one, other) = (frame(2, 3), frame(3, 2));
    let before = allocations::count();
    for _ in 0..100 {
        assert_eq!(answer(&mut switch, &one), changed);
        assert_eq!(answer(&mut switch, &other), changed, "the halves may be exchanged");
    }
    assert_eq!(allocations::count() - before, 0);
}

/// Everything that a packet can pass; the kinds of EtherType choose the parts.
const ALL: common::Parts<'static> = common::Parts {
    meta: "@field_list(1) bit<8> pass; bit<2> color; bit<32> cell;",
    ingress_locals: "
        counter(4, CounterType.packets_and_bytes) counted;
        meter(4, MeterType.bytes) metered;
        register<bit<32>>(4) cells;
        action set(bit<32> cell) { meta.cell = cell; }
        table masked { key = { hdr.eth.dst: ternary; } actions = { set; } default_action = set(0); }
        table prefixes { key = { hdr.eth.dst: lpm; } actions = { set; } default_action = set(0); }
        table ranges { key = { hdr.eth.dst: range; hdr.eth.kind: optional; } actions = { set; } default_action = set(0); }",
    ingress: "
        masked.apply(); prefixes.apply(); ranges.apply();
        counted.count(meta.cell);
        metered.execute_meter(meta.cell, meta.color);
        cells.read(meta.cell, 1);
        cells.write(1, meta.cell + 1);
        sm.egress_spec = 2;
        if (hdr.eth.kind == 1) { clone_preserving_field_list(CloneType.I2E, 7, 1); }
        if (hdr.eth.kind == 2) { sm.mcast_grp = 5; }
        if (hdr.eth.kind == 4 && meta.pass == 0) { meta.pass = 1; resubmit_preserving_field_list(1); }",
    egress: "
        if (hdr.eth.kind == 3 && meta.pass == 0) { meta.pass = 1; recirculate_preserving_field_list(1); }
        if (hdr.eth.kind == 5 && sm.instance_type == 0) { clone_preserving_field_list(CloneType.E2E, 7, 1); }",
    ..common::L2
};

#[test]
fn no_table_extern_or_copy_allocates_in_steady_state() {
    use num_bigint::BigUint;
    use p4rack_p4::ir::Matcher;
    use p4rack_switch::{CloneSession, MeterConfig, Replica};
    let mut bench = ALL.run();
    for number in 0..1_000u64 {
        let (mask, priority) = (0xffff_ffff_0000 | number, 1 + number as i32);
        bench.add("masked", vec![common::mask((number * 77_777) & mask, mask)], priority, "set", &[1]);
        let prefix = 0xffff_ffff_ffff - ((1 << (number % 16)) - 1);
        bench.add("prefixes", vec![common::mask((number << 20) & prefix, prefix)], 0, "set", &[2]);
        let range = Matcher::Range { lo: BigUint::from(number), hi: BigUint::from(number * 1_000_000) };
        bench.add("ranges", vec![range, common::exact(number % 6)], priority, "set", &[3]);
    }
    let replicas: Vec<Replica> = [3, 4].map(|port| Replica { port, instance: 1 }).to_vec();
    bench.switch.multicast_group_set(5, replicas.clone()).expect("a group");
    let session = CloneSession { replicas: replicas.into(), ..CloneSession::default() };
    bench.switch.clone_session_set(7, session).expect("a session");
    let rates = MeterConfig { cir: 1000, cburst: 1500, pir: 2000, pburst: 3000 };
    bench.switch.meter_config(bench.instance("metered"), 3, Some(rates)).expect("a cell");
    let frames: Vec<Vec<u8>> = (0..6).map(|kind| common::eth(common::mac(2), kind, &[7; 50])).collect();
    let (mut out, mut sent) = (Vec::new(), [0u64; 6]);
    let mut pass = |switch: &mut p4rack_switch::Switch, rounds: std::ops::Range<u64>| {
        for round in rounds {
            let now = Nanos(round * 1_000);
            for (kind, frame) in frames.iter().enumerate() {
                sent[kind] += u64::from(switch.forward_frame(1, frame, now, &mut out).is_some());
                while switch.poll_transmit(now, &mut out).is_some() {
                    sent[kind] += 1;
                }
            }
        }
    };
    pass(&mut bench.switch, 1..10);
    let before = allocations::count();
    pass(&mut bench.switch, 10..1_000);
    assert_eq!(allocations::count() - before, 0);
    // Forwarded, cloned to two, sent to a group of two, recirculated, resubmitted, cloned to two at egress.
    assert_eq!(sent, [1, 3, 2, 1, 1, 3].map(|copies| copies * 999));
    assert!(bench.register("cells", 1) > 999);
}
