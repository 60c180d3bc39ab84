//! A client that ruins its rings loses its own set alone, with the reason counted and reported.

use crate::rack::{Faults, Rack};
use p4rack_cowbird::{Kind, Layout, RequestId};
use p4rack_fabric::cowbird::{Config, Corruption, State};
use p4rack_wire::cowbird::{ENTRIES_AT, Entry};
use proptest::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};

const LAYOUT: Layout = Layout { entries: 8, request_bytes: 256, response_bytes: 256 };

fn rack(threads: usize, operations: usize) -> Rack {
    Rack::new(threads, operations, Config::default(), LAYOUT, Faults::default(), 1)
}

/// Overwrites a word of the first thread's set.
fn ruin(rack: &Rack, at: u64, value: u64) {
    rack.threads[0].client.words()[at as usize / 8].store(value.to_be(), Ordering::Relaxed);
}

fn word(words: &[AtomicU64], at: u64) -> u64 {
    u64::from_be(words[at as usize / 8].load(Ordering::Relaxed))
}

/// Runs for this many steps, or until nothing is left to do: a refused set is not probed.
fn run(rack: &mut Rack, steps: usize) {
    let _ = (0..steps).all(|_| rack.step());
}

/// The entry of a read that is right, in place of the first one.
fn entry() -> Entry {
    Entry {
        rw_type: Kind::Read as u16,
        region_id: 0,
        length: 16,
        req_addr: 8,
        resp_addr: LAYOUT.response_data_at(),
        request_id: RequestId::new(Kind::Read, 0, 1).0,
    }
}

/// Offers an entry to the engine, and runs it for a while.
fn offer(entry: &Entry) -> Rack {
    let mut rack = rack(1, 0);
    let mut bytes = [0; Entry::BYTES];
    entry.emit(&mut bytes);
    for (nth, word) in bytes.chunks_exact(8).enumerate() {
        ruin(&rack, ENTRIES_AT + 8 * nth as u64, u64::from_be_bytes(word.try_into().unwrap()));
    }
    ruin(&rack, 0, 1);
    run(&mut rack, 200);
    rack
}

#[test]
fn each_way_to_ruin_an_entry_is_refused_by_its_name() {
    let good = entry();
    assert_eq!(offer(&good).state(0), State::Serving);
    let write = |id: u64| RequestId::new(Kind::Write, 0, id).0;
    for (bad, corruption) in [
        (Entry { rw_type: 0, ..good }, Corruption::Type),
        (Entry { rw_type: 3, ..good }, Corruption::Type),
        (Entry { region_id: 1, ..good }, Corruption::Region),
        (Entry { req_addr: 241, ..good }, Corruption::Bounds),
        (Entry { req_addr: u64::MAX, ..good }, Corruption::Bounds),
        (Entry { length: 0, ..good }, Corruption::Length),
        (Entry { length: 129, ..good }, Corruption::Length),
        (Entry { length: u32::MAX, ..good }, Corruption::Length),
        (Entry { resp_addr: 0, ..good }, Corruption::Place),
        (Entry { resp_addr: good.resp_addr + 8, ..good }, Corruption::Place),
        (Entry { request_id: RequestId::new(Kind::Read, 0, 2).0, ..good }, Corruption::Id),
        (Entry { request_id: RequestId::new(Kind::Read, 1, 1).0, ..good }, Corruption::Id),
        (Entry { request_id: write(1), ..good }, Corruption::Id),
        (Entry { rw_type: 2, req_addr: 0, resp_addr: 8, request_id: write(1), ..good }, Corruption::Place),
    ] {
        let rack = offer(&bad);
        assert_eq!(rack.state(0), State::Corrupt(corruption), "{bad:?}");
        let name = format!("corrupt_{corruption:?}").to_lowercase();
        let counted = rack.engine.counters().iter().find(|(one, _)| *one == name);
        assert_eq!(counted.map(|(_, count)| count), Some(1), "{name}");
        assert_eq!(word(rack.threads[0].client.words(), 64 + 40), corruption as u64, "the client is told");
        assert!(rack.span(0).iter().all(|byte| *byte == 0));
    }
}

#[test]
fn a_tail_that_goes_back_or_too_far_is_refused() {
    for tail in [9, u64::MAX] {
        let mut rack = rack(1, 0);
        ruin(&rack, 0, tail);
        run(&mut rack, 100);
        assert_eq!(rack.state(0), State::Corrupt(Corruption::Tail));
        assert_eq!(rack.engine.counters().corrupt_tail, 1);
    }
    let mut rack = offer(&entry());
    ruin(&rack, 0, 0);
    run(&mut rack, 400);
    assert_eq!(rack.state(0), State::Corrupt(Corruption::Tail));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    /// Random words anywhere in a set, at any time: the engine continues, also a new one, and the thread beside gets
    /// all of its requests done.
    #[test]
    fn others_are_unharmed(seed: u64, restart in 0..600usize, ruins in prop::collection::vec((0..400usize, 0..32u64, any::<u64>(), any::<bool>()), 1..12)) {
        let mut rack = rack(2, 40);
        rack.random.0 = seed;
        for step in 0..4_000 {
            for (_, at, value, small) in ruins.iter().filter(|(when, ..)| *when == step) {
                ruin(&rack, 8 * at, if *small { value % 40 } else { *value });
            }
            if step == restart {
                rack.start_engine();
            }
            prop_assert_eq!(rack.ask(1), Ok(()));
            prop_assert_eq!(rack.fetch(1), Ok(()));
            prop_assert!(rack.step());
            if rack.threads[1].left == 0 && rack.threads[1].history.is_done() {
                break;
            }
        }
        prop_assert_eq!(rack.threads[1].history.end(rack.span(1)), Ok(()));
        // A new engine may just have begun.
        prop_assert!(matches!(rack.state(1), State::Serving | State::Recovering), "{:?}", rack.state(1));
    }
}
