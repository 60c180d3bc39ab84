//! With any faults of the network and the board, every operation ends and takes effect at most once, and some order
//! explains the results.

use crate::clio_lib::board::Moods;
use crate::clio_lib::work::{Seen, Setting, run};
use crate::clio_lib::world::{Ended, Faults, World, config};
use p4rack_fabric::clio::lib::{Change, Config, Operation};
use p4rack_wire::Nanos;
use p4rack_wire::clio::{Kind, PageSize, Rights};
use std::collections::{BTreeMap, BTreeSet};

const SEEDS: u64 = 150;

/// Runs all seeds. The error describes the first run that failed.
pub fn all(setting: &Setting) -> Result<Seen, String> {
    let mut seen = Seen::default();
    for seed in 0..SEEDS {
        let one = run(seed, setting);
        if let Some(problem) = one.problems.first() {
            return Err(problem.clone());
        }
        seen.add(one);
    }
    Ok(seen)
}

const ALL: Faults = Faults { lost: 40, copied: 60, damaged: 30, delayed: 60 };

#[test]
fn without_faults_nothing_is_repeated() {
    let seen = all(&Setting::default()).unwrap();
    assert_eq!((seen.timeouts, seen.retries, seen.unknown, seen.repeated), (0, 0, 0, 0), "{seen:?}");
}

#[test]
fn an_order_explains_what_was_found_under_every_fault() {
    let moods = Moods { busy: 40, no_page: 300 };
    let seen = all(&Setting { faults: ALL, moods, ..Setting::default() }).unwrap();
    // A fault that never happened would test nothing.
    let Seen { unknown, timeouts, retries, corrupt, busy, stale, unasked, repeated, nacks, .. } = seen;
    let counts = [unknown, timeouts, retries, corrupt, busy, stale, unasked, repeated, nacks];
    assert!(counts.iter().all(|count| *count > 0), "{seen:?}");
}

#[test]
fn an_order_explains_what_was_found_in_the_real_board() {
    let setting = Setting { is_real: true, ..Setting::default() };
    let seen = all(&setting).unwrap();
    assert_eq!((seen.timeouts, seen.unknown, seen.repeated), (0, 0, 0), "{seen:?}");
    assert!(seen.busy > 0, "pages are not ready in time: {seen:?}");
    let seen = all(&Setting { faults: ALL, ..setting }).unwrap();
    let Seen { unknown, timeouts, corrupt, busy, stale, repeated, nacks, .. } = seen;
    let counts = [unknown, timeouts, corrupt, busy, stale, repeated, nacks];
    assert!(counts.iter().all(|count| *count > 0), "{seen:?}");
}

#[test]
fn each_fault_alone() {
    let none = Faults::default();
    for faults in [
        Faults { lost: 100, ..none },
        Faults { copied: 300, ..none },
        Faults { damaged: 100, ..none },
        Faults { delayed: 200, ..none },
    ] {
        let seen = all(&Setting { faults, ..Setting::default() });
        assert!(seen.is_ok(), "{faults:?}: {seen:?}");
    }
}

/// The sum shows how often additions were executed.
#[test]
fn an_addition_takes_effect_once_and_an_unknown_one_at_most_once() {
    let (mut unknown, mut repeated) = (0, 0);
    for seed in 0..100 {
        let mut world = World::new(&config(), 2, 1, Moods { busy: 30, no_page: 0 }, seed);
        world.faults = ALL;
        let address = world.boards[0].alloc(1);
        let (mut known, mut unsure, mut tag) = (0, 0, 0);
        for _ in 0..20 {
            for client in 0..2 {
                let change = Change::FetchAdd(1);
                world.submit(client, (tag % 4) as u16, tag, Operation::Modify { address, change }).unwrap();
                tag += 1;
            }
            for (_, _, end) in world.finish() {
                match end {
                    Ended::Word(_) => known += 1,
                    Ended::Unknown => unsure += 1,
                    other => panic!("{other:?}"),
                }
            }
        }
        let found = world.boards[0].word(address);
        assert!(
            (known..=known + unsure).contains(&found),
            "seed {seed}: {found}, {known} known, {unsure} unknown"
        );
        unknown += unsure;
        repeated += world.boards[0].repeated;
    }
    assert!(unknown > 0 && repeated > 0, "{unknown} unknown, {repeated} repeated");
}

#[test]
fn an_allocation_is_executed_once() {
    let mut world = World::new(&config(), 1, 1, Moods::default(), 5);
    world.faults = Faults { lost: 150, copied: 100, damaged: 50, delayed: 50 };
    let alloc = Operation::Alloc { bytes: 1, page_size: PageSize::K4, rights: Rights::ALL };
    let (mut addresses, mut unsure) = (BTreeSet::new(), 0);
    for tag in 0..200 {
        world.submit(0, 0, tag, alloc).unwrap();
        for (_, _, end) in world.finish() {
            match end {
                Ended::Address(address) => assert!(addresses.insert(address), "{address:#x} twice"),
                Ended::Unknown => unsure += 1,
                other => panic!("{other:?}"),
            }
        }
    }
    let (executed, known) = (world.boards[0].executed[&(Kind::Manage as u8)], addresses.len() as u64);
    assert!((known..=known + unsure).contains(&executed), "{executed}, {known} known, {unsure} unknown");
    assert!(world.boards[0].repeated > 0);
}

