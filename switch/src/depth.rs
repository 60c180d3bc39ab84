//! Depth of a port's queues over time: a time-weighted histogram, and the maximum of each interval.

use crate::stats::{DepthSample, DepthTime};
use p4rack_wire::Nanos;
use std::collections::VecDeque;

/// Maximum bins of a histogram, in addition to the one for empty.
const BINS: u64 = 4096;
/// Minimum width of a bin, in bytes.
const FINEST: u64 = 64;

/// A port's depth.
#[derive(Clone, Debug)]
pub(crate) struct Depth {
    pub bytes: u64,
    pub max_bytes: u64,
    /// Logarithm of a bin's width in bytes.
    bin_shift: u32,
    bins: Vec<u64>,
    since: Nanos,
    interval_ns: u64,
    /// Start of the open interval, and the maximum depth in it.
    start: u64,
    peak: u64,
    samples: VecDeque<DepthSample>,
    limit: usize,
}

impl Depth {
    /// An empty port. Keeps up to `samples` samples, one per interval.
    pub fn new(buffer_bytes: u64, interval: Nanos, samples: usize) -> Depth {
        let bin_bytes = buffer_bytes.div_ceil(BINS).max(FINEST).next_power_of_two();
        Depth {
            bytes: 0,
            max_bytes: 0,
            bin_shift: bin_bytes.trailing_zeros(),
            bins: vec![0; (buffer_bytes.div_ceil(bin_bytes) + 2) as usize],
            since: Nanos::ZERO,
            interval_ns: interval.0.max(1),
            start: 0,
            peak: 0,
            samples: VecDeque::with_capacity(samples),
            limit: samples,
        }
    }

    /// Records a change of the depth.
    #[inline(always)]
    pub fn set(&mut self, bytes: u64, now: Nanos) {
        // A frame often leaves at the time of its arrival.
        if now > self.since {
            self.advance(now);
        }
        self.bytes = bytes;
        self.max_bytes = self.max_bytes.max(bytes);
        self.peak = self.peak.max(bytes);
    }

    /// Records that an empty port held this many bytes for zero time.
    #[inline(always)]
    pub fn touch(&mut self, bytes: u64, now: Nanos) {
        // Empty time can be counted later, but a maximum belongs to its interval.
        if now.0.saturating_sub(self.start) >= self.interval_ns {
            self.advance(now);
        }
        self.max_bytes = self.max_bytes.max(bytes);
        self.peak = self.peak.max(bytes);
    }

    #[inline]
    fn advance(&mut self, now: Nanos) {
        let bin = self.bin();
        self.bins[bin] += now.saturating_sub(self.since).0;
        self.since = self.since.max(now);
        if now.0.saturating_sub(self.start) >= self.interval_ns {
            self.close(now);
        }
    }

    fn bin(&self) -> usize {
        (((self.bytes + (1 << self.bin_shift) - 1) >> self.bin_shift) as usize).min(self.bins.len() - 1)
    }

    /// Closes the open interval and those that have passed since. The last of them represents all.
    #[inline(never)]
    fn close(&mut self, now: Nanos) {
        let start = now.0 - now.0 % self.interval_ns;
        self.sample(self.start, self.peak);
        if start - self.start > self.interval_ns {
            self.sample(start - self.interval_ns, self.bytes);
        }
        self.start = start;
        self.peak = self.bytes;
    }

    fn sample(&mut self, time: u64, depth_bytes: u64) {
        let mut newest = self.samples.iter().rev();
        let flat = depth_bytes == 0
            && newest.next().is_none_or(|sample| sample.depth_bytes == 0)
            && newest.next().is_none_or(|sample| sample.depth_bytes == 0);
        if flat {
            // Only the ends of an empty stretch are stored.
            if self.samples.len() >= 2 {
                self.samples.pop_back();
            }
        }
        if self.samples.len() >= self.limit {
            self.samples.pop_front();
        }
        if self.limit > 0 {
            self.samples.push_back(DepthSample { time: Nanos(time), depth_bytes });
        }
    }

    /// Restarts histogram and samples.
    pub fn reset(&mut self, now: Nanos) {
        self.advance(now);
        self.bins.fill(0);
        self.samples.clear();
        self.max_bytes = self.bytes;
        self.peak = self.bytes;
    }

    /// Non-empty bins, up to now.
    pub fn histogram(&self, now: Nanos) -> Vec<DepthTime> {
        let current = self.bin();
        let open = now.saturating_sub(self.since).0;
        let time = |(bin, &nanos): (usize, &u64)| DepthTime {
            depth_bytes: (bin as u64) << self.bin_shift,
            nanos: nanos + if bin == current { open } else { 0 },
        };
        self.bins.iter().enumerate().map(time).filter(|bin| bin.nanos > 0).collect()
    }

    /// Samples; the open interval comes last.
    pub fn samples(&self) -> Vec<DepthSample> {
        let open = DepthSample { time: Nanos(self.start), depth_bytes: self.peak };
        self.samples.iter().copied().chain(std::iter::once(open)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_weighed_by_depth() {
        let mut depth = Depth::new(64 * 1024, Nanos(100), 10);
        depth.set(64, Nanos(50));
        depth.set(65, Nanos(80));
        depth.set(0, Nanos(200));
        let bins: Vec<(u64, u64)> =
            depth.histogram(Nanos(1000)).iter().map(|bin| (bin.depth_bytes, bin.nanos)).collect();
        assert_eq!(bins, [(0, 850), (64, 30), (128, 120)]);
        assert_eq!(depth.max_bytes, 65);
    }

    #[test]
    fn samples_are_maxima_and_gaps_are_short() {
        let mut depth = Depth::new(64 * 1024, Nanos(100), 100);
        depth.set(10, Nanos(10));
        depth.set(5, Nanos(20));
        depth.set(7, Nanos(1050));
        depth.set(0, Nanos(1060));
        depth.set(9, Nanos(100_000));
        let samples: Vec<(u64, u64)> =
            depth.samples().iter().map(|sample| (sample.time.0, sample.depth_bytes)).collect();
        assert_eq!(samples, [(0, 10), (900, 5), (1000, 7), (99_900, 0), (100_000, 9)]);
    }

    #[test]
    fn the_ring_is_bounded() {
        let mut depth = Depth::new(64 * 1024, Nanos(100), 8);
        for step in 0..1000 {
            depth.set(1 + step % 3, Nanos(step * 100));
        }
        assert_eq!(depth.samples().len(), 9);
        let mut none = Depth::new(64 * 1024, Nanos(100), 0);
        none.set(1, Nanos(1000));
        assert_eq!(none.samples().len(), 1);
    }
}
