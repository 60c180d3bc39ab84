//! The switch in the middle of a rack.

use super::{Clock, Due};
use crate::frames::{Frame, Frames};
use crate::switch::{Model, P4};
use p4rack_wire::Nanos;

/// A switch, and when it is asked again.
///
/// After whatever may change it: [`poll`](Hub::poll) until there is nothing, then [`again`](Hub::again).
#[derive(Debug)]
pub(crate) struct Hub {
    pub model: P4,
    clock: Clock,
    due: Due,
}

impl Hub {
    /// A switch on an agenda with this clock.
    pub fn new(model: P4, clock: Clock) -> Hub {
        Hub { model, clock, due: Due::default() }
    }

    /// A frame has arrived on a port.
    #[inline]
    pub fn take(&mut self, port: u16, frame: &[u8], now: u64) {
        self.model.take(port, frame, self.clock.nanos(now));
    }

    /// The next frame that it sends now, and its port.
    #[inline]
    pub fn poll(&mut self, now: u64, frames: &mut Frames) -> Option<(u16, Frame)> {
        let mut frame = frames.take(true);
        match self.model.poll_transmit(self.clock.nanos(now), &mut frame) {
            Some(port) => Some((port, frame)),
            None => {
                frames.release(frame);
                None
            }
        }
    }

    /// When to ask again, for the agenda; `None`: it is there, or nothing waits.
    #[inline]
    pub fn again(&mut self, now: u64) -> Option<u64> {
        let due = Some(self.model.due()).filter(|due| *due < Nanos::MAX)?;
        self.due.plan(self.clock.ticks(due), now)
    }

    /// Whether this is the time at which it was to be asked again.
    #[inline]
    pub fn is_due(&mut self, now: u64) -> bool {
        self.due.is_now(now)
    }
}
