//! State that all parts of a rack share, because it does not change while the rack runs.

use super::{Planted, SimError};
use crate::experiment::{Experiment, MachineLocation, SchemeKind, TimedFrom};
use crate::flow::{Ends, Inflow, Machine, Outflow};
use crate::host::rds_config;
use crate::hostile::Watched;
use crate::message::FlowId;
use crate::random::Distribution;
use crate::traffic::{Source, Traffic};
use crate::transport::tcp::{self, Config, Control};
use crate::transport::{Transport, rds};
use p4rack_wire::Nanos;
use std::sync::Arc;

/// See the module.
#[derive(Debug)]
pub(crate) struct Plan {
    pub experiment: Experiment,
    pub traffic: Vec<Traffic>,
    pub flows: Vec<Ends>,
    pub sources_end: Nanos,
    /// Time that a message takes over its host's bus, if the machine runs in the NIC.
    pub dma: Option<Arc<Distribution>>,
    /// Whether any traffic has a transport.
    pub transports: bool,
    /// Whether frames may have to be marked.
    pub marks: bool,
    /// Time from a host's report to the controller's action at the switch; `None`: hosts report nothing.
    pub reports: Option<Nanos>,
    pub pause_delay: Nanos,
    /// Which hosts may be hostile, if any may.
    pub watched: Option<Watched>,
    pub planted: Option<Planted>,
    /// Each host's group.
    pub group_of: Vec<u16>,
}

/// A host's flows: those that it sends and those that it receives.
pub(super) type Flows = (Vec<Outflow>, Vec<Inflow>);

impl Plan {
    /// The plan, where messages come from, and each host's flows. Hosts are in `groups` groups of neighbours.
    pub fn new(
        experiment: Experiment,
        dma: Arc<Distribution>,
        reports: Option<Nanos>,
        planted: Option<Planted>,
        groups: usize,
    ) -> Result<(Plan, Vec<Source>, Vec<Flows>), SimError> {
        let spec = &experiment.spec;
        let hosts = spec.rack.hosts;
        let mut of_hosts: Vec<Flows> = (0..hosts).map(|_| (Vec::new(), Vec::new())).collect();
        let (mut traffic, mut sources, mut flows) = (Vec::new(), Vec::new(), Vec::new());
        for (nth, spec) in spec.traffic.iter().enumerate() {
            let (one, source) =
                Traffic::new(&experiment, nth, flows.len() as FlowId).map_err(SimError::Parameter)?;
            let from_turn = spec.timed_from == TimedFrom::Turn;
            for id in one.flows.clone() {
                let (src, dst) = one.ends(id);
                let (out, into) = (of_hosts[src].0.len() as u32, of_hosts[dst].1.len() as u32);
                let raw = spec.transport == Transport::Raw;
                let ends = Ends { src: src as u16, dst: dst as u16, traffic: nth as u16, raw, out, into };
                let machine = machine(&experiment, nth, src);
                of_hosts[src].0.push(Outflow::new(id, &ends, from_turn, machine));
                of_hosts[dst].1.push(Inflow::new(spec.transport.is_tcp()));
                flows.push(ends);
            }
            traffic.push(one);
            sources.push(source);
        }
        let plan = Plan {
            traffic,
            flows,
            sources_end: Nanos::from_micros(spec.duration_us),
            dma: (spec.nic.place == MachineLocation::Nic).then_some(dma),
            transports: spec.traffic.iter().any(|traffic| traffic.transport != Transport::Raw),
            marks: marks(&experiment),
            reports,
            pause_delay: pause_delay(spec.link.delay_ns()),
            watched: Watched::of(&experiment),
            planted,
            group_of: (0..hosts).map(|host| (host * groups / hosts) as u16).collect(),
            experiment,
        };
        Ok((plan, sources, of_hosts))
    }
}

/// The transport of a flow from `src` that belongs to traffic `nth`.
fn machine(experiment: &Experiment, nth: usize, src: usize) -> Machine {
    let (spec, transport) = (&experiment.spec.transport, experiment.spec.traffic[nth].transport);
    match transport {
        Transport::Raw => Machine::Raw,
        Transport::Rds => Machine::Rds(Box::new(rds::Sender::new(rds_config(experiment, src)))),
        Transport::Tcp | Transport::Cubic | Transport::Dctcp => {
            let config = Config {
                window_bytes: spec.window_bytes.into(),
                rto_min: Nanos::from_micros(spec.rto_min_us),
                probe_min: Nanos::from_micros(spec.probe_min_us),
            };
            Machine::Tcp(Box::new(tcp::Sender::new(config, Control::new(transport, spec.window_bytes))))
        }
    }
}

/// Whether any traffic's frames may be marked.
fn marks(experiment: &Experiment) -> bool {
    experiment.spec.scheme.kind == SchemeKind::L2
        && experiment.spec.traffic.iter().any(|traffic| traffic.transport == Transport::Dctcp)
}

/// Delay of a pause frame.
fn pause_delay(points: &[(f64, f64)]) -> Nanos {
    let above = points.iter().find(|(share, _)| *share >= 0.5);
    Nanos(above.map_or(0, |(_, ns)| *ns as u64))
}
