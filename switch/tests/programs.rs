//! Programs from text: forwarding, parsing, state, expressions.

use crate::common;

use common::*;
use num_bigint::BigUint;
use p4rack_p4::ir::Matcher;
use p4rack_switch::{CounterData, EntryRef, MeterConfig, Pipeline};
use p4rack_wire::Nanos;

#[test]
fn an_l2_switch_forwards_and_drops() {
    let mut bench = l2_switch();
    let frame = eth(mac(3), 0x0800, b"hello");
    assert_eq!(bench.pass(1, &frame), (3, frame.clone()));
    assert!(bench.send(1, &eth(0xffff_ffff_ffff, 0x0800, b"")).is_empty());
    assert_eq!(bench.drops(), [("ingress_drop", 1)]);
    // Too short for Ethernet: the header stays invalid, the key reads 0.
    assert!(bench.send(1, &[1, 2, 3]).is_empty());
    assert!(bench.send(7, &frame).is_empty());
    assert!(bench.send(1, &vec![0; 9217]).is_empty());
    let drops = [("unknown_ingress_port", 1), ("frame_too_long", 1), ("ingress_drop", 2)];
    assert_eq!(bench.drops(), drops);
    let stats = bench.switch.stats(bench.now);
    assert_eq!((stats.ports[0].rx_frames, stats.ports[2].tx_frames), (4, 1));
}

/// Reading an invalid header or a variable that was not set gives an unspecified value: here 0, and never one that
/// another packet left.
#[test]
fn nothing_of_a_packet_is_seen_by_the_next() {
    let mut bench = Parts {
        types: "header tag_t { bit<16> id; }",
        headers: "tag_t tag;",
        meta: "bit<16> note;",
        parser: "
            state parse { transition select(hdr.eth.kind) { 7: tagged; default: accept; } }
            state tagged { pkt.extract(hdr.tag); meta.note = hdr.tag.id; transition accept; }",
        ingress: "
            if (hdr.tag.isValid()) { sm.priority = 3; sm.egress_spec = 3; }
            else { sm.egress_spec = 2; hdr.eth.src = 16w0 ++ hdr.tag.id ++ meta.note; }",
        egress: "
            if (!hdr.tag.isValid()) {
                hdr.eth.dst = 8w0 ++ hdr.tag.id ++ meta.note ++ 5w0 ++ sm.priority;
                hdr.eth.kind = (bit<16>) sm.egress_port;
            }",
        deparser: "pkt.emit(hdr.tag);",
        ..Parts::default()
    }
    .run();
    for _ in 0..2 {
        assert_eq!(bench.pass(1, &eth(1, 7, &[0xab; 50])).0, 3);
        let (port, frame) = bench.pass(1, &eth(1, 8, &[0xcd; 50]));
        assert_eq!((port, &frame[..14]), (2, &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2][..]));
        assert_eq!(frame[14..], [0xcd; 50]);
    }
    // Queued together, each keeps its own.
    bench.switch.handle_frame(1, &eth(1, 7, &[0xab; 50]), bench.now);
    bench.switch.handle_frame(1, &eth(1, 8, &[0xcd; 50]), bench.now);
    let mut sent = bench.collect();
    sent.sort_unstable();
    assert_eq!(sent.iter().map(|(port, _)| *port).collect::<Vec<u16>>(), [2, 3]);
    assert_eq!(sent[0].1[..14], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    assert_eq!(sent[1].1[14..], [0xab; 50]);
}

/// Constants are at the end of the frame, the first one right at it.
#[test]
fn a_wide_constant_may_be_the_first() {
    let mut bench = Parts {
        ingress_locals: "bit<128> wide = 128w0x1_0000_0000_0000_0002;",
        ingress: "hdr.eth.src = wide[95:48]; sm.egress_spec = 2;",
        ..Parts::default()
    }
    .run();
    assert_eq!(bench.pass(1, &eth(1, 7, &[0; 46])).1[6..12], [0, 0, 0, 1, 0, 0]);
}

