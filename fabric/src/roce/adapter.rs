//! A network adapter: queue pairs by number, the memory that they offer, and frames.

use super::config::{BadConfig, Config, Connection};
use super::memory::RegisteredMemory;
use super::ready::{Party, Ready};
use super::requester::{self, Outcome, Refused, Request, Requester};
use super::responder::{self, ReceiveRefused, Received, Responder};
use crate::common::counters;
use crate::machine::Machine;
use p4rack_wire::Nanos;
use p4rack_wire::ethernet::overhead;
use p4rack_wire::roce::frame::{self, FrameError};
use p4rack_wire::roce::{DEFAULT_PARTITION, QPN_MAX};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;

counters! {
    /// Counters of an adapter, in addition to those of its queue pairs.
    Counters {
        /// Frames received.
        frames_in,
        /// Frames sent.
        frames_out,
        /// Frames dropped: another protocol.
        not_roce,
        /// Frames dropped: IPv4 with options, or fragments.
        unsupported,
        /// Frames dropped: a header is truncated or invalid.
        malformed,
        /// Frames dropped: IPv4's checksum is wrong.
        bad_checksum,
        /// Frames dropped: the iCRC is wrong.
        bad_icrc,
        /// Frames dropped: no such queue pair.
        unknown_pair,
        /// Frames dropped: addresses or partition are not the connection's.
        foreign,
    }
}

/// Why a queue pair is not added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairError {
    /// Its number has more than 24 bits, or is 0 or 1, which the standard keeps for management.
    BadNumber(u32),
    /// Another queue pair has its number.
    Taken(u32),
    /// The adapter has the maximum number of queue pairs.
    Full,
    /// A sequence number or queue pair number of the connection is out of range.
    BadConnection(BadConfig),
}

impl fmt::Display for PairError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PairError::BadNumber(qpn) => write!(f, "{qpn} is no queue pair's number: use 2 to {QPN_MAX}"),
            PairError::Taken(qpn) => {
                write!(f, "there is a queue pair {qpn}: use another number or remove it first")
            }
            PairError::Full => write!(f, "there are as many queue pairs as there may be: remove one first"),
            PairError::BadConnection(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for PairError {}

/// A completed request or receive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Completion {
    /// A request, by its number.
    Request(u64, Outcome),
    /// A receive, filled with a message.
    Receive(Received),
}

#[derive(Clone, Debug)]
struct Pair {
    connection: Connection,
    party: Party,
    requester: Requester,
    responder: Responder,
    /// Whether the requesting half sends next.
    requests_next: bool,
    /// Whether it is in the adapter's `ready`.
    ready: bool,
    /// Whether it is in the adapter's `done`.
    done: bool,
}

/// A network adapter, driven as a [`Machine`]. [`poll_completion`](Self::poll_completion) is one of its polls.
#[derive(Clone, Debug)]
pub struct Adapter<M> {
    config: Config,
    memory: M,
    pairs: BTreeMap<u32, Pair>,
    /// Queue pairs that may have frames to send.
    ready: Ready,
    /// Queue pairs that may have completions, polled round robin.
    done: VecDeque<u32>,
    counters: Counters,
    /// Counters of removed queue pairs.
    removed: (requester::Counters, responder::Counters),
}

impl<M: RegisteredMemory> Adapter<M> {
    /// An adapter without queue pairs. Errors: a parameter is out of range.
    pub fn new(config: Config, memory: M) -> Result<Adapter<M>, BadConfig> {
        config.check()?;
        let (ready, done) = (Ready::default(), VecDeque::new());
        let (counters, removed) = (Counters::default(), Default::default());
        Ok(Adapter { config, memory, pairs: BTreeMap::new(), ready, done, counters, removed })
    }

    /// The memory that peers may access.
    pub fn memory(&self) -> &M {
        &self.memory
    }

    /// The same, to register and change regions.
    pub fn memory_mut(&mut self) -> &mut M {
        &mut self.memory
    }

    /// The adapter's own counters.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Sum of the requesters' counters, removed queue pairs included.
    pub fn requester_counters(&self) -> requester::Counters {
        let mut sum = self.removed.0.clone();
        self.pairs.values().for_each(|pair| sum.add_up(pair.requester.counters()));
        sum
    }

