//! Statistics over measurements.

use hdrhistogram::Histogram;

/// Smallest value such that values up to it have share `q` of the total weight. With time as weight: the
/// depth that a queue did not exceed for that share of the time. 0 without any weight.
pub fn weighted_quantile(values: &[(u64, u64)], q: f64) -> u64 {
    let mut sorted: Vec<(u64, u64)> = values.iter().copied().filter(|&(_, weight)| weight > 0).collect();
    sorted.sort_unstable();
    let total: u128 = sorted.iter().map(|&(_, weight)| u128::from(weight)).sum();
    let goal = (total as f64 * q.clamp(0.0, 1.0)).ceil() as u128;
    let mut seen = 0u128;
    for &(value, weight) in &sorted {
        seen += u128::from(weight);
        if seen >= goal {
            return value;
        }
    }
    sorted.last().map_or(0, |&(value, _)| value)
}

/// Means over `width` adjacent values, one per full window.
pub fn moving_mean(values: &[f64], width: usize) -> Vec<f64> {
    values.windows(width.max(1)).map(|window| window.iter().sum::<f64>() / window.len() as f64).collect()
}

/// At most `limit` points of a time series. Each keeps the maximum of its interval, so that no peak is lost.
pub fn thin_by_max(points: &[(u64, u64)], limit: usize) -> Vec<(u64, u64)> {
    let stretch = points.len().div_ceil(limit.max(1)).max(1);
    points.chunks(stretch).filter_map(|chunk| chunk.iter().copied().max_by_key(|&(_, value)| value)).collect()
}

/// An empty histogram of latencies in nanoseconds, to three digits.
pub fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 3_600_000_000_000, 3).expect("the bounds are constants and fit")
}

/// Points of a latency curve.
const CDF_POINTS: usize = 400;

/// The distribution of latencies in nanoseconds: microseconds, share at or below. Thinned in the middle and complete in the tail.
pub fn cdf(latencies: &Histogram<u64>) -> Vec<(f64, f64)> {
    let total = latencies.len() as f64;
    let mut seen = 0;
    let mut points: Vec<(f64, f64)> = Vec::new();
    for step in latencies.iter_recorded() {
        seen += step.count_since_last_iteration();
        let share = seen as f64 / total;
        let far = points.last().is_none_or(|&(_, last)| share - last >= 1.0 / CDF_POINTS as f64);
        if far || (share > 0.99 && points.len() < 2 * CDF_POINTS) || seen == latencies.len() {
            points.push((step.value_iterated_to() as f64 / 1e3, share));
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_weighted_quantile_follows_the_weight_not_the_count() {
        let depth_by_time = [(0, 990), (10, 9), (100, 1)];
        assert_eq!(weighted_quantile(&depth_by_time, 0.5), 0);
        assert_eq!(weighted_quantile(&depth_by_time, 0.99), 0);
        assert_eq!(weighted_quantile(&depth_by_time, 0.9905), 10);
        assert_eq!(weighted_quantile(&depth_by_time, 0.999), 10);
        assert_eq!(weighted_quantile(&depth_by_time, 0.9995), 100);
        assert_eq!(weighted_quantile(&depth_by_time, 1.0), 100);
    }

    #[test]
    fn order_does_not_matter_and_nothing_is_zero() {
        assert_eq!(weighted_quantile(&[(9, 1), (1, 1), (5, 1)], 0.5), 5);
        assert_eq!(weighted_quantile(&[], 0.5), 0);
        assert_eq!(weighted_quantile(&[(7, 0)], 0.5), 0);
        assert_eq!(weighted_quantile(&[(3, u64::MAX), (4, u64::MAX)], 0.4), 3);
    }

    #[test]
    fn moving_means_need_a_full_window() {
        assert_eq!(moving_mean(&[1.0, 3.0, 5.0], 2), [2.0, 4.0]);
        assert!(moving_mean(&[1.0], 2).is_empty());
    }

    #[test]
    fn a_distribution_is_thin_in_the_middle_and_ends_at_the_last() {
        let mut latencies = histogram();
        (1..=10_000).for_each(|us| latencies.saturating_record(us * 1_000));
        let points = cdf(&latencies);
        assert!(points.len() <= 2 * CDF_POINTS + 1, "{}", points.len());
        assert!(points.windows(2).all(|pair| pair[0].0 <= pair[1].0 && pair[0].1 < pair[1].1));
        let last = points.last().unwrap();
        assert!(last.1 == 1.0 && (last.0 - 10_000.0).abs() < 10.0, "{last:?}");
        assert!(cdf(&histogram()).is_empty());
    }

    #[test]
    fn thinning_keeps_the_peaks() {
        let points: Vec<(u64, u64)> = (0..1_000).map(|t| (t, if t == 501 { 99 } else { 1 })).collect();
        let thin = thin_by_max(&points, 100);
        assert!(thin.len() <= 100);
        assert!(thin.contains(&(501, 99)));
        assert!(thin.windows(2).all(|w| w[0].0 < w[1].0));
        assert!(thin_by_max(&[], 10).is_empty());
    }
}
