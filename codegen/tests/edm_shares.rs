//! Shares of a link: hosts with as many messages get equal ones, however long the messages are.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use crate::common;

use common::Built;
use common::edm::*;
use p4rack_codegen::scheme::edm::{DATA_COUNTER, Mode};
use p4rack_codegen::{Arch, Scheme};
use p4rack_wire::Nanos;
use p4rack_wire::edm::{self, Kind};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// A host's next step in a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Next {
    Ask,
    Send,
}

/// A message of a lane: its id, how much of it was granted, how much was sent.
#[derive(Clone, Copy, Debug, Default)]
struct Sending {
    id: u16,
    granted: u32,
    sent: u32,
}

/// Chunks that each host writes to host 3 within that number of chunks' times, if each has X messages under way: of these lengths, one
/// after the other. `way_ns` is the time of frames from a host to the switch and back.
fn written(built: &Built, lengths: &[(u16, u32)], way_ns: u64, chunks: u64) -> BTreeMap<u16, u64> {
    let mut net = Net::new(built);
    let begin = net.rig.now.0;
    let chunk_ns = net.time(CHUNK.into());
    let lengths: BTreeMap<u16, u32> = lengths.iter().copied().collect();
    let mut sending: BTreeMap<(u16, u16), Sending> = BTreeMap::new();
    // When hosts' links are free, and the hosts' next steps by time.
    let mut free: BTreeMap<u16, u64> = BTreeMap::new();
    let mut agenda = BinaryHeap::new();
    for (nth, host) in lengths.keys().enumerate() {
        (0..DEMANDS)
            .for_each(|lane| agenda.push(Reverse((begin + nth as u64 * 977, *host, lane, Next::Ask))));
    }
    let mut chunks_of: BTreeMap<u16, u64> = BTreeMap::new();
    while let Some(Reverse((at, host, lane, next))) = agenda.pop() {
        if at > begin + chunks * chunk_ns {
            return chunks_of;
        }
        net.rig.now = net.rig.now.max(Nanos(at));
        let total = lengths[&host];
        let message = sending.entry((host, lane)).or_insert(Sending { id: lane, ..Sending::default() });
        let mut granted = |message: &mut Sending, grant: &Grant, agenda: &mut BinaryHeap<_>| {
            assert_eq!((grant.id, grant.offset), (message.id, message.granted), "host {host}");
            message.granted += grant.bytes;
            for _ in 0..grant.bytes.div_ceil(CHUNK) {
                let free = free.entry(host).or_default();
                let start = (at + u64::from(grant.wait) + way_ns).max(*free);
                *free = start + chunk_ns;
                agenda.push(Reverse((start + chunk_ns, host, lane, Next::Send)));
            }
        };
        match next {
            Next::Ask => {
                let grant = net.notify(host, 3, message.id, total).unwrap();
                granted(message, &grant, &mut agenda);
            }
            Next::Send => {
                let bytes = CHUNK.min(total - message.sent);
                let frame = part(&net, host, message.id, total, message.sent, bytes);
                let fate = net.fate((host, 3), &frame);
                let Fate::Scheduled(grant) = fate else { panic!("{host} {lane} {message:?}: {fate:?}") };
                message.sent += bytes;
                *chunks_of.entry(host).or_default() += 1;
                if let Some(grant) = grant {
                    granted(message, &grant, &mut agenda);
                }
                if message.sent == total {
                    *message = Sending { id: message.id.wrapping_add(4), ..Sending::default() };
                    agenda.push(Reverse((at + way_ns, host, lane, Next::Ask)));
                }
            }
        }
    }
    chunks_of
}

fn part(net: &Net, host: u16, id: u16, total: u32, offset: u32, bytes: u32) -> Vec<u8> {
    net.frame(host, 3, edm::PCP_DATA, &message(Kind::Wreq, id, total, offset, bytes as u16))
}

/// Two hosts with short messages beside one with long messages: the lower share of the throughput that they have beside
/// a host like themselves.
fn kept(built: &Built, way_chunks: f64, long: u32) -> f64 {
    let way_ns = (way_chunks * Net::new(built).time(CHUNK.into()) as f64) as u64;
    let of = |length| written(built, &[(1, length), (2, CHUNK), (4, CHUNK)], way_ns, 3_000);
    let (beside_short, beside_long) = (of(CHUNK), of(long));
    assert!(beside_long.values().sum::<u64>() * 100 > 95 * beside_short.values().sum::<u64>());
    [2, 4].map(|host| beside_long[&host] as f64 / beside_short[&host] as f64).into_iter().fold(1.0, f64::min)
}

#[test]
fn long_messages_leave_others_their_shares() {
    let tofino =
        [Arch::Tna, Arch::T2na].into_iter().flat_map(|arch| [(Mode::TimedDst, arch), (Mode::Timed, arch)]);
    let v1model = [Mode::TimedDst, Mode::Timed, Mode::Calendar].map(|mode| (mode, Arch::V1model));
    for (mode, arch) in v1model.into_iter().chain(tofino) {
        let rack = |more: &str| rack_of("timed-dst", &format!("{UNMETERED}\n{more}"), "");
        let built = Built::on(rack(""), mode.scheme(), arch);
        for (way_chunks, long) in [(0.3, 900_000), (1.5, 900_000), (0.3, 2 * CHUNK), (6.0, 900_000)] {
            let kept = kept(&built, way_chunks, long);
            assert!(
                kept > 0.9,
                "{mode:?}, {arch}, {way_chunks} chunks' way, messages of {long} bytes: {kept:.3}"
            );
        }
        // Without it they lose a fourth, with windows of two chunks.
        let unfair = Built::on(rack("shares = false"), mode.scheme(), arch);
        let kept = kept(&unfair, 0.3, 900_000);
        assert!(kept < 0.8, "{mode:?}, {arch}: {kept:.3}");
    }
}

