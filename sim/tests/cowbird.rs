//! A short run of each way to remote records, with its results in tests/snapshots/cowbird.snap.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use p4rack_sim::{CowbirdExperiment, CowbirdOutcome, Sweep, run_cowbird};
use std::path::Path;

fn run(more: &str) -> CowbirdOutcome {
    let text = format!(
        "name = \"t\"\nkind = \"cowbird\"\nthreads = 4\nrecords = 100000\nwarmup_us = 30\nduration_us = 130\n{more}\n"
    );
    let experiment = CowbirdExperiment::parse(&text, "t.toml").unwrap();
    let (outcome, again) = (run_cowbird(&experiment).unwrap(), run_cowbird(&experiment).unwrap());
    assert_eq!(outcome.digest, again.digest, "a second run differs: {more}");
    assert_eq!(outcome.problems, Vec::<String>::new(), "{more}");
    outcome
}

#[test]
fn schemes_show_what_they_showed() {
    let mut shown = String::new();
    for (name, more) in [
        ("local", "scheme = \"local\""),
        ("rdma", "scheme = \"rdma\""),
        ("rdma, one by one", "scheme = \"rdma\"\nbatch = 1\nbatches = 1"),
        ("rdma-two-sided", "scheme = \"rdma-two-sided\"\nwrite_percent = 20"),
        ("redy", "scheme = \"redy\"\nwrite_percent = 20\nredy.io_threads = 2"),
        ("cowbird-spot", "scheme = \"cowbird-spot\"\nwrite_percent = 20"),
        ("cowbird-spot, lost frames", "scheme = \"cowbird-spot\"\nloss = 0.002\n[nic]\ntimeout_us = 50"),
        ("cowbird-p4", "scheme = \"cowbird-p4\"\nwrite_percent = 20"),
        ("cowbird-p4, lost frames", "scheme = \"cowbird-p4\"\nloss = 0.002\n[p4]\ntimeout_us = 50"),
        ("cowbird-p4 beside TCP", "scheme = \"cowbird-p4\"\nrecord_bytes = 512\n[competing]"),
        (
            "cowbird-p4 above TCP, but for probes",
            "scheme = \"cowbird-p4\"\nrecord_bytes = 512\n[competing]\nclass = \"below\"",
        ),
        (
            "cowbird-p4 above TCP",
            "scheme = \"cowbird-p4\"\nrecord_bytes = 512\n[competing]\nclass = \"lowest\"",
        ),
    ] {
        let outcome = run(more);
        let latency = &outcome.latency_ns;
        shown += &format!("{name}: digest {}, {} frame-hops\n", outcome.digest, outcome.frame_hops);
        shown += &format!(
            "    {} probes, {} remote, {:.3} million/s, p50 {} ns, p99 {} ns\n",
            outcome.probes, outcome.remote, outcome.mops, latency.p50, latency.p99
        );
        shown += &format!(
            "    calls {:.4} of the time, waiting {:.4}; {} frames lost, {} packets repeated\n",
            outcome.communication_share, outcome.waiting_share, outcome.lost_frames, outcome.repeated
        );
        if let Some(gbps) = outcome.competing_gbps {
            shown += &format!("    TCP {gbps:.3} Gb/s\n");
        }
    }
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!("cowbird", shown);
    });
}

/// A thread that waits for each request asks at any time between two turns, and the time before it asks is none of its latency.
#[test]
fn thinking_spreads_requests_and_is_no_part_of_their_latency() {
    let latency = |scheme: &str, think_ns: u32| {
        let one = format!("scheme = \"{scheme}\"\nbatch = 1\nbatches = 1\n[cpu]\nthink_ns = {think_ns}");
        let outcome = run(&one);
        (outcome.latency_ns.p50, outcome.latency_ns.p99, outcome.probes)
    };
    let (locked, spread) = (latency("cowbird-p4", 0), latency("cowbird-p4", 2_000));
    assert!(locked.1 - locked.0 < 500 && spread.1 - spread.0 > 500, "{locked:?} {spread:?}");
    let (at_once, later) = (latency("rdma", 0), latency("rdma", 2_000));
    assert!(later.0.abs_diff(at_once.0) < 50 && later.2 < at_once.2, "{at_once:?} {later:?}");
}

/// The shipped experiments are sound.
#[test]
fn the_examples_are_experiments_and_sweeps() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/paper/cowbird");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).map_err(|error| error.to_string());
    let mut tasks = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let text = read(&name).unwrap();
        if name.ends_with("-sweep.toml") {
            let base = |base: &str| Ok((read(base)?, base.to_owned()));
            let sweep = Sweep::<CowbirdExperiment>::parse(&text, &name, &[], base);
            tasks += sweep.unwrap_or_else(|error| panic!("{error}")).tasks.len();
        } else {
            CowbirdExperiment::parse(&text, &name).unwrap_or_else(|error| panic!("{error}"));
        }
    }
    assert!(tasks > 100, "{tasks}");
}
