//! Workloads: senders, receivers, sizes and times of messages, and the results.

use crate::experiment::{Arrivals, Experiment, LoadIn, Pattern, TrafficSpec, Ycsb};
use crate::message::{FlowId, MTU};
use crate::random::{Distribution, Random};
use crate::sizes;
use crate::trace::Entry;
use crate::ycsb::{self, Zipf};
use p4rack_wire::ethernet::overhead;
use p4rack_wire::{Histogram, Nanos};

/// Number of parts that messages are divided into by size, if sizes differ.
pub(crate) const DECILES: usize = 10;

/// One `[[traffic]]`: the part that all hosts share.
#[derive(Debug)]
pub(crate) struct Traffic {
    pub spec: TrafficSpec,
    pub sizes: Distribution,
    /// Its flows, by pair and thread; with `rpc` those of requests, then those of answers in the same order.
    pub flows: std::ops::Range<FlowId>,
    /// Sender and receiver of each pair.
    pub pairs: Vec<(usize, usize)>,
    /// With `poisson`: mean time between two messages.
    pub gap_ns: f64,
    pub start: Nanos,
    pub stop: Nanos,
    /// With `VGG16`: bytes of each message of a round.
    pub layers: Vec<u32>,
    /// With `ycsb`: the distribution of keys.
    zipf: Option<Zipf>,
    /// Sizes that separate the deciles.
    limits: Vec<u64>,
}

/// One `[[traffic]]`: the part that concerns the rack as a whole.
#[derive(Debug)]
pub(crate) struct Source {
    /// With `poisson`: random numbers for times, pairs and sizes of messages. They are used for nothing else, so that
    /// all schemes get the same messages at the same times.
    pub random: Random,
    /// With `rounds`: messages of this round that are not complete, and when it began.
    pub round_open: usize,
    pub round_began: Nanos,
    /// With `trace`: the remaining messages, last one first.
    pub trace: Vec<Entry>,
}

/// Current operation of a YCSB thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Reads a record: a short request, an answer as long as the record.
    #[default]
    Read,
    /// Writes a record.
    Update,
    /// Reads a record that it will write afterwards.
    Modify,
}

/// Counters of a traffic's messages since the warm-up.
#[derive(Debug)]
pub(crate) struct TrafficStats {
    /// Messages created.
    pub made: u64,
    /// Messages that arrived completely.
    pub done: u64,
    /// Messages that lost a frame.
    pub lost: u64,
    /// Messages refused because too many waited in their flow.
    pub refused: u64,
    /// Bytes that arrived in the measured time.
    pub bytes: u64,
    /// Retransmissions and timeouts of the transport.
    pub retransmissions: u64,
    pub timeouts: u64,
    /// Latency: with `rpc` of a request and its answer, with `rounds` of a round.
    pub latency: Histogram,
    /// By size, if sizes differ.
    pub deciles: Vec<Histogram>,
}

impl TrafficStats {
    /// Empty counters; `varied`: sizes differ.
    fn new(varied: bool) -> TrafficStats {
        TrafficStats {
            made: 0,
            done: 0,
            lost: 0,
            refused: 0,
            bytes: 0,
            retransmissions: 0,
            timeouts: 0,
            latency: Histogram::new(),
            deciles: if varied { (0..DECILES).map(|_| Histogram::new()).collect() } else { Vec::new() },
        }
    }

    /// Adds another group's counters.
    pub fn add(&mut self, other: &TrafficStats) {
        self.made += other.made;
        self.done += other.done;
        self.lost += other.lost;
        self.refused += other.refused;
        self.bytes += other.bytes;
        self.retransmissions += other.retransmissions;
        self.timeouts += other.timeouts;
        self.latency.add(&other.latency);
        self.deciles.iter_mut().zip(&other.deciles).for_each(|(own, other)| own.add(other));
    }

    /// Records a latency.
    pub fn record(&mut self, traffic: &Traffic, size: u32, latency: Nanos) {
        self.done += 1;
        self.latency.record(latency.0.max(1));
        if !self.deciles.is_empty() {
            let decile = traffic.limits.partition_point(|limit| *limit < u64::from(size));
            self.deciles[decile].record(latency.0.max(1));
        }
    }
}

