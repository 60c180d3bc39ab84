//! Clio under faults: the checks afterwards find planted mistakes.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use p4rack_sim::{ClioPlant, run_clio_faults};
use std::collections::BTreeMap;

const SEEDS: u64 = 150;
/// Seeds for each planted mistake.
const PLANTED_SEEDS: u64 = 60;

#[test]
fn nothing_is_lost_or_done_twice_whatever_happens() {
    let (mut operations, mut unknown, mut counters) = (0, 0, BTreeMap::<_, u64>::new());
    for seed in 0..SEEDS {
        let outcome = run_clio_faults(seed, None);
        assert_eq!(outcome.problems, Vec::<String>::new(), "seed {seed}");
        (operations, unknown) = (operations + outcome.operations, unknown + outcome.unknown);
        outcome.counters.into_iter().for_each(|(name, more)| *counters.entry(name).or_default() += more);
    }
    println!("{operations} operations, {unknown} unknown, {counters:?}");
    // A fault that never happened would test nothing.
    assert!(unknown > operations / 200 && unknown < operations / 3, "{unknown} of {operations}");
    for (name, count) in &counters {
        assert!(*count > 10, "{name}: {count}");
    }
    // Faults meet operations, and operations go on after them.
    let breaks = counters["crashes"] + counters["restarts"] + counters["renewed_clients"];
    assert!(counters["broken_amid_operations"] > breaks / 2, "{counters:?}");
    assert!(counters["asked_after_the_faults"] > operations / 5, "{counters:?}");
    assert_eq!(counters.len(), 19, "{counters:?}");
}

/// A planted mistake's symptom, and the least number of seeds that must show it: about half of those
/// that did.
fn expected(plant: ClioPlant) -> (&'static str, usize) {
    match plant {
        ClioPlant::RetryIsNew => ("no order explains", 22),
        ClioPlant::NoPacketIndex => ("no order explains", 30),
        ClioPlant::DamageAccepted => ("no order explains", 20),
        ClioPlant::MissedDependency => ("has overtaken", 30),
        ClioPlant::ForgetsEarly => ("no order explains", 26),
        ClioPlant::ReusedEarly => ("no order explains", 7),
        ClioPlant::NotZeroed => ("no order explains", 27),
        ClioPlant::DeadOwner => ("a lock outlives its owner", 17),
        ClioPlant::LongLease => ("a lock outlives its lease", 30),
        ClioPlant::SameSecret => ("no order explains", 4),
        ClioPlant::StoreForgets => ("no order explains", 30),
    }
}

#[test]
fn planted_mistakes_are_found() {
    for plant in ClioPlant::ALL {
        let (words, floor) = expected(plant);
        let shows = |seed: &u64| {
            let problems = run_clio_faults(*seed, Some(plant)).problems;
            problems.iter().any(|problem| problem.contains(words))
        };
        let found = (0..PLANTED_SEEDS).filter(shows).count();
        println!("{plant:?}: {found} of {PLANTED_SEEDS}");
        assert!(found >= floor, "{plant:?}: {found} of {PLANTED_SEEDS} seeds show `{words}`");
    }
}

#[test]
fn a_seed_gives_the_same_outcome_again() {
    assert_eq!(run_clio_faults(7, None), run_clio_faults(7, None));
}