    /// Sum of the responders' counters, removed queue pairs included.
    pub fn responder_counters(&self) -> responder::Counters {
        let mut sum = self.removed.1.clone();
        self.pairs.values().for_each(|pair| sum.add_up(pair.responder.counters()));
        sum
    }

    /// Numbers of all queue pairs.
    pub fn pairs(&self) -> impl Iterator<Item = u32> {
        self.pairs.keys().copied()
    }

    /// The requesting half of a queue pair.
    pub fn requester(&self, qpn: u32) -> Option<&Requester> {
        self.pairs.get(&qpn).map(|pair| &pair.requester)
    }

    /// The responding half of a queue pair.
    pub fn responder(&self, qpn: u32) -> Option<&Responder> {
        self.pairs.get(&qpn).map(|pair| &pair.responder)
    }

    /// The connection of a queue pair.
    pub fn connection(&self, qpn: u32) -> Option<&Connection> {
        self.pairs.get(&qpn).map(|pair| &pair.connection)
    }

    /// Adds a connected queue pair, whose frames take the turns of the host at the other end.
    pub fn add_pair(&mut self, qpn: u32, connection: Connection) -> Result<(), PairError> {
        self.add_pair_of(qpn, connection, Party::Peer(connection.path.dst_ip))
    }

    /// Adds a connected queue pair whose frames take the turns of a party. An engine has queue pairs with a pool for several hosts,
    /// and each of these has turns of its own at both ends.
    pub fn add_pair_of(&mut self, qpn: u32, connection: Connection, party: Party) -> Result<(), PairError> {
        connection.check().map_err(PairError::BadConnection)?;
        if !(2..=QPN_MAX).contains(&qpn) {
            return Err(PairError::BadNumber(qpn));
        }
        if self.pairs.contains_key(&qpn) {
            return Err(PairError::Taken(qpn));
        }
        if self.pairs.len() >= self.config.pairs_max {
            return Err(PairError::Full);
        }
        let requester = Requester::new(self.config.clone(), connection);
        let responder = Responder::new(self.config.clone(), connection);
        let (requests_next, ready, done) = (false, false, false);
        let pair = Pair { connection, party, requester, responder, requests_next, ready, done };
        self.ready.open(party);
        self.pairs.insert(qpn, pair);
        Ok(())
    }

    /// Removes a queue pair with all its requests and completions. Returns whether there was one.
    pub fn remove_pair(&mut self, qpn: u32) -> bool {
        self.done.retain(|other| *other != qpn);
        let Some(pair) = self.pairs.remove(&qpn) else { return false };
        self.ready.close(pair.party, qpn);
        self.removed.0.add_up(pair.requester.counters());
        self.removed.1.add_up(pair.responder.counters());
        true
    }

    /// Removes the queue pairs of a protection domain: their frames are dropped from then on.
    pub fn remove_pairs_of(&mut self, domain: u32) {
        let of = |(qpn, pair): (&u32, &Pair)| (pair.connection.domain == domain).then_some(*qpn);
        for qpn in self.pairs.iter().filter_map(of).collect::<Vec<_>>() {
            self.remove_pair(qpn);
        }
    }

    /// Accepts a request. Returns its number, by queue pair.
    pub fn handle_request(&mut self, qpn: u32, request: Request) -> Result<u64, Refused> {
        let pair = self.pairs.get_mut(&qpn).ok_or(Refused::UnknownPair)?;
        let id = pair.requester.handle_request(request)?;
        note(qpn, pair, &mut self.ready, &mut self.done);
        Ok(id)
    }

    /// Posts a receive of at most `bytes` bytes. Returns its number, by queue pair.
    pub fn handle_receive(&mut self, qpn: u32, bytes: u32) -> Result<u64, ReceiveRefused> {
        let pair = self.pairs.get_mut(&qpn).ok_or(ReceiveRefused::UnknownPair)?;
        pair.responder.handle_receive(bytes)
    }

