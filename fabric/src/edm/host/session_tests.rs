//! Compute and memory nodes that restart, refuse, or lose the opening of a session.

use super::compute::{self, Outcome, Request};
use super::memory::{self, Region, Rights};
use crate::Machine as _;
use p4rack_wire::Nanos;
use p4rack_wire::edm::{Control, Kind, Message, OPEN, Opcode, Status, VERSION};

const KEY: u32 = 7;
/// Number of the compute node, and of the memory node.
const COMPUTE: u16 = 4;
const MEMORY: u16 = 3;

/// A memory node with 64 bytes, whose first session has this number.
fn memory(first_session: u16) -> memory::MemoryNode {
    let region =
        Region { start: 0, bytes: vec![0; 64], key: KEY, rights: Rights { read: true, write: true } };
    memory::MemoryNode::new(memory::Config { first_session, ..memory::Config::default() }, vec![region])
        .unwrap()
}

fn compute(incarnation: u64) -> compute::ComputeNode {
    compute::ComputeNode::new(compute::Config::default(), incarnation)
}

fn ask(node: &mut compute::ComputeNode, request: Request, now: Nanos) -> u64 {
    node.handle_request(MEMORY, KEY, 0, request, now).unwrap()
}

/// Messages of the node, with each notification granted immediately.
pub(super) fn sent(node: &mut compute::ComputeNode, now: Nanos) -> Vec<Vec<u8>> {
    let (mut out, mut all) = (Vec::new(), Vec::new());
    while node.poll_link(now, &mut out).is_some() {
        if Kind::of(out[0]) == Ok(Kind::Notify) {
            let notify = Control::parse(&out).unwrap();
            let mut grant = [0; Control::BYTES];
            Control { kind: Kind::Grant as u8, ..notify }.emit(&mut grant);
            node.handle_link((MEMORY, &grant), now, now);
        } else {
            all.push(out.clone());
        }
    }
    all
}

fn take(memory: &mut memory::MemoryNode, messages: &[Vec<u8>], now: Nanos) {
    messages.iter().for_each(|message| memory.handle_link((COMPUTE, message), now, now));
}

fn answered(memory: &mut memory::MemoryNode, now: Nanos) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    std::iter::from_fn(|| memory.poll_link(now, &mut out).map(|_| out.clone())).collect()
}

/// Carries messages both ways until there are none.
fn settle(node: &mut compute::ComputeNode, memory: &mut memory::MemoryNode, now: Nanos) {
    loop {
        let messages = sent(node, now);
        take(memory, &messages, now);
        let answers = answered(memory, now);
        answers.iter().for_each(|answer| node.handle_link((MEMORY, answer), now, now));
        if messages.is_empty() && answers.is_empty() {
            return;
        }
    }
}

fn ended(node: &mut compute::ComputeNode) -> Vec<(u64, Outcome)> {
    std::iter::from_fn(|| node.poll_completion()).collect()
}

fn word(byte: u8) -> Request {
    Request::Write(vec![byte; 8])
}

#[test]
fn a_node_that_starts_again_is_served_however_far_apart_its_starts_are() {
    let (mut memory, now) = (memory(u16::MAX - 1), Nanos::ZERO);
    let starts = [0, 1, 33_000, 98_000, 65_535, 2, u64::MAX, 1 << 63, 40_000, 7];
    for (nth, start) in starts.into_iter().enumerate() {
        let mut node = compute(start);
        let byte = nth as u8 + 1;
        let tokens = [ask(&mut node, word(byte), now), ask(&mut node, Request::Read(8), now)];
        settle(&mut node, &mut memory, now);
        let mut all = ended(&mut node);
        all.sort_by_key(|(token, _)| *token);
        assert_eq!(all[0], (tokens[0], Outcome::Sent), "start {start}");
        assert!(matches!(all[1], (_, Outcome::Answer(_))), "start {start}: {all:?}");
        assert_eq!(memory.regions()[0].bytes[..8], [byte; 8], "start {start}");
    }
    let counters = memory.counters();
    assert_eq!((counters.stale, counters.restarts, counters.offers), (0, 9, 10));
}

