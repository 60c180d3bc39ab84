//! The frames of one destination that no reservation covers yet, by flow.
//!
//! Frames of a flow stay in order. A hash chooses a flow's queue, so two flows may share one: they then share a turn,
//! nothing else.

use crate::common::FrameId;
use p4rack_wire::EtherType;
use p4rack_wire::ethernet::Ethernet;
use p4rack_wire::pl2::LANES_MAX;
use std::collections::VecDeque;

/// Queues of a destination if flows have queues of their own: each can have a lane.
const FLOWS: usize = LANES_MAX as usize;

/// A frame that waits, and the bytes of a slot that it takes, at most all of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub frame: FrameId,
    pub bytes: u32,
}

/// The flows of a destination.
#[derive(Clone, Debug)]
pub(super) struct Flows {
    flows: Vec<Flow>,
    /// Number of frames in all of them.
    len: usize,
    /// Bit set of flows with frames.
    waiting: u64,
    /// Bit set of flows with at least `own_frames`.
    long: u64,
    /// Bit set of flows with a reservation in flight.
    asked: u64,
    /// The flow that is next.
    turn: u32,
    own_frames: usize,
}

#[derive(Clone, Debug, Default)]
struct Flow {
    frames: VecDeque<Waiting>,
    /// Sum over `frames`.
    bytes: u64,
    in_flight: u8,
}

impl Flows {
    /// No frames. With `own_frames`, flows have queues of their own, and a flow with this number of frames may have its
    /// own reservation.
    pub fn new(own_frames: Option<usize>) -> Flows {
        let count = if own_frames.is_some() { FLOWS } else { 1 };
        let own_frames = own_frames.unwrap_or(usize::MAX);
        Flows {
            flows: vec![Flow::default(); count],
            len: 0,
            waiting: 0,
            long: 0,
            asked: 0,
            turn: 0,
            own_frames,
        }
    }

    /// Whether flows have queues of their own. Otherwise no frame waits here.
    #[inline]
    pub fn are_told_apart(&self) -> bool {
        self.own_frames != usize::MAX
    }

    /// Whether a flow may have a reservation of its own, and has none in flight.
    #[inline]
    pub fn has_own(&self) -> bool {
        self.long & !self.asked != 0
    }

    /// Number of frames.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Number of frames in the queue of flow `number`.
    #[inline]
    pub fn len_of(&self, number: u32) -> usize {
        self.flows[self.at(number)].frames.len()
    }

    fn at(&self, number: u32) -> usize {
        number as usize % self.flows.len()
    }

    /// Appends a frame of flow `number`.
    #[inline]
    pub fn push(&mut self, number: u32, waiting: Waiting) {
        let at = self.at(number);
        let flow = &mut self.flows[at];
        flow.frames.push_back(waiting);
        flow.bytes += u64::from(waiting.bytes);
        self.len += 1;
        self.waiting |= 1 << at;
        if flow.frames.len() >= self.own_frames {
            self.long |= 1 << at;
        }
    }

    /// The flow whose turn it is, if any has frames: first those without a reservation in flight.
    pub fn next(&self) -> Option<usize> {
        let new = self.waiting & !self.asked;
        let among = if new != 0 { new } else { self.waiting };
        let ahead = among.rotate_right(self.turn);
        (among != 0).then(|| (ahead.trailing_zeros() + self.turn) as usize % 64)
    }

    /// Frames of the flow at `at`, oldest first.
    pub fn frames(&self, at: usize) -> impl Iterator<Item = &Waiting> {
        self.flows[at].frames.iter()
    }

    /// Their bytes.
    pub fn bytes(&self, at: usize) -> u64 {
        self.flows[at].bytes
    }

    /// Takes the oldest frame of the flow at `at`.
    pub fn pop(&mut self, at: usize) -> Option<Waiting> {
        let flow = &mut self.flows[at];
        let waiting = flow.frames.pop_front()?;
        flow.bytes -= u64::from(waiting.bytes);
        self.len -= 1;
        if flow.frames.is_empty() {
            self.waiting &= !(1 << at);
        }
        if flow.frames.len() < self.own_frames {
            self.long &= !(1 << at);
        }
        Some(waiting)
    }

    /// Records that the flow at `at` has one more reservation in flight, and ends its turn.
    pub fn ask(&mut self, at: usize) {
        self.flows[at].in_flight += 1;
        self.asked |= 1 << at;
        self.turn = (at as u32 + 1) % 64;
    }

    /// Records that one of its reservations is in flight no more.
    pub fn ended(&mut self, at: u8) {
        let flow = &mut self.flows[usize::from(at)];
        flow.in_flight = flow.in_flight.saturating_sub(1);
        if flow.in_flight == 0 {
            self.asked &= !(1 << at);
        }
    }
}

