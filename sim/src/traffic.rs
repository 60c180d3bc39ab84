//! Workloads: who sends what when, and what became of it.

use crate::experiment::{Arrivals, Experiment, LoadIn, Pattern, TrafficSpec};
use crate::message::{FlowId, MTU};
use crate::random::{Quantiles, Random};
use hdrhistogram::Histogram;
use p4rack_wire::Nanos;
use p4rack_wire::ethernet::overhead;

/// Parts that messages are divided into by size, where sizes differ.
pub(crate) const DECILES: usize = 10;

/// One `[[traffic]]` at work.
#[derive(Debug)]
pub(crate) struct Traffic {
    pub spec: TrafficSpec,
    pub sizes: Quantiles,
    /// Its flows, by pair and thread; with `rpc` the requests' flows and, in the same order, the answers'.
    pub flows: std::ops::Range<FlowId>,
    /// Sender, receiver.
    pub pairs: Vec<(usize, usize)>,
    /// With `poisson`: mean time between two messages of a pair.
    pub gap_ns: f64,
    pub start: Nanos,
    pub stop: Nanos,
    /// With `rounds`: messages of this round under way, and when it began.
    pub round_open: usize,
    pub round_began: Nanos,
    /// Sizes that part the deciles.
    limits: Vec<u64>,
    pub stats: TrafficStats,
}

/// What became of a traffic's messages, from the end of the warm-up on.
#[derive(Debug)]
pub(crate) struct TrafficStats {
    /// Messages made.
    pub made: u64,
    /// Messages that arrived whole.
    pub done: u64,
    /// Messages of which a frame was lost.
    pub lost: u64,
    /// Messages refused because too many waited in their flow.
    pub refused: u64,
    /// Bytes that arrived within the measured time.
    pub bytes: u64,
    /// Latency; with `rpc` of request and answer together, with `rounds` of a round.
    pub latency: Histogram<u64>,
    /// By size, where sizes differ.
    pub deciles: Vec<Histogram<u64>>,
}

pub(crate) fn histogram() -> Histogram<u64> {
    // Up to a minute, to three digits. The bounds are constants that the type accepts.
    Histogram::new_with_bounds(1, 60_000_000_000, 3).expect("valid bounds")
}

impl Traffic {
    /// The `nth` traffic, whose flows are numbered from `first`.
    pub fn new(experiment: &Experiment, nth: usize, first: FlowId) -> Result<Traffic, String> {
        let spec = experiment.spec.traffic[nth].clone();
        let mut random = Random::stream(experiment.spec.seed, 0x7261_0000 + nth as u64);
        let pairs = pairs(experiment, &spec, &mut random)?;
        let sizes = spec.size.quantiles()?;
        let directions = if spec.arrivals == Arrivals::Rpc { 2 } else { 1 };
        let count = (pairs.len() * spec.flows * directions) as FlowId;
        let gap_ns = match spec.arrivals {
            Arrivals::Poisson => gap_ns(experiment, &spec, &pairs, &sizes)?,
            _ => 0.0,
        };
        let end = Nanos::from_micros(experiment.spec.duration_us);
        let varied = sizes.at(0.0) != sizes.at(1.0);
        let limits = match varied {
            true => (1..DECILES).map(|n| sizes.at(n as f64 / DECILES as f64).round() as u64).collect(),
            false => Vec::new(),
        };
        let stats = TrafficStats {
            made: 0,
            done: 0,
            lost: 0,
            refused: 0,
            bytes: 0,
            latency: histogram(),
            deciles: if varied { (0..DECILES).map(|_| histogram()).collect() } else { Vec::new() },
        };
        Ok(Traffic {
            start: Nanos::from_micros(spec.start_us),
            stop: spec.stop_us.map_or(end, |stop| Nanos::from_micros(stop).min(end)),
            flows: first..first + count,
            spec,
            sizes,
            pairs,
            gap_ns,
            round_open: 0,
            round_began: Nanos::ZERO,
            limits,
            stats,
        })
    }

    /// Sender and receiver of a flow.
    pub fn ends(&self, flow: FlowId) -> (usize, usize) {
        let nth = (flow - self.flows.start) as usize;
        let forward = self.pairs.len() * self.spec.flows;
        let (a, b) = self.pairs[nth % forward / self.spec.flows];
        if nth >= forward { (b, a) } else { (a, b) }
    }

    /// The answers' flow of a requests' flow.
    pub fn back(&self, flow: FlowId) -> FlowId {
        flow + (self.pairs.len() * self.spec.flows) as FlowId
    }

    /// Whether a flow carries answers.
    pub fn is_back(&self, flow: FlowId) -> bool {
        self.spec.arrivals == Arrivals::Rpc
            && flow - self.flows.start >= (self.flows.end - self.flows.start) / 2
    }

    /// Notes a latency.
    pub fn record(&mut self, size: u32, latency: Nanos) {
        self.stats.done += 1;
        self.stats.latency.saturating_record(latency.0.max(1));
        if !self.stats.deciles.is_empty() {
            let decile = self.limits.partition_point(|limit| *limit < u64::from(size));
            self.stats.deciles[decile].saturating_record(latency.0.max(1));
        }
    }

