//! The rack in virtual time: the loop that moves frames, and what it moves them between.
//!
//! ```text
//!  threads ─ Host ─▶ up link ─▶ pipeline delay ─▶ switch (generated P4, traffic manager) ─▶ down link ─▶ Host
//! ```

mod group;
mod hostile;
mod hosts;
mod lookahead;
mod mail;
mod messages;
mod node;
mod pfc;
mod plan;
mod rack;
mod sources;
mod switch;
mod together;
mod transports;
mod trunk;

use crate::check::Digest;
use crate::crew::Crew;
use crate::experiment::Experiment;
use crate::flow::Machine;
use crate::host::Host;
use crate::link::LinkStats;
use crate::random::{Between, Quantiles};
use crate::record::Recorder;
use crate::scheme::{Watch, Watcher};
use crate::switch::{SwitchError, SwitchModel};
use p4rack_codegen::rack::units::parse_size;
use p4rack_wire::Nanos;
use std::sync::Arc;

pub(crate) use group::{Counts, Group};
pub(crate) use node::{Lane, Node};

/// Why a simulation did not start.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// The switch.
    #[error(transparent)]
    Switch(#[from] SwitchError),
    /// A parameter.
    #[error("{0}")]
    Parameter(String),
}

/// A planted fault, for the checks' own tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Planted {
    /// A frame vanishes on a link without being counted.
    Vanish,
    /// Two frames change places before an application.
    Swap,
    /// A grant says 0 for both waits.
    GrantNow,
    /// Frames vanish before the switch, so their slots stay reserved.
    Leak,
    /// A frame's time depends on where its buffer lies.
    Address,
    /// The switch takes more than its buffer holds.
    Overfill,
    /// A host's machine is never asked again.
    Sleep,
    /// One of several workers reads what another has written before that is complete.
    Race,
}

impl Planted {
    /// Whether this is what is planted; outside of tests nothing is, and nothing is asked.
    #[inline(always)]
    pub fn is(self, planted: Option<Planted>) -> bool {
        cfg!(test) && planted == Some(self)
    }
}

/// A rack under way.
#[derive(Debug)]
pub(crate) struct World {
    pub plan: Arc<plan::Plan>,
    pub now: Nanos,
    lookahead: lookahead::Lookahead,
    rack: rack::Rack,
    pub groups: Vec<Group>,
    /// Windows of time in which several workers have run.
    windows: u64,
    pub tor: switch::Tor,
    /// With whoever runs; here meanwhile.
    pub recorder: Option<Box<Recorder>>,
}

/// Sums of the switch's counters before its reset.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Before {
    pub rx: u64,
    pub tx: u64,
    pub drops: u64,
    pub clones: u64,
}

impl World {
    /// A rack that `crew` will run. `recorder` takes what it is told to.
    pub fn new(
        experiment: Experiment,
        crew: &dyn Crew,
        recorder: Option<Recorder>,
        planted: Option<Planted>,
    ) -> Result<World, SimError> {
        let spec = &experiment.spec;
        let model = SwitchModel::new(&experiment)?;
        let quantiles = |points: &[(f64, f64)]| {
            Quantiles::new(points, Between::Linear).map(Arc::new).map_err(SimError::Parameter)
        };
        let times = node::Times {
            wire: quantiles(&spec.link.delay_ns)?,
            dma: quantiles(&spec.nic.dma_ns)?,
            pipeline: quantiles(&spec.rack.pipeline_ns)?,
            lane_bytes: parse_size(&spec.rack.lane_buffer).map_err(SimError::Parameter)?,
        };
        // What has no lookahead, or is recorded in order, is for one.
        let alone = crew.size() < 2 || recorder.is_some() || lookahead::Lookahead::is_none(&experiment);
        let groups = if alone { 1 } else { (crew.size() * together::GROUPS_EACH).min(spec.rack.hosts) };
        let watcher = Watcher::new(&experiment);
        let reports = watcher.controller_delay();
        let (plan, sources, flows) =
            plan::Plan::new(experiment, times.dma.clone(), reports, planted, groups)?;
        let (nodes, lanes, trunks) =
            node::all(&plan.experiment, &times, flows).map_err(SimError::Parameter)?;
        let lookahead =
            lookahead::Lookahead::new(&plan.experiment, &nodes, &lanes, plan.pause_delay, reports);
        let plan = Arc::new(plan);
        let mut of_groups: Vec<Vec<Node>> = (0..groups).map(|_| Vec::new()).collect();
        for (node, group) in nodes.into_iter().zip(&plan.group_of) {
            of_groups[usize::from(*group)].push(node);
        }
        let group = |nodes: Vec<Node>| {
            let first = nodes.first().map_or(0, |node| node.host.index);
            Group::new(plan.clone(), first, nodes)
        };
        Ok(World {
            now: Nanos::ZERO,
            lookahead,
            rack: rack::Rack::new(&plan, sources),
            groups: of_groups.into_iter().map(group).collect(),
            windows: 0,
            tor: switch::Tor::new(plan.clone(), (model, watcher), (lanes, trunks), groups),
            recorder: recorder.map(Box::new),
            plan,
        })
    }

    /// Runs until nothing happens any more up to `end`.
    pub fn run_until(&mut self, end: Nanos, crew: &dyn Crew) {
        match self.groups.len() {
            1 => self.run_alone(end),
            _ => self.run_together(end, crew),
        }
    }

    /// Checksum of all that happened.
    pub fn digest(&self) -> u64 {
        let mut all = Digest::new();
        for (node, lane) in self.nodes().zip(&self.tor.lanes) {
            all.add(lane.digest_up.0);
            all.add(node.digest_down.0);
        }
        all.0
    }

    /// What hosts counted, all together; and what the flows' machines did.
    pub fn counts(&self) -> Counts {
        let mut sum = Counts::new(&self.plan);
        self.groups.iter().for_each(|group| sum.add(&group.counts));
        for flow in self.nodes().flat_map(|node| &node.outflows) {
            let stats = &mut sum.traffic[usize::from(flow.traffic)];
            match &flow.transport {
                Machine::Raw => {}
                Machine::Tcp(sender) => {
                    stats.retransmissions += sender.retransmissions;
                    stats.timeouts += sender.timeouts;
                }
                Machine::Rds(sender) => stats.retransmissions += sender.retransmissions,
            }
        }
        sum
    }

    /// All links, and what shared ports have before the switch: what happened, and frames that are on them.
    pub fn links(&self) -> impl Iterator<Item = (LinkStats, usize)> {
        let ends = self.nodes().zip(&self.tor.lanes);
        let hosts = ends.flat_map(|(node, lane)| [(&node.up, &lane.up), (&lane.down, &node.down)]);
        let trunks = self.tor.trunks.iter().map(|trunk| (&trunk.link, &trunk.far));
        hosts
            .chain(trunks)
            .map(|(link, far)| (LinkStats { delivered: far.delivered, ..link.stats }, far.in_flight()))
    }

    /// Hosts with their ends of the links.
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.groups.iter().flat_map(|group| &group.nodes)
    }

    /// One of them.
    pub fn node(&self, host: u16) -> &Node {
        let group = &self.groups[usize::from(self.plan.group_of[usize::from(host)])];
        &group.nodes[usize::from(host) - group.first]
    }

    /// All hosts.
    pub fn hosts(&self) -> impl Iterator<Item = &Host> {
        self.nodes().map(|node| &node.host)
    }
}
