//! The responding half of a queue pair: executes requests on memory in the order of their sequence numbers.
//!
//! ```text
//!   expected   it is next:    executed, answered on request; READs and atomic operations always are
//!   before it  a copy:        acknowledged again, a READ read again, an atomic operation answered from its kept result
//!   after it   a gap:         NAK, one for each gap
//! ```
//!
//! Responses leave in order. A READ's payload is read from memory packet by packet as its response leaves, so a long response
//! occupies no buffer, and a later WRITE may overtake it: the standard promises otherwise only for requests that wait for
//! the READ's completion. A request that can't be executed is refused with a NAK, and all later ones with the same NAK:
//! the connection has to be set up again.

use super::config::{Config, Connection};
use super::memory::{Access, Denied, Modify, RegisteredMemory, RemoteAddress};
use crate::common::counters;
use p4rack_wire::roce::frame::{self, Extension, Packet};
use p4rack_wire::roce::{
    Aeth, AtomicAckEth, AtomicEth, Bth, ImmDt, Nak, Opcode, Reth, Syndrome, WORD_BYTES, psn,
};
use std::collections::VecDeque;
use std::ops::Range;

/// A receive that a message has filled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// Number of the receive.
    pub id: u64,
    /// The message; empty for a WRITE with immediate data.
    pub bytes: Vec<u8>,
    /// Immediate data.
    pub immediate: Option<u32>,
}

/// Why a receive is not posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiveRefused {
    /// No such queue pair.
    UnknownPair,
    /// The limit of receives, posted or filled and not fetched, is reached.
    Full,
}

counters! {
    /// Counters of a responder.
    Counters {
        /// Messages received by SEND.
        sends,
        /// Messages written.
        writes,
        /// READs accepted.
        reads,
        /// Atomic operations done.
        atomics,
        /// Packets received in order.
        packets_in,
        /// Packets sent.
        packets_out,
        /// Duplicates of executed packets. READs, and packets that request an ACK, are answered again.
        copies,
        /// Duplicates dropped: READs or atomic operations whose results are no longer kept.
        copies_unknown,
        /// Packets dropped: earlier ones are missing.
        gaps,
        /// Packets dropped: the queue of responses is full.
        overflows,
        /// Packets dropped: no receive is posted.
        not_ready,
        /// Packets refused: out of sequence within their message, or too long.
        refused_invalid,
        /// Packets refused: the key does not permit it.
        refused_access,
        /// Packets refused: the access to memory failed.
        refused_failed,
        /// Packets dropped: an earlier one was refused.
        after_refusal,
    }
}

/// An incomplete message.
#[derive(Clone, Copy, Debug)]
enum Partial {
    Send,
    /// Place of the next byte, and number of remaining bytes.
    Write(RemoteAddress, u32),
}

/// A response that waits to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Response {
    Acknowledge { psn: u32, syndrome: Syndrome, msn: u32 },
    Read { psn: u32, place: RemoteAddress, bytes: u32, sent: u32, msn: u32 },
    Atomic { psn: u32, original: u64, msn: u32 },
}

/// The responding half of a queue pair.
#[derive(Clone, Debug)]
pub struct Responder {
    config: Config,
    connection: Connection,
    /// Sequence number of the next packet to be executed.
    expected: u32,
    /// Messages completed, modulo 2^24.
    msn: u32,
    partial: Option<Partial>,
    /// Bytes of a SEND so far.
    incoming: Vec<u8>,
    /// Whether a NAK for the gap at `expected` was sent.
    gap_reported: bool,
    /// The packet at `expected` was refused.
    refused: Option<Nak>,
    responses: VecDeque<Response>,
    /// Results of the last atomic operations, by sequence number.
    atomics: VecDeque<(u32, u64)>,
    /// Receives posted: number and bytes.
    receives: VecDeque<(u64, u32)>,
    received: VecDeque<Received>,
    ids: u64,
    counters: Counters,
}

impl Responder {
    /// Maximum waiting responses per READ or atomic operation that a requester may have in flight. A retransmitting
    /// requester repeats some, and acknowledgements come between them.
    const RESPONSES_PER_READ: usize = 4;

    /// A responder that has received nothing. `config` and `connection` have been checked.
    pub fn new(config: Config, connection: Connection) -> Responder {
        Responder {
            config,
            connection,
            expected: connection.receive_psn,
            msn: 0,
            partial: None,
            incoming: Vec::new(),
            gap_reported: false,
            refused: None,
            responses: VecDeque::new(),
            atomics: VecDeque::new(),
            receives: VecDeque::new(),
            received: VecDeque::new(),
            ids: 0,
            counters: Counters::default(),
        }
    }

