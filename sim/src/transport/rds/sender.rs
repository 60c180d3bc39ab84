//! The sending end of a flow.

use super::{Config, Part};
use crate::message::{MTU, MessageId};
use crate::transport::wire::Range;
use p4rack_wire::Nanos;
use std::collections::VecDeque;

/// Timeouts that a sender waits for a receiver that knows the message. The receiver reports on it once per timeout, even
/// while it waits for its turn.
const PATIENCE: u64 = 4;

/// A message that is not known to have arrived.
#[derive(Clone, Debug)]
struct Outgoing {
    message: MessageId,
    key: u32,
    size: u32,
    next: u64,
    granted: u64,
    again: VecDeque<Range>,
    /// Time of the last frame sent or received for it.
    active_at: Nanos,
    /// Whether the receiver has reported on it, and so detects its losses.
    known: bool,
}

impl Outgoing {
    fn wants(&self) -> bool {
        !self.again.is_empty() || self.next < self.granted
    }

    fn is_sent(&self) -> bool {
        self.next == u64::from(self.size)
    }
}

/// A flow's sending end. Messages start one after the other.
#[derive(Clone, Debug)]
pub struct Sender {
    config: Config,
    open: VecDeque<Outgoing>,
    next_key: u32,
    /// Frames sent again.
    pub retransmissions: u64,
}

impl Sender {
    pub fn new(config: Config) -> Sender {
        Sender { config, open: VecDeque::new(), next_key: 0, retransmissions: 0 }
    }

    /// The application writes a message.
    pub fn write(&mut self, message: MessageId, size: u32) {
        let granted = u64::from(size).min(self.config.blind_bytes);
        let (key, again) = (self.next_key, VecDeque::new());
        let active_at = Nanos::ZERO;
        self.open.push_back(Outgoing {
            message,
            key,
            size,
            next: 0,
            granted,
            again,
            active_at,
            known: false,
        });
        self.next_key = key.wrapping_add(1);
    }

    fn first(&self) -> Option<usize> {
        for (at, one) in self.open.iter().enumerate() {
            if one.wants() {
                return Some(at);
            }
            if !one.is_sent() {
                // Later messages wait for it.
                return self.open.iter().skip(at).position(|one| !one.again.is_empty()).map(|more| at + more);
            }
        }
        None
    }

    /// Whether [`poll`](Self::poll) has something.
    pub fn can_send(&self) -> bool {
        self.first().is_some()
    }

    /// The next part to send.
    pub fn poll(&mut self, now: Nanos) -> Option<Part> {
        let at = self.first()?;
        let one = &mut self.open[at];
        one.active_at = now;
        let mut part =
            Part { message: one.message, key: one.key, size: one.size, offset: 0, bytes: 0, again: false };
        if let Some((from, to)) = one.again.pop_front() {
            let bytes = (to - from).min(u64::from(MTU));
            if from + bytes < to {
                one.again.push_front((from + bytes, to));
            }
            (part.offset, part.bytes, part.again) = (from, bytes as u16, true);
            self.retransmissions += 1;
        } else {
            let bytes = (u64::from(one.size) - one.next).min(u64::from(MTU));
            (part.offset, part.bytes) = (one.next, bytes as u16);
            one.next += bytes;
        }
        Some(part)
    }

    fn find(&mut self, key: u32) -> Option<&mut Outgoing> {
        self.open.iter_mut().find(|one| one.key == key)
    }

    /// The receiver permits more bytes.
    pub fn handle_grant(&mut self, key: u32, to: u64, now: Nanos) {
        if let Some(one) = self.find(key) {
            one.granted = one.granted.max(to.min(one.size.into()));
            (one.active_at, one.known) = (now, true);
        }
    }

    /// The receiver reports missing ranges, or none: the message has to wait for its turn.
    pub fn handle_resend(&mut self, key: u32, ranges: &[Range], now: Nanos) {
        if let Some(one) = self.find(key) {
            (one.active_at, one.known) = (now, true);
            for &(from, to) in ranges {
                // Data not yet sent is not lost, but its grant was.
                one.granted = one.granted.max(to.min(one.size.into()));
                let to = to.min(one.next);
                if from < to && !one.again.contains(&(from, to)) {
                    one.again.push_back((from, to));
                }
            }
        }
    }

    /// The receiver has the whole message.
    pub fn handle_done(&mut self, key: u32) {
        self.open.retain(|one| one.key != key);
    }

    /// When to call [`handle_timeout`](Self::handle_timeout).
    pub fn next_timeout(&self) -> Option<Nanos> {
        let waits = self.open.iter().filter(|one| !one.wants() && one.next > 0);
        waits.map(|one| self.due(one)).min()
    }

    /// When a message has waited too long for its receiver. If the receiver knows the message, this happens only if several
    /// of its reports in a row are lost.
    fn due(&self, one: &Outgoing) -> Nanos {
        let times = if one.known { PATIENCE } else { 1 };
        one.active_at + Nanos(self.config.timeout.0 * times)
    }

    /// Sends the first bytes again, from which the receiver learns of the message and finds the missing parts.
    pub fn handle_timeout(&mut self, now: Nanos) {
        for at in 0..self.open.len() {
            let due = self.due(&self.open[at]);
            let one = &mut self.open[at];
            if !one.wants() && one.next > 0 && due <= now {
                one.active_at = now;
                let blind = if one.known { MTU.into() } else { self.config.blind_bytes };
                one.again.push_back((0, one.next.min(blind)));
            }
        }
    }
}
