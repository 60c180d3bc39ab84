//! Packets of a client: chooses the next one, and handles answers.

use super::client::{Client, Seated};
use super::gather::Gathered;
use super::operation::Ending;
use super::request::{Act, Expected, Request, Why};
use crate::machine::Machine;
use p4rack_wire::Nanos;
use p4rack_wire::clio::packet::{self, Packet};
use p4rack_wire::clio::{Atomic, Kind, Status, lock_word};

/// The next packet of a seat.
#[derive(Clone, Copy, Debug)]
pub(super) struct Next {
    pub slot: u16,
    /// Its first part, and how many follow each other: several only of a READ.
    pub nth: u32,
    count: u32,
    /// Bytes of its answers on the link.
    answer_bytes: u64,
}

impl Client {
    /// Bytes on the link of the answer to a part.
    fn answer_bytes(&self, request: &Request, nth: u32) -> u64 {
        let (overhead, mtu) = (u64::from(self.config.overhead_bytes), self.config.mtu_bytes);
        match request.what.act {
            Act::Read => overhead + u64::from(request.split.nth(nth).bytes),
            Act::Call { results_bytes_max, .. } => {
                let packets = results_bytes_max.div_ceil(mtu).max(1);
                overhead * u64::from(packets) + u64::from(results_bytes_max)
            }
            _ => overhead,
        }
    }

    /// The next packet of a seat. `None`: it has none, or no window has room.
    fn next_packet(&self, seat: usize, room: u32) -> Option<Next> {
        let seat = &self.seats[seat];
        let (slot, board) = (*seat.ready.front()?, &self.boards[seat.board]);
        let request = &self.requests[usize::from(slot)];
        let nth = request.next_part()?;
        let (base, mut answer_bytes) = (board.window.base(), self.answer_bytes(request, nth));
        // A retry must reach the board while it remembers, so it takes the room of the packet that was lost.
        if request.unsure_since(nth).is_some() {
            let answer_bytes = if board.silence.is_suspected() { 0 } else { answer_bytes };
            return Some(Next { slot, nth, count: 1, answer_bytes });
        }
        if room == 0 {
            return None;
        }
        // A board that may be dead is asked for a packet at a time, and takes no room from others.
        if board.silence.is_suspected() {
            return Some(Next { slot, nth, count: 1, answer_bytes: 0 });
        }
        if !self.incast.fits(answer_bytes, base) {
            return None;
        }
        let mut count = 1;
        if request.what.act == Act::Read {
            let most = request.together(nth, room.min(self.config.read_packets_max.into()));
            while count < most {
                let more = answer_bytes + self.answer_bytes(request, nth + count);
                if more > self.incast.room_bytes(base) {
                    break;
                }
                (answer_bytes, count) = (more, count + 1);
            }
        }
        Some(Next { slot, nth, count, answer_bytes })
    }

    /// Writes a packet over `out`, and notes that it has left.
    fn send(&mut self, seat: usize, next: Next, out: &mut Vec<u8>) {
        let Next { slot, nth, count, answer_bytes } = next;
        let board = self.seats[seat].board;
        self.compose(slot, nth, count, out);
        self.counters.packets_out += 1;
        self.boards[board].window.sent(count, self.now);
        self.boards[board].silence.sent(self.now);
        self.incast.expect(answer_bytes);
        let timeout = self.timeout(&self.requests[usize::from(slot)]);
        let request = &mut self.requests[usize::from(slot)];
        let silence = &mut self.boards[board].silence;
        if silence.is_suspected() && request.unsure_since(nth).is_none() {
            // An operation without an answer leaves time for another one, which may have one.
            silence.resume = self.now.saturating_add(Nanos(timeout.0 / 2));
        }
        self.counters.retries += u64::from(request.attempt(nth) > 0);
        let was_in_flight = request.is_in_flight();
        request.expected_bytes += answer_bytes;
        request.sent(nth, count, self.now);
        request.is_queued = false;
        let ready = &mut self.seats[seat].ready;
        ready.pop_front();
        self.turns.set(seat, !ready.is_empty());
        self.queue(slot);
        // The timer is that of the oldest part in flight.
        if !was_in_flight {
            self.timers.set(slot, self.now.saturating_add(timeout));
        }
    }