/// Threads of several nodes add to a counter that a lock protects.
#[test]
fn a_lock_excludes_others_under_faults() {
    for seed in 0..40 {
        let mut world = World::new(&config(), 3, 1, Moods { busy: 20, no_page: 0 }, seed);
        world.faults = Faults { lost: 15, copied: 60, damaged: 10, delayed: 40 };
        let lock = world.boards[0].alloc(1);
        let counter = lock + 64;
        let (lock, unlock) = (Operation::Lock { address: lock }, Operation::Unlock { address: lock });
        let read = Operation::Read { address: counter, bytes: 8 };
        let word = |end: &Ended| match end {
            Ended::Read(bytes) => Some(u64::from_le_bytes(bytes[..].try_into().unwrap())),
            _ => None,
        };
        // By client: the step that it repeats until its outcome is known, what it read, and how often it has added.
        let mut states: BTreeMap<usize, (u8, u64, u64)> = (0..3).map(|client| (client, (0, 0, 0))).collect();
        (0..3).for_each(|client| world.submit(client, 0, 0, lock).unwrap());
        let mut ended = Vec::new();
        while world.step(&mut |client, _, end| ended.push((client, end))) {
            for (client, end) in std::mem::take(&mut ended) {
                let (step, value, times) = states.get_mut(&client).unwrap();
                let is_known = end != Ended::Unknown;
                *step = match *step {
                    0 if end == Ended::Done => 1,
                    1 if is_known => {
                        *value = word(&end).unwrap();
                        2
                    }
                    2 if is_known => {
                        *times += 1;
                        3
                    }
                    // Not its owner: an unlock without an answer was executed.
                    3 if is_known => 0,
                    step => step,
                };
                if (*step, *times) == (0, 8) {
                    continue;
                }
                let bytes = (*value + 1).to_le_bytes();
                let next = match step {
                    0 => lock,
                    1 => read,
                    2 => Operation::Write { address: counter, bytes: &bytes },
                    _ => unlock,
                };
                world.submit(client, 0, 0, next).unwrap();
            }
            assert!(world.now < Nanos::from_secs(1), "seed {seed}");
        }
        assert_eq!(world.boards[0].word(counter), 24, "seed {seed}");
    }
}

#[test]
fn a_board_that_is_gone_makes_operations_unknown_after_both_retries() {
    let mut world = World::new(&config(), 1, 1, Moods::default(), 1);
    let address = world.boards[0].alloc(1);
    world.faults.lost = 1_000;
    world.submit(0, 0, 0, Operation::Write { address, bytes: &[1] }).unwrap();
    world.submit(0, 0, 1, Operation::Release).unwrap();
    assert_eq!(world.finish(), [(0, 0, Ended::Unknown), (0, 1, Ended::Done)]);
    let counters = world.clients[0].counters();
    assert_eq!((counters.packets_out, counters.retries, counters.timeouts), (3, 2, 3));
    assert!(world.now >= Nanos::from_micros(24), "{}", world.now);
    // It comes back.
    world.faults.lost = 0;
    world.submit(0, 0, 2, Operation::Read { address, bytes: 1 }).unwrap();
    assert_eq!(world.finish(), [(0, 2, Ended::Read(vec![0]))]);
}

#[test]
fn a_board_that_stays_busy_refuses_and_has_executed_nothing() {
    let mut world = World::new(&config(), 1, 1, Moods { busy: 1_000, no_page: 0 }, 1);
    let address = world.boards[0].alloc(1);
    world.submit(0, 0, 0, Operation::Write { address, bytes: &[1] }).unwrap();
    let ended = world.finish();
    assert!(matches!(ended[..], [(0, 0, Ended::Refused(status))] if status.is_temporary()), "{ended:?}");
    assert_eq!(world.boards[0].executed.get(&(Kind::Write as u8)), None);
    let counters = world.clients[0].counters();
    assert_eq!((counters.timeouts, counters.busy), (0, 33));
}

/// A driver that sleeps longer than the board remembers must not repeat a write.
#[test]
fn a_retry_that_would_come_too_late_is_not_sent() {
    let config = Config { busy_wait: Nanos::from_micros(1), ..config() };
    let mut world = World::new(&config, 1, 1, Moods::default(), 1);
    let address = world.boards[0].alloc(2);
    world.faults.lost = 1_000;
    world.submit(0, 0, 0, Operation::Write { address, bytes: &[1] }).unwrap();
    world.submit(0, 0, 1, Operation::Read { address: address + 4_096, bytes: 1 }).unwrap();
    assert!(world.step(&mut |_, _, end| panic!("{end:?}")));
    world.now = Nanos::from_micros(200);
    world.faults.lost = 0;
    let ended = world.finish();
    assert!(
        ended.contains(&(0, 0, Ended::Unknown)) && ended.contains(&(0, 1, Ended::Read(vec![0]))),
        "{ended:?}"
    );
    let counters = world.clients[0].counters();
    assert_eq!((counters.too_late, world.boards[0].executed.get(&(Kind::Write as u8))), (1, None));
}
