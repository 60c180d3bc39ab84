//! Loom tries the interleavings of a thread and an engine, with the library's own sources over loom's atomics.

#![allow(clippy::unwrap_used, dead_code, missing_docs)]

mod sync {
    pub use loom::sync::atomic::{AtomicU64, Ordering};
}
#[path = "../src/client.rs"]
mod client;
#[path = "../src/group.rs"]
mod group;
#[path = "../src/words.rs"]
mod words;

use client::{Client, Refused};
use loom::model::Builder;
use loom::sync::Arc;
use loom::thread;
use p4rack_wire::cowbird::{ENTRIES_AT, Entry, GREEN_AT, Kind, Layout, RED_AT, Red, RequestId};
use std::ops::Deref;
use sync::AtomicU64;

const LAYOUT: Layout = Layout { entries: 2, request_bytes: 16, response_bytes: 16 };

/// A set's words, which thread and engine share.
struct Words(Arc<Vec<AtomicU64>>);

impl Deref for Words {
    type Target = [AtomicU64];
    fn deref(&self) -> &[AtomicU64] {
        &self.0
    }
}

/// How an engine detects the next entry.
#[derive(Clone, Copy, PartialEq)]
enum Looks {
    /// The tail says so.
    AtTail,
    /// The entry has the id that the next one has to have. It never looks at the tail.
    AtEntry,
}

/// An engine with a remote memory of one word, that serves `requests` requests with RDMA operations.
fn engine(words: &[AtomicU64], requests: u64, looks: Looks) {
    let mut remote = [0; 8];
    let mut red = Red::parse(&[0; Red::BYTES]).unwrap();
    while red.request_head < requests {
        if looks == Looks::AtTail {
            let mut tail = [0; 8];
            words::read(words, GREEN_AT as usize, &mut tail).unwrap();
            if u64::from_be_bytes(tail) == red.request_head {
                thread::yield_now();
                continue;
            }
        }
        let mut bytes = [0; Entry::BYTES];
        words::read(words, LAYOUT.entry_at(red.request_head) as usize, &mut bytes).unwrap();
        let entry = Entry::parse(&bytes).unwrap();
        let next = match entry.rw_type {
            1 => RequestId::new(Kind::Read, entry.region_id, red.read_progress + 1),
            _ => RequestId::new(Kind::Write, entry.region_id, red.write_progress + 1),
        };
        if looks == Looks::AtEntry && entry.request_id != next.0 {
            thread::yield_now();
            continue;
        }
        assert_eq!(entry.request_id, next.0);
        let kind = Kind::of(entry.rw_type).expect("an entry that is there is filled");
        assert_eq!(entry.length, 8);
        match kind {
            Kind::Read => {
                words::write(words, entry.resp_addr as usize, &remote).unwrap();
                red.read_progress += 1;
            }
            Kind::Write => {
                words::read(words, entry.req_addr as usize, &mut remote).unwrap();
                red.write_progress += 1;
                red.request_data_head += 8;
            }
        }
        red.request_head += 1;
        let mut block = [0; Red::BYTES];
        red.emit(&mut block);
        words::write(words, RED_AT as usize, &block).unwrap();
    }
}

/// Each round writes a value and reads it back, as two requests or, with `overlapped`, without waiting in between.
fn explore(rounds: u64, overlapped: bool, looks: Looks) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(move || {
        let count = (LAYOUT.bytes() / 8) as usize;
        let words = Arc::new((0..count).map(|_| AtomicU64::new(0)).collect::<Vec<_>>());
        let theirs = words.clone();
        let serving = thread::spawn(move || engine(&theirs, 2 * rounds, looks));
        let mut client = Client::new(Words(words), LAYOUT, vec![64]).unwrap();
        let poll = client.poll_create();
        for round in 1..=rounds {
            let value = [round as u8; 8];
            let wait = |client: &mut Client<Words>, requests: usize| {
                let (mut done, mut read) = (0, None);
                while done < requests {
                    done += client
                        .poll(poll, requests, |response| {
                            if let Some(data) = response.data {
                                read = Some(data.to_vec());
                            }
                        })
                        .unwrap();
                    thread::yield_now();
                }
                read
            };
            let write = loop {
                match client.async_write(0, &value, 0) {
                    Ok(id) => break id,
                    Err(Refused::RequestsFull | Refused::RequestDataFull) => thread::yield_now(),
                    Err(other) => panic!("{other}"),
                }
            };
            client.poll_add(poll, write).unwrap();
            if !overlapped {
                assert_eq!(wait(&mut client, 1), None);
            }
            let read = loop {
                match client.async_read(0, 0, 8) {
                    Ok(id) => break id,
                    Err(Refused::RequestsFull) => thread::yield_now(),
                    Err(other) => panic!("{other}"),
                }
            };
            client.poll_add(poll, read).unwrap();
            assert_eq!(wait(&mut client, if overlapped { 2 } else { 1 }), Some(value.to_vec()));
        }
        serving.join().unwrap();
    });
}

#[test]
fn a_request_is_seen_whole_and_so_is_its_response() {
    assert_eq!(ENTRIES_AT % 8, 0);
    explore(1, true, Looks::AtTail);
}

/// Two rounds use each entry and each place of the data rings again.
#[test]
fn places_that_are_used_again_hold_what_was_written_last() {
    explore(2, false, Looks::AtTail);
}

#[test]
fn an_entry_with_the_next_id_is_whole_whatever_the_tail_says() {
    explore(1, true, Looks::AtEntry);
}

/// The entry of the lap before has another id, and so has one that is half written.
#[test]
fn an_entry_that_is_used_again_is_seen_whole_by_its_id() {
    explore(2, false, Looks::AtEntry);
}
