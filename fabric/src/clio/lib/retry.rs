//! Packets of a client that are sent again: when, and how often.

use super::client::Client;
use super::config::PAUSES_MAX;
use super::flow::Next;
use super::operation::Ending;
use super::request::{Act, Request, Why};
use p4rack_wire::Nanos;
use p4rack_wire::clio::Status;

/// TIMEOUT in mean delays.
const DELAYS: u64 = 4;

impl Client {
    /// TIMEOUT of a request.
    pub(super) fn timeout(&self, request: &Request) -> Nanos {
        if request.what.is_slow() {
            return self.config.slow_timeout;
        }
        let mean = self.boards[self.seats[usize::from(request.seat)].board].window.delay().mean();
        Nanos(mean.0.saturating_mul(DELAYS)).clamp(self.config.timeout, self.config.timeout_max)
    }

    /// Whether the board could have forgotten the first attempt by the time that this packet arrives.
    pub(super) fn is_too_late(&self, next: Next) -> bool {
        let since = self.requests[usize::from(next.slot)].unsure_since(next.nth);
        let arrival = self.now.saturating_add(self.config.timeout_max);
        since.is_some_and(|since| arrival > since.saturating_add(self.config.memory))
    }

    /// A packet has to be sent again: soon, or if the board was busy, after a pause.
    pub(super) fn put_back(&mut self, slot: u16, nth: u32, why: Why, status: Status) {
        let request = &mut self.requests[usize::from(slot)];
        let (count, is_exhausted) = request.put_back(nth, why, self.config.retries);
        self.release(slot, nth, count);
        *(if why == Why::Busy { &mut self.counters.busy } else { &mut self.counters.corrupt }) += 1;
        if is_exhausted {
            return self.end(slot, Ending::Unknown);
        }
        let request = &mut self.requests[usize::from(slot)];
        if why == Why::Busy && request.paused.is_none() && request.pauses >= PAUSES_MAX {
            request.refused.get_or_insert(status);
        }
        if request.refused.is_some() {
            self.unqueue(slot);
            return self.end_refused(slot);
        }
        if why != Why::Busy {
            self.unqueue(slot);
            return self.queue(slot);
        }
        if request.paused.is_some() {
            return;
        }
        let wait = self.config.busy_wait.0.saturating_mul(1 << request.pauses.min(20));
        let wait = wait.min(self.config.timeout_max.0);
        // Requests that a board refused together come back apart.
        let until = self.now.saturating_add(Nanos(wait + self.random.between(0, wait)));
        request.pauses += 1;
        request.paused = Some(until);
        let deadline = self.timers.of(slot).map_or(until, |deadline| deadline.min(until));
        self.timers.set(slot, deadline);
        self.unqueue(slot);
    }

    /// A request's timer has expired: its pause may be over, and parts may be lost.
    pub(super) fn expire(&mut self, slot: u16) {
        let timeout = self.timeout(&self.requests[usize::from(slot)]);
        let request = &mut self.requests[usize::from(slot)];
        request.paused = request.paused.filter(|until| *until > self.now);
        let until = self.now.0.checked_sub(timeout.0).map(Nanos);
        let expired = request.expire(until, self.config.retries);
        let deadline = expired.oldest.map(|oldest| oldest.saturating_add(timeout));
        if let Some(at) = deadline.into_iter().chain(request.paused).min() {
            self.timers.set(slot, at);
        }
        let board = self.seats[usize::from(request.seat)].board;
        if expired.lost > 0 {
            let overhead = u64::from(expired.lost) * u64::from(self.config.overhead_bytes);
            let bytes = match request.what.act {
                Act::Read => overhead + expired.lost_bytes,
                // It is one packet.
                Act::Call { .. } => request.expected_bytes,
                _ => overhead,
            };
            let bytes = bytes.min(request.expected_bytes);
            request.expected_bytes -= bytes;
            self.incast.settle(bytes);
            self.counters.timeouts += u64::from(expired.lost);
            self.boards[board].window.left(expired.lost);
            self.boards[board].window.lost(self.now);
            self.suspect(board, timeout);
        }
        if expired.is_exhausted {
            return self.end_unknown(slot);
        }
        self.unqueue(slot);
        self.queue(slot);
        self.end_refused(slot);
    }
}