/// Messages from before a node's restart count until its successor uses its own session, and never after that.
#[test]
fn messages_of_a_start_that_is_over_change_nothing() {
    let (mut memory, now) = (memory(1), Nanos::ZERO);
    let mut first = compute(90_000);
    ask(&mut first, word(1), now);
    settle(&mut first, &mut memory, now);
    ask(&mut first, word(2), now);
    ask(&mut first, Request::Modify(Opcode::FetchAdd, [1, 0]), now);
    let late = sent(&mut first, now);
    assert_eq!(late.len(), 2);
    // Its successor has its session, and has not used it yet.
    let mut second = compute(5);
    ask(&mut second, word(3), now);
    take(&mut memory, &sent(&mut second, now), now);
    take(&mut memory, &late[1..], now);
    assert_eq!(memory.regions()[0].bytes[..8], [2; 8]);
    settle(&mut second, &mut memory, now);
    assert_eq!(memory.regions()[0].bytes[..8], [3; 8]);
    // Now nothing of the first one counts, whether it was seen or not.
    take(&mut memory, &late, now);
    assert_eq!(memory.regions()[0].bytes[..8], [3; 8]);
    assert_eq!((memory.counters().stale, memory.counters().modifies), (2, 0));
    // The NULL response to the atomic operation is not for the second one, though ids are the same.
    ask(&mut second, Request::Modify(Opcode::Swap, [9, 0]), now);
    settle(&mut second, &mut memory, now);
    let all = ended(&mut second);
    assert!(matches!(all[..], [(_, Outcome::Sent), (_, Outcome::Answer(_))]), "{all:?}");
    assert_eq!(second.counters().answers_unasked, 1);
}

/// Copies of openings, late ones, and made up sessions don't end the one that is under way.
#[test]
fn no_opening_ends_a_session() {
    let (mut memory, now) = (memory(1), Nanos::ZERO);
    let mut node = compute(1);
    ask(&mut node, word(1), now);
    let opening = sent(&mut node, now);
    take(&mut memory, &opening, now);
    take(&mut memory, &opening, now);
    assert_eq!((memory.counters().offers, memory.counters().copies), (1, 1));
    settle(&mut node, &mut memory, now);
    let session = memory.session(COMPUTE);
    for nth in 0..1_000u16 {
        let mut bytes = opening[0].clone();
        let forged =
            Message { address: 500 + u64::from(nth), id: nth, ..Message::parse(&opening[0]).unwrap() };
        forged.emit(&mut bytes);
        take(&mut memory, &[bytes], now);
        answered(&mut memory, now);
        let made_up = Message { kind: Kind::Wreq as u8, code: 0, total: 8, bytes: 8, ..forged };
        let mut bytes = vec![9; Message::BYTES + 8];
        Message { start: 20_000 + nth, key: KEY, address: 0, ..made_up }.emit(&mut bytes);
        take(&mut memory, &[bytes], now);
    }
    assert_eq!((memory.session(COMPUTE), memory.counters().stale), (session, 1_000));
    ask(&mut node, word(2), now);
    ask(&mut node, Request::Read(8), now);
    settle(&mut node, &mut memory, now);
    assert_eq!((ended(&mut node).len(), memory.regions()[0].bytes[0]), (3, 2));
    assert_eq!(node.counters().sessions_lost, 0);
}

