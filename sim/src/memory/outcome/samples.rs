//! Messages with their times, loaded and alone.

use super::OperationOutcome;
use crate::memory::measure::{Mean, TimesNs};
use crate::memory::message::Message;
use p4rack_wire::quantiles;

/// A measured message.
pub(super) struct Sample {
    pub message: Message,
    /// From its creation to its completion.
    pub took_ps: u64,
    /// The same on an idle rack.
    pub alone_ps: u64,
}

impl Sample {
    /// How many times as long as alone it took.
    pub fn slowdown(&self) -> f64 {
        self.took_ps as f64 / self.alone_ps.max(1) as f64
    }
}

/// Figures of some of the messages.
pub(super) fn part(samples: &[&Sample]) -> OperationOutcome {
    let of = |value: fn(&Sample) -> u64| samples.iter().map(|sample| value(sample)).collect::<Vec<u64>>();
    OperationOutcome {
        measured: samples.len(),
        slowdown: Mean::of(&samples.iter().map(|sample| sample.slowdown()).collect::<Vec<f64>>()),
        latency_ns: TimesNs::of(&of(|sample| sample.took_ps)),
        added_ns: TimesNs::of(&of(|sample| sample.took_ps.saturating_sub(sample.alone_ps))),
    }
}

/// The 99th percentile; 0 of nothing.
pub(super) fn p99(mut samples: Vec<f64>) -> f64 {
    samples.sort_unstable_by(f64::total_cmp);
    quantiles::of_sorted(&samples, 0.99).unwrap_or(0.0)
}
