//! One direction of a link: serialisation, propagation with jitter, faults.

use crate::frames::{FrameId, Frames};
use crate::random::{Quantiles, Random};
use p4rack_wire::ethernet::overhead::wire_bytes;
use p4rack_wire::{Nanos, WireRate};
use std::collections::VecDeque;
use std::sync::Arc;

/// What can go wrong on a link; all zero by default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Faults {
    /// Probability that a frame is lost.
    pub loss: f64,
    /// Probability that one of a frame's bits turns over. The receiver's FCS check drops it.
    pub corruption: f64,
    /// Probability that a frame comes twice.
    pub duplication: f64,
    /// Probability that a frame is held up by `reorder_ns`, others passing it.
    pub reordering: f64,
    /// See `reordering`.
    pub reorder_ns: u64,
    /// When the link is down: from, to. Frames that start then are lost.
    pub down: Vec<(Nanos, Nanos)>,
}

/// What happened to a link's frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct LinkStats {
    /// Frames that entered.
    pub sent: u64,
    /// Frames that came out, copies included.
    pub delivered: u64,
    /// Lost at random.
    pub lost: u64,
    /// Lost because of a wrong FCS.
    pub corrupted: u64,
    /// Lost because the link was down.
    pub down: u64,
    /// Lost because the buffer before a shared port's lane was full.
    pub overflow: u64,
    /// Copies made.
    pub duplicated: u64,
    /// Held up.
    pub reordered: u64,
    /// Bytes on the wire, preamble and gap included.
    pub wire_bytes: u64,
}

/// A frame on the link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InFlight {
    /// When the receiver handles it.
    pub due: Nanos,
    /// When its last bit arrived.
    pub arrived: Nanos,
    pub frame: FrameId,
}

/// One direction.
#[derive(Debug)]
pub(crate) struct Link {
    rate: WireRate,
    /// Before the frame reaches the wire (a NIC's DMA).
    before: Option<Arc<Quantiles>>,
    wire: Arc<Quantiles>,
    /// After the last bit: pipeline or DMA of the receiver.
    after: Option<Arc<Quantiles>>,
    faults: Option<Box<Faults>>,
    /// Neither limit nor faults.
    plain: bool,
    random: Random,
    free_at: Nanos,
    /// Most that may wait for it.
    limit: Nanos,
    queue: VecDeque<InFlight>,
    /// When the first of them is handled; `Nanos::MAX`: there is none.
    due: Nanos,
    /// When the last of them is handled, and when it arrives.
    last: (Nanos, Nanos),
    pub stats: LinkStats,
}

/// Delays of one direction.
#[derive(Clone, Debug)]
pub(crate) struct Delays {
    pub before: Option<Arc<Quantiles>>,
    pub wire: Arc<Quantiles>,
    pub after: Option<Arc<Quantiles>>,
}

impl Link {
    pub fn new(rate_bps: u64, delays: Delays, faults: &Faults, random: Random) -> Link {
        let faults = (*faults != Faults::default()).then(|| Box::new(faults.clone()));
        Link {
            rate: WireRate::new(rate_bps),
            before: delays.before,
            wire: delays.wire,
            after: delays.after,
            plain: faults.is_none(),
            faults,
            random,
            free_at: Nanos::ZERO,
            limit: Nanos::MAX,
            queue: VecDeque::with_capacity(256),
            due: Nanos::MAX,
            last: (Nanos::ZERO, Nanos::ZERO),
            stats: LinkStats::default(),
        }
    }

    /// The same with a buffer of so many bytes before it: what does not fit is dropped.
    pub fn bounded(self, bytes: u64) -> Link {
        Link { limit: self.rate.time(bytes), plain: false, ..self }
    }

    /// Takes a frame that starts to leave now.
    #[inline]
    pub fn send(&mut self, frame: FrameId, now: Nanos, frames: &mut Frames) {
        let wire_bytes = wire_bytes(frames.get(frame).len() as u64);
        self.stats.sent += 1;
        if !self.plain && self.free_at.saturating_sub(now) > self.limit {
            self.stats.overflow += 1;
            return frames.give_back(frame);
        }
        self.stats.wire_bytes += wire_bytes;
        let ready = match &self.before {
            Some(before) => now + Nanos(before.sample(&mut self.random)),
            None => now,
        };
        let start = ready.max(self.free_at);
        self.free_at = start + self.rate.time(wire_bytes);
        let mut arrived = self.free_at + Nanos(self.wire.sample(&mut self.random));
        if !self.plain && self.faulty(frame, start, &mut arrived, frames) {
            return;
        }
        self.push(frame, arrived);
    }

    #[inline(always)]
    fn push(&mut self, frame: FrameId, arrived: Nanos) {
        let after = self.after.as_ref().map_or(0, |after| after.sample(&mut self.random));
        // A wire keeps the order: what was held up holds up what follows.
        let due = (arrived + Nanos(after)).max(self.last.0);
        let arrived = arrived.max(self.last.1);
        self.last = (due, arrived);
        if self.queue.is_empty() {
            self.due = due;
        }
        self.queue.push_back(InFlight { due, arrived, frame });
    }

