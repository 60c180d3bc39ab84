//! Transports and workloads on the simulated rack.
//!
//! A test asserts the promises; all other results of its runs are in `snapshots/`, which `cargo xtask bless` writes.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use crate::summary;

use p4rack_sim::{Experiment, Outcome, Recorder, Sweep, run};

fn parse(text: &str) -> Experiment {
    Experiment::parse(text, "test.toml").unwrap_or_else(|error| panic!("{error}"))
}

fn go(experiment: &Experiment) -> Outcome {
    let outcome = run(experiment, None).unwrap().0;
    assert_eq!(outcome.problems, [] as [String; 0], "{:?}", outcome.checks);
    outcome
}

/// Compares the runs with their snapshot: every figure, not only the promised ones.
fn shown<'a>(file: &str, runs: impl IntoIterator<Item = (&'a str, &'a Outcome)>) {
    let text: String =
        runs.into_iter().map(|(run, outcome)| format!("{run}, {}", summary::summary(outcome))).collect();
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!(file.to_owned(), text);
    });
}

/// An experiment of six hosts on `kind`; the text is the first traffic's, with further tables behind it.
fn six(kind: &str, duration_us: u64, traffic: &str) -> Experiment {
    six_in(kind, duration_us, "", traffic)
}

/// The same with more said of the rack.
fn six_in(kind: &str, duration_us: u64, rack: &str, traffic: &str) -> Experiment {
    parse(&format!(
        "name = \"test\"\nduration_us = {duration_us}\nwarmup_us = {}\ndrain_us = 50000\n[transport]\nrto_min_us = 5000\n\
         [rack]\nhosts = 6\n{rack}\n[scheme]\nkind = \"{kind}\"\nin_flight = 3\n[[traffic]]\nname = \"one\"\n{traffic}\n",
        duration_us / 2
    ))
}

fn incast(kind: &str, transport: &str, senders: &str, more: &str) -> Outcome {
    go(&six(
        kind,
        3_000,
        &format!(
            "pattern = \"incast\"\nsenders = {senders}\nsize = 60000\narrivals = \"saturate\"\nflows = 4\ntransport = \"{transport}\"\n{more}"
        ),
    ))
}

#[test]
fn alone_each_transport_reaches_the_line_rate() {
    let mut runs = Vec::new();
    for (kind, transport, least) in [
        ("l2", "raw", 96.7),
        ("l2", "rds", 96.0),
        // 1448 of 1538 bytes, less the start's share.
        ("l2", "cubic", 93.0),
        ("l2", "dctcp", 93.0),
        ("pl2-clock", "tcp", 85.0),
    ] {
        let outcome = incast(kind, transport, "[\"h2\"]", "");
        assert!(outcome.goodput_gbps > least, "{transport} over {kind}: {}", outcome.goodput_gbps);
        assert_eq!(outcome.frames_dropped, 0, "{transport} over {kind}");
        runs.push((transport, outcome));
    }
    shown("alone", runs.iter().map(|(transport, outcome)| (*transport, outcome)));
}

#[test]
fn an_incast_costs_frames_without_control_of_the_network_and_none_with_pl2_or_marks() {
    let four = "[\"h2\", \"h3\", \"h4\", \"h5\"]";
    let cubic = incast("l2", "cubic", four, "");
    let traffic = format!(
        "pattern = \"incast\"\nsenders = {four}\nsize = 60000\narrivals = \"saturate\"\nflows = 4\ntransport = \"cubic\""
    );
    // It leaves slow start early, and then grows until the buffer is full.
    let small = go(&six_in("l2", 3_000, "buffer = \"400 KiB\"", &traffic));
    assert!(small.frames_dropped > 0 && small.traffic[0].retransmissions > 0, "{small:?}");
    let rds = incast("l2", "rds", four, "");
    assert!(rds.frames_dropped > 0 && rds.traffic[0].retransmissions > 0);
    let dctcp = incast("l2", "dctcp", four, "");
    assert!(dctcp.switch.queue_p999_bytes < cubic.switch.queue_p999_bytes, "marks keep the queue short");
    let over_pl2 = incast("pl2-clock", "tcp", four, "");
    assert_eq!((over_pl2.frames_dropped, over_pl2.traffic[0].retransmissions), (0, 0));
    assert!(over_pl2.goodput_gbps > 85.0, "{}", over_pl2.goodput_gbps);
    shown(
        "incast",
        [
            ("cubic", &cubic),
            ("cubic, small buffer", &small),
            ("rds", &rds),
            ("dctcp", &dctcp),
            ("tcp over pl2", &over_pl2),
        ],
    );
}