#[test]
fn registers_and_counters_keep_state() {
    let mut bench = Parts {
        ingress_locals: "
            register<bit<16>>(8) last;
            register<bit<130>>(2) wide;
            register<int<8>>(4) small;
            counter(4, CounterType.packets_and_bytes) seen;
            bit<16> old; bit<130> w; int<8> s;",
        ingress: "
            last.read(old, (bit<32>)hdr.eth.src[2:0]);
            last.write((bit<32>)hdr.eth.src[2:0], old + hdr.eth.kind);
            wide.read(w, 1);
            wide.write(1, (w << 1) + 1);
            small.read(s, 0);
            small.write(0, s - 1);
            last.write(100, 1);
            seen.count((bit<32>)sm.ingress_port);
            hdr.eth.kind = old;
            sm.egress_spec = 2;",
        ..Parts::default()
    }
    .run();
    assert_eq!(bench.pass(1, &eth(1, 0xffff, &[0; 50])).1[12..14], [0, 0]);
    assert_eq!(bench.pass(1, &eth(1, 3, &[0; 50])).1[12..14], [0xff, 0xff]);
    assert_eq!(bench.pass(3, &eth(1, 0, &[0; 46])).1[12..14], [0, 2]);
    assert_eq!(bench.register("last", 1), 2);
    assert_eq!(bench.register("wide", 1), 7);
    assert_eq!(bench.register("small", 0), 0xfd);
    let seen = bench.instance("seen");
    assert_eq!(bench.switch.counter_read(seen, 1), Ok(CounterData { packets: 2, bytes: 128 }));
    assert_eq!(bench.switch.counter_read(seen, 3), Ok(CounterData { packets: 1, bytes: 60 }));
    assert!(bench.switch.counter_read(seen, 4).is_err());
    let last = bench.instance("last");
    bench.switch.register_write(last, 1, &BigUint::from(0x1234u32)).expect("fits");
    assert!(bench.switch.register_write(last, 1, &BigUint::from(0x1_0000u32)).is_err());
    assert!(bench.switch.register_write(last, 8, &BigUint::from(0u32)).is_err());
    assert_eq!(bench.pass(1, &eth(1, 0, &[0; 50])).1[12..14], [0x12, 0x34]);
}

#[test]
fn an_empty_stack_of_the_130_bit_register_fills_with_ones() {
    let mut bench = Parts {
        ingress_locals: "register<bit<130>>(1) wide; bit<130> w;",
        ingress: "wide.read(w, 0); wide.write(0, (w << 1) | 1); sm.egress_spec = 1;",
        ..Parts::default()
    }
    .run();
    for _ in 0..200 {
        bench.pass(1, &eth(1, 0, &[]));
    }
    let value = bench.switch.register_read(bench.instance("wide"), 0).expect("there");
    assert_eq!(value, (BigUint::from(1u8) << 130) - 1u8);
}

#[test]
fn the_longest_prefix_wins() {
    let mut bench = Parts {
        ingress_locals: "
            action to(bit<9> port) { sm.egress_spec = port; }
            table routes {
                key = { hdr.eth.kind: exact; hdr.eth.dst: lpm; }
                actions = { to; NoAction; }
                default_action = to(4);
            }",
        ingress: "routes.apply();",
        ..Parts::default()
    }
    .run();
    let prefix = |bits: u32| ((1u64 << bits) - 1) << (48 - bits);
    bench.add("routes", vec![exact(7), mask(0x0a00_0000_0000, prefix(8))], 0, "to", &[1]);
    bench.add("routes", vec![exact(7), mask(0x0a01_0000_0000, prefix(16))], 0, "to", &[2]);
    bench.add("routes", vec![exact(7), Matcher::Any], 0, "to", &[3]);
    assert_eq!(bench.pass(1, &eth(0x0a02_0304_0506, 7, &[])).0, 1);
    assert_eq!(bench.pass(1, &eth(0x0a01_0304_0506, 7, &[])).0, 2);
    assert_eq!(bench.pass(1, &eth(0x0b01_0304_0506, 7, &[])).0, 3);
    assert_eq!(bench.pass(1, &eth(0x0a01_0304_0506, 8, &[])).0, 4);
    bench
        .switch
        .delete(bench.table("routes"), &[exact(7), mask(0x0a01_0000_0000, prefix(16))], 0)
        .expect("there");
    assert_eq!(bench.pass(1, &eth(0x0a01_0304_0506, 7, &[])).0, 1);
}