    /// Sizes that part the deciles.
    pub fn limits(&self) -> &[u64] {
        &self.limits
    }
}

fn hosts_named(experiment: &Experiment, names: &Option<Vec<String>>) -> Option<Vec<usize>> {
    names.as_ref().map(|names| names.iter().filter_map(|name| experiment.host(name)).collect())
}

fn pairs(
    experiment: &Experiment,
    spec: &TrafficSpec,
    random: &mut Random,
) -> Result<Vec<(usize, usize)>, String> {
    let hosts = experiment.spec.rack.hosts;
    let all = || (0..hosts).collect::<Vec<usize>>();
    let senders = hosts_named(experiment, &spec.senders);
    let receivers = hosts_named(experiment, &spec.receivers);
    let but = |gone: &[usize]| all().into_iter().filter(|host| !gone.contains(host)).collect::<Vec<_>>();
    let (senders, receivers) = match spec.pattern {
        Pattern::Incast => {
            let receivers = receivers.unwrap_or(vec![0]);
            (senders.unwrap_or(but(&receivers)), receivers)
        }
        Pattern::Outcast => {
            let senders = senders.unwrap_or(vec![0]);
            let receivers = receivers.unwrap_or(but(&senders));
            (senders, receivers)
        }
        Pattern::Shuffle => {
            let senders = senders.unwrap_or((0..hosts / 2).collect());
            let receivers = receivers.unwrap_or(but(&senders));
            (senders, receivers)
        }
        Pattern::AllToAll | Pattern::Permutation => (senders.unwrap_or(all()), receivers.unwrap_or(all())),
    };
    let pairs: Vec<(usize, usize)> = if spec.pattern == Pattern::Permutation {
        permutation(&senders, &receivers, random)
    } else {
        senders
            .iter()
            .flat_map(|from| receivers.iter().map(move |to| (*from, *to)))
            .filter(|(from, to)| from != to)
            .collect()
    };
    if pairs.is_empty() {
        return Err(format!(
            "traffic `{}` has no pair of different hosts; name senders and receivers",
            spec.name
        ));
    }
    Ok(pairs)
}

/// A random assignment without anybody to himself, if there is one; Sattolo's cycle where the sets are equal.
fn permutation(senders: &[usize], receivers: &[usize], random: &mut Random) -> Vec<(usize, usize)> {
    let mut order = receivers.to_vec();
    for at in (1..order.len()).rev() {
        order.swap(at, random.below(at as u64) as usize);
    }
    senders.iter().copied().zip(order).filter(|(from, to)| from != to).collect()
}

fn gap_ns(
    experiment: &Experiment,
    spec: &TrafficSpec,
    pairs: &[(usize, usize)],
    sizes: &Quantiles,
) -> Result<f64, String> {
    let load = spec.load.unwrap_or(1.0);
    let uses = |host: usize| {
        let (sends, receives) = (
            pairs.iter().filter(|(from, _)| *from == host).count(),
            pairs.iter().filter(|(_, to)| *to == host).count(),
        );
        sends.max(receives)
    };
    let link = match &spec.load_link {
        Some(name) => experiment.host(name),
        None => (0..experiment.spec.rack.hosts).rev().max_by_key(|host| uses(*host)),
    };
    let link = link.filter(|host| uses(*host) > 0);
    let link = link
        .ok_or_else(|| format!("traffic `{}`: load_link carries none of it; name another host", spec.name))?;
    let host = &experiment.rack.hosts[link];
    let tags = experiment.rack.wire_bytes(experiment.scheme) - overhead::wire_bytes(14 + u64::from(MTU));
    let mean_ns = sizes.mean_of(|size| match spec.load_in {
        LoadIn::Bytes => wire_bytes(size.max(1), tags) as f64 * 8e9 / host.rate_bps as f64,
        LoadIn::Slots => size.max(1).div_ceil(u64::from(MTU)) as f64 * host.slot.0 as f64,
    });
    Ok(mean_ns * uses(link) as f64 / load)
}

/// Bytes on the wire of a message, every frame's overhead included.
fn wire_bytes(size: u64, tags: u64) -> u64 {
    let full = size / u64::from(MTU);
    let rest = size % u64::from(MTU);
    let last = if rest == 0 { 0 } else { overhead::wire_bytes(14 + tags + rest.max(46)) };
    full * overhead::wire_bytes(14 + tags + u64::from(MTU)) + last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permutations_leave_nobody_to_himself() {
        let all: Vec<usize> = (0..9).collect();
        for seed in 0..50 {
            let pairs = permutation(&all, &all, &mut Random::new(seed));
            assert_eq!(pairs.len(), 9);
            let mut receivers: Vec<usize> = pairs.iter().map(|(_, to)| *to).collect();
            receivers.sort_unstable();
            assert_eq!(receivers, all);
        }
    }

    #[test]
    fn wire_bytes_of_messages() {
        assert_eq!(wire_bytes(1, 0), 84);
        assert_eq!(wire_bytes(1_500, 4), 1_542);
        assert_eq!(wire_bytes(6_000, 12), 4 * 1_550);
        assert_eq!(wire_bytes(1_501, 0), 1_538 + 84);
    }
}
