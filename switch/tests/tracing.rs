//! Traces of whole programs and of single packets on a running switch.

use crate::common;

use common::*;
use p4rack_switch::{CloneSession, Pipeline, Replica, Replicas, Switch, TraceEvent, TraceFilter, Traced};
use p4rack_wire::Nanos;
use proptest::prelude::*;

/// Registers, meters, counters, hashes, a table; copies and another pass by EtherType.
const BUSY: Parts<'static> = Parts {
    meta: "bit<32> seen; @field_list(1) bit<8> round;",
    ingress_locals: "
        register<bit<32>>(8) cells;
        counter(4, CounterType.packets) frames;
        meter(4, MeterType.packets) pace;
        action forward(bit<9> port) { sm.egress_spec = port; hdr.eth.src = 7; }
        action drop() { mark_to_drop(sm); }
        table dmac { key = { hdr.eth.dst: exact; } actions = { forward; drop; } default_action = drop(); size = 64; }",
    ingress: "
        cells.read(meta.seen, 3);
        meta.seen = meta.seen + 1;
        cells.write(3, meta.seen);
        frames.count(1);
        bit<2> color;
        pace.execute_meter(2, color);
        bit<16> digest;
        hash(digest, HashAlgorithm.crc16, 16w0, { hdr.eth.src }, 32w65536);
        dmac.apply();
        if (hdr.eth.kind == 2 && meta.round == 0) { meta.round = 1; resubmit_preserving_field_list(1); }
        if (hdr.eth.kind == 3) { clone(CloneType.I2E, 9); }",
    egress: "
        if (hdr.eth.kind == 4 && sm.instance_type == 0) { recirculate_preserving_field_list(1); }
        if (hdr.eth.kind == 5) { mark_to_drop(sm); }",
    types: "",
    headers: "",
    parser_locals: "",
    parser: "",
    verify: "",
    egress_locals: "",
    compute: "",
    deparser: "",
};

fn busy() -> Bench {
    let mut bench = BUSY.run();
    for port in 1..=4 {
        bench.add("dmac", vec![exact(mac(port))], 0, "forward", &[port.into()]);
    }
    bench
}

fn traced(bench: &Bench) -> Pipeline {
    Pipeline::compile_traced(&bench.program).expect("the switch takes the program")
}

fn events(switch: &mut Switch) -> Vec<Traced> {
    std::iter::from_fn(|| switch.poll_traced()).collect()
}

fn lines(switch: &mut Switch) -> Vec<String> {
    events(switch).iter().map(|traced| format!("{} {}", traced.packet, traced.event)).collect()
}

#[test]
fn a_trace_shows_state_results_and_changed_fields() {
    let mut bench = busy();
    let id = bench.switch.trace_start(traced(&bench), TraceFilter::default(), 1).unwrap();
    bench.pass(2, &eth(mac(3), 0x0800, b"hello"));
    let lines = lines(&mut bench.switch);
    let expected = [
        "1 ingress   port 2, 19 bytes, normal",
        "1 state     P.start",
        "1 state     P.parse",
        "1 parsed    NoError, payload from byte 14",
        "1 register  I.cells[3] -> 0",
        "1 fields    meta.seen 0 -> 1",
        "1 register  I.cells[3] <- 1",
        "1 counter   I.frames[1]",
        "1 meter     I.pace[2] -> green",
        "1 hash crc16 -> ",
        "1 table     I.dmac [hdr.eth.dst=02:00:00:00:00:03] hit -> I.forward(port=3)",
        "sm.egress_spec 0 -> 3",
        "hdr.eth.src 02:00:00:00:00:09 -> 00:00:00:00:00:07",
        "1 egress    port 3, normal, rid 0",
        "1 headers   hdr.eth {dst=02:00:00:00:00:03, src=00:00:00:00:00:07, kind=2048}",
        "1 sent      port 3, 19 bytes",
    ];
    let mut rest = lines.iter();
    for wanted in expected {
        let found = lines.iter().any(|line| line.contains(wanted));
        let in_order = !wanted.starts_with('1') || rest.any(|line| line.contains(wanted));
        assert!(found && in_order, "{wanted}\n{}", lines.join("\n"));
    }
    // The next frame is not traced.
    bench.pass(2, &eth(mac(3), 0x0800, b"hello"));
    assert_eq!(events(&mut bench.switch), []);
    assert_eq!(bench.switch.trace_state(id).map(|state| (state.traced, state.left)), Some((1, 0)));
    bench.switch.trace_stop(id);
    assert_eq!(bench.switch.trace_state(id), None);
}

