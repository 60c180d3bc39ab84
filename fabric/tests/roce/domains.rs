//! Several queue pairs of an adapter: their domains, their removal, and the adapter's counters.

use crate::roce::network::{DOMAIN, KEY, QPN, READ_ONLY, READ_ONLY_START, START, connection};
use crate::roce::network::{Faults, Network};
use p4rack_fabric::Machine as _;
use p4rack_fabric::roce::{
    Completion, Config, Connection, Outcome, ReceiveRefused, Region, RegionError, RemoteAddress, Request,
    ResponderCounters, Rights,
};
use p4rack_wire::Nanos;
use p4rack_wire::roce::frame::{self, Extension};
use p4rack_wire::roce::{AtomicEth, Bth, Nak, Opcode, Reth, Syndrome};

/// Another queue pair between the two adapters, in another domain.
const OTHER: u32 = 0x12;

fn other(node: usize) -> Connection {
    Connection { peer_qpn: OTHER, domain: DOMAIN + 1, ..connection(node) }
}

/// Both queue pairs, and a region of each domain at adapter 1.
fn network(config: Config) -> Network {
    let mut network = Network::new(config, Faults::default(), 1);
    for node in 0..2 {
        network.adapters[node].add_pair(OTHER, other(node)).unwrap();
    }
    let rights = Rights::ALL;
    let region = Region { domain: DOMAIN + 1, key: 9, start: 0, bytes: vec![6; 64], rights };
    network.adapters[1].memory_mut().register(region).unwrap();
    network
}

fn read(key: u32, address: u64) -> Request {
    Request::Read { key, address, bytes: 8 }
}

/// Carries frames both ways until there are none, and returns completions at adapter 0.
fn settle(network: &mut Network) -> Vec<(u32, Completion)> {
    let (mut frame, mut moved) = (Vec::new(), true);
    while std::mem::take(&mut moved) {
        for node in 0..2 {
            while network.adapters[node].poll_link(Nanos::ZERO, &mut frame).is_some() {
                network.adapters[1 - node].handle_link(&frame, Nanos::ZERO, Nanos::ZERO);
                moved = true;
            }
        }
    }
    std::iter::from_fn(|| network.adapters[0].poll_completion()).collect()
}

#[test]
fn the_queue_pairs_of_a_domain_go_and_no_others() {
    let mut network = network(Config::default());
    let done = |bytes: Vec<u8>| Completion::Request(0, Outcome::Read(bytes));
    network.adapters[0].handle_request(QPN, read(KEY, START)).unwrap();
    network.adapters[0].handle_request(OTHER, read(9, 0)).unwrap();
    let mut ended = settle(&mut network);
    ended.sort_by_key(|(qpn, _)| *qpn);
    assert_eq!(ended, [(QPN, done(vec![0; 8])), (OTHER, done(vec![6; 8]))]);

    let counted = network.adapters[1].responder_counters();
    let asked = network.adapters[0].requester_counters();
    assert_eq!((counted.reads, asked.packets_out), (2, 2));
    network.adapters[1].remove_pairs_of(DOMAIN);
    assert_eq!(network.adapters[1].pairs().collect::<Vec<_>>(), [OTHER]);
    assert_eq!(network.adapters[1].connection(OTHER), Some(&other(1)));
    assert_eq!(network.adapters[1].connection(QPN), None);
    assert_eq!(network.adapters[1].responder_counters(), counted, "also what has gone is counted");
    network.adapters[0].handle_request(QPN, read(KEY, START)).unwrap();
    network.adapters[0].handle_request(OTHER, read(9, 8)).unwrap();
    assert_eq!(settle(&mut network), [(OTHER, Completion::Request(1, Outcome::Read(vec![6; 8])))]);
    assert_eq!(network.adapters[1].counters().unknown_pair, 1);
    network.adapters[0].remove_pairs_of(DOMAIN + 1);
    assert_eq!(network.adapters[0].pairs().collect::<Vec<_>>(), [QPN]);
    assert_eq!(network.adapters[0].requester_counters().packets_out, asked.packets_out + 2);
}

