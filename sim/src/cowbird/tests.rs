//! Throughput of threads in short runs, and the checks.

use super::experiment::CowbirdExperiment;
use super::outcome::{CowbirdOutcome, problems, run_planted};
use super::records::CowbirdPlant;

fn experiment(more: &str) -> CowbirdExperiment {
    let text = format!(
        "name = \"t\"\nkind = \"cowbird\"\nthreads = 2\nrecords = 10000\nwarmup_us = 20\nduration_us = 80\n{more}\n"
    );
    CowbirdExperiment::parse(&text, "t.toml").unwrap()
}

fn run(more: &str, plant: Option<CowbirdPlant>) -> CowbirdOutcome {
    run_planted(&experiment(more), plant).unwrap()
}

#[test]
fn a_wrong_record_is_seen_in_every_scheme() {
    for scheme in ["rdma", "rdma-two-sided", "redy", "cowbird-spot", "cowbird-p4"] {
        let sound = run(&format!("scheme = \"{scheme}\""), None);
        assert_eq!((&sound.problems[..], sound.wrong, sound.lost), (&[][..], 0, 0), "{scheme}");
        assert!(sound.remote > 50, "{scheme}: {}", sound.remote);
        let wrong = run(&format!("scheme = \"{scheme}\""), Some(CowbirdPlant::FlippedBit));
        assert!(wrong.wrong > 0 && !wrong.problems.is_empty(), "{scheme}");
    }
}

#[test]
fn a_lost_write_is_seen_by_who_reads_the_record() {
    for scheme in ["rdma", "rdma-two-sided", "redy", "cowbird-spot", "cowbird-p4"] {
        let mut experiment = experiment(&format!("scheme = \"{scheme}\"\nwrite_percent = 50"));
        // Few records, so that each is read soon after it was written.
        experiment.spec.records = 20;
        experiment.spec.duration_us = 300;
        let sound = run_planted(&experiment, None).unwrap();
        assert_eq!((&sound.problems[..], sound.wrong), (&[][..], 0), "{scheme}");
        let wrong = run_planted(&experiment, Some(CowbirdPlant::LostWrite)).unwrap();
        assert!(wrong.wrong > 0, "{scheme}");
    }
}

/// A wrong record, a lost probe and a failed request are each reported, and a correct run reports nothing.
#[test]
fn each_fault_of_a_run_is_told_alone() {
    let sound = run("scheme = \"rdma\"", None);
    for (outcome, told) in [
        (CowbirdOutcome { wrong: 1, ..sound.clone() }, "1 records had a wrong content"),
        (CowbirdOutcome { lost: 2, ..sound.clone() }, "2 remote probes never ended"),
        (CowbirdOutcome { failed: 3, ..sound.clone() }, "3 requests failed"),
        (CowbirdOutcome { probes: 0, ..sound.clone() }, "no probe ended"),
    ] {
        assert_eq!(problems(&outcome), [told]);
    }
    assert_eq!(problems(&sound), Vec::<String>::new());
}

/// The thread's own work is the same for all schemes; only the cost of remote memory differs.
#[test]
fn schemes_are_in_the_papers_order() {
    let mops = |scheme: &str, more: &str| {
        let outcome = run(&format!("scheme = \"{scheme}\"\n{more}"), None);
        assert_eq!(outcome.problems, Vec::<String>::new(), "{scheme}");
        outcome.mops
    };
    let at_once = "batch = 1\nbatches = 1\n";
    let local = mops("local", "");
    let spot = mops("cowbird-spot", "");
    let rdma = mops("rdma", "");
    let [one, two] = ["rdma", "rdma-two-sided"].map(|scheme| mops(scheme, at_once));
    assert!(local > spot && spot > rdma && rdma > one && one > two, "{local} {spot} {rdma} {one} {two}");
    assert!(rdma > 3.0 * one, "{rdma} {one}");
    // Batches cost little of the I/O thread, which is another core. Waiting for each request is slowest.
    let [redy, redy_one] = [mops("redy", ""), mops("redy", at_once)];
    assert!(redy > rdma && redy < local && redy_one < one, "{redy} {redy_one}");
}

#[test]
fn frames_that_are_lost_cost_time_and_nothing_else() {
    for scheme in ["rdma", "rdma-two-sided", "redy", "cowbird-spot", "cowbird-p4"] {
        let more = format!(
            "scheme = \"{scheme}\"\nloss = 0.005\nwrite_percent = 20\n[nic]\ntimeout_us = 50\n[p4]\ntimeout_us = 50"
        );
        let outcome = run(&more, None);
        assert!(outcome.lost_frames > 0 && outcome.remote > 0, "{scheme}");
        assert_eq!((outcome.wrong, outcome.lost, outcome.failed), (0, 0, 0), "{scheme}: {outcome:?}");
    }
}

#[test]
fn mistakes_in_a_file_are_named() {
    for (more, named) in [
        ("batch = 0", "t.toml:7: batch: 0 is out of range; write 1 to 1024"),
        ("record_bytes = 12", "record_bytes: 12 is no multiple of 8"),
        ("loss = 0.5", "loss: 0.5 is out of range"),
        ("[p4]\nin_flight = 3", "[p4] in_flight: 3 is no power of two"),
        ("[redy]\nbatch = 0", "[redy] batch: 0 is out of range; write 1 to 1024"),
        ("[cpu]\nlook_ns = 0", "[cpu] look_ns: 0 is out of range; write 1 to 1000000"),
        ("colour = 1", "unknown field `colour`"),
    ] {
        let text = format!(
            "name = \"t\"\nkind = \"cowbird\"\nthreads = 2\nrecords = 10000\nwarmup_us = 20\nduration_us = 80\n{more}\n"
        );
        let error = CowbirdExperiment::parse(&text, "t.toml").unwrap_err().to_string();
        assert!(error.contains(named), "{more}: {error}");
    }
}