    /// Handles an answer or a NACK. `None`: it is malformed.
    fn handle_packet(&mut self, seat: u16, packet: &Packet<'_>, is_intact: bool) -> Option<()> {
        let header = &packet.header;
        if packet.kind.is_request() {
            return None;
        }
        let Seated { board, credentials, .. } = &self.seats[usize::from(seat)];
        let is_of_board = (header.pid, header.token) == (credentials.pid, credentials.token);
        if is_of_board {
            self.boards[*board].silence.heard();
        }
        let is_own = |slot: &u16| is_of_board && self.requests[usize::from(*slot)].seat == seat;
        let Some(slot) = self.find(header.id).filter(is_own) else {
            self.counters.unasked += 1;
            return Some(());
        };
        let request = &self.requests[usize::from(slot)];
        let status = Status::of(header.code)?;
        // A READ's answers come in packets of their own: their addresses identify the parts.
        let nth = match request.what.act {
            Act::Read => {
                let at = header.address.checked_sub(request.what.address)?;
                request.split.starts_at(u32::try_from(at).ok()?)?
            }
            Act::Call { .. } => 0,
            _ => header.index.into(),
        };
        let why = match () {
            // The status of a damaged answer says nothing: the packet may have been executed.
            () if !is_intact => Some(Why::DamagedAnswer),
            () if packet.kind == Kind::Nack => Some(Why::Nack),
            () if status.is_temporary() => Some(Why::Busy),
            () => None,
        };
        match (request.expects(nth, header.attempt), why) {
            (Expected::Unasked, _) => self.counters.unasked += 1,
            (Expected::Before, _) | (Expected::Earlier, Some(_)) => self.counters.stale += 1,
            (Expected::Current, Some(why)) => self.put_back(slot, nth, why, status),
            (expected, None) if status != Status::Done => self.refuse(slot, nth, expected, status),
            (expected, None) if let Act::Call { results_bytes_max, .. } = request.what.act => {
                match self.requests[usize::from(slot)].results.take(packet, results_bytes_max) {
                    Gathered::Part => {}
                    Gathered::Stale => self.counters.stale += 1,
                    Gathered::TooLong => self.refuse(slot, nth, expected, Status::BadLength),
                    Gathered::Whole => {
                        self.complete(slot, nth, header.attempt);
                        self.end(slot, Ending::Done);
                    }
                }
            }
            (_, None) => {
                let ending = self.take(slot, nth, packet)?;
                self.complete(slot, nth, header.attempt);
                if self.requests[usize::from(slot)].is_done() {
                    self.end(slot, ending);
                } else {
                    self.end_refused(slot);
                }
            }
        }
        Some(())
    }

    /// Takes the data of an answer. Returns how the request ends if nothing is missing. `None`: they don't fit the request.
    fn take(&mut self, slot: u16, nth: u32, packet: &Packet<'_>) -> Option<Ending> {
        let request = &mut self.requests[usize::from(slot)];
        let word = || Some(u64::from_le_bytes(packet.data.try_into().ok()?));
        Some(match request.what.act {
            Act::Read => {
                let chunk = request.split.nth(nth);
                let place = chunk.at as usize..(chunk.at + chunk.bytes) as usize;
                let to = request.data.get_mut(place).filter(|to| to.len() == packet.data.len())?;
                to.copy_from_slice(packet.data);
                Ending::Done
            }
            Act::Atomic(Atomic::Lock, _) => {
                let Seated { credentials, first_thread, .. } = &self.seats[usize::from(request.seat)];
                let thread = first_thread.wrapping_add(request.thread);
                match word()? {
                    0 => Ending::Done,
                    owner if owner == lock_word(credentials.pid, thread, credentials.epoch) => Ending::Done,
                    owner => Ending::Held(owner),
                }
            }
            Act::Atomic(Atomic::Unlock, _) => Ending::Done,
            Act::Atomic(..) => Ending::Word(word()?),
            Act::Alloc(_) | Act::Share(_) => Ending::Address(packet.header.address),
            _ => Ending::Done,
        })
    }

    /// A part is done: the windows have room again, and its delay may be a sample.
    fn complete(&mut self, slot: u16, nth: u32, attempt: u8) {
        let request = &mut self.requests[usize::from(slot)];
        let is_sample = attempt == request.attempt(nth) && !request.what.is_slow();
        let sent = request.complete(nth);
        let board = self.seats[usize::from(request.seat)].board;
        if request.next_part().is_none() {
            self.unqueue(slot);
        }
        if let Some(sent) = sent {
            self.release(slot, nth, 1);
            if is_sample {
                self.boards[board].window.answered(self.now.saturating_sub(sent), self.now);
            }
        }
    }