#[test]
fn copies_and_passes_belong_to_the_frame_that_came_in() {
    for (kind, wanted) in [
        (2, "resubmitted"),
        (3, "parsed again for a clone"),
        (4, "recirculated"),
        (5, "dropped   egress_drop at port 1"),
    ] {
        let mut bench = busy();
        let session = CloneSession {
            replicas: Replicas::new(vec![vec![Replica { port: 4, instance: 0 }]]),
            ..CloneSession::default()
        };
        bench.switch.clone_session_set(9, session).unwrap();
        let filter = TraceFilter { ether_type: Some(kind), ..TraceFilter::default() };
        bench.switch.trace_start(traced(&bench), filter, 10).unwrap();
        bench.send(2, &eth(mac(3), 0x0800, b"another"));
        bench.send(2, &eth(mac(1), kind, b"hello"));
        let lines = lines(&mut bench.switch);
        assert!(lines.iter().any(|line| line.contains(wanted)), "{wanted}\n{}", lines.join("\n"));
        assert!(lines.iter().all(|line| line.starts_with("1 ")), "{}", lines.join("\n"));
    }
}

#[test]
fn one_trace_at_a_time_of_the_program_that_runs_and_no_longer() {
    let mut bench = busy();
    let first = bench.switch.trace_start(traced(&bench), TraceFilter::default(), 5).unwrap();
    let refused = bench.switch.trace_start(traced(&bench), TraceFilter::default(), 5).unwrap_err();
    assert!(refused.to_string().contains("another trace is active"), "{refused}");
    bench.pass(1, &eth(mac(2), 1, b""));
    bench.switch.trace_stop(first);
    let second = bench.switch.trace_start(traced(&bench), TraceFilter::default(), 5).unwrap();
    assert_eq!(events(&mut bench.switch), [], "what waited of the first");
    bench.switch.trace_stop(first);
    assert!(bench.switch.trace_state(second).is_some(), "stopped by another's number");
    bench.pass(1, &eth(mac(2), 1, b""));
    assert!(events(&mut bench.switch).iter().all(|traced| traced.packet == 1));
    let other = compile(&L2.text());
    bench.switch.load(Pipeline::compile(&other).unwrap());
    assert_eq!(bench.switch.trace_state(second), None, "ended with the program");
    let refused = bench.switch.trace_start(traced(&bench), TraceFilter::default(), 5).unwrap_err();
    assert!(refused.to_string().contains("was replaced"), "{refused}");
}

#[test]
fn events_beyond_the_limit_are_dropped_and_counted() {
    let mut bench = busy();
    bench.switch.trace_start(traced(&bench), TraceFilter::default(), u32::MAX).unwrap();
    for _ in 0..2_000 {
        bench.pass(1, &eth(mac(2), 1, b""));
    }
    let all = events(&mut bench.switch);
    assert_eq!(all.len(), 10_001);
    match &all[10_000].event {
        TraceEvent::Lost { events } => assert!(*events > 10_000, "{events}"),
        other => panic!("{other}"),
    }
}

#[test]
fn a_trace_of_all_frames_leaves_whole_ones_out_while_too_many_events_wait() {
    let mut bench = busy();
    bench.switch.trace_all(traced(&bench)).unwrap();
    let pass = |bench: &mut Bench, count: u32| {
        (0..count).for_each(|_| drop(bench.pass(1, &eth(mac(2), 1, b""))));
    };
    pass(&mut bench, 2_000);
    let first = events(&mut bench.switch);
    let count = |is: fn(&TraceEvent) -> bool| first.iter().filter(|traced| is(&traced.event)).count();
    let whole = count(|event| matches!(event, TraceEvent::Sent { .. }));
    assert_eq!(whole, count(|event| matches!(event, TraceEvent::Ingress { .. })));
    let TraceEvent::Skipped { frames } = first.last().unwrap().event else { panic!("{:?}", first.last()) };
    assert_eq!(whole as u64 + frames, 2_000);
    assert!(whole > 100 && frames > 1_000, "{whole}, {frames}");
    // The next one that is traced says how many were left out before it.
    pass(&mut bench, 2_000);
    (0..1_000).for_each(|_| drop(bench.switch.poll_traced()));
    pass(&mut bench, 1);
    let rest = events(&mut bench.switch);
    let at = rest.iter().position(|traced| matches!(traced.event, TraceEvent::Skipped { .. })).unwrap();
    assert!(matches!(rest[at + 1].event, TraceEvent::Ingress { .. }), "{:?}", rest[at + 1]);
    assert_eq!(rest.iter().filter(|traced| matches!(traced.event, TraceEvent::Skipped { .. })).count(), 1);
}

#[test]
fn a_table_shows_the_entry_that_matched_unless_another_has_its_place() {
    let mut bench = busy();
    bench.switch.trace_all(traced(&bench)).unwrap();
    let matched = |switch: &mut Switch| {
        let found = events(switch).into_iter().find_map(|traced| match traced.event {
            TraceEvent::Table { keys, hit, .. } => Some((hit, keys[0].matched.clone())),
            _ => None,
        });
        found.unwrap()
    };
    bench.pass(1, &eth(mac(2), 1, b""));
    assert_eq!(matched(&mut bench.switch), (true, Some(exact(mac(2)))));
    bench.send(1, &eth(mac(9), 1, b""));
    assert_eq!(matched(&mut bench.switch), (false, None));
    bench.pass(1, &eth(mac(2), 1, b""));
    let table = bench.table("dmac");
    bench.switch.delete(table, &[exact(mac(2))], 0).unwrap();
    bench.add("dmac", vec![exact(mac(8))], 0, "forward", &[1]);
    assert_eq!(matched(&mut bench.switch), (true, None));
}

