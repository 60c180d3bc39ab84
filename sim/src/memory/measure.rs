//! Figures of a run: latencies, ratios to the time without load, and how sure they are.

use p4rack_wire::quantiles;
use serde::{Deserialize, Serialize};

/// Batches for a confidence interval.
const BATCHES: usize = 20;
/// Student's t for 95 % and one less than this many batches.
const STUDENT_T: f64 = 2.093;

/// A mean and half the width of its 95 % confidence interval, from the means of twenty consecutive batches.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq)]
pub struct Mean {
    /// The mean.
    pub mean: f64,
    /// ± this; `None` if there are fewer than ten samples a batch.
    pub within: Option<f64>,
}

impl Mean {
    /// Of samples in order of time.
    pub fn of(samples: &[f64]) -> Mean {
        let average = |of: &[f64]| of.iter().sum::<f64>() / of.len().max(1) as f64;
        let mean = average(samples);
        let batch = samples.len() / BATCHES;
        if batch < 10 {
            return Mean { mean, within: None };
        }
        let means: Vec<f64> = samples.chunks_exact(batch).take(BATCHES).map(average).collect();
        let centre = average(&means);
        let variance = means.iter().map(|one| (one - centre).powi(2)).sum::<f64>() / (BATCHES - 1) as f64;
        Mean { mean, within: Some(STUDENT_T * (variance / BATCHES as f64).sqrt()) }
    }
}

/// Quantiles of times, in nanoseconds.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct TimesNs {
    /// Mean and its confidence interval.
    pub mean: Mean,
    /// Median.
    pub p50: f64,
    /// 99 %.
    pub p99: f64,
    /// 99.9 %.
    pub p999: f64,
    /// Largest.
    pub max: f64,
}

impl TimesNs {
    /// Of times in picoseconds, in order of time.
    pub fn of(samples_ps: &[u64]) -> TimesNs {
        let ns: Vec<f64> = samples_ps.iter().map(|ps| *ps as f64 / 1e3).collect();
        let mean = Mean::of(&ns);
        let mut sorted = ns;
        sorted.sort_unstable_by(f64::total_cmp);
        // A list and not a histogram: the figures are stored to the picosecond.
        let at = |share| quantiles::of_sorted(&sorted, share).unwrap_or(0.0);
        TimesNs { mean, p50: at(0.5), p99: at(0.99), p999: at(0.999), max: at(1.0) }
    }
}

/// Whether samples grow along the run: the last third's mean is above the first's by a tenth, and by more than chance.
pub fn grows(samples: &[f64]) -> bool {
    let third = samples.len() / 3;
    if third < 10 * BATCHES {
        return false;
    }
    let (first, last) = (Mean::of(&samples[..third]), Mean::of(&samples[samples.len() - third..]));
    let apart = first.within.unwrap_or(0.0) + last.within.unwrap_or(0.0);
    last.mean > first.mean * 1.1 && last.mean - first.mean > apart
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn the_mean_lies_within_its_interval_nineteen_times_of_twenty() {
        let mut random = Random::new(5);
        let within = (0..400).filter(|_| {
            let samples: Vec<f64> = (0..2_000).map(|_| random.exponential(7.0)).collect();
            let mean = Mean::of(&samples);
            (mean.mean - 7.0).abs() <= mean.within.unwrap()
        });
        let share = within.count() as f64 / 400.0;
        assert!((0.92..0.98).contains(&share), "{share}");
        assert_eq!(Mean::of(&[1.0, 3.0]), Mean { mean: 2.0, within: None });
    }

    #[test]
    fn what_grows_is_told_from_what_varies() {
        let mut random = Random::new(6);
        let steady: Vec<f64> = (0..9_000).map(|_| random.exponential(7.0)).collect();
        let growing: Vec<f64> =
            steady.iter().enumerate().map(|(nth, one)| one + nth as f64 / 3_000.0).collect();
        assert_eq!((grows(&steady), grows(&growing)), (false, true));
    }

    #[test]
    fn quantiles_are_of_the_samples() {
        let samples: Vec<u64> = (1..=1_000).map(|ns| ns * 1_000).collect();
        let times = TimesNs::of(&samples);
        assert_eq!((times.mean.mean, times.p50, times.p99, times.max), (500.5, 500.0, 990.0, 1_000.0));
    }
}