/// Every message arrives, whatever the links do, though frames are lost.
#[test]
fn transports_deliver_every_message_over_bad_links() {
    let mut runs = Vec::new();
    for transport in ["cubic", "dctcp", "rds", "tcp"] {
        let traffic = format!(
            "pattern = \"all-to-all\"\nsize = [[0, 100], [1, 100000]]\narrivals = \"poisson\"\nload = 0.2\nflows = 2\n\
             transport = \"{transport}\"\n[link]\nloss = 0.005\nduplication = 0.01\nreordering = 0.01"
        );
        // A connection that loses its first frames waits a second, as it has measured nothing yet.
        let text = toml::to_string(&six("l2", 2_000, &traffic).spec).unwrap();
        let outcome = go(&parse(&text.replace("drain_us = 50000", "drain_us = 1200000")));
        let one = &outcome.traffic[0];
        assert_eq!((one.lost, one.done), (0, one.made), "{transport}: {one:?}");
        runs.push((transport, outcome));
    }
    shown("bad_links", runs.iter().map(|(transport, outcome)| (*transport, outcome)));
}

#[test]
fn vgg16_goes_layer_by_layer_in_rounds() {
    let traffic = "pattern = \"shuffle\"\nsenders = [\"h1\", \"h2\", \"h3\", \"h4\"]\nreceivers = [\"h5\", \"h6\"]\n\
                   size = \"VGG16\"\nscale = 0.001\narrivals = \"rounds\"";
    let outcome = go(&six("pl2-clock", 2_000, traffic));
    let one = &outcome.traffic[0];
    // A server gets 4 × 277 kB a round: 88 µs at 100 Gb/s.
    assert_eq!(one.of, "round", "{one:?}");
    assert!((88_000..140_000).contains(&one.latency_ns.p50), "{}", one.latency_ns.p50);
    shown("vgg16", [("rounds", &outcome)]);
}

#[test]
fn ycsb_writes_as_often_as_its_mix_says_and_prefers_some_servers() {
    let traffic = |mix: &str| {
        format!(
            "pattern = \"outcast\"\nsenders = [\"h1\"]\nreceivers = [\"h2\", \"h3\", \"h4\"]\nsize = 1024\n\
             arrivals = \"rpc\"\nycsb = \"{mix}\"\nkeys = 1000\nflows = 8"
        )
    };
    let (reads, both) =
        (go(&six("pl2-clock", 2_000, &traffic("C"))), go(&six("pl2-clock", 2_000, &traffic("A"))));
    // In C requests are short and answers long; in A half of either is.
    let share = |outcome: &Outcome| outcome.goodput_max_host_gbps / outcome.goodput_gbps;
    assert!(share(&reads) > 0.9 && share(&both) < 0.7, "{} {}", share(&reads), share(&both));
    let modifies = go(&six("pl2-clock", 1_000, &traffic("F")));
    shown("ycsb", [("reads", &reads), ("reads and writes", &both), ("reads and changes", &modifies)]);
}

#[test]
fn a_trace_is_replayed() {
    let traffic = "pattern = \"trace\"\narrivals = \"trace\"\ntrace = \"t.csv\"";
    let experiment = six("pl2-clock", 1_000, traffic);
    assert!(run(&experiment, None).is_err(), "it has to be read first");
    let read =
        |_: &str| Ok("time_ns,from,to,bytes\n600000,h1,h2,6000\n600000,h3,h2,100\n2000000,h1,h2,1\n".into());
    let outcome = go(&experiment.clone().read_traces(read).unwrap());
    assert_eq!(outcome.traffic[0].done, 2, "the third comes after the end");
    let bad = experiment.read_traces(|_| Ok("time_ns,from,to,bytes\n5,h1,h9,6000\n".into()));
    assert!(bad.unwrap_err().to_string().contains("t.csv:2: to `h9`"));
}

