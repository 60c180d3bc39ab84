//! Jitter and faults of links and network cards.

use super::Clock;
use crate::experiment::LinkSpec;
use crate::frames::{Frame, Frames};
use crate::link::{Faults, LinkStats};
use crate::random::{Between, Distribution, Random};
use p4rack_wire::Nanos;

/// A direction of a host's link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// From this host to the switch.
    Up(u16),
    /// From the switch to this host.
    Down(u16),
}

/// Both directions of all hosts' links. By default a link takes a constant time, which its loop knows, and loses nothing.
#[derive(Debug)]
pub(crate) struct Wires {
    clock: Clock,
    /// The constant time, in ticks.
    constant: u64,
    /// Delay in place of it, nanoseconds.
    delay: Option<Distribution>,
    /// Further time of a frame between a host's memory and its link, nanoseconds.
    dma: Option<Distribution>,
    /// By host.
    faults: Vec<Faults>,
    /// Neither jitter nor faults.
    plain: bool,
    /// When the last frame of each direction arrives: a wire keeps the order.
    last: Vec<[u64; 2]>,
    random: Random,
    pub stats: LinkStats,
}

impl Wires {
    /// Links of hosts with these names, whose constant delay is `constant` ticks. Errors: delays that are no distribution.
    pub fn new(
        clock: Clock,
        constant: u64,
        (link, dma_ns): (&LinkSpec, Option<&[(f64, f64)]>),
        names: &[impl AsRef<str>],
        random: Random,
    ) -> Result<Wires, String> {
        let distribution = |points: Option<&[(f64, f64)]>| {
            points.map(|points| Distribution::new(points, Between::Linear)).transpose()
        };
        Ok(Wires {
            clock,
            constant,
            delay: distribution(link.delay_ns.as_deref())?,
            dma: distribution(dma_ns)?,
            faults: names.iter().map(|own| link.faults(|name| name == own.as_ref())).collect(),
            plain: link.is_plain() && dma_ns.is_none(),
            last: vec![[0; 2]; names.len()],
            random,
            stats: LinkStats::default(),
        })
    }

    /// Carries a frame that would arrive at `at`. Hands over the copies that arrive, and their times.
    #[inline]
    pub fn carry(
        &mut self,
        direction: Direction,
        frame: Frame,
        at: u64,
        frames: &mut Frames,
        mut put: impl FnMut(u64, Frame),
    ) {
        self.stats.sent += 1;
        if self.plain {
            self.stats.delivered += 1;
            return put(at, frame);
        }
        self.disturb(direction, frame, at, frames, &mut put);
    }

    #[cold]
    fn disturb(
        &mut self,
        direction: Direction,
        frame: Frame,
        at: u64,
        frames: &mut Frames,
        put: &mut dyn FnMut(u64, Frame),
    ) {
        let (host, side) = match direction {
            Direction::Up(host) => (usize::from(host), 0),
            Direction::Down(host) => (usize::from(host), 1),
        };
        let left = at.saturating_sub(self.constant);
        let mut draw = |from: &Option<Distribution>| {
            from.as_ref().map(|from| self.clock.ticks(Nanos(from.sample(&mut self.random))))
        };
        let at = draw(&self.delay).map_or(at, |delay| left + delay) + draw(&self.dma).unwrap_or(0);
        let at = at.max(self.last[host][side]);
        let faults = &self.faults[host];
        if faults.strikes(self.clock.nanos(left), &mut self.random, &mut self.stats) {
            return frames.release(frame);
        }
        if faults.doubles(&mut self.random, &mut self.stats) {
            self.stats.delivered += 1;
            put(at, frames.copy(&frame));
        }
        self.stats.delivered += 1;
        match faults.holds_back(&mut self.random, &mut self.stats) {
            Some(late) => put(at + self.clock.ticks(late), frame),
            None => put(at, frame),
        }
        self.last[host][side] = at;
    }

    /// Frames that never arrived.
    pub fn lost(&self) -> u64 {
        self.stats.lost + self.stats.corrupted + self.stats.down
    }

    /// Counts of frames that a fault affected, by name; empty for links without faults.
    pub fn counters(&self) -> Vec<(&'static str, u64)> {
        let LinkStats { lost, corrupted, down, duplicated, reordered, .. } = self.stats;
        let all = [
            ("link_lost", lost),
            ("link_corrupted", corrupted),
            ("link_down", down),
            ("link_duplicated", duplicated),
            ("link_reordered", reordered),
        ];
        all.into_iter().filter(|(_, count)| *count > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Times in nanoseconds at which 1,000 frames of a link with these faults arrive, one each microsecond.
    fn carried(link: &LinkSpec, dma_ns: Option<&[(f64, f64)]>) -> (Vec<u64>, LinkStats) {
        let names = ["a", "b"];
        let random = Random::new(1);
        let wires = Wires::new(Clock::PICOSECONDS, 300_000, (link, dma_ns), &names, random);
        let (mut wires, mut frames, mut times) = (wires.unwrap(), Frames::default(), Vec::new());
        for nth in 0..1_000 {
            let (frame, at) = (frames.take(true), nth * 1_000_000 + 300_000);
            wires.carry(Direction::Up(1), frame, at, &mut frames, |at, _| times.push(at / 1_000));
        }
        (times, wires.stats)
    }

    #[test]
    fn a_plain_link_changes_nothing() {
        let (times, stats) = carried(&LinkSpec::default(), None);
        assert_eq!(times, (0..1_000).map(|nth| nth * 1_000 + 300).collect::<Vec<u64>>());
        assert_eq!((stats.sent, stats.delivered), (1_000, 1_000));
    }

    #[test]
    fn a_drawn_delay_replaces_the_constant_one_and_keeps_the_order() {
        let delay_ns = Some(vec![(0.0, 100.0), (0.9, 110.0), (1.0, 9_000.0)]);
        let (times, stats) = carried(&LinkSpec { delay_ns, ..LinkSpec::default() }, None);
        assert!(times.is_sorted() && stats.delivered == 1_000);
        let delays: Vec<u64> = times.iter().zip(0..).map(|(at, nth)| at - nth * 1_000).collect();
        assert!(delays.iter().filter(|delay| **delay <= 110).count() > 400, "{delays:?}");
        assert!(delays.iter().any(|delay| *delay > 1_000), "{delays:?}");
        let (times, _) = carried(&LinkSpec::default(), Some(&[(0.0, 50.0), (1.0, 50.0)]));
        assert_eq!(times[..2], [350, 1_350]);
    }

    #[test]
    fn each_fault_is_counted_on_the_links_that_have_it() {
        let faulty = LinkSpec {
            loss: 0.1,
            corruption: 0.1,
            duplication: 0.1,
            reordering: 0.1,
            down_us: vec![(0, 50)],
            ..LinkSpec::default()
        };
        let (times, stats) = carried(&faulty, None);
        assert_eq!(stats.down, 50);
        for count in [stats.lost, stats.corrupted, stats.duplicated, stats.reordered] {
            assert!((40..160).contains(&count), "{stats:?}");
        }
        assert_eq!(times.len() as u64, stats.delivered);
        assert_eq!(
            stats.sent + stats.duplicated,
            stats.delivered + stats.lost + stats.corrupted + stats.down
        );
        assert!(!times.is_sorted());
        let others = LinkSpec { hosts: vec!["a".to_owned()], ..faulty };
        assert_eq!(carried(&others, None).1.delivered, 1_000);
    }
}