/// A queue pair's completions survive the removal of another one.
#[test]
fn a_queue_pair_takes_its_own_completions_with_it_alone() {
    let mut network = network(Config::default());
    network.adapters[0].handle_request(QPN, read(KEY, START)).unwrap();
    network.adapters[0].handle_request(OTHER, read(9, 0)).unwrap();
    let (mut frame, mut frames) = (Vec::new(), [0; 2]);
    for (node, sent) in frames.iter_mut().enumerate() {
        while network.adapters[node].poll_link(Nanos::ZERO, &mut frame).is_some() {
            *sent += 1;
            network.adapters[1 - node].handle_link(&frame, Nanos::ZERO, Nanos::ZERO);
        }
    }
    assert_eq!(frames, [2; 2]);
    assert_eq!([0, 1].map(|node| network.adapters[node].counters().frames_out), frames);
    assert!(network.adapters[0].remove_pair(QPN));
    let ended: Vec<_> = std::iter::from_fn(|| network.adapters[0].poll_completion()).collect();
    assert_eq!(ended, [(OTHER, Completion::Request(0, Outcome::Read(vec![6; 8])))]);
}

/// An adapter that asks and answers does both in turn.
#[test]
fn requests_and_answers_take_turns() {
    let mut network = Network::new(Config::default(), Faults::default(), 1);
    for node in 0..2 {
        for _ in 0..3 {
            network.adapters[node].handle_request(QPN, read(KEY, START)).unwrap();
        }
    }
    let mut frame = Vec::new();
    while network.adapters[0].poll_link(Nanos::ZERO, &mut frame).is_some() {
        network.adapters[1].handle_link(&frame, Nanos::ZERO, Nanos::ZERO);
    }
    let mut answers = Vec::new();
    while network.adapters[1].poll_link(Nanos::ZERO, &mut frame).is_some() {
        answers.push(frame::parse(&frame, true).unwrap().packet.opcode.is_response());
    }
    assert_eq!(answers, [false, true, false, true, false, true]);
}

#[test]
fn an_owner_reaches_its_bytes_by_their_key() {
    let mut network = network(Config::default());
    let memory = network.adapters[1].memory_mut();
    memory.bytes_mut(9).unwrap()[3] = 1;
    assert_eq!((memory.bytes_mut(9).unwrap().len(), memory.bytes_mut(10)), (64, None));
    network.adapters[0].handle_request(OTHER, read(9, 0)).unwrap();
    let bytes = vec![6, 6, 6, 1, 6, 6, 6, 6];
    assert_eq!(settle(&mut network), [(OTHER, Completion::Request(0, Outcome::Read(bytes)))]);
}

