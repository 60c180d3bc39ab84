//! A board that answers nothing, beside others.

use crate::clio_lib::board::Moods;
use crate::clio_lib::world::{Ended, World, config};
use p4rack_fabric::clio::lib::{Config, Operation};
use p4rack_wire::Nanos;
use p4rack_wire::clio::packet;
use p4rack_wire::clio::{Kind, PageSize};

/// Bytes of a read that no window takes as a whole.
const LONG: u32 = 1 << 20;
/// Tags of operations of the dead board.
const DEAD: u64 = 1_000;
/// Operations that wait for it.
const WAITING: u64 = 60;

const fn us(us: u64) -> Nanos {
    Nanos::from_micros(us)
}

/// A client of two boards, of which the second is dead.
fn world(silence: Nanos) -> World {
    let config = Config { silence, thread_requests_max: 128, link_bps: 10_000_000_000, ..config() };
    let mut world = World::new(&config, 1, 2, Moods::default(), 5);
    world.dead = Some(1);
    world
}

/// Operations of all kinds, which the dead board is asked for: some depend on others, or wait behind a lock.
fn ask(world: &mut World, first: u64) {
    let (page, now) = (PageSize::K4.address_of(1), world.now);
    let mut ask = |tag, operation| world.clients[0].submit(0, 1, tag, operation, now).unwrap();
    ask(first, Operation::Read { address: page, bytes: LONG });
    for nth in 1..WAITING {
        let address = page + 4_096 * (nth % 20);
        ask(
            first + nth,
            match nth % 10 {
                9 => Operation::Lock { address },
                0 | 5 => Operation::Write { address, bytes: b"never" },
                _ => Operation::Read { address, bytes: 8 },
            },
        );
    }
}

/// Runs until the dead board's operations have ended, with one read of the other board after the other beside them. Returns how long that
/// took, and the longest of these reads in the first 20 µs and later.
fn run(world: &mut World, mut left: u64) -> (Nanos, [Nanos; 2]) {
    let address = world.boards[0].alloc(1);
    let (start, mut begun, mut longest) = (world.now, None, [Nanos::ZERO; 2]);
    while left > 0 {
        if begun.is_none() {
            begun = Some(world.now);
            let read = Operation::Read { address, bytes: 512 };
            world.clients[0].submit(1, 0, 0, read, world.now).unwrap();
        }
        let mut ends = Vec::new();
        assert!(world.step(&mut |_, tag, end| ends.push((tag, end))));
        for (tag, end) in ends {
            if tag >= DEAD {
                assert_eq!(end, Ended::Unknown, "{tag}");
                left -= 1;
                continue;
            }
            assert_eq!(end, Ended::Read(vec![0; 512]));
            let since = begun.take().unwrap();
            let place = &mut longest[usize::from(since > start + us(20))];
            *place = (*place).max(world.now - since);
        }
    }
    let took = world.now - start;
    world.finish();
    (took, longest)
}

#[test]
fn one_operation_decides_for_all_that_wait_for_a_dead_board_and_others_go_on() {
    let mut silent = world(us(20));
    ask(&mut silent, DEAD);
    let (took, longest) = run(&mut silent, WAITING);
    // An attempt and two retries, 8 µs each.
    assert!(took < us(40), "{took}");
    assert!(longest[0] < us(14) && longest[1] < us(4), "{longest:?}");
    let counters = silent.clients[0].counters().clone();
    assert_eq!((counters.unknown, counters.given_up), (WAITING, WAITING - 1));
    // What comes later is two packets a TIMEOUT: those of an operation, and of others.
    ask(&mut silent, DEAD);
    let sent = counters.packets_out;
    let (took, longest) = run(&mut silent, WAITING);
    assert!(took < us(40) && longest[0] < us(4), "{took} {longest:?}");
    let done = silent.clients[0].counters().done - counters.done;
    assert_eq!(silent.clients[0].counters().packets_out - sent - done, 6);
    // The planted mistake: each operation waits for retries of its own.
    let mut planted = world(Nanos(u64::MAX));
    ask(&mut planted, DEAD);
    let (took, _) = run(&mut planted, WAITING);
    assert!(took > us(400), "{took}");
}

#[test]
fn a_board_that_answers_again_is_used_as_before() {
    let mut world = world(us(20));
    ask(&mut world, DEAD);
    run(&mut world, WAITING);
    world.dead = None;
    let address = world.boards[1].alloc(20);
    let now = world.now;
    for tag in 0..WAITING {
        let write = Operation::Write { address: address + 4_096 * (tag % 20), bytes: &tag.to_le_bytes() };
        world.clients[0].submit(0, 1, tag, write, now).unwrap();
    }
    let ends = world.finish();
    assert!(ends.len() == WAITING as usize && ends.iter().all(|(_, _, end)| *end == Ended::Done), "{ends:?}");
    assert_eq!(world.boards[1].word(address + 4_096 * 19), 59);
    assert!(world.clients[0].window(1).unwrap().1 > 2.0, "its window grows");
}

/// Writes don't arrive; what else the board is asked for does.
fn loses_writes(bytes: &mut Vec<u8>, to_board: bool) {
    if to_board && packet::parse(bytes).is_ok_and(|packet| packet.kind == Kind::Write) {
        bytes.clear();
    }
}

#[test]
fn a_board_that_has_sent_something_is_not_silent() {
    const WRITES: u64 = 20;
    for cwnd_start in [1, 8, 64] {
        let config = Config { silence: us(20), cwnd_start, ..config() };
        let mut world = World::new(&config, 1, 1, Moods::default(), 5);
        world.tamper = Some(loses_writes);
        let address = world.boards[0].alloc(2 * WRITES as u32);
        // Each write beside a read of another page.
        let write = |world: &mut World, nth: u64| {
            let write = Operation::Write { address: address + 4_096 * nth, bytes: b"lost" };
            world.submit(0, 0, nth, write).unwrap();
        };
        let read = |world: &mut World, nth: u64| {
            let address = address + 4_096 * (WRITES + nth % WRITES);
            world.submit(0, 0, WRITES + nth, Operation::Read { address, bytes: 8 }).unwrap();
        };
        for nth in 0..WRITES {
            write(&mut world, nth);
            read(&mut world, nth);
        }
        // Reads go on for as long as writes are under way.
        let (mut unknown, mut reads) = (0, 0);
        while unknown < WRITES {
            let mut ends = Vec::new();
            assert!(world.step(&mut |_, tag, end| ends.push((tag, end))));
            for (tag, end) in ends {
                if tag < WRITES {
                    assert_eq!(end, Ended::Unknown, "write {tag}, a window of {cwnd_start} at first");
                    unknown += 1;
                } else {
                    assert_eq!(end, Ended::Read(vec![0; 8]), "a window of {cwnd_start} at first");
                    reads += 1;
                    read(&mut world, tag - WRITES);
                }
            }
        }
        world.finish();
        assert!(reads >= 20, "{reads} reads, a window of {cwnd_start} at first");
        let counters = world.clients[0].counters();
        assert_eq!((counters.unknown, counters.given_up), (WRITES, 0), "a window of {cwnd_start} at first");
    }
}