    /// Its counters.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Posts a receive of at most `bytes` bytes, for a SEND or a WRITE with immediate data. Returns its number.
    pub fn handle_receive(&mut self, bytes: u32) -> Result<u64, ReceiveRefused> {
        if self.receives.len() + self.received.len() >= self.config.receives_max {
            return Err(ReceiveRefused::Full);
        }
        let id = self.ids;
        self.ids += 1;
        self.receives.push_back((id, bytes));
        Ok(id)
    }

    /// The next receive that a message has filled, in the order of messages.
    pub fn poll_received(&mut self) -> Option<Received> {
        self.received.pop_front()
    }

    /// Accepts a request.
    pub fn handle_packet(&mut self, packet: &Packet<'_>, memory: &mut impl RegisteredMemory) {
        if self.responses.len() >= Responder::RESPONSES_PER_READ * self.config.reads_max {
            self.counters.overflows += 1;
            return;
        }
        let at = packet.bth.psn;
        if psn::is_before(at, self.expected) {
            self.counters.copies += 1;
            return self.repeat(packet, memory);
        }
        if let Some(nak) = self.refused {
            // The first NAK may be lost, so a requester that continues gets it again, but ever less often: a flood would
            // otherwise have as many answers.
            self.counters.after_refusal += 1;
            if self.counters.after_refusal.is_power_of_two() {
                self.acknowledge(self.expected, Syndrome::Nak(nak));
            }
            return;
        }
        if at != self.expected {
            self.counters.gaps += 1;
            if !self.gap_reported {
                self.gap_reported = true;
                self.acknowledge(self.expected, Syndrome::Nak(Nak::Sequence));
            }
            return;
        }
        self.gap_reported = false;
        match self.execute(packet, memory) {
            Ok(packets) => {
                self.counters.packets_in += 1;
                self.expected = psn::add(at, packets);
                let answered =
                    matches!(packet.opcode, Opcode::ReadRequest | Opcode::CompareSwap | Opcode::FetchAdd);
                if packet.bth.ack_request && !answered {
                    self.acknowledge(at, Syndrome::Ack);
                }
            }
            Err(Stop::NotReady) => {
                self.counters.not_ready += 1;
                // The following packets are retransmitted too: this is not a gap.
                self.gap_reported = true;
                self.acknowledge(at, Syndrome::ReceiverNotReady(self.config.rnr_timer));
            }
            Err(Stop::Refused(nak)) => self.refuse(at, nak),
        }
    }

    fn refuse(&mut self, at: u32, nak: Nak) {
        match nak {
            Nak::RemoteAccess => self.counters.refused_access += 1,
            Nak::RemoteOperational => self.counters.refused_failed += 1,
            _ => self.counters.refused_invalid += 1,
        }
        (self.refused, self.partial, self.incoming) = (Some(nak), None, Vec::new());
        self.acknowledge(at, Syndrome::Nak(nak));
    }

    /// Executes the packet that is next. Returns how many sequence numbers it takes.
    fn execute(&mut self, packet: &Packet<'_>, memory: &mut impl RegisteredMemory) -> Result<u32, Stop> {
        let (opcode, length) = (packet.opcode, packet.payload.len() as u32);
        let mtu = self.config.mtu.bytes();
        // All packets of a message but the last are full; only a message of one packet may be empty.
        let fits = match (opcode.is_first(), opcode.is_last()) {
            (_, false) => length == mtu,
            (true, true) => length <= mtu,
            (false, true) => (1..=mtu).contains(&length),
        };
        let continues = match self.partial {
            None => opcode.is_first(),
            Some(Partial::Send) => matches!(opcode as u8, 1..=3),
            Some(Partial::Write(..)) => matches!(opcode as u8, 7..=9),
        };
        if !fits || !continues {
            return Err(INVALID);
        }
        match (opcode, packet.extension) {
            (Opcode::ReadRequest, Extension::Rdma(reth, _)) => {
                self.execute_read(packet.bth.psn, &reth, memory)
            }
            (Opcode::CompareSwap | Opcode::FetchAdd, Extension::Atomic(atomic)) => {
                self.execute_atomic(packet, &atomic, memory)
            }
            (_, extension) if matches!(opcode as u8, 6..=11) => {
                let (reth, immediate) = match extension {
                    Extension::Rdma(reth, immediate) => (Some(reth), immediate),
                    Extension::Immediate(immediate) => (None, Some(immediate)),
                    _ => (None, None),
                };
                self.execute_write(packet, reth, immediate, memory)
            }
            (_, extension) if matches!(opcode as u8, 0..=5) => {
                let immediate = match extension {
                    Extension::Immediate(immediate) => Some(immediate),
                    _ => None,
                };
                self.execute_send(packet, immediate)
            }
            _ => Err(INVALID),
        }
    }

