//! One direction of a link: serialisation, propagation with jitter, faults.
//!
//! ```text
//!  sender ─ Link ─▶ InFlight … ─▶ FarEnd ─ receiver
//! ```
//!
//! Its ends share nothing. Frames may be moved from one to the other some time later, as long as that is
//! before they are due.

use crate::frames::{Frame, Frames};
use crate::random::{Distribution, Random};
use p4rack_wire::ethernet::overhead::wire_bytes;
use p4rack_wire::{Nanos, WireRate};
use std::collections::VecDeque;
use std::sync::Arc;

/// Faults of a link; none by default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Faults {
    /// Probability that a frame is lost.
    pub loss: f64,
    /// Probability of a bit error in a frame. The receiver's FCS check then drops it.
    pub corruption: f64,
    /// Probability that a frame arrives twice.
    pub duplication: f64,
    /// Probability that a frame is delayed by `reorder_ns`, so that others overtake it.
    pub reordering: f64,
    /// See `reordering`.
    pub reorder_ns: u64,
    /// When the link is down: from, to. Frames sent in that time are lost.
    pub down: Vec<(Nanos, Nanos)>,
}

impl Faults {
    /// Whether a frame that leaves at `start` never arrives.
    pub(crate) fn strikes(&self, start: Nanos, random: &mut Random, stats: &mut LinkStats) -> bool {
        let count = if self.down.iter().any(|(from, to)| (*from..*to).contains(&start)) {
            &mut stats.down
        } else if random.chance(self.loss) {
            &mut stats.lost
        } else if random.chance(self.corruption) {
            &mut stats.corrupted
        } else {
            return false;
        };
        *count += 1;
        true
    }

    /// Whether a frame arrives twice.
    pub(crate) fn doubles(&self, random: &mut Random, stats: &mut LinkStats) -> bool {
        let doubles = random.chance(self.duplication);
        stats.duplicated += u64::from(doubles);
        doubles
    }

    /// How long a frame is held back, if it is.
    pub(crate) fn holds_back(&self, random: &mut Random, stats: &mut LinkStats) -> Option<Nanos> {
        let held = random.chance(self.reordering);
        stats.reordered += u64::from(held);
        held.then_some(Nanos(self.reorder_ns))
    }
}

/// Counters of a link's frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct LinkStats {
    /// Frames sent.
    pub sent: u64,
    /// Frames that arrived, including copies.
    pub delivered: u64,
    /// Lost at random.
    pub lost: u64,
    /// Lost because of a wrong FCS.
    pub corrupted: u64,
    /// Lost because the link was down.
    pub down: u64,
    /// Lost because the buffer before a shared port's lane was full.
    pub overflow: u64,
    /// Duplicates made.
    pub duplicated: u64,
    /// Delayed so that others overtook them.
    pub reordered: u64,
    /// Bytes on the wire, including preamble and gap.
    pub wire_bytes: u64,
}

/// A frame on the link.
#[derive(Debug)]
pub(crate) struct InFlight {
    /// When the receiver handles it.
    pub due: Nanos,
    /// When its last bit arrived.
    pub arrived: Nanos,
    pub frame: Frame,
}

/// Where a frame goes among those already on the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Joins {
    /// Behind all others.
    Last,
    /// According to its time: it was delayed, others overtake it.
    InOrder,
}

/// The sender's end of one direction.
#[derive(Debug)]
pub(crate) struct Link {
    rate_bps: u64,
    rate: WireRate,
    /// Wire time of a byte in 2⁻⁶⁴ ns, and the part of a nanosecond by which the wire is busy beyond `free_at`. A link that
    /// rounded each frame up would be slower than the switch's port before it, and a queue without limit.
    byte_time: u128,
    fraction: u64,
    /// Before the frame reaches the wire (a NIC's DMA).
    before: Option<Arc<Distribution>>,
    wire: Arc<Distribution>,
    /// After the last bit: pipeline or DMA of the receiver.
    after: Option<Arc<Distribution>>,
    faults: Option<Box<Faults>>,
    /// Neither limit nor faults.
    plain: bool,
    random: Random,
    free_at: Nanos,
    /// Longest time that frames may wait for the wire.
    limit: Nanos,
    /// When the last frame is handled, and when it arrives.
    last: (Nanos, Nanos),
    /// Statistics, except for `delivered`.
    pub stats: LinkStats,
}

/// The receiver's end of one direction.
#[derive(Debug)]
pub(crate) struct FarEnd {
    queue: VecDeque<InFlight>,
    /// When the first of them is handled; `Nanos::MAX`: there is none.
    due: Nanos,
    /// Frames that arrived.
    pub delivered: u64,
}

