//! With any faults of the network and any restarts of the engine, histories are in order and nothing is lost. The
//! checker sees mistakes that engines could make.

use crate::rack::{Bug, Faults, Rack};
use p4rack_cowbird::Layout;
use p4rack_fabric::common::SplitMix;
use p4rack_fabric::cowbird::{Config, Counters};
use p4rack_wire::Nanos;

/// Seeds of an ordinary run; `P4RACK_SEEDS` sets another number.
const SEEDS: u64 = 2_000;
/// Seeds beyond them in which something rare happens: entries that were read ahead, of which the probe said too much (11565).
const RARE: [u64; 1] = [11_565];
const STEPS_MAX: usize = 400_000;
/// Requests of a thread.
const REQUESTS: usize = 60;

/// Runs a seed. Returns the engines' counters, and the number of finished requests. Errors: the violation of order.
fn run(seed: u64, bug: Option<Bug>) -> Result<(Counters, u64), String> {
    let mut random = SplitMix(seed);
    let mut draw = |below: u64| random.next() % below;
    let faults = match draw(4) {
        0 => Faults::default(),
        1 => Faults { lost: 1, ..Faults::default() },
        _ => Faults { lost: draw(40), copied: draw(40), delayed: draw(100), corrupted: draw(20) },
    };
    let layout =
        Layout { entries: 2 << draw(4), request_bytes: 128 << draw(3), response_bytes: 128 << draw(3) };
    let config = Config {
        batch_reads: 1 + draw(8) as usize,
        batch_bytes: 64 << draw(4),
        fetch_entries: 1 + draw(8),
        guess_entries: draw(6),
        probes_max: 1 + draw(3) as usize,
        active_max: 1 + draw(8) as usize,
        requests_max: 2 + draw(20) as usize,
        probe_min: Nanos(500 + draw(4_000)),
        probe_max: Nanos::from_micros(10),
        pause_reads: draw(4) == 0,
        ..Config::default()
    };
    let (restarts, often) = [(0, 0), (3, 2), (30, 10)][draw(3) as usize];
    let mut rack = Rack::new(1 + draw(3) as usize, REQUESTS, config, layout, faults, seed);
    rack.bug = bug;
    let mut counters = Vec::new();
    for _ in 0..STEPS_MAX {
        for nth in 0..rack.threads.len() {
            if rack.chance(300) {
                rack.ask(nth)?;
            }
            if rack.chance(100) {
                rack.fetch(nth)?;
            }
        }
        if counters.len() < restarts && rack.chance(often) {
            counters.push(rack.engine.counters().clone());
            rack.start_engine();
        }
        if !rack.step() {
            return Err("nothing happens any more".into());
        }
        if rack.is_done() {
            for nth in 0..rack.threads.len() {
                rack.threads[nth].history.end(rack.span(nth))?;
            }
            counters.push(rack.engine.counters().clone());
            let mut sum = Counters::default();
            for one in counters {
                sum.reads += one.reads;
                sum.writes += one.writes;
                sum.batches += one.batches;
                sum.overlaps += one.overlaps;
                sum.recovered += one.recovered;
                sum.lost += one.lost;
            }
            return Ok((sum, (rack.threads.len() * REQUESTS) as u64));
        }
    }
    Err(format!("not done: {:?}", rack.engine.counters()))
}

#[test]
fn histories_are_in_order_whatever_happens() {
    let asked = std::env::var("P4RACK_SEEDS").map(|seeds| seeds.parse().expect("P4RACK_SEEDS is a number"));
    let (mut sum, mut requests) = (Counters::default(), 0);
    for seed in (0..asked.unwrap_or(SEEDS)).chain(RARE) {
        let (counters, done) = run(seed, None).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
        requests += done;
        sum.reads += counters.reads;
        sum.batches += counters.batches;
        sum.overlaps += counters.overlaps;
        sum.recovered += counters.recovered;
        sum.writes += counters.writes;
        assert_eq!(counters.lost, 0, "seed {seed}");
    }
    println!("{requests} requests, {sum:?}");
    // An event that never happened was not tested.
    assert!(sum.batches < sum.reads, "responses never went together: {sum:?}");
    assert!(sum.overlaps > 100 && sum.recovered > 10, "{sum:?}");
}

#[test]
fn mistakes_of_an_engine_are_seen() {
    for bug in Bug::ALL {
        let seen = (0..20).filter(|seed| run(*seed, Some(bug)).is_err()).count();
        assert!(seen >= 5, "{bug:?} was seen in {seen} of 20 seeds");
    }
}
