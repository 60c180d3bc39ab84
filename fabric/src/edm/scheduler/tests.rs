//! Random demands against the paper's promises, and each check against a scheduler that breaks the promise.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

const RATE_BPS: u64 = 100_000_000_000;

fn write(source: u16, destination: u16, id: u8, bytes: u32) -> Demand {
    Demand { source, destination, id, kind: Kind::Write, bytes, token: 0 }
}

fn scheduler(ports: u16, policy: Policy) -> Scheduler {
    Scheduler::new(Config { policy, ..Config::new(ports, RATE_BPS) }).unwrap()
}

/// An iteration takes three cycles, of which its grants need two (§3.1.2). Destinations that want the same source are counted.
#[test]
fn an_iteration_takes_three_cycles() {
    let cycle_ps = 333;
    let mut of_cables = Scheduler::new(Config { block_ps: 0, ..Config::new(7, RATE_BPS) }).unwrap();
    for (source, destination, id, at_ps) in [(0, 1, 0, 0), (0, 2, 1, 0), (3, 4, 0, 1), (5, 6, 0, 2)] {
        of_cables.handle_demand(source, write(source, destination, id, 64), at_ps).unwrap();
    }
    let grants: Vec<_> = drain(&mut of_cables).iter().map(|one| (one.demand.source, one.at_ps)).collect();
    // Two cycles to enter; one of source 0's loses the first iteration, and the others come just behind its start.
    let [first, second] = [4 * cycle_ps, 7 * cycle_ps];
    assert_eq!(grants[0], (0, first));
    let mut later = grants[1..].to_vec();
    later.sort_unstable();
    assert_eq!(later, [(0, second), (3, second), (5, second)]);
    assert_eq!((of_cables.counters().conflicts, of_cables.counters().iterations), (1, 2));
}

/// All grants until nothing is left to do.
fn drain(scheduler: &mut Scheduler) -> Vec<Grant> {
    let mut grants = Vec::new();
    while let Some(at_ps) = scheduler.next_timeout() {
        while let Some(grant) = scheduler.poll_grant(at_ps) {
            grants.push(grant);
        }
        assert!(grants.len() < 1_000_000, "grants without end");
    }
    grants
}

/// Finds two grants that a port would send, or receive, at the same time.
fn overlap(grants: &[Grant]) -> Option<(Grant, Grant)> {
    let mut last: BTreeMap<(bool, u16), Grant> = BTreeMap::new();
    for grant in grants {
        for side in [(false, grant.demand.source), (true, grant.demand.destination)] {
            if let Some(before) = last.insert(side, *grant)
                && before.at_ps + before.busy_ps > grant.at_ps
            {
                return Some((before, *grant));
            }
        }
    }
    None
}

/// Checks that each demand is served whole, in consecutive pieces, and that a pair's demands are served in order.
/// Returns a problem.
fn unserved(demands: &[Demand], grants: &[Grant]) -> Option<String> {
    let mut queues: BTreeMap<(u16, u16), VecDeque<(Demand, u32)>> = BTreeMap::new();
    for demand in demands {
        queues.entry((demand.source, demand.destination)).or_default().push_back((*demand, 0));
    }
    for grant in grants {
        let queue = queues.get_mut(&(grant.demand.source, grant.demand.destination));
        let Some((demand, served)) =
            queue.and_then(|queue| queue.front_mut().map(|first| (first.0, &mut first.1)))
        else {
            return Some(format!("{grant:?}: no demand asked for it"));
        };
        if grant.demand != demand || grant.offset != *served || grant.bytes == 0 {
            return Some(format!("{grant:?}: {demand:?} has {served} bytes and is next"));
        }
        *served += grant.bytes;
        if *served == demand.bytes {
            queues.get_mut(&(demand.source, demand.destination)).unwrap().pop_front();
        }
    }
    queues.into_values().flatten().next().map(|(demand, served)| format!("{demand:?}: only {served} bytes"))
}

/// A demand whose source and destination no other has in `matched`, found by looking at all of them.
fn unmatched(demands: &[Demand], matched: &[Grant]) -> Option<Demand> {
    let meets = |demand: &Demand| {
        matched.iter().any(|grant| {
            grant.demand.source == demand.source || grant.demand.destination == demand.destination
        })
    };
    demands.iter().find(|demand| !meets(demand)).copied()
}

#[derive(Clone, Debug)]
struct Step {
    demand: Demand,
    wait_ps: u64,
}