    /// A board has refused a part. A refusal of an earlier attempt does not answer the one in flight.
    fn refuse(&mut self, slot: u16, nth: u32, expected: Expected, status: Status) {
        let request = &mut self.requests[usize::from(slot)];
        if expected == Expected::Current {
            request.refuse(nth, status);
            self.release(slot, nth, 1);
        } else {
            request.refused.get_or_insert(status);
        }
        self.unqueue(slot);
        self.end_refused(slot);
    }

    /// Ends a request that a board has refused, once nothing of it is in flight: other parts of a write could be executed after
    /// later requests, and undo these.
    pub(super) fn end_refused(&mut self, slot: u16) {
        let request = &self.requests[usize::from(slot)];
        if let Some(status) = request.refused
            && (request.what.act == Act::Read || !request.is_in_flight())
        {
            self.end(slot, Ending::Refused(status));
        }
    }

    /// Takes parts from `nth` on out of the windows.
    pub(super) fn release(&mut self, slot: u16, nth: u32, count: u32) {
        let request = &self.requests[usize::from(slot)];
        let bytes = (nth..nth + count).map(|nth| self.answer_bytes(request, nth)).sum::<u64>();
        let bytes = bytes.min(request.expected_bytes);
        self.boards[self.seats[usize::from(request.seat)].board].window.left(count);
        self.incast.settle(bytes);
        self.requests[usize::from(slot)].expected_bytes -= bytes;
    }
}

impl Machine for Client {
    type Received<'a> = (u16, &'a [u8]);
    type Sent = u16;
    type Buffer = Vec<u8>;

    /// Accepts a packet for a seat, from Clio's header on. Delays are measured to `received_at`, or to the last call if that is later.
    fn handle_link(&mut self, (seat, bytes): (u16, &[u8]), received_at: Nanos, _now: Nanos) {
        self.now = self.now.max(received_at);
        let parsed = packet::parse(bytes).ok().filter(|_| usize::from(seat) < self.seats.len());
        let handled = parsed.and_then(|parsed| self.handle_packet(seat, &parsed, packet::is_intact(bytes)));
        if handled.is_none() {
            self.counters.malformed += 1;
        }
    }

    /// Ends pauses, and gives up waiting for answers that are late.
    fn handle_timeout(&mut self, now: Nanos) {
        self.now = self.now.max(now);
        while let Some(slot) = self.timers.pop(self.now) {
            self.expire(slot);
        }
    }

    /// Writes the next packet over `out`. Returns the seat that it is of. Seats take turns.
    fn poll_link(&mut self, now: Nanos, out: &mut Vec<u8>) -> Option<u16> {
        self.now = self.now.max(now);
        let count = self.seats.len();
        // Whether an earlier seat's packet waits for room for its answer: others must not take it, but retries need none.
        let mut is_held = false;
        let (start, mut passed) = (self.turn, 0);
        while let Some(nth) = self.turns.next(start, passed) {
            passed = nth + 1;
            let seat = (start + nth) % count;
            let room = if is_held { 0 } else { self.boards[self.seats[seat].board].room(self.now) };
            while let Some(next) = self.next_packet(seat, room) {
                if self.is_too_late(next) {
                    self.counters.too_late += 1;
                    self.end_unknown(next.slot);
                    continue;
                }
                if !is_held {
                    self.turn = (seat + 1) % count;
                }
                self.send(seat, next, out);
                return Some(seat as u16);
            }
            is_held |= room > 0 && !self.seats[seat].ready.is_empty();
        }
        None
    }

    fn next_link(&self) -> Option<Nanos> {
        let count = self.seats.len();
        let (mut first, mut is_held): (Option<Nanos>, _) = (None, false);
        let mut passed = 0;
        while let Some(nth) = self.turns.next(self.turn, passed) {
            passed = nth + 1;
            let nth = (self.turn + nth) % count;
            let board = &self.boards[self.seats[nth].board];
            // A retry needs no room.
            let at = match self.next_packet(nth, 0) {
                Some(_) => Nanos::ZERO,
                None if is_held => continue,
                None => match board.room_at() {
                    None => continue,
                    Some(at) if self.next_packet(nth, 1).is_some() => at,
                    Some(at) => {
                        is_held = at <= self.now;
                        continue;
                    }
                },
            };
            first = Some(first.map_or(at, |first| first.min(at)));
        }
        first
    }

    fn next_timeout(&self) -> Option<Nanos> {
        self.timers.next_at()
    }
}