/// Delays of one direction.
#[derive(Clone, Debug)]
pub(crate) struct Delays {
    pub before: Option<Arc<Distribution>>,
    pub wire: Arc<Distribution>,
    pub after: Option<Arc<Distribution>>,
}

impl Link {
    pub fn new(rate_bps: u64, delays: Delays, faults: &Faults, random: Random) -> Link {
        let faults = (*faults != Faults::default()).then(|| Box::new(faults.clone()));
        Link {
            rate_bps,
            rate: WireRate::new(rate_bps),
            byte_time: match rate_bps {
                0 => 0,
                rate => (8_000_000_000u128 << 64).div_ceil(rate.into()),
            },
            fraction: 0,
            before: delays.before,
            wire: delays.wire,
            after: delays.after,
            plain: faults.is_none(),
            faults,
            random,
            free_at: Nanos::ZERO,
            limit: Nanos::MAX,
            last: (Nanos::ZERO, Nanos::ZERO),
            stats: LinkStats::default(),
        }
    }

    /// The same with a buffer of this many bytes before it. Frames that do not fit are dropped.
    pub fn bounded(self, bytes: u64) -> Link {
        Link { limit: self.rate.time(bytes), plain: false, ..self }
    }

    /// Whether it has neither limit nor faults.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.plain
    }

    /// Sends a frame of this length over a plain link; returns when it is handled and when it arrives.
    // One copy of the code for both directions: the code of hosts and switch hardly fits into the first-level cache.
    #[inline(never)]
    pub fn pass(&mut self, len: usize, now: Nanos) -> (Nanos, Nanos) {
        let (_, arrived) = self.start(len, now);
        self.joins_last(arrived)
    }

    /// Puts a frame on the wire; returns when it starts, and when it arrives unless an earlier one is delayed.
    #[inline(always)]
    fn start(&mut self, len: usize, now: Nanos) -> (Nanos, Nanos) {
        let wire_bytes = wire_bytes(len as u64);
        self.stats.sent += 1;
        self.stats.wire_bytes += wire_bytes;
        let ready = match &self.before {
            Some(before) => now + Nanos(before.sample(&mut self.random)),
            None => now,
        };
        let start = ready.max(self.free_at);
        if start != self.free_at {
            self.fraction = 0;
        }
        let time = u128::from(wire_bytes) * self.byte_time + u128::from(self.fraction);
        self.fraction = time as u64;
        self.free_at = start + Nanos((time >> 64) as u64);
        (start, self.free_at + Nanos(self.wire.sample(&mut self.random)))
    }

    #[inline(always)]
    fn joins_last(&mut self, arrived: Nanos) -> (Nanos, Nanos) {
        let after = self.after.as_ref().map_or(0, |after| after.sample(&mut self.random));
        // A wire keeps the order, so a delayed frame delays those behind it.
        let due = (arrived + Nanos(after)).max(self.last.0);
        let arrived = arrived.max(self.last.1);
        self.last = (due, arrived);
        (due, arrived)
    }

    /// Sends a frame; passes the copies that arrive to `put`.
    #[cold]
    pub fn send(
        &mut self,
        frame: Frame,
        now: Nanos,
        frames: &mut Frames,
        put: &mut dyn FnMut(InFlight, Joins),
    ) {
        if self.free_at.saturating_sub(now) > self.limit {
            self.stats.sent += 1;
            self.stats.overflow += 1;
            return frames.release(frame);
        }
        let (start, arrived) = self.start(frame.len(), now);
        // Lent to the call: a copy would be an allocation for each frame.
        match self.faults.take() {
            Some(faults) => {
                self.suffer(&faults, (start, arrived), frame, frames, put);
                self.faults = Some(faults);
            }
            None => {
                let (due, arrived) = self.joins_last(arrived);
                put(InFlight { due, arrived, frame }, Joins::Last);
            }
        }
    }

    /// The same on a wire with faults; `start` and `arrived` are without them.
    fn suffer(
        &mut self,
        faults: &Faults,
        (start, mut arrived): (Nanos, Nanos),
        frame: Frame,
        frames: &mut Frames,
        put: &mut dyn FnMut(InFlight, Joins),
    ) {
        if faults.strikes(start, &mut self.random, &mut self.stats) {
            return frames.release(frame);
        }
        if faults.doubles(&mut self.random, &mut self.stats) {
            let mut copy = frames.copy(&frame);
            copy.hops = frame.hops;
            let (due, arrived) = self.joins_last(arrived);
            put(InFlight { due, arrived, frame: copy }, Joins::Last);
        }
        if let Some(late) = faults.holds_back(&mut self.random, &mut self.stats) {
            arrived += late;
            if arrived >= self.last.1 {
                self.last = (arrived, arrived);
            }
            return put(InFlight { due: arrived, arrived, frame }, Joins::InOrder);
        }
        let (due, arrived) = self.joins_last(arrived);
        put(InFlight { due, arrived, frame }, Joins::Last);
    }

    /// Its rate in bits per second; 0 is no limit.
    pub fn rate_bps(&self) -> u64 {
        self.rate_bps
    }

    /// How long a frame that is sent now waits for the wire.
    #[inline]
    pub fn backlog(&self, now: Nanos) -> Nanos {
        self.free_at.saturating_sub(now)
    }

    /// Minimum time from sending a frame to handling it.
    pub fn least_delay(&self) -> Nanos {
        let least = |quantiles: &Option<Arc<Distribution>>| quantiles.as_ref().map_or(0, |some| some.least());
        // A delayed frame skips the delay after the wire.
        let after = if self.faults.is_some() { 0 } else { least(&self.after) };
        // Ends of frames are rounded down.
        let on_wire = self.rate.time(wire_bytes(0)).saturating_sub(Nanos(1));
        on_wire + Nanos(least(&self.before) + self.wire.least() + after)
    }
}

