//! Constants of a run: flows with their headers, and times.

use super::check::{FLOWS_MAX, gap_ns};
use super::experiment::TopologyExperiment;
use super::frame::{Headers, Salt};
use super::memory;
use super::spec::{SendKind, SenderSpec};
use crate::random::{Distribution, Random};
use crate::traffic::pairs_of;
use crate::transport::tcp::Config;
use p4rack_codegen::rack::units::{parse_rate, parse_size};
use p4rack_codegen::topology::{Host, Topology};
use p4rack_wire::{MacAddr, Nanos};
use std::sync::Arc;

/// Source ports begin here.
const FIRST_PORT: u16 = 1_024;

/// A fault planted to test the checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Planted {
    /// A frame vanishes between a switch and its link without being counted.
    Vanish,
    /// A frame vanishes before a host has counted it.
    Deaf,
    /// A frame vanishes before a switch has counted it.
    Swallow,
    /// Remote memory begins with wrong bytes.
    Damaged,
    /// An agent forgets each 50th frame of senders, or one that should leave at the link.
    Forgetful,
    Leaky,
    /// An agent keeps each 50th frame from the link.
    Greedy,
    /// A worker reads mail before another one has finished writing it.
    Race,
}

impl Planted {
    /// Whether this fault is planted. Outside of tests it never is, and the check costs nothing.
    #[inline(always)]
    pub fn is(self, planted: Option<Planted>) -> bool {
        cfg!(test) && planted == Some(self)
    }
}

/// Constants of a run.
#[derive(Debug)]
pub(super) struct Plan {
    /// The measured time.
    pub warm: Nanos,
    pub stop: Nanos,
    /// When a run ends.
    pub end: Nanos,
    pub traffic: Vec<Traffic>,
    pub flows: Vec<Flow>,
    /// Of its frames.
    pub salt: Salt,
    /// Bytes that wait at most for a host's link.
    pub host_queue_bytes: u64,
    /// Parameters of TCP.
    pub tcp: Config,
    /// Whether each flow has latencies of its own.
    pub by_flow: bool,
    /// Whether packets of remote memory may come.
    pub has_packets: bool,
    /// Switches after which a frame goes round in a loop: it has been at some of them three times.
    pub loop_hops: u16,
    pub planted: Option<Planted>,
}

/// The fewest, the usual TTL of IPv4: some programs send probes to and fro. And the most.
const LOOP_HOPS: (usize, usize) = (64, 254);

/// One `[[traffic]]`.
#[derive(Debug)]
pub(super) struct Traffic {
    pub spec: SenderSpec,
    pub sizes: Arc<Distribution>,
    pub answers: Arc<Distribution>,
    /// Payload of a flow in bits per second, if it has a rate.
    pub rate_bps: Option<u64>,
    /// Mean time between messages; 0 if others decide.
    pub gap_ns: f64,
    pub start: Nanos,
    pub stop: Nanos,
}

/// A flow from a host to another one.
#[derive(Debug)]
pub(super) struct Flow {
    pub traffic: u16,
    pub from: u16,
    /// Of a replayed capture: the sender itself.
    pub to: u16,
    /// Positions among its sender's and its receiver's.
    pub out: u32,
    pub into: u32,
    pub headers: Headers,
    /// Of answers and acknowledgements.
    pub back: Headers,
}

/// Most flows that have figures of their own.
pub(super) const FLOWS_SHOWN: usize = 1_000;