/// Number of the flow of an application's frame: a hash over the addresses and, if it has some, the ports of an
/// IP packet; 0 for anything else.
pub(super) fn flow_of(frame: &[u8]) -> u32 {
    let (Ok(ethernet), Some(packet)) = (Ethernet::parse(frame), frame.get(Ethernet::BYTES..)) else {
        return 0;
    };
    let (addresses, protocol, ports_at) = match (ethernet.ether_type, packet.first()) {
        (EtherType::IPV4, Some(first)) if packet.len() >= 20 => {
            // Fragments after the first have no ports, so none of them counts.
            let fragment = packet[6] & 0x3f != 0 || packet[7] != 0;
            let header_bytes = usize::from(first & 0xf) * 4;
            (&packet[12..20], packet[9], (!fragment).then_some(header_bytes))
        }
        (EtherType::IPV6, _) if packet.len() >= 40 => (&packet[8..40], packet[6], Some(40)),
        _ => return 0,
    };
    let ports = match protocol {
        6 | 17 => ports_at.and_then(|at| packet.get(at..at + 4)).unwrap_or_default(),
        _ => &[],
    };
    // FNV-1a.
    let bytes = addresses.iter().copied().chain([protocol]).chain(ports.iter().copied());
    let hash = bytes.fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    hash ^ hash >> 16
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::Pool;

    /// Frames of 10 bytes.
    fn flows(own_frames: usize, frames: &[u32]) -> Flows {
        let (mut flows, mut pool) = (Flows::new(Some(own_frames)), Pool::<()>::new(usize::MAX));
        frames
            .iter()
            .for_each(|number| flows.push(*number, Waiting { frame: pool.store(&[b""]), bytes: 10 }));
        flows
    }

    #[test]
    fn flows_take_turns_and_those_without_a_reservation_go_first() {
        let mut flows = flows(1, &[3, 3, 5, 70]);
        assert_eq!((flows.len(), flows.len_of(3), flows.len_of(6)), (4, 2, 1), "70 shares a queue with 6");
        assert_eq!(flows.next(), Some(3));
        flows.ask(3);
        assert_eq!(flows.next(), Some(5));
        flows.ask(5);
        flows.ask(6);
        assert_eq!(
            (flows.next(), flows.has_own()),
            (Some(3), false),
            "all have one, the next after the last is 3"
        );
        flows.ask(3);
        flows.ended(3);
        assert!(!flows.has_own(), "it has another");
        flows.ended(3);
        assert_eq!((flows.next(), flows.has_own()), (Some(3), true));
        assert_eq!(
            (flows.pop(3).is_some(), flows.pop(3).is_some(), flows.pop(3).is_some()),
            (true, true, false)
        );
        assert_eq!((flows.next(), flows.has_own()), (Some(5), false));
    }

    #[test]
    fn few_frames_have_no_reservation_of_their_own() {
        let mut flows = flows(2, &[1, 2, 2]);
        assert_eq!((flows.next(), flows.has_own(), flows.bytes(2)), (Some(1), true, 20));
        flows.pop(2);
        assert_eq!((flows.has_own(), flows.bytes(2)), (false, 10));
        assert!(flows.are_told_apart() && !Flows::new(None).are_told_apart());
    }

    #[test]
    fn a_flow_is_addresses_and_ports() {
        let packet = |ether_type: [u8; 2], body: &[u8]| flow_of(&[&[0; 12][..], &ether_type, body].concat());
        let v4 = |protocol, source: u8, port: u8, fragment: [u8; 2]| {
            let mut ip = [0; 28];
            (ip[0], ip[9], ip[15], ip[21]) = (0x45, protocol, source, port);
            ip[6..8].copy_from_slice(&fragment);
            packet([8, 0], &ip)
        };
        let base = v4(17, 1, 80, [0, 0]);
        assert_eq!(base, v4(17, 1, 80, [0x40, 0]), "don't fragment is no fragment");
        for other in [v4(6, 1, 80, [0, 0]), v4(17, 2, 80, [0, 0]), v4(17, 1, 81, [0, 0])] {
            assert_ne!(base, other);
        }
        assert_eq!(v4(1, 1, 80, [0, 0]), v4(1, 1, 81, [0, 0]), "ICMP has no ports");
        assert_eq!(v4(17, 1, 80, [0x20, 0]), v4(17, 1, 81, [0, 9]), "nor have fragments");
        let v6 = |port| {
            let mut ip = [0; 44];
            (ip[0], ip[6], ip[43]) = (0x60, 6, port);
            packet([0x86, 0xdd], &ip)
        };
        assert_ne!(v6(1), v6(2));
        assert_eq!(
            (packet([0x88, 0xb5], &[1; 60]), packet([8, 0], &[0x4f; 20]), flow_of(&[])),
            (0, packet([8, 0], &[0x4f; 20]), 0)
        );
    }
}
