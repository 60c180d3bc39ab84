//! A pool or a compute node dies under load, or a thread fetches nothing: requests reported done stay right, and no
//! others are reported.

use crate::rack::{Bug, Faults, Rack, Role};
use p4rack_cowbird::{Layout, Refused};
use p4rack_fabric::common::SplitMix;
use p4rack_fabric::cowbird::{Config, State};

const SEEDS: u64 = 100;
const LAYOUT: Layout = Layout { entries: 16, request_bytes: 512, response_bytes: 512 };
const FAULTS: Faults = Faults { lost: 10, copied: 10, delayed: 50, corrupted: 5 };

/// Both threads request and fetch for a while. Errors: the violation of order.
fn work(rack: &mut Rack, steps: u64) -> Result<(), String> {
    for _ in 0..steps {
        for nth in 0..rack.threads.len() {
            if rack.chance(300) {
                rack.ask(nth)?;
            }
            if rack.chance(100) {
                rack.fetch(nth)?;
            }
        }
        rack.step();
    }
    Ok(())
}

fn done(rack: &Rack) -> usize {
    rack.threads.iter().map(|thread| thread.history.count_done()).sum()
}

/// A node dies after some steps, and the engine gives up. Returns requests that were done. Errors: the wrong
/// result.
fn after_the_death_of(node: Role, seed: u64, bug: Option<Bug>) -> Result<usize, String> {
    let mut rack = Rack::new(2, usize::MAX, Config::default(), LAYOUT, FAULTS, seed);
    rack.bug = bug;
    let steps = SplitMix(seed).next() % 3_000;
    work(&mut rack, steps)?;
    rack.kill(node);
    let mut steps = 0;
    while (0..2).any(|nth| rack.state(nth) != State::Lost) {
        steps += 1;
        if !rack.step() || steps > 200_000 {
            return Err("the engine does not give up".into());
        }
    }
    if rack.engine.counters().lost != 2 {
        return Err(format!("{:?}", rack.engine.counters()));
    }
    // Results reported before are fetched, and are right; no later ones are reported.
    for nth in 0..2 {
        rack.fetch(nth)?;
    }
    let told = done(&rack);
    work(&mut rack, 500)?;
    if done(&rack) != told {
        return Err("something is told done by nobody".into());
    }
    for nth in 0..2 {
        rack.threads[nth].history.kept(rack.span(nth))?;
    }
    Ok(told)
}

fn all_seeds(node: Role) -> usize {
    let run =
        |seed| after_the_death_of(node, seed, None).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
    (0..SEEDS).map(run).sum()
}

#[test]
fn what_was_done_stays_right_when_the_pool_dies() {
    let done = all_seeds(Role::Pool);
    assert!(done > 1_000, "{done}");
}

#[test]
fn what_was_done_stays_in_the_pool_when_the_compute_node_dies() {
    let done = all_seeds(Role::Compute);
    assert!(done > 1_000, "{done}");
}

#[test]
fn mistakes_of_an_engine_are_seen_when_a_node_dies() {
    for node in [Role::Pool, Role::Compute] {
        for bug in [Bug::LostWrite, Bug::EarlyProgress, Bug::StaleRead] {
            let seen = (0..20).filter(|seed| after_the_death_of(node, *seed, Some(bug)).is_err()).count();
            assert!(seen >= 5, "{bug:?} was seen in {seen} of 20 seeds");
        }
    }
}

#[test]
fn a_thread_that_fetches_nothing_harms_itself_alone() {
    for seed in 0..20 {
        let mut rack = Rack::new(2, 200, Config::default(), LAYOUT, FAULTS, seed);
        while rack.threads[1].left > 0 || !rack.threads[1].history.is_done() {
            rack.ask(0).unwrap();
            rack.ask(1).unwrap();
            rack.fetch(1).unwrap();
            assert!(rack.step());
        }
        rack.threads[1].history.end(rack.span(1)).unwrap();
        // Its responses have no room: it gets that error.
        let refused = (0..LAYOUT.entries).find_map(|_| rack.threads[0].client.async_read(0, 0, 64).err());
        assert!(
            matches!(refused, Some(Refused::ResponseDataFull | Refused::RequestsFull)),
            "seed {seed}: {refused:?}"
        );
        assert_eq!((rack.threads[0].history.count_done(), rack.state(0)), (0, State::Serving), "seed {seed}");
    }
}
