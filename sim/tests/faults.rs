//! EDM under faults: the checks afterwards find planted bugs.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use p4rack_codegen::scheme::edm::Mode;
use p4rack_sim::{FaultsRack, Plant};
use p4rack_wire::Nanos;

/// Seeds of each mode: 200 in all, and half as many again with passes that take time. Every other one has no shares.
const SEEDS: u64 = 50;

#[test]
fn nothing_is_done_twice_or_never_ends_whatever_gets_lost() {
    // The time of a pass matters only with more than one pass.
    let late = [Mode::Calendar, Mode::Matched].map(|mode| (mode, Nanos(400)));
    for (mode, pass_delay) in Mode::ALL.map(|mode| (mode, Nanos::ZERO)).into_iter().chain(late) {
        let racks = [FaultsRack::new(mode), FaultsRack::without_shares(mode)]
            .map(|rack| rack.unwrap().with_pass_delay(pass_delay).unwrap());
        let (mut operations, mut unknown, mut passes) = (0, 0, 0);
        for seed in 0..SEEDS {
            let outcome = racks[(seed % 2) as usize].run(seed, None);
            assert_eq!(outcome.problems, Vec::<String>::new(), "{mode:?}, {pass_delay}, seed {seed}");
            (operations, unknown) = (operations + outcome.operations, unknown + outcome.unknown);
            passes += outcome.counters["second_passes"];
            let deaths = outcome.counters.get("switches_dead").copied().unwrap_or(0);
            assert!(deaths <= 1, "{mode:?}, seed {seed}: one of two switches may die, once: {deaths}");
        }
        // Time is looked for in another pass, and demands wait for it: on average more than a hundred times in each seed.
        let least = if matches!(mode, Mode::Calendar | Mode::Matched) { 100 * SEEDS } else { 0 };
        assert_eq!(passes > 0, least > 0, "{mode:?}: {passes}");
        assert!(passes >= least, "{mode:?}: {passes} of {least}");
        // There are faults, and not only faults.
        assert!(
            unknown > operations / 100 && unknown < operations / 2,
            "{mode:?}: {unknown} of {operations}"
        );
    }
}

/// A message that waits for passes longer than its lane lasts would lose it. Up to the longest passes that are permitted,
/// everything holds.
#[test]
fn passes_that_outlast_lanes_are_refused() {
    for (mode, most) in [(Mode::Calendar, 10_745), (Mode::Matched, 1_343)] {
        let rack = |pass| FaultsRack::new(mode).unwrap().with_pass_delay(Nanos(pass));
        for pass in [most + 1, 50_000] {
            let error = rack(pass).unwrap_err();
            assert!(
                error.contains(&mode.scheme().name().to_string()) && error.contains("or less"),
                "{error}"
            );
        }
        let rack = rack(most).unwrap();
        for seed in 0..20 {
            let outcome = rack.run(seed, None);
            assert_eq!(outcome.problems, Vec::<String>::new(), "{mode:?}, passes of {most} ns, seed {seed}");
        }
    }
    assert!(FaultsRack::new(Mode::Timed).unwrap().with_pass_delay(Nanos(50_000)).is_ok(), "it has one pass");
}

#[test]
fn planted_bugs_are_found() {
    for mode in [Mode::TimedDst, Mode::Matched] {
        let rack = FaultsRack::new(mode).unwrap();
        for plant in Plant::ALL {
            let found = (0..20).filter(|seed| !rack.run(*seed, Some(plant)).problems.is_empty()).count();
            assert!(found >= 3, "{mode:?}: {plant:?} is found with {found} of 20 seeds");
        }
    }
}

#[test]
fn a_seed_gives_the_same_outcome_again() {
    let rack = FaultsRack::new(Mode::Matched).unwrap();
    assert_eq!(rack.run(7, None), rack.run(7, None));
}
