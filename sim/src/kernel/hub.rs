//! The switch in the middle of a rack.

use super::{Clock, Due};
use crate::frames::{Frame, Frames};
use crate::outcome::depth_quantile;
use crate::requests::PoolLink;
use crate::switch::{Model, P4};
use p4rack_switch::DropReason;
use p4rack_wire::Nanos;
use std::collections::BTreeMap;

/// Bytes of a frame on the wire that the switch does not count: FCS, preamble and gap.
pub(crate) const WIRE_BYTES: u64 = 24;

/// Counters of a rack's switch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SwitchCounts {
    /// Frames dropped by the program and by the traffic manager, by reason.
    pub drops: BTreeMap<String, u64>,
    /// Maximum bytes that waited for a port.
    pub queue_max_bytes: u64,
    /// Bytes that waited for it in 99.9 % of the time, at most.
    pub queue_p999_bytes: u64,
}

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

    /// When to ask again, for the agenda; `None` if it is scheduled already, or nothing waits.
    #[inline]
    pub fn again(&mut self, now: u64) -> Option<u64> {
        let due = Some(self.model.due()).filter(|due| *due < Nanos::MAX)?;
        self.due.plan(self.clock.ticks(due), now)
    }

    /// The switch's counters, with the queues of a port. Drops of the program for the reasons `no_loss` don't count. `None`: it has no
    /// such port.
    pub fn counts(&self, port: u16, no_loss: &[&str], now: u64) -> Option<SwitchCounts> {
        let stats = self.model.stats(self.clock.nanos(now));
        let port = stats.ports.iter().find(|other| other.port == port)?;
        // The program's drops are counted there by reason.
        let by_manager = stats.drops.iter().filter(|(reason, _)| *reason != DropReason::IngressDrop);
        let by_manager = by_manager.map(|(reason, count)| (format!("switch.{}", reason.name()), *count));
        let by_program = self.model.counted().drops;
        let by_program = by_program.into_iter().filter(|(reason, _)| !no_loss.contains(reason));
        let by_program = by_program.map(|(reason, count)| (format!("program.{reason}"), count));
        Some(SwitchCounts {
            drops: by_manager.chain(by_program).filter(|(_, count)| *count > 0).collect(),
            queue_max_bytes: port.queue_max_bytes,
            queue_p999_bytes: depth_quantile(port, 0.999),
        })
    }

    /// Bytes that a port's link has carried, and its longest queue.
    pub fn link(&self, port: u16, now: u64) -> PoolLink {
        let stats = self.model.stats(self.clock.nanos(now));
        let Some(port) = stats.ports.iter().find(|other| other.port == port) else {
            return PoolLink::default();
        };
        PoolLink {
            to_bytes: port.tx_bytes + WIRE_BYTES * port.tx_frames,
            from_bytes: port.rx_bytes + WIRE_BYTES * port.rx_frames,
            queue_max_bytes: port.queue_max_bytes,
        }
    }

    /// Whether this is the time at which it was to be asked again.
    #[inline]
    pub fn is_due(&mut self, now: u64) -> bool {
        self.due.is_now(now)
    }
}
