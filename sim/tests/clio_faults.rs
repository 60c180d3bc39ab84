//! Clio under faults: what is looked at afterwards, and that planted mistakes are found.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use p4rack_sim::{ClioPlant, run_clio_faults};
use std::collections::BTreeMap;

const SEEDS: u64 = 150;
/// Seeds for each planted mistake, and how many of them have to find it.
const PLANTED_SEEDS: u64 = 60;
const FOUND: usize = 2;

#[test]
fn nothing_is_lost_or_done_twice_whatever_happens() {
    let (mut operations, mut unknown, mut counters) = (0, 0, BTreeMap::<_, u64>::new());
    for seed in 0..SEEDS {
        let outcome = run_clio_faults(seed, None);
        assert_eq!(outcome.problems, Vec::<String>::new(), "seed {seed}");
        (operations, unknown) = (operations + outcome.operations, unknown + outcome.unknown);
        outcome.counters.into_iter().for_each(|(name, more)| *counters.entry(name).or_default() += more);
    }
    // A fault that never happened would test nothing.
    assert!(unknown > operations / 200 && unknown < operations / 3, "{unknown} of {operations}");
    for (name, count) in &counters {
        assert!(*count > 10, "{name}: {count}");
    }
    assert_eq!(counters.len(), 14, "{counters:?}");
}

#[test]
fn planted_mistakes_are_found() {
    for plant in ClioPlant::ALL {
        let is_found = |seed: &u64| !run_clio_faults(*seed, Some(plant)).problems.is_empty();
        let found = (0..PLANTED_SEEDS).filter(is_found).count();
        println!("{plant:?}: {found} of {PLANTED_SEEDS}");
        assert!(found >= FOUND, "{plant:?} is found with {found} of {PLANTED_SEEDS} seeds");
    }
}

#[test]
fn a_seed_gives_the_same_outcome_again() {
    assert_eq!(run_clio_faults(7, None), run_clio_faults(7, None));
}
