//! Sending of nodes and switches, and faults of links.

use super::faulty::Fate;
use super::hostile::HOSTILE;
use super::plant::Effect;
use super::world::{Event, FAULTS_NS, FaultsWorld, FaultyHost};
use crate::frames::Frame;
use crate::message::{host_of, mac_of};
use p4rack_fabric::Machine as _;
use p4rack_wire::edm::{self, Kind};
use p4rack_wire::{MacAddr, Nanos};

/// Delay from one end of a link to the other.
const LINK_NS: u64 = 300;
/// Delay of a duplicated write, if that bug is planted.
const AGAIN_NS: u64 = 30_000;

impl FaultsWorld<'_> {
    /// Plans the next time to ask a node: for a frame or a timeout.
    pub(super) fn plan(&mut self, nth: u16, now_ns: u64) {
        let FaultyHost { machines, uplink, .. } = &mut self.nodes[usize::from(nth)];
        let poll = uplink.plan(machines, now_ns);
        self.agenda.extend(poll.map(|at_ns| (at_ns, Event::Poll(nth))));
    }

    pub(super) fn poll(&mut self, nth: u16, now_ns: u64) {
        let mut payload = std::mem::take(&mut self.payload);
        let node = &mut self.nodes[usize::from(nth)];
        let to = node.uplink.ask(&mut node.machines, now_ns, &mut payload);
        if let Some(to) = to {
            let restarts = node.restarts;
            if let Err(problem) = self.writes.left((nth, restarts, to), &payload, now_ns, &mut self.history) {
                self.outcome.problems.push(problem);
            }
            if let Some(hostile) = &mut self.hostile {
                hostile.hear(nth, to, &payload);
            }
            let frame = self.frame(nth, to, &payload);
            let tail_ns = self.nodes[usize::from(nth)].uplink.send(&frame, now_ns);
            self.send_to_switches(nth, frame, tail_ns);
        }
        self.payload = payload;
        self.completed(nth, now_ns);
        self.plan(nth, now_ns);
    }

    /// Makes a frame with a message.
    fn frame(&mut self, from: u16, to: u16, payload: &[u8]) -> Frame {
        let mut frame = self.frames.take(true);
        let (to, from) = (mac_of(to.into()), mac_of(from.into()));
        edm::emit_frame(to, from, self.rack.edm.ether_type, payload, &mut frame);
        frame
    }

    /// Sends a frame of this node to every switch.
    pub(super) fn send_to_switches(&mut self, from: u16, frame: Frame, tail_ns: u64) {
        for switch in 0..self.switches.len() {
            let copy = self.frames.copy(&frame);
            self.cross(copy, tail_ns, |frame| Event::AtSwitch(switch, from, frame), from);
        }
        self.frames.release(frame);
    }

    /// Carries a frame over a link of this node.
    fn cross(&mut self, frame: Frame, now_ns: u64, arrival: impl Fn(Frame) -> Event, node: u16) {
        self.count("crossings", 1);
        if self.nodes[usize::from(node)].is_silent {
            self.count("lost_in_silence", 1);
            return self.frames.release(frame);
        }
        let kind = self.kind_of(&frame);
        if self.planted.loses(kind, now_ns >= FAULTS_NS) {
            return self.frames.release(frame);
        }
        match self.faults.fate(kind, now_ns) {
            Fate::Lost => {
                self.count("lost", 1);
                self.frames.release(frame);
            }
            // The receiver detects it by the frame's checksum.
            Fate::Damaged => {
                self.count("damaged", 1);
                self.frames.release(frame);
            }
            Fate::Arrives { late_ns } => {
                self.count("late", u64::from(late_ns > 0));
                self.agenda.add(now_ns + LINK_NS + late_ns, arrival(frame));
            }
            Fate::Twice { late_ns } => {
                self.count("twice", 1);
                let copy = self.frames.copy(&frame);
                self.agenda.add(now_ns + LINK_NS, arrival(copy));
                self.agenda.add(now_ns + LINK_NS + late_ns, arrival(frame));
            }
        }
    }

    fn kind_of(&self, frame: &[u8]) -> Option<Kind> {
        let (_, payload) = edm::parse_frame(frame, self.rack.edm.ether_type)?;
        Kind::of(payload[0]).ok()
    }

    pub(super) fn transmit(&mut self, switch: usize, now_ns: u64) {
        while let Some(hub) = &mut self.switches[switch]
            && let Some((port, frame)) = hub.poll(now_ns, &mut self.frames)
        {
            let to = port - 1;
            let tail_ns = now_ns + self.nodes[usize::from(to)].uplink.on_wire(&frame);
            self.cross(frame, tail_ns, |frame| Event::AtHost(to, frame), to);
        }
        let again = self.switches[switch].as_mut().and_then(|hub| hub.again(now_ns));
        self.agenda.extend(again.map(|at_ns| (at_ns, Event::Switch(switch))));
    }

    pub(super) fn at_host(&mut self, nth: u16, frame: &[u8], now_ns: u64) {
        let parsed = edm::parse_frame(frame, self.rack.edm.ether_type);
        let from = parsed.as_ref().and_then(|(ethernet, _)| node_of(ethernet.src));
        let (Some((_, payload)), Some(from)) = (parsed, from) else {
            return self.outcome.problems.push(format!("node {nth} gets a frame that is not EDM's"));
        };
        if self.nodes[usize::from(nth)].is_silent {
            return self.count("lost_in_silence", 1);
        }
        let mut payload = payload.to_vec();
        let kind = Kind::of(payload[0]).ok();
        let (restarts, first) =
            (self.nodes[usize::from(from)].restarts, self.nodes[usize::from(nth)].first_session);
        if from != HOSTILE {
            self.writes.arrived((nth, first, restarts), &payload, now_ns, &mut self.history);
        }
        let (now, mut behind) = (Nanos(now_ns), None);
        let host = &mut self.nodes[usize::from(nth)].machines;
        match self.planted.arrives((from, nth), kind, &mut payload) {
            Effect::None => {}
            Effect::Lost => return,
            Effect::Before(other) => host.handle_link((from, &other), now, now),
            Effect::After(other) => behind = Some(other),
            Effect::Later(other) => {
                let frame = self.frame(from, nth, &other);
                self.agenda.add(now_ns + AGAIN_NS, Event::AtHost(nth, frame));
            }
        }
        let host = &mut self.nodes[usize::from(nth)].machines;
        host.handle_link((from, &payload), now, now);
        behind.into_iter().for_each(|other| host.handle_link((from, &other), now, now));
        self.completed(nth, now_ns);
        self.plan(nth, now_ns);
    }
}

/// The node with this address.
fn node_of(mac: MacAddr) -> Option<u16> {
    u16::try_from(host_of(&mac.0)?).ok()
}
