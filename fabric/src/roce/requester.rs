//! The requesting half of a queue pair: sends requests, matches responses, and after a loss retransmits from the oldest
//! unacknowledged packet (Go-Back-N).
//!
//! ```text
//!                   admitted, in order       acknowledged, in order
//!   handle_request ─▶ waiting ─▶ active ──────────────────────────▶ poll_completion
//!                                │    ▲
//!            poll_frame ◀── sent ┘    └── acked: ACK, NAK, READ response, atomic ACK
//!
//!   packets:   … acknowledged │ oldest … sent … │ cursor … to be sent │ … not admitted
//!                               ◀── at most window_packets ──▶
//! ```
//!
//! A message takes one sequence number per packet; a READ takes one per packet of its response. If a response is missing and a
//! later one has arrived, the requester repeats the READ from the first missing packet, under that packet's number.

use super::config::{Config, Connection};
use super::timer::Timer;
use crate::common::counters;
use p4rack_wire::Nanos;
use p4rack_wire::roce::frame::{self, Extension, Packet};
use p4rack_wire::roce::{AtomicEth, Bth, ImmDt, Nak, Opcode, Reth, Syndrome, WORD_BYTES, psn, rnr_wait_ns};
use std::collections::VecDeque;
use std::fmt;

/// An operation on the peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Sends bytes to a buffer that the peer has posted.
    Send {
        /// The message.
        bytes: Vec<u8>,
        /// Immediate data, delivered with the message.
        immediate: Option<u32>,
    },
    /// Writes the peer's memory.
    Write {
        /// Key of the region.
        key: u32,
        /// Address of the first byte.
        address: u64,
        /// The bytes to write.
        bytes: Vec<u8>,
        /// Immediate data. It consumes a receive of the peer.
        immediate: Option<u32>,
    },
    /// Reads the peer's memory.
    Read {
        /// Key of the region.
        key: u32,
        /// Address of the first byte.
        address: u64,
        /// Number of bytes.
        bytes: u32,
    },
    /// Swaps a word of the peer's memory if it is `compare`.
    CompareSwap {
        /// Key of the region.
        key: u32,
        /// Address of the word, a multiple of 8.
        address: u64,
        /// The word that is expected.
        compare: u64,
        /// The new word.
        swap: u64,
    },
    /// Adds to a word of the peer's memory.
    FetchAdd {
        /// Key of the region.
        key: u32,
        /// Address of the word, a multiple of 8.
        address: u64,
        /// The addend, modulo 2^64.
        add: u64,
    },
}

impl Request {
    /// Bytes of the payload, of the request or of the response.
    pub(crate) fn length(&self) -> usize {
        match self {
            Request::Send { bytes, .. } | Request::Write { bytes, .. } => bytes.len(),
            Request::Read { bytes, .. } => *bytes as usize,
            Request::CompareSwap { .. } | Request::FetchAdd { .. } => WORD_BYTES as usize,
        }
    }

    /// Whether only its own response completes it; an ACK of a later request does not.
    fn is_answered(&self) -> bool {
        !matches!(self, Request::Send { .. } | Request::Write { .. })
    }
}

/// Why a request is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// No such queue pair.
    UnknownPair,
    /// It exceeds the maximum message length.
    TooLong,
    /// The address of its word is not a multiple of 8.
    Unaligned,
    /// The limit of requests in flight and unfetched completions is reached.
    Full,
    /// The queue pair has failed: set it up again.
    Broken,
}

/// How a request ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A SEND or WRITE completed.
    Done,
    /// A READ completed: the bytes.
    Read(Vec<u8>),
    /// An atomic operation completed: the previous word.
    Word(u64),
    /// Not executed, or the result is unknown. The queue pair has failed.
    Failed(Failure),
}

/// Why a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The peer rejected it as invalid or too long.
    InvalidRequest,
    /// The key or the region does not permit it.
    RemoteAccess,
    /// The peer failed.
    RemoteOperational,
    /// No response after the maximum number of retries.
    RetriesExceeded,
    /// The peer had no receive posted after the maximum number of retries.
    RnrRetriesExceeded,
    /// A request before it failed.
    Flushed,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refused::UnknownPair => "there is no such queue pair",
            Refused::TooLong => "it is longer than a message may be",
            Refused::Unaligned => "a word's address must be a multiple of 8",
            Refused::Full => "as many requests as allowed are under way or wait to be fetched",
            Refused::Broken => "the queue pair has failed: set it up anew",
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Failure::InvalidRequest => "the peer says that the request is invalid or too long",
            Failure::RemoteAccess => {
                "the peer's memory does not permit it: the key is another one, the bytes are not all in its region, or it lacks \
                 the right"
            }
            Failure::RemoteOperational => "the peer failed",
            Failure::RetriesExceeded => "the peer did not answer, however often it was asked",
            Failure::RnrRetriesExceeded => "the peer never had a buffer for it",
            Failure::Flushed => "a request before it failed",
        })
    }
}

