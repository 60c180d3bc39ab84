//! Builds a world: nodes in groups, and the links between them.

use super::agent::Agent;
use super::experiment::TopologyExperiment;
use super::group::{Group, Node};
use super::host::HostNode;
use super::memory::{Pace, Setup, Wanted, region_bytes};
use super::network::Network;
use super::plan::{Plan, Planted};
use super::spec::{DelaySpec, SendKind, TopologySpec};
use super::switch::SwitchNode;
use super::wires::{Flight, LinkEnd, Outbox, Outlet, Wires};
use super::world::{GROUPS_EACH, TopologyWorld};
use crate::frames::Frames;
use crate::link::{Delays, Faults, Link};
use crate::random::{Distribution, Random};
use crate::schedule::Schedule;
use crate::world::Inlets;
use p4rack_codegen::rack::{End, Queueing as RackQueueing};
use p4rack_codegen::topology::{Link as TopologyLink, Runs, Topology};
use p4rack_switch::{Config, PortConfig, Queueing};
use p4rack_wire::Nanos;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A node's links: its port (0 is a host's), the other end, and the link.
type Ends<'t> = Vec<(u16, End, &'t TopologyLink)>;

/// The rate of a link in both directions.
fn link_rate(topology: &Topology, link: &TopologyLink) -> u64 {
    link.ends
        .iter()
        .filter_map(|end| match end {
            End::Port(switch, port) => topology.rate_bps(*switch, *port, link),
            End::Host(_) => None,
        })
        .max()
        .unwrap_or(0)
}

/// Position of an end's node among all: switches, then hosts.
fn node_of(topology: &Topology, end: End) -> usize {
    match end {
        End::Port(switch, _) => switch,
        End::Host(host) => topology.switches.len() + host,
    }
}

/// Links of each node, ordered as the topology lists them.
fn ends(topology: &Topology) -> Vec<Ends<'_>> {
    let mut all: Vec<Ends<'_>> = vec![Vec::new(); topology.switches.len() + topology.hosts.len()];
    for link in &topology.links {
        let [a, b] = link.ends;
        for (own, other) in [(a, b), (b, a)] {
            let port = match own {
                End::Port(_, port) => port,
                End::Host(_) => 0,
            };
            all[node_of(topology, own)].push((port, other, link));
        }
    }
    all
}

