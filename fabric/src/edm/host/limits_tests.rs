//! A memory node's state for its requesters is limited. A place is free again once its message has left, was replaced,
//! or belongs to an ended session.

use super::memory::{self, Config, Region, Rights};
use super::tests::memory;
use crate::Machine as _;
use p4rack_wire::Nanos;
use p4rack_wire::edm::{Control, GRANTED_LATER, Kind, Message, Status, VERSION};
use p4rack_wire::ethernet::{Ethernet, Vlan, overhead};

const KEY: u32 = 7;

fn node(config: Config) -> memory::MemoryNode {
    let rights = Rights { read: true, write: true };
    memory(config, Region { start: 0, bytes: vec![3; 70_000], key: KEY, rights })
}

/// A read of session 0, whose answer is granted after `wait` nanoseconds.
fn read(id: u16, total: u32, wait: u32) -> Message {
    let (version, kind) = (VERSION, Kind::Rreq as u8);
    Message { version, kind, code: 0, id, key: KEY, address: 0, total, offset: wait, bytes: 0, start: 0 }
}

/// Eight bytes of a write of session 0.
fn chunk(id: u16, total: u32, offset: u32) -> Message {
    Message { kind: Kind::Wreq as u8, offset, bytes: 8, ..read(id, total, 0) }
}

fn take(node: &mut memory::MemoryNode, from: u16, message: Message) {
    let mut bytes = vec![9; Message::BYTES + usize::from(message.bytes)];
    message.emit(&mut bytes);
    node.handle_link((from, &bytes), Nanos::ZERO, Nanos::ZERO);
}

/// Grants bytes of the answer with this id to requester 0.
fn grant(node: &mut memory::MemoryNode, id: u16, offset: u32, bytes: u32) {
    let mut grant = [0; Control::BYTES];
    Control { version: VERSION, kind: Kind::Grant as u8, answer: 1, id, offset, bytes, wait: 0 }
        .emit(&mut grant);
    node.handle_link((0, &grant), Nanos::ZERO, Nanos::ZERO);
}

/// Destination and id of each message that leaves until `now`.
fn leave(node: &mut memory::MemoryNode, now: u64) -> Vec<(u16, u16)> {
    let mut out = Vec::new();
    std::iter::from_fn(|| Some((node.poll_link(Nanos(now), &mut out)?, Message::parse(&out).unwrap().id)))
        .collect()
}

/// Reads that were accepted, and those for which there was no place.
fn reads(node: &memory::MemoryNode) -> (u64, u64) {
    (node.counters().reads, node.counters().refused[Status::Busy as usize])
}

#[test]
fn regions_may_touch_and_not_overlap() {
    let region = |start: u64, bytes: usize| {
        let rights = Rights { read: true, write: true };
        Region { start, bytes: vec![0; bytes], key: KEY, rights }
    };
    let new = |regions: [Region; 2]| memory::MemoryNode::new(Config::default(), regions.to_vec()).map(|_| ());
    assert_eq!(new([region(64, 8), region(56, 8)]), Ok(()));
    assert_eq!(new([region(64, 8), region(57, 8)]), Err("regions at 0x39 and 0x40 overlap".into()));
    assert_eq!(new([region(0, 8), region(u64::MAX - 8, 8)]), Ok(()));
    assert!(new([region(0, 8), region(u64::MAX - 6, 8)]).is_err());
}

#[test]
fn lengths_and_waiting_bytes_are_accepted_up_to_their_limits() {
    let mut node = node(Config { message_bytes_max: 8, answer_bytes_max: 16, ..Config::default() });
    let mut asked = |id: u16, total: u32| {
        take(&mut node, 0, read(id, total, 0));
        let (accepted, busy) = reads(&node);
        (accepted, busy, node.counters().refused[Status::BadLength as usize])
    };
    assert_eq!(asked(0, 9), (0, 0, 1));
    assert_eq!(asked(1, 0), (0, 0, 2));
    assert_eq!(asked(2, 8), (1, 0, 2));
    assert_eq!(asked(3, 8), (2, 0, 2), "sixteen bytes wait");
    assert_eq!(asked(4, 1), (2, 1, 2));
    let mut out = Vec::new();
    while reads(&node) == (2, 1) {
        // The refusals leave first or last; a departed answer makes room for one.
        node.poll_link(Nanos::ZERO, &mut out).unwrap();
        if out.len() > Message::BYTES {
            take(&mut node, 0, read(5, 8, 0));
        }
    }
    take(&mut node, 0, read(6, 1, 0));
    assert_eq!(reads(&node), (3, 2), "eight bytes have left, and eight have come");
}

