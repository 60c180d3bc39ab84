//! The generated programs of EDM's `matched` and `calendar` beside the exact scheduler, with the same frames and latencies.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use p4rack_sim::{MemoryExperiment, MemoryOutcome, Sweep, Table1Experiment, kind_of, run_memory};
use std::path::Path;

fn run(scheme: &str, more: &str, size: &str, load: f64, messages: u32) -> MemoryOutcome {
    let text = format!(
        "name = \"t\"\nkind = \"memory\"\nscheme = \"{scheme}\"\nnodes = 36\nlatency = \"pipeline\"\n[edm]\nchunk = 1024\n\
         framing = \"ethernet\"\n{more}\n[workload]\nsize = {size}\nload = {load}\nmessages = {messages}\nread_percent = 30\n"
    );
    let outcome = run_memory(&MemoryExperiment::parse(&text, "t.toml").unwrap());
    assert_eq!((&outcome.problems[..], outcome.again, outcome.dropped), (&[][..], 0, 0), "{scheme}");
    assert_eq!(outcome.counters.get("uncovered"), None, "{scheme}");
    outcome
}

#[test]
fn matched_carries_nine_tenths_of_what_the_exact_scheduler_does_at_saturation() {
    for size in ["1024", "4096", "20000"] {
        let [exact, matched] =
            ["edm", "edm-matched"].map(|scheme| run(scheme, "", size, 1.0, 4_000).carried_load.unwrap());
        assert!(exact > 0.7 && matched >= 0.9 * exact, "{size}: {matched} {exact}");
    }
}

/// Before demands wait, `matched` is `timed-dst`; when they do, short ones come first.
#[test]
fn matched_is_near_the_exact_scheduler() {
    for load in [0.3, 0.7] {
        let [exact, matched] =
            ["edm", "edm-matched"].map(|scheme| run(scheme, "", "1024", load, 4_000).added_ns.mean.mean);
        assert!(matched < 1.06 * exact, "{load}: {matched} {exact}");
    }
    // With shares a message of the same class waits for as many chunks of others as it has itself.
    let hadoop = "\"EDM-hadoop\"";
    let exact = run("edm", "policy = \"srpt\"", hadoop, 0.5, 1_000).latency_ns.mean.mean;
    let matched = |more| run("edm-matched", more, hadoop, 0.5, 1_000);
    let (short_first, in_order) =
        (matched("window = 8\nshares = false"), matched("window = 8\nclasses = 1\nshares = false"));
    let means = [&short_first, &in_order].map(|outcome| outcome.latency_ns.mean.mean);
    assert!(means[0] < 1.1 * exact && means[0] < means[1], "{means:?} {exact}");
    assert!(short_first.counters["edm_waits"] > 0 && short_first.counters["second_passes"] > 0);
}

/// No time is granted twice at any link, so hardly anything waits in the switch.
#[test]
fn calendars_leave_no_queue() {
    for (size, window) in [("1024", 1), ("8192", 2)] {
        let outcome = run("edm-calendar", &format!("window = {window}"), size, 0.5, 3_000);
        assert!(!outcome.grows && outcome.queue_max_bytes < 8_000, "{}", outcome.queue_max_bytes);
    }
}

/// Cells that were free when a frame looked may be taken when it comes back: it looks again, and its message waits.
#[test]
fn passes_that_take_time_are_felt_by_those_who_need_them() {
    let of = |scheme, pass_ns| {
        let outcome = run(scheme, &format!("window = 1\npass_ns = {pass_ns}"), "1024", 0.05, 2_000);
        (outcome.counters["second_passes"], outcome.latency_ns.mean.mean)
    };
    let [(looks, early), (more_looks, late)] = [0, 400].map(|pass_ns| of("edm-calendar", pass_ns));
    assert!(more_looks > looks && late > early + 400.0, "{looks} {more_looks}, {early} {late}");
    let [(_, early), (_, late)] = [0, 400].map(|pass_ns| of("edm-timed-dst", pass_ns));
    assert!((late - early).abs() < 0.001, "{early} {late}");
}

/// The shipped experiments are sound.
#[test]
fn the_examples_are_experiments_and_sweeps() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/paper/edm");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).map_err(|error| error.to_string());
    let mut tasks = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if !name.ends_with(".toml") {
            continue;
        }
        let text = read(&name).unwrap();
        if name.ends_with("-sweep.toml") {
            let base = |base: &str| Ok((read(base)?, base.to_owned()));
            let sweep = Sweep::<MemoryExperiment>::parse(&text, &name, &[], base);
            tasks += sweep.unwrap_or_else(|error| panic!("{error}")).tasks.len();
        } else if kind_of(&text).as_deref() == Some("memory-table") {
            let table = Table1Experiment::parse(&text, &name).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(table.run().unwrap().problems, [""; 0], "{name}");
        } else {
            MemoryExperiment::parse(&text, &name).unwrap_or_else(|error| panic!("{error}"));
        }
    }
    assert!(tasks > 900, "{tasks}");
}

/// Messages as short as in the authors' traces, with frames for all: credits cost a link as much as demands do.
#[test]
fn short_messages_wait_less_than_for_credits_of_receivers() {
    for load in [0.05, 0.15, 0.2] {
        let [dst, matched, receivers] = ["edm-timed-dst", "edm-matched", "ird"]
            .map(|scheme| run(scheme, "", "64", load, 4_000).added_ns.mean.mean);
        assert!(dst < receivers && matched < receivers, "{load}: {dst} {matched} {receivers}");
    }
}
