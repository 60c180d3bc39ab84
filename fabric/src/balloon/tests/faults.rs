//! Many worlds with faults: nothing is lost, shared or leaked. Then the same with a mistake planted in each part. Memory nodes are plain
//! memory in some worlds, and RDMA pools in others.

use super::super::plant::Plant;
use super::dram::Dram;
use super::pool::Pool;
use super::store::Store;
use super::world::{Faults, Seen, World};
use p4rack_wire::Nanos;

/// Everything goes wrong.
const ALL: Faults = Faults {
    lost: 100,
    copied: 150,
    late: 150,
    node_crashes: 5,
    holder_crashes: 6,
    service_crashes: 4,
    leaves: 0,
};
/// Only copies and delays: nothing may disappear.
const CALM: Faults = Faults {
    lost: 0,
    copied: 400,
    late: 400,
    node_crashes: 0,
    holder_crashes: 0,
    service_crashes: 0,
    leaves: 0,
};
/// Without crashes of the service, compute nodes die and come back.
const DEATHS: Faults = Faults { lost: 50, node_crashes: 0, service_crashes: 0, holder_crashes: 12, ..ALL };

/// Everything goes wrong while memory nodes go offline and come back.
const LEAVES: Faults = Faults { leaves: 40, ..ALL };
/// The same without crashes and losses.
const CALM_LEAVES: Faults = Faults { leaves: 40, ..CALM };

fn variable(name: &str) -> Option<u64> {
    let text = std::env::var_os(name)?;
    let number = text.to_str().and_then(|text| text.parse().ok());
    Some(number.unwrap_or_else(|| panic!("{name} is {text:?}; expected a number")))
}

/// `P4RACK_BALLOON_SEEDS` asks for more worlds, and `P4RACK_BALLOON_SEED` repeats one.
fn seeds<S: Store>() -> std::ops::Range<u64> {
    match variable("P4RACK_BALLOON_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..variable("P4RACK_BALLOON_SEEDS").unwrap_or(S::WORLDS),
    }
}

fn world<S: Store>(seed: u64, faults: Faults, plant: Option<Plant>) -> Result<Seen, String> {
    let mut world = World::<S>::new(seed, faults, plant);
    world.run(Nanos::from_millis(400))?;
    let seen = world.seen();
    world.rest()?;
    Ok(seen)
}

/// Events of all worlds together. `None`: one of them is repeated, which need not see everything.
fn all<S: Store>(faults: Faults) -> Option<Seen> {
    let mut sum = Seen::default();
    for seed in seeds::<S>() {
        let seen = world::<S>(seed, faults, None)
            .unwrap_or_else(|problem| panic!("P4RACK_BALLOON_SEED={seed} repeats it: {problem}"));
        sum.lent += seen.lent;
        sum.returned += seen.returned;
        sum.fenced += seen.fenced;
        sum.found += seen.found;
        sum.leases_ended += seen.leases_ended;
        sum.late += seen.late;
        sum.refused_writes += seen.refused_writes;
        sum.superseded += seen.superseded;
        sum.moved += seen.moved;
    }
    variable("P4RACK_BALLOON_SEED").is_none().then_some(sum)
}

fn everything_crashes<S: Store>() {
    let Some(seen) = all::<S>(ALL) else { return };
    let counts = [seen.lent, seen.returned, seen.fenced, seen.found, seen.leases_ended, seen.late];
    assert!(counts.iter().all(|count| *count > 0), "{seen:?}");
    assert!(seen.refused_writes > 0 && seen.superseded > 0, "{seen:?}");
    println!("{} worlds: {seen:?}", seeds::<S>().count());
}

#[test]
fn nothing_is_shared_or_leaked_while_everything_crashes() {
    everything_crashes::<Dram>();
}

#[test]
fn nothing_of_pools_is_shared_or_leaked_while_everything_crashes() {
    everything_crashes::<Pool>();
}

#[test]
fn nothing_disappears_by_copies_and_delays() {
    for seen in [all::<Dram>(CALM), all::<Pool>(CALM)].into_iter().flatten() {
        assert!(seen.lent > 0 && seen.returned > 0 && seen.late > 0 && seen.leases_ended == 0, "{seen:?}");
    }
}

#[test]
fn extents_of_dead_compute_nodes_come_back() {
    for seen in [all::<Dram>(DEATHS), all::<Pool>(DEATHS)].into_iter().flatten() {
        assert!(seen.leases_ended > 0 && seen.refused_writes > 0, "{seen:?}");
    }
}

#[test]
fn extents_move_away_from_memory_nodes_that_go_offline() {
    for seen in [LEAVES, CALM_LEAVES].into_iter().filter_map(all::<Dram>) {
        assert!(seen.moved > 0 && seen.fenced > 0, "{seen:?}");
    }
    if let Some(seen) = all::<Pool>(LEAVES) {
        assert!(seen.moved > 0, "{seen:?}");
    }
}

#[test]
fn a_memory_node_that_goes_offline_becomes_empty() {
    for seed in seeds::<Dram>() {
        let mut world = World::<Dram>::new(seed, CALM_LEAVES, None);
        let emptied = world.run(Nanos::from_millis(200)).and_then(|()| world.empty((seed % 3) as u16));
        emptied.unwrap_or_else(|problem| panic!("P4RACK_BALLOON_SEED={seed} repeats it: {problem}"));
    }
}

fn mistakes_are_found<S: Store>() {
    for (plant, faults, found) in [
        (Plant::FreeBeforeFence, DEATHS, "has a key"),
        (Plant::NoEpochAtNode, ALL, "has a key"),
        (Plant::NoEpochInReturn, CALM, "was not returned"),
        (Plant::SameIdentity, ALL, "not everything is free"),
        (Plant::ZeroForgotten, DEATHS, S::UNCLEAN),
        (Plant::KeyForgotten, CALM, "although it has a key"),
        (Plant::MergeInUse, CALM, "has a key"),
        (Plant::DeadRenews, DEATHS, "words of a dead session"),
        (Plant::LeavingLends, CALM_LEAVES, "its node leaves"),
    ] {
        let problem = (0..400).find_map(|seed| world::<S>(seed, faults, Some(plant)).err());
        let problem = problem.unwrap_or_else(|| panic!("{plant:?} was not found"));
        assert!(problem.contains(found), "{plant:?}: {problem}");
    }
}

#[test]
fn planted_mistakes_are_found() {
    mistakes_are_found::<Dram>();
}

#[test]
fn planted_mistakes_are_found_with_pools() {
    mistakes_are_found::<Pool>();
}
