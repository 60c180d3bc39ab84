//! Many worlds with faults: nothing is lost, shared or leaked. Then the same with a mistake planted in each part.

use super::super::plant::Plant;
use super::world::{Faults, Seen, World};
use p4rack_wire::Nanos;

/// Everything goes wrong.
const ALL: Faults =
    Faults { lost: 100, copied: 150, late: 150, node_crashes: 5, holder_crashes: 6, service_crashes: 4 };
/// Only copies and delays: nothing may disappear.
const CALM: Faults =
    Faults { lost: 0, copied: 400, late: 400, node_crashes: 0, holder_crashes: 0, service_crashes: 0 };
/// Without crashes of the service, compute nodes die and come back.
const DEATHS: Faults = Faults { lost: 50, node_crashes: 0, service_crashes: 0, holder_crashes: 12, ..ALL };

/// Worlds of each kind in an ordinary run; `P4RACK_BALLOON_SEEDS` asks for more, and `P4RACK_BALLOON_SEED` repeats one.
const SEEDS: u64 = 120;

fn variable(name: &str) -> Option<u64> {
    let text = std::env::var_os(name)?;
    let number = text.to_str().and_then(|text| text.parse().ok());
    Some(number.unwrap_or_else(|| panic!("{name} is {text:?}; expected a number")))
}

fn seeds() -> std::ops::Range<u64> {
    match variable("P4RACK_BALLOON_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..variable("P4RACK_BALLOON_SEEDS").unwrap_or(SEEDS),
    }
}

fn world(seed: u64, faults: Faults, plant: Option<Plant>) -> Result<Seen, String> {
    let mut world = World::new(seed, faults, plant);
    world.run(Nanos::from_millis(400))?;
    let seen = world.seen();
    world.rest()?;
    Ok(seen)
}

/// What all worlds have seen. `None`: one of them is repeated, which need not see everything.
fn all(faults: Faults) -> Option<Seen> {
    let mut sum = Seen::default();
    for seed in seeds() {
        let seen = world(seed, faults, None)
            .unwrap_or_else(|problem| panic!("P4RACK_BALLOON_SEED={seed} repeats it: {problem}"));
        sum.lent += seen.lent;
        sum.returned += seen.returned;
        sum.fenced += seen.fenced;
        sum.found += seen.found;
        sum.leases_ended += seen.leases_ended;
        sum.late += seen.late;
        sum.refused_writes += seen.refused_writes;
        sum.superseded += seen.superseded;
    }
    variable("P4RACK_BALLOON_SEED").is_none().then_some(sum)
}

#[test]
fn nothing_is_shared_or_leaked_while_everything_crashes() {
    let Some(seen) = all(ALL) else { return };
    let counts = [seen.lent, seen.returned, seen.fenced, seen.found, seen.leases_ended, seen.late];
    assert!(counts.iter().all(|count| *count > 0), "{seen:?}");
    assert!(seen.refused_writes > 0 && seen.superseded > 0, "{seen:?}");
    println!("{} worlds: {seen:?}", seeds().count());
}

#[test]
fn nothing_disappears_by_copies_and_delays() {
    let Some(seen) = all(CALM) else { return };
    assert!(seen.lent > 0 && seen.returned > 0 && seen.late > 0 && seen.leases_ended == 0, "{seen:?}");
}

#[test]
fn extents_of_dead_compute_nodes_come_back() {
    let Some(seen) = all(DEATHS) else { return };
    assert!(seen.leases_ended > 0 && seen.refused_writes > 0, "{seen:?}");
}

#[test]
fn planted_mistakes_are_found() {
    for (plant, faults, found) in [
        (Plant::FreeBeforeFence, DEATHS, "has a key"),
        (Plant::NoEpochAtNode, ALL, "has a key"),
        (Plant::NoEpochInReturn, CALM, "was not returned"),
        (Plant::SameIdentity, ALL, "not everything is free"),
        (Plant::ZeroForgotten, DEATHS, "reads"),
        (Plant::MergeInUse, CALM, "has a key"),
        (Plant::DeadRenews, DEATHS, "words of a dead session"),
    ] {
        let problem = (0..400).find_map(|seed| world(seed, faults, Some(plant)).err());
        let problem = problem.unwrap_or_else(|| panic!("{plant:?} was not found"));
        assert!(problem.contains(found), "{plant:?}: {problem}");
    }
}