/// An opening with another length or code is malformed.
#[test]
fn openings_have_one_form() {
    let mut memory = memory(1);
    for (code, total) in [(OPEN, 8), (OPEN, 17), (OPEN + 1, 16)] {
        let mut bytes = vec![0; Message::BYTES];
        let (version, kind) = (VERSION, Kind::Rreq as u8);
        let (offset, none) = (0, 0);
        Message { version, kind, code, id: 0, key: 0, address: 0, total, offset, bytes: none, start: 0 }
            .emit(&mut bytes);
        take(&mut memory, &[bytes], Nanos::ZERO);
    }
    assert_eq!((memory.counters().malformed, memory.counters().offers), (3, 0));
}

/// A memory node that starts again knows no session. Reads are repeated, and the outcome of other operations is
/// unknown; requests from before the restart don't take effect again.
#[test]
fn a_memory_node_that_starts_again_is_reached_again() {
    let (mut first, now) = (memory(1), Nanos::ZERO);
    let mut node = compute(1);
    ask(&mut node, Request::Modify(Opcode::FetchAdd, [1, 0]), now);
    let opening = sent(&mut node, now);
    take(&mut first, &opening, now);
    answered(&mut first, now).iter().for_each(|answer| node.handle_link((MEMORY, answer), now, now));
    let add = sent(&mut node, now);
    take(&mut first, &add, now);
    answered(&mut first, now).iter().for_each(|answer| node.handle_link((MEMORY, answer), now, now));
    assert_eq!((ended(&mut node).len(), first.counters().modifies), (1, 1));

    let mut second = memory(1_000);
    take(&mut second, &add, now);
    assert_eq!((second.counters().modifies, second.counters().stale), (0, 1));
    answered(&mut second, now);
    let read = ask(&mut node, Request::Read(8), now);
    let add = ask(&mut node, Request::Modify(Opcode::FetchAdd, [1, 0]), now);
    let write = ask(&mut node, word(5), now);
    settle(&mut node, &mut second, now);
    let mut all = ended(&mut node);
    all.sort_by_key(|(token, _)| *token);
    assert_eq!(all[0], (read, Outcome::Answer(vec![0; 8])));
    assert_eq!(all[1], (add, Outcome::Null));
    assert_eq!(all[2].0, write);
    assert_eq!((node.counters().sessions_lost, second.counters().modifies), (1, 0));
    ask(&mut node, word(6), now);
    settle(&mut node, &mut second, now);
    assert_eq!((ended(&mut node).len(), second.regions()[0].bytes[0]), (1, 6));
}

/// A read that each session refuses, because the memory node has started again since, ends after its retries.
#[test]
fn a_read_that_no_session_takes_ends() {
    let (mut node, now) = (compute(1), Nanos::ZERO);
    let read = ask(&mut node, Request::Read(8), now);
    let (mut asked, mut out) = (0, Vec::new());
    for start in 1..20 {
        let mut memory = memory(100 * start);
        for message in sent(&mut node, now) {
            asked += usize::from(Message::parse(&message).unwrap().code != OPEN);
            take(&mut memory, &[message], now);
        }
        while memory.poll_link(now, &mut out).is_some() {
            node.handle_link((MEMORY, &out), now, now);
        }
    }
    assert_eq!((ended(&mut node), asked), (vec![(read, Outcome::Null)], 4), "once and three times again");
    assert_eq!((node.session(MEMORY), node.session(MEMORY + 1)), (None, None));
    node.begin_session(MEMORY, 9);
    assert_eq!(node.session(MEMORY), Some(9));
}