#[test]
fn the_largest_priority_wins() {
    let mut bench = Parts {
        ingress_locals: "
            action to(bit<9> port) { sm.egress_spec = port; }
            action none() { sm.egress_spec = 4; }
            table acl {
                key = { hdr.eth.dst: ternary; hdr.eth.kind: range; sm.ingress_port: optional; }
                actions = { to; none; }
                const default_action = none();
            }",
        ingress: "acl.apply();",
        ..Parts::default()
    }
    .run();
    let range = |lo: u32, hi: u32| Matcher::Range { lo: lo.into(), hi: hi.into() };
    bench.add("acl", vec![mask(0x0001, 0x0001), range(0, 99), Matcher::Any], 10, "to", &[1]);
    bench.add("acl", vec![Matcher::Any, range(50, 0xffff), Matcher::Any], 20, "to", &[2]);
    bench.add("acl", vec![Matcher::Any, Matcher::Any, exact(3)], 15, "to", &[3]);
    assert_eq!(bench.pass(1, &eth(1, 10, &[])).0, 1);
    assert_eq!(bench.pass(1, &eth(1, 50, &[])).0, 2);
    assert_eq!(bench.pass(1, &eth(2, 10, &[])).0, 4);
    assert_eq!(bench.pass(3, &eth(1, 49, &[])).0, 3);
    assert_eq!(bench.pass(3, &eth(1, 60, &[])).0, 2);
}

#[test]
fn headers_are_pushed_popped_and_stacked() {
    let mut bench = Parts {
        types: "header tag_t { bit<3> pcp; bit<1> dei; bit<12> vid; bit<16> kind; }",
        headers: "tag_t[3] tags;",
        parser: "
            state parse { transition select(hdr.eth.kind) { 0x8100: tag; default: accept; } }
            state tag {
                pkt.extract(hdr.tags.next);
                transition select(hdr.tags.last.kind) { 0x8100: tag; default: accept; }
            }",
        ingress: "
            sm.egress_spec = 2;
            if (hdr.eth.src[7:0] == 1) {
                hdr.tags.push_front(1);
                hdr.tags[0].setValid();
                hdr.tags[0].pcp = 5;
                hdr.tags[0].vid = 0xabc;
                hdr.tags[0].kind = hdr.eth.kind;
                hdr.eth.kind = 0x8100;
            } else if (hdr.eth.src[7:0] == 2) {
                hdr.eth.kind = hdr.tags[0].kind;
                hdr.tags.pop_front(1);
            } else {
                hdr.tags[1].vid = hdr.tags[0].vid + 1;
                if (sm.parser_error != error.NoError) { sm.egress_spec = 3; }
            }",
        deparser: "pkt.emit(hdr.tags);",
        ..Parts::default()
    }
    .run();
    let frame = |src: u8, kind: u16, rest: &[u8]| {
        let mut frame = eth(1, kind, rest);
        frame[11] = src;
        frame
    };
    let tagged = bench.pass(1, &frame(1, 0x0800, b"xy")).1;
    assert_eq!(tagged[12..], [0x81, 0, 0xaa, 0xbc, 8, 0, b'x', b'y']);
    let untagged = bench.pass(1, &frame(2, 0x8100, &[0xaa, 0xbc, 8, 0, b'x', b'y'])).1;
    assert_eq!(untagged, frame(2, 0x0800, b"xy"));
    let two = bench.pass(1, &frame(3, 0x8100, &[0, 7, 0x81, 0, 0xf0, 9, 8, 0, 1])).1;
    assert_eq!(two[14..], [0, 7, 0x81, 0, 0xf0, 8, 8, 0, 1]);
    // A fourth tag does not fit: StackOutOfBounds; the parsed part stays.
    let four = frame(3, 0x8100, &[0, 1, 0x81, 0, 0, 2, 0x81, 0, 0, 3, 0x81, 0, 0, 4, 8, 0]);
    let (port, out) = bench.pass(1, &four);
    assert_eq!((port, out.len()), (3, four.len()));
    assert_eq!(out[18..20], [0, 2]);
}