#[test]
fn what_does_not_fit_together_is_refused() {
    for (kind, traffic, named) in [
        (
            "pl2-clock",
            "pattern = \"incast\"\narrivals = \"saturate\"\ntransport = \"dctcp\"",
            "transport: the switch marks",
        ),
        (
            "l2",
            "pattern = \"incast\"\narrivals = \"saturate\"\nsize = \"VGG16\"",
            "size: VGG16 is sent in rounds",
        ),
        ("l2", "pattern = \"incast\"\narrivals = \"trace\"\ntrace = \"x\"", "pattern: a trace says"),
        ("l2", "pattern = \"incast\"\narrivals = \"saturate\"\nycsb = \"A\"", "ycsb: is a mix of requests"),
        ("l2", "pattern = \"outcast\"\narrivals = \"rpc\"\nycsb = \"A\"\nzipf = 1.5", "zipf: 1.5"),
    ] {
        let text = format!(
            "name = \"x\"\nduration_us = 10\n[rack]\nhosts = 3\n[scheme]\nkind = \"{kind}\"\n[[traffic]]\nname = \"x\"\n{traffic}\n"
        );
        let error = Experiment::parse(&text, "x.toml").unwrap_err().to_string();
        assert!(error.starts_with("x.toml:") && error.contains(named), "{error} lacks {named}");
    }
}

#[test]
fn pauses_prevent_losses_and_thresholds_keep_room_for_others() {
    let four = "[\"h2\", \"h3\", \"h4\", \"h5\"]";
    let mut experiment = six(
        "l2",
        1_000,
        &format!("pattern = \"incast\"\nsenders = {four}\nsize = 6000\narrivals = \"saturate\"\nflows = 4"),
    );
    let plain = go(&experiment);
    experiment.spec.rack.pfc_bytes = Some(100_000);
    let paused = go(&experiment);
    assert_eq!(paused.frames_dropped, 0);
    assert!(paused.goodput_gbps > 96.0, "{}", paused.goodput_gbps);
    assert!(paused.switch.buffer_max_bytes < 600_000, "{}", paused.switch.buffer_max_bytes);
    experiment.spec.rack.pfc_bytes = None;
    experiment.spec.rack.dynamic_percent = Some(100);
    let shared = go(&experiment);
    // One queue takes α / (1 + α) of the buffer, half of it.
    let half = (2 << 20) / 2;
    assert!(shared.switch.queue_max_bytes.abs_diff(half) < 4_000, "{}", shared.switch.queue_max_bytes);
    shown("thresholds", [("plain", &plain), ("paused", &paused), ("shared", &shared)]);
}

/// A destination learns of grants, notices the dead sender, and the controller takes back its reservations.
#[test]
fn a_dead_senders_slots_are_taken_back_when_its_receivers_miss_it() {
    let four = "[\"h2\", \"h3\", \"h4\", \"h5\"]";
    let run = |notify: bool| {
        let mut experiment = six(
            "pl2-counter",
            4_000,
            &format!(
                "pattern = \"incast\"\nsenders = {four}\nsize = 6000\narrivals = \"saturate\"\nflows = 4\n[[fail]]\nhost = \"h5\"\nat_us = 1000"
            ),
        );
        experiment.spec.scheme.notify_receiver = notify;
        let text = toml::to_string(&experiment.spec).unwrap();
        run(&parse(&text), None).unwrap().0
    };
    let (without, with) = (run(false), run(true));
    assert!(without.checks.leaked_amount > 0 && without.resets.is_empty());
    assert_eq!((with.checks.leaked_amount, &with.problems[..]), (0, &[][..]), "{:?}", with.checks);
    let dead: Vec<_> = with.resets.iter().filter(|reset| reset.1 == "h5").collect();
    assert_eq!(dead.len(), 1, "{:?}", with.resets);
    assert!((1_200.0..1_600.0).contains(&dead[0].0), "{dead:?}");
    assert!(with.goodput_gbps > without.goodput_gbps + 5.0, "{} {}", with.goodput_gbps, without.goodput_gbps);
    shown("dead_sender", [("nobody told", &without), ("receivers told", &with)]);
}