/// The group of each node: switches by the number of their ports, each host with its switch.
fn groups(topology: &Topology, ends: &[Ends<'_>], count: usize) -> Vec<usize> {
    let switches = topology.switches.len();
    let total: usize = ends[..switches].iter().map(Vec::len).sum();
    let mut before = 0;
    let mut of: Vec<usize> = Vec::new();
    for own in &ends[..switches] {
        of.push((before * count / total.max(1)).min(count - 1));
        before += own.len();
    }
    for own in &ends[switches..] {
        let at = own.first().map_or(0, |(_, other, _)| node_of(topology, *other));
        of.push(of.get(at).copied().unwrap_or(0));
    }
    of
}

/// The configuration of a switch.
fn config(topology: &Topology, index: usize, ends: &Ends<'_>, experiment: &TopologyExperiment) -> Config {
    let switch = &topology.switches[index];
    let port = |(port, _, link): &(u16, End, &TopologyLink)| {
        PortConfig::new(*port, topology.rate_bps(index, *port, link).unwrap_or(0))
    };
    let mut config = Config {
        ports: ends.iter().map(port).collect(),
        buffer_bytes: switch.buffer_bytes,
        dynamic_percent: experiment.spec.dynamic_percent,
        cpu_port: Some(switch.cpu_port),
        drop_port: switch.drop_port(),
        time_unit_ns: switch.time_unit_ns,
        seed: experiment.spec.seed.wrapping_add(index as u64),
        catch_up: Nanos::ZERO,
        // The links limit the rate.
        arrival_burst: Nanos::MAX,
        samples: 0,
        ..Config::default()
    };
    if let Runs::Rack(_, rack) = &switch.runs {
        config.reserved_bytes = rack.reserved_bytes();
        config.queueing = match rack.switch.queueing {
            RackQueueing::Fifo => Queueing::Fifo,
            RackQueueing::Fair => Queueing::Fair,
        };
    }
    config
}

/// Delay of a switch's pipeline, constant or random, and its maximum.
#[derive(Clone, Debug, Default)]
struct PipelineDelay {
    constant_ns: u64,
    random: Option<Arc<Distribution>>,
    most: Nanos,
}

impl PipelineDelay {
    fn new(delay: &DelaySpec) -> Result<PipelineDelay, String> {
        let (constant_ns, random) = match delay {
            DelaySpec::Constant(ns) => (u64::from(*ns), None),
            DelaySpec::Quantiles(_) => (0, Some(Arc::new(delay.quantiles()?))),
        };
        Ok(PipelineDelay { constant_ns, random, most: Nanos(delay.most_ns()?.into()) })
    }
}

/// Delays of links. Equal ones share a table: otherwise those of a large network would fill the processor's cache.
#[derive(Debug)]
struct Wiring {
    pipelines: Vec<PipelineDelay>,
    constants: BTreeMap<u32, Arc<Distribution>>,
}

impl Wiring {
    fn new(topology: &Topology, spec: &TopologySpec) -> Result<Wiring, String> {
        let usual = PipelineDelay::new(&spec.pipeline_ns)?;
        let of =
            |name: &String| spec.switch_pipeline_ns.get(name).map_or(Ok(usual.clone()), PipelineDelay::new);
        let pipelines =
            topology.switches.iter().map(|switch| of(&switch.name)).collect::<Result<_, String>>()?;
        Ok(Wiring { pipelines, constants: BTreeMap::new() })
    }

    /// The delays of a link to a node, and how long a frame is on its way at most.
    fn delays(&mut self, node: usize, delay: Nanos) -> (Delays, Nanos) {
        let pipeline = self.pipelines.get(node).cloned().unwrap_or_default();
        // At least 1 ns, so that time advances.
        let ns = u32::try_from(delay.0 + pipeline.constant_ns).unwrap_or(u32::MAX).max(1);
        let wire = self.constants.entry(ns).or_insert_with(|| Arc::new(Distribution::constant(ns)));
        (Delays { before: None, wire: wire.clone(), after: pipeline.random }, delay + pipeline.most)
    }
}

/// The memory that flows use.
fn memory(topology: &Topology, plan: &Plan, seed: u64) -> Result<Setup, String> {
    let mut wanted = Vec::new();
    for (id, flow) in plan.flows.iter().enumerate() {
        let traffic = &plan.traffic[usize::from(flow.traffic)];
        let spec = &traffic.spec;
        if spec.send != SendKind::Memory {
            continue;
        }
        let pace = Pace {
            reads: spec.read_percent.unwrap_or(50.0) / 100.0,
            under_way: spec.under_way,
            most: spec.messages.unwrap_or(u64::MAX),
            start: traffic.start,
            stop: traffic.stop,
            think: Nanos::from_micros(spec.think_us),
        };
        wanted.push(Wanted {
            flow: id as u16,
            traffic: spec.name.clone(),
            way: spec.way.clone().unwrap_or_default(),
            from: flow.from.into(),
            to: flow.to.into(),
            part_bytes: region_bytes(spec)?,
            sizes: traffic.sizes.clone(),
            pace,
            random: Random::stream(seed, (0x666c << 32) + 2 * id as u64),
        });
    }
    Setup::new(topology, wanted, seed, Planted::Damaged.is(plan.planted))
}

/// Builds the world of an experiment for this many workers; `captured` are positions of hosts whose links are captured.
pub(super) fn build(
    experiment: &TopologyExperiment,
    network: &Network,
    workers: usize,
    captured: &[usize],
    planted: Option<Planted>,
) -> Result<TopologyWorld, String> {
    let topology = &network.topology;
    let switches = topology.switches.len();
    let plan = Arc::new(Plan::new(experiment, topology, planted)?);
    let mut setup = memory(topology, &plan, experiment.spec.seed)?;
    let ends = ends(topology);
    let count = if workers < 2 { 1 } else { (workers * GROUPS_EACH).min(switches) };
    let group_of = groups(topology, &ends, count);
    let mut sizes = vec![0; count];
    let position: Vec<u16> = group_of
        .iter()
        .map(|group| {
            sizes[*group] += 1;
            sizes[*group] - 1
        })
        .collect();
    let mut wiring = Wiring::new(topology, &experiment.spec)?;
    let mut outlet = |own: usize, (_, other, link): &(u16, End, &TopologyLink)| {
        let node = node_of(topology, *other);
        let port = match other {
            End::Port(_, port) => *port,
            End::Host(_) => 0,
        };
        let inlet = ends[node].iter().position(|(at, _, _)| *at == port).unwrap_or(0);
        let to = LinkEnd { group: group_of[node] as u16, node: position[node], inlet: inlet as u16 };
        let (delays, longest) = wiring.delays(node, link.delay);
        let faults = Faults { loss: f64::from(link.loss_ppm) / 1e6, ..Faults::default() };
        // One for each direction of each link.
        let stream = (own as u64) << 40 | (node as u64) << 20 | inlet as u64;
        let random = Random::stream(experiment.spec.seed, 0x6c69_0000_0000_0000 | stream);
        let rate_bps = link_rate(topology, link);
        let flight = Flight::of(rate_bps, longest);
        Outlet { link: Link::new(rate_bps, delays, &faults, random), to, flight, full: 0 }
    };
    let mut nodes: Vec<Vec<Node>> = (0..count).map(|_| Vec::new()).collect();
    let mut inlets: Vec<Vec<Inlets<Schedule>>> = (0..count).map(|_| Vec::new()).collect();
    for (node, own) in ends.iter().enumerate() {
        let group = group_of[node];
        let (made, components) = match topology.switches.get(node) {
            Some(switch) => {
                let outlets = own.iter().map(|end| (end.0, outlet(node, end))).collect();
                let config = config(topology, node, own, experiment);
                let (candidate, updates) =
                    network.candidate(node).ok_or_else(|| format!("{}: has no program", switch.name))?;
                let made = SwitchNode::new(node, config, candidate, updates, outlets)
                    .map_err(|error| format!("{}: {error}", switch.name))?;
                (Node::Switch(Box::new(made)), own.len() + 1)
            }
            None => {
                let index = node - switches;
                let end =
                    own.first().ok_or_else(|| format!("{}: has no link", topology.hosts[index].name))?;
                let outlet = outlet(node, end);
                let agent = Agent::of(topology, index, experiment.spec.seed ^ (index as u64) << 32, planted)?;
                let (captures, seed) = (&experiment.captures, experiment.spec.seed);
                let mut made = HostNode::new((index, agent), outlet, &plan, captures, &mut setup, seed)?;
                made.captured = captured.contains(&index).then(Vec::new);
                let components = 1 + made.memory_component();
                (Node::Host(Box::new(made)), components)
            }
        };
        nodes[group].push(made);
        inlets[group].push(Inlets::new(own.len(), Schedule::new(components)));
    }
    let all = nodes.into_iter().zip(inlets).enumerate();
    let groups = all.map(|(group, (nodes, inlets))| {
        let outboxes = (0..count).map(|_| Outbox::default()).collect();
        let wires = Wires { group: group as u16, inlets, outboxes, frames: Frames::default(), loop_hops: 0 };
        Group::new(plan.clone(), nodes, wires)
    });
    Ok(TopologyWorld::new(plan.clone(), groups.collect()))
}
