//! The rack in virtual time: the loop that moves frames, and the hosts and switch between which they move.
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
use crate::random::{Between, Distribution};
use crate::record::Recorder;
use crate::scheme::{Watch, Watcher};
use crate::switch::{SwitchError, SwitchModel};
use p4rack_codegen::rack::units::parse_size;
use p4rack_wire::Nanos;
use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) use group::{Counts, Group};
pub(crate) use mail::{Inlets, fetch};
pub(crate) use node::{HostEnd, Lane};

/// Why a simulation can't start.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// The switch.
    #[error(transparent)]
    Switch(#[from] SwitchError),
    /// A parameter is invalid.
    #[error("{0}")]
    Parameter(String),
}

/// A fault planted to test the checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Planted {
    /// A frame vanishes on a link without being counted.
    Vanish,
    /// Two frames swap places before an application.
    Swap,
    /// A grant has 0 for both waits.
    GrantNow,
    /// Frames vanish before the switch, so their slots stay reserved.
    Leak,
    /// A frame's time depends on the address of its buffer.
    Address,
    /// The switch accepts more than its buffer holds.
    Overfill,
    /// A host's machine is never polled again.
    Sleep,
    /// A worker reads state that another one has not finished writing.
    Race,
}

impl Planted {
    /// Whether this fault is planted. Outside of tests it never is, and the check costs nothing.
    #[inline(always)]
    pub fn is(self, planted: Option<Planted>) -> bool {
        cfg!(test) && planted == Some(self)
    }
}

/// A rack while it runs.
#[derive(Debug)]
pub(crate) struct FrameWorld {
    pub plan: Arc<plan::Plan>,
    pub now: Nanos,
    lookahead: lookahead::Lookahead,
    rack: rack::Rack,
    pub groups: Vec<Group>,
    /// Number of time windows in which several workers have run.
    windows: u64,
    pub tor: switch::Tor,
    /// Lent to the running side, hosts or switch.
    pub recorder: Option<Box<Recorder>>,
}

/// Sums of the switch's counters before they were reset.
#[derive(Clone, Debug, Default)]
pub(crate) struct Before {
    pub rx: u64,
    pub tx: u64,
    /// By reason.
    pub drops: BTreeMap<&'static str, u64>,
    pub clones: u64,
}

impl FrameWorld {
    /// A rack to be run by `crew`, with an optional recorder.
    pub fn new(
        experiment: Experiment,
        crew: &dyn Crew,
        recorder: Option<Recorder>,
        planted: Option<Planted>,
    ) -> Result<FrameWorld, SimError> {
        let spec = &experiment.spec;
        let model = SwitchModel::new(&experiment)?;
        let quantiles = |points: &[(f64, f64)]| {
            Distribution::new(points, Between::Linear).map(Arc::new).map_err(SimError::Parameter)
        };
        let times = node::Times {
            wire: quantiles(spec.link.delay_ns())?,
            dma: quantiles(&spec.nic.dma_ns)?,
            pipeline: quantiles(&spec.rack.pipeline_ns)?,
            lane_bytes: parse_size(&spec.rack.lane_buffer).map_err(SimError::Parameter)?,
        };
        // Without lookahead, or with a recorder, one worker runs everything.
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
        let mut of_groups: Vec<Vec<HostEnd>> = (0..groups).map(|_| Vec::new()).collect();
        for (node, group) in nodes.into_iter().zip(&plan.group_of) {
            of_groups[usize::from(*group)].push(node);
        }
        let group = |nodes: Vec<HostEnd>| {
            let first = nodes.first().map_or(0, |node| node.host.index);
            Group::new(plan.clone(), first, nodes)
        };
        Ok(FrameWorld {
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

    /// Runs all events up to `end`.
    pub fn run_until(&mut self, end: Nanos, crew: &dyn Crew) {
        match self.groups.len() {
            1 => self.run_alone(end),
            _ => self.run_together(end, crew),
        }
    }

    /// Checksum of everything that happened.
    pub fn digest(&self) -> u64 {
        let mut all = Digest::new();
        for (node, lane) in self.nodes().zip(&self.tor.lanes) {
            all.add(lane.digest_up.0);
            all.add(node.digest_down.0);
        }
        all.0
    }

    /// Sum of all hosts' counters, and of the transports' counters.
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

    /// All links, including those of shared ports: their statistics, and the frames on them.
    pub fn links(&self) -> impl Iterator<Item = (LinkStats, usize)> {
        let up = self.nodes().map(|node| &node.up).zip(&self.tor.inlets.ends);
        let ends = self.groups.iter().flat_map(|group| &group.inlets.ends);
        let down = self.tor.lanes.iter().map(|lane| &lane.down).zip(ends);
        let trunks = self.tor.trunks.iter().map(|trunk| (&trunk.link, &trunk.far));
        up.chain(down)
            .chain(trunks)
            .map(|(link, far)| (LinkStats { delivered: far.delivered, ..link.stats }, far.in_flight()))
    }

    /// All hosts with their ends of the links.
    pub fn nodes(&self) -> impl Iterator<Item = &HostEnd> {
        self.groups.iter().flat_map(|group| &group.nodes)
    }

    /// One host with its ends of the link.
    pub fn node(&self, host: u16) -> &HostEnd {
        let group = &self.groups[usize::from(self.plan.group_of[usize::from(host)])];
        &group.nodes[usize::from(host) - group.first]
    }

    /// All hosts.
    pub fn hosts(&self) -> impl Iterator<Item = &Host> {
        self.nodes().map(|node| &node.host)
    }
}
