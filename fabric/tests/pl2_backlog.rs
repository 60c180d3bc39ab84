//! Reservations as long as a flow's backlog.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use p4rack_fabric::common::Station;
use p4rack_fabric::pl2::{Config, Endpoint, Mode, Peer, full_frame_wire_bytes};
use p4rack_fabric::{HostMachine, Machine};
use p4rack_wire::ethernet::Ethernet;
use p4rack_wire::ethernet::overhead::wire_bytes;
use p4rack_wire::pl2::{Control, Kind};
use p4rack_wire::{EtherType, MacAddr, Nanos};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// 1 bit a nanosecond.
const RATE: u64 = 1_000_000_000;
const OWN: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
const PEERS: [MacAddr; 2] = [MacAddr([2, 0, 0, 0, 0, 2]), MacAddr([2, 0, 0, 0, 0, 3])];
const K: u8 = 12;
const LANES: u8 = 5;
const TAGGED: usize = 18;
const VID: u16 = 100;

/// Frames of a flow's port to a peer, or time that passes.
#[derive(Clone, Debug)]
enum Step {
    Give { peer: usize, port: u8, payload: usize, frames: u8 },
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..2usize, 0u8..9, 40..1_501usize, 1u8..30)
            .prop_map(|(peer, port, payload, frames)| Step::Give { peer, port, payload, frames }),
        1 => (0u64..300_000).prop_map(Step::Wait),
    ]
}

/// A UDP packet from this port with its number.
fn packet(peer: usize, port: u8, number: u32, payload: usize) -> Vec<u8> {
    let mut frame = vec![0; 14 + payload];
    Ethernet { dst: PEERS[peer], src: OWN, ether_type: EtherType::IPV4 }.emit(&mut frame);
    (frame[14], frame[23], frame[35]) = (0x45, 17, port);
    frame[42..46].copy_from_slice(&number.to_be_bytes());
    frame
}

/// A reservation, as the switch would hold it.
#[derive(Debug)]
struct Reserved {
    bytes: u64,
    /// From here on the switch takes the next reservation of its lane.
    begins: Nanos,
}

#[derive(Debug)]
struct Rack {
    host: Endpoint,
    now: Nanos,
    slot: Nanos,
    slot_parts: u8,
    counting: bool,
    cells: BTreeMap<(MacAddr, u8), Reserved>,
    /// Grants on their way.
    grants: Vec<(Nanos, Vec<u8>)>,
    /// Next number to leave, by peer and port.
    left: BTreeMap<(MacAddr, u8), u32>,
}

impl Rack {
    fn run_until(&mut self, end: Nanos) {
        let mut out = Vec::new();
        loop {
            while self.host.poll_link(self.now, &mut out).is_some() {
                self.take(&out);
            }
            let grant = self.grants.iter().map(|(at, _)| *at).min();
            let due = self.host.next_timeout().into_iter().chain(grant).min().filter(|due| *due <= end);
            let Some(due) = due else { break };
            self.now = self.now.max(due);
            self.host.handle_timeout(self.now);
            let (come, later): (Vec<_>, Vec<_>) = self.grants.drain(..).partition(|(at, _)| *at <= self.now);
            self.grants = later;
            come.iter().for_each(|(_, grant)| self.host.handle_link(grant, self.now, self.now));
        }
        self.now = end;
    }

    /// Handles an honest host's frame as the switch does.
    fn take(&mut self, frame: &[u8]) {
        let peer = Ethernet::parse(frame).unwrap().dst;
        if frame[16..18] == EtherType::PL2_DEFAULT.0.to_be_bytes() && frame[TAGGED] & 0xf == Kind::Rsv as u8 {
            let rsv = Control::parse(&frame[TAGGED..]).unwrap();
            assert!(rsv.cell < 2 * LANES, "{rsv:?}");
            self.grant(frame, rsv);
            if rsv.demand == 0 {
                self.cells.remove(&(peer, rsv.cell));
                return;
            }
            assert!(rsv.demand <= K * self.slot_parts, "more than K slots: {rsv:?}");
            let lane = [rsv.cell & !1, rsv.cell | 1];
            assert!(
                lane.iter()
                    .all(|cell| self.cells.get(&(peer, *cell)).is_none_or(|held| held.begins <= self.now)),
                "the lane has a reservation that has not begun: {rsv:?}"
            );
            let bytes = match self.counting {
                true => rsv.demand.into(),
                false => {
                    u64::from(rsv.demand) * full_frame_wire_bytes(false).div_ceil(self.slot_parts.into())
                }
            };
            let begins = self.now + self.wait(&rsv);
            self.cells.insert((peer, rsv.cell), Reserved { bytes, begins });
            return;
        }
        let vid = u16::from_be_bytes([frame[14] & 0xf, frame[15]]);
        let held = self.cells.get_mut(&(peer, (vid - VID) as u8)).expect("a cell that was reserved");
        let cost = if self.counting { 1 } else { wire_bytes(frame.len() as u64) };
        held.bytes = held.bytes.checked_sub(cost).expect("no more than was reserved");
        held.begins = self.now;
        let number = u32::from_be_bytes([frame[46], frame[47], frame[48], frame[49]]);
        let next = self.left.entry((peer, frame[39])).or_default();
        assert_eq!(number, *next, "frames of a flow leave in order");
        *next += 1;
    }