fn steps(ports: u16, count: usize) -> impl Strategy<Value = Vec<Step>> {
    let one = (0..ports, 0..ports, 0u8..8, 1u32..2_000, any::<bool>(), 0u64..4_000);
    let step = move |(source, destination, id, bytes, implicit, wait_ps)| Step {
        demand: Demand {
            kind: if implicit { Kind::Read } else { Kind::Write },
            ..write(source, destination, id, bytes)
        },
        wait_ps,
    };
    prop::collection::vec(one.prop_map(step), 1..count)
}

fn ingress(demand: &Demand) -> u16 {
    if demand.kind.is_implicit() { demand.destination } else { demand.source }
}

/// Runs steps; returns the admitted demands and the grants.
fn play(scheduler: &mut Scheduler, steps: &[Step]) -> (Vec<Demand>, Vec<Grant>) {
    let (mut now_ps, mut admitted, mut grants) = (0, Vec::new(), Vec::new());
    for step in steps {
        now_ps += step.wait_ps;
        while let Some(grant) = scheduler.poll_grant(now_ps) {
            grants.push(grant);
        }
        if scheduler.handle_demand(ingress(&step.demand), step.demand, now_ps).is_ok() {
            admitted.push(step.demand);
        }
    }
    grants.extend(drain(scheduler));
    (admitted, grants)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn grants_never_overlap_and_serve_every_demand_in_order(
        steps in steps(7, 60), srpt in any::<bool>(), x in 1u8..4, chunk_bytes in prop::sample::select(vec![8, 64, 256, 5_000]),
        lookahead_ps in prop::sample::select(vec![0, 1_000, 3_000]), room_for_short in any::<bool>(),
    ) {
        let policy = if srpt { Policy::Srpt } else { Policy::Fcfs };
        let config = Config { policy, chunk_bytes, lookahead_ps, room_for_short, active_per_pair: x, ..Config::new(7, RATE_BPS) };
        let mut scheduler = Scheduler::new(config).unwrap();
        let (admitted, grants) = play(&mut scheduler, &steps);
        prop_assert_eq!(overlap(&grants), None);
        prop_assert_eq!(unserved(&admitted, &grants), None);
        let counters = scheduler.counters();
        prop_assert_eq!(counters.demands + counters.refused.iter().sum::<u64>(), steps.len() as u64);
        prop_assert!(counters.queue_max <= 2 * 7 * u32::from(x));
        prop_assert_eq!(counters.grants, grants.len() as u64);
        prop_assert!((0..7).all(|port| scheduler.queue_length(port) == 0));
    }

    #[test]
    fn a_matching_is_maximal_when_its_iterations_are_over(steps in steps(9, 80), srpt in any::<bool>()) {
        let policy = if srpt { Policy::Srpt } else { Policy::Fcfs };
        // Chunks so long that no port is free again before the matching is complete.
        let config = Config { policy, chunk_bytes: 1 << 20, block_ps: 1_000_000, ..Config::new(9, RATE_BPS) };
        let (mut scheduler, now_ps) = (Scheduler::new(config.clone()).unwrap(), 5);
        let admit = |step: &Step| scheduler.handle_demand(ingress(&step.demand), step.demand, now_ps).is_ok();
        let mut open = steps.clone();
        open.retain(admit);
        let demands: Vec<Demand> = open.iter().map(|step| step.demand).collect();
        // At most an iteration for each port; each starts three cycles after the one before.
        let until_ps = now_ps + (matching::INSERT_CYCLES + 9 * matching::ITERATION_CYCLES) * config.cycle_ps;
        let matched: Vec<Grant> = std::iter::from_fn(|| scheduler.poll_grant(until_ps)).collect();
        prop_assert_eq!(overlap(&matched), None);
        prop_assert_eq!(unmatched(&demands, &matched), None);
        prop_assert!(scheduler.counters().iterations <= 9);
    }

    #[test]
    fn nothing_that_comes_makes_it_panic(
        steps in prop::collection::vec((any::<u16>(), any::<u16>(), any::<u16>(), any::<u8>(), 0u8..3, any::<u32>(), any::<u64>()), 0..40),
    ) {
        let mut scheduler = scheduler(4, Policy::Srpt);
        for (ingress, source, destination, id, kind, bytes, now_ps) in steps {
            let kind = [Kind::Write, Kind::Read, Kind::Modify][usize::from(kind)];
            let demand = Demand { source: source % 5, destination: destination % 5, id, kind, bytes, token: 0 };
            let _ = scheduler.handle_demand(ingress % 5, demand, now_ps >> 20);
            let _ = scheduler.poll_grant(now_ps >> 20);
            if id == 0 {
                scheduler.forget_port(source % 5);
            }
        }
    }
}

