//! The rack in virtual time: the loop that moves frames, and what it moves them between.
//!
//! ```text
//!  threads ─ Host ─▶ up link ─▶ pipeline delay ─▶ switch (generated P4, traffic manager) ─▶ down link ─▶ Host
//! ```

mod hostile;
mod hosts;
mod lookahead;
mod messages;
mod node;
mod pfc;
mod sources;
mod switch;
mod transports;
mod trunk;

use crate::agenda::{Agenda, HostEvent, RackEvent};
use crate::check::Digest;
use crate::experiment::{Experiment, MachineLocation};
use crate::flow::Flow;
use crate::frames::Frames;
use crate::host::Host;
use crate::hostile::Others;
use crate::link::Link;
use crate::message::{FlowId, Head};
use crate::random::{Between, Quantiles};
use crate::record::Recorder;
use crate::schedule::{Dues, Schedule};
use crate::scheme::{Watch, Watcher};
use crate::switch::{Model, SwitchError, SwitchModel};
use crate::traffic::Traffic;
use crate::transport::Transport;
use p4rack_codegen::rack::units::parse_size;
use p4rack_wire::Nanos;
use std::sync::Arc;

pub(crate) use node::Node;

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
    pub experiment: Experiment,
    pub now: Nanos,
    lookahead: lookahead::Lookahead,
    /// What concerns the whole rack.
    agenda: Agenda<RackEvent>,
    /// When each host has something to do, or somewhat earlier.
    hosts_due: Dues,
    /// When each host's link, each trunk and, last, the controller bring something to the switch.
    inlets: Schedule,
    /// When the switch has something to send or to look after, and the time up to which it has come.
    model_due: Nanos,
    switch_now: Nanos,
    frames: Frames,
    pub switch: SwitchModel,
    /// What the scheme watches.
    pub watcher: Watcher,
    /// By host.
    pub nodes: Vec<Node>,
    /// Ports that hosts share.
    pub trunks: Vec<trunk::Trunk>,
    pub flows: Vec<Flow>,
    /// Messages made.
    pub messages_made: u64,
    pub traffic: Vec<Traffic>,
    dma: Option<Arc<Quantiles>>,
    pub recorder: Option<Box<Recorder>>,
    pub measuring: bool,
    /// Frames that passed the switch.
    pub hops: u64,
    pub frames_given: u64,
    pub frames_delivered: u64,
    pub frames_to_dead: u64,
    pub out_of_order: u64,
    /// Switch's counters up to the end of the warm-up.
    pub before: Before,
    /// Where hosts may be hostile: what becomes of the others' messages.
    pub others: Option<Box<Others>>,
    pub sources_end: Nanos,
    pub planted: Option<Planted>,
    /// With a planted fault: what was held back, until it is given.
    held: Option<Option<Head>>,
    /// Frames of transports' own.
    told: u64,
    /// Whether any traffic has a transport.
    transports: bool,
    /// Whether frames may have to be marked.
    marks: bool,
    pause_delay: Nanos,
    /// Pauses that the switch asked for, and what it told hosts of them and their ends.
    pub pauses: u64,
    pauses_told: u64,
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
    pub fn new(experiment: Experiment) -> Result<World, SimError> {
        let spec = &experiment.spec;
        let hosts = spec.rack.hosts;
        let switch = SwitchModel::new(&experiment)?;
        let quantiles = |points: &[(f64, f64)]| {
            Quantiles::new(points, Between::Linear).map(Arc::new).map_err(SimError::Parameter)
        };
        let times = node::Times {
            wire: quantiles(&spec.link.delay_ns)?,
            dma: quantiles(&spec.nic.dma_ns)?,
            pipeline: quantiles(&spec.rack.pipeline_ns)?,
            lane_bytes: parse_size(&spec.rack.lane_buffer).map_err(SimError::Parameter)?,
        };
        let pause_delay = World::pause_delay(&spec.link.delay_ns);
        let (mut flows, mut traffic) = (Vec::new(), Vec::new());
        for nth in 0..spec.traffic.len() {
            let one = Traffic::new(&experiment, nth, flows.len() as FlowId).map_err(SimError::Parameter)?;
            for flow in one.flows.clone() {
                let (src, dst) = one.ends(flow);
                flows.push(Flow::new(src, dst, nth, transports::machine(&experiment, nth, src)));
            }
            traffic.push(one);
        }
        let (nodes, trunks) = Node::all(&experiment, &times).map_err(SimError::Parameter)?;
        let watcher = Watcher::new(&experiment);
        let sources_end = Nanos::from_micros(spec.duration_us);
        let mut world = World {
            now: Nanos::ZERO,
            lookahead: lookahead::Lookahead::new(
                &experiment,
                &nodes,
                pause_delay,
                watcher.controller_delay(),
            ),
            agenda: Agenda::new(),
            hosts_due: Dues::new(hosts),
            inlets: Schedule::new(hosts + trunks.len() + 1),
            model_due: Nanos::MAX,
            switch_now: Nanos::ZERO,
            frames: Frames::default(),
            switch,
            watcher,
            nodes,
            trunks,
            flows,
            messages_made: 0,
            traffic,
            dma: (spec.nic.place == MachineLocation::Nic).then_some(times.dma),
            recorder: None,
            measuring: false,
            hops: 0,
            frames_given: 0,
            frames_delivered: 0,
            frames_to_dead: 0,
            out_of_order: 0,
            before: Before::default(),
            others: Others::of(&experiment),
            sources_end,
            planted: None,
            held: None,
            told: 0,
            transports: spec.traffic.iter().any(|traffic| traffic.transport != Transport::Raw),
            marks: World::marks(&experiment),
            pause_delay,
            pauses: 0,
            pauses_told: 0,
            experiment,
        };
        world.begin();
        Ok(world)
    }

    fn begin(&mut self) {
        self.agenda.push(Nanos::from_micros(self.experiment.spec.warmup_us), RackEvent::Warm);
        for nth in 0..self.traffic.len() {
            self.agenda.push(self.traffic[nth].start, RackEvent::Start(nth));
        }
        for host in 0..self.nodes.len() {
            if self.nodes[host].host.hostile.is_some() {
                self.hosts_due.hasten(host, Nanos::ZERO);
                self.nodes[host].host.machine_due = Nanos::ZERO;
            }
            if self.nodes[host].host.dies != Nanos::MAX {
                self.at_host(host, self.nodes[host].host.dies, HostEvent::Die);
            }
        }
    }

    /// Notes an event at a host.
    fn at_host(&mut self, host: usize, time: Nanos, event: HostEvent) {
        self.nodes[host].host.agenda.push(time, event);
        self.hosts_due.hasten(host, time);
    }

    /// Checksum of all that happened.
    pub fn digest(&self) -> u64 {
        let mut all = Digest::new();
        for node in &self.nodes {
            all.add(node.digest_up.0);
            all.add(node.digest_down.0);
        }
        all.0
    }

    fn warm(&mut self) {
        self.measuring = true;
        self.watcher.warm();
        let stats = self.switch.stats(self.now);
        self.before.rx += stats.ports.iter().map(|port| port.rx_frames).sum::<u64>();
        self.before.tx += stats.ports.iter().map(|port| port.tx_frames).sum::<u64>();
        self.before.clones += stats.clones;
        self.before.drops += stats.drops.iter().map(|(_, count)| count).sum::<u64>();
        self.switch.reset_stats(self.now);
    }

    /// Frames on links, of both directions.
    pub fn on_links(&self) -> usize {
        self.links().map(Link::in_flight).sum()
    }

    /// All links, and what shared ports have before the switch.
    pub fn links(&self) -> impl Iterator<Item = &Link> {
        let hosts = self.nodes.iter().flat_map(|node| [&node.up, &node.down]);
        hosts.chain(self.trunks.iter().map(|trunk| &trunk.link))
    }

    /// All hosts.
    pub fn hosts(&self) -> impl Iterator<Item = &Host> {
        self.nodes.iter().map(|node| &node.host)
    }
}
