//! Results of hosts that share a rack with a hostile one.

use crate::experiment::{Arrivals, Experiment};
use crate::flow::Ends;
use crate::latency::Latency;
use p4rack_fabric::hostile::Fared;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Results of the other hosts, if some may be hostile.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct OthersOutcome {
    /// Payload that arrived from each sending host, Gb/s.
    pub goodput_gbps: BTreeMap<String, f64>,
    /// Frames that their machines were given and that are missing at the end.
    pub frames_lost: u64,
    /// Latency of their messages.
    pub latency_ns: Latency,
}

impl OthersOutcome {
    /// Compares with a run in which the host was hostile; this is the run in which it behaved.
    pub fn compare(&self, hostile: &OthersOutcome) -> Fared {
        let goodput = |(host, before): (&String, &f64)| {
            (*before, hostile.goodput_gbps.get(host).copied().unwrap_or(0.0))
        };
        let p99 = |latency: &Latency, unmeasured| match latency.count {
            0 => unmeasured,
            _ => latency.p99 as f64,
        };
        let p99s = (p99(&self.latency_ns, f64::NAN), p99(&hostile.latency_ns, f64::INFINITY));
        Fared::new(self.goodput_gbps.iter().map(goodput), hostile.frames_lost, [p99s])
    }
}

/// Which hosts may be hostile, if any may.
#[derive(Debug)]
pub(crate) struct Watched(Vec<bool>);

impl Watched {
    /// Something to watch, if hosts may be hostile.
    pub fn of(experiment: &Experiment) -> Option<Watched> {
        let watched: Vec<bool> =
            (0..experiment.spec.rack.hosts).map(|host| experiment.is_watched(host)).collect();
        watched.contains(&true).then_some(Watched(watched))
    }

    /// Whether an attack may affect a message's latency.
    pub fn concerns(&self, flow: &Ends, arrivals: Arrivals) -> bool {
        [flow.src, flow.dst]
            .iter()
            .take(if arrivals == Arrivals::Rpc { 2 } else { 1 })
            .any(|host| self.0[usize::from(*host)])
    }

    /// Whether no attack affects the load of `flow`.
    pub fn sends(&self, flow: &Ends) -> bool {
        !self.0[usize::from(flow.src)]
    }
}
