//! Single rules of the protocol.

use crate::roce::network::{
    BYTES, DOMAIN, Faults, KEY, Network, QPN, READ_ONLY, READ_ONLY_START, START, connection, pattern,
};
use p4rack_fabric::Machine as _;
use p4rack_fabric::roce::{
    Access, Adapter, Config, Connection, Denied, Failure, Modify, Outcome, PairError, ReceiveRefused,
    Refused, Region, RegionError, Regions, RegisteredMemory, RemoteAddress, Request, Rights,
};
use p4rack_wire::Nanos;
use p4rack_wire::roce::frame::{self, Extension};
use p4rack_wire::roce::{Bth, Nak, Opcode, Reth, Syndrome};
use proptest::prelude::*;

fn network(config: Config) -> Network {
    Network::new(config, Faults::default(), 1)
}

fn write(key: u32, address: u64, length: usize) -> Request {
    Request::Write { key, address, bytes: vec![1; length], immediate: None }
}

fn read(key: u32, address: u64, bytes: u32) -> Request {
    Request::Read { key, address, bytes }
}

/// A frame from node 0 to node 1's queue pair.
fn forge(opcode: Opcode, psn: u32, extension: &Extension, payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    let mut bth = Bth::new(opcode, QPN, psn);
    bth.ack_request = true;
    frame::compose(&connection(0).path, bth, extension, payload, &mut frame);
    frame
}

/// Node 1's answers to a frame.
fn answers(network: &mut Network, frame: &[u8]) -> Vec<(Opcode, u32, Option<Syndrome>)> {
    network.adapters[1].handle_link(frame, Nanos::ZERO, Nanos::ZERO);
    let (mut out, mut answers) = (Vec::new(), Vec::new());
    while network.adapters[1].poll_link(Nanos::ZERO, &mut out).is_some() {
        let packet = frame::parse(&out, true).unwrap().packet;
        let syndrome = match packet.extension {
            Extension::Ack(aeth) => Some(Syndrome::of(aeth.syndrome).unwrap()),
            _ => None,
        };
        answers.push((packet.opcode, packet.bth.psn, syndrome));
    }
    answers
}

#[test]
fn what_a_key_does_not_permit_is_refused_and_changes_nothing() {
    let end = START + BYTES as u64;
    for (request, failure) in [
        (write(READ_ONLY, READ_ONLY_START, 8), Failure::RemoteAccess),
        (write(KEY, end - 7, 8), Failure::RemoteAccess),
        (write(KEY, START - 1, 8), Failure::RemoteAccess),
        (write(KEY, u64::MAX - 3, 8), Failure::RemoteAccess),
        (write(KEY, end - 2_000, 3_000), Failure::RemoteAccess),
        (write(0x79, START, 8), Failure::RemoteAccess),
        (read(KEY, end - 7, 8), Failure::RemoteAccess),
        (read(0x79, START, 8), Failure::RemoteAccess),
        (Request::FetchAdd { key: READ_ONLY, address: READ_ONLY_START, add: 1 }, Failure::RemoteAccess),
        (Request::Send { bytes: vec![1; 9], immediate: None }, Failure::InvalidRequest),
    ] {
        let mut network = network(Config::default());
        network.adapters[1].handle_receive(QPN, 8).unwrap();
        let said = format!("{request:?}");
        let before = network.ask(write(KEY, START, 4));
        let refused = network.ask(request);
        let after = network.ask(write(KEY, START, 8));
        network.settle();
        let outcomes = [
            (before, Outcome::Done),
            (refused, Outcome::Failed(failure)),
            (after, Outcome::Failed(Failure::Flushed)),
        ];
        assert_eq!(network.outcomes(), outcomes, "{said}");
        let memory = network.adapters[1].memory();
        let written = memory.get(KEY).unwrap().bytes.iter().filter(|byte| **byte != 0).count();
        assert_eq!(written, 4, "{said}");
        assert!(
            memory.get(READ_ONLY).unwrap().bytes.iter().enumerate().all(|(at, byte)| *byte == pattern(at))
        );
        assert_eq!(network.adapters[0].handle_request(QPN, read(KEY, START, 1)), Err(Refused::Broken));
    }
}