/// A long message fills its link as ever, alone and beside others like it.
#[test]
fn shares_cost_no_time() {
    for way_chunks in [0.3, 1.0, 2.0] {
        for hosts in [&[1u16][..], &[1, 2], &[1, 2, 4]] {
            let of = |more: &str| {
                let rack = rack_of("timed-dst", &format!("{UNMETERED}\n{more}"), "");
                let built = Built::on(rack, Scheme::EDM_TIMED_DST, Arch::V1model);
                let way_ns = (way_chunks * Net::new(&built).time(CHUNK.into()) as f64) as u64;
                let lengths: Vec<(u16, u32)> = hosts.iter().map(|host| (*host, 900_000)).collect();
                written(&built, &lengths, way_ns, 2_000).values().sum::<u64>()
            };
            let (with, without) = (of(""), of("shares = false"));
            assert!(with * 100 >= without * 99, "{way_chunks} {hosts:?}: {with} of {without}");
        }
    }
}

/// Modes whose links have clocks, on all architectures.
fn clocks() -> impl Iterator<Item = (Mode, Arch)> {
    [Mode::TimedDst, Mode::Timed].into_iter().flat_map(|mode| Arch::ALL.map(|arch| (mode, arch)))
}

/// A host that sends what it was granted before its time gets no class and no more time: clocks and rights stay as they were.
#[test]
fn data_before_its_time_is_not_covered() {
    for (mode, arch) in clocks() {
        let built = Built::on(rack_of("timed-dst", UNMETERED, ""), mode.scheme(), arch);
        let mut net = Net::new(&built);
        let (on, chunk_ns, long) = (format!("{mode:?}, {arch}"), net.time(CHUNK.into()), 20 * CHUNK);
        let uncovered = Fate::Demoted("uncovered");
        // Another host's messages come before.
        (0..DEMANDS).for_each(|id| assert!(net.notify(4, 3, id, long).is_some(), "{on}"));
        let grant = net.notify(1, 3, 2, long).unwrap();
        assert!(grant.bytes == CHUNK && u64::from(grant.wait) > 3 * chunk_ns, "{on}: {grant:?}");
        for _ in 0..5 {
            assert_eq!(net.write(1, 3, 2, long, 0, CHUNK as u16), uncovered, "{on}");
        }
        // Of a message of a chunk nothing more would be granted.
        let whole = net.notify(2, 3, 0, CHUNK).unwrap();
        assert_eq!(u64::from(whole.wait), u64::from(grant.wait) + chunk_ns, "{on}: nothing was granted");
        assert_eq!(net.write(2, 3, 0, CHUNK, 0, CHUNK as u16), uncovered, "{on}");
        if arch.is_tofino() {
            // A short chunk would free its lane.
            net.notify(2, 3, 1, CHUNK).unwrap();
            assert_eq!(net.write(2, 3, 1, 1, 0, 1), uncovered, "{on}");
            assert_eq!(net.notify(2, 3, 5, CHUNK), None, "{on}");
        }
        assert_eq!(net.rig.counter(DATA_COUNTER, 3).packets, 0, "{on}");

        // A chunk's time before it is due it is covered as ever.
        net.wait(u64::from(grant.wait) - chunk_ns - 1);
        assert_eq!(net.write(1, 3, 2, long, 0, CHUNK as u16), uncovered, "{on}");
        net.wait(1);
        let next = net.write(1, 3, 2, long, 0, CHUNK as u16);
        assert!(matches!(next, Fate::Scheduled(Some(Grant { offset: CHUNK, .. }))), "{on}: {next:?}");
        net.wait(chunk_ns);
        assert_eq!(net.write(2, 3, 0, CHUNK, 0, CHUNK as u16), Fate::Scheduled(None), "{on}");
        assert_eq!(net.rig.counter(DATA_COUNTER, 3).packets, 2, "{on}");
    }
}

/// The same of answers: a memory node may be hostile too.
#[test]
fn answers_before_their_time_are_not_covered() {
    for (mode, arch) in clocks() {
        let built = Built::on(rack_of("timed-dst", UNMETERED, ""), mode.scheme(), arch);
        let mut net = Net::new(&built);
        let (on, long) = (format!("{mode:?}, {arch}"), 20 * CHUNK);
        (0..DEMANDS).for_each(|id| assert!(net.request(1, 4, id, long).is_some(), "{on}"));
        let wait = u64::from(net.request(1, 3, 2, long).unwrap());
        assert!(wait > 2 * net.time(CHUNK.into()), "{on}: {wait}");
        let answer = |net: &mut Net| net.chunk(Kind::Rres, (3, 1), 2, long, 0, CHUNK as u16);
        assert_eq!(answer(&mut net), Fate::Demoted("uncovered"), "{on}");
        // The end of one that is refused needs no time.
        assert_eq!(net.chunk(Kind::Rres, (4, 1), 1, 0, 0, 0), Fate::Scheduled(None), "{on}");
        net.wait(wait);
        assert!(matches!(answer(&mut net), Fate::Scheduled(Some(_))), "{on}");
    }
}
