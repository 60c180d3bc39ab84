//! Statistics over measurements.

use p4rack_wire::Histogram;

/// Means over `width` adjacent values, one per full window.
pub fn moving_mean(values: &[f64], width: usize) -> Vec<f64> {
    values.windows(width.max(1)).map(|window| window.iter().sum::<f64>() / window.len() as f64).collect()
}

/// At most `limit` points of a time series. Each keeps the maximum of its interval, so that no peak is lost.
pub fn thin_by_max(points: &[(u64, u64)], limit: usize) -> Vec<(u64, u64)> {
    let stretch = points.len().div_ceil(limit.max(1)).max(1);
    points.chunks(stretch).filter_map(|chunk| chunk.iter().copied().max_by_key(|&(_, value)| value)).collect()
}

/// Points of a latency curve.
const CDF_POINTS: usize = 400;

/// The distribution of latencies in nanoseconds: microseconds, share at or below. Thinned in the middle and complete in the tail.
pub fn cdf(latencies: &Histogram) -> Vec<(f64, f64)> {
    let total = latencies.len() as f64;
    let mut seen = 0;
    let mut points: Vec<(f64, f64)> = Vec::new();
    for (value_ns, count) in latencies.counts() {
        seen += count;
        let share = seen as f64 / total;
        let far = points.last().is_none_or(|&(_, last)| share - last >= 1.0 / CDF_POINTS as f64);
        if far || (share > 0.99 && points.len() < 2 * CDF_POINTS) || seen == latencies.len() {
            points.push((value_ns as f64 / 1e3, share));
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moving_means_need_a_full_window() {
        assert_eq!(moving_mean(&[1.0, 3.0, 5.0], 2), [2.0, 4.0]);
        assert!(moving_mean(&[1.0], 2).is_empty());
    }

    #[test]
    fn a_distribution_is_thin_in_the_middle_and_ends_at_the_last() {
        let mut latencies = Histogram::new();
        (1..=10_000).for_each(|us| latencies.record(us * 1_000));
        let points = cdf(&latencies);
        assert!(points.len() <= 2 * CDF_POINTS + 1, "{}", points.len());
        assert!(points.windows(2).all(|pair| pair[0].0 <= pair[1].0 && pair[0].1 < pair[1].1));
        let last = points.last().unwrap();
        assert!(last.1 == 1.0 && (last.0 - 10_000.0).abs() < 10.0, "{last:?}");
        assert!(cdf(&Histogram::new()).is_empty());
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
