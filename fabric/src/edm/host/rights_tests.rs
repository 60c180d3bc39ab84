//! Rules of keys, rights, regions and grants, each tested alone.

use super::compute;
use super::memory::{self, Region, Rights};
use super::session_tests::sent;
use super::tests::{compute, memory};
use crate::Machine as _;
use p4rack_wire::Nanos;
use p4rack_wire::edm::{Control, Kind, Message, Opcode, Status, VERSION};

const KEY: u32 = 7;
const START: u64 = 64;
const BYTES: u64 = 32;
/// Initial content of the region.
const OLD: u8 = 3;

/// A message for eight bytes, or for a word.
fn message(kind: Kind, key: u32, address: u64) -> Vec<u8> {
    let (code, carried) = match kind {
        Kind::Rmwreq => (Opcode::Swap as u8, 8),
        Kind::Wreq => (0, 8),
        _ => (0, 0),
    };
    let mut bytes = vec![9; Message::BYTES + usize::from(carried)];
    let (version, kind, total) = (VERSION, kind as u8, 8);
    Message { version, kind, code, id: 0, key, address, total, offset: 0, bytes: carried, start: 0 }
        .emit(&mut bytes);
    bytes
}

/// Every kind of message, with all rights, keys and places: exactly the permitted ones take effect.
#[test]
fn every_access_needs_a_key_its_rights_and_a_place() {
    let places =
        [START, START + BYTES - 8, START - 8, START + BYTES, START - 1, START + BYTES - 7, 0, u64::MAX];
    for kind in [Kind::Rreq, Kind::Wreq, Kind::Rmwreq] {
        for (read, write) in [(false, false), (false, true), (true, false), (true, true)] {
            for (key, address) in places.iter().flat_map(|address| [(KEY, *address), (KEY + 1, *address)]) {
                let rights = Rights { read, write };
                let region = Region { start: START, bytes: vec![OLD; BYTES as usize], key: KEY, rights };
                let mut node = memory(memory::Config::default(), region);
                node.handle_link((0, &message(kind, key, address)), Nanos::ZERO, Nanos::ZERO);

                let is_permitted = match kind {
                    Kind::Rreq => read,
                    Kind::Wreq => write,
                    _ => read && write,
                };
                let is_inside = (START..=START + BYTES - 8).contains(&address);
                let expected = match () {
                    () if kind == Kind::Rmwreq && address % 8 != 0 => Status::BadOperation,
                    () if !is_inside => Status::NoSuchAddress,
                    () if key != KEY => Status::WrongKey,
                    () if !is_permitted => Status::NotPermitted,
                    () => Status::Done,
                };
                let what = format!("{kind:?} at {address:#x} with key {key}, {rights:?}");
                let mut refused = [0; Status::ALL.len()];
                refused[expected as usize] = u64::from(expected != Status::Done);
                let counters = node.counters();
                assert_eq!(counters.refused, refused, "{what}");
                let done = [counters.reads, counters.writes, counters.modifies];
                let expected_done = [Kind::Rreq, Kind::Wreq, Kind::Rmwreq]
                    .map(|other| u64::from(other == kind && expected == Status::Done));
                assert_eq!(done, expected_done, "{what}");

                let mut bytes = vec![OLD; BYTES as usize];
                if expected == Status::Done && kind != Kind::Rreq {
                    bytes[(address - START) as usize..][..8].fill(9);
                }
                assert_eq!(node.regions()[0].bytes, bytes, "{what}");

                let mut out = Vec::new();
                let answer = node.poll_link(Nanos::MAX, &mut out).map(|_| {
                    let head = Message::parse(&out).unwrap();
                    (head.code, head.total, out[Message::BYTES..].to_vec())
                });
                let old = vec![OLD; if expected == Status::Done { 8 } else { 0 }];
                let expected_answer = (expected as u8, old.len() as u32, old);
                assert_eq!(answer, (kind != Kind::Wreq).then_some(expected_answer), "{what}");
            }
        }
    }
}

/// The key of each chunk counts, not only that of the first one.
#[test]
fn a_later_chunk_with_another_key_is_refused() {
    let rights = Rights { read: true, write: true };
    let region = Region { start: 0, bytes: vec![0; 16], key: KEY, rights };
    let mut node = memory(memory::Config::default(), region);
    for (offset, key) in [(0, KEY), (8, KEY + 1)] {
        let mut bytes = message(Kind::Wreq, key, 0);
        Message { total: 16, offset, ..Message::parse(&bytes).unwrap() }.emit(&mut bytes);
        node.handle_link((0, &bytes), Nanos::ZERO, Nanos::ZERO);
    }
    assert_eq!(node.regions()[0].bytes, [[9; 8], [0; 8]].concat());
    assert_eq!((node.counters().refused[Status::WrongKey as usize], node.counters().writes), (1, 0));
}

/// A write whose chunks leave too many holes is given up and counted, and its requester learns of it.
#[test]
fn a_write_with_too_many_holes_is_given_up() {
    let rights = Rights { read: true, write: true };
    let region = Region { start: 0, bytes: vec![0; 256], key: KEY, rights };
    let mut node = memory(memory::Config::default(), region);
    for offset in (16..=144).step_by(16) {
        let mut bytes = message(Kind::Wreq, KEY, 0);
        Message { total: 256, offset, ..Message::parse(&bytes).unwrap() }.emit(&mut bytes);
        node.handle_link((0, &bytes), Nanos::ZERO, Nanos::ZERO);
    }
    assert_eq!((node.counters().chunks, node.counters().gaps), (8, 1), "eight ranges may be ahead");
    node.handle_link((0, &message(Kind::Rreq, KEY, 0)), Nanos::ZERO, Nanos::ZERO);
    let mut out = Vec::new();
    node.poll_link(Nanos::ZERO, &mut out).unwrap();
    let answer = Message::parse(&out).unwrap();
    assert_eq!((answer.key, answer.address), (1, Status::Incomplete as u64));
}

