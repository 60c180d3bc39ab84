//! Summaries of latencies.

use p4rack_wire::Histogram;
use serde::{Deserialize, Serialize};

/// Quantiles of a latency, nanoseconds; zeros where there is no sample.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Latency {
    /// Samples.
    pub count: u64,
    /// Smallest.
    pub min: u64,
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: u64,
    /// 90 %.
    pub p90: u64,
    /// 99 %.
    pub p99: u64,
    /// 99.9 %.
    pub p999: u64,
    /// Largest.
    pub max: u64,
    /// Points of the cumulative distribution, for plots: value and share.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cdf: Vec<(u64, f64)>,
}

impl Latency {
    pub(crate) fn of(histogram: &Histogram, plot: bool) -> Latency {
        if histogram.is_empty() {
            return Latency::default();
        }
        let q = |share| histogram.at(share);
        const POINTS: [f64; 19] = [
            0.0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999,
            0.9999, 1.0,
        ];
        Latency {
            count: histogram.len(),
            min: histogram.min(),
            mean: histogram.mean(),
            p50: q(0.5),
            p90: q(0.9),
            p99: q(0.99),
            p999: q(0.999),
            max: histogram.max(),
            cdf: if plot { POINTS.iter().map(|p| (q(*p), *p)).collect() } else { Vec::new() },
        }
    }
}