    #[cold]
    fn faulty(&mut self, frame: FrameId, start: Nanos, arrived: &mut Nanos, frames: &mut Frames) -> bool {
        let Some(faults) = self.faults.clone() else { return false };
        let reason = if faults.down.iter().any(|(from, to)| (*from..*to).contains(&start)) {
            Some(&mut self.stats.down)
        } else if self.random.chance(faults.loss) {
            Some(&mut self.stats.lost)
        } else if self.random.chance(faults.corruption) {
            Some(&mut self.stats.corrupted)
        } else {
            None
        };
        if let Some(count) = reason {
            *count += 1;
            frames.give_back(frame);
            return true;
        }
        if self.random.chance(faults.duplication) {
            self.stats.duplicated += 1;
            let copy = frames.copy(frame);
            self.push(copy, *arrived);
        }
        if self.random.chance(faults.reordering) {
            self.stats.reordered += 1;
            *arrived += Nanos(faults.reorder_ns);
            let at = self.queue.partition_point(|other| other.arrived <= *arrived);
            self.queue.insert(at, InFlight { due: *arrived, arrived: *arrived, frame });
            self.last = self.queue.back().map_or(self.last, |last| (last.due, last.arrived));
            self.due = self.first_due();
            return true;
        }
        false
    }

    /// When the next frame is handled; `Nanos::MAX`: there is none.
    #[inline]
    pub fn due(&self) -> Nanos {
        self.due
    }

    #[inline]
    fn first_due(&self) -> Nanos {
        self.queue.front().map_or(Nanos::MAX, |first| first.due)
    }

    /// No frame is handled earlier after it was sent.
    pub fn least_delay(&self) -> Nanos {
        let least = |quantiles: &Option<Arc<Quantiles>>| quantiles.as_ref().map_or(0, |some| some.least());
        // A frame that is held up overtakes what others still have before them.
        let after = if self.faults.is_some() { 0 } else { least(&self.after) };
        self.rate.time(wire_bytes(0)) + Nanos(least(&self.before) + self.wire.least() + after)
    }

    /// Takes the frame that is due.
    #[inline]
    pub fn receive(&mut self, now: Nanos) -> Option<InFlight> {
        if self.due > now {
            return None;
        }
        let first = self.queue.pop_front()?;
        self.due = self.first_due();
        self.stats.delivered += 1;
        Some(first)
    }

    /// Frames on it.
    pub fn in_flight(&self) -> usize {
        self.queue.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: u64 = 100_000_000_000;

    fn link(faults: Faults) -> (Link, Frames) {
        let points = [(0.0, 100.0), (0.9, 110.0), (1.0, 5_000.0)];
        let wire = Quantiles::new(&points, crate::random::Between::Linear).unwrap();
        let delays = Delays { before: None, wire: Arc::new(wire), after: None };
        (Link::new(RATE, delays, &faults, Random::new(1)), Frames::default())
    }

    fn run(faults: Faults, count: u64) -> (Vec<u8>, LinkStats, Nanos) {
        let (mut link, mut frames) = link(faults);
        for n in 0..count {
            let frame = frames.take(false);
            frames.get_mut(frame).clear();
            frames.get_mut(frame).resize(1514, n as u8);
            link.send(frame, Nanos(n * 10), &mut frames);
        }
        let (mut order, mut last) = (Vec::new(), Nanos::ZERO);
        while link.in_flight() > 0 {
            let due = link.due();
            assert!(due >= last, "time goes on");
            last = due;
            let Some(received) = link.receive(due) else { panic!("due and not there") };
            order.push(frames.get(received.frame)[0]);
            frames.give_back(received.frame);
        }
        assert_eq!(frames.used(), 0);
        (order, link.stats, last)
    }

    #[test]
    fn frames_keep_their_order_and_the_rate_under_jitter() {
        let (order, stats, last) = run(Faults::default(), 200);
        assert_eq!(order, (0..200).collect::<Vec<u8>>());
        assert_eq!((stats.sent, stats.delivered), (200, 200));
        // 1538 bytes at 100 Gb/s are 123.04 ns, on whole nanoseconds 124.
        assert!(last >= Nanos(200 * 124 + 100) && last < Nanos(200 * 124 + 5_200), "{last}");
    }

    #[test]
    fn each_fault_is_counted() {
        let faults = Faults { loss: 0.1, corruption: 0.1, duplication: 0.1, ..Faults::default() };
        let (order, stats, _) = run(faults, 2_000);
        assert!(stats.lost > 100 && stats.corrupted > 100 && stats.duplicated > 100, "{stats:?}");
        assert_eq!(stats.sent + stats.duplicated, stats.delivered + stats.lost + stats.corrupted);
        assert_eq!(order.len() as u64, stats.delivered);
        let faults = Faults { reordering: 0.1, reorder_ns: 3_000, ..Faults::default() };
        let (order, stats, _) = run(faults, 200);
        assert!(stats.reordered > 5 && !order.is_sorted(), "{stats:?}");
        let faults = Faults { down: vec![(Nanos(0), Nanos(5_000))], ..Faults::default() };
        let (order, stats, _) = run(faults, 100);
        assert!(stats.down > 30 && order[0] == stats.down as u8, "{stats:?}");
    }
}