/// The checks have to fail with a grant that comes before the chunk ahead of it has passed, with grants that are missing or
/// out of order, and with an iteration too few.
#[test]
fn each_check_sees_what_it_is_for() {
    let demands = [
        write(0, 1, 0, 600),
        write(2, 1, 0, 600),
        write(0, 3, 0, 64),
        write(0, 3, 1, 64),
        write(2, 3, 0, 64),
    ];
    let mut scheduler = scheduler(4, Policy::Fcfs);
    for demand in demands {
        scheduler.handle_demand(demand.source, demand, 0).unwrap();
    }
    let grants = drain(&mut scheduler);
    assert_eq!((overlap(&grants), unserved(&demands, &grants)), (None, None));
    let meet = |one: &Grant, other: &Grant| {
        one.demand.source == other.demand.source || one.demand.destination == other.demand.destination
    };
    let mut early_ones = 0;
    for nth in 1..grants.len() {
        let Some(before) = grants[..nth].iter().rfind(|before| meet(before, &grants[nth])) else { continue };
        let mut early = grants.clone();
        early[nth].at_ps = before.at_ps + before.busy_ps - 1;
        assert!(overlap(&early).is_some(), "chunks that meet at a port: {:?}", grants[nth]);
        early_ones += 1;
    }
    assert!(early_ones >= 6, "{grants:?}");
    let without = |nth: usize| {
        let mut grants = grants.clone();
        grants.remove(nth);
        grants
    };
    assert!((0..grants.len()).all(|nth| unserved(&demands, &without(nth)).is_some()), "a grant is missing");
    let mut swapped = grants.clone();
    let of_pair: Vec<usize> = (0..grants.len())
        .filter(|nth| (grants[*nth].demand.source, grants[*nth].demand.destination) == (0, 3))
        .collect();
    swapped.swap(of_pair[0], of_pair[1]);
    assert!(unserved(&demands, &swapped).is_some(), "out of order");
    // Both destinations ask 0 first, which takes one; 2 → 3 is left to the second iteration.
    assert!(unmatched(&demands, &grants[..1]).is_some(), "one iteration short");
}

#[test]
fn chunks_follow_each_other_without_gap() {
    let mut scheduler = scheduler(2, Policy::Fcfs);
    scheduler.handle_demand(0, write(0, 1, 0, 1_000), 0).unwrap();
    let grants = drain(&mut scheduler);
    let sizes: Vec<u32> = grants.iter().map(|grant| grant.bytes).collect();
    assert_eq!(sizes, [256, 256, 256, 232]);
    assert!(grants.windows(2).all(|pair| pair[0].at_ps + pair[0].busy_ps == pair[1].at_ps), "{grants:?}");
    assert_eq!(grants[0].at_ps, 4 * 333, "two cycles into the queue, two until the grant");
}

#[test]
fn shortest_goes_first_across_pairs_but_not_within_one() {
    let served = |policy| {
        let mut scheduler = scheduler(4, policy);
        for demand in [write(0, 3, 0, 4_000), write(1, 3, 1, 2_000), write(1, 3, 2, 100), write(2, 3, 3, 500)]
        {
            scheduler.handle_demand(demand.source, demand, 0).unwrap();
        }
        drain(&mut scheduler)
            .iter()
            .filter(|grant| grant.is_last())
            .map(|grant| grant.demand.id)
            .collect::<Vec<u8>>()
    };
    assert_eq!(served(Policy::Fcfs), [0, 1, 2, 3]);
    assert_eq!(served(Policy::Srpt), [3, 1, 2, 0], "2 has to wait for 1, which is of its pair");
}

#[test]
fn a_source_takes_the_best_of_those_who_ask_it() {
    for (older, younger) in [(1, 3), (3, 1)] {
        let mut scheduler = scheduler(4, Policy::Fcfs);
        for (id, destination) in [older, younger].into_iter().enumerate() {
            scheduler.handle_demand(0, write(0, destination, id as u8, 64), 0).unwrap();
        }
        let served: Vec<u16> = drain(&mut scheduler).iter().map(|grant| grant.demand.destination).collect();
        assert_eq!(served, [older, younger]);
    }
}

