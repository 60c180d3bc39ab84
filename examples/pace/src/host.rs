//! A host's machine: frames wait by destination until the switch has granted their time, then leave like any Ethernet frame.

use crate::{ASK, ETHER_TYPE, Frame, GRANT};
use p4rack_fabric::common::{AppFrame, Delay, Station, Stats};
use p4rack_fabric::{HostMachine, Machine, ethernet};
use p4rack_wire::ethernet::Ethernet;
use p4rack_wire::{MacAddr, Nanos};
use std::collections::VecDeque;

/// Configuration of a [`Host`].
#[derive(Clone, Debug)]
pub struct Config {
    /// Address, rate and queue limits.
    pub station: Station,
    /// Hosts for which it requests grants. Frames to all others are best effort.
    pub peers: Vec<MacAddr>,
    /// Maximum frames of a request.
    pub frames: u8,
    /// Time that it waits for a grant before it sends the request again.
    pub patience: Nanos,
}

/// State of a peer's frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing: no request is under way.
    Idle,
    /// The grant of request `id`, made at `at`.
    Asked { frames: u8, id: u16, at: Nanos },
    /// The time from which `frames` may leave.
    Granted { frames: u8, from: Nanos },
}

/// Frames to one peer.
#[derive(Debug)]
struct Peer {
    mac: MacAddr,
    waiting: VecDeque<Vec<u8>>,
    state: State,
}

/// Pace's host:
///
/// ```text
///          a frame waits: ask            its grant comes
///   Idle ─────────────────────▶ Asked ─────────────────────▶ Granted
///    ▲                          │   ▲                          │
///    │                          └───┘ no grant: ask again      │
///    └─────────────────────────────────────────────────────────┘ the wait is over: the frames go to the NIC
/// ```
///
/// Queues and pacing of the NIC are those of plain Ethernet's machine, which it contains.
#[derive(Debug)]
pub struct Host {
    nic: ethernet::Endpoint,
    peers: Vec<Peer>,
    frames: u8,
    patience: Nanos,
    next_id: u16,
    /// Buffers of frames that have left.
    spare: Vec<Vec<u8>>,
    asked: u64,
    asked_again: u64,
    queue_full: u64,
    grants_unasked: u64,
}

impl Host {
    /// A machine at `now`.
    pub fn new(config: Config, now: Nanos) -> Host {
        let nic = ethernet::Config { station: config.station, peers: config.peers.clone() };
        let nic = ethernet::Endpoint::new(nic, now);
        // In the order in which `nic` has them.
        let mut known: Vec<(usize, MacAddr)> =
            config.peers.iter().filter_map(|mac| Some((nic.position_of(*mac)?, *mac))).collect();
        known.sort();
        known.dedup();
        let peer = |(_, mac)| Peer { mac, waiting: VecDeque::new(), state: State::Idle };
        Host {
            nic,
            peers: known.into_iter().map(peer).collect(),
            frames: config.frames,
            patience: config.patience,
            next_id: 0,
            spare: Vec::new(),
            asked: 0,
            asked_again: 0,
            queue_full: 0,
            grants_unasked: 0,
        }
    }

    /// Takes a grant. Returns false for any other frame.
    fn take_grant(&mut self, frame: &[u8], received_at: Nanos) -> bool {
        let Ok(ethernet) = Ethernet::parse(frame) else { return false };
        if ethernet.ether_type != ETHER_TYPE {
            return false;
        }
        let peer = self.nic.position_of(ethernet.src).filter(|_| ethernet.dst == self.nic.station().mac);
        let answers = |grant: &Frame, state| match state {
            State::Asked { frames, id, .. } => (grant.kind, grant.frames, grant.id) == (GRANT, frames, id),
            _ => false,
        };
        match (peer, Frame::parse(&frame[Ethernet::BYTES..])) {
            (Some(peer), Ok(grant)) if answers(&grant, self.peers[peer].state) => {
                let from = received_at.saturating_add(Nanos(u64::from(grant.wait_ns)));
                self.peers[peer].state = State::Granted { frames: grant.frames, from };
            }
            _ => self.grants_unasked += 1,
        }
        true
    }

