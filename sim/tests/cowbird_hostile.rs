//! Promises to compute nodes that share a pool and an engine with a hostile one. docs/hostile.md has longer runs of all
//! attacks.

// A test that cannot go on should panic.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use p4rack_fabric::hostile::cowbird::Attack;
use p4rack_sim::{CowbirdExperiment, NO_ATTACK, OthersOutcome, run_cowbird};

fn text(scheme: &str, queueing: &str, attack: &str) -> String {
    format!(
        "name = \"test\"\nkind = \"cowbird\"\nscheme = \"{scheme}\"\nthreads = 4\nrecords = 10000\nrecord_bytes = 1024\n\
         local_percent = 0\nwrite_percent = 50\nbatch = 16\nbatches = 2\nwarmup_us = 150\nduration_us = 550\n\
         queueing = \"{queueing}\"\n\
         [nic]\nahead_bytes = 4096\n[[hostile]]\nattack = \"{attack}\"\n"
    )
}

fn others(scheme: &str, queueing: &str, attack: &str) -> OthersOutcome {
    let experiment = CowbirdExperiment::parse(&text(scheme, queueing, attack), "test.toml");
    let outcome = run_cowbird(&experiment.unwrap_or_else(|error| panic!("{error}"))).unwrap();
    assert_eq!(outcome.wrong, 0, "{scheme}, {attack}");
    outcome.others.expect("a node may be hostile")
}

/// The promises that these attacks break.
fn broken(scheme: &str, queueing: &str, attacks: &[Attack]) -> Vec<String> {
    let honest = others(scheme, queueing, NO_ATTACK);
    assert_eq!((honest.goodput_gbps.len(), honest.frames_lost), (1, 0), "{honest:?}");
    let of = |attack: &Attack| {
        let fared = honest.compare(&others(scheme, queueing, attack.name()));
        let broken = fared.broken();
        (!broken.is_empty()).then(|| format!("{attack}: {}", broken.join(", ")))
    };
    attacks.iter().filter_map(of).collect()
}

#[test]
fn others_keep_their_shares_of_a_pool() {
    let on_pool: Vec<Attack> = Attack::ALL.into_iter().filter(|attack| !attack.needs_engine()).collect();
    assert_eq!(broken("rdma", "fair", &on_pool), [] as [String; 0]);
}

#[test]
fn others_keep_their_shares_of_an_engine() {
    assert_eq!(broken("cowbird-spot", "fair", &Attack::ALL), [] as [String; 0]);
    assert_eq!(broken("cowbird-p4", "fair", &Attack::ALL), [] as [String; 0]);
}

/// On slow links, responses take longer than an adapter's least time-out, and an owner's requests in flight take
/// milliseconds.
#[test]
fn others_keep_their_shares_of_an_engine_on_a_slow_link() {
    let slow = |attack: Attack| {
        let text = text("cowbird-spot", "fair", attack.name()).replace(
            "warmup_us = 150\nduration_us = 550",
            "warmup_us = 15000\nduration_us = 75000\nrate = \"1 Gb/s\"",
        );
        run_cowbird(&CowbirdExperiment::parse(&text, "test.toml").unwrap()).unwrap()
    };
    // Beside another honest node it has 0.40 Gb/s of records.
    for attack in [Attack::FullReads, Attack::FullWrites, Attack::SmallReads] {
        let outcome = slow(attack);
        let others = outcome.others.unwrap();
        let goodput: Vec<f64> = others.goodput_gbps.values().copied().collect();
        assert!(goodput.iter().all(|gbps| *gbps > 0.36), "{attack}: {goodput:?}");
        assert_eq!((outcome.wrong, others.frames_lost), (0, 0), "{attack}");
    }
}

/// The comparison can fail: one queue for all protects no port.
#[test]
fn without_turns_a_flood_of_the_pools_link_takes_the_others_shares() {
    assert_eq!(broken("rdma", "fifo", &[Attack::ReadFlood, Attack::BestEffortFlood]).len(), 2);
}

#[test]
fn mistakes_are_named() {
    for (scheme, attack, named) in [
        ("rdma", "silent", "silent is an attack on an engine"),
        ("redy", "none", "has no attacks: write rdma, cowbird-spot or cowbird-p4"),
        ("cowbird-spot", "early", "`early` is no attack on Cowbird; there are bulk-read"),
    ] {
        let error =
            CowbirdExperiment::parse(&text(scheme, "fair", attack), "test.toml").unwrap_err().to_string();
        assert!(error.contains(named), "{error}");
    }
}
