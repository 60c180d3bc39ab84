//! How those fare who share a rack with a hostile host.

use crate::experiment::{Arrivals, Experiment};
use crate::flow::Ends;
use crate::latency::Latency;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The others' results, where hosts may be hostile.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct OthersOutcome {
    /// Payload of each sending host that arrived, Gb/s.
    pub goodput_gbps: BTreeMap<String, f64>,
    /// Frames that their machines were given and that are nowhere at the end.
    pub frames_lost: u64,
    /// Latency of their messages.
    pub latency_ns: Latency,
}

/// Which hosts may be hostile, where some may.
#[derive(Debug)]
pub(crate) struct Watched(Vec<bool>);

impl Watched {
    /// Where there are hosts to be watched.
    pub fn of(experiment: &Experiment) -> Option<Watched> {
        let watched: Vec<bool> =
            (0..experiment.spec.rack.hosts).map(|host| experiment.is_watched(host)).collect();
        watched.contains(&true).then_some(Watched(watched))
    }

    /// Whether an attack may concern a message's latency.
    pub fn concerns(&self, flow: &Ends, arrivals: Arrivals) -> bool {
        [flow.src, flow.dst]
            .iter()
            .take(if arrivals == Arrivals::Rpc { 2 } else { 1 })
            .any(|host| self.0[usize::from(*host)])
    }

    /// Whether nobody's attack concerns what `flow` sends.
    pub fn sends(&self, flow: &Ends) -> bool {
        !self.0[usize::from(flow.src)]
    }
}

/// How the others fared beside a hostile host, compared with the same host behaving.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fared {
    /// Of the goodput of each of them, the least share that was left.
    pub goodput_share: f64,
    /// Frames of theirs that were lost.
    pub frames_lost: u64,
    /// Times the 99th percentile of their latency.
    pub p99_times: f64,
}

impl Fared {
    /// What is promised at least: the others keep this share of their goodput …
    pub const GOODPUT_SHARE_MIN: f64 = 0.9;
    /// … and their 99th percentile is no more than so many times as long. No frame of theirs is lost.
    pub const P99_TIMES_MAX: f64 = 2.0;

    /// The others beside a host that was hostile, and beside the same one honest.
    pub fn new(hostile: &OthersOutcome, honest: &OthersOutcome) -> Fared {
        let share = |(host, before): (&String, &f64)| {
            let left = hostile.goodput_gbps.get(host).copied().unwrap_or(0.0);
            if *before > 0.0 { left / before } else { 1.0 }
        };
        // What was not measured keeps no promise.
        let shares = honest.goodput_gbps.iter().map(share);
        let p99_times = match (hostile.latency_ns.count, honest.latency_ns.count) {
            (_, 0) => f64::NAN,
            (0, _) => f64::INFINITY,
            _ => hostile.latency_ns.p99 as f64 / honest.latency_ns.p99.max(1) as f64,
        };
        Fared {
            goodput_share: shares.reduce(f64::min).unwrap_or(f64::NAN),
            frames_lost: hostile.frames_lost,
            p99_times,
        }
    }

    /// Promises that were broken, in words.
    pub fn broken(&self) -> Vec<String> {
        let Fared { goodput_share, frames_lost, p99_times } = *self;
        let found = [
            (
                goodput_share.is_nan() || goodput_share < Fared::GOODPUT_SHARE_MIN,
                format!("goodput {:.0} % of its fair share", 100.0 * goodput_share),
            ),
            (frames_lost > 0, format!("{frames_lost} frames lost")),
            (
                p99_times.is_nan() || p99_times > Fared::P99_TIMES_MAX,
                format!("p99 {p99_times:.1} times as long"),
            ),
        ];
        found.into_iter().filter(|(wrong, _)| *wrong).map(|(_, text)| text).collect()
    }
}