#[test]
fn a_filter_matches_ports_addresses_and_types_behind_tags() {
    let frame = eth(mac(3), 0x0800, b"hello");
    let mut tagged = frame.clone();
    tagged.splice(12..12, [0x88, 0xa8, 0, 1, 0x81, 0, 0, 2]);
    let all = TraceFilter::default();
    assert!(all.matches(1, &frame) && all.matches(1, &[]));
    let port = TraceFilter { ingress_port: Some(2), ..all };
    assert!(port.matches(2, &frame) && !port.matches(1, &frame));
    let address = |port| mac(port).to_be_bytes()[2..].try_into().ok();
    let destination = TraceFilter { destination: address(3), ..all };
    assert!(destination.matches(1, &frame) && !destination.matches(1, &frame[..5]));
    assert!(!TraceFilter { destination: address(4), ..all }.matches(1, &frame));
    assert!(TraceFilter { source: Some([2, 0, 0, 0, 0, 9]), ..all }.matches(1, &frame));
    assert!(!TraceFilter { source: address(3), ..all }.matches(1, &frame));
    for (kind, plain, behind) in
        [(0x0800, true, true), (0x88a8, false, true), (0x8100, false, true), (1, false, false)]
    {
        let filter = TraceFilter { ether_type: Some(kind), ..all };
        assert_eq!((filter.matches(1, &frame), filter.matches(1, &tagged)), (plain, behind), "{kind:#x}");
    }
    // Cut anywhere, it fits or not, but nothing else happens.
    for end in 0..tagged.len() {
        TraceFilter { ether_type: Some(0x0800), ..all }.matches(1, &tagged[..end]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// With any trace, all frames are handled as without one.
    #[test]
    fn a_trace_changes_nothing(
        frames in proptest::collection::vec((1u16..6, 1u16..6, 1u16..7, 0usize..40), 1..60),
        port in 1u16..5,
        limit in 1u32..20,
        slow in any::<bool>(),
    ) {
        let config = || {
            let mut config = config();
            config.ports.iter_mut().for_each(|port| port.rate_bps = if slow { 500_000_000 } else { 0 });
            config
        };
        let start = || {
            let mut bench = BUSY.run_on(config());
            for port in 1..=4 {
                bench.add("dmac", vec![exact(mac(port))], 0, "forward", &[port.into()]);
            }
            bench
        };
        let (mut plain, mut watched) = (start(), start());
        let filter = TraceFilter { ingress_port: Some(port), ..TraceFilter::default() };
        let id = watched.switch.trace_start(traced(&watched), filter, limit).unwrap();
        let mut all = [Vec::new(), Vec::new()];
        for (bench, out) in [&mut plain, &mut watched].into_iter().zip(&mut all) {
            let mut buffer = Vec::new();
            for (at, (port, to, kind, len)) in (1..).zip(&frames) {
                let now = Nanos(at * 300);
                let first = out.len();
                let frame = eth(mac(*to), *kind, &vec![9; *len]);
                if let Some(port) = bench.switch.forward_frame(*port, &frame, now, &mut buffer) {
                    out.push((port, buffer.clone()));
                }
                while let Some(port) = bench.switch.poll_transmit(now, &mut buffer) {
                    out.push((port, buffer.clone()));
                }
                out[first..].sort_by_key(|(port, _)| *port);
            }
            let first = out.len();
            let mut now = Nanos(1_000_000);
            for _ in 0..1000 {
                now += Nanos(1_000);
                while let Some(port) = bench.switch.poll_transmit(now, &mut buffer) {
                    out.push((port, buffer.clone()));
                }
            }
            out[first..].sort_by_key(|(port, _)| *port);
        }
        prop_assert_eq!(&all[0], &all[1]);
        prop_assert_eq!(plain.switch.stats(Nanos(1 << 40)), watched.switch.stats(Nanos(1 << 40)));
        prop_assert_eq!(plain.register("cells", 3), watched.register("cells", 3));
        let came = frames.iter().filter(|frame| frame.0 == port).count() as u32;
        let state = watched.switch.trace_state(id).unwrap();
        // A port with a rate takes in no more than that.
        prop_assert!(state.traced == came.min(limit) || slow && state.traced < came.min(limit));
        let events = events(&mut watched.switch);
        let begun = |traced: &&Traced| traced.event.to_string().ends_with("normal")
            && traced.event.to_string().starts_with("ingress");
        prop_assert_eq!(events.iter().filter(begun).count() as u32, state.traced);
    }
}
