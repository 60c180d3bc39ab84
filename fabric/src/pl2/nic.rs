//! The sending side of a NIC: three classes, strict priority, one wire.

use super::frame::Rsv;
use super::pool::FrameId;
use p4rack_wire::{Nanos, WireRate};
use std::collections::VecDeque;

/// A data frame in the NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Data {
    pub frame: FrameId,
    /// Index of the destination; best effort to others has none.
    pub destination: Option<usize>,
    /// Cell of the reservation under which it goes; best effort has none.
    pub cell: u8,
    pub unsolicited: bool,
    /// Not before this time.
    pub ready: Nanos,
    /// First of a burst that was granted this very time.
    pub opens_burst: bool,
}

/// What the NIC sends next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Item {
    Rsv { destination: usize, rsv: Rsv, ready: Nanos },
    Scheduled(Data),
    BestEffort(Data),
}

/// Paced transmit queues. What fills them bounds them: the control queue holds at most one RSV for
/// each reservation in flight and one for each cell that is given back; data counts towards the endpoint's limits.
#[derive(Clone, Debug)]
pub(super) struct Nic {
    rate: WireRate,
    catch_up: Nanos,
    /// When the wire has done with what was sent.
    free_at: Nanos,
    control: VecDeque<Item>,
    scheduled: VecDeque<(Data, u64)>,
    scheduled_wire_bytes: u64,
    best_effort: VecDeque<Data>,
}

/// Wire bytes of a control frame.
const CONTROL_WIRE_BYTES: u64 = p4rack_wire::ethernet::overhead::wire_bytes(0);

impl Nic {
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

    pub fn push_rsv(&mut self, destination: usize, rsv: Rsv, now: Nanos) {
        self.control.push_back(Item::Rsv { destination, rsv, ready: now });
    }

    pub fn push_scheduled(&mut self, data: Data, wire_bytes: u64) {
        self.scheduled_wire_bytes += wire_bytes;
        self.scheduled.push_back((data, wire_bytes));
    }

    pub fn push_best_effort(&mut self, data: Data) {
        self.best_effort.push_back(data);
    }

    /// Equation 1's `pendingDataDelay`: until a frame that is handed over now would begin to leave.
    pub fn pending(&self, now: Nanos) -> Nanos {
        let queued = self.scheduled_wire_bytes + self.control.len() as u64 * CONTROL_WIRE_BYTES;
        self.free_at.saturating_sub(now).saturating_add(self.rate.time(queued))
    }

    /// Whether a control frame waits.
    #[inline]
    pub fn has_control(&self) -> bool {
        !self.control.is_empty()
    }

    #[inline]
    fn head_ready(&self) -> Option<Nanos> {
        match (self.control.front(), self.scheduled.front(), self.best_effort.front()) {
            (Some(Item::Rsv { ready, .. }), _, _) => Some(*ready),
            (_, Some((data, _)), best) => Some(best.map_or(data.ready, |best| data.ready.min(best.ready))),
            (_, None, best) => best.map(|data| data.ready),
        }
    }

    /// When [`next`](Self::next) has something.
    #[inline]
    pub fn next_at(&self) -> Option<Nanos> {
        self.head_ready().map(|ready| ready.max(self.free_at))
    }

    /// Takes the frame that starts to leave now, if one does.
    pub fn next(&mut self, now: Nanos) -> Option<Item> {
        if self.free_at > now {
            return None;
        }
        if let Some(item) = self.control.pop_front() {
            return Some(item);
        }
        if self.scheduled.front().is_some_and(|(data, _)| data.ready <= now) {
            let (data, wire_bytes) = self.scheduled.pop_front()?;
            self.scheduled_wire_bytes -= wire_bytes;
            return Some(Item::Scheduled(data));
        }
        if self.best_effort.front().is_some_and(|data| data.ready <= now) {
            return self.best_effort.pop_front().map(Item::BestEffort);
        }
        None
    }

    /// Books the wire for a frame that [`next`](Self::next) gave. A driver that is late catches up:
    /// the wire counts as busy from when the frame could have left, at most `catch_up` ago.
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

    fn data(pool: &mut Pool, ready: u64) -> Data {
        let frame = pool.store(&[b"x"]);
        Data {
            frame,
            destination: None,
            cell: 0,
            unsolicited: false,
            ready: Nanos(ready),
            opens_burst: false,
        }
    }

    #[test]
    fn control_first_then_scheduled_then_best_effort_at_the_wire_rate() {
        let (mut nic, mut pool) = (Nic::new(RATE, Nanos::ZERO), Pool::new(usize::MAX));
        let (best, scheduled) = (data(&mut pool, 0), data(&mut pool, 0));
        nic.push_best_effort(best);
        nic.push_scheduled(scheduled, 1_000);
        let rsv = Rsv { id: 1, cell: 0, demand: 1, unsolicited: false };
        nic.push_rsv(0, rsv, Nanos(0));
        assert_eq!(nic.pending(Nanos(0)), Nanos((84 + 1_000) * 8));
        assert!(matches!(nic.next(Nanos(0)), Some(Item::Rsv { .. })));
        nic.sent(84, Nanos(0), Nanos(0));
        assert_eq!(nic.next(Nanos(671)), None, "the wire is busy");
        assert_eq!(nic.next_at(), Some(Nanos(672)));
        assert_eq!(nic.next(Nanos(672)), Some(Item::Scheduled(scheduled)));
        nic.sent(1_000, Nanos(0), Nanos(672));
        assert_eq!(nic.pending(Nanos(8_000)), Nanos(672), "best effort delays no burst");
        assert_eq!(nic.next(Nanos(8_672)), Some(Item::BestEffort(best)));
    }

    #[test]
    fn a_late_driver_catches_up_but_not_without_limit() {
        let (mut nic, mut pool) = (Nic::new(RATE, Nanos(500)), Pool::new(usize::MAX));
        nic.push_scheduled(data(&mut pool, 100), 100);
        assert_eq!(nic.next(Nanos(99)), None, "not before its time");
        assert_eq!(nic.next_at(), Some(Nanos(100)));
        assert!(nic.next(Nanos(400)).is_some());
        nic.sent(100, Nanos(100), Nanos(400));
        assert_eq!(nic.pending(Nanos(400)), Nanos(500), "counted from 100");
        nic.push_scheduled(data(&mut pool, 0), 100);
        assert!(nic.next(Nanos(5_000)).is_some());
        nic.sent(100, Nanos(0), Nanos(5_000));
        assert_eq!(nic.pending(Nanos(5_000)), Nanos(300), "at most 500 back");
    }
}
