//! Each operation, without faults.

use crate::clio_lib::board::{Moods, PID, credentials};
use crate::clio_lib::world::{Ended, World, config};
use p4rack_fabric::Machine as _;
use p4rack_fabric::clio::lib::{Change, Client, Config, Operation, Outcome, Refused};
use p4rack_wire::Nanos;
use p4rack_wire::clio::{Header, Kind, PageSize, Rights, Status, lock_word, packet};

fn world() -> World {
    World::new(&config(), 1, 1, Moods::default(), 1)
}

/// Submits operations of thread 0 and returns how they ended, by tag.
fn ends(world: &mut World, operations: &[Operation<'_>]) -> Vec<Ended> {
    for (tag, operation) in (0u64..).zip(operations) {
        world.submit(0, 0, tag, *operation).unwrap();
    }
    let mut all = world.finish();
    all.sort_by_key(|(_, tag, _)| *tag);
    assert_eq!(all.len(), operations.len());
    all.into_iter().map(|(_, _, end)| end).collect()
}

#[test]
fn memory_is_allocated_used_and_freed() {
    let mut world = world();
    let alloc = Operation::Alloc { bytes: 10_000, page_size: PageSize::K4, rights: Rights::ALL };
    let address = match &ends(&mut world, &[alloc])[..] {
        [Ended::Address(address)] => *address,
        other => panic!("{other:?}"),
    };
    let long: Vec<u8> = (0..9_000u32).map(|nth| (nth * 7 + nth / 251) as u8).collect();
    let word = address + 9_992;
    let found = ends(
        &mut world,
        &[
            Operation::Write { address: address + 100, bytes: &long },
            Operation::Read { address: address + 100, bytes: 9_000 },
            Operation::Modify { address: word, change: Change::FetchAdd(5) },
            Operation::Modify { address: word, change: Change::CompareSwap(5, 9) },
            Operation::Modify { address: word, change: Change::CompareSwap(5, 10) },
            Operation::Modify { address: word, change: Change::Swap(1) },
            Operation::Read { address: word, bytes: 8 },
            Operation::Fence { all: false },
            Operation::Free { address, bytes: 10_000 },
            Operation::Read { address, bytes: 8 },
            Operation::Release,
        ],
    );
    let expected = [
        Ended::Done,
        Ended::Read(long),
        Ended::Word(0),
        Ended::Word(5),
        Ended::Word(9),
        Ended::Word(9),
        Ended::Read(1u64.to_le_bytes().to_vec()),
        Ended::Done,
        Ended::Done,
        Ended::Refused(Status::NoSuchAddress),
        Ended::Done,
    ];
    assert_eq!(found, expected);
    // 9,000 bytes in packets of 512, cut at two edges of pages as well.
    assert_eq!(world.boards[0].executed[&(Kind::Write as u8)], 18);
    let reads = world.boards[0].executed[&(Kind::Read as u8)];
    assert!((2..19).contains(&reads), "a READ asks for several packets once the window has room: {reads}");
}

#[test]
fn a_lock_has_one_owner_and_its_release_waits_for_what_was_done_under_it() {
    let mut world = world();
    let address = world.boards[0].alloc(1);
    let lock = Operation::Lock { address };
    assert_eq!(ends(&mut world, &[lock, lock]), [Ended::Done, Ended::Done], "its own");
    world.submit(0, 1, 0, lock).unwrap();
    world.submit(0, 1, 1, Operation::Unlock { address }).unwrap();
    let owner = lock_word(PID, 0, 3);
    let found = world.finish();
    assert_eq!(found, [(0, 0, Ended::Held(owner)), (0, 1, Ended::Refused(Status::NotOwner))]);
    let write = Operation::Write { address: address + 8, bytes: &[1; 8] };
    world.submit(0, 0, 0, write).unwrap();
    world.submit(0, 0, 1, Operation::Unlock { address }).unwrap();
    world.submit(0, 0, 2, Operation::Read { address: address + 8, bytes: 8 }).unwrap();
    let tags: Vec<u64> = world.finish().into_iter().map(|(_, tag, _)| tag).collect();
    assert_eq!((tags, world.boards[0].word(address)), (vec![0, 1, 2], 0));
}

#[test]
fn a_release_ends_behind_all_before_it_and_before_all_behind_it() {
    let mut world = world();
    let address = world.boards[0].alloc(40);
    for tag in 0..20 {
        let page = address + 4_096 * tag;
        world.submit(0, 0, tag, Operation::Write { address: page, bytes: &[tag as u8; 600] }).unwrap();
    }
    world.submit(0, 0, 20, Operation::Release).unwrap();
    world.submit(0, 0, 21, Operation::Read { address, bytes: 1 }).unwrap();
    world.submit(0, 1, 22, Operation::Release).unwrap();
    let tags: Vec<u64> = world.finish().into_iter().map(|(_, tag, _)| tag).collect();
    assert_eq!(tags[0], 22, "another thread's does not wait");
    assert_eq!(tags[tags.len() - 2..], [20, 21]);
}

#[test]
fn short_requests_pass_long_ones() {
    let mut world = world();
    let address = world.boards[0].alloc(60);
    let long = vec![1; 40 * 4_096];
    world.submit(0, 0, 0, Operation::Write { address, bytes: &long }).unwrap();
    world.submit(0, 1, 1, Operation::Read { address: address + 50 * 4_096, bytes: 8 }).unwrap();
    let tags: Vec<u64> = world.finish().into_iter().map(|(_, tag, _)| tag).collect();
    assert_eq!(tags, [1, 0]);
}

#[test]
fn what_no_board_could_execute_is_refused_before_it_leaves() {
    let config = Config { requests_max: 4, thread_requests_max: 3, request_bytes_max: 10_000, ..config() };
    let mut world = World::new(&config, 1, 1, Moods::default(), 1);
    let read = |address, bytes| Operation::Read { address, bytes };
    let change = Change::FetchAdd(1);
    let last = (1 << 44) - 4;
    for (operation, refused) in [
        (read(0, 0), Refused::BadLength),
        (read(0, 10_001), Refused::BadLength),
        (Operation::Write { address: 0, bytes: &[] }, Refused::BadLength),
        (Operation::Free { address: 4_096, bytes: 0 }, Refused::BadLength),
        (read(u64::MAX - 1, 2), Refused::BadAddress),
        (read(1 << 48, 1), Refused::BadAddress),
        // The range would go on in pages of another size.
        (read(last, 8), Refused::BadAddress),
        (Operation::Modify { address: 4, change }, Refused::Unaligned),
        (Operation::Lock { address: 7 }, Refused::Unaligned),
    ] {
        assert_eq!(world.submit(0, 0, 0, operation), Err(refused), "{operation:?}");
    }
    assert_eq!(world.submit(0, 4, 0, read(0, 1)), Err(Refused::NoSuchEnd));
    let now = world.now;
    assert_eq!(world.clients[0].submit(0, 1, 0, read(0, 1), now), Err(Refused::NoSuchEnd));
    let address = world.boards[0].alloc(1);
    for tag in 0..3 {
        world.submit(0, 0, tag, read(address, 1)).unwrap();
    }
    assert_eq!(world.submit(0, 0, 3, read(address, 1)), Err(Refused::Full), "the thread");
    world.submit(0, 1, 3, read(address, 1)).unwrap();
    assert_eq!(world.submit(0, 2, 4, read(address, 1)), Err(Refused::Full), "the client");
    assert_eq!(world.finish().len(), 4);
    world.submit(0, 2, 4, read(address, 1)).unwrap();
    let counters = world.clients[0].counters();
    assert_eq!((counters.requests, counters.refused, counters.done), (5, 13, 4));
}

#[test]
fn data_of_all_requests_together_is_limited() {
    let config = Config { buffer_bytes_max: 1_000, ..config() };
    let mut world = World::new(&config, 1, 1, Moods::default(), 1);
    let address = world.boards[0].alloc(1);
    let write = Operation::Write { address, bytes: &[1; 600] };
    world.submit(0, 0, 0, write).unwrap();
    assert_eq!(world.submit(0, 0, 1, Operation::Read { address, bytes: 401 }), Err(Refused::Full));
    world.submit(0, 0, 1, Operation::Read { address, bytes: 400 }).unwrap();
    assert_eq!(world.finish().len(), 2);
    world.submit(0, 0, 0, write).unwrap();
}

/// A part that is still on its way could undo a later write, so the refusal of another part is no end.
#[test]
fn a_refused_write_ends_when_nothing_of_it_is_on_its_way() {
    let mut refused = 0;
    for seed in 0..300 {
        let mut world = World::new(&config(), 1, 1, Moods::default(), seed);
        let address = world.boards[0].alloc(2);
        let edge = address + 4_096;
        // The congestion window opens.
        for tag in 0..20 {
            world.submit(0, 0, tag, Operation::Write { address: edge, bytes: &[0; 8] }).unwrap();
        }
        world.submit(0, 0, 20, Operation::Free { address, bytes: 4_096 }).unwrap();
        world.finish();
        world.faults.delayed = 200;
        let end = ends(
            &mut world,
            &[
                Operation::Write { address: edge - 8, bytes: &[1; 16] },
                Operation::Write { address: edge, bytes: &[2; 8] },
            ],
        );
        assert_eq!(end[1], Ended::Done, "seed {seed}");
        match end[0] {
            Ended::Refused(Status::NoSuchAddress) => {
                refused += 1;
                assert_eq!(world.boards[0].word(edge), u64::from_le_bytes([2; 8]), "seed {seed}");
            }
            ref other => assert_eq!(*other, Ended::Unknown, "seed {seed}"),
        }
    }
    assert!(refused > 100, "{refused}");
}

/// The packet that `client` sends next, with its seat.
pub fn sent(client: &mut Client, now: Nanos) -> Option<(u16, Header)> {
    let mut out = Vec::new();
    let board = client.poll_link(now, &mut out)?;
    Some((board, packet::parse_intact(&out).unwrap().header))
}

/// A flipped bit makes an answer look like a NACK, although its request may have been executed.
#[test]
fn a_damaged_answer_is_no_nack() {
    let mut client = Client::new(config(), &[credentials(0)], 1);
    let address = PageSize::K4.address_of(1);
    client.submit(0, 0, 5, Operation::Write { address, bytes: &[1; 8] }, Nanos(0)).unwrap();
    let mut out = Vec::new();
    let answer = |header: Header, status: Status, out: &mut Vec<u8>| {
        let header = Header { kind: Kind::Answer as u8, code: status as u8, length: 0, ..header };
        packet::compose(&header, &[], out);
    };
    let (_, first) = sent(&mut client, Nanos(0)).unwrap();
    answer(first, Status::Done, &mut out);
    out[0] ^= Kind::Answer as u8 ^ Kind::Nack as u8;
    assert!(packet::parse(&out).is_ok_and(|packet| packet.kind == Kind::Nack) && !packet::is_intact(&out));
    client.handle_link((0, &out), Nanos(1_000), Nanos(1_000));
    let (_, again) = sent(&mut client, Nanos(1_000)).unwrap();
    assert_eq!((again.id, again.attempt), (first.id, 1));
    answer(again, Status::NotPermitted, &mut out);
    client.handle_link((0, &out), Nanos(2_000), Nanos(2_000));
    assert_eq!(client.poll_completion(), Some((5, Outcome::Unknown)));
}

/// A retry has the room of the packet that was lost. It must come while its board remembers, whatever another board's answers wait for.
#[test]
fn a_retry_does_not_wait_for_another_boards_answers() {
    let all = [0, 1, 2].map(credentials);
    // Answers of 750 bytes may be on their way.
    let mut client = Client::new(Config { link_bps: 1_000_000_000, ..config() }, &all, 1);
    let address = PageSize::K4.address_of(1);
    let us = Nanos::from_micros;
    client.submit(0, 2, 0, Operation::Write { address, bytes: &[1; 8] }, us(0)).unwrap();
    let (board, first) = sent(&mut client, us(0)).unwrap();
    assert_eq!(board, 2);
    client.submit(1, 0, 1, Operation::Read { address, bytes: 256 }, us(4)).unwrap();
    assert_eq!(sent(&mut client, us(4)).unwrap().0, 0);
    client.submit(2, 1, 2, Operation::Read { address, bytes: 512 }, us(4)).unwrap();
    assert_eq!(sent(&mut client, us(4)), None, "it waits for room");
    client.handle_timeout(us(8));
    assert_eq!(client.next_link(), Some(Nanos::ZERO));
    let (board, again) = sent(&mut client, us(8)).unwrap();
    assert_eq!((board, again.id, again.attempt), (2, first.id, 1));
    assert_eq!(sent(&mut client, us(8)), None, "the other one still waits");
}
