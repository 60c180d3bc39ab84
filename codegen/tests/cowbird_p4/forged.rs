//! Forged, truncated and corrupted frames are dropped with their reason, and harm no other thread.

use crate::common::Built;
use crate::rack::{COMPUTE, Faults, Net, POOL, built, cowbird};
use p4rack_cowbird::{Kind, Layout, RequestId};
use p4rack_fabric::cowbird::Corruption;
use p4rack_wire::cowbird::{ENTRIES_AT, Entry, Phase};
use p4rack_wire::roce::frame::BTH_AT;
use p4rack_wire::roce::{Aeth, Bth, Nak, Opcode, Syndrome};
use proptest::prelude::*;
use std::sync::LazyLock;
use std::sync::atomic::Ordering;

const LAYOUT: Layout = Layout { entries: 8, request_bytes: 1_024, response_bytes: 1_024 };
const AETH_AT: usize = BTH_AT + Bth::BYTES;
/// Bytes behind a frame's payload.
const ICRC: usize = 4;
/// A port whose host has nothing to do with the engine.
const STRANGER: u16 = 3;

static BUILT: LazyLock<Built> = LazyLock::new(|| built(4));
static SEEN: LazyLock<Vec<(u16, Vec<u8>)>> = LazyLock::new(|| recorded().1);

fn net(threads: usize, operations: usize) -> Net {
    Net::new(&BUILT, threads, operations, LAYOUT, Faults::default(), 1)
}

/// Runs until all is done, or for `steps` steps.
fn run(net: &mut Net, steps: usize) {
    for _ in 0..steps {
        for nth in 0..net.threads.len() {
            let _ = net.ask(nth);
            let _ = net.fetch(nth);
        }
        if net.threads.iter().all(|thread| thread.left == 0 && thread.history.is_done()) {
            return;
        }
        net.step();
    }
}

/// A rack that has completed everything, and the frames that came into its switch.
fn recorded() -> (Net, Vec<(u16, Vec<u8>)>) {
    let mut net = net(2, 30);
    net.seen = Some(Vec::new());
    run(&mut net, 20_000);
    assert!(net.is_done());
    // The last red block is acknowledged.
    (0..200).for_each(|_| net.step());
    let seen = net.seen.take().unwrap();
    (net, seen)
}

/// Why the switch dropped what it got. Nothing may come of it.
fn dropped(net: &mut Net, port: u16, frame: &[u8]) -> Vec<&'static str> {
    let before = net.rig.all_drops();
    net.rig.now = net.now;
    assert_eq!(net.rig.send(port, frame), [], "something came of it");
    assert!(!net.rig.switch.poll_cpu(&mut Vec::new()));
    let count = |(name, count): &(&'static str, u64)| {
        count - before.iter().find(|(known, _)| known == name).map_or(0, |(_, count)| *count)
    };
    let after = net.rig.all_drops();
    after.iter().flat_map(|one| std::iter::repeat_n(one.0, count(one) as usize)).collect()
}

fn qpn(net: &Net, nth: usize, phase: Phase) -> u32 {
    let instance = net.threads[nth].instance.as_ref().unwrap();
    match Phase::COMPUTE.iter().position(|one| *one == phase) {
        Some(place) => instance.compute.own_qpn + place as u32,
        None => instance.pool.own_qpn + u32::from(phase == Phase::PoolWrite),
    }
}

/// The last frame of a thread's phase.
fn frame_of(net: &Net, seen: &[(u16, Vec<u8>)], phase: Phase) -> (u16, Vec<u8>) {
    let qpn = qpn(net, 0, phase);
    let is = |frame: &[u8]| Bth::parse(&frame[BTH_AT..]).is_ok_and(|bth| bth.qpn == qpn);
    seen.iter().rfind(|(_, frame)| is(frame)).unwrap().clone()
}

fn with_bth(frame: &[u8], change: impl Fn(&mut Bth)) -> Vec<u8> {
    let mut frame = frame.to_vec();
    let mut bth = Bth::parse(&frame[BTH_AT..]).unwrap();
    change(&mut bth);
    bth.emit(&mut frame[BTH_AT..]);
    frame
}