#[test]
fn lookahead_advance_and_select() {
    let mut bench = Parts {
        types: "header a_t { bit<8> tag; bit<8> a; } header b_t { bit<8> tag; bit<24> b; }",
        headers: "a_t a; b_t b;",
        meta: "bit<16> seen;",
        parser: "
            state parse { transition select(pkt.lookahead<bit<8>>(), hdr.eth.kind) {
                (1, _): a;
                (2, 5 .. 9): b;
                (2 &&& 2, 0xff00 &&& 0xff00): skip;
                (9, _): refuse;
            } }
            state a { pkt.extract(hdr.a); meta.seen = (bit<16>)pkt.length(); transition accept; }
            state b { pkt.extract(hdr.b); transition accept; }
            state skip { pkt.advance(16); pkt.extract(hdr.a); transition accept; }
            state refuse { verify(false, error.HeaderTooShort); transition accept; }",
        ingress: "
            sm.egress_spec = 4;
            if (hdr.a.isValid()) { sm.egress_spec = 1; hdr.eth.src = (bit<48>)hdr.a.a; hdr.eth.kind = meta.seen; }
            if (hdr.b.isValid()) { sm.egress_spec = 2; hdr.eth.src = (bit<48>)hdr.b.b; }
            if (sm.parser_error == error.NoMatch) { sm.egress_spec = 3; }
            if (sm.parser_error == error.HeaderTooShort) { sm.egress_spec = 1; }",
        ..Parts::default()
    }
    .run();
    let (port, out) = bench.pass(1, &eth(1, 3, &[1, 42]));
    assert_eq!((port, out[11], &out[12..]), (1, 42, &[0u8, 16][..]));
    let (port, out) = bench.pass(1, &eth(1, 7, &[2, 1, 2, 3, 99]));
    assert_eq!((port, &out[9..12], &out[14..]), (2, &[1u8, 2, 3][..], &[99u8][..]));
    assert_eq!(bench.pass(1, &eth(1, 3, &[2, 1, 2, 3])).0, 3);
    // The skipped bytes belong to no header: they are gone.
    let (port, out) = bench.pass(1, &eth(1, 0xff00, &[3, 8, 1, 77, 5]));
    assert_eq!((port, out[11], &out[14..]), (1, 77, &[5u8][..]));
    assert_eq!(bench.pass(1, &eth(1, 3, &[9, 9])).0, 1);
    // PacketTooShort in lookahead.
    assert_eq!(bench.pass(1, &eth(1, 3, &[])).0, 4);
}

#[test]
fn varbits_are_parsed_and_written() {
    let mut bench = Parts {
        types: "header opt_t { bit<8> len; varbit<80> data; bit<8> end; }",
        headers: "opt_t opt; opt_t copy;",
        parser: "
            state parse { transition select(hdr.eth.kind) { 1: opt; default: accept; } }
            state opt { pkt.extract(hdr.opt, (bit<32>)pkt.lookahead<bit<8>>() << 3); transition accept; }",
        ingress: "
            sm.egress_spec = 1;
            if (sm.parser_error != error.NoError) { sm.egress_spec = 2; }
            if (hdr.opt.isValid()) { hdr.copy = hdr.opt; hdr.copy.end = hdr.copy.end + 1; }",
        deparser: "pkt.emit(hdr.opt); pkt.emit(hdr.copy);",
        ..Parts::default()
    }
    .run();
    assert_eq!(
        bench.pass(1, &eth(1, 1, &[3, 10, 11, 12, 5, 99])).1[14..],
        [3, 10, 11, 12, 5, 3, 10, 11, 12, 6, 99]
    );
    assert_eq!(bench.pass(1, &eth(1, 1, &[0, 5])).1[14..], [0, 5, 0, 6]);
    let ten: Vec<u8> = (0..12).map(|byte| if byte == 0 { 10 } else { byte }).collect();
    assert_eq!(bench.pass(1, &eth(1, 1, &ten)).1[14..26], ten[..]);
    assert_eq!(bench.pass(1, &eth(1, 1, &[11; 20])).0, 2);
    assert_eq!(bench.pass(1, &eth(1, 1, &[3, 1])).0, 2);
}

