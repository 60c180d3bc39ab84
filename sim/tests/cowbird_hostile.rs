//! What is promised to compute nodes that share a pool and an engine with a hostile one.

// A test that cannot go on should panic.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use p4rack_fabric::hostile::cowbird::Attack;
use p4rack_sim::{CowbirdExperiment, CowbirdOutcome, NO_ATTACK, run_cowbird};

fn run(scheme: &str, attack: &str) -> CowbirdOutcome {
    let text = format!(
        "name = \"test\"\nkind = \"cowbird\"\nscheme = \"{scheme}\"\nthreads = 4\nrecords = 10000\nrecord_bytes = 1024\n\
         local_percent = 0\nwrite_percent = 50\nbatch = 16\nbatches = 2\nwarmup_us = 150\nduration_us = 450\n\
         [nic]\nahead_bytes = 4096\n[[hostile]]\nattack = \"{attack}\"\n"
    );
    let experiment = CowbirdExperiment::parse(&text, "test.toml").unwrap_or_else(|error| panic!("{error}"));
    run_cowbird(&experiment).unwrap()
}

/// What is broken of the promises by each attack that a scheme has.
fn broken(scheme: &str) -> Vec<String> {
    let honest = run(scheme, NO_ATTACK).others.expect("a node may be hostile");
    assert_eq!((honest.goodput_gbps.len(), honest.frames_lost), (1, 0), "{honest:?}");
    println!("{scheme}: {honest:?}");
    let of = |attack: Attack| {
        let outcome = run(scheme, attack.name());
        let fared = honest.compare(outcome.others.as_ref()?);
        println!(
            "{scheme} {attack}: {:.0} %, {}, {:.2}, served {:?}, queue {}",
            100.0 * fared.goodput_share,
            fared.frames_lost,
            fared.p99_times.unwrap_or(f64::NAN),
            outcome.hostile_requests,
            outcome.queue_max_bytes,
        );
        let broken = fared.broken();
        (!broken.is_empty()).then(|| format!("{attack}: {}", broken.join(", ")))
    };
    let is_fit = |attack: &Attack| scheme != "rdma" || !attack.needs_engine();
    Attack::ALL.into_iter().filter(is_fit).filter_map(of).collect()
}

#[test]
fn others_keep_their_shares() {
    for scheme in ["rdma", "cowbird-spot", "cowbird-p4"] {
        println!("{:#?}", broken(scheme));
    }
}