impl Plan {
    /// The plan of an experiment.
    pub fn new(
        experiment: &TopologyExperiment,
        topology: &Topology,
        planted: Option<Planted>,
    ) -> Result<Plan, String> {
        let spec = &experiment.spec;
        let stop = Nanos::from_micros(spec.duration_us);
        let salt = Salt::new(experiment.hash());
        let (mut traffic, mut flows, mut has_packets) = (Vec::new(), Vec::new(), false);
        let (mut outs, mut intos) = (vec![0; topology.hosts.len()], vec![0; topology.hosts.len()]);
        for (nth, spec) in spec.traffic.iter().enumerate() {
            let one = Traffic::new(spec, stop)?;
            let mut random = Random::stream(experiment.spec.seed, 0x7061_0000 + nth as u64);
            let named = |names: &Option<Vec<String>>| -> Option<Vec<usize>> {
                names.as_ref().map(|names| names.iter().filter_map(|name| topology.host(name)).collect())
            };
            let (senders, receivers) = (named(&spec.senders), named(&spec.receivers));
            let pairs = match spec.send {
                SendKind::Pcap => {
                    let senders = senders.unwrap_or((0..topology.hosts.len()).collect());
                    senders.into_iter().map(|host| (host, host)).collect()
                }
                _ => pairs_of(spec.pattern, topology.hosts.len(), (senders, receivers), &mut random)
                    .map_err(|error| format!("traffic `{}` {error}", spec.name))?,
            };
            if flows.len() + pairs.len() * spec.flows > FLOWS_MAX {
                return Err(format!(
                    "traffic `{}` makes more than {FLOWS_MAX} flows; name fewer senders or receivers",
                    spec.name
                ));
            }
            for (from, to) in pairs.into_iter().flat_map(|pair| std::iter::repeat_n(pair, spec.flows)) {
                let of_memory = spec.way.as_ref().and_then(|way| memory::udp_port(topology, to, way));
                has_packets |= of_memory.is_some();
                let ports = (FIRST_PORT + flows.len() as u16, of_memory.unwrap_or(spec.port));
                let kind = (spec.send.is_tcp(), spec.dscp);
                let (a, b) = (&topology.hosts[from], &topology.hosts[to]);
                let headers = |at: usize, to: &Host, ports| {
                    let from = &topology.hosts[at];
                    Headers::new(salt, (from.mac, next_hop(topology, at, to)), (from.ip, to.ip), ports, kind)
                };
                flows.push(Flow {
                    traffic: nth as u16,
                    from: from as u16,
                    to: to as u16,
                    out: outs[from],
                    into: intos[to],
                    headers: headers(from, b, ports),
                    back: headers(to, a, (ports.1, ports.0)),
                });
                outs[from] += 1;
                intos[to] += 1;
            }
            traffic.push(one);
        }
        Ok(Plan {
            warm: Nanos::from_micros(spec.warmup_us),
            stop,
            end: stop + Nanos::from_micros(spec.drain_us),
            salt,
            by_flow: flows.len() <= FLOWS_SHOWN,
            has_packets,
            host_queue_bytes: parse_size(&spec.host_queue)?,
            tcp: Config {
                window_bytes: spec.transport.window_bytes.into(),
                rto_min: Nanos::from_micros(spec.transport.rto_min_us),
                probe_min: Nanos::from_micros(spec.transport.probe_min_us),
            },
            traffic,
            flows,
            loop_hops: (2 * topology.switches.len()).clamp(LOOP_HOPS.0, LOOP_HOPS.1) as u16,
            planted,
        })
    }

    /// The flow whose packets of remote memory have these ports, from and to, and whether they go to the memory.
    #[inline]
    pub fn flow_of(&self, ports: (u16, u16)) -> Option<(&Flow, u16, bool)> {
        let flow = |port: u16, is_there: bool| {
            let id = port.checked_sub(FIRST_PORT)?;
            let flow = self.flows.get(usize::from(id))?;
            let headers = if is_there { &flow.headers } else { &flow.back };
            let uses_memory = self.traffic[usize::from(flow.traffic)].spec.send == SendKind::Memory;
            (uses_memory && headers.ports() == ports).then_some((flow, id, is_there))
        };
        flow(ports.0, true).or_else(|| flow(ports.1, false))
    }

    /// Whether a time is in the measured part.
    #[inline]
    pub fn measures(&self, now: Nanos) -> bool {
        self.warm <= now && now < self.stop
    }
}

/// The MAC address to which a host sends packets for another one. No host asks for addresses: those of a rack are known to its
/// hosts; without a router's, it is the destination's own.
fn next_hop(topology: &Topology, host: usize, to: &Host) -> MacAddr {
    let from = &topology.hosts[host];
    let mask = u32::MAX.checked_shl(32 - u32::from(from.prefix)).unwrap_or(0);
    let is_near = from.ip.to_bits() & mask == to.ip.to_bits() & mask;
    let in_rack = || {
        let (rack, _) = topology.in_rack(host)?;
        rack.hosts.iter().find(|host| Some(host.ip) == from.gateway).map(|host| host.mac)
    };
    if is_near { to.mac } else { from.gateway_mac.or_else(in_rack).unwrap_or(to.mac) }
}

impl Traffic {
    fn new(spec: &SenderSpec, end: Nanos) -> Result<Traffic, String> {
        let in_traffic = |error: String| format!("traffic `{}`: {error}", spec.name);
        let sizes = spec.size.quantiles().map_err(in_traffic)?;
        let answers = spec.answer_size.quantiles().map_err(in_traffic)?;
        let rate_bps = spec.rate.as_deref().map(parse_rate).transpose().map_err(in_traffic)?;
        let gap_ns = match (rate_bps, spec.interval_us) {
            (Some(rate_bps), _) => gap_ns(sizes.mean(), rate_bps),
            (None, Some(us)) => us * 1e3,
            (None, None) => 0.0,
        };
        Ok(Traffic {
            sizes: Arc::new(sizes),
            answers: Arc::new(answers),
            rate_bps,
            gap_ns,
            start: Nanos::from_micros(spec.start_us),
            stop: spec.stop_us.map_or(end, |stop| Nanos::from_micros(stop).min(end)),
            spec: spec.clone(),
        })
    }
}