#[test]
fn a_varbit_of_a_wrong_length_raises_what_the_specification_tries_first() {
    let parts = Parts {
        types: "header opt_t { bit<8> bits; varbit<32> data; }",
        headers: "opt_t opt; opt_t[2] more;",
        parser: "
            state parse { transition select(hdr.eth.kind) { 1: one; 2: next; default: accept; } }
            state one { pkt.extract(hdr.opt, (bit<32>)pkt.lookahead<bit<8>>()); transition accept; }
            state next { pkt.extract(hdr.more.next, (bit<32>)pkt.lookahead<bit<8>>()); transition accept; }",
        ingress: "
            sm.egress_spec = 0;
            if (sm.parser_error == error.NoError) { sm.egress_spec = 1; }
            if (sm.parser_error == error.ParserInvalidArgument) { sm.egress_spec = 2; }
            if (sm.parser_error == error.PacketTooShort) { sm.egress_spec = 3; }
            if (sm.parser_error == error.HeaderTooShort) { sm.egress_spec = 4; }",
        ..Parts::default()
    };
    for compile in [Pipeline::compile, Pipeline::compile_interpreted, Pipeline::compile_traced] {
        let mut bench = parts.run();
        bench.switch.load(compile(&bench.program).unwrap());
        // Length in bits, bytes that follow it, and the port of the error: no whole bytes beats a packet that is too
        // short, and that beats a length beyond the field's.
        for (bits, follow, port) in [
            (32, 4, 1),
            (33, 8, 2),
            (41, 8, 2),
            (41, 0, 2),
            (12, 0, 2),
            (24, 2, 3),
            (40, 4, 3),
            (40, 5, 4),
            (248, 31, 4),
        ] {
            for kind in [1, 2] {
                let packet: Vec<u8> = std::iter::once(bits).chain(vec![7; follow]).collect();
                assert_eq!(bench.pass(1, &eth(1, kind, &packet)).0, port, "{bits} bits, {follow} bytes");
            }
        }
    }
}

const IPV4: Parts<'static> = Parts {
    types: "header ip_t { bit<4> version; bit<4> ihl; bit<8> tos; bit<16> len; bit<16> id; bit<3> flags; bit<13> off;
              bit<8> ttl; bit<8> proto; bit<16> sum; bit<32> src; bit<32> dst; }",
    headers: "ip_t ip;",
    parser: "state parse { pkt.extract(hdr.ip); transition accept; }",
    verify: "verify_checksum(hdr.ip.isValid(), { hdr.ip.version, hdr.ip.ihl, hdr.ip.tos, hdr.ip.len, hdr.ip.id,
               hdr.ip.flags, hdr.ip.off, hdr.ip.ttl, hdr.ip.proto, hdr.ip.src, hdr.ip.dst }, hdr.ip.sum,
               HashAlgorithm.csum16);",
    ingress: "hdr.ip.ttl = hdr.ip.ttl - 1; sm.egress_spec = 1;
              if (sm.checksum_error == 1) { sm.egress_spec = 2; }",
    compute: "update_checksum(true, { hdr.ip.version, hdr.ip.ihl, hdr.ip.tos, hdr.ip.len, hdr.ip.id,
               hdr.ip.flags, hdr.ip.off, hdr.ip.ttl, hdr.ip.proto, hdr.ip.src, hdr.ip.dst }, hdr.ip.sum,
               HashAlgorithm.csum16);",
    deparser: "pkt.emit(hdr.ip);",
    meta: "",
    parser_locals: "",
    ingress_locals: "",
    egress_locals: "",
    egress: "",
};