    /// Advances each peer: hands over granted frames, then requests grants for waiting ones.
    fn advance(&mut self, now: Nanos) {
        for peer in &mut self.peers {
            if let State::Granted { frames, from } = peer.state
                && from <= now
            {
                for _ in 0..frames {
                    let Some(frame) = peer.waiting.pop_front() else { break };
                    self.nic.handle_app(&frame, now);
                    self.spare.push(frame);
                }
                peer.state = State::Idle;
            }
            let again = match peer.state {
                State::Idle if !peer.waiting.is_empty() => false,
                State::Asked { at, .. } if at.saturating_add(self.patience) <= now => true,
                _ => continue,
            };
            let frames = peer.waiting.len().min(usize::from(self.frames)) as u8;
            let id = self.next_id;
            self.next_id = id.wrapping_add(1);
            self.asked += 1;
            self.asked_again += u64::from(again);
            let mut ask = [0; 60];
            Ethernet { dst: peer.mac, src: self.nic.station().mac, ether_type: ETHER_TYPE }.emit(&mut ask);
            Frame { kind: ASK, frames, id, wait_ns: 0 }.emit(&mut ask[Ethernet::BYTES..]);
            self.nic.handle_app(&ask, now);
            peer.state = State::Asked { frames, id, at: now };
        }
    }
}

impl Machine for Host {
    type Received<'a> = &'a [u8];
    type Sent = ();
    type Buffer = Vec<u8>;

    fn handle_link(&mut self, frame: &[u8], received_at: Nanos, now: Nanos) {
        if !self.take_grant(frame, received_at) {
            self.nic.handle_link(frame, received_at, now);
        }
    }

    fn handle_timeout(&mut self, now: Nanos) {
        self.nic.handle_timeout(now);
        self.advance(now);
    }

    /// Frames that arrived together share a request, so it is sent here, behind all of them.
    fn poll_link(&mut self, now: Nanos, out: &mut Vec<u8>) -> Option<()> {
        self.advance(now);
        self.nic.poll_link(now, out)
    }

    fn next_timeout(&self) -> Option<Nanos> {
        let of_peer = |peer: &Peer| match peer.state {
            State::Idle => None,
            State::Asked { at, .. } => Some(at.saturating_add(self.patience)),
            State::Granted { from, .. } => Some(from),
        };
        self.peers.iter().filter_map(of_peer).chain(self.nic.next_timeout()).min()
    }
}

impl HostMachine for Host {
    fn handle_app(&mut self, frame: &[u8], now: Nanos) {
        let to = Ethernet::parse(frame).ok().and_then(|ethernet| self.nic.position_of(ethernet.dst));
        let Some(peer) = to.map(|peer| &mut self.peers[peer]) else {
            return self.nic.handle_app(frame, now);
        };
        if peer.waiting.len() >= self.nic.station().queue_limit_frames {
            self.queue_full += 1;
            return;
        }
        let mut kept = self.spare.pop().unwrap_or_default();
        kept.clear();
        kept.extend_from_slice(frame);
        peer.waiting.push_back(kept);
    }

    fn forward_link(&mut self, frame: &[u8], received_at: Nanos, now: Nanos) -> Option<AppFrame> {
        if self.take_grant(frame, received_at) {
            return None;
        }
        self.nic.forward_link(frame, received_at, now)
    }

    fn poll_app(&mut self, out: &mut Vec<u8>) -> bool {
        self.nic.poll_app(out)
    }

    fn backlog_frames(&self) -> usize {
        self.nic.backlog_frames() + self.peers.iter().map(|peer| peer.waiting.len()).sum::<usize>()
    }

    fn position_of(&self, peer: MacAddr) -> Option<usize> {
        self.nic.position_of(peer)
    }

    fn backlog_at(&self, position: usize) -> usize {
        self.nic.backlog_at(position) + self.peers.get(position).map_or(0, |peer| peer.waiting.len())
    }

    fn station(&self) -> &Station {
        self.nic.station()
    }

    fn stats(&self) -> &Stats {
        self.nic.stats()
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let own = [
            ("pace_asked", self.asked),
            ("pace_asked_again", self.asked_again),
            ("pace_queue_full", self.queue_full),
            ("pace_grants_unasked", self.grants_unasked),
        ];
        self.nic.counters().into_iter().chain(own).collect()
    }

    fn delays(&self) -> Vec<(&'static str, &Delay)> {
        Vec::new()
    }
}