#[test]
fn copies_of_requests_are_counted_and_not_answered() {
    let mut node = node(Config::default());
    for id in [0, 0, 2, 1, 2, 0, 0] {
        take(&mut node, 0, read(id, 8, 0));
    }
    assert_eq!((node.counters().copies, node.counters().reads), (4, 3));
    let counted = node.counters().named().into_iter().filter(|(_, count)| *count > 0);
    assert_eq!(counted.collect::<Vec<_>>(), [("reads", 3), ("copies", 4)]);
    assert_eq!(leave(&mut node, 0), [(0, 0), (0, 2), (0, 1)]);
}

/// A grant of the last bytes of an answer, and of one byte more.
#[test]
fn grants_end_with_their_answer() {
    let mut node = node(Config::default());
    take(&mut node, 0, read(0, 300, 0));
    grant(&mut node, 0, 256, 45);
    assert_eq!((leave(&mut node, 0).len(), node.counters().grants_unasked), (1, 1));
    grant(&mut node, 0, 256, 44);
    assert_eq!((leave(&mut node, 0).len(), node.counters().grants_unasked), (1, 1));
}

/// The oldest answer goes, also where ids begin again; the others, and those of other requesters, stay.
#[test]
fn a_new_answer_replaces_the_oldest_of_its_requester() {
    let config = Config { answers_max: 2, answer_bytes_max: 32, ..Config::default() };
    let mut node = node(config);
    take(&mut node, 1, read(u16::MAX, 8, 50));
    take(&mut node, 0, read(u16::MAX, 8, 50));
    take(&mut node, 0, read(0, 8, 50));
    assert_eq!(node.counters().overflows, 0);
    take(&mut node, 0, read(1, 8, 60));
    assert_eq!((node.counters().overflows, reads(&node)), (1, (4, 0)), "32 bytes waited, and 24 do");
    take(&mut node, 1, read(0, 9, 70));
    assert_eq!(reads(&node), (4, 1), "nine more are too many");
    take(&mut node, 1, read(1, 8, 70));
    assert_eq!(reads(&node), (5, 1), "eight are not");
    assert_eq!(leave(&mut node, 49), []);
    let mut left = leave(&mut node, 100);
    left.sort();
    assert_eq!(left, [(0, 0), (0, 1), (1, 0), (1, 1), (1, u16::MAX)], "(1, 0) is the refusal");

    // The same once their time has come: the first of them has left by then.
    for (from, id) in [(0, 10), (0, 11), (1, 10), (1, 11)] {
        take(&mut node, from, read(id, 4, 0));
    }
    let mut out = Vec::new();
    assert_eq!(node.poll_link(Nanos::ZERO, &mut out), Some(0));
    for id in [12, 13] {
        take(&mut node, 0, read(id, 4, 0));
    }
    assert_eq!(node.counters().overflows, 2);
    let mut left = leave(&mut node, 0);
    left.sort();
    assert_eq!(left, [(0, 12), (0, 13), (1, 10), (1, 11)]);
}

/// An id that comes round again replaces the answer that it had.
#[test]
fn an_id_that_comes_round_again_replaces_its_answer() {
    let mut node = node(Config { answer_bytes_max: 24, ..Config::default() });
    for id in [0, 30_000, 60_000, 0] {
        take(&mut node, 0, read(id, 6, GRANTED_LATER));
    }
    assert_eq!(reads(&node), (4, 0));
    take(&mut node, 0, read(1, 6, GRANTED_LATER));
    take(&mut node, 0, read(2, 1, GRANTED_LATER));
    assert_eq!(reads(&node), (5, 1));
}