    fn execute_send(&mut self, packet: &Packet<'_>, immediate: Option<ImmDt>) -> Result<u32, Stop> {
        let (_, room) = *self.receives.front().ok_or(Stop::NotReady)?;
        if self.incoming.len() + packet.payload.len() > room.min(self.config.message_bytes_max) as usize {
            return Err(INVALID);
        }
        self.incoming.extend_from_slice(packet.payload);
        self.partial = Some(Partial::Send);
        if packet.opcode.is_last() {
            self.partial = None;
            self.counters.sends += 1;
            self.msn = psn::add(self.msn, 1);
            let bytes = std::mem::take(&mut self.incoming);
            self.fill(bytes, immediate);
        }
        Ok(1)
    }

    /// Hands a message over with the oldest receive.
    fn fill(&mut self, bytes: Vec<u8>, immediate: Option<ImmDt>) {
        if let Some((id, _)) = self.receives.pop_front() {
            self.received.push_back(Received {
                id,
                bytes,
                immediate: immediate.map(|immediate| immediate.data),
            });
        }
    }

    fn execute_write(
        &mut self,
        packet: &Packet<'_>,
        reth: Option<Reth>,
        immediate: Option<ImmDt>,
        memory: &mut impl RegisteredMemory,
    ) -> Result<u32, Stop> {
        let length = packet.payload.len() as u32;
        let (place, left) = match (self.partial, reth) {
            (Some(Partial::Write(place, left)), _) => (place, left),
            (_, Some(reth)) => {
                if reth.bytes > self.config.message_bytes_max {
                    return Err(INVALID);
                }
                let place = self.place(reth.key, reth.address);
                // The whole message is checked first, so an oversized one writes nothing. An empty WRITE accesses no
                // memory and needs no key.
                if reth.bytes > 0 {
                    memory.check(place, Access::Write, reth.bytes)?;
                }
                (place, reth.bytes)
            }
            _ => return Err(INVALID),
        };
        let last = packet.opcode.is_last();
        if length > left || last != (length == left) {
            return Err(INVALID);
        }
        if immediate.is_some() && self.receives.is_empty() {
            return Err(Stop::NotReady);
        }
        if length > 0 {
            memory.write(place, packet.payload)?;
        }
        self.partial = Some(Partial::Write(place.behind(length), left - length));
        if last {
            self.partial = None;
            self.counters.writes += 1;
            self.msn = psn::add(self.msn, 1);
            if immediate.is_some() {
                self.fill(Vec::new(), immediate);
            }
        }
        Ok(1)
    }

    fn execute_read(
        &mut self,
        at: u32,
        reth: &Reth,
        memory: &mut impl RegisteredMemory,
    ) -> Result<u32, Stop> {
        if reth.bytes > self.config.message_bytes_max {
            return Err(INVALID);
        }
        let place = self.place(reth.key, reth.address);
        if reth.bytes > 0 {
            memory.check(place, Access::Read, reth.bytes)?;
        }
        self.counters.reads += 1;
        self.msn = psn::add(self.msn, 1);
        self.responses.push_back(Response::Read {
            psn: at,
            place,
            bytes: reth.bytes,
            sent: 0,
            msn: self.msn,
        });
        Ok(self.config.mtu.packets(reth.bytes))
    }

    fn execute_atomic(
        &mut self,
        packet: &Packet<'_>,
        atomic: &AtomicEth,
        memory: &mut impl RegisteredMemory,
    ) -> Result<u32, Stop> {
        if !atomic.address.is_multiple_of(WORD_BYTES.into()) {
            return Err(INVALID);
        }
        let modify = match packet.opcode {
            Opcode::CompareSwap => Modify::CompareSwap(atomic.compare, atomic.swap_or_add),
            _ => Modify::FetchAdd(atomic.swap_or_add),
        };
        let original = memory.modify(self.place(atomic.key, atomic.address), modify)?;
        self.counters.atomics += 1;
        self.msn = psn::add(self.msn, 1);
        if self.atomics.len() >= self.config.reads_max {
            self.atomics.pop_front();
        }
        let psn = packet.bth.psn;
        self.atomics.push_back((psn, original));
        self.responses.push_back(Response::Atomic { psn, original, msn: self.msn });
        Ok(1)
    }

