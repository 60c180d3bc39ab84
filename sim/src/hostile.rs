//! How those fare who share a rack with a hostile host.

use crate::experiment::{Arrivals, Experiment};
use crate::flow::Ends;
use crate::latency::Latency;
use p4rack_fabric::hostile::Fared;
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

impl OthersOutcome {
    /// How they fared beside a host that was hostile, this being the outcome beside the same one behaving.
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