/// Each right alone, for each operation.
#[test]
fn an_operation_needs_its_own_right() {
    for nth in 0..8u32 {
        let rights = Rights { read: nth & 1 != 0, write: nth & 2 != 0, atomic: nth & 4 != 0 };
        for (request, is_permitted) in [
            (read(9, 0, 8), rights.read),
            (write(9, 0, 8), rights.write),
            (Request::FetchAdd { key: 9, address: 0, add: 1 }, rights.atomic),
            (Request::CompareSwap { key: 9, address: 0, compare: 0, swap: 1 }, rights.atomic),
        ] {
            let mut network = network(Config::default());
            let region = Region { domain: DOMAIN, key: 9, start: 0, bytes: vec![0; 8], rights };
            network.adapters[1].memory_mut().register(region).unwrap();
            let what = format!("{request:?}, {rights:?}");
            let changes = is_permitted && !matches!(request, Request::Read { .. });
            let outcome = network.outcome(request);
            assert_eq!(
                outcome != Outcome::Failed(Failure::RemoteAccess),
                is_permitted,
                "{what}: {outcome:?}"
            );
            let bytes = &network.adapters[1].memory().get(9).unwrap().bytes;
            assert_eq!(bytes.iter().any(|byte| *byte != 0), changes, "{what}");
        }
    }
}

/// A READ that was executed is answered again, as far as it was executed and is still permitted: the rest of a copy's
/// range was never checked.
#[test]
fn a_repeated_read_gets_no_more_than_was_executed() {
    let first = connection(0).send_psn;
    let frame = |psn, key, address, bytes| {
        let reth = Reth { address, key, bytes };
        forge(Opcode::ReadRequest, psn, &Extension::Rdma(reth, None), &[])
    };
    let config = Config { message_bytes_max: 4_096, ..Config::default() };
    let mut network = network(config);
    let done = Some(Syndrome::Ack);
    let whole = [(Opcode::ReadResponseFirst, first, done), (Opcode::ReadResponseLast, first + 1, done)];
    let asked = frame(first, READ_ONLY, READ_ONLY_START, 2_048);
    assert_eq!(answers(&mut network, &asked), whole);
    assert_eq!(answers(&mut network, &asked), whole, "a copy");
    let rest = frame(first + 1, READ_ONLY, READ_ONLY_START + 1_024, 1_024);
    assert_eq!(answers(&mut network, &rest), [(Opcode::ReadResponseOnly, first + 1, done)], "its rest");
    for (nth, (what, copy)) in [
        ("a packet more", frame(first, READ_ONLY, READ_ONLY_START, 2_049)),
        ("a rest of a packet more", frame(first + 1, READ_ONLY, READ_ONLY_START, 1_025)),
        ("longer than a message", frame(first, READ_ONLY, READ_ONLY_START, 4_097)),
        ("another key", frame(first, 0x79, READ_ONLY_START, 8)),
        ("out of bounds", frame(first, READ_ONLY, READ_ONLY_START - 1, 8)),
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(answers(&mut network, &copy), [], "{what}");
        let counters = network.adapters[1].responder(QPN).unwrap().counters();
        assert_eq!((counters.copies_unknown, counters.reads), (nth as u64 + 1, 1), "{what}");
    }
    let longest = frame(first + 2, READ_ONLY, READ_ONLY_START, 4_096);
    let answered = answers(&mut network, &longest);
    assert_eq!(
        (answered.len(), answers(&mut network, &longest)),
        (4, answered.clone()),
        "the longest message"
    );
}

#[test]
fn a_key_of_another_domain_is_no_key() {
    let mut network = network(Config::default());
    let other = Region { domain: DOMAIN + 1, key: 9, start: 0, bytes: vec![0; 8], rights: Rights::ALL };
    network.adapters[1].memory_mut().register(other).unwrap();
    assert_eq!(network.outcome(read(9, 0, 8)), Outcome::Failed(Failure::RemoteAccess));
}

#[test]
fn requests_of_nothing_need_no_key() {
    let mut network = network(Config::default());
    assert_eq!(network.outcome(write(1, 2, 0)), Outcome::Done);
    assert_eq!(network.outcome(read(1, 2, 0)), Outcome::Read(Vec::new()));
}