    /// From an RSV to its slots.
    fn wait(&self, rsv: &Control) -> Nanos {
        if self.counting {
            Nanos(u64::from(rsv.id % 40) * self.slot.0)
        } else {
            Nanos(u64::from(rsv.id % 500_000))
        }
    }

    fn grant(&mut self, frame: &[u8], rsv: Control) {
        let mut grant = frame.to_vec();
        let (dst, src) = grant[..12].split_at_mut(6);
        dst.swap_with_slice(src);
        let recv_wait = match self.counting {
            true => rsv.id % 40,
            false => self.wait(&rsv).0 as u32,
        };
        Control { kind: Kind::Grt as u8, recv_wait, ..rsv }.emit(&mut grant[TAGGED..]);
        self.grants.push((self.now + Nanos(1_000 + u64::from(rsv.id % 7_000)), grant));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Never more than K, than lanes or than was reserved; all that was accepted leaves, each flow's in order.
    #[test]
    fn bounds_hold_whatever_waits(
        steps in proptest::collection::vec(step(), 1..40),
        mode in prop_oneof![Just(Mode::Counter), Just(Mode::Clock)],
        (piece, by_flow, parts, in_flight) in (proptest::option::of(1u8..=K), any::<bool>(), 1u8..4, 1usize..4),
    ) {
        let counting = mode == Mode::Counter;
        let slot_parts = if counting { 1 } else { parts };
        let alone = Config::new(OWN, mode, RATE);
        let config = Config {
            station: Station { queue_limit_frames: 100, ..Station::new(OWN, RATE) },
            peers: PEERS.map(|mac| Peer { mac, slot: alone.slot, far: false }).to_vec(),
            k: K, piece, by_flow, slot_parts, in_flight, lanes: LANES, vid: VID, shim: false, t_slots: 0,
            ..alone
        };
        let slot = config.slot;
        config.check().unwrap();
        let host = Endpoint::new(config, 1, Nanos::ZERO);
        let mut rack = Rack {
            host, now: Nanos::ZERO, slot, slot_parts, counting, cells: BTreeMap::new(), grants: Vec::new(),
            left: BTreeMap::new(),
        };
        let mut given = BTreeMap::<_, u32>::new();
        for step in steps {
            match step {
                Step::Give { peer, port, payload, frames } => for _ in 0..frames {
                    let number = given.entry((PEERS[peer], port)).or_default();
                    let before = rack.host.backlog_frames();
                    rack.host.handle_app(&packet(peer, port, *number, payload), rack.now);
                    *number += (rack.host.backlog_frames() - before) as u32;
                },
                Step::Wait(wait) => rack.run_until(rack.now + Nanos(wait)),
            }
        }
        rack.run_until(rack.now + Nanos::from_secs(1));
        prop_assert_eq!(rack.host.backlog_frames(), 0);
        given.retain(|_, frames| *frames > 0);
        prop_assert_eq!(rack.left, given);
    }
}

/// 30 frames of one flow: one reservation if K allows, pieces otherwise.
#[test]
fn a_message_is_reserved_whole() {
    for (k, piece, longest) in [(30, Some(4), 30), (29, Some(4), 26), (4, None, 4)] {
        let alone = Config::new(OWN, Mode::Clock, RATE);
        let peers = PEERS.map(|mac| Peer { mac, slot: alone.slot, far: false }).to_vec();
        let config = Config {
            peers,
            k,
            piece,
            by_flow: true,
            vid: VID,
            shim: false,
            t_slots: 0,
            lanes: LANES,
            ..alone
        };
        let mut host = Endpoint::new(config, 1, Nanos::ZERO);
        (0..30).for_each(|number| host.handle_app(&packet(0, 1, number, 1_500), Nanos::ZERO));
        let mut demands = Vec::new();
        let (mut now, mut out) = (Nanos::ZERO, Vec::new());
        while host.backlog_frames() > 0 {
            while host.poll_link(now, &mut out).is_some() {
                if out.len() < 100 {
                    demands.push(Control::parse(&out[TAGGED..]).unwrap().demand);
                    out[..12].rotate_left(6);
                    out[TAGGED] = out[TAGGED] & 0xf0 | Kind::Grt as u8;
                    host.handle_link(&out.clone(), now, now);
                }
            }
            now = host.next_timeout().unwrap_or(now).max(now + Nanos(1));
            host.handle_timeout(now);
        }
        assert_eq!(
            (demands.iter().max(), demands.iter().map(|d| u32::from(*d)).sum::<u32>()),
            (Some(&longest), 30),
            "{k}"
        );
        assert_eq!(demands[0], if k == 30 { 30 } else { 4 }, "{demands:?}");
    }
}