#[test]
fn a_forged_frame_is_dropped_by_its_reason() {
    let (mut net, seen) = recorded();
    for (phase, _) in Phase::ALL {
        let (port, frame) = frame_of(&net, &seen, phase);
        let other = if port == COMPUTE { POOL } else { COMPUTE };
        for port in [other, STRANGER] {
            assert_eq!(dropped(&mut net, port, &frame), ["cowbird_unknown_pair"], "{phase:?}");
        }
        // The last byte of the MAC address, of the IP address; the number of the queue pair.
        for at in [11, 14 + 15, BTH_AT + 5] {
            let mut forged = frame.clone();
            forged[at] ^= 0x80;
            assert_eq!(dropped(&mut net, port, &forged), ["cowbird_unknown_pair"], "{phase:?} {at}");
        }
        for length in BTH_AT + Bth::BYTES..frame.len() {
            assert_eq!(
                dropped(&mut net, port, &frame[..length]),
                ["cowbird_bad_frame"],
                "{phase:?} {length}"
            );
        }
        let again = dropped(&mut net, port, &frame);
        // An entry that was guessed is longer.
        let guessed = phase == Phase::Entry && frame.len() > AETH_AT + Aeth::BYTES + Entry::BYTES + ICRC;
        let is_answer = guessed || matches!(phase, Phase::Response | Phase::Red | Phase::PoolWrite);
        assert_eq!(again, [if is_answer { "cowbird_nothing_to_do" } else { "cowbird_stale" }], "{phase:?}");
        let far = with_bth(&frame, |bth| bth.psn = bth.psn.wrapping_add(0x40_0000) & 0xff_ffff);
        let far = dropped(&mut net, port, &far);
        assert_eq!(far, [if is_answer { "cowbird_nothing_to_do" } else { "cowbird_stale" }], "{phase:?}");
    }
    // A frame that is right for one queue pair is wrong for another.
    let (port, entry) = frame_of(&net, &seen, Phase::Entry);
    let (_, ack) = frame_of(&net, &seen, Phase::Response);
    for (frame, phase) in
        [(&entry, Phase::Response), (&entry, Phase::Probe), (&ack, Phase::Payload), (&ack, Phase::Entry)]
    {
        let forged = with_bth(frame, |bth| bth.qpn = qpn(&net, 0, phase));
        assert_eq!(dropped(&mut net, port, &forged), ["cowbird_bad_opcode"], "{phase:?}");
    }
    // The next packet of a queue pair, beyond the length that was requested.
    let (port, data) = frame_of(&net, &seen, Phase::PoolRead);
    let next = with_bth(&data, |bth| {
        bth.psn = (bth.psn + 1) & 0xff_ffff;
        bth.opcode = Opcode::ReadResponseOnly as u8;
    });
    assert_eq!(dropped(&mut net, port, &next), ["cowbird_stale"]);
    // One probe is under way at a time, so of two answers at least one matches none.
    let (port, answer) = frame_of(&net, &seen, Phase::Probe);
    let further = |more: u32| with_bth(&answer, |bth| bth.psn = (bth.psn + more) & 0xff_ffff);
    dropped(&mut net, port, &further(1));
    assert_eq!(dropped(&mut net, port, &further(2)), ["cowbird_stale"]);
    // The controller's frames, from a host; an instance that doesn't exist, from the controller.
    let look = cowbird(&net.rig).look_frame(0, 0);
    assert_eq!(dropped(&mut net, COMPUTE, &look[2..]), ["cowbird_management_from_host"]);
    let cpu_port = net.rig.built.rack.switch.cpu_port;
    let beyond = cowbird(&net.rig).look_frame(4, 0);
    assert_eq!(dropped(&mut net, cpu_port, &beyond), ["cowbird_bad_index"]);
    let reply = net.ask_switch(&look);
    let done = net.ask_switch(&cowbird(&net.rig).look_frame(0, 1));
    assert_eq!((reply.done + done.done, reply.head, reply.end), (30, 30, 0));
    // Other frames pass: hosts' own, even of RoCE.
    let mut own = ack.clone();
    own[..6].copy_from_slice(&[2, 0, 0, 0, 0, 2]);
    assert_eq!(net.rig.send(COMPUTE, &own), [(POOL, own)]);
    // A thread that is no longer served is not probed, and its frames match no instance.
    net.end(0);
    assert_eq!(dropped(&mut net, COMPUTE, &ack), ["cowbird_unknown_pair"]);
    let probes = net.sent(0, Phase::Probe as u8);
    (0..100).for_each(|_| net.step());
    assert_eq!(net.sent(0, Phase::Probe as u8), probes);
    assert!(net.rig.drops("cowbird_no_instance") > 20);
}