#[test]
fn a_region_that_goes_while_it_is_read_ends_the_read() {
    let mut network = network(Config::default());
    network.ask(read(READ_ONLY, READ_ONLY_START, 8_000));
    network.poll();
    // The request arrives, and only then the region goes.
    let frame = forge(
        Opcode::ReadRequest,
        connection(0).send_psn,
        &Extension::Rdma(Reth { address: READ_ONLY_START, key: READ_ONLY, bytes: 8_000 }, None),
        &[],
    );
    network.adapters[1].handle_link(&frame, Nanos::ZERO, Nanos::ZERO);
    network.adapters[1].memory_mut().remove(READ_ONLY).unwrap();
    network.settle();
    assert_eq!(network.outcomes(), [(0, Outcome::Failed(Failure::RemoteAccess))]);
}

/// Memory whose device is gone.
struct Failing;

impl RegisteredMemory for Failing {
    fn check(&self, _: RemoteAddress, _: Access, _: u32) -> Result<(), Denied> {
        Ok(())
    }
    fn read(&self, _: RemoteAddress, _: &mut [u8]) -> Result<(), Denied> {
        Err(Denied::Failed)
    }
    fn write(&mut self, _: RemoteAddress, _: &[u8]) -> Result<(), Denied> {
        Err(Denied::Failed)
    }
    fn modify(&mut self, _: RemoteAddress, _: Modify) -> Result<u64, Denied> {
        Err(Denied::Failed)
    }
}

#[test]
fn memory_that_fails_is_a_remote_operational_error() {
    let mut failing = Adapter::new(Config::default(), Failing).unwrap();
    failing.add_pair(QPN, connection(1)).unwrap();
    let reth = Extension::Rdma(Reth { address: 0, key: 0, bytes: 1 }, None);
    let mut out = Vec::new();
    failing.handle_link(
        &forge(Opcode::WriteOnly, connection(0).send_psn, &reth, &[1]),
        Nanos::ZERO,
        Nanos::ZERO,
    );
    assert!(failing.poll_link(Nanos::ZERO, &mut out).is_some());
    let mut network = network(Config::default());
    network.ask(write(KEY, START, 1));
    let mut sent = Vec::new();
    assert!(network.adapters[0].poll_link(Nanos::ZERO, &mut sent).is_some());
    network.adapters[0].handle_link(&out, Nanos::ZERO, Nanos::ZERO);
    network.poll();
    assert_eq!(network.outcomes(), [(0, Outcome::Failed(Failure::RemoteOperational))]);
    assert_eq!(failing.responder(QPN).unwrap().counters().refused_failed, 1);
}

#[test]
fn a_gap_is_reported_once_and_a_copy_is_acknowledged_again() {
    let mut network = network(Config::default());
    let first = connection(0).send_psn;
    let reth = Extension::Rdma(Reth { address: START, key: KEY, bytes: 4 }, None);
    let nak = Some(Syndrome::Nak(Nak::Sequence));
    let frame = |psn| forge(Opcode::WriteOnly, psn, &reth, &[1, 2, 3, 4]);
    assert_eq!(answers(&mut network, &frame(first + 2)), [(Opcode::Acknowledge, first, nak)]);
    assert_eq!(answers(&mut network, &frame(first + 3)), []);
    let done = Some(Syndrome::Ack);
    assert_eq!(answers(&mut network, &frame(first)), [(Opcode::Acknowledge, first, done)]);
    assert_eq!(answers(&mut network, &frame(first + 1)), [(Opcode::Acknowledge, first + 1, done)]);
    assert_eq!(answers(&mut network, &frame(first)), [(Opcode::Acknowledge, first + 1, done)], "a copy");
    assert_eq!(
        answers(&mut network, &frame(first + 3)),
        [(Opcode::Acknowledge, first + 2, nak)],
        "a new gap"
    );
    let counters = network.adapters[1].responder(QPN).unwrap().counters();
    assert_eq!((counters.writes, counters.copies, counters.gaps), (2, 1, 3));
}

