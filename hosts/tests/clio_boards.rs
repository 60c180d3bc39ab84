//! One client of two boards: a region over both, processes on both, and a board that is silent or dies.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use crate::board;

use board::{with_board_and_store, with_board_that_keeps};
use p4rack_fabric::clio::lib::{Operation as Asked, Outcome as Said, Refused};
use p4rack_fabric::remote::Way;
use p4rack_hosts::Handle;
use p4rack_hosts::clio::server::Host;
use p4rack_hosts::clio::{AskError, Patience, Reply, Session, Wanted, at_board, of_board};
use p4rack_hosts::remote::{Attachment, Opcode, Operation, Outcome, Region, Remote, Shape, UnderWay, open};
use p4rack_hosts::roce::setup::Server;
use p4rack_netdev::clock;
use p4rack_wire::clio::{PageSize, Rights, Status, lock_thread};
use p4rack_wire::{Nanos, SplitMix};
use std::sync::mpsc;
use std::time::Duration;

/// Long enough for a machine that other tests keep busy.
const LIMIT: Nanos = Nanos::from_secs(60);
/// In pages of 4 KiB.
const BYTES: u64 = 1 << 19;

fn server(place: &Attachment) -> Server {
    place.memory.clone().unwrap()
}

/// Runs a test beside two boards, of the second of which it has a handle.
fn with_boards(test: impl FnOnce(&[Server; 2], Handle<Host>)) {
    with_board_and_store(BYTES, 0, |first, _| {
        with_board_and_store(BYTES, 0, |second, handle| test(&[server(first), server(second)], handle));
    });
}

fn session(servers: &[Server], reserve_bytes: u64) -> Session {
    Session::open_over(servers, Wanted::bytes(reserve_bytes), None, Patience::default()).unwrap()
}

/// A region over both boards, of what they offer to all or reserved.
fn region([first, second]: &[Server; 2], region_bytes: u64) -> Box<dyn Remote> {
    let place = Attachment {
        memory: Some(first.clone()),
        more_boards: vec![second.clone()],
        shared: region_bytes == 0,
        ..Attachment::local()
    };
    let under_way = UnderWay::of(32, 4_096);
    open(Way::CLIO, place, Shape { region_bytes, reads: under_way, writes: under_way }).unwrap().0
}

/// Random operations, most of them near the edge, against an array. The region keeps their order.
#[test]
fn a_region_over_two_boards_is_one_array() {
    for reserve_bytes in [0, 150_008] {
        with_boards(|servers, _| {
            let mut remote = region(servers, reserve_bytes);
            let bytes = remote.abilities().region_bytes;
            assert!(bytes >= reserve_bytes.max(1) && (reserve_bytes > 0 || bytes == 2 * BYTES), "{bytes}");
            let (mut model, mut random) = (vec![0u8; bytes as usize], SplitMix(7));
            let (mut wanted, mut left, until) = (Vec::new(), 0, clock::now() + LIMIT);
            for tag in 0..3_000u64 {
                let length = random.between(1, 6_000);
                let at = match random.between(0, 3) {
                    0 => random.between(0, bytes - length),
                    _ => bytes / 2 - random.between(0, length),
                };
                let place = at as usize..(at + length) as usize;
                let (operation, data);
                match random.between(0, 2) {
                    0 => {
                        wanted.push(model[place].to_vec());
                        operation = Operation::Read { at, bytes: length as u32 };
                    }
                    1 => {
                        data = vec![random.next() as u8; length as usize];
                        model[place].copy_from_slice(&data);
                        wanted.push(Vec::new());
                        operation = Operation::Write { at, bytes: &data };
                    }
                    _ => {
                        let (at, add) = (at & !7, random.next());
                        let word = model[at as usize..][..8].first_chunk_mut().unwrap();
                        wanted.push(word.to_vec());
                        *word = u64::from_le_bytes(*word).wrapping_add(add).to_le_bytes();
                        operation = Operation::Modify { at, opcode: Opcode::FetchAdd, operands: [add, 0] };
                    }
                }
                remote.submit(tag, operation).unwrap();
                left += 1;
                while left > if tag == 2_999 { 0 } else { 15 } {
                    assert!(clock::now() < until, "{left} operations have no end");
                    remote
                        .poll(until, &mut |tag, outcome| {
                            left -= 1;
                            let found = match outcome {
                                Outcome::Read(bytes) => bytes.to_vec(),
                                Outcome::Word(word) => word.to_le_bytes().to_vec(),
                                Outcome::Written => Vec::new(),
                                Outcome::Failed(status) => panic!("{tag}: {status}"),
                            };
                            assert!(found == wanted[tag as usize], "{tag}");
                        })
                        .unwrap();
                }
            }
        });
    }
}

#[test]
fn each_half_is_on_a_board_of_its_own() {
    with_boards(|servers, _| {
        let mut all = Region::new(region(servers, 0));
        all.write(BYTES - 4, b"left, right").unwrap();
        let mut halves = servers.each_ref().map(|server| session(std::slice::from_ref(server), 0));
        let [first, second] = halves.each_ref().map(|half| half.range().0);
        assert_eq!(halves[0].read(first + BYTES - 4, 4).unwrap(), b"left");
        assert_eq!(halves[1].read(second, 7).unwrap(), b", right");
    });
}