#[test]
fn a_refused_request_is_the_controllers_to_know() {
    let (mut net, seen) = recorded();
    let (port, ack) = frame_of(&net, &seen, Phase::PoolWrite);
    let nak = |nak: Nak| {
        let mut frame = ack.clone();
        frame[AETH_AT..AETH_AT + Aeth::BYTES][0] = Syndrome::Nak(nak).code();
        frame
    };
    assert_eq!(dropped(&mut net, port, &nak(Nak::Sequence)), ["cowbird_gap"]);
    for code in [Nak::InvalidRequest, Nak::RemoteAccess, Nak::RemoteOperational] {
        net.arrive(port, &nak(code));
        let packet_in = net.to_controller.pop().unwrap();
        assert_eq!((&packet_in[..2], &packet_in[2..]), (&port.to_be_bytes()[..], &nak(code)[..]));
    }
}

/// Overwrites a word of the first thread's set.
fn ruin(net: &Net, at: u64, value: u64) {
    net.threads[0].client.words()[at as usize / 8].store(value.to_be(), Ordering::Relaxed);
}

/// The entry of a read that is right, in place of the first one.
fn entry() -> Entry {
    Entry {
        rw_type: Kind::Read as u16,
        region_id: 0,
        length: 16,
        req_addr: 8,
        resp_addr: LAYOUT.response_data_at(),
        request_id: RequestId::new(Kind::Read, 0, 1).0,
    }
}

/// Offers entries to the engine. Returns what the red block says in the end.
fn offer(entries: &[Entry]) -> (Net, u64) {
    let mut net = net(1, 0);
    net.seen = Some(Vec::new());
    let mut bytes = vec![0; Entry::BYTES * entries.len()];
    for (entry, place) in entries.iter().zip(bytes.chunks_exact_mut(Entry::BYTES)) {
        entry.emit(place);
    }
    for (nth, word) in bytes.chunks_exact(8).enumerate() {
        ruin(&net, ENTRIES_AT + 8 * nth as u64, u64::from_be_bytes(word.try_into().unwrap()));
    }
    ruin(&net, 0, entries.len() as u64);
    (0..600).for_each(|_| net.step());
    let refusal = net.refusal(0);
    (net, refusal)
}

#[test]
fn each_way_to_ruin_an_entry_is_refused_by_its_code() {
    let good = entry();
    assert_eq!(offer(&[good]).1, 0);
    let write = |id: u64| RequestId::new(Kind::Write, 0, id).0;
    for (bad, corruption) in [
        (Entry { rw_type: 0, ..good }, Corruption::Type),
        (Entry { rw_type: 3, ..good }, Corruption::Type),
        (Entry { region_id: 1, ..good }, Corruption::Region),
        (Entry { req_addr: 1_009, ..good }, Corruption::Bounds),
        (Entry { req_addr: u64::MAX, ..good }, Corruption::Bounds),
        (Entry { length: 0, ..good }, Corruption::Length),
        (Entry { length: 513, ..good }, Corruption::Length),
        (Entry { length: u32::MAX, ..good }, Corruption::Length),
        (Entry { resp_addr: 0, ..good }, Corruption::Place),
        (Entry { resp_addr: good.resp_addr + 8, ..good }, Corruption::Place),
        (Entry { request_id: RequestId::new(Kind::Read, 0, 2).0, ..good }, Corruption::Id),
        (Entry { request_id: RequestId::new(Kind::Read, 1, 1).0, ..good }, Corruption::Id),
        (Entry { request_id: write(1), ..good }, Corruption::Id),
        (Entry { rw_type: 2, req_addr: 0, resp_addr: 8, request_id: write(1), ..good }, Corruption::Place),
    ] {
        // After one that makes no sense none is begun, however right.
        let (net, refusal) = offer(&[bad, good]);
        assert_eq!(refusal, corruption as u64, "{bad:?}: {:?}", net.rig.all_drops());
        assert!(net.rig.drops("cowbird_corrupt") > 0 && net.span(0).iter().all(|byte| *byte == 0));
        assert_eq!(net.sent(0, Phase::PoolRead as u8) + net.sent(0, Phase::Payload as u8), 0);
    }
    // Nor one that the switch did not ask for.
    let (mut refused, _) = offer(&[Entry { resp_addr: 0, ..good }]);
    let seen = refused.seen.take().unwrap();
    let (port, answer) = frame_of(&refused, &seen, Phase::Entry);
    let mut second = with_bth(&answer, |bth| bth.psn = (bth.psn + 1) & 0xff_ffff);
    Entry { request_id: RequestId::new(Kind::Read, 0, 2).0, ..good }
        .emit(&mut second[AETH_AT + Aeth::BYTES..]);
    assert_eq!(dropped(&mut refused, port, &second), ["cowbird_corrupt"]);
    // A tail that goes too far, or back.
    for tail in [9, u64::MAX] {
        let mut net = net(1, 0);
        ruin(&net, 0, tail);
        (0..600).for_each(|_| net.step());
        assert_eq!(net.refusal(0), Corruption::Tail as u64);
    }
    let (mut net, _) = offer(&[good]);
    ruin(&net, 0, 0);
    (0..600).for_each(|_| net.step());
    assert_eq!(net.refusal(0), Corruption::Tail as u64);
}

