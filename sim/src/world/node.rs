//! A host and its cable to the switch. State that one host's frames touch is adjacent in memory, at
//! each end.

use super::plan;
use crate::check::Digest;
use crate::experiment::{Experiment, MachineLocation};
use crate::flow::{Inflow, Outflow};
use crate::host::Host;
use crate::link::{Delays, FarEnd, Faults, Link};
use crate::random::{Distribution, Random};
use crate::scheme::HostWatcher;
use std::sync::Arc;

/// One host, and its end of the cable.
#[derive(Debug)]
pub(crate) struct HostEnd {
    /// Machine and threads.
    pub host: Host,
    /// To the switch, its pipeline included.
    pub up: Link,
    /// Flows that it sends, and those that it receives.
    pub outflows: Vec<Outflow>,
    pub inflows: Vec<Inflow>,
    /// Checks of its scheme.
    pub watcher: HostWatcher,
    /// Checksum of the frames that it received from the switch.
    pub digest_down: Digest,
    /// Bytes of application payload that arrived since the warm-up.
    pub received: u64,
}

/// The switch's end of one host's cable.
#[derive(Debug)]
pub(crate) struct Lane {
    /// To the host.
    pub down: Link,
    /// Its switch port.
    pub port: u16,
    /// Index of the shared port, if that is one.
    pub trunk: Option<usize>,
    /// Checksum of the frames that the switch received from it.
    pub digest_up: Digest,
    /// How much of the buffer its frames take, for pauses.
    pub held: Held,
}

/// Delays of links and buses, the same for all hosts.
pub(crate) struct Times {
    /// A cable and its ends, nanoseconds.
    pub wire: Arc<Distribution>,
    /// A host's bus, nanoseconds.
    pub dma: Arc<Distribution>,
    /// The switch's pipeline, nanoseconds.
    pub pipeline: Arc<Distribution>,
    /// Buffer of a shared port's lane, bytes.
    pub lane_bytes: u64,
}

/// A rack's hosts, the switch's ends of their cables, and the ports that some of them share.
pub(crate) type Cabled = (Vec<HostEnd>, Vec<Lane>, Vec<Trunk>);

/// Creates all hosts and cables.
pub(super) fn all(experiment: &Experiment, times: &Times, flows: Vec<plan::Flows>) -> Result<Cabled, String> {
    let (trunks, trunk_of) = trunks(experiment, times.lane_bytes);
    let (mut nodes, mut lanes) = (Vec::new(), Vec::new());
    for (host, (outflows, inflows)) in flows.into_iter().enumerate() {
        let spec = &experiment.spec;
        let bus = (spec.nic.place == MachineLocation::Host).then(|| times.dma.clone());
        let link = |direction: u64, before, after| {
            let delays = Delays { before, wire: times.wire.clone(), after };
            let random = Random::stream(spec.seed, 2 * host as u64 + direction);
            Link::new(experiment.rack.hosts[host].rate_bps, delays, &experiment.faults(host), random)
        };
        let (down, trunk) = (link(1, None, bus.clone()), trunk_of[host]);
        nodes.push(HostEnd {
            host: Host::new(experiment, host)?,
            up: link(0, bus, Some(times.pipeline.clone())),
            outflows,
            inflows,
            watcher: HostWatcher::new(experiment),
            digest_down: Digest::new(),
            received: 0,
        });
        lanes.push(Lane {
            down: if trunk.is_some() { down.bounded(times.lane_bytes) } else { down },
            port: experiment.rack.hosts[host].port,
            trunk,
            digest_up: Digest::new(),
            held: Held::default(),
        });
    }
    Ok((nodes, lanes, trunks))
}

/// One host's share of the buffer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Held {
    pub bytes: u64,
    /// Whether the last order to the host was to pause.
    pub paused: bool,
}

/// A shared port, as seen from its hosts.
#[derive(Debug)]
pub(crate) struct Trunk {
    pub port: u16,
    pub link: Link,
    pub far: FarEnd,
}

/// The shared ports, and which of them each host uses.
fn trunks(experiment: &Experiment, buffer_bytes: u64) -> (Vec<Trunk>, Vec<Option<usize>>) {
    let hosts = &experiment.rack.hosts;
    let mut trunks: Vec<Trunk> = Vec::new();
    let mut of_host = Vec::new();
    for host in hosts {
        if hosts.iter().filter(|other| other.port == host.port).count() < 2 {
            of_host.push(None);
            continue;
        }
        let at = trunks.iter().position(|trunk| trunk.port == host.port).unwrap_or_else(|| {
            // Chips on one board: no delay besides the port's rate.
            let delays = Delays { before: None, wire: Arc::new(Distribution::constant(0)), after: None };
            let link = Link::new(host.port_rate_bps, delays, &Faults::default(), Random::new(0));
            trunks.push(Trunk { port: host.port, link: link.bounded(buffer_bytes), far: FarEnd::new() });
            trunks.len() - 1
        });
        of_host.push(Some(at));
    }
    (trunks, of_host)
}
