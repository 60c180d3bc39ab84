//! Machine code and the interpreter have equal results; so have a frame that passes the queues of an idle port and one
//! that is put in and taken out, and a frame that is made before it waits and one that is made afterwards.

use crate::common;

use common::{Bench, Parts, exact, mac};
use p4rack_switch::{Config, Pipeline, PlainUpdate, PlainVerb, Stats, Switch, TableEntry};
use p4rack_wire::Nanos;
use proptest::prelude::*;
use std::path::Path;

/// Programs as they are generated for a rack.
const GENERATED: [&str; 11] = [
    include_str!("../../codegen/tests/golden/pl2-clock/pl2-incast.p4"),
    include_str!("../../codegen/tests/golden/pl2-counter/pl2-incast.p4"),
    include_str!("../../codegen/tests/golden/l2/pl2-incast.p4"),
    include_str!("../../codegen/tests/golden/l2-tna/pl2-incast.p4"),
    include_str!("../../codegen/tests/golden/l2-t2na/pl2-incast.p4"),
    include_str!("../../codegen/tests/golden/pl2-clock-tna/pl2-incast.p4"),
    include_str!("../../codegen/tests/golden/pl2-counter-tna/pl2-incast.p4"),
    include_str!("../../codegen/tests/golden/edm-timed-tna/memory.p4"),
    include_str!("../../codegen/tests/golden/edm-matched-tna/memory.p4"),
    include_str!("../../codegen/tests/golden/edm-calendar-tna/memory.p4"),
    include_str!("../../codegen/tests/golden/cowbird-tna/offload.p4"),
];

/// How frames are put in.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Handle,
    Forward,
    Give,
}

/// The program in all forms, with ports of a rate: twice as machine code, interpreted, and traced, which makes no frame
/// before it leaves its queue.
fn forms(text: &str, rate_bps: u64) -> [Switch; 4] {
    forms_on(Config { cpu_port: Some(510), ..common::config() }, text, rate_bps)
}

fn forms_on(config: Config, text: &str, rate_bps: u64) -> [Switch; 4] {
    let program = common::compile(text);
    let native = Pipeline::compile(&program).expect("the switch takes the program");
    assert_eq!(native.is_native(), cfg!(feature = "native"));
    let interpreted = Pipeline::compile_interpreted(&program).expect("the switch takes the program");
    let traced = Pipeline::compile_traced(&program).expect("the switch takes the program");
    [native.clone(), native, interpreted, traced].map(|pipeline| {
        let mut config = config.clone();
        config.ports.iter_mut().for_each(|port| port.rate_bps = rate_bps);
        let mut switch = Switch::new(config);
        switch.load(pipeline);
        let mut bench = Bench { switch, program: program.clone(), now: Nanos(0) };
        if text.contains("table source_guard") {
            bench.add_hosts(text);
        }
        bench.switch
    })
}

/// Ports without limit, and so slow that frames wait for one another.
const RATES_BPS: [u64; 2] = [0, 700_000_000];

/// Frames of both, as they come out, and the counters at the end.
fn play(switch: &mut Switch, frames: &[(u16, Vec<u8>)], way: Way) -> (Vec<(u16, Vec<u8>)>, Stats) {
    let (mut sent, mut out) = (Vec::new(), Vec::new());
    for (at, (port, frame)) in (1..).zip(frames) {
        let now = Nanos(at * 700);
        let first = sent.len();
        let left = match way {
            Way::Handle => {
                switch.handle_frame(*port, frame, now);
                None
            }
            Way::Forward => switch.forward_frame(*port, frame, now, &mut out),
            Way::Give => {
                out.clone_from(frame);
                switch.forward_given(*port, &mut out, now)
            }
        };
        if let Some(port) = left {
            sent.push((port, out.clone()));
        }
        while let Some(port) = switch.poll_transmit(now, &mut out) {
            sent.push((port, out.clone()));
        }
        while switch.poll_cpu(&mut out) {
            sent.push((510, out.clone()));
        }
        // Which of several ports comes first at a time is not said.
        sent[first..].sort_by_key(|(port, _)| *port);
    }
    (sent, switch.stats(Nanos(1 << 40)))
}

fn same(text: &str, frames: &[(u16, Vec<u8>)]) {
    for rate_bps in RATES_BPS {
        let [mut forwards, mut is_given, mut interpreted, mut traced] = forms(text, rate_bps);
        let expected = play(&mut traced, frames, Way::Handle);
        assert_eq!(play(&mut forwards, frames, Way::Forward), expected, "forwarded");
        assert_eq!(play(&mut is_given, frames, Way::Give), expected, "given");
        assert_eq!(play(&mut interpreted, frames, Way::Handle), expected, "interpreted");
    }
}