counters! {
    /// Counters of a requester.
    Counters {
        /// Requests accepted.
        requests,
        /// Requests refused.
        refused,
        /// Requests that completed.
        completed,
        /// Requests that failed or were flushed.
        failed,
        /// Packets sent.
        packets_out,
        /// Of these, retransmissions.
        repeated_out,
        /// Timeouts, each followed by a retransmission.
        timeouts,
        /// NAKs for a gap.
        naks_sequence,
        /// NAKs because the receiver was not ready.
        naks_rnr,
        /// NAKs that ended the connection.
        naks_fatal,
        /// Gaps in responses, each followed by a retransmission.
        gaps,
        /// Responses dropped: duplicates.
        stale,
        /// Responses dropped: no such request was sent.
        unasked,
        /// Responses dropped: they don't fit their request.
        malformed,
        /// Responses dropped: the queue pair has failed.
        broken,
    }
}

/// A request in flight.
#[derive(Clone, Debug)]
struct Active {
    id: u64,
    request: Request,
    /// Sequence number of its first packet.
    first: u32,
    packets: u32,
    /// Packets sent since the last retransmission began. A READ's request counts as all packets of its response.
    sent: u32,
    /// Packets acknowledged or received, at most `sent`.
    acked: u32,
    answer: Vec<u8>,
}

/// The requesting half of a queue pair.
#[derive(Clone, Debug)]
pub struct Requester {
    config: Config,
    connection: Connection,
    waiting: VecDeque<(u64, Request)>,
    active: VecDeque<Active>,
    /// READs and atomic operations among `active`.
    reads: usize,
    /// Index in `active` of the first request with unsent packets.
    cursor: usize,
    /// Sequence number of the next message.
    next_psn: u32,
    /// One past the highest sequence number sent.
    reached: u32,
    ids: u64,
    retries: u8,
    rnr_retries: u8,
    /// When to retransmit if nothing is acknowledged before.
    deadline: Option<Nanos>,
    timer: Timer,
    /// Until when to send nothing, because the receiver is not ready.
    hold: Option<Nanos>,
    /// Where the last retransmission because of a gap in responses began. Later responses show the same gap, so it happens once.
    gap_at: Option<u32>,
    completions: VecDeque<(u64, Outcome)>,
    broken: bool,
    counters: Counters,
}

impl Requester {
    /// A requester without requests. `config` and `connection` have been checked.
    pub fn new(config: Config, connection: Connection) -> Requester {
        let psn = connection.send_psn;
        Requester {
            timer: Timer::new(config.timeout),
            config,
            connection,
            waiting: VecDeque::new(),
            active: VecDeque::new(),
            reads: 0,
            cursor: 0,
            next_psn: psn,
            reached: psn,
            ids: 0,
            retries: 0,
            rnr_retries: 0,
            deadline: None,
            hold: None,
            gap_at: None,
            completions: VecDeque::new(),
            broken: false,
            counters: Counters::default(),
        }
    }

    /// Its counters.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Whether it has failed. All requests then end as flushed.
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    /// Requests waiting or in flight, and completions not fetched.
    pub fn outstanding(&self) -> usize {
        self.waiting.len() + self.active.len() + self.completions.len()
    }

    /// Accepts a request. Returns the number that comes back with its outcome; outcomes come in the order of requests.
    pub fn handle_request(&mut self, request: Request) -> Result<u64, Refused> {
        let outstanding = self.outstanding();
        let unaligned = match &request {
            Request::CompareSwap { address, .. } | Request::FetchAdd { address, .. } => {
                !address.is_multiple_of(WORD_BYTES.into())
            }
            _ => false,
        };
        let refused = match () {
            () if self.broken => Some(Refused::Broken),
            () if request.length() > self.config.message_bytes_max as usize => Some(Refused::TooLong),
            () if unaligned => Some(Refused::Unaligned),
            () if outstanding >= self.config.requests_max => Some(Refused::Full),
            () => None,
        };
        if let Some(refused) = refused {
            self.counters.refused += 1;
            return Err(refused);
        }
        self.counters.requests += 1;
        let id = self.ids;
        self.ids += 1;
        self.waiting.push_back((id, request));
        Ok(id)
    }