/// No two grants of `chain` promise a destination's port the same time; `pair` may, as the paper says.
#[test]
fn chained_clocks_grant_no_time_twice() {
    let shuffle = "pattern = \"all-to-all\"\nsize = 6000\narrivals = \"poisson\"\nload = 0.6\nflows = 2";
    let run = |clocks: &str| {
        let mut experiment = six("pl2-clock", 1_000, shuffle);
        experiment = {
            let text = toml::to_string(&experiment.spec).unwrap();
            parse(&text.replace("clocks = \"pair\"", &format!("clocks = \"{clocks}\"")))
        };
        go(&experiment)
    };
    let (pair, chain, dst, calendar) = (run("pair"), run("chain"), run("dst"), run("calendar"));
    assert!(pair.checks.overlapping_grants > 0, "{:?}", pair.checks);
    assert_eq!(chain.checks.overlapping_grants, 0, "{:?}", chain.checks);
    assert_eq!(dst.checks.overlapping_grants, 0, "{:?}", dst.checks);
    assert_eq!(calendar.checks.overlapping_grants, 0, "{:?}", calendar.checks);
    assert_eq!(calendar.frames_dropped, 0, "{:?}", calendar.checks);
    shown("clocks", [("pair", &pair), ("chain", &chain), ("dst", &dst), ("calendar", &calendar)]);
}

/// More reservations than a calendar has room for are put off, not lost.
#[test]
fn a_full_calendar_puts_off() {
    let traffic = "pattern = \"incast\"\nsize = 6000\narrivals = \"saturate\"\nflows = 8";
    let text = toml::to_string(&six("pl2-clock", 2_000, traffic).spec).unwrap();
    let many =
        text.replace("clocks = \"pair\"", "clocks = \"calendar\"").replace("in_flight = 3", "in_flight = 6");
    let outcome = go(&parse(&many));
    assert!(outcome.host_counters["grt_not_now"] > 0, "{:?}", outcome.host_counters);
    assert!(outcome.goodput_gbps > 80.0 && outcome.frames_dropped == 0, "{}", outcome.goodput_gbps);
    assert_eq!(outcome.checks.overlapping_grants, 0, "{:?}", outcome.checks);
    shown("full_calendar", [("calendar", &outcome)]);
}

/// Hosts behind one port share its reservations: with both ends' clocks they ask for no more than the port has; if only
/// the destination's clock moves, their frames collide and the shared port overflows.
#[test]
fn hosts_that_share_a_port_are_kept_apart_by_its_own_clock() {
    let run = |clocks: &str| {
        let text = "pattern = \"shuffle\"\nsenders = [\"h1\", \"h2\", \"h3\"]\nreceivers = [\"h4\", \"h5\", \"h6\"]\n\
                    size = 6000\narrivals = \"saturate\"\nflows = 2";
        let shared = "shared = [[\"h1\", \"h2\", \"h3\"]]";
        let text = toml::to_string(&six_in("pl2-clock", 2_000, shared, text).spec).unwrap();
        let text = text.replace("clocks = \"pair\"", &format!("clocks = \"{clocks}\""));
        // RSVs share the port too.
        let text = text.replace("slot_headroom_percent = 0.0", "slot_headroom_percent = 3.0");
        p4rack_sim::run(&parse(&text), None).unwrap().0
    };
    let (pair, dst) = (run("pair"), run("dst"));
    assert_eq!((pair.frames_dropped, pair.problems.len()), (0, 0), "{:?}", pair.checks);
    assert!(pair.goodput_gbps > 85.0 && pair.goodput_gbps < 97.0, "{}", pair.goodput_gbps);
    assert!(dst.frames_dropped > 0);
    assert_eq!(dst.checks.unaccounted_frames, 0);
    shown("shared_port", [("pair", &pair), ("dst", &dst)]);
}

/// Lanes slower than the port that they share get what they can take, whichever way reservations are kept.
#[test]
fn lanes_of_one_port_get_no_more_than_they_can_take() {
    let mut runs = Vec::new();
    for clocks in ["pair", "chain", "dst", "calendar"] {
        let lanes = "shared = [[\"h1\", \"h2\", \"h3\"]]\nlane_buffer = \"24 KiB\"\n\
                     rates = { h1 = \"25 Gb/s\", h2 = \"25 Gb/s\", h3 = \"25 Gb/s\" }";
        let text = "pattern = \"shuffle\"\nsenders = [\"h4\", \"h5\", \"h6\"]\nreceivers = [\"h1\", \"h2\", \"h3\"]\n\
                    size = 6000\narrivals = \"poisson\"\nload = 0.8\nload_link = \"h1\"";
        let text = toml::to_string(&six_in("pl2-clock", 4_000, lanes, text).spec).unwrap();
        let outcome = go(&parse(&text.replace("clocks = \"pair\"", &format!("clocks = \"{clocks}\""))));
        assert_eq!(outcome.frames_dropped, 0, "{clocks}");
        assert!(outcome.goodput_gbps > 54.0, "{clocks}: {}", outcome.goodput_gbps);
        runs.push((clocks, outcome));
    }
    shown("lanes", runs.iter().map(|(clocks, outcome)| (*clocks, outcome)));
}