/// A requester whose NAK was lost gets it again, and a flood of requests gets few.
#[test]
fn a_refusal_is_repeated_ever_less_often() {
    let mut network = network(Config::default());
    let reth = Reth { address: START, key: !KEY, bytes: 8 };
    let extension = Extension::Rdma(reth, None);
    let request = forge(Opcode::ReadRequest, connection(0).send_psn, &extension, &[]);
    let answered: Vec<usize> = (0..=1_000).filter(|_| !answers(&mut network, &request).is_empty()).collect();
    assert_eq!(answered, [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512]);
}

#[test]
fn packets_that_do_not_belong_together_are_refused() {
    let reth = |bytes| Extension::Rdma(Reth { address: START, key: KEY, bytes }, None);
    let (mtu, first) = ([7; 1_024], connection(0).send_psn);
    let refused = Some(Syndrome::Nak(Nak::InvalidRequest));
    for (name, packets) in [
        ("a middle without a first", vec![(Opcode::WriteMiddle, Extension::None, &mtu[..])]),
        ("a last without a first", vec![(Opcode::SendLast, Extension::None, &mtu[..9])]),
        ("a first that is not full", vec![(Opcode::WriteFirst, reth(2_000), &mtu[..1_000])]),
        ("a first with all", vec![(Opcode::WriteFirst, reth(1_024), &mtu[..])]),
        ("an only with less than it says", vec![(Opcode::WriteOnly, reth(9), &mtu[..8])]),
        ("an only with more than it says", vec![(Opcode::WriteOnly, reth(7), &mtu[..8])]),
        ("longer than a message may be", vec![(Opcode::WriteFirst, reth(u32::MAX), &mtu[..])]),
        ("an answer longer than a message may be", vec![(Opcode::ReadRequest, reth(u32::MAX), &[][..])]),
        (
            "another message in between",
            vec![(Opcode::WriteFirst, reth(2_048), &mtu[..]), (Opcode::ReadRequest, reth(8), &[][..])],
        ),
        (
            "a last of another kind",
            vec![(Opcode::WriteFirst, reth(2_048), &mtu[..]), (Opcode::SendLast, Extension::None, &mtu[..])],
        ),
        (
            "a last of nothing",
            vec![(Opcode::WriteFirst, reth(2_048), &mtu[..]), (Opcode::WriteLast, Extension::None, &[][..])],
        ),
    ] {
        let mut network = network(Config::default());
        let mut last = Vec::new();
        for (nth, (opcode, extension, payload)) in packets.iter().enumerate() {
            last = answers(&mut network, &forge(*opcode, first + nth as u32, extension, payload));
        }
        let at = first + packets.len() as u32 - 1;
        assert_eq!(last, [(Opcode::Acknowledge, at, refused)], "{name}");
        assert_eq!(network.adapters[1].responder(QPN).unwrap().counters().refused_invalid, 1, "{name}");
    }
}

#[test]
fn without_answers_a_request_fails_after_its_retries() {
    let config = Config { retries_max: 3, ..Config::default() };
    let timeout = config.timeout;
    let mut network = Network::new(config, Faults { lost: 1_000, ..Faults::default() }, 1);
    network.ask(read(KEY, START, 8));
    network.ask(write(KEY, START, 8));
    network.settle();
    let failed = |failure| Outcome::Failed(failure);
    let outcomes = [(0, failed(Failure::RetriesExceeded)), (1, failed(Failure::Flushed))];
    assert_eq!(network.outcomes(), outcomes);
    assert_eq!(network.now.0, (1 + 2 + 4 + 8) * timeout.0, "each time twice as patient");
    let counters = network.adapters[0].requester(QPN).unwrap().counters();
    assert_eq!((counters.timeouts, counters.repeated_out, counters.failed), (4, 6, 2));
}

#[test]
fn a_receiver_that_never_gets_ready_ends_the_request() {
    let mut network = network(Config { rnr_retries_max: 2, rnr_timer: 1, ..Config::default() });
    let outcome = network.outcome(Request::Send { bytes: vec![1], immediate: None });
    assert_eq!(outcome, Outcome::Failed(Failure::RnrRetriesExceeded));
    assert_eq!(network.adapters[1].responder(QPN).unwrap().counters().not_ready, 3);
}

