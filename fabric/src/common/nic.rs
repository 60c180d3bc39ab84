//! The sending side of a NIC: three classes with strict priority, and one wire.

use super::pool::FrameId;
use p4rack_wire::{Nanos, WireRate};
use std::collections::VecDeque;

/// A frame that is sent when the other classes leave the wire idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BestEffort {
    pub frame: FrameId,
    /// Index of the destination; `None` if it is not a known host.
    pub destination: Option<usize>,
}

/// The NIC's next transmission. The scheme defines its control frames `C` and scheduled frames `S`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Item<C, S> {
    Control(C),
    Scheduled(S),
    BestEffort(BestEffort),
}

/// A scheduled frame in the NIC.
#[derive(Clone, Copy, Debug)]
struct Scheduled<S> {
    what: S,
    /// Earliest time to send it.
    ready: Nanos,
    wire_bytes: u64,
}

/// Paced transmit queues. Their sources bound them: the control queue holds at most the scheme's requests in
/// flight; data counts towards the host's limits.
#[derive(Clone, Debug)]
pub(crate) struct Nic<C, S> {
    rate: WireRate,
    catch_up: Nanos,
    /// Time at which the wire has finished the sent frames.
    free_at: Nanos,
    /// Control frames with the times from which they may leave.
    control: VecDeque<(C, Nanos)>,
    scheduled: VecDeque<Scheduled<S>>,
    scheduled_wire_bytes: u64,
    best_effort: VecDeque<(BestEffort, Nanos)>,
}

/// Wire bytes of a control frame, the minimum.
const CONTROL_WIRE_BYTES: u64 = p4rack_wire::ethernet::overhead::wire_bytes(0);

impl<C, S> Nic<C, S> {
    pub fn new(rate_bps: u64, catch_up: Nanos) -> Self {
        Nic {
            rate: WireRate::new(rate_bps),
            catch_up,
            free_at: Nanos::ZERO,
            control: VecDeque::new(),
            scheduled: VecDeque::new(),
            scheduled_wire_bytes: 0,
            best_effort: VecDeque::new(),
        }
    }

    pub fn push_control(&mut self, control: C, now: Nanos) {
        self.control.push_back((control, now));
    }

    pub fn push_scheduled(&mut self, what: S, ready: Nanos, wire_bytes: u64) {
        self.scheduled_wire_bytes += wire_bytes;
        self.scheduled.push_back(Scheduled { what, ready, wire_bytes });
    }

    pub fn push_best_effort(&mut self, data: BestEffort, now: Nanos) {
        self.best_effort.push_back((data, now));
    }

    /// Time until a scheduled frame that is handed over now would start to leave (PL2's `pendingDataDelay`,
    /// equation 1).
    pub fn pending(&self, now: Nanos) -> Nanos {
        let queued = self.scheduled_wire_bytes + self.control.len() as u64 * CONTROL_WIRE_BYTES;
        self.free_at.saturating_sub(now).saturating_add(self.rate.time(queued))
    }

    /// Whether a control frame is waiting.
    #[inline]
    pub fn has_control(&self) -> bool {
        !self.control.is_empty()
    }

    #[inline]
    fn head_ready(&self) -> Option<Nanos> {
        match (self.control.front(), self.scheduled.front(), self.best_effort.front()) {
            (Some((_, ready)), _, _) => Some(*ready),
            (_, Some(data), best) => Some(best.map_or(data.ready, |(_, ready)| data.ready.min(*ready))),
            (_, None, best) => best.map(|(_, ready)| *ready),
        }
    }

    /// Time at which [`next`](Self::next) has something.
    #[inline]
    pub fn next_at(&self) -> Option<Nanos> {
        self.head_ready().map(|ready| ready.max(self.free_at))
    }

    /// Takes the frame that starts to leave now, if any, and the time from which it was ready.
    pub fn next(&mut self, now: Nanos) -> Option<(Item<C, S>, Nanos)> {
        if self.free_at > now {
            return None;
        }
        if let Some((control, ready)) = self.control.pop_front() {
            return Some((Item::Control(control), ready));
        }
        if self.scheduled.front().is_some_and(|data| data.ready <= now) {
            let Scheduled { what, ready, wire_bytes } = self.scheduled.pop_front()?;
            self.scheduled_wire_bytes -= wire_bytes;
            return Some((Item::Scheduled(what), ready));
        }
        if self.best_effort.front().is_some_and(|(_, ready)| *ready <= now) {
            return self.best_effort.pop_front().map(|(data, ready)| (Item::BestEffort(data), ready));
        }
        None
    }

    /// Occupies the wire for a frame from [`next`](Self::next). A late driver catches up: the wire counts as
    /// busy from when the frame could have left, at most `catch_up` ago.
    pub fn sent(&mut self, wire_bytes: u64, ready: Nanos, now: Nanos) {
        let start = self.free_at.max(ready).max(now.saturating_sub(self.catch_up)).min(now);
        self.free_at = start.saturating_add(self.rate.time(wire_bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::super::pool::Pool;
    use super::*;

    /// 1 bit a nanosecond.
    const RATE: u64 = 1_000_000_000;

    #[test]
    fn control_first_then_scheduled_then_best_effort_at_the_wire_rate() {
        let mut nic = Nic::<&str, u8>::new(RATE, Nanos::ZERO);
        let frame = Pool::<()>::new(usize::MAX).store(&[b"x"]);
        let best = BestEffort { frame, destination: None };
        nic.push_best_effort(best, Nanos(0));
        nic.push_scheduled(7, Nanos(0), 1_000);
        nic.push_control("request", Nanos(0));
        assert_eq!(nic.pending(Nanos(0)), Nanos((84 + 1_000) * 8));
        assert_eq!(nic.next(Nanos(0)), Some((Item::Control("request"), Nanos(0))));
        nic.sent(84, Nanos(0), Nanos(0));
        assert_eq!(nic.next(Nanos(671)), None, "the wire is busy");
        assert_eq!(nic.next_at(), Some(Nanos(672)));
        assert_eq!(nic.next(Nanos(672)), Some((Item::Scheduled(7), Nanos(0))));
        nic.sent(1_000, Nanos(0), Nanos(672));
        assert_eq!(nic.pending(Nanos(8_000)), Nanos(672), "best effort delays no scheduled frame");
        assert_eq!(nic.next(Nanos(8_672)), Some((Item::BestEffort(best), Nanos(0))));
    }

    #[test]
    fn a_late_driver_catches_up_but_not_without_limit() {
        let mut nic = Nic::<(), ()>::new(RATE, Nanos(500));
        nic.push_scheduled((), Nanos(100), 100);
        assert_eq!(nic.next(Nanos(99)), None, "not before its time");
        assert_eq!(nic.next_at(), Some(Nanos(100)));
        assert!(nic.next(Nanos(400)).is_some());
        nic.sent(100, Nanos(100), Nanos(400));
        assert_eq!(nic.pending(Nanos(400)), Nanos(500), "counted from 100");
        nic.push_scheduled((), Nanos(0), 100);
        assert!(nic.next(Nanos(5_000)).is_some());
        nic.sent(100, Nanos(0), Nanos(5_000));
        assert_eq!(nic.pending(Nanos(5_000)), Nanos(300), "at most 500 back");
    }
}