#[test]
fn each_board_has_a_process_locks_and_allocations() {
    with_boards(|servers, _| {
        // So the second board gives the next client another number than the first one.
        let mut other = session(&servers[1..], 0);
        let mut both = session(servers, 128 << 10);
        let threads = [0, 1].map(|board| both.thread_at(board).unwrap());
        assert_ne!(threads[0], threads[1]);
        let ranges: Vec<_> = both.ranges().collect();
        assert_eq!(
            ranges.iter().map(|range| (of_board(range.0).0, range.1)).collect::<Vec<_>>(),
            [(0, 64 << 10), (1, 64 << 10)]
        );
        assert_eq!(both.limit_bytes(), 256 << 10);
        // Allocations take turns, and each board frees its own.
        let taken: Vec<u64> = (0..4).map(|_| both.alloc(4_096, Rights::ALL).unwrap()).collect();
        assert_eq!(taken.iter().map(|at| of_board(*at).0).collect::<Vec<_>>(), [0, 1, 0, 1]);
        both.write(taken[1], b"second").unwrap();
        assert_eq!(both.read(taken[1], 6).unwrap(), b"second");
        taken.iter().for_each(|at| both.free(*at, 4_096).unwrap());
        // A lock on each board bears the number that this board has given.
        for (nth, (address, _)) in ranges.iter().enumerate() {
            assert_eq!(both.ask(Asked::Lock { address: *address }).unwrap(), Reply::Done, "{nth}");
            let word = both.read(*address, 8).unwrap();
            assert_eq!(lock_thread(u64::from_le_bytes(word.try_into().unwrap())), threads[nth], "{nth}");
            assert_eq!(both.ask(Asked::Unlock { address: *address }).unwrap(), Reply::Done, "{nth}");
        }
        both.fence(false).unwrap();
        assert_eq!(both.ask(Asked::Release).unwrap(), Reply::Done);
        // The second board's process takes what is shared with it there.
        let with = other.credentials();
        let shared = both.share(ranges[1].0, 4_096, (with.pid, with.epoch), Rights::ALL).unwrap();
        both.write(ranges[1].0, b"shared").unwrap();
        assert_eq!(other.read(of_board(shared).1, 6).unwrap(), b"shared");
        assert!(matches!(both.read(at_board(2, ranges[0].0), 8), Err(AskError::Refused(Refused::NoSuchEnd))));
        assert_eq!(both.credentials_at(2), None);
    });
}

#[test]
fn where_one_board_has_no_room_the_next_has() {
    with_board_and_store(64 << 10, 0, |small, _| {
        with_board_and_store(BYTES, 0, |large, _| {
            // Each process may have as much again as its range.
            let mut both = session(&[server(small), server(large)], 0);
            let mut board = |bytes| of_board(both.alloc(bytes, Rights::ALL).unwrap()).0;
            assert_eq!([40 << 10, 100 << 10, 40 << 10].map(&mut board), [0, 1, 1]);
            assert!(matches!(
                both.alloc(10 * BYTES, Rights::ALL),
                Err(AskError::Failed(Status::NoMemory | Status::NoAddressSpace))
            ));
            assert_eq!(
                of_board(both.alloc(20 << 10, Rights::ALL).unwrap()).0,
                0,
                "what is refused is not held"
            );
            // Also of those that nothing waits for; the boards' pages are smaller.
            for tag in 0..4 {
                let page_size = PageSize::M4;
                both.submit(tag, Asked::Alloc { bytes: 40 << 10, page_size, rights: Rights::ALL }).unwrap();
            }
            let (mut boards, until) = (Vec::new(), clock::now() + LIMIT);
            while both.under_way() > 0 {
                assert!(clock::now() < until, "{boards:?}");
                both.poll(until, &mut |tag, outcome| match outcome {
                    Said::Address(address) => boards.push((tag, of_board(address).0)),
                    outcome => panic!("{tag}: {outcome:?}"),
                })
                .unwrap();
            }
            boards.sort_unstable();
            assert_eq!(boards, [0, 1, 2, 3].map(|tag| (tag, 1)), "the first board has no room");
        });
    });
}

