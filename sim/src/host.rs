//! A host: its PL2 machine, and the threads that feed it.

use crate::experiment::{Experiment, Kind, Place};
use crate::message::{Flow, FlowId, Head, MTU, Messages, mac_of};
use p4rack_fabric::pl2::{Config, Endpoint, Peer, Scheme};
use p4rack_wire::Nanos;
use std::collections::VecDeque;

/// Frames that the machine is given ahead of those it has reserved slots for, so that a reservation
/// never waits for the threads.
const AHEAD: usize = 8;

/// One host.
#[derive(Debug)]
pub(crate) struct Host {
    pub index: usize,
    pub endpoint: Endpoint,
    /// To each other host: flows that have something to send.
    outlets: Vec<Outlet>,
    /// Most frames the machine holds for one destination.
    window: usize,
    /// Frames after which the next thread has its turn.
    burst: u8,
    buffer: Box<[u8; 1_514]>,
    /// When it falls silent.
    pub dies: Nanos,
}

#[derive(Debug, Default)]
struct Outlet {
    flows: VecDeque<FlowId>,
    /// Frames of the first flow since it has its turn.
    turn: u8,
}

/// What feeding did that somebody else has to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fed {
    /// Nothing to give, or no room.
    Nothing,
    /// A frame.
    Frame,
    /// The last frame of a flow's last message.
    FlowEmpty(FlowId),
}

impl Host {
    pub fn new(experiment: &Experiment, index: usize) -> Result<Host, String> {
        let config = config(experiment, index);
        config.check().map_err(|error| error.to_string())?;
        let spec = &experiment.spec.scheme;
        let window = match spec.kind {
            // A transmit ring: enough to keep the wire busy.
            Kind::Ethernet => 32,
            _ => spec.in_flight * usize::from(spec.k) + AHEAD,
        };
        let hosts = experiment.spec.rack.hosts;
        Ok(Host {
            index,
            endpoint: Endpoint::new(
                config,
                experiment.spec.seed.wrapping_mul(1_000) + index as u64,
                Nanos::ZERO,
            ),
            outlets: (0..hosts).map(|_| Outlet::default()).collect(),
            window,
            burst: spec.k.max(1),
            buffer: Box::new([0; 1_514]),
            dies: experiment.fails_at(index).unwrap_or(Nanos::MAX),
        })
    }

    /// A flow of this host has a message to send.
    pub fn list(&mut self, id: FlowId, flow: &mut Flow) {
        if !flow.listed {
            flow.listed = true;
            self.outlets[usize::from(flow.dst)].flows.push_back(id);
        }
    }

    /// Whether something waits for `destination`.
    pub fn has_for(&self, destination: usize) -> bool {
        !self.outlets[destination].flows.is_empty()
    }

    /// Gives the machine one frame for `destination`, if it has room for it.
    pub fn feed(
        &mut self,
        destination: usize,
        flows: &mut [Flow],
        messages: &mut Messages,
        now: Nanos,
    ) -> Fed {
        let outlet = &mut self.outlets[destination];
        let Some(&id) = outlet.flows.front() else { return Fed::Nothing };
        if self.endpoint.backlog_to(mac_of(destination)) >= self.window {
            return Fed::Nothing;
        }
        let flow = &mut flows[id as usize];
        let Some(&number) = flow.queue.front() else { return Fed::Nothing };
        let message = messages.get_mut(number);
        let bytes = message.unsent.min(MTU);
        message.unsent -= bytes;
        let whole = message.unsent == 0;
        let head = Head { flow: id, message: number, sequence: flow.next_out, bytes: bytes as u16 };
        flow.next_out = flow.next_out.wrapping_add(1);
        self.endpoint.handle_app(head.emit(self.index, destination, &mut self.buffer), now);
        outlet.turn += 1;
        if whole {
            flow.queue.pop_front();
        }
        let empty = whole && flow.queue.is_empty();
        if empty {
            flow.listed = false;
            outlet.flows.pop_front();
            outlet.turn = 0;
            return Fed::FlowEmpty(id);
        }
        if whole || outlet.turn >= self.burst {
            outlet.turn = 0;
            outlet.flows.rotate_left(1);
        }
        Fed::Frame
    }
}

/// The machine's parameters.
fn config(experiment: &Experiment, index: usize) -> Config {
    let (spec, rack) = (&experiment.spec.scheme, &experiment.rack);
    let scheme = match spec.kind {
        Kind::Ethernet => Scheme::Off,
        Kind::Pl2Counter => Scheme::Counter,
        Kind::Pl2Clock => Scheme::Clock,
    };
    let host = &rack.hosts[index];
    let mut config = Config::new(host.mac, scheme, host.rate_bps);
    let others = rack.hosts.iter().filter(|other| other.port != host.port);
    config.peers = others.map(|other| Peer { mac: other.mac, slot: other.slot }).collect();
    config.k = spec.k;
    config.t_slots = spec.t;
    config.shim = spec.shim;
    config.slot = host.slot;
    config.in_flight = spec.in_flight;
    config.fresh = spec.fresh_ns.map(Nanos);
    config.time_unit = Nanos(rack.switch.time_unit_ns);
    config.grt_timeout_min = Nanos::from_micros(spec.grt_timeout_us);
    config.grt_timeout_max = Nanos::from_micros(spec.grt_timeout_us.saturating_mul(20));
    config.release_after = Nanos::from_micros(20);
    config.delay_window = Nanos::from_millis(10);
    // Drivers are never late here.
    config.catch_up = Nanos::ZERO;
    config.total_limit_frames = usize::MAX;
    if let (Some(pl2), true) = (&rack.pl2, scheme != Scheme::Off) {
        config.ether_type = pl2.ether_type;
        config.vid = pl2.vid;
    }
    if experiment.spec.nic.place == Place::Host {
        config.delay_window = Nanos::from_millis(20);
    }
    config
}