/// The same messages come at the same times, whatever carries them and from how many hosts they come.
#[test]
fn schemes_meet_the_same_messages() {
    let run = |kind: &str, senders: &str| {
        let text = format!(
            "pattern = \"incast\"\nsenders = {senders}\nsize = \"W3\"\narrivals = \"poisson\"\nload = 0.3\nload_in = \"untagged\"\nflows = 8"
        );
        let one = &go(&six(kind, 1_000, &text)).traffic[0];
        let deciles: Vec<u64> = one.deciles.iter().map(|decile| decile.latency_ns.count).collect();
        (one.made, deciles)
    };
    let alone = run("l2", "[\"h2\"]");
    assert!(alone.0 > 300, "{alone:?}");
    assert_eq!(run("pl2-clock", "[\"h2\", \"h3\", \"h4\"]"), alone);
}

/// Traffic from other racks gets the share left to it, at no cost to scheduled traffic.
#[test]
fn a_share_is_left_to_other_racks() {
    let incast = "pattern = \"incast\"\nsenders = [\"h2\", \"h3\", \"h4\"]\nsize = 6000\narrivals = \"saturate\"\nflows = 4\n\
                  [[traffic]]\nname = \"foreign\"\npattern = \"incast\"\nsenders = [\"h6\"]\nsize = 1500\n\
                  arrivals = \"poisson\"\nload = 0.08\nflows = 4";
    let outcome = go(&six_in("pl2-clock", 3_000, "foreign = { h6 = 10 }", incast));
    assert_eq!(outcome.frames_dropped, 0);
    let [scheduled, foreign] = [0, 1].map(|n| outcome.traffic[n].goodput_gbps);
    assert!(scheduled > 85.0 && scheduled < 88.0 && foreign > 6.5, "{scheduled} {foreign}");
    shown("other_racks", [("foreign", &outcome)]);
}

/// Where clocks don't count frames, short ones share slots: more of them go through.
#[test]
fn short_frames_share_slots() {
    let traffic = "pattern = \"incast\"\nsize = 200\narrivals = \"saturate\"\nflows = 12";
    let text = toml::to_string(&six("pl2-clock", 1_000, traffic).spec).unwrap();
    let run = |pack: bool| go(&parse(&text.replace("pack = true", &format!("pack = {pack}"))));
    let (packed, apart) = (run(true), run(false));
    assert!(packed.goodput_gbps > 3.0 * apart.goodput_gbps, "{} {}", packed.goodput_gbps, apart.goodput_gbps);
    shown("short_frames", [("packed", &packed), ("apart", &apart)]);
}

/// Where reservations count in parts of slots, short messages leave the rest of theirs to others.
#[test]
fn short_messages_take_parts_of_slots() {
    let traffic = "pattern = \"incast\"\nsenders = [\"h2\"]\nsize = 6000\narrivals = \"saturate\"\nflows = 4\n\
                   [[traffic]]\nname = \"short\"\npattern = \"incast\"\nsenders = [\"h3\", \"h4\", \"h5\", \"h6\"]\n\
                   size = 64\nrequest_bytes = 200\narrivals = \"rpc\"\nflows = 8";
    let text = toml::to_string(&six("pl2-clock", 400, traffic).spec).unwrap();
    let run = |parts: u8| {
        let outcome = go(&parse(&text.replace("slot_parts = 1", &format!("slot_parts = {parts}"))));
        assert_eq!(outcome.frames_dropped, 0);
        outcome
    };
    let (whole, parts) = (run(1), run(31));
    let long = |outcome: &Outcome| outcome.traffic[0].goodput_gbps;
    assert!(long(&whole) < 80.0 && long(&parts) > 90.0, "{} {}", long(&whole), long(&parts));
    shown("slot_parts", [("whole", &whole), ("parts", &parts)]);
}

/// The shipped experiments are sound.
#[test]
fn the_examples_are_experiments_and_sweeps() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/paper/pl2");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).map_err(|error| error.to_string());
    let mut count = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let text = read(&name).unwrap();
        count += match name.ends_with("-sweep.toml") {
            true => {
                let base = |base: &str| Ok((read(base)?, base.to_owned()));
                Sweep::<Experiment>::parse(&text, &name, &[], base)
                    .unwrap_or_else(|error| panic!("{error}"))
                    .tasks
                    .len()
            }
            false => {
                let one = Experiment::parse(&text, &name).unwrap_or_else(|error| panic!("{error}"));
                assert!(!one.spec.traffic.is_empty(), "{name}");
                1
            }
        };
    }
    assert!(count > 300, "{count}");
}