    /// Answers a duplicate without executing it again.
    fn repeat(&mut self, packet: &Packet<'_>, memory: &mut impl RegisteredMemory) {
        let at = packet.bth.psn;
        match (packet.opcode, packet.extension) {
            (Opcode::ReadRequest, Extension::Rdma(reth, _)) => {
                let place = self.place(reth.key, reth.address);
                let end = psn::add(at, self.config.mtu.packets(reth.bytes));
                let known = reth.bytes <= self.config.message_bytes_max
                    && !psn::is_before(self.expected, end)
                    && (reth.bytes == 0 || memory.check(place, Access::Read, reth.bytes).is_ok());
                if !known {
                    self.counters.copies_unknown += 1;
                    return;
                }
                let again = Response::Read { psn: at, place, bytes: reth.bytes, sent: 0, msn: self.msn };
                let same = |response: &Response| matches!(response, Response::Read { psn, sent: 0, .. } if *psn == at);
                if !self.responses.iter().any(same) {
                    self.responses.push_back(again);
                }
            }
            (Opcode::CompareSwap | Opcode::FetchAdd, _) => {
                match self.atomics.iter().find(|(psn, _)| *psn == at) {
                    Some(&(psn, original)) => {
                        self.responses.push_back(Response::Atomic { psn, original, msn: self.msn });
                    }
                    None => self.counters.copies_unknown += 1,
                }
            }
            _ if packet.bth.ack_request => {
                self.acknowledge(psn::add(self.expected, psn::MAX), Syndrome::Ack);
            }
            _ => {}
        }
    }

    fn place(&self, key: u32, address: u64) -> RemoteAddress {
        RemoteAddress { domain: self.connection.domain, key, address }
    }

    /// Queues an acknowledgement. It includes all earlier ones, so it replaces one that is still queued.
    fn acknowledge(&mut self, at: u32, syndrome: Syndrome) {
        let new = Response::Acknowledge { psn: at, syndrome, msn: self.msn };
        match self.responses.back_mut() {
            Some(Response::Acknowledge { syndrome: old, .. })
                if *old == Syndrome::Ack || *old == syndrome =>
            {
                if let Some(last) = self.responses.back_mut() {
                    *last = new;
                }
            }
            _ => self.responses.push_back(new),
        }
    }

    /// Writes the next frame over `out`. Returns whether there was one.
    pub fn poll_frame(&mut self, memory: &impl RegisteredMemory, out: &mut Vec<u8>) -> bool {
        let Some(response) = self.responses.front_mut() else { return false };
        let mut done = true;
        match *response {
            Response::Acknowledge { psn, syndrome, msn } => {
                let aeth = Aeth { syndrome: syndrome.code(), msn };
                self.begin(Opcode::Acknowledge, psn, &Extension::Ack(aeth), 0, out);
            }
            Response::Atomic { psn, original, msn } => {
                let aeth = Aeth { syndrome: Syndrome::Ack.code(), msn };
                let extension = Extension::AtomicAck(aeth, AtomicAckEth { original });
                self.begin(Opcode::AtomicAcknowledge, psn, &extension, 0, out);
            }
            Response::Read { psn: first, place, bytes, ref mut sent, msn } => {
                let mtu = self.config.mtu.bytes();
                let (nth, at) = (*sent, psn::add(first, *sent));
                let rest = bytes - nth * mtu;
                (*sent, done) = (nth + 1, rest <= mtu);
                let aeth = Extension::Ack(Aeth { syndrome: Syndrome::Ack.code(), msn });
                let (opcode, extension) = match (nth == 0, done) {
                    (true, true) => (Opcode::ReadResponseOnly, aeth),
                    (true, false) => (Opcode::ReadResponseFirst, aeth),
                    (false, false) => (Opcode::ReadResponseMiddle, Extension::None),
                    (false, true) => (Opcode::ReadResponseLast, aeth),
                };
                let payload = self.begin(opcode, at, &extension, rest.min(mtu) as usize, out);
                // An empty READ accesses no memory and needs no key.
                if bytes > 0
                    && let Err(denied) = memory.read(place.behind(nth * mtu), &mut out[payload])
                {
                    // The region was removed after the request was accepted.
                    self.responses.clear();
                    self.refuse(at, denied.into());
                    return self.poll_frame(memory, out);
                }
            }
        }
        if self.config.icrc_sent {
            frame::seal(out);
        }
        self.counters.packets_out += 1;
        if done {
            self.responses.pop_front();
        }
        true
    }

    /// Starts a frame over `out` and returns its payload's offset.
    fn begin(
        &self,
        opcode: Opcode,
        psn: u32,
        extension: &Extension,
        bytes: usize,
        out: &mut Vec<u8>,
    ) -> Range<usize> {
        let bth = Bth::new(opcode, self.connection.peer_qpn, psn);
        frame::begin(&self.connection.path, bth, extension, bytes, out)
    }
}

/// Why a packet is not executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    NotReady,
    Refused(Nak),
}

const INVALID: Stop = Stop::Refused(Nak::InvalidRequest);

impl From<Denied> for Nak {
    fn from(denied: Denied) -> Nak {
        match denied {
            Denied::Failed => Nak::RemoteOperational,
            Denied::Key | Denied::Bounds | Denied::Rights => Nak::RemoteAccess,
        }
    }
}

impl From<Denied> for Stop {
    fn from(denied: Denied) -> Stop {
        Stop::Refused(denied.into())
    }
}