/// Writes have no answer of their own: the next answer says that one was refused, and why.
#[test]
fn who_writes_learns_what_was_refused() {
    let (mut memory, now) = (memory(1), Nanos::ZERO);
    let mut node = compute(1);
    node.handle_request(MEMORY, KEY + 1, 0, word(1), now).unwrap();
    node.handle_request(MEMORY, KEY, 60, word(1), now).unwrap();
    settle(&mut node, &mut memory, now);
    assert_eq!((ended(&mut node).len(), memory.regions()[0].bytes[0]), (2, 0));
    assert_eq!((node.counters().writes_refused, node.refused_why(MEMORY)), (0, None));
    for _ in 0..2 {
        ask(&mut node, Request::Read(8), now);
        settle(&mut node, &mut memory, now);
        assert_eq!(node.counters().writes_refused, 2);
        assert_eq!(node.refused_why(MEMORY), Some(Status::NoSuchAddress));
    }
    // So does a NULL response.
    node.handle_request(MEMORY, KEY + 1, 0, word(1), now).unwrap();
    node.handle_request(MEMORY, KEY + 1, 0, Request::Read(8), now).unwrap();
    settle(&mut node, &mut memory, now);
    assert_eq!((node.counters().writes_refused, node.refused_why(MEMORY)), (3, Some(Status::WrongKey)));
    // Each session has its own.
    let mut next = compute(2);
    ask(&mut next, Request::Read(8), now);
    settle(&mut next, &mut memory, now);
    ask(&mut next, Request::Read(8), now);
    settle(&mut next, &mut memory, now);
    assert_eq!((next.counters().answers, next.counters().writes_refused), (2, 0));
    assert_eq!(next.refused_why(MEMORY), None);
}

/// A node that only writes asks for itself, and learns that way that the memory node has started again.
#[test]
fn who_only_writes_learns_it_too() {
    let config = compute::Config { confirm: Some(Nanos(1_000)), ..compute::Config::default() };
    let (mut node, mut first, mut now) = (compute::ComputeNode::new(config, 1), memory(1), Nanos::ZERO);
    let mut write = |node: &mut compute::ComputeNode, memory: &mut memory::MemoryNode, key| {
        node.handle_request(MEMORY, key, 0, word(1), now).unwrap();
        settle(node, memory, now);
        assert_eq!(node.next_timeout(), Some(now + Nanos(1_000)), "one question for all writes until then");
        now += Nanos(1_000);
        node.handle_timeout(now);
        settle(node, memory, now);
        assert_eq!(node.next_timeout(), None);
        (node.counters().writes_refused, node.counters().sessions_lost)
    };
    assert_eq!(write(&mut node, &mut first, KEY), (0, 0));
    assert_eq!(write(&mut node, &mut first, KEY + 1), (1, 0));
    let mut second = memory(1_000);
    assert_eq!(write(&mut node, &mut second, KEY), (1, 1));
    assert_eq!(second.counters().stale, 1);
    assert_eq!(write(&mut node, &mut second, KEY), (1, 1));
    assert_eq!(second.counters().writes, 1);
    // Without an answer it gives up in the end.
    node.handle_request(MEMORY, KEY, 0, word(1), now).unwrap();
    sent(&mut node, now);
    let mut openings = 0;
    while let Some(at) = node.next_timeout() {
        node.handle_timeout(at);
        openings += sent(&mut node, at).len();
    }
    assert_eq!((node.counters().unconfirmed, openings), (1, 4), "once and three times again");
}

/// Without a session, waiting requests end when they would have ended with one: reads after a timeout, writes after
/// their retries.
#[test]
fn without_a_session_everything_ends() {
    let (mut node, timeout) = (compute(1), compute::Config::default().timeout);
    let read = ask(&mut node, Request::Read(8), Nanos::ZERO);
    let write = ask(&mut node, word(1), Nanos::ZERO);
    let (mut ends, mut openings) = (Vec::new(), 0);
    while let Some(at) = node.next_timeout() {
        openings += sent(&mut node, at).len();
        node.handle_timeout(at);
        ends.extend(ended(&mut node).into_iter().map(|(token, outcome)| (at, token, outcome)));
    }
    let after = |times| Nanos(timeout.0 * times);
    assert_eq!(ends, [(after(1), read, Outcome::Null), (after(4), write, Outcome::Null)]);
    assert_eq!((openings, node.counters().timeouts), (4, 2));
}