    /// The next outcome.
    pub fn poll_completion(&mut self) -> Option<(u64, Outcome)> {
        self.completions.pop_front()
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) next.
    pub fn next_timeout(&self) -> Option<Nanos> {
        [self.deadline, self.hold].into_iter().flatten().min()
    }

    /// Retransmits after a timeout, and resumes after a receiver-not-ready delay.
    pub fn handle_timeout(&mut self, now: Nanos) {
        if self.hold.is_some_and(|until| until <= now) {
            self.hold = None;
        }
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            self.counters.timeouts += 1;
            self.timer.handle_timeout();
            self.retry();
        }
    }

    /// Sequence number of the oldest packet that is not acknowledged.
    fn oldest(&self) -> u32 {
        self.active.front().map_or(self.next_psn, |active| psn::add(active.first, active.acked))
    }

    /// Gives sequence numbers to requests while the limits permit it.
    fn admit(&mut self) {
        while self.active.len() < self.config.in_flight_max
            && let Some((_, request)) = self.waiting.front()
            && !(request.is_answered() && self.reads >= self.config.reads_max)
            && let Some((id, request)) = self.waiting.pop_front()
        {
            self.reads += usize::from(request.is_answered());
            let packets = match request {
                Request::CompareSwap { .. } | Request::FetchAdd { .. } => 1,
                _ => self.config.mtu.packets(request.length() as u32),
            };
            let first = self.next_psn;
            self.next_psn = psn::add(first, packets);
            self.active.push_back(Active {
                id,
                request,
                first,
                packets,
                sent: 0,
                acked: 0,
                answer: Vec::new(),
            });
        }
    }

    /// Writes the next frame over `out`. Returns whether there was one.
    pub fn poll_frame(&mut self, now: Nanos, out: &mut Vec<u8>) -> bool {
        if self.broken || self.hold.is_some() {
            return false;
        }
        self.admit();
        let oldest = self.oldest();
        let active = loop {
            match self.active.get_mut(self.cursor) {
                Some(active) if active.sent < active.packets => break active,
                Some(_) => self.cursor += 1,
                None => return false,
            }
        };
        let at = psn::add(active.first, active.sent);
        let ahead = psn::distance(oldest, at);
        if ahead >= self.config.window_packets {
            return false;
        }
        // Request an ACK at the end of a message, and twice per window so that the window advances.
        let half = (self.config.window_packets / 2).max(1);
        let ask = ahead + 1 == self.config.window_packets || (active.sent + 1).is_multiple_of(half);
        let packets = compose(active, at, ask, &self.config, &self.connection, out);
        self.counters.packets_out += 1;
        match psn::is_before(at, self.reached) {
            true => self.counters.repeated_out += 1,
            false => self.timer.handle_sent(at, now),
        }
        active.sent += packets;
        let end = psn::add(at, packets);
        if psn::is_before(self.reached, end) {
            self.reached = end;
        }
        if self.deadline.is_none() {
            self.deadline = Some(now.saturating_add(self.timer.wait()));
        }
        true
    }

    /// Accepts a response.
    pub fn handle_packet(&mut self, packet: &Packet<'_>, now: Nanos) {
        if self.broken {
            self.counters.broken += 1;
            return;
        }
        let (at, oldest) = (packet.bth.psn, self.oldest());
        if psn::distance(oldest, at) >= psn::distance(oldest, self.reached) {
            let stale = psn::is_before(at, oldest);
            *(if stale { &mut self.counters.stale } else { &mut self.counters.unasked }) += 1;
            return;
        }
        let syndrome = match packet.extension {
            Extension::Ack(aeth) | Extension::AtomicAck(aeth, _) => match Syndrome::of(aeth.syndrome) {
                Ok(syndrome) => syndrome,
                Err(_) => {
                    self.counters.malformed += 1;
                    return;
                }
            },
            _ => Syndrome::Ack,
        };
        match (packet.opcode, syndrome) {
            (Opcode::Acknowledge, Syndrome::Ack) => {
                if !self.acknowledge(psn::add(at, 1), now) {
                    self.gap();
                }
            }
            (Opcode::Acknowledge, syndrome) => self.handle_nak(at, syndrome, now),
            (_, Syndrome::Ack) => self.handle_answer(packet, now),
            // Only acknowledgements carry a NAK.
            _ => self.counters.malformed += 1,
        }
    }

    /// Completes requests before `end` as far as an acknowledgement can. Returns false if a response before `end` is missing: READs
    /// and atomic operations need their own.
    fn acknowledge(&mut self, end: u32, now: Nanos) -> bool {
        while let Some(active) = self.active.front_mut() {
            if !psn::is_before(psn::add(active.first, active.acked), end) {
                break;
            }
            if active.request.is_answered() {
                return false;
            }
            active.acked = psn::distance(active.first, end).min(active.packets);
            active.sent = active.sent.max(active.acked);
            let done = active.acked == active.packets;
            self.progress(now);
            if !done {
                break;
            }
            self.complete(Outcome::Done);
        }
        true
    }

    /// Restarts timeout and retry count after progress.
    fn progress(&mut self, now: Nanos) {
        (self.retries, self.rnr_retries, self.gap_at) = (0, 0, None);
        self.timer.handle_progress(self.oldest(), now);
        self.deadline = Some(now.saturating_add(self.timer.wait()));
    }

    /// Completes the oldest request.
    fn complete(&mut self, outcome: Outcome) {
        let Some(active) = self.active.pop_front() else { return };
        self.reads -= usize::from(active.request.is_answered());
        self.cursor = self.cursor.saturating_sub(1);
        match outcome {
            Outcome::Failed(_) => self.counters.failed += 1,
            _ => self.counters.completed += 1,
        }
        self.completions.push_back((active.id, outcome));
        // Requests are sent in order: if nothing of the oldest is in flight, nothing is.
        if self.active.front().is_none_or(|front| front.sent == front.acked) {
            self.deadline = None;
        }
    }

    fn handle_nak(&mut self, at: u32, syndrome: Syndrome, now: Nanos) {
        match syndrome {
            Syndrome::ReceiverNotReady(_) => self.counters.naks_rnr += 1,
            Syndrome::Nak(Nak::Sequence) => self.counters.naks_sequence += 1,
            _ => self.counters.naks_fatal += 1,
        }
        if !self.acknowledge(at, now) {
            return self.gap();
        }
        match syndrome {
            Syndrome::Ack => {}
            Syndrome::ReceiverNotReady(timer) => {
                if self.rnr_retries >= self.config.rnr_retries_max && self.config.rnr_retries_max < 7 {
                    return self.fail(Failure::RnrRetriesExceeded);
                }
                self.rnr_retries = self.rnr_retries.saturating_add(1);
                self.hold = Some(now.saturating_add(Nanos(rnr_wait_ns(timer))));
                self.go_back();
            }
            Syndrome::Nak(Nak::Sequence) => self.retry(),
            Syndrome::Nak(Nak::InvalidRequest) => self.fail(Failure::InvalidRequest),
            Syndrome::Nak(Nak::RemoteAccess) => self.fail(Failure::RemoteAccess),
            Syndrome::Nak(Nak::RemoteOperational) => self.fail(Failure::RemoteOperational),
        }
    }

    /// Accepts a READ response or the previous word of an atomic operation.
    fn handle_answer(&mut self, packet: &Packet<'_>, now: Nanos) {
        let at = packet.bth.psn;
        if !self.acknowledge(at, now) {
            return self.gap();
        }
        let mtu = self.config.mtu.bytes();
        let Some(active) = self.active.front_mut() else { return };
        let outcome = match (&active.request, packet.extension) {
            (Request::Read { bytes, .. }, Extension::None | Extension::Ack(_)) => {
                let last = active.acked + 1 == active.packets;
                let rest = *bytes - active.acked * mtu;
                // The response to a repeated READ begins in the middle, with a FIRST.
                let fits = packet.opcode.is_last() == last
                    && (active.acked > 0 || packet.opcode.is_first())
                    && packet.payload.len() as u32 == rest.min(mtu);
                if !fits {
                    self.counters.malformed += 1;
                    return;
                }
                if active.answer.is_empty() {
                    active.answer.reserve_exact(*bytes as usize);
                }
                active.answer.extend_from_slice(packet.payload);
                active.acked += 1;
                active.sent = active.sent.max(active.acked);
                last.then(|| Outcome::Read(std::mem::take(&mut active.answer)))
            }
            (Request::CompareSwap { .. } | Request::FetchAdd { .. }, Extension::AtomicAck(_, answer)) => {
                (active.acked, active.sent) = (1, 1);
                Some(Outcome::Word(answer.original))
            }
            _ => {
                self.counters.malformed += 1;
                return;
            }
        };
        self.progress(now);
        if let Some(outcome) = outcome {
            self.complete(outcome);
        }
    }

    /// Repeats the request whose response is missing, once.
    fn gap(&mut self) {
        let oldest = self.oldest();
        if self.gap_at != Some(oldest) {
            self.gap_at = Some(oldest);
            self.counters.gaps += 1;
            self.go_back();
        }
    }

    /// Retransmits from the oldest unacknowledged packet, up to the retry limit.
    fn retry(&mut self) {
        if self.retries >= self.config.retries_max {
            return self.fail(Failure::RetriesExceeded);
        }
        self.retries += 1;
        self.gap_at = None;
        self.go_back();
    }

    fn go_back(&mut self) {
        self.timer.handle_repeat();
        self.active.iter_mut().for_each(|active| active.sent = active.acked);
        (self.cursor, self.deadline) = (0, None);
    }

    /// Fails the oldest request and flushes all others.
    fn fail(&mut self, failure: Failure) {
        self.complete(Outcome::Failed(failure));
        while !self.active.is_empty() {
            self.complete(Outcome::Failed(Failure::Flushed));
        }
        self.counters.failed += self.waiting.len() as u64;
        let waiting = self.waiting.drain(..);
        self.completions.extend(waiting.map(|(id, _)| (id, Outcome::Failed(Failure::Flushed))));
        (self.broken, self.deadline, self.hold) = (true, None, None);
    }
}