#[test]
fn a_read_that_waits_for_one_board_does_not_hold_the_other_up() {
    // The silent board's operations must not end before it speaks again: they may take 80 s.
    let (keep, timeout) = (Nanos::from_secs(600), Nanos::from_secs(5));
    let patience = Patience { timeout, retries: 16, ..Patience::default() };
    let with_boards = |test: &dyn Fn(&[Server; 2], Handle<Host>)| {
        with_board_that_keeps(keep, BYTES, |first, _| {
            with_board_that_keeps(keep, BYTES, |second, handle| {
                test(&[server(first), server(second)], handle)
            });
        });
    };
    with_boards(&|servers, second| {
        let mut both = Session::open_over(servers, Wanted::bytes(0), None, patience).unwrap();
        let addresses: Vec<u64> = both.ranges().map(|range| range.0).collect();
        // The same address on both boards.
        assert_eq!(of_board(addresses[0]).1, of_board(addresses[1]).1);
        let (silent, over) = mpsc::channel::<()>();
        second.post(move |_| _ = over.recv()).unwrap();
        both.submit(9, Asked::Write { address: addresses[1], bytes: b"late" }).unwrap();
        both.submit(10, Asked::Read { address: addresses[1], bytes: 4 }).unwrap();
        let until = clock::now() + LIMIT;
        for tag in 0..8 {
            let mut is_over = false;
            both.submit(tag, Asked::Write { address: addresses[0], bytes: b"soon" }).unwrap();
            while !is_over {
                assert!(clock::now() < until, "{tag}");
                both.poll(until, &mut |ended, outcome| {
                    assert_eq!((ended, outcome), (tag, Said::Done));
                    is_over = true;
                })
                .unwrap();
            }
        }
        assert_eq!(both.under_way(), 2);
        drop(silent);
        let mut ends = Vec::new();
        while both.under_way() > 0 {
            assert!(clock::now() < until, "{ends:?}");
            both.poll(until, &mut |tag, outcome| ends.push((tag, format!("{outcome:?}")))).unwrap();
        }
        assert_eq!(ends, [(9, "Done".to_owned()), (10, format!("{:?}", Said::Read(b"late")))]);
    });
}

#[test]
fn operations_on_a_board_that_dies_end_and_the_other_board_goes_on() {
    with_board_and_store(BYTES, 0, |first, _| {
        let mut held = None;
        with_board_and_store(BYTES, 0, |second, _| {
            let mut both = session(&[server(first), server(second)], 128 << 10);
            for (address, _) in both.ranges().collect::<Vec<_>>() {
                both.write(address, b"before").unwrap();
            }
            assert_eq!(both.ended(Duration::ZERO), None);
            held = Some(both);
        });
        let mut both = held.unwrap();
        let [here, gone] = [0, 1].map(|nth| both.ranges().nth(nth).unwrap().0);
        // One after the other, those on the dead board would take half a minute.
        const EACH: u64 = 100;
        let asked = clock::now();
        both.submit(2 * EACH + 1, Asked::Read { address: gone, bytes: 1 << 20 }).unwrap();
        for tag in 0..2 * EACH {
            let address = if tag % 2 == 0 { here } else { gone };
            both.submit(tag, Asked::Read { address, bytes: 6 }).unwrap();
        }
        let (mut ends, until) = (Vec::new(), clock::now() + LIMIT);
        while both.under_way() > 0 {
            assert!(clock::now() < until, "{ends:?}");
            both.poll(until, &mut |tag, outcome| {
                let is_right = match tag % 2 {
                    0 => outcome == Said::Read(b"before"),
                    _ => outcome == Said::Unknown,
                };
                assert!(is_right, "{tag}: {outcome:?}");
                ends.push(tag);
            })
            .unwrap();
        }
        let took = clock::now() - asked;
        assert!(took < Nanos::from_secs(10), "{took}");
        ends.sort_unstable();
        assert!(ends.iter().copied().eq((0..2 * EACH).chain([2 * EACH + 1])), "{ends:?}");
        let why = both.read(gone, 6).unwrap_err().to_string();
        assert!(why.contains("is the board running?"), "{why}");
        assert!(both.ended(Duration::from_secs(60)).is_some());
        assert_eq!(both.read(here, 6).unwrap(), b"before");
        // Allocations go to the living board although the dead one has as much left.
        for _ in 0..2 {
            assert_eq!(of_board(both.alloc(4_096, Rights::ALL).unwrap()).0, 0);
        }
        assert!(matches!(both.fence(false), Err(AskError::Unknown)));
    });
}

#[test]
fn what_several_boards_can_not_be_opened_for_is_said() {
    with_boards(|servers, _| {
        let open = |servers: &[Server], bytes| {
            Session::open_over(servers, Wanted::bytes(bytes), None, Patience::default())
                .err()
                .map(|error| error.to_string())
                .unwrap_or_default()
        };
        assert!(open(&[], 0).contains("no board"));
        assert!(open(&vec![servers[0].clone(); 65], 0).contains("at most 64"));
        // By another name, too.
        let port = servers[0].addr.rsplit_once(':').unwrap().1;
        let named = Server { addr: format!("localhost:{port}"), tls: None };
        for twice in [servers[0].clone(), named] {
            let said = open(&[servers[0].clone(), servers[1].clone(), twice], 0);
            assert!(said.contains("the same board"), "{said}");
        }
        assert!(open(servers, 100 * BYTES).contains("bytes"), "{}", open(servers, 100 * BYTES));
        let closed = Server { addr: "127.0.0.1:1".to_owned(), tls: None };
        assert!(open(&[servers[0].clone(), closed], 0).contains("127.0.0.1:1"));
    });
}
