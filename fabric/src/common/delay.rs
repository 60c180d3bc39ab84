//! Statistics of a delay that is measured repeatedly: the minimum over a sliding window, smoothed mean and
//! deviation, and a histogram.

use p4rack_wire::{Histogram, Nanos};

const PARTS: usize = 8;

/// Tracks one delay in constant space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delay {
    part: Nanos,
    /// Minimum of each part of the window. `epoch` numbers the current part, `minima[epoch % PARTS]`.
    minima: [Nanos; PARTS],
    epoch: u64,
    last: Nanos,
    mean: Nanos,
    deviation: Nanos,
    max: Nanos,
    all: Histogram,
}

impl Delay {
    /// A tracker whose minimum covers `window`, in steps of an eighth.
    pub fn new(window: Nanos) -> Self {
        Delay {
            part: Nanos((window.0 / PARTS as u64).max(1)),
            minima: [Nanos::MAX; PARTS],
            epoch: 0,
            last: Nanos::ZERO,
            mean: Nanos::ZERO,
            deviation: Nanos::ZERO,
            max: Nanos::ZERO,
            all: Histogram::coarse(),
        }
    }

    /// Records a sample measured at `now`.
    pub fn record(&mut self, delay: Nanos, now: Nanos) {
        self.roll(now);
        let slot = &mut self.minima[(self.epoch % PARTS as u64) as usize];
        *slot = delay.min(*slot);
        if self.all.is_empty() {
            (self.mean, self.deviation) = (delay, Nanos(delay.0 / 2));
        } else {
            // Gains of 1/8 and 1/4, as RFC 6298 uses for round-trip times.
            let error = delay.0.abs_diff(self.mean.0);
            self.deviation = Nanos(blend(self.deviation.0, error, 4));
            self.mean = Nanos(blend(self.mean.0, delay.0, 8));
        }
        self.last = delay;
        self.max = self.max.max(delay);
        self.all.record(delay.0);
    }

    fn roll(&mut self, now: Nanos) {
        let epoch = now.0 / self.part.0;
        if epoch <= self.epoch {
            return;
        }
        for stale in 0..(epoch - self.epoch).min(PARTS as u64) {
            self.minima[((epoch - stale) % PARTS as u64) as usize] = Nanos::MAX;
        }
        self.epoch = epoch;
    }

    /// Minimum of the window; if the window is empty, the last sample; `None` before the first.
    pub fn min(&self) -> Option<Nanos> {
        let min = self.minima.into_iter().min().filter(|min| *min != Nanos::MAX);
        min.or((!self.all.is_empty()).then_some(self.last))
    }

    /// The last sample.
    pub fn last(&self) -> Nanos {
        self.last
    }

    /// Smoothed mean.
    pub fn mean(&self) -> Nanos {
        self.mean
    }

    /// Maximum over all samples.
    pub fn max(&self) -> Nanos {
        self.max
    }

    /// Number of samples.
    pub fn samples(&self) -> u64 {
        self.all.len()
    }

    /// Smoothed mean plus four deviations: a timeout that rarely fires without cause.
    pub fn bound(&self) -> Nanos {
        self.mean.saturating_add(Nanos(self.deviation.0.saturating_mul(4)))
    }

    /// The quantile of a share of all samples, to a sixteenth of itself.
    pub fn quantile(&self, share: f64) -> Nanos {
        Nanos(self.all.at(share)).min(self.max)
    }
}

fn blend(old: u64, sample: u64, weight: u64) -> u64 {
    if sample >= old { old + (sample - old) / weight } else { old - (old - sample) / weight }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn minimum_forgets_what_left_the_window() {
        let mut delay = Delay::new(Nanos(8_000));
        assert_eq!(delay.min(), None);
        delay.record(Nanos(50), Nanos(0));
        delay.record(Nanos(90), Nanos(4_000));
        assert_eq!(delay.min(), Some(Nanos(50)));
        delay.record(Nanos(80), Nanos(8_500));
        assert_eq!(delay.min(), Some(Nanos(80)), "the 50 is more than a window old");
        delay.record(Nanos(100), Nanos(1_000_000));
        assert_eq!(delay.min(), Some(Nanos(100)));
    }

    #[test]
    fn a_time_that_goes_backwards_changes_nothing_but_the_sample() {
        let mut delay = Delay::new(Nanos(800));
        delay.record(Nanos(10), Nanos(1_000));
        delay.record(Nanos(5), Nanos(10));
        assert_eq!(delay.min(), Some(Nanos(5)));
    }

    #[test]
    fn mean_and_deviation_are_those_of_rfc_6298() {
        let mut delay = Delay::new(Nanos(8_000));
        let mut record = |sample| {
            delay.record(Nanos(sample), Nanos::ZERO);
            (delay.mean().0, delay.bound().0)
        };
        assert_eq!(record(100), (100, 100 + 4 * 50));
        assert_eq!(record(180), (110, 110 + 4 * (50 + 30 / 4)));
        assert_eq!(record(30), (100, 100 + 4 * (57 + 23 / 4)));
        assert_eq!(record(100), (100, 100 + 4 * (62 - 62 / 4)));
        assert_eq!((delay.last(), delay.max(), delay.samples()), (Nanos(100), Nanos(180), 4));
    }

    #[test]
    fn the_lowest_quantile_is_a_sample() {
        let mut delay = Delay::new(Nanos(8_000));
        delay.record(Nanos(1_000), Nanos::ZERO);
        delay.record(Nanos(5_000), Nanos::ZERO);
        assert!((1_000..1_125).contains(&delay.quantile(0.0).0), "{}", delay.quantile(0.0));
    }

    #[test]
    fn quantiles_of_a_ramp() {
        let mut delay = Delay::new(Nanos::from_secs(1));
        for n in 1..=1000u64 {
            delay.record(Nanos(n * 1000), Nanos(n));
        }
        for (share, exact) in [(0.5, 500_000u64), (0.99, 990_000), (0.999, 999_000), (1.0, 1_000_000)] {
            let got = delay.quantile(share).0;
            assert!(got >= exact && got <= exact + exact / 16, "{share}: {got} for {exact}");
        }
    }

    proptest! {
        /// As a list of all samples has it.
        #[test]
        fn the_minimum_is_that_of_the_last_parts(
            first in 0u64..10_000, samples in proptest::collection::vec((0u64..900, 1u64..1_000), 1..60),
        ) {
            let (mut delay, mut all, mut now) = (Delay::new(Nanos(800)), Vec::new(), first);
            for (after, sample) in samples {
                now += after;
                delay.record(Nanos(sample), Nanos(now));
                all.push((now / 100, sample));
                let inside = all.iter().filter(|(part, _)| part + PARTS as u64 > now / 100);
                prop_assert_eq!(delay.min(), inside.map(|(_, sample)| Nanos(*sample)).min());
            }
        }

        #[test]
        fn no_sample_overflows(samples in proptest::collection::vec((any::<u64>(), any::<u64>()), 0..50)) {
            let mut delay = Delay::new(Nanos(1_000));
            for (value, now) in samples {
                delay.record(Nanos(value), Nanos(now));
                let _ = (delay.bound(), delay.quantile(0.999), delay.min());
            }
        }
    }
}