#[test]
fn limits_hold() {
    let config = Config {
        requests_max: 2,
        receives_max: 1,
        message_bytes_max: 100,
        pairs_max: 2,
        ..Config::default()
    };
    let mut network = network(config);
    let node = &mut network.adapters[0];
    assert_eq!(node.handle_request(QPN, write(KEY, START, 101)), Err(Refused::TooLong));
    let odd = Request::FetchAdd { key: KEY, address: START + 4, add: 1 };
    assert_eq!(node.handle_request(QPN, odd), Err(Refused::Unaligned));
    assert_eq!(node.handle_request(9, write(KEY, START, 1)), Err(Refused::UnknownPair));
    assert_eq!(node.handle_request(QPN, write(KEY, START, 1)), Ok(0));
    assert_eq!(node.handle_request(QPN, write(KEY, START, 1)), Ok(1));
    assert_eq!(node.handle_request(QPN, write(KEY, START, 1)), Err(Refused::Full));
    assert_eq!(
        (node.handle_receive(QPN, 9), node.handle_receive(QPN, 9)),
        (Ok(0), Err(ReceiveRefused::Full))
    );
    assert_eq!(node.add_pair(QPN, connection(0)), Err(PairError::Taken(QPN)));
    assert_eq!(node.add_pair(1, connection(0)), Err(PairError::BadNumber(1)));
    let far = Connection { send_psn: 1 << 24, ..connection(0) };
    assert!(node.add_pair(3, far).unwrap_err().to_string().starts_with("send_psn has to be"));
    assert_eq!(node.add_pair(3, connection(0)), Ok(()));
    assert_eq!(node.add_pair(4, connection(0)), Err(PairError::Full));
    assert!(node.remove_pair(QPN) && !node.remove_pair(QPN));
    let mut out = Vec::new();
    assert!(node.poll_link(Nanos::ZERO, &mut out).is_none(), "its requests went with it");
}

#[test]
fn frames_that_are_not_ours_are_counted_and_dropped() {
    let mut network = network(Config::default());
    let reth = Extension::Rdma(Reth { address: START, key: KEY, bytes: 4 }, None);
    let good = forge(Opcode::WriteOnly, connection(0).send_psn, &reth, &[1, 2, 3, 4]);
    let compose = |path, bth| {
        let mut frame = Vec::new();
        frame::compose(&path, bth, &reth, &[1, 2, 3, 4], &mut frame);
        frame
    };
    let (path, bth) = (connection(0).path, Bth::new(Opcode::WriteOnly, QPN, connection(0).send_psn));
    let changed = |at: usize, byte: u8| {
        let mut frame = good.clone();
        frame[at] = byte;
        frame
    };
    let node = &mut network.adapters[1];
    for frame in [
        good[..10].to_vec(),
        good[..good.len() - 1].to_vec(),
        changed(12, 0x86),
        changed(60, 0x55),
        changed(24, 0x55),
        compose(path, Bth { qpn: 0x12, ..bth }),
        compose(path, Bth { partition: 0x1234, ..bth }),
        compose(frame::Path { src_ip: [10, 0, 0, 9].into(), ..path }, bth),
        compose(path, Bth { opcode: 0x84, ..bth }),
    ] {
        node.handle_link(&frame, Nanos::ZERO, Nanos::ZERO);
    }
    let counters = node.counters();
    assert_eq!((counters.frames_in, counters.malformed, counters.not_roce), (9, 3, 1));
    assert_eq!((counters.bad_icrc, counters.bad_checksum), (1, 1));
    assert_eq!((counters.unknown_pair, counters.foreign), (1, 2));
    assert_eq!(node.responder(QPN).unwrap().counters().packets_in, 0);
}