fn rfc1071(bytes: &[u8]) -> u16 {
    let sum: u32 = bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    !((sum & 0xffff) + (sum >> 16)) as u16
}

#[test]
fn checksums_are_verified_and_computed() {
    let mut bench = IPV4.run();
    let mut ip = vec![0x45, 0, 0, 40, 0x12, 0x34, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    let sum = rfc1071(&ip);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    let (port, out) = bench.pass(1, &eth(1, 0x0800, &ip));
    assert_eq!((port, out[22], rfc1071(&out[14..34])), (1, 63, 0));
    ip[10] ^= 1;
    let (port, out) = bench.pass(1, &eth(1, 0x0800, &ip));
    assert_eq!((port, rfc1071(&out[14..34])), (2, 0));
}

#[test]
fn direct_counters_and_meters_belong_to_entries() {
    let mut bench = Parts {
        ingress_locals: "
            direct_counter(CounterType.packets_and_bytes) hits;
            direct_meter<bit<32>>(MeterType.bytes) rate;
            meter(2, MeterType.packets) pps;
            bit<32> color = 7; bit<32> second;
            action to(bit<9> port) { sm.egress_spec = port; rate.read(color); }
            table t {
                key = { hdr.eth.dst: exact; }
                actions = { to; NoAction; }
                counters = hits;
                meters = rate;
            }",
        ingress: "
            t.apply();
            pps.execute_meter((bit<32>)1, second);
            hdr.eth.kind = (bit<16>)(second ++ color[15:0]);
            hdr.eth.src = (bit<48>)second;",
        ..Parts::default()
    }
    .run();
    bench.add("t", vec![exact(1)], 0, "to", &[1]);
    let table = bench.table("t");
    let entry = [exact(1)];
    let config = MeterConfig { cir: 1_000_000, cburst: 100, pir: 1_000_000, pburst: 200 };
    bench.switch.direct_meter_config(table, EntryRef::Keys(&entry, 0), Some(config)).expect("valid");
    assert_eq!(bench.switch.direct_meter_read(table, EntryRef::Keys(&entry, 0)), Ok(Some(config)));
    let pps = MeterConfig { cir: 1, cburst: 1, pir: 1, pburst: 2 };
    bench.switch.meter_config(bench.instance("pps"), 1, Some(pps)).expect("valid");
    let colors: Vec<(u8, u8)> = (0..3)
        .map(|_| {
            let out = bench.pass(1, &eth(1, 0, &[0; 86])).1;
            (out[13], out[11])
        })
        .collect();
    assert_eq!(colors, [(0, 0), (1, 1), (2, 2)]);
    bench.now += Nanos(100_000);
    assert_eq!(bench.pass(1, &eth(1, 0, &[0; 86])).1[13], 0);
    bench.send(1, &eth(2, 0, &[]));
    let read = |bench: &Bench, entry| bench.switch.direct_counter_read(table, entry);
    assert_eq!(read(&bench, EntryRef::Keys(&entry, 0)), Ok(CounterData { packets: 4, bytes: 400 }));
    assert_eq!(read(&bench, EntryRef::Default), Ok(CounterData { packets: 1, bytes: 14 }));
    let zero = CounterData::default();
    bench.switch.direct_counter_write(table, EntryRef::Keys(&entry, 0), zero).expect("there");
    assert_eq!(read(&bench, EntryRef::Keys(&entry, 0)), Ok(zero));
}

#[test]
fn hits_and_actions_run_steer_the_program() {
    let mut bench = Parts {
        ingress_locals: "
            action one() { } action two() { exit; } action three() { return; }
            table t {
                key = { hdr.eth.dst: exact; }
                actions = { one; two; three; }
                default_action = three();
                const entries = { 1: one(); 2: two(); }
            }",
        ingress: "
            sm.egress_spec = 4;
            if (t.apply().hit) { sm.egress_spec = 1; } else { sm.egress_spec = 2; }
            switch (t.apply().action_run) { one: { hdr.eth.kind = 1; } default: { hdr.eth.kind = 9; } }",
        ..Parts::default()
    }
    .run();
    let (port, out) = bench.pass(1, &eth(1, 0, &[]));
    assert_eq!((port, out[13]), (1, 1));
    // `exit` in the first apply: nothing after it runs.
    let (port, out) = bench.pass(1, &eth(2, 0, &[]));
    assert_eq!((port, out[13]), (4, 0));
    let (port, out) = bench.pass(1, &eth(3, 0, &[]));
    assert_eq!((port, out[13]), (2, 9));
    let entries = bench.switch.entries(bench.table("t")).expect("there");
    assert!(entries.len() == 2 && entries.iter().all(|entry| entry.is_const));
    assert!(bench.switch.delete(bench.table("t"), &[exact(1)], 0).is_err());
    let entry = p4rack_switch::TableEntry::new(vec![exact(9)], bench.call("t", "one", &[]));
    assert!(bench.switch.insert(bench.table("t"), entry).is_err());
}

#[test]
fn expressions_of_all_kinds() {
    let mut bench = Parts {
        meta: "bit<200> big; int<16> i;",
        ingress: "
            bit<128> a = (bit<128>)hdr.eth.dst << 70;
            bit<128> b = a + 128w1;
            meta.big = b ++ (bit<72>)hdr.eth.src;
            meta.i = (int<16>)hdr.eth.kind;
            int<16> half = meta.i >> 1;
            bit<8> sat = 8w250 |+| hdr.eth.kind[7:0];
            hdr.eth.dst = (b >> 70)[47:0];
            hdr.eth.src = meta.big[47:0] ^ 48w0xffffffffffff;
            hdr.eth.src[15:8] = sat;
            hdr.eth.kind = (bit<16>)half;
            hdr.eth.src[7:0] = (meta.i < 0 ? 8w1 : 8w2);
            sm.egress_spec = (hdr.eth.dst == 5 && b[0:0] == 1) ? 9w1 : 9w2;",
        ..Parts::default()
    }
    .run();
    let (port, out) = bench.pass(1, &eth(5, 0xfff9, &[]));
    assert_eq!(port, 1);
    assert_eq!(out[..6], [0, 0, 0, 0, 0, 5]);
    assert_eq!(out[6..12], [0xfd, 0xff, 0xff, 0xff, 0xff, 1]);
    assert_eq!(out[12..], [0xff, 0xfc]);
    let (_, out) = bench.pass(1, &eth(6, 4, &[]));
    assert_eq!((&out[10..12], &out[12..]), (&[254u8, 2][..], &[0u8, 2][..]));
}

#[test]
fn saturation_at_the_bounds_and_within() {
    let mut bench = Parts {
        ingress: "
            bit<48> a = hdr.eth.dst;
            bit<48> b = hdr.eth.src;
            bit<64> all = (a ++ 16w0xffff) |+| (b ++ 16w0);
            hdr.eth.dst = a |+| b;
            hdr.eth.src = b |-| a;
            hdr.eth.kind = hdr.eth.kind |-| 16w2;
            sm.egress_spec = all == 64w0xffff_ffff_ffff_ffff ? 9w2 : 9w1;",
        ..Parts::default()
    }
    .run();
    let most = (1u64 << 48) - 1;
    let cases: [(u64, u64, u16); 11] = [
        (0, 0, 0),
        (1, 2, 1),
        (2, 1, 2),
        (5, 5, 3),
        (most, 0, 9),
        (0, most, 0),
        (most, 1, 0xffff),
        (most - 1, 1, 5),
        (most, most, 2),
        (1 << 47, 1 << 47, 1),
        (1 << 47, (1 << 47) - 1, 0),
    ];
    for (a, b, kind) in cases {
        let frame = [&a.to_be_bytes()[2..], &b.to_be_bytes()[2..], &kind.to_be_bytes()].concat();
        let (port, out) = bench.pass(1, &frame);
        let sum = (a + b).min(most);
        let expected = [&sum.to_be_bytes()[2..], &b.saturating_sub(a).to_be_bytes()[2..]].concat();
        assert_eq!(out[..12], expected, "{a} {b}");
        assert_eq!(out[12..14], kind.saturating_sub(2).to_be_bytes(), "{kind}");
        assert_eq!(port, if a + b >= most { 2 } else { 1 }, "{a} {b}");
    }
}

#[test]
fn hashes_and_random_stay_in_their_bounds() {
    let mut bench = Parts {
        ingress_locals: "bit<16> h; bit<16> r; bit<32> c;",
        ingress: "
            hash(h, HashAlgorithm.crc16, 16w10, { hdr.eth.dst, hdr.eth.src }, 32w4);
            hash(c, HashAlgorithm.crc32, 32w0, { hdr.eth.kind }, 64w0x100000000);
            random(r, 16w3, 16w5);
            hdr.eth.dst = h ++ c;
            hdr.eth.kind = r;
            sm.egress_spec = 1;",
        ..Parts::default()
    }
    .run();
    let mut seen = std::collections::BTreeSet::new();
    for value in 0..100 {
        let out = bench.pass(1, &eth(value, 0x3132, &[])).1;
        let word = |at: usize| u16::from_be_bytes([out[at], out[at + 1]]);
        assert!((10..14).contains(&word(0)));
        // CRC-32 of "12".
        assert_eq!(out[2..6], 0x4f53_44cdu32.to_be_bytes());
        seen.insert(word(12));
    }
    assert_eq!(seen.into_iter().collect::<Vec<u16>>(), [3, 4, 5]);
}

#[test]
fn value_sets_are_set_at_run_time() {
    let mut bench = Parts {
        headers: "eth_t inner;",
        parser_locals: "value_set<bit<16>>(4) kinds;",
        parser: "
            state parse { transition select(hdr.eth.kind) { kinds: inner; default: accept; } }
            state inner { pkt.extract(hdr.inner); transition accept; }",
        ingress: "sm.egress_spec = 1; if (hdr.inner.isValid()) { sm.egress_spec = 2; }",
        deparser: "pkt.emit(hdr.inner);",
        ..Parts::default()
    }
    .run();
    let frame = eth(1, 77, &[0; 14]);
    assert_eq!(bench.pass(1, &frame).0, 1);
    let set = p4rack_p4::ir::ValueSetId(0);
    bench.switch.value_set_set(set, vec![vec![exact(5)], vec![exact(77)]]).expect("fits");
    assert_eq!(bench.pass(1, &frame).0, 2);
    assert!(bench.switch.value_set_set(set, vec![vec![exact(5)]; 5]).is_err());
    assert!(bench.switch.value_set_set(set, vec![vec![exact(0x1_0000)]]).is_err());
    assert_eq!(bench.switch.value_set_get(set).map(<[_]>::len), Ok(2));
}

#[test]
fn a_parser_that_never_ends_is_stopped() {
    let mut bench = Parts {
        // The front end refuses parsers that can't end; this one could, but not for port 1.
        parser: "state parse { transition select(sm.ingress_port) { 511: accept; default: again; } }
                 state again { transition parse; }",
        ingress: "sm.egress_spec = 1;",
        ..Parts::default()
    }
    .run();
    assert!(bench.send(1, &eth(1, 0, &[])).is_empty());
    assert_eq!(bench.drops(), [("loop_limit", 1)]);
}

#[test]
fn asserts_and_logs() {
    let mut bench = Parts {
        ingress: "
            log_msg(\"kind {} from {}\", { hdr.eth.kind, sm.ingress_port });
            assert(hdr.eth.kind != 5);
            sm.egress_spec = 1;",
        ..Parts::default()
    }
    .run_on(p4rack_switch::Config { log_messages: 2, ..config() });
    for kind in 3..6 {
        bench.send(2, &eth(1, kind, &[]));
    }
    assert_eq!(bench.drops(), [("assert_failed", 1)]);
    assert_eq!(bench.switch.poll_log().as_deref(), Some("kind 4 from 2"));
    assert_eq!(bench.switch.poll_log().as_deref(), Some("kind 5 from 2"));
    assert_eq!(bench.switch.poll_log(), None);
    assert_eq!(bench.switch.stats(bench.now).log_messages, 3);
}