/// With a reservation for each thread, a destination is shared among threads, not among hosts.
#[test]
fn threads_share_a_destination_whatever_hosts_they_are_on() {
    let run = |more: &str| {
        let text = "pattern = \"incast\"\nsenders = [\"h2\"]\nsize = 6000\narrivals = \"saturate\"\nflows = 6\n\
                    [[traffic]]\nname = \"two\"\npattern = \"incast\"\nsenders = [\"h3\"]\nsize = 6000\narrivals = \"saturate\"";
        let text = toml::to_string(&six("pl2-clock", 1_000, text).spec).unwrap();
        let text =
            text.replace("in_flight = 3", "in_flight = 1").replace("[scheme]", &format!("[scheme]\n{more}"));
        go(&parse(&text))
    };
    let share = |outcome: &Outcome| outcome.traffic[0].goodput_gbps / outcome.traffic[1].goodput_gbps;
    let (hosts, threads) = (run("by_thread = false"), run("by_thread = true"));
    assert!(share(&hosts) < 1.5 && share(&threads) > 4.0, "{} {}", share(&hosts), share(&threads));
    shown("threads", [("by host", &hosts), ("by thread", &threads)]);
}

/// Hosts and switch run ahead of each other as far as they can't meet; recordings are in order of time, so with a
/// recorder they don't run ahead. The results are the same to the last byte.
#[test]
fn running_ahead_changes_nothing() {
    let poisson = "pattern = \"all-to-all\"\nsize = \"W3\"\narrivals = \"poisson\"\nload = 0.6\nflows = 2";
    let rpc = "pattern = \"outcast\"\nsenders = [\"h1\"]\nreceivers = [\"h2\", \"h3\", \"h4\"]\nsize = 1024\n\
               arrivals = \"rpc\"\nycsb = \"A\"\nkeys = 1000\nflows = 8";
    let saturate = "pattern = \"incast\"\nsize = 6000\narrivals = \"saturate\"\nflows = 4";
    let bad = "[link]\nloss = 0.002\nduplication = 0.01\nreordering = 0.01\n[nic]\nplace = \"host\"";
    let dies = format!("{saturate}\n[[fail]]\nhost = \"h3\"\nat_us = 300");
    let cases = [
        ("pl2-clock", "", poisson.to_owned()),
        ("pl2-clock", "", rpc.to_owned()),
        ("pl2-clock", "shared = [[\"h1\", \"h2\", \"h3\"]]", saturate.to_owned()),
        ("pl2-counter", "", saturate.to_owned()),
        ("pl2-counter", "", format!("{saturate}\n{bad}")),
        ("l2", "pfc_bytes = 60000", saturate.to_owned()),
        ("l2", "", format!("{saturate}\ntransport = \"dctcp\"\n{bad}")),
        ("l2", "", format!("{saturate}\ntransport = \"rds\"")),
        ("pl2-clock", "", dies.clone()),
    ];
    let mut experiments: Vec<Experiment> =
        cases.iter().map(|(kind, rack, traffic)| six_in(kind, 600, rack, traffic)).collect();
    let told = toml::to_string(&six_in("pl2-counter", 600, "", &dies).spec).unwrap();
    experiments.push(parse(&told.replace("notify_receiver = false", "notify_receiver = true")));
    assert!(experiments.iter().any(|experiment| experiment.spec.scheme.notify_receiver));
    for experiment in &experiments {
        let recorder = Recorder::new(Vec::new(), None, experiment.spec.scheme.shim);
        let (ahead, in_step) = (run(experiment, None).unwrap().0, run(experiment, Some(recorder)).unwrap().0);
        let fields = |outcome: &Outcome| serde_json::to_value(outcome).unwrap();
        let (ahead_fields, in_step_fields) = (fields(&ahead), fields(&in_step));
        for (name, value) in ahead_fields.as_object().unwrap() {
            assert_eq!(Some(value), in_step_fields.get(name), "{name} of {:?}", experiment.spec);
        }
        assert!(ahead.frame_hops > 1_000, "{:?}", experiment.spec);
    }
}