/// The end of a session frees its waiting messages, and none of others.
#[test]
fn the_end_of_a_session_frees_its_place() {
    let mut node = node(Config { answer_bytes_max: 24, ..Config::default() });
    for (from, id) in [(0, 0), (1, 0), (0, 1)] {
        take(&mut node, from, read(id, 8, 50));
    }
    node.begin_session(0, 1);
    assert_eq!((node.session(0), node.session(1), node.session(99)), (Some(1), Some(0), None));
    take(&mut node, 0, Message { start: 1, ..read(0, 16, 70) });
    take(&mut node, 1, read(1, 1, 70));
    assert_eq!(reads(&node), (4, 1));
    assert_eq!(leave(&mut node, 60), [(1, 0)]);
    assert_eq!(leave(&mut node, 70), [(0, 0), (1, 1)], "(1, 1) is the refusal");
}

/// The oldest incomplete write goes, also where ids begin again, and its requester learns of it.
#[test]
fn a_new_write_replaces_the_oldest_incomplete_one() {
    let mut node = node(Config { answers_max: 2, ..Config::default() });
    for id in [u16::MAX, 0] {
        take(&mut node, 0, chunk(id, 16, 0));
    }
    assert_eq!(node.counters().overflows, 0);
    take(&mut node, 0, chunk(1, 16, 0));
    assert_eq!((node.counters().overflows, node.counters().copies), (1, 0));
    for id in [u16::MAX, 0, 1] {
        take(&mut node, 0, chunk(id, 16, 8));
    }
    assert_eq!((node.counters().writes, node.counters().copies, node.counters().overflows), (2, 1, 1));
    // One whose id comes round again before it is complete.
    for id in [10, 30_000, 60_000, 10] {
        take(&mut node, 0, chunk(id, if id == 10 { 16 } else { 8 }, 0));
    }
    assert_eq!((node.counters().writes, node.counters().overflows), (4, 2));
    take(&mut node, 0, read(0, 8, 0));
    let mut out = Vec::new();
    node.poll_link(Nanos::ZERO, &mut out).unwrap();
    let answer = Message::parse(&out).unwrap();
    assert_eq!((answer.key, answer.address), (2, Status::Incomplete as u64));
}

/// Chunks that wait for their time and those that wait for the link have one limit together.
#[test]
fn the_grant_queue_is_limited() {
    let mut node = node(Config { chunk_bytes: 1, window: 70_000, ..Config::default() });
    let mut out = Vec::new();
    take(&mut node, 0, read(0, 40_000, 0));
    assert_eq!(node.poll_link(Nanos::ZERO, &mut out), Some(0));
    take(&mut node, 0, read(1, 10, 50));
    take(&mut node, 0, read(2, 1, 50));
    take(&mut node, 0, read(3, 100, GRANTED_LATER));
    grant(&mut node, 3, 0, 10);
    assert_eq!((node.counters().overflows, node.counters().grants_unasked), (0, 0));
    take(&mut node, 0, read(4, 65_536 - 39_999 - 21, 50));
    assert_eq!(node.counters().overflows, 0);
    take(&mut node, 0, read(5, 1, 50));
    assert_eq!(node.counters().overflows, 1);
    grant(&mut node, 3, 10, 1);
    assert_eq!((node.counters().overflows, node.counters().grants_unasked), (2, 0));
    assert_eq!(node.poll_link(Nanos::ZERO, &mut out), Some(0));
    grant(&mut node, 3, 10, 1);
    assert_eq!((node.counters().overflows, node.counters().grants_unasked), (2, 0));
}

/// Requesters with short and with long answers get as many bytes of the link, headers and gaps included.
#[test]
fn requesters_share_the_link_by_its_bytes() {
    let mut node = node(Config { answers_max: 1_000, ..Config::default() });
    for id in 0..800 {
        take(&mut node, 0, read(id, 8, 0));
        take(&mut node, 1, read(id, 256, 0));
    }
    let (mut out, mut sent) = (Vec::new(), [0, 0]);
    while sent.iter().sum::<u64>() < 120_000 {
        let to = node.poll_link(Nanos::ZERO, &mut out).unwrap();
        let frame = Ethernet::BYTES + Vlan::BYTES + out.len();
        sent[usize::from(to)] += overhead::wire_bytes(frame as u64);
    }
    assert!(sent[0].abs_diff(sent[1]) < 700, "{sent:?}");
}