impl FarEnd {
    /// An empty end.
    pub fn new() -> FarEnd {
        // Few frames are on a link at a time. A long ring would lead through more of the processor's cache.
        FarEnd { queue: VecDeque::with_capacity(8), due: Nanos::MAX, delivered: 0 }
    }

    /// Adds a frame that is on the link.
    #[inline(always)]
    pub fn put(&mut self, frame: InFlight, joins: Joins) {
        if joins == Joins::InOrder {
            return self.put_in_order(frame);
        }
        if self.queue.is_empty() {
            self.due = frame.due;
        }
        self.queue.push_back(frame);
    }

    #[cold]
    fn put_in_order(&mut self, frame: InFlight) {
        let at = self.queue.partition_point(|other| other.arrived <= frame.arrived);
        self.queue.insert(at, frame);
        self.due = self.first_due();
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

    /// Takes the frame that is due.
    #[inline(always)]
    pub fn receive(&mut self, now: Nanos) -> Option<InFlight> {
        if self.due > now {
            return None;
        }
        let first = self.queue.pop_front()?;
        self.due = self.first_due();
        self.delivered += 1;
        Some(first)
    }

    /// The next frame, if it is handled before this time.
    #[inline]
    pub fn before(&self, until: Nanos) -> Option<&Frame> {
        let first = if self.due < until { self.queue.front() } else { None };
        first.map(|first| &first.frame)
    }

    /// Number of frames on the link.
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
        let wire = Distribution::new(&points, crate::random::Between::Linear).unwrap();
        let delays = Delays { before: None, wire: Arc::new(wire), after: None };
        (Link::new(RATE, delays, &faults, Random::new(1)), Frames::default())
    }

    fn run(faults: Faults, count: u64) -> (Vec<u8>, LinkStats, Nanos) {
        let (mut link, mut frames) = link(faults);
        let mut far = FarEnd::new();
        for n in 0..count {
            let frame = Box::new(vec![n as u8; 1514].into());
            link.send(frame, Nanos(n * 10), &mut frames, &mut |frame, joins| far.put(frame, joins));
        }
        let (mut order, mut last) = (Vec::new(), Nanos::ZERO);
        while far.in_flight() > 0 {
            let due = far.due();
            assert!(due >= last, "time goes on");
            last = due;
            let Some(received) = far.receive(due) else { panic!("due and not there") };
            order.push(received.frame[0]);
        }
        (order, LinkStats { delivered: far.delivered, ..link.stats }, last)
    }

    #[test]
    fn frames_keep_their_order_and_the_rate_under_jitter() {
        let (order, stats, last) = run(Faults::default(), 200);
        assert_eq!(order, (0..200).collect::<Vec<u8>>());
        assert_eq!((stats.sent, stats.delivered), (200, 200));
        // 1538 bytes at 100 Gb/s are 123.04 ns, and no part of a nanosecond is lost.
        assert!(last >= Nanos(24_608 + 100) && last < Nanos(24_608 + 5_200), "{last}");
    }

    /// Frames that a port sends at its rate never wait.
    #[test]
    fn a_link_is_as_fast_as_the_port_before_it() {
        let (mut link, _) = link(Faults::default());
        let last = (0..10_000u64).map(|n| link.start(1_514, Nanos(n * 12_304 / 100)).0).last();
        assert_eq!(last, Some(Nanos(9_999 * 12_304 / 100)));
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