/// A frame that a rack's program has something to do with: known hosts, control and data frames, cut anywhere.
fn rack_frame() -> impl Strategy<Value = (u16, Vec<u8>)> {
    let payload = proptest::collection::vec(any::<u8>(), 0..70);
    let kind = prop_oneof![Just(0x88b5u16), Just(0x8100), Just(0x0800), any::<u16>()];
    let head = prop_oneof![Just(0x11u8), Just(0x12), Just(0x13), any::<u8>()];
    (1u16..6, 1u16..6, 1u16..6, kind, head, payload, any::<bool>(), 0usize..90).prop_map(
        |(port, from, to, kind, head, mut payload, tagged, cut)| {
            if let Some(first) = payload.first_mut() {
                *first = head;
            }
            if tagged && payload.len() > 4 {
                payload[..4].copy_from_slice(&[0xe0, 100, 0x88, 0xb5]);
            }
            let mut frame = common::eth(mac(to), if tagged { 0x8100 } else { kind }, &payload);
            frame[6..12].copy_from_slice(&mac(from).to_be_bytes()[2..]);
            frame.truncate(cut.max(1));
            (if port == 5 { 510 } else { port }, frame)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn generated_programs_do_the_same(frames in proptest::collection::vec(rack_frame(), 1..60)) {
        for text in GENERATED {
            same(text, &frames);
        }
    }
}

/// A frame that a rack's program drops on either side of the queue is dropped with any drop port.
#[test]
fn generated_programs_do_the_same_with_another_drop_port() {
    let frames: Vec<(u16, Vec<u8>)> = (0..400u16)
        .map(|n| {
            let payload: Vec<u8> = (0..60).map(|byte| (n * 7 + byte * 13) as u8).collect();
            let kind = [0x0800, 0x88b5, 0x8100][usize::from(n % 3)];
            let mut frame = common::eth(mac(1 + n % 5), kind, &payload);
            frame[6..12].copy_from_slice(&mac(1 + n / 5 % 5).to_be_bytes()[2..]);
            (1 + n / 25 % 4, frame)
        })
        .collect();
    for text in GENERATED {
        let play_with = |drop_port| {
            let config = Config { drop_port, cpu_port: Some(510), ..common::config() };
            forms_on(config, text, 700_000_000).map(|mut switch| play(&mut switch, &frames, Way::Handle))
        };
        let usual = play_with(511);
        assert!(!usual[0].0.is_empty() && !usual[0].1.drops.is_empty(), "some are sent, some dropped");
        assert_eq!(play_with(77), usual);
        assert_eq!(play_with(1 << 8), usual);
    }
}

fn numbered() -> Vec<(u16, Vec<u8>)> {
    (0..40u8).map(|number| (2, vec![number; 64])).collect()
}

/// Each alone must be enough for a frame not to be made ready before its time.
#[test]
fn egress_knows_the_queue_however_frames_come() {
    for field in ["egress_global_timestamp", "deq_timedelta", "deq_qdepth", "enq_qdepth"] {
        let egress = format!("hdr.eth.src = (bit<48>) sm.{field};");
        let program = Parts { ingress: "sm.egress_spec = 1;", egress: &egress, ..Parts::default() }.text();
        same(&program, &numbered());
    }
}

/// Each alone must be enough for egress to get the times, also where frames are not made ready before their time.
#[test]
fn egress_knows_times_however_frames_come() {
    for (field, with) in
        ["enq_timestamp", "ingress_global_timestamp"].into_iter().zip(["", "cells.write(0, 1);"])
    {
        let egress = format!("hdr.eth.src = (bit<48>) sm.{field}; {with}");
        let program = Parts {
            ingress: "sm.egress_spec = 1;",
            egress_locals: "register<bit<8>>(1) cells;",
            egress: &egress,
            ..Parts::default()
        };
        same(&program.text(), &numbered());
    }
}

/// Every feature has a program among the STF cases; frames are random here, and there are no entries.
#[test]
fn programs_of_every_feature_do_the_same() {
    let folders =
        ["stf", "tna"].map(|name| Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests").join(name));
    let mut frames = Vec::new();
    let mut seed = 1u64;
    let mut random = move || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        seed >> 33
    };
    for _ in 0..200 {
        // Few values, so that comparisons are met.
        let (port, len) = (1 + (random() % 4) as u16, random() % 48);
        let bytes = (0..len).map(|_| if random() % 2 == 0 { random() as u8 % 4 } else { random() as u8 });
        frames.push((port, bytes.collect()));
    }
    let mut count = 0;
    for entry in folders.iter().flat_map(|folder| std::fs::read_dir(folder).expect("the cases")) {
        let path = entry.expect("a file").path();
        if path.extension().is_some_and(|ending| ending == "p4") {
            let text = std::fs::read_to_string(&path).expect("text");
            same(&text, &frames);
            count += 1;
        }
    }
    assert!(count > 50, "{count} programs");
}

/// Tables that can't be changed: rows that overlap, in the order of the text; misses with and without arguments; keys
/// of two words; facts about a key while the code is made; and whether a row matched, and which action ran.
#[test]
fn constant_entries_do_the_same() {
    let ingress_locals = "
        action put(bit<48> a, bit<8> b) { hdr.eth.src = a; meta.said = (meta.said << 8) + (bit<32>) b; }
        action other(bit<8> b) { meta.said = ((bit<32>) b << 24) + (meta.said >> 8); }
        table masked {
            key = { hdr.eth.dst[47:40] : ternary; hdr.eth.dst[39:32] : ternary; meta.known : ternary; hdr.eth.kind : ternary; }
            actions = { put; other; }
            const default_action = other(99);
            const entries = {
                (1, 2, _, _) : put(0x1111, 1);
                (1, 2, _, 0x100 &&& 0xF00) : put(0x2222, 2);
                (1, 1 &&& 1, 0, _) : other(3);
                (1, _, 7, 2) : put(0x3333, 4);
                (_, 3, 7, _) : other(5);
                (1, _, _, _) : put(0x4444, 6);
                (_, _, _, 0 &&& 0xFFF8) : other(7);
                (2, _, _, _) : put(0x5555, 8);
            }
        }
        table whole {
            key = { hdr.eth.kind : exact; hdr.eth.dst ++ hdr.eth.src : exact @name(\"both\"); }
            actions = { put; @defaultonly NoAction; }
            const default_action = NoAction();
            const entries = {
                (0x0101, 0x010101010101010101010101) : put(0x6666, 9);
                (0x0200, 0x000000000000000000000000) : put(0x7777, 10);
            }
        }";
    let program = Parts {
        meta: "bit<8> known; bit<32> said; bit<8> ran;",
        ingress_locals,
        ingress: "
            sm.egress_spec = 1;
            meta.known = 7;
            if (hdr.eth.kind[15:15] == 1) { meta.known = 0; }
            if (whole.apply().hit) { meta.ran = 1; }
            switch (masked.apply().action_run) {
                put : { meta.ran = meta.ran + 2; }
                other : { meta.ran = meta.ran + 4; }
            }
            hdr.eth.kind = hdr.eth.kind + meta.said[15:0] + (bit<16>) meta.ran;
            hdr.eth.dst[31:0] = meta.said;",
        ..Parts::default()
    };
    let mut frames = Vec::new();
    for first in [0, 1, 2, 3] {
        for second in [0, 1, 2, 3] {
            for kind in [[0, 2], [0, 9], [1, 1], [2, 0], [0x80, 2], [0x81, 7]] {
                let mut frame = vec![first; 16];
                frame[1] = second;
                frame[12..14].copy_from_slice(&kind);
                frames.push((2, frame));
            }
        }
    }
    same(&program.text(), &frames);
    let [mut native, ..] = forms(&program.text(), 0);
    let (sent, _) = play(&mut native, &frames, Way::Handle);
    let mut sources: Vec<[u8; 2]> = sent.iter().map(|(_, frame)| [frame[10], frame[11]]).collect();
    sources.sort_unstable();
    sources.dedup();
    assert!(sources.len() > 6, "{sources:x?}");
}

#[test]
fn words_that_keep_their_values_and_cells_that_certainly_exist_do_the_same() {
    let ingress_locals = "
        register<bit<16>>(8) all;
        register<bit<16>>(5) some;
        action put(bit<8> op) { meta.op = op; }
        table whole {
            key = { hdr.eth.kind[7:0] : exact @name(\"low\"); }
            actions = { put; @defaultonly NoAction; }
            const default_action = NoAction();
            const entries = { 1 : put(0); 2 : put(3); 3 : put(3); 4 : put(0); }
        }";
    let program = Parts {
        meta: "bit<8> op; bit<8> found; bit<16> cell; bit<16> sum;",
        ingress_locals,
        ingress: "
            sm.egress_spec = 1;
            meta.op = 0;
            meta.sum = 0;
            if (whole.apply().hit) { meta.found = 1; } else { meta.found = 0; }
            if (hdr.eth.kind[8:8] == 1) { meta.op = 0; }
            if (meta.op == 0) { meta.sum = meta.sum + 1; meta.op = 0; }
            else if (meta.op == 3) { meta.op = 3; meta.sum = (bit<16>) meta.op; }
            all.read(meta.cell, (bit<32>) hdr.eth.kind[2:0]);
            meta.sum = meta.sum + meta.cell;
            all.write((bit<32>) hdr.eth.kind[2:0], meta.cell + 3);
            some.read(meta.cell, (bit<32>) hdr.eth.kind[2:0]);
            meta.sum = meta.sum + meta.cell;
            some.write((bit<32>) hdr.eth.kind[2:0], meta.cell + 5);
            hdr.eth.kind = meta.sum;
            hdr.eth.dst[7:0] = meta.op;
            hdr.eth.dst[15:8] = meta.found;",
        ..Parts::default()
    };
    let mut frames = Vec::new();
    for round in 0..40u8 {
        let mut frame = vec![9; 16];
        frame[12..14].copy_from_slice(&[round / 3 % 2, round % 8 * 7 % 8]);
        frames.push((2, frame));
    }
    same(&program.text(), &frames);
}

/// Machine code reads the entries of short keys where they are: each change shows, with each way of making it.
#[test]
fn entries_of_short_keys_that_change_do_the_same() {
    let ingress_locals = "
        action put(bit<16> a, bit<16> b) { hdr.eth.src[15:0] = a; hdr.eth.src[31:16] = b; }
        action other(bit<16> b) { hdr.eth.src[47:32] = b; }
        table short {
            key = { hdr.eth.kind[3:0] : exact @name(\"low\"); hdr.eth.dst[7:4] : exact @name(\"high\"); }
            actions = { put; other; }
            default_action = other(1);
            entries = { (1, 1) : put(2, 3); (1, 2) : other(4); }
        }";
    let parts = Parts {
        ingress_locals,
        ingress: "
            sm.egress_spec = 1;
            if (short.apply().hit) { hdr.eth.dst[47:40] = 1; }",
        ..Parts::default()
    };
    let text = parts.text();
    let program = common::compile(&text);
    let results = forms(&text, 0).map(|switch| {
        let mut bench = Bench { switch, program: program.clone(), now: Nanos(0) };
        let table = bench.table("short");
        let mut results = Vec::new();
        let mut look = |bench: &mut Bench| {
            for key in 0..=255u8 {
                let mut frame = vec![0; 16];
                (frame[5], frame[13]) = (key & 0xf0, key & 0xf);
                results.push(bench.pass(2, &frame).1);
            }
        };
        look(&mut bench);
        bench.add("short", vec![exact(15), exact(7)], 0, "put", &[5, 6]);
        bench.add("short", vec![exact(2), exact(7)], 0, "other", &[7]);
        look(&mut bench);
        let call = bench.call("short", "other", &[8]);
        let entry = TableEntry::new(vec![exact(15), exact(7)], call);
        bench.switch.modify(table, entry).expect("it is there");
        look(&mut bench);
        for (verb, value) in
            [(PlainVerb::Modify, [1, 1]), (PlainVerb::Insert, [0, 0]), (PlainVerb::Delete, [1, 2])]
        {
            let update = PlainUpdate { verb, value: &value, mask: &[], rank: 0, action: 0, args: &[9, 10] };
            assert!(bench.switch.write_plain(table, &update), "{verb:?}");
            look(&mut bench);
        }
        bench.switch.delete(table, &[exact(2), exact(7)], 0).expect("it is there");
        let call = bench.call("short", "put", &[11, 12]);
        bench.switch.set_default(table, Some(call)).expect("it may change");
        look(&mut bench);
        results
    });
    let [native, again, interpreted, traced] = results;
    assert_eq!(native, interpreted);
    assert_eq!(again, interpreted);
    assert_eq!(traced, interpreted);
    let mut different = interpreted;
    different.sort_unstable();
    different.dedup();
    assert!(different.len() > 256, "the changes show: {}", different.len());
}