impl Traffic {
    /// The `nth` traffic, whose flows are numbered from `first`.
    pub fn new(experiment: &Experiment, nth: usize, first: FlowId) -> Result<(Traffic, Source), String> {
        let spec = experiment.spec.traffic[nth].clone();
        let mut random = Random::stream(experiment.spec.seed, 0x7261_0000 + nth as u64);
        let trace = match spec.arrivals {
            Arrivals::Trace => {
                let read = experiment.traces.get(nth).and_then(Option::as_ref);
                Some(read.ok_or_else(|| format!("traffic `{}`: its trace was not read", spec.name))?)
            }
            _ => None,
        };
        let pairs = match trace {
            Some(trace) => trace.pairs.clone(),
            None => pairs(experiment, &spec, &mut random)?,
        };
        let layers = if spec.size.is_layers() {
            let receivers: std::collections::BTreeSet<usize> = pairs.iter().map(|(_, to)| *to).collect();
            sizes::vgg16(receivers.len(), spec.scale)
        } else {
            Vec::new()
        };
        let sizes = match layers.first() {
            Some(first) => Distribution::constant(*first),
            None => spec.size.quantiles()?,
        };
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
        let source = Source {
            random,
            round_open: 0,
            round_began: Nanos::ZERO,
            trace: trace.map_or(Vec::new(), |trace| trace.entries.iter().rev().copied().collect()),
        };
        let traffic = Traffic {
            start: Nanos::from_micros(spec.start_us),
            stop: spec.stop_us.map_or(end, |stop| Nanos::from_micros(stop).min(end)),
            flows: first..first + count,
            zipf: spec.ycsb.map(|_| Zipf::new(spec.keys, spec.zipf)),
            layers,
            spec,
            sizes,
            pairs,
            gap_ns,
            limits,
        };
        Ok((traffic, source))
    }

    /// Empty counters for its messages.
    pub fn stats(&self) -> TrafficStats {
        TrafficStats::new(!self.limits.is_empty())
    }

    /// Sender and receiver of a flow.
    pub fn ends(&self, flow: FlowId) -> (usize, usize) {
        let nth = (flow - self.flows.start) as usize;
        let forward = self.pairs.len() * self.spec.flows;
        let (a, b) = self.pairs[nth % forward / self.spec.flows];
        if nth >= forward { (b, a) } else { (a, b) }
    }

    /// The flow of answers to a flow of requests.
    pub fn back(&self, flow: FlowId) -> FlowId {
        flow + (self.pairs.len() * self.spec.flows) as FlowId
    }

    /// Whether a flow carries answers.
    pub fn is_back(&self, flow: FlowId) -> bool {
        self.spec.arrivals == Arrivals::Rpc
            && flow - self.flows.start >= (self.flows.end - self.flows.start) / 2
    }

    /// Draws the pair and the size of the next message.
    pub fn draw(&self, random: &mut Random) -> (usize, u32) {
        let pair = random.below(self.pairs.len() as u64) as usize;
        (pair, self.sizes.sample(random).min(u64::from(u32::MAX)) as u32)
    }

    /// Draws the size of a message of `flow`; `writes`: it belongs to a request to write a record.
    pub fn size(&self, flow: FlowId, writes: bool, random: &mut Random) -> u32 {
        // Requests are short, except those that write: then answers are short.
        let short = self.spec.arrivals == Arrivals::Rpc && writes == self.is_back(flow);
        if short {
            return self.spec.request_bytes;
        }
        self.sizes.sample(random).min(u64::from(u32::MAX)) as u32
    }

    /// Whether a client's thread begins at this flow of requests: at each, but under YCSB only at its first.
    pub fn begins_at(&self, flow: FlowId) -> bool {
        let pair = (flow - self.flows.start) as usize / self.spec.flows;
        let first = self.pairs.iter().position(|(from, _)| *from == self.pairs[pair].0);
        self.spec.ycsb.is_none() || first == Some(pair)
    }

    /// The flow of requests that belongs to a flow of answers.
    pub fn forward(&self, flow: FlowId) -> FlowId {
        flow - (self.flows.end - self.flows.start) / 2
    }

    /// The flow on which a thread asks next, after `operation` on this flow of requests, and its next operation:
    /// under YCSB, the key determines the server.
    pub fn next_ask(&self, flow: FlowId, operation: Operation, random: &mut Random) -> (FlowId, Operation) {
        let (Some(zipf), Some(mix)) = (&self.zipf, self.spec.ycsb) else { return (flow, operation) };
        let nth = (flow - self.flows.start) as usize;
        let (pair, thread) = (nth / self.spec.flows, nth % self.spec.flows);
        if operation == Operation::Modify {
            return (flow, Operation::Update);
        }
        let key = zipf.sample(random);
        let sender = self.pairs[pair].0;
        let first = self.pairs.partition_point(|(from, _)| *from < sender);
        let servers = self.pairs[first..].iter().take_while(|(from, _)| *from == sender).count();
        let next = (first + ycsb::place(key, servers.max(1))) * self.spec.flows + thread;
        let operation = match (random.chance(mix.writes()), mix) {
            (false, _) => Operation::Read,
            (true, Ycsb::F) => Operation::Modify,
            (true, _) => Operation::Update,
        };
        (self.flows.start + next as FlowId, operation)
    }