/// A forged frame: one of those seen, with some bytes changed, perhaps cut.
#[derive(Clone, Debug)]
struct Forgery {
    at: usize,
    of: usize,
    stranger: bool,
    phase: usize,
    changes: Vec<(usize, u8)>,
    length: Option<usize>,
}

fn forgery() -> impl Strategy<Value = Forgery> {
    let changes = prop::collection::vec((BTH_AT - 20..BTH_AT + 60, any::<u8>()), 0..4);
    let length = prop::option::weighted(0.2, 14..200usize);
    (0..1_500usize, any::<prop::sample::Index>(), any::<bool>(), 0..7usize, changes, length).prop_map(
        |(at, of, stranger, phase, changes, length)| Forgery {
            at,
            of: of.index(1 << 20),
            stranger,
            phase,
            changes,
            length,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Frames made up by a host that is no party, for any queue pair, and by the compute node and pool themselves for one
    /// thread's; random words in that thread's rings. The other one has all that it asked for.
    #[test]
    fn others_are_unharmed(
        seed: u64,
        forgeries in prop::collection::vec(forgery(), 1..60),
        ruins in prop::collection::vec((0..1_500usize, 0..40u64, any::<u64>(), any::<bool>()), 0..6),
    ) {
        let seen = &*SEEN;
        let mut net = net(2, 40);
        net.random.0 = seed;
        for step in 0..12_000 {
            for forgery in forgeries.iter().filter(|forgery| forgery.at == step) {
                let (port, mut frame) = seen[forgery.of % seen.len()].clone();
                for (at, value) in &forgery.changes {
                    if let Some(byte) = frame.get_mut(*at) {
                        *byte = *value;
                    }
                }
                let victim = if forgery.stranger { 1 } else { 0 };
                let phase = Phase::ALL[forgery.phase].0;
                let frame = with_bth(&frame, |bth| bth.qpn = qpn(&net, victim, phase));
                let length = forgery.length.map_or(frame.len(), |length| length.min(frame.len()));
                let port = if forgery.stranger { STRANGER } else { port };
                net.arrive(port, &frame[..length]);
            }
            for (_, at, value, small) in ruins.iter().filter(|(when, ..)| *when == step) {
                ruin(&net, 8 * at, if *small { value % 40 } else { *value });
            }
            prop_assert_eq!(net.ask(1), Ok(()));
            prop_assert_eq!(net.fetch(1), Ok(()));
            net.step();
            if net.threads[1].left == 0 && net.threads[1].history.is_done() {
                break;
            }
        }
        prop_assert_eq!(net.threads[1].history.end(net.span(1)), Ok(()));
        prop_assert_eq!(net.refusal(1), 0);
    }
}
