//! Quantiles of measurements, by one rule: the quantile of a share is the smallest value that at least this share of
//! all values do not exceed (nearest rank). Nothing is interpolated, so every quantile is a value that occurred.
//!
//! [`Histogram`] counts any number of values in constant space and is exact to its digits. [`of_sorted`] and [`weighted`] are
//! exact; they are for short lists, for values that are not times, and for results that are compared bit by bit.

use hdrhistogram::Histogram as Hdr;

/// Largest value of [`Histogram::new`]: an hour in nanoseconds.
const MAX_NS: u64 = 3_600_000_000_000;

/// Number of values that make up `share` of `count`, at least one.
fn rank(count: f64, share: f64) -> u128 {
    ((count * share.clamp(0.0, 1.0)).ceil() as u128).max(1)
}

/// The quantile of a list in ascending order; `None` if it is empty.
pub fn of_sorted<T: Copy>(sorted: &[T], share: f64) -> Option<T> {
    let rank = rank(sorted.len() as f64, share).min(sorted.len() as u128) as usize;
    sorted.get(rank.checked_sub(1)?).copied()
}

/// The quantile of values with weights, in any order; `None` without any weight. With time as weight: the depth that a queue
/// did not exceed for that share of the time.
pub fn weighted(values: impl IntoIterator<Item = (u64, u64)>, share: f64) -> Option<u64> {
    let mut sorted: Vec<(u64, u64)> = values.into_iter().filter(|&(_, weight)| weight > 0).collect();
    sorted.sort_unstable();
    let total: u128 = sorted.iter().map(|&(_, weight)| u128::from(weight)).sum();
    let rank = rank(total as f64, share);
    let mut seen = 0u128;
    let reached = sorted.iter().find(|&&(_, weight)| {
        seen += u128::from(weight);
        seen >= rank
    });
    // Rounding of a large total may exceed it a little.
    reached.or(sorted.last()).map(|&(value, _)| value)
}

/// Counts values in constant space.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram(Hdr<u64>);

impl Eq for Histogram {}

impl Histogram {
    /// For times in nanoseconds up to an hour, to three digits. Longer ones count as an hour.
    pub fn new() -> Histogram {
        Histogram(Hdr::new_with_bounds(1, MAX_NS, 3).expect("the bounds are constants and fit"))
    }

    /// For any value, to a sixteenth of itself. It takes 8 KB, for histograms per host.
    pub fn coarse() -> Histogram {
        Histogram(Hdr::new_with_bounds(1, u64::MAX, 1).expect("the bounds are constants and fit"))
    }

    /// Counts a value.
    pub fn record(&mut self, value: u64) {
        self.0.saturating_record(value);
    }

    /// Counts a value `count` times.
    pub fn record_n(&mut self, value: u64, count: u64) {
        self.0.saturating_record_n(value, count);
    }

    /// Adds the values of another histogram that was made the same way.
    pub fn add(&mut self, other: &Histogram) {
        self.0.add(&other.0).expect("histograms with the same bounds");
    }

    /// Forgets all values.
    pub fn reset(&mut self) {
        self.0.reset();
    }

    /// Number of values.
    pub fn len(&self) -> u64 {
        self.0.len()
    }

    /// Whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Smallest value, 0 if there is none.
    pub fn min(&self) -> u64 {
        self.0.min()
    }

    /// Mean value, 0 if there is none.
    pub fn mean(&self) -> f64 {
        self.0.mean()
    }

    /// Largest value, 0 if there is none.
    pub fn max(&self) -> u64 {
        self.0.max()
    }

    /// The quantile of a share, 0 if there is no value.
    pub fn at(&self, share: f64) -> u64 {
        // For a share of 0, the crate goes below the smallest value.
        self.0.value_at_quantile(share.max(f64::MIN_POSITIVE))
    }

    /// The values that occurred, ascending, with their counts.
    pub fn counts(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.0.iter_recorded().map(|step| (step.value_iterated_to(), step.count_since_last_iteration()))
    }
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_quantile_is_a_value_that_occurred() {
        let list = [10, 20, 30, 40];
        let at = [0.0, 0.25, 0.26, 0.5, 0.75, 0.99, 1.0, 7.0].map(|share| of_sorted(&list, share));
        assert_eq!(at, [10, 10, 20, 20, 30, 40, 40, 40].map(Some));
        assert_eq!(of_sorted::<u64>(&[], 0.5), None);
        let ramp: Vec<u64> = (1..=1_000).collect();
        assert_eq!([0.5, 0.99, 0.999].map(|share| of_sorted(&ramp, share)), [500, 990, 999].map(Some));
    }

    #[test]
    fn a_weighted_quantile_follows_the_weight_not_the_count() {
        let depth_by_time = [(0, 990), (10, 9), (100, 1)];
        let at = [0.5, 0.99, 0.9905, 0.999, 0.9995, 1.0].map(|share| weighted(depth_by_time, share));
        assert_eq!(at, [0, 0, 10, 10, 100, 100].map(Some));
    }

    #[test]
    fn weights_may_be_unsorted_zero_or_huge() {
        assert_eq!(weighted([(9, 1), (1, 1), (5, 1)], 0.5), Some(5));
        assert_eq!(weighted([], 0.5), None);
        assert_eq!(weighted([(7, 0)], 0.5), None);
        assert_eq!(weighted([(3, u64::MAX), (4, u64::MAX)], 0.4), Some(3));
        assert_eq!(weighted([(3, u64::MAX), (4, u64::MAX)], 1.0), Some(4));
    }

    #[test]
    fn no_quantile_is_below_the_smallest_value() {
        for mut all in [Histogram::new(), Histogram::coarse()] {
            all.record(100_001);
            assert!((100_001..107_000).contains(&all.at(0.0)), "{}", all.at(0.0));
        }
    }

    #[test]
    fn a_value_beyond_the_bounds_counts_as_the_largest() {
        let mut all = Histogram::new();
        all.record(u64::MAX);
        assert!(all.len() == 1 && all.at(0.5).abs_diff(MAX_NS) < MAX_NS / 1_000, "{}", all.at(0.5));
    }

    proptest! {
        /// The same rule, to the histogram's precision.
        #[test]
        fn lists_weights_and_histograms_agree(
            mut values in proptest::collection::vec(1u64..1_000_000_000, 1..200), share in 0f64..=1.0,
        ) {
            let (mut fine, mut coarse) = (Histogram::new(), Histogram::coarse());
            for value in &values {
                fine.record(*value);
                coarse.record(*value);
            }
            values.sort_unstable();
            let exact = of_sorted(&values, share).unwrap();
            prop_assert_eq!(weighted(values.iter().map(|value| (*value, 1)), share), Some(exact));
            prop_assert!(fine.at(share) >= exact && fine.at(share) - exact <= exact / 1_000);
            prop_assert!(coarse.at(share) >= exact && coarse.at(share) - exact <= exact / 16);
            prop_assert_eq!(fine.counts().map(|(_, count)| count).sum::<u64>(), values.len() as u64);
        }
    }
}