/// Writes the packet `at` of a request over `out`. Returns how many sequence numbers it takes.
fn compose(
    active: &Active,
    at: u32,
    ask: bool,
    config: &Config,
    connection: &Connection,
    out: &mut Vec<u8>,
) -> u32 {
    let mtu = config.mtu.bytes() as usize;
    let (start, first, last) =
        (active.sent as usize * mtu, active.sent == 0, active.sent + 1 == active.packets);
    let part = |bytes: usize| start..bytes.min(start + mtu);
    let immediate = |data: &Option<u32>| data.filter(|_| last).map(|data| ImmDt { data });
    let (opcode, extension, payload): (_, _, &[u8]) = match &active.request {
        Request::Send { bytes, immediate: data } => {
            let data = immediate(data);
            let opcode = match (first, last, data.is_some()) {
                (true, false, _) => Opcode::SendFirst,
                (false, false, _) => Opcode::SendMiddle,
                (false, true, false) => Opcode::SendLast,
                (false, true, true) => Opcode::SendLastImmediate,
                (true, true, false) => Opcode::SendOnly,
                (true, true, true) => Opcode::SendOnlyImmediate,
            };
            (opcode, data.map_or(Extension::None, Extension::Immediate), &bytes[part(bytes.len())])
        }
        Request::Write { key, address, bytes, immediate: data } => {
            let (data, reth) =
                (immediate(data), Reth { address: *address, key: *key, bytes: bytes.len() as u32 });
            let (opcode, extension) = match (first, last, data) {
                (true, false, _) => (Opcode::WriteFirst, Extension::Rdma(reth, None)),
                (false, false, _) => (Opcode::WriteMiddle, Extension::None),
                (false, true, None) => (Opcode::WriteLast, Extension::None),
                (false, true, Some(data)) => (Opcode::WriteLastImmediate, Extension::Immediate(data)),
                (true, true, None) => (Opcode::WriteOnly, Extension::Rdma(reth, None)),
                (true, true, Some(_)) => (Opcode::WriteOnlyImmediate, Extension::Rdma(reth, data)),
            };
            (opcode, extension, &bytes[part(bytes.len())])
        }
        Request::Read { key, address, bytes } => {
            let skipped = start as u32;
            let address = address.wrapping_add(skipped.into());
            let reth = Reth { address, key: *key, bytes: bytes - skipped };
            (Opcode::ReadRequest, Extension::Rdma(reth, None), &[])
        }
        Request::CompareSwap { key, address, compare, swap } => {
            let atomic = AtomicEth { address: *address, key: *key, swap_or_add: *swap, compare: *compare };
            (Opcode::CompareSwap, Extension::Atomic(atomic), &[])
        }
        Request::FetchAdd { key, address, add } => {
            let atomic = AtomicEth { address: *address, key: *key, swap_or_add: *add, compare: 0 };
            (Opcode::FetchAdd, Extension::Atomic(atomic), &[])
        }
    };
    let mut bth = Bth::new(opcode, connection.peer_qpn, at);
    bth.ack_request = opcode.is_last() || ask;
    bth.solicited = matches!(extension, Extension::Immediate(_)) || opcode == Opcode::WriteOnlyImmediate;
    let place = frame::begin(&connection.path, bth, &extension, payload.len(), out);
    out[place].copy_from_slice(payload);
    if config.icrc_sent {
        frame::seal(out);
    }
    if opcode == Opcode::ReadRequest { active.packets - active.sent } else { 1 }
}