#[test]
fn regions_do_not_overlap_and_have_their_own_keys() {
    let region =
        |key, start, bytes| Region { domain: 0, key, start, bytes: vec![0; bytes], rights: Rights::ALL };
    let mut regions = Regions::default();
    assert_eq!(regions.register(region(1, 100, 50)), Ok(()));
    assert_eq!(regions.register(region(1, 500, 50)), Err(RegionError::KeyTaken(1)));
    assert_eq!(regions.register(region(2, 149, 1)), Err(RegionError::Overlaps(1)));
    assert_eq!(regions.register(region(2, 60, 41)), Err(RegionError::Overlaps(1)));
    assert_eq!(regions.register(region(2, 60, 40)), Ok(()));
    assert_eq!(regions.register(region(3, 150, 1)), Ok(()));
    assert_eq!(regions.register(region(4, 0, 0)), Err(RegionError::BadSize));
    assert_eq!(regions.register(region(4, u64::MAX, 2)), Err(RegionError::BadSize));
    assert_eq!(regions.remove(1).map(|region| region.start), Some(100));
    assert_eq!(regions.register(region(4, 149, 1)), Ok(()));
    assert_eq!(regions.keys().collect::<Vec<_>>(), [2, 3, 4]);
}

#[test]
fn parameters_that_make_no_sense_are_refused() {
    let check = |config: Config| config.check().map_err(|error| error.field);
    assert_eq!(check(Config::default()), Ok(()));
    assert_eq!(check(Config { window_packets: 0, ..Config::default() }), Err("window_packets"));
    assert_eq!(check(Config { timeout: Nanos::ZERO, ..Config::default() }), Err("timeout"));
    let much = Config { message_bytes_max: 1 << 31, ..Config::default() };
    assert_eq!(check(much), Err("in_flight_max"), "sequence numbers would become ambiguous");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Packets with any opcode, numbers and sizes: only the writable region changes, and queues stay within their
    /// limits.
    #[test]
    fn no_packets_make_an_adapter_panic(
        packets in prop::collection::vec((0..22u8, -3..40i32, 0..4u32, 0..70u64, 0..3_000u32, 0..1_030usize, any::<bool>()), 0..60),
    ) {
        let mut network = network(Config { reads_max: 2, message_bytes_max: 2_048, ..Config::default() });
        network.adapters[1].handle_receive(QPN, 2_000).unwrap();
        let mut out = Vec::new();
        for (opcode, psn, key, address, bytes, length, asks) in packets {
            let address = READ_ONLY_START.min(START * u64::from(key)) + address;
            let psn = connection(0).send_psn.wrapping_add_signed(psn) & 0xff_ffff;
            let Some(opcode) = Opcode::of(opcode) else { continue };
            let key = KEY - 1 + key;
            let extension = match opcode {
                Opcode::CompareSwap | Opcode::FetchAdd => Extension::Atomic(p4rack_wire::roce::AtomicEth {
                    address, key, swap_or_add: 3, compare: 0,
                }),
                Opcode::WriteFirst | Opcode::WriteOnly | Opcode::ReadRequest => {
                    Extension::Rdma(Reth { address, key, bytes }, None)
                }
                _ => Extension::None,
            };
            let payload = vec![9; if opcode.has_payload() { length } else { 0 }];
            let mut frame = forge(opcode, psn, &extension, &payload);
            network.adapters[1].handle_link(&frame, Nanos::ZERO, Nanos::ZERO);
            // The same as a response to node 0, which has asked for something.
            let _ = network.adapters[0].handle_request(QPN, read(KEY, START, bytes.min(2_048)));
            network.adapters[0].poll_link(Nanos::ZERO, &mut out);
            let mut bth = Bth::new(opcode, QPN, psn);
            bth.ack_request = asks;
            let place = frame::begin(&connection(1).path, bth, &extension, length.min(1_024), &mut frame);
            frame[place].fill(8);
            frame::seal(&mut frame);
            network.adapters[0].handle_link(&frame, Nanos::ZERO, Nanos::ZERO);
            if asks {
                network.adapters[1].poll_link(Nanos::ZERO, &mut out);
            }
        }
        let node = &network.adapters[1];
        let read_only = &node.memory().get(READ_ONLY).unwrap().bytes;
        prop_assert!(read_only.iter().enumerate().all(|(at, byte)| *byte == pattern(at)));
        let mut frames = 0;
        while network.adapters[1].poll_link(Nanos::ZERO, &mut out).is_some() {
            frames += 1;
        }
        prop_assert!(frames <= 4 * 2 * 2, "eight answers of at most two packets: {}", frames);
    }
}
