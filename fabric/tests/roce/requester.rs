//! A requester's reaction to answers and timeouts, packet by packet.

use crate::roce::network::{Faults, KEY, Network, QPN, START, connection};
use p4rack_fabric::Machine as _;
use p4rack_fabric::roce::{Config, Failure, Outcome, Refused, Request};
use p4rack_wire::Nanos;
use p4rack_wire::roce::frame::{self, Extension};
use p4rack_wire::roce::{Aeth, Bth, Opcode, Syndrome};

fn network(config: Config) -> Network {
    Network::new(config, Faults::default(), 1)
}

fn read(bytes: u32) -> Request {
    Request::Read { key: KEY, address: START, bytes }
}

fn write(bytes: usize) -> Request {
    Request::Write { key: KEY, address: START, bytes: vec![1; bytes], immediate: None }
}

/// The frames that adapter 0 may send now.
fn sent(network: &mut Network) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    std::iter::from_fn(|| network.adapters[0].poll_link(network.now, &mut out).is_some().then(|| out.clone()))
        .collect()
}

/// Retries count from the last acknowledgement on: each request may need them.
#[test]
fn patience_starts_anew_with_every_acknowledgement() {
    let mut network = network(Config { retries_max: 1, ..Config::default() });
    for _ in 0..4 {
        network.ask(write(8));
        assert_eq!(sent(&mut network).len(), 1, "which is lost");
        network.now = network.adapters[0].next_timeout().unwrap();
        let now = network.now;
        network.adapters[0].handle_timeout(now);
        network.settle();
    }
    assert_eq!(network.outcomes().into_iter().filter(|(_, outcome)| *outcome == Outcome::Done).count(), 4);
    assert_eq!(network.adapters[0].requester(QPN).unwrap().counters().timeouts, 4);
}

/// Requests behind a failed one fail with it, and are counted.
#[test]
fn requests_behind_one_that_fails_fail_too() {
    let config = Config { in_flight_max: 1, retries_max: 0, ..Config::default() };
    let mut network = Network::new(config, Faults { lost: 1_000, ..Faults::default() }, 1);
    let ids = [(); 3].map(|()| network.ask(write(8)));
    network.settle();
    let flushed = Outcome::Failed(Failure::Flushed);
    let outcomes = [Outcome::Failed(Failure::RetriesExceeded), flushed.clone(), flushed];
    assert_eq!(network.outcomes(), ids.into_iter().zip(outcomes).collect::<Vec<_>>());
    assert_eq!(network.adapters[0].requester(QPN).unwrap().counters().failed, 3);
}

/// An acknowledgement is asked for at the end of a message, twice a window, and where the window ends.
#[test]
fn acknowledgements_are_asked_for_where_they_are_needed() {
    let mut network = network(Config { window_packets: 4, ..Config::default() });
    network.ask(write(8));
    network.ask(write(8 * 1_024));
    let frames = sent(&mut network);
    let asks = frames.iter().map(|frame| frame::parse(frame, true).unwrap().packet.bth.ack_request);
    assert_eq!(asks.collect::<Vec<_>>(), [true, false, true, true]);
}

/// Answers that are not those of the packets that were asked for change nothing.
#[test]
fn answers_out_of_place_are_malformed() {
    let first = connection(0).send_psn;
    let aeth = Extension::Ack(Aeth { syndrome: Syndrome::Ack.code(), msn: 1 });
    for (what, opcode, extension, bytes) in [
        ("a middle first", Opcode::ReadResponseMiddle, Extension::None, 1_024),
        ("a last first", Opcode::ReadResponseLast, aeth, 1_024),
        ("one for all", Opcode::ReadResponseOnly, aeth, 1_024),
        ("a short first", Opcode::ReadResponseFirst, aeth, 1_020),
    ] {
        let mut network = network(Config::default());
        network.ask(read(2_048));
        assert_eq!(sent(&mut network).len(), 1);
        let mut frame = Vec::new();
        let bth = Bth::new(opcode, QPN, first);
        frame::compose(&connection(1).path, bth, &extension, &vec![9; bytes], &mut frame);
        network.adapters[0].handle_link(&frame, Nanos::ZERO, Nanos::ZERO);
        assert_eq!(network.adapters[0].requester(QPN).unwrap().counters().malformed, 1, "{what}");
        network.settle();
        assert_eq!(network.outcomes(), [(0, Outcome::Read(vec![0; 2_048]))], "{what}: it is asked again");
    }
}

/// An answer of another kind than the request is dropped, and counted each time.
#[test]
fn answers_of_another_kind_are_malformed() {
    let first = connection(0).send_psn;
    let mut network = network(Config::default());
    network.ask(Request::FetchAdd { key: KEY, address: START, add: 1 });
    assert_eq!(sent(&mut network).len(), 1);
    let aeth = Extension::Ack(Aeth { syndrome: Syndrome::Ack.code(), msn: 1 });
    for times in 1..=2 {
        let mut frame = Vec::new();
        let bth = Bth::new(Opcode::ReadResponseOnly, QPN, first);
        frame::compose(&connection(1).path, bth, &aeth, &[9; 8], &mut frame);
        network.adapters[0].handle_link(&frame, Nanos::ZERO, Nanos::ZERO);
        assert_eq!(network.adapters[0].requester(QPN).unwrap().counters().malformed, times);
    }
}

#[test]
fn refused_requests_are_counted() {
    let mut network = network(Config { message_bytes_max: 100, ..Config::default() });
    for times in 1..=2 {
        assert_eq!(network.adapters[0].handle_request(QPN, write(101)), Err(Refused::TooLong));
        let counters = network.adapters[0].requester(QPN).unwrap().counters();
        assert_eq!((counters.refused, counters.requests), (times, 0));
    }
}

#[test]
fn refusals_and_failures_say_what_to_do() {
    let refused = [
        (Refused::UnknownPair, "no such queue pair"),
        (Refused::TooLong, "longer than a message"),
        (Refused::Unaligned, "a multiple of 8"),
        (Refused::Full, "as many requests as allowed"),
        (Refused::Broken, "set it up anew"),
    ];
    assert!(refused.iter().all(|(error, words)| error.to_string().contains(words)), "{refused:?}");
    let failed = [
        (Failure::InvalidRequest, "invalid or too long"),
        (Failure::RemoteAccess, "does not permit it"),
        (Failure::RemoteOperational, "the peer failed"),
        (Failure::RetriesExceeded, "did not answer"),
        (Failure::RnrRetriesExceeded, "never had a buffer"),
    ];
    assert!(failed.iter().all(|(error, words)| error.to_string().contains(words)), "{failed:?}");
}
