//! A host and its cable to the switch: all that one host's frames touch lies together.

use super::{pfc, trunk};
use crate::check::Digest;
use crate::experiment::{Experiment, MachineLocation};
use crate::host::Host;
use crate::link::{Delays, Link};
use crate::random::{Quantiles, Random};
use std::sync::Arc;

/// One host in the rack.
#[derive(Debug)]
pub(crate) struct Node {
    /// Machine and threads.
    pub host: Host,
    /// To the switch, its pipeline included.
    pub up: Link,
    /// From the switch.
    pub down: Link,
    /// Its switch port.
    pub port: u16,
    /// Which of the shared ports that is.
    pub trunk: Option<usize>,
    /// Of what came to the switch from it.
    pub digest_up: Digest,
    /// Of what came to it from the switch.
    pub digest_down: Digest,
    /// Bytes of application payload that arrived since the warm-up.
    pub received: u64,
    /// What the switch holds of its frames, for pauses.
    pub held: pfc::Held,
}

/// What links and buses take, the same for all.
pub(crate) struct Times {
    /// A cable and its ends, nanoseconds.
    pub wire: Arc<Quantiles>,
    /// A host's bus, nanoseconds.
    pub dma: Arc<Quantiles>,
    /// The switch's pipeline, nanoseconds.
    pub pipeline: Arc<Quantiles>,
    /// Most that a lane of a shared port holds.
    pub lane_bytes: u64,
}

impl Node {
    /// All nodes, and the ports that some of them share.
    pub fn all(experiment: &Experiment, times: &Times) -> Result<(Vec<Node>, Vec<trunk::Trunk>), String> {
        let (trunks, trunk_of) = trunk::trunks(experiment, times.lane_bytes);
        let nodes = (0..trunk_of.len()).map(|host| Node::new(experiment, host, trunk_of[host], times));
        Ok((nodes.collect::<Result<_, _>>()?, trunks))
    }

    fn new(
        experiment: &Experiment,
        host: usize,
        trunk: Option<usize>,
        times: &Times,
    ) -> Result<Node, String> {
        let spec = &experiment.spec;
        let bus = (spec.nic.place == MachineLocation::Host).then(|| times.dma.clone());
        let link = |direction: u64, before, after| {
            let delays = Delays { before, wire: times.wire.clone(), after };
            let random = Random::stream(spec.seed, 2 * host as u64 + direction);
            Link::new(experiment.rack.hosts[host].rate_bps, delays, &experiment.faults(host), random)
        };
        let down = link(1, None, bus.clone());
        Ok(Node {
            host: Host::new(experiment, host)?,
            up: link(0, bus, Some(times.pipeline.clone())),
            down: if trunk.is_some() { down.bounded(times.lane_bytes) } else { down },
            port: experiment.rack.hosts[host].port,
            trunk,
            digest_up: Digest::new(),
            digest_down: Digest::new(),
            received: 0,
            held: pfc::Held::default(),
        })
    }
}