/// A lost answer to an opening costs time, and nothing else.
#[test]
fn an_opening_is_asked_for_again() {
    let (mut node, mut memory) = (compute(1), memory(1));
    let write = ask(&mut node, word(1), Nanos::ZERO);
    take(&mut memory, &sent(&mut node, Nanos::ZERO), Nanos::ZERO);
    answered(&mut memory, Nanos::ZERO);
    let at = node.next_timeout().unwrap();
    node.handle_timeout(at);
    settle(&mut node, &mut memory, at);
    assert_eq!((ended(&mut node), memory.regions()[0].bytes[0]), (vec![(write, Outcome::Sent)], 1));
}

/// An answer to the opening of an earlier start opens nothing, and is not in the way of the right one.
#[test]
fn an_answer_to_an_earlier_start_opens_nothing() {
    let (mut memory, now) = (memory(1), Nanos::ZERO);
    let [mut first, mut second] = [7, 8].map(compute);
    for node in [&mut first, &mut second] {
        ask(node, Request::Read(8), now);
    }
    take(&mut memory, &sent(&mut first, now), now);
    let late = answered(&mut memory, now);
    take(&mut memory, &sent(&mut second, now), now);
    let right = answered(&mut memory, now);
    second.handle_link((MEMORY, &late[0]), now, now);
    assert_eq!((second.counters().answers_unasked, second.session(MEMORY)), (1, None));
    second.handle_link((MEMORY, &right[0]), now, now);
    assert_eq!((second.counters().answers_unasked, second.session(MEMORY)), (1, Some(2)));
}

/// Writes of the same bytes leave in the order in which they were asked for, others at the same time.
#[test]
fn writes_of_the_same_bytes_keep_their_order() {
    let ids = |keep_order| {
        let config = compute::Config { keep_order, active_per_pair: 3, ..compute::Config::default() };
        let mut node = compute::ComputeNode::new(config, 1);
        node.begin_session(MEMORY, 0);
        for address in [0, 7, 8] {
            node.handle_request(MEMORY, KEY, address, word(1), Nanos::ZERO).unwrap();
        }
        let mut out = Vec::new();
        let mut notified = 0;
        while node.poll_link(Nanos::ZERO, &mut out).is_some() {
            notified += usize::from(Kind::of(out[0]) == Ok(Kind::Notify));
        }
        notified
    };
    assert_eq!((ids(true), ids(false)), (1, 3));
    let (mut node, mut memory) = (compute(1), memory(1));
    for (address, byte) in [(0, 1), (7, 2), (8, 3), (0, 4)] {
        node.handle_request(MEMORY, KEY, address, word(byte), Nanos::ZERO).unwrap();
    }
    settle(&mut node, &mut memory, Nanos::ZERO);
    assert_eq!(memory.regions()[0].bytes[..16], [[4; 8], [3; 8]].concat());
}

/// A place is free again once a requester was quiet for long; its next message is of no session.
#[test]
fn requesters_are_bounded() {
    let mut memory = memory(1);
    let open = |memory: &mut memory::MemoryNode, from: u16, at| {
        let mut node = compute(from.into());
        ask(&mut node, word(1), at);
        let messages = sent(&mut node, at);
        messages.iter().for_each(|message| memory.handle_link((from, message), at, at));
        let answers = answered(memory, at);
        answers.iter().for_each(|answer| node.handle_link((MEMORY, answer), at, at));
        sent(&mut node, at).iter().for_each(|message| memory.handle_link((from, message), at, at));
    };
    for from in 0..1_025 {
        open(&mut memory, from, Nanos::from_secs(1));
    }
    assert_eq!((memory.counters().writes, memory.counters().overflows), (1_024, 1));
    open(&mut memory, 1_024, Nanos::from_secs(11));
    assert_eq!(memory.counters().writes, 1_024);
    open(&mut memory, 1_024, Nanos(11_000_000_001));
    assert_eq!((memory.counters().writes, memory.session(0)), (1_025, None));
}
