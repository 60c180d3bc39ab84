//! The receiving end of a connection.

use crate::transport::wire::{RANGES, Range};

/// Maximum ranges stored; further data counts as lost.
const KEPT_MAX: usize = 4_096;

/// An acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ack {
    /// The next byte expected.
    pub next: u64,
    /// Whether frames were marked.
    pub marked: bool,
    /// SACK ranges, most recent first.
    pub ranges: [Range; RANGES],
    /// Number of ranges.
    pub count: usize,
}

/// A connection's receiving end.
#[derive(Clone, Debug, Default)]
pub struct Receiver {
    next: u64,
    /// Ranges received after a gap, sorted.
    ahead: Vec<Range>,
    /// Position of the most recent of them.
    latest: u64,
    unacknowledged: u8,
    marked: bool,
    /// Bytes received, each once.
    received: u64,
}

impl Receiver {
    /// The next byte expected.
    pub fn expected(&self) -> u64 {
        self.next
    }

    /// Bytes received, each once, whether in order or not.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Handles a segment. Returns an acknowledgement of earlier segments, if due, the number of new bytes in
    /// order, and an acknowledgement that includes this one, if due.
    pub fn handle(
        &mut self,
        start: u64,
        bytes: u64,
        push: bool,
        marked: bool,
    ) -> (Option<Ack>, u64, Option<Ack>) {
        // RFC 8257, 3.2: a change of the mark forces an acknowledgement of earlier segments.
        let mut first = None;
        if marked != self.marked {
            if self.unacknowledged > 0 {
                first = Some(self.ack());
            }
            self.marked = marked;
        }
        let before = self.next;
        let end = start + bytes;
        let in_order = start <= self.next && end > self.next;
        if in_order {
            self.received += end - self.next;
            self.next = end;
            while let Some(&(from, to)) = self.ahead.first() {
                if from > self.next {
                    break;
                }
                // This range was counted when it arrived: subtract its overlap with the segment.
                self.received -= self.next.min(to) - from;
                self.next = self.next.max(to);
                self.ahead.remove(0);
            }
        } else if start > self.next && self.ahead.len() < KEPT_MAX {
            self.insert(start, end);
            self.latest = start;
        }
        self.unacknowledged += 1;
        let at_once = !in_order || !self.ahead.is_empty() || push;
        let second = (at_once || self.unacknowledged >= 2).then(|| self.ack());
        (first, self.next - before, second)
    }

    fn insert(&mut self, from: u64, to: u64) {
        let first = self.ahead.partition_point(|range| range.1 < from);
        let last = self.ahead.partition_point(|range| range.0 <= to);
        let (mut from, mut to) = (from, to);
        for range in &self.ahead[first..last] {
            (from, to) = (from.min(range.0), to.max(range.1));
            self.received -= range.1 - range.0;
        }
        self.received += to - from;
        self.ahead.splice(first..last, [(from, to)]);
    }

    fn ack(&mut self) -> Ack {
        self.unacknowledged = 0;
        let mut ack = Ack { next: self.next, marked: self.marked, ..Ack::default() };
        let latest = self.ahead.partition_point(|range| range.1 <= self.latest);
        let others = (0..self.ahead.len()).rev().filter(|at| *at != latest);
        for at in std::iter::once(latest).chain(others) {
            if let (Some(range), Some(place)) = (self.ahead.get(at), ack.ranges.get_mut(ack.count)) {
                *place = *range;
                ack.count += 1;
            }
        }
        ack
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_second_segment_gaps_and_ends_of_messages_are_acknowledged() {
        let mut receiver = Receiver::default();
        assert_eq!(receiver.handle(0, 10, false, false), (None, 10, None));
        let (_, new, ack) = receiver.handle(10, 10, false, false);
        assert_eq!((new, ack.unwrap().next), (10, 20));
        assert_eq!(receiver.handle(20, 10, true, false).2.unwrap().next, 30);
        let (_, new, ack) = receiver.handle(40, 10, false, false);
        assert_eq!((new, ack.unwrap().ranges[0], ack.unwrap().count), (0, (40, 50), 1));
        let (_, _, ack) = receiver.handle(60, 10, false, false);
        assert_eq!((ack.unwrap().ranges[..2].to_vec(), ack.unwrap().count), (vec![(60, 70), (40, 50)], 2));
        let (_, new, ack) = receiver.handle(30, 10, false, false);
        assert_eq!((new, ack.unwrap().next, ack.unwrap().count), (20, 50, 1));
        assert_eq!(receiver.handle(50, 10, false, false).1, 20);
        assert_eq!(receiver.handle(50, 10, false, false).1, 0, "a copy");
    }

    #[test]
    fn a_change_of_the_mark_is_acknowledged_first() {
        let mut receiver = Receiver::default();
        receiver.handle(0, 10, false, false);
        let (first, _, second) = receiver.handle(10, 10, false, true);
        assert_eq!((first.unwrap().next, first.unwrap().marked, second), (10, false, None));
        let (_, _, ack) = receiver.handle(20, 10, false, true);
        assert!(ack.unwrap().marked);
    }

    #[test]
    fn each_byte_is_received_once() {
        let mut random = crate::random::Random::new(1);
        for _ in 0..200 {
            let (mut receiver, mut seen) = (Receiver::default(), [false; 100]);
            for _ in 0..60 {
                let start = random.below(90);
                let bytes = 1 + random.below(10);
                receiver.handle(start, bytes, false, false);
                seen[start as usize..(start + bytes) as usize].fill(true);
                assert_eq!(receiver.received(), seen.iter().filter(|seen| **seen).count() as u64);
            }
        }
    }
}
