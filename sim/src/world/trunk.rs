//! Switch ports that several hosts share: what their lanes bring goes through one port, what the port brings is
//! parted among the lanes.

use super::World;
use crate::experiment::Experiment;
use crate::frames::FrameId;
use crate::link::{Delays, Faults, Link};
use crate::message::host_of;
use crate::random::{Quantiles, Random};
use std::sync::Arc;

/// One shared port's end towards the switch.
#[derive(Debug)]
pub(crate) struct Trunk {
    pub port: u16,
    pub link: Link,
}

/// The shared ports, and each host's, if it shares one.
pub(super) fn trunks(experiment: &Experiment, buffer_bytes: u64) -> (Vec<Trunk>, Vec<Option<usize>>) {
    let hosts = &experiment.rack.hosts;
    let mut trunks: Vec<Trunk> = Vec::new();
    let mut of_host = Vec::new();
    for host in hosts {
        if hosts.iter().filter(|other| other.port == host.port).count() < 2 {
            of_host.push(None);
            continue;
        }
        let at = trunks.iter().position(|trunk| trunk.port == host.port).unwrap_or_else(|| {
            // Chips on one board: no delay beyond the port's own rate.
            let delays = Delays { before: None, wire: Arc::new(Quantiles::constant(0)), after: None };
            let link = Link::new(host.port_rate_bps, delays, &Faults::default(), Random::new(0));
            trunks.push(Trunk { port: host.port, link: link.bounded(buffer_bytes) });
            trunks.len() - 1
        });
        of_host.push(Some(at));
    }
    (trunks, of_host)
}

impl World {
    /// A frame of a lane goes on to the port.
    pub(super) fn enter_trunk(&mut self, trunk: usize, frame: FrameId) {
        self.trunks[trunk].link.send(frame, self.now, &mut self.frames);
        self.show_trunk(trunk);
    }

    /// A frame has come through a shared port.
    pub(super) fn leave_trunk(&mut self, trunk: usize) {
        if let Some(received) = self.trunks[trunk].link.receive(self.now) {
            let source = self.frames.get(received.frame).get(6..).and_then(host_of);
            match source.filter(|host| *host < self.nodes.len()) {
                Some(host) => self.at_port(host, received.frame),
                None => self.frames.give_back(received.frame),
            }
        }
        self.show_trunk(trunk);
    }

    fn show_trunk(&mut self, trunk: usize) {
        let due = self.trunks[trunk].link.due();
        self.inlets.set(self.nodes.len() + trunk, due);
    }

    /// The host that a frame leaving by `port` is for.
    #[inline]
    pub(super) fn host_at(&self, port: u16, frame: FrameId) -> usize {
        let first = usize::from(port) - 1;
        if self.nodes[first].trunk.is_none() {
            return first;
        }
        host_of(self.frames.get(frame)).filter(|host| *host < self.nodes.len()).unwrap_or(first)
    }
}