    /// The next completion and its queue pair. Completions of one queue pair come in order.
    pub fn poll_completion(&mut self) -> Option<(u32, Completion)> {
        while let Some(qpn) = self.done.pop_front() {
            let Some(pair) = self.pairs.get_mut(&qpn) else { continue };
            let request =
                pair.requester.poll_completion().map(|(id, outcome)| Completion::Request(id, outcome));
            let completion = request.or_else(|| pair.responder.poll_received().map(Completion::Receive));
            if let Some(completion) = completion {
                self.done.push_back(qpn);
                return Some((qpn, completion));
            }
            pair.done = false;
        }
        None
    }
}

impl<M: RegisteredMemory> Machine for Adapter<M> {
    type Received<'a> = &'a [u8];
    type Sent = ();
    type Buffer = Vec<u8>;

    fn handle_link(&mut self, frame: &[u8], _received_at: Nanos, now: Nanos) {
        self.counters.frames_in += 1;
        let frame = match frame::parse(frame, self.config.icrc_verified) {
            Ok(frame) => frame,
            Err(error) => {
                *(match error {
                    FrameError::NotRoce => &mut self.counters.not_roce,
                    FrameError::Unsupported => &mut self.counters.unsupported,
                    FrameError::Malformed(_) => &mut self.counters.malformed,
                    FrameError::Checksum => &mut self.counters.bad_checksum,
                    FrameError::Icrc => &mut self.counters.bad_icrc,
                }) += 1;
                return;
            }
        };
        let (ethernet, ipv4, packet) = (&frame.ethernet, &frame.ipv4, &frame.packet);
        let Some(pair) = self.pairs.get_mut(&packet.bth.qpn) else {
            self.counters.unknown_pair += 1;
            return;
        };
        // The highest bit of a partition key is a kind of membership.
        let path = &pair.connection.path;
        // A switch with guarded ports checks the MAC address, so a host can forge its IP address alone.
        if (ethernet.src, ipv4.src, ipv4.dst) != (path.dst_mac, path.dst_ip, path.src_ip)
            || packet.bth.partition | 0x8000 != DEFAULT_PARTITION
        {
            self.counters.foreign += 1;
            return;
        }
        if packet.opcode.is_response() {
            pair.requester.handle_packet(packet, now);
        } else {
            pair.responder.handle_packet(packet, &mut self.memory);
        }
        note(packet.bth.qpn, pair, &mut self.ready, &mut self.done);
    }

    /// Retransmits packets that were not acknowledged in time.
    fn handle_timeout(&mut self, now: Nanos) {
        for (qpn, pair) in &mut self.pairs {
            if pair.requester.next_timeout().is_some_and(|due| due <= now) {
                pair.requester.handle_timeout(now);
                note(*qpn, pair, &mut self.ready, &mut self.done);
            }
        }
    }

    /// Writes the next frame over `out`. Parties are served round robin, and so are the queue pairs of each.
    fn poll_link(&mut self, now: Nanos, out: &mut Vec<u8>) -> Option<()> {
        while let Some(qpn) = self.ready.first() {
            let Some(pair) = self.pairs.get_mut(&qpn) else {
                self.ready.is_idle();
                continue;
            };
            // Requests and answers take turns, so that neither starves the other.
            pair.requests_next = !pair.requests_next;
            let turns = [pair.requests_next, !pair.requests_next];
            let sent = turns.into_iter().any(|requests| match requests {
                true => pair.requester.poll_frame(now, out),
                false => pair.responder.poll_frame(&self.memory, out),
            });
            if sent {
                self.ready.has_sent(overhead::wire_bytes(out.len() as u64));
                self.counters.frames_out += 1;
                return Some(());
            }
            pair.ready = false;
            self.ready.is_idle();
        }
        None
    }

    fn next_link(&self) -> Option<Nanos> {
        self.ready.any().then_some(Nanos::ZERO)
    }

    /// Looks at each queue pair.
    fn next_timeout(&self) -> Option<Nanos> {
        self.pairs.values().filter_map(|pair| pair.requester.next_timeout()).min()
    }
}

/// After an event at a queue pair: it may have frames and completions.
fn note(qpn: u32, pair: &mut Pair, ready: &mut Ready, done: &mut VecDeque<u32>) {
    if !std::mem::replace(&mut pair.ready, true) {
        ready.add(pair.party, qpn);
    }
    if !std::mem::replace(&mut pair.done, true) {
        done.push_back(qpn);
    }
}