#[test]
fn lies_are_refused_and_counted() {
    let mut scheduler = scheduler(4, Policy::Fcfs);
    let read = |demand| Demand { kind: Kind::Read, ..demand };
    for (ingress, demand, refusal) in [
        (0, write(0, 4, 0, 1), Refusal::NoSuchPort),
        (0, write(0, 0, 0, 1), Refusal::NoSuchPort),
        (1, write(0, 2, 0, 1), Refusal::Spoofed),
        // The reader is the destination of the answer.
        (0, read(write(0, 2, 0, 1)), Refusal::Spoofed),
        (0, write(0, 2, 0, 0), Refusal::Empty),
        (0, write(0, 2, 0, (1 << 24) + 1), Refusal::TooLong),
    ] {
        assert_eq!(scheduler.handle_demand(ingress, demand, 0), Err(refusal));
    }
    for (id, bytes) in [(0, 1), (1, 64), (2, 1 << 24)] {
        scheduler.handle_demand(0, write(0, 2, id, bytes), 0).unwrap();
    }
    assert_eq!(scheduler.handle_demand(0, write(0, 2, 3, 64), 0), Err(Refusal::OverLimit));
    scheduler.handle_demand(2, read(write(0, 2, 0, 64)), 0).unwrap();
    assert_eq!(scheduler.handle_demand(2, read(write(0, 2, 0, 64)), 0), Err(Refusal::IdInUse));
    assert_eq!(scheduler.counters().refused, [2, 2, 1, 1, 1, 1]);
    assert_eq!((scheduler.counters().demands, scheduler.queue_length(2)), (4, 4));
    scheduler.forget_port(2);
    assert_eq!((scheduler.counters().forgotten, scheduler.queue_length(2)), (4, 0));
    assert_eq!(drain(&mut scheduler), []);
}

#[test]
fn demands_that_are_still_entering_go_with_their_port() {
    let mut scheduler = scheduler(5, Policy::Fcfs);
    for (source, destination) in [(0, 1), (1, 2), (2, 3), (3, 1), (4, 0)] {
        scheduler.handle_demand(source, write(source, destination, 0, 64), 0).unwrap();
    }
    scheduler.forget_port(1);
    scheduler.forget_port(5);
    assert_eq!((scheduler.counters().forgotten, scheduler.queue_length(1)), (3, 0));
    let pair = |grant: &Grant| (grant.demand.source, grant.demand.destination);
    let mut left: Vec<_> = drain(&mut scheduler).iter().map(pair).collect();
    left.sort_unstable();
    assert_eq!(left, [(2, 3), (4, 0)]);
    scheduler.handle_demand(0, write(0, 1, 0, 64), 1_000_000).unwrap();
    assert_eq!(drain(&mut scheduler).len(), 1, "their ids are free again");
}

#[test]
fn parameters_without_sense_are_named() {
    let config = Config::new(2, RATE_BPS);
    let named = |config: Config| config.problem().and_then(|problem| problem.split(':').next());
    assert_eq!(named(config.clone()), None);
    assert_eq!(named(Config { ports: 1, ..config.clone() }), Some("ports"));
    assert_eq!(named(Config { active_per_pair: 0, ..config.clone() }), Some("active_per_pair"));
    assert_eq!(named(Config { chunk_bytes: 0, ..config.clone() }), Some("chunk_bytes"));
    assert_eq!(named(Config { message_bytes_max: 0, ..config.clone() }), Some("message_bytes_max"));
    assert_eq!(named(Config { cycle_ps: 0, ..config }), Some("cycle_ps"));
}

/// §3.1.3: log N iterations on average. All of 144 ports want all others.
#[test]
fn a_matching_of_144_ports_takes_about_log_n_iterations() {
    let mut iterations = Vec::new();
    for seed in 0..20u32 {
        let mut config = Config::new(144, RATE_BPS);
        (config.block_ps, config.chunk_bytes) = (1_000_000, 1 << 20);
        let mut scheduler = Scheduler::new(config).unwrap();
        for nth in 0..144u32 * 8 {
            // A linear congruence, so that pairs of hosts come without order.
            let random = (nth + seed * 5_000).wrapping_mul(2_654_435_761);
            let (source, destination) = ((random >> 8) % 144, (random >> 17) % 144);
            let demand = write(source as u16, destination as u16, nth as u8, 64);
            let _ = scheduler.handle_demand(demand.source, demand, 0);
        }
        while scheduler.poll_grant(500_000).is_some() {}
        iterations.push(scheduler.counters().iterations);
    }
    let mean = iterations.iter().sum::<u64>() as f64 / iterations.len() as f64;
    assert!(mean <= 144f64.log2(), "{mean}: {iterations:?}");
}