fn grant(answer: u8, offset: u32, bytes: u32) -> [u8; Control::BYTES] {
    let mut grant = [0; Control::BYTES];
    Control { version: VERSION, kind: Kind::Grant as u8, answer, id: 0, offset, bytes, wait: 0 }
        .emit(&mut grant);
    grant
}

/// A grant is for the bytes that are next, for hosts that write and for those that answer: a repeated one, and one that leaves
/// bytes out, give nothing.
#[test]
fn grants_are_for_the_bytes_that_are_next() {
    let mut node = compute(compute::Config::default());
    node.handle_request(0, KEY, 0, compute::Request::Write(vec![1; 700]), Nanos::ZERO).unwrap();
    let mut out = Vec::new();
    assert_eq!(node.poll_link(Nanos::ZERO, &mut out), Some(0), "the notification");
    let mut write_sent = |offset| {
        node.handle_link((0, &grant(0, offset, 256)), Nanos::ZERO, Nanos::ZERO);
        sent(&mut node, Nanos::ZERO).len()
    };
    assert_eq!([write_sent(256), write_sent(0), write_sent(0), write_sent(512)], [0, 1, 0, 0]);
    assert_eq!([write_sent(256), write_sent(512)], [1, 0], "a whole chunk is more than what is left");
    assert_eq!(node.counters().grants_unasked, 4);

    let region =
        Region { start: 0, bytes: vec![0; 768], key: KEY, rights: Rights { read: true, write: true } };
    let mut node = memory(memory::Config::default(), region);
    let mut read = message(Kind::Rreq, KEY, 0);
    Message { total: 768, ..Message::parse(&read).unwrap() }.emit(&mut read);
    node.handle_link((0, &read), Nanos::ZERO, Nanos::ZERO);
    assert_eq!(node.poll_link(Nanos::ZERO, &mut out), Some(0), "the request is the first grant");
    let mut answer_sent = |offset| {
        node.handle_link((0, &grant(1, offset, 256)), Nanos::ZERO, Nanos::ZERO);
        node.poll_link(Nanos::ZERO, &mut out).is_some()
    };
    assert_eq!(
        [answer_sent(512), answer_sent(0), answer_sent(256), answer_sent(256)],
        [false, false, true, false]
    );
    assert!(answer_sent(512));
    assert_eq!(node.counters().grants_unasked, 3);
}

/// A read of `total` bytes.
fn read(id: u16, total: u32) -> Vec<u8> {
    let mut bytes = message(Kind::Rreq, KEY, 0);
    Message { id, total, ..Message::parse(&bytes).unwrap() }.emit(&mut bytes);
    bytes
}

fn node(config: memory::Config) -> memory::MemoryNode {
    let rights = Rights { read: true, write: true };
    memory(config, Region { start: 0, bytes: vec![OLD; 1_024], key: KEY, rights })
}

/// Each atomic operation has its number of operands.
#[test]
fn operations_have_their_number_of_operands() {
    let mut node = node(memory::Config::default());
    for (nth, (opcode, words)) in
        [(Opcode::Swap, 2), (Opcode::Cas, 1), (Opcode::Swap, 0), (Opcode::Cas, 2)].into_iter().enumerate()
    {
        let mut bytes = message(Kind::Rmwreq, KEY, 0);
        bytes.resize(Message::BYTES + 8 * words, OLD);
        let (id, code, carried) = (nth as u16, opcode as u8, 8 * words as u16);
        Message { id, code, bytes: carried, ..Message::parse(&bytes).unwrap() }.emit(&mut bytes);
        node.handle_link((0, &bytes), Nanos::ZERO, Nanos::ZERO);
    }
    assert_eq!((node.counters().refused[Status::BadOperation as usize], node.counters().modifies), (3, 1));
}

/// A grant gives a window at most: 256 bytes here.
#[test]
fn grants_are_for_a_window_at_most() {
    let mut out = Vec::new();
    let mut writer = compute(compute::Config::default());
    writer.handle_request(0, KEY, 0, compute::Request::Write(vec![1; 700]), Nanos::ZERO).unwrap();
    assert_eq!(writer.poll_link(Nanos::ZERO, &mut out), Some(0), "the notification");
    let mut answerer = node(memory::Config::default());
    answerer.handle_link((0, &read(0, 700)), Nanos::ZERO, Nanos::ZERO);
    assert_eq!(answerer.poll_link(Nanos::ZERO, &mut out), Some(0), "the request is the first grant");
    for (bytes, unasked) in [(257, 1), (0, 2), (256, 2)] {
        writer.handle_link((0, &grant(0, 0, bytes)), Nanos::ZERO, Nanos::ZERO);
        answerer.handle_link((0, &grant(1, 256, bytes)), Nanos::ZERO, Nanos::ZERO);
        let counts = (writer.counters().grants_unasked, answerer.counters().grants_unasked);
        assert_eq!(counts, (unasked, unasked), "{bytes} bytes");
    }
}
