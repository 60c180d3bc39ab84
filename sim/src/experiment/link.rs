//! `[link]`: delays and faults of links, in experiments of every kind.

use super::Check;
use crate::link::Faults;
use p4rack_wire::Nanos;
use serde::{Deserialize, Serialize};

/// Delay of a link, one way, without serialisation. Together with the pipeline's delay, RSV→GRT takes 1 µs at the
/// minimum, 1.06 µs at the median and 14 µs at the maximum, as in the paper's §5; FEC varies by 1–2 µs (§2).
const WIRE_NS: [(f64, f64); 6] =
    [(0.0, 320.0), (0.5, 349.0), (0.99, 400.0), (0.999, 900.0), (0.9999, 1_500.0), (1.0, 6_820.0)];
/// `[link]`
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct LinkSpec {
    /// Delay from one end to the other, without serialisation, as quantiles. Without it, the delay that the kind of experiment
    /// has: quantiles for frames, a constant otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_ns: Option<Vec<(f64, f64)>>,
    /// Probability that a frame is lost.
    pub loss: f64,
    /// Probability that a frame arrives with a wrong FCS.
    pub corruption: f64,
    /// Probability that a frame arrives twice.
    pub duplication: f64,
    /// Probability that a frame is held back for `reorder_ns`.
    pub reordering: f64,
    /// How long a reordered frame is held back.
    pub reorder_ns: u64,
    /// Hosts whose links have these faults; empty: all.
    pub hosts: Vec<String>,
    /// When these links are down: pairs of start and end in microseconds.
    pub down_us: Vec<(u64, u64)>,
}

impl Default for LinkSpec {
    fn default() -> LinkSpec {
        LinkSpec {
            delay_ns: None,
            loss: 0.0,
            corruption: 0.0,
            duplication: 0.0,
            reordering: 0.0,
            reorder_ns: 2_000,
            hosts: Vec::new(),
            down_us: Vec::new(),
        }
    }
}

impl LinkSpec {
    /// Delay of a link between a switch and an endpoint's host.
    pub(crate) fn delay_ns(&self) -> &[(f64, f64)] {
        self.delay_ns.as_deref().unwrap_or(&WIRE_NS)
    }

    /// Whether links have a constant delay and no faults.
    pub(crate) fn is_plain(&self) -> bool {
        self.delay_ns.is_none() && !self.has_faults()
    }

    /// Whether frames may be lost, doubled or held back.
    pub(crate) fn has_faults(&self) -> bool {
        self.faults(|_| true) != Faults::default()
    }

    /// Faults of the link of the host with this name.
    pub(crate) fn faults(&self, is_name: impl Fn(&str) -> bool) -> Faults {
        if !self.hosts.is_empty() && !self.hosts.iter().any(|name| is_name(name)) {
            return Faults::default();
        }
        let down = |(from, to): &(u64, u64)| (Nanos::from_micros(*from), Nanos::from_micros(*to));
        Faults {
            loss: self.loss,
            corruption: self.corruption,
            duplication: self.duplication,
            reordering: self.reordering,
            reorder_ns: if self.reordering == 0.0 { 0 } else { self.reorder_ns },
            down: self.down_us.iter().map(down).collect(),
        }
    }
}

impl Check<'_> {
    /// Checks `[link]`: probabilities are at most `most`, and `host` returns the problem of a host's name.
    pub(crate) fn link(&mut self, link: &LinkSpec, most: f64, host: impl Fn(&str) -> Option<String>) {
        if let Some(points) = &link.delay_ns {
            self.distribution("link", "delay_ns", points);
        }
        for (key, value) in [
            ("loss", link.loss),
            ("corruption", link.corruption),
            ("duplication", link.duplication),
            ("reordering", link.reordering),
        ] {
            if !(0.0..=most).contains(&value) {
                self.problem("link", 0, key, format!("{value} is no probability; write 0 to {most}"));
            }
        }
        for problem in link.hosts.iter().filter_map(|name| host(name)) {
            self.problem("link", 0, "hosts", problem);
        }
        for (from, to) in &link.down_us {
            if from >= to {
                self.problem("link", 0, "down_us", format!("[{from}, {to}] ends before it begins"));
            }
        }
    }
}