    /// Sizes that separate the deciles.
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
    let named = (hosts_named(experiment, &spec.senders), hosts_named(experiment, &spec.receivers));
    pairs_of(spec.pattern, experiment.spec.rack.hosts, named, random)
        .map_err(|error| format!("traffic `{}` {error}", spec.name))
}

/// Pairs of senders and receivers among `hosts`; those that are not named are the pattern's.
pub(crate) fn pairs_of(
    pattern: Pattern,
    hosts: usize,
    (senders, receivers): (Option<Vec<usize>>, Option<Vec<usize>>),
    random: &mut Random,
) -> Result<Vec<(usize, usize)>, String> {
    let all = || (0..hosts).collect::<Vec<usize>>();
    let but = |gone: &[usize]| all().into_iter().filter(|host| !gone.contains(host)).collect::<Vec<_>>();
    let (senders, receivers) = match pattern {
        Pattern::Incast => {
            let receivers = receivers.unwrap_or(vec![0]);
            (senders.unwrap_or(but(&receivers)), receivers)
        }
        Pattern::Outcast => {
            let senders = senders.unwrap_or(vec![0]);
            let receivers = receivers.unwrap_or(but(&senders));
            (senders, receivers)
        }
        Pattern::Shuffle | Pattern::Pairs => {
            let senders = senders.unwrap_or((0..hosts / 2).collect());
            let receivers = receivers.unwrap_or(but(&senders));
            (senders, receivers)
        }
        Pattern::AllToAll | Pattern::Permutation | Pattern::Trace => {
            (senders.unwrap_or(all()), receivers.unwrap_or(all()))
        }
    };
    let pairs: Vec<(usize, usize)> = match pattern {
        Pattern::Permutation => permutation(&senders, &receivers, random),
        Pattern::Pairs if senders.len() != receivers.len() => {
            let (senders, receivers) = (senders.len(), receivers.len());
            return Err(format!("has {senders} senders and {receivers} receivers; name as many of both"));
        }
        Pattern::Pairs => senders.into_iter().zip(receivers).filter(|(from, to)| from != to).collect(),
        // Per sender.
        _ => senders
            .iter()
            .flat_map(|from| receivers.iter().map(move |to| (*from, *to)))
            .filter(|(from, to)| from != to)
            .collect(),
    };
    match pairs.is_empty() {
        true => Err("has no pair of different hosts; name senders and receivers".to_owned()),
        false => Ok(pairs),
    }
}

/// A random assignment without fixed points, if there is one; Sattolo's cycle if both sets are the same.
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
    sizes: &Distribution,
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
    let tags = experiment.runs.wire_bytes() - overhead::wire_bytes(14 + u64::from(MTU));
    let (payload, headers) = spec.transport.framing();
    let mean_ns = sizes.mean_of(|size| match spec.load_in {
        LoadIn::Bytes => wire_bytes(size.max(1), payload, tags + headers) as f64 * 8e9 / host.rate_bps as f64,
        LoadIn::Untagged => wire_bytes(size.max(1), payload, headers) as f64 * 8e9 / host.rate_bps as f64,
        LoadIn::Slots => {
            size.max(1).div_ceil(payload) as f64 * experiment.pl2.slot(&experiment.rack, host).0 as f64
        }
    });
    // Over all pairs.
    Ok(mean_ns * uses(link) as f64 / load / pairs.len() as f64)
}

/// Bytes of a message on the wire, including the overhead of each frame.
fn wire_bytes(size: u64, payload: u64, headers: u64) -> u64 {
    let full = size / payload;
    let rest = size % payload;
    let last = if rest == 0 { 0 } else { overhead::wire_bytes((14 + headers + rest).max(60)) };
    full * overhead::wire_bytes(14 + headers + payload) + last
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
        assert_eq!(wire_bytes(1, 1_500, 0), 84);
        assert_eq!(wire_bytes(1_500, 1_500, 4), 1_542);
        assert_eq!(wire_bytes(6_000, 1_500, 12), 4 * 1_550);
        assert_eq!(wire_bytes(1_501, 1_500, 0), 1_538 + 84);
        assert_eq!(wire_bytes(1_448, 1_448, 52), 1_538);
    }
}