#[test]
fn a_region_that_is_refused_says_why() {
    for (error, words) in [
        (RegionError::BadSize, "at least one byte"),
        (RegionError::KeyTaken(0x1f), "the key 0x1f: choose another"),
        (RegionError::Overlaps(0x2f), "key 0x2f has some of these addresses"),
        (RegionError::Full, "remove one first"),
    ] {
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[test]
fn a_queue_pair_that_is_refused_says_why() {
    let mut network = network(Config { pairs_max: 2, ..Config::default() });
    let mut refused = |qpn: u32| network.adapters[0].add_pair(qpn, other(0)).unwrap_err().to_string();
    assert_eq!(refused(0), "0 is no queue pair's number: use 2 to 16777215");
    assert_eq!(refused(QPN), format!("there is a queue pair {QPN}: use another number or remove it first"));
    assert_eq!(refused(9), "there are as many queue pairs as there may be: remove one first");
    let far = Connection { peer_qpn: 1 << 24, ..other(0) };
    let error = network.adapters[0].add_pair(9, far).unwrap_err();
    assert_eq!(error.to_string(), "peer_qpn has to be at most 2^24 − 1");
}

/// A frame for adapter 1's first queue pair, `nth` from the beginning.
fn forge(opcode: Opcode, nth: u32, ack_request: bool, extension: &Extension, payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    let mut bth = Bth::new(opcode, QPN, connection(0).send_psn + nth);
    bth.ack_request = ack_request;
    frame::compose(&connection(0).path, bth, extension, payload, &mut frame);
    frame
}

/// Frames that wait at adapter 1: distance from the first sequence number, opcode, and syndrome if there is
/// one.
fn answers(network: &mut Network) -> Vec<(u32, Opcode, Option<Syndrome>)> {
    let mut out = Vec::new();
    let next = || {
        network.adapters[1].poll_link(Nanos::ZERO, &mut out)?;
        let packet = frame::parse(&out, true).unwrap().packet;
        let syndrome = match packet.extension {
            Extension::Ack(aeth) => Syndrome::of(aeth.syndrome).ok(),
            _ => None,
        };
        Some((packet.bth.psn - connection(0).send_psn, packet.opcode, syndrome))
    };
    std::iter::from_fn(next).collect()
}

fn rdma(key: u32, address: u64, bytes: u32) -> Extension {
    Extension::Rdma(Reth { address, key, bytes }, None)
}

/// All counters of a responder, with its answers.
#[test]
fn a_responder_counts_everything_once() {
    use Opcode::{Acknowledge, FetchAdd, ReadRequest, ReadResponseOnly, SendOnly, WriteOnly};
    let config = Config { receives_max: 2, message_bytes_max: 64, ..Config::default() };
    let mut network = network(config);
    let node = &mut network.adapters[1];
    assert_eq!([8, 8].map(|bytes| node.handle_receive(QPN, bytes)), [Ok(0), Ok(1)]);
    let add = Extension::Atomic(AtomicEth { address: START, key: KEY, swap_or_add: 3, compare: 0 });
    let unknown = forge(FetchAdd, 0, true, &add, &[]);
    for frame in [
        forge(SendOnly, 0, true, &Extension::None, &[1; 8]),
        forge(WriteOnly, 1, false, &rdma(KEY, START, 64), &[2; 64]),
        forge(WriteOnly, 2, true, &rdma(KEY, START, 0), &[]),
        // Copies of an atomic operation that never was.
        unknown.clone(),
        unknown,
    ] {
        node.handle_link(&frame, Nanos::ZERO, Nanos::ZERO);
    }
    assert_eq!(node.handle_receive(QPN, 8), Err(ReceiveRefused::Full), "one is posted, one not fetched");
    assert!(matches!(node.poll_completion(), Some((QPN, Completion::Receive(received))) if received.id == 0));
    assert_eq!(node.handle_receive(QPN, 8), Ok(2));
    let ack = Some(Syndrome::Ack);
    assert_eq!(answers(&mut network), [(2, Acknowledge, ack)], "one for all of them");

    let node = &mut network.adapters[1];
    node.handle_link(&forge(WriteOnly, 1, false, &rdma(KEY, START, 64), &[2; 64]), Nanos::ZERO, Nanos::ZERO);
    assert_eq!(answers(&mut network), [], "a copy that asks for nothing");
    let node = &mut network.adapters[1];
    node.handle_link(
        &forge(ReadRequest, 3, false, &rdma(READ_ONLY, READ_ONLY_START, 64), &[]),
        Nanos::ZERO,
        Nanos::ZERO,
    );
    node.handle_link(&forge(FetchAdd, 4, false, &add, &[]), Nanos::ZERO, Nanos::ZERO);
    node.handle_link(&forge(WriteOnly, 6, true, &rdma(KEY, START, 0), &[]), Nanos::ZERO, Nanos::ZERO);
    node.handle_link(&forge(WriteOnly, 5, true, &rdma(KEY, START, 0), &[]), Nanos::ZERO, Nanos::ZERO);
    let answered = answers(&mut network);
    assert_eq!(answered[0], (3, ReadResponseOnly, ack));
    assert_eq!((answered[1].0, answered[1].1), (4, Opcode::AtomicAcknowledge));
    let gap = Some(Syndrome::Nak(Nak::Sequence));
    assert_eq!(answered[2..], [(5, Acknowledge, gap), (5, Acknowledge, ack)], "a gap, and then it came");

    // The second half lies outside of the region, so not even the first half leaves. Later requests get the
    // same answer.
    let node = &mut network.adapters[1];
    let end = READ_ONLY_START + 16_384;
    node.handle_link(
        &forge(ReadRequest, 6, true, &rdma(READ_ONLY, end - 32, 64), &[]),
        Nanos::ZERO,
        Nanos::ZERO,
    );
    node.handle_link(&forge(WriteOnly, 7, true, &rdma(KEY, START, 0), &[]), Nanos::ZERO, Nanos::ZERO);
    let refused = Some(Syndrome::Nak(Nak::RemoteAccess));
    assert_eq!(answers(&mut network), [(6, Acknowledge, refused)]);

    let expected = ResponderCounters {
        sends: 1,
        writes: 3,
        reads: 1,
        atomics: 1,
        packets_in: 6,
        packets_out: 6,
        copies: 3,
        copies_unknown: 2,
        gaps: 1,
        refused_access: 1,
        after_refusal: 1,
        ..ResponderCounters::default()
    };
    let node = &network.adapters[1];
    assert_eq!(node.responder(QPN).unwrap().counters(), &expected);
    assert_eq!(node.responder_counters(), expected);
    assert_eq!(node.counters().frames_in, 12);
}

/// Answers wait up to four for each READ that may be under way.
#[test]
fn waiting_answers_are_limited() {
    let mut network = network(Config { reads_max: 3, ..Config::default() });
    for nth in 0..14 {
        let frame = forge(Opcode::ReadRequest, nth, false, &rdma(READ_ONLY, READ_ONLY_START, 8), &[]);
        network.adapters[1].handle_link(&frame, Nanos::ZERO, Nanos::ZERO);
    }
    let counters = network.adapters[1].responder(QPN).unwrap().counters();
    assert_eq!((counters.reads, counters.overflows), (12, 2));
    assert_eq!(answers(&mut network).len(), 12);
}

/// A request of as many bytes as a message may have, and of one more.
#[test]
fn messages_are_as_long_as_they_may_be() {
    for (bytes, refused) in [(64u32, 0), (65, 1)] {
        for (opcode, payload) in [(Opcode::WriteOnly, vec![1; bytes as usize]), (Opcode::ReadRequest, vec![])]
        {
            let mut network = network(Config { message_bytes_max: 64, ..Config::default() });
            let frame = forge(opcode, 0, true, &rdma(KEY, START, bytes), &payload);
            network.adapters[1].handle_link(&frame, Nanos::ZERO, Nanos::ZERO);
            let counters = network.adapters[1].responder(QPN).unwrap().counters();
            assert_eq!(counters.refused_invalid, refused, "{opcode:?} of {bytes} bytes");
        }
    }
}

/// A place and the bytes behind it, in the same domain and under the same key, also around the last
/// address.
#[test]
fn a_region_is_checked_to_its_last_byte() {
    use p4rack_fabric::roce::{Access, Denied, RegisteredMemory};
    let network = network(Config::default());
    let memory = network.adapters[1].memory();
    let place = |address: u64| RemoteAddress { domain: DOMAIN + 1, key: 9, address };
    for (address, bytes, expected) in [
        (0, 64, Ok(())),
        (0, 65, Err(Denied::Bounds)),
        (63, 1, Ok(())),
        (63, 2, Err(Denied::Bounds)),
        (64, 1, Err(Denied::Bounds)),
        (u64::MAX, 2, Err(Denied::Bounds)),
    ] {
        assert_eq!(memory.check(place(address), Access::Read, bytes), expected, "{bytes} at {address}");
    }
    let elsewhere = RemoteAddress { domain: DOMAIN, ..place(0) };
    assert_eq!(memory.check(elsewhere, Access::Read, 8), Err(Denied::Key));
}
