//! A host: its state machine, and the threads that feed it.

use crate::agenda::{HostEvent, RankedAgenda};
use crate::check::Digest;
use crate::experiment::{Experiment, MachineLocation, SchemeKind};
use crate::flow::{Machine, Outflow, Part};
use crate::message::{FlowId, MTU, MessageId, mac_of};
use crate::random::Random;
use crate::transport::tcp;
use crate::transport::wire::Pdu;
use crate::transport::{Transport, rds};
use p4rack_codegen::endpoint_config;
use p4rack_fabric::hostile::Hostile;
use p4rack_fabric::{Config, Endpoint, HostMachine as _, Machine as _, pl2};
use p4rack_wire::Nanos;
use p4rack_wire::ethernet::overhead::wire_bytes;
use std::collections::VecDeque;

/// Number of frames that the machine gets beyond those it has reserved slots for, so that a reservation
/// never waits for the threads.
const AHEAD: usize = 8;

/// Bytes at a frame's start that the simulator reads: headers, and fields of transports.
const SNAP_BYTES: usize = 128;
/// The same if no traffic has a transport: a message's fields, and the bytes that checksums cover.
const SNAP_BYTES_RAW: usize = 48;
const _: () = assert!(SNAP_BYTES_RAW >= Digest::LOOKS_TO);

/// One host.
#[derive(Debug)]
pub(crate) struct Host {
    pub index: usize,
    pub endpoint: Endpoint,
    /// The time up to which it has run.
    pub now: Nanos,
    /// When the machine has something to do; `Nanos::MAX`: never.
    pub machine_due: Nanos,
    pub agenda: RankedAgenda<HostEvent>,
    pub random: Random,
    /// Per destination: flows that have something to send, by their index at this host.
    outlets: Vec<Outlet>,
    /// Per destination: its position in the machine.
    peers: Vec<Option<usize>>,
    /// Maximum number of frames that the machine holds for one destination.
    window: usize,
    /// Whether each thread may have a reservation in flight.
    by_thread: bool,
    /// Number of frames after which it is the next thread's turn.
    burst: u8,
    buffer: Box<[u8; 1_514]>,
    /// RDS's receiving end, and the time of its timer on the agenda.
    pub rds: rds::Receiver,
    pub rds_at: Nanos,
    /// Whether the switch has paused it.
    pub paused: bool,
    /// When it falls silent.
    pub dies: Nanos,
    /// A sender in place of the machine.
    pub hostile: Option<Box<Hostile>>,
}

#[derive(Debug, Default)]
struct Outlet {
    flows: VecDeque<u32>,
    /// Frames that the first flow has sent in this turn.
    turn: u8,
}

/// A result of feeding that the caller has to act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fed {
    /// There is nothing left to give, or no room.
    Nothing,
    /// A frame of a flow with a transport, which may have a timer now.
    Carried(u32),
    /// The last frame of a flow's last message.
    FlowEmpty(u32),
}

impl Host {
    pub fn new(experiment: &Experiment, index: usize) -> Result<Host, String> {
        let config = config(experiment, index)?;
        config.check().map_err(|error| error.to_string())?;
        let spec = &experiment.spec.scheme;
        let window = match spec.kind {
            // A transmit ring that is long enough to keep the wire busy.
            SchemeKind::L2 => 32,
            _ => spec.in_flight() * usize::from(spec.k_slots()) + AHEAD,
        };
        let hosts = experiment.spec.rack.hosts;
        let seed = experiment.spec.seed.wrapping_mul(1_000) + index as u64;
        let endpoint = Endpoint::new(config, seed, Nanos::ZERO);
        Ok(Host {
            index,
            peers: (0..hosts).map(|host| endpoint.position_of(mac_of(host))).collect(),
            endpoint,
            now: Nanos::ZERO,
            machine_due: Nanos::MAX,
            agenda: RankedAgenda::new(),
            random: Random::stream(experiment.spec.seed, 0x0d3a_0000 + index as u64),
            outlets: (0..hosts).map(|_| Outlet::default()).collect(),
            window,
            by_thread: spec.by_thread(),
            burst: spec.k_slots().max(1),
            buffer: Box::new([0; 1_514]),
            rds: rds::Receiver::new(rds_config(experiment, index)),
            rds_at: Nanos::MAX,
            paused: false,
            dies: experiment.fails_at(index).unwrap_or(Nanos::MAX),
            hostile: experiment
                .hostile(index)
                .map(|config| Box::new(Hostile::new(config, seed, Nanos::ZERO))),
        })
    }

    /// A flow of this host has a message to send.
    pub fn list(&mut self, at: u32, flow: &mut Outflow) {
        if !flow.listed {
            flow.listed = true;
            self.outlets[usize::from(flow.dst)].flows.push_back(at);
        }
    }

    /// Whether something waits to be sent to `destination`.
    pub fn has_for(&self, destination: usize) -> bool {
        !self.outlets[destination].flows.is_empty()
    }

    /// When its machine has something to send or a timeout; `Nanos::MAX`: never.
    #[inline]
    pub fn due(&self) -> Nanos {
        if self.paused { Nanos::MAX } else { self.endpoint.next_timeout().unwrap_or(Nanos::MAX) }
    }

    /// Gives the machine frames for `destination` until it is full or the caller has to act, and counts them.
    /// Calls `begins` for messages whose time starts now.
    pub fn feed(
        &mut self,
        destination: usize,
        flows: &mut [Outflow],
        now: Nanos,
        given: &mut u64,
        mut begins: impl FnMut(FlowId, MessageId),
    ) -> Fed {
        let peer = self.peers[destination];
        loop {
            let backlog = peer.map_or(0, |peer| self.endpoint.backlog_at(peer));
            let limit = self.endpoint.station().queue_limit_frames;
            let window = if self.by_thread { limit } else { self.window };
            if backlog >= limit.min(4 * window) {
                return Fed::Nothing;
            }
            if self.by_thread && !self.bring_forward(destination, limit - backlog, flows) {
                return Fed::Nothing;
            }
            let outlet = &mut self.outlets[destination];
            if backlog >= window {
                // Several short frames share a slot.
                let first = outlet.flows.front().and_then(|at| flows[*at as usize].queue.front());
                if first.is_none_or(|message| message.unsent > MTU / 4) {
                    return Fed::Nothing;
                }
            }
            // A transport may have nothing to send even if messages wait.
            let at = loop {
                let Some(&at) = outlet.flows.front() else { return Fed::Nothing };
                let flow = &mut flows[at as usize];
                if matches!(flow.transport, Machine::Raw) || flow.transport.can_send() {
                    break at;
                }
                flow.listed = false;
                outlet.flows.pop_front();
                outlet.turn = 0;
            };
            let flow = &mut flows[at as usize];
            let raw = matches!(flow.transport, Machine::Raw);
            let (message, first, whole) = if raw {
                let Some((head, first, whole)) = flow.part() else { return Fed::Nothing };
                let frame = head.emit(self.index, destination, &mut self.buffer);
                hand_over(&mut self.endpoint, frame, flow.id, self.by_thread, now);
                (head.message, first, whole)
            } else {
                let Some(part) = flow.carried(now) else { return Fed::Nothing };
                let frame = part.frame.emit(self.index, destination, part.header_bytes, &mut self.buffer);
                hand_over(&mut self.endpoint, frame, flow.id, self.by_thread, now);
                (part.frame.message, part.begins, part.whole)
            };
            if first && flow.from_turn {
                begins(flow.id, message);
            }
            *given += 1;
            outlet.turn += 1;
            if whole {
                flow.queue.pop_front();
                if flow.queue.is_empty() && (raw || !flow.transport.can_send()) {
                    flow.listed = false;
                    outlet.flows.pop_front();
                    outlet.turn = 0;
                    return Fed::FlowEmpty(at);
                }
            }
            if whole || outlet.turn >= self.burst {
                outlet.turn = 0;
                outlet.flows.pop_front();
                outlet.flows.push_back(at);
            }
            if !raw {
                return Fed::Carried(at);
            }
        }
    }
}

/// Gives the machine a thread's frame; `by_thread`: as one of the thread's flow.
fn hand_over(machine: &mut Endpoint, frame: &[u8], flow: FlowId, by_thread: bool, now: Nanos) {
    match machine {
        Endpoint::Pl2(machine) if by_thread => machine.handle_flow(frame, flow, now),
        machine => machine.handle_app(frame, now),
    }
}

impl Host {
    /// Threads have reservations of their own: brings forward the first flow to `destination` that may hand over a
    /// frame, where the machine has room for this many. A thread hands over its next message when the one before is
    /// reserved, and no more of one than it takes to see that it is longer than a reservation. False if no flow may.
    fn bring_forward(&mut self, destination: usize, room: usize, flows: &[Outflow]) -> bool {
        let (Some(peer), Endpoint::Pl2(machine)) = (self.peers[destination], &self.endpoint) else {
            return true;
        };
        let outlet = &mut self.outlets[destination];
        let wants = |at: &u32| {
            let flow = &flows[*at as usize];
            let backlog = machine.backlog_of(peer, flow.id);
            let begun = flow.queue.front().is_some_and(|message| message.unsent < message.size);
            let raw = matches!(flow.transport, Machine::Raw);
            backlog == 0 || (begun || !raw) && backlog < room.min(usize::from(self.burst) + 1)
        };
        let Some(first) = outlet.flows.iter().position(wants) else { return false };
        if first > 0 {
            outlet.turn = 0;
            outlet.flows.rotate_left(first);
        }
        true
    }

    /// Messages of a flow that are not sent, as far as its thread knows. With reservations per thread, it also sees
    /// its backlog in the machine.
    pub fn waiting(&self, flow: &Outflow) -> usize {
        let at_machine = match (&self.endpoint, self.peers[usize::from(flow.dst)]) {
            (Endpoint::Pl2(machine), Some(peer)) if self.by_thread => machine.backlog_of(peer, flow.id) > 0,
            _ => false,
        };
        flow.queue.len() + usize::from(at_machine)
    }

    /// Gives the machine a frame that a transport sends on its own account. It waits behind earlier frames.
    pub fn send_pdu(&mut self, destination: usize, frame: &Pdu, header_bytes: usize, now: Nanos) {
        let bytes = frame.emit(self.index, destination, header_bytes, &mut self.buffer);
        hand_over(&mut self.endpoint, bytes, frame.flow, self.by_thread, now);
    }

    /// The same for a segment beyond the window.
    pub fn probe(
        &mut self,
        id: FlowId,
        destination: usize,
        segment: &tcp::Segment,
        markable: bool,
        now: Nanos,
    ) {
        let part = Part::tcp(id, segment, markable);
        self.send_pdu(destination, &part.frame, part.header_bytes, now);
    }
}

/// RDS's parameters at a host.
pub(crate) fn rds_config(experiment: &Experiment, host: usize) -> rds::Config {
    let spec = &experiment.spec.transport;
    rds::Config {
        blind_bytes: spec.rds_blind_bytes.into(),
        active: spec.rds_active,
        timeout: Nanos::from_micros(spec.rds_timeout_us),
        frame_time: Nanos::on_wire(wire_bytes(14 + u64::from(MTU)), experiment.rack.hosts[host].rate_bps),
    }
}

/// The machine's parameters: those of an agent on the same rack, except for those that only experiments set.
fn config(experiment: &Experiment, index: usize) -> Result<Config, String> {
    let (spec, rack) = (&experiment.spec.scheme, &experiment.rack);
    let described = endpoint_config(rack, &rack.hosts[index], experiment.scheme);
    let raw = experiment.spec.traffic.iter().all(|traffic| traffic.transport == Transport::Raw);
    let in_host = experiment.spec.nic.place == MachineLocation::Host;
    let mut config = described.map_err(|error| error.to_string())?;
    let station = config.station_mut();
    // Drivers are never late in virtual time.
    station.catch_up = Nanos::ZERO;
    station.total_limit_frames = usize::MAX;
    station.snap_bytes = if raw { SNAP_BYTES_RAW } else { SNAP_BYTES };
    Ok(match config {
        Config::Ethernet(_) => config,
        Config::Pl2(described) => Config::Pl2(pl2::Config {
            notify_patience: spec.notify_receiver.then(|| Nanos::from_micros(spec.silent_after_us)),
            pack: spec.pack,
            fresh: spec.fresh_ns.map(Nanos),
            grt_timeout_min: Nanos::from_micros(spec.grt_timeout_us),
            grt_timeout_max: Nanos::from_micros(spec.grt_timeout_us.saturating_mul(20)),
            release_after: Nanos::from_micros(20),
            delay_window: Nanos::from_millis(if in_host { 20 } else { 10 }),
            ..described
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulated machines differ from the agents' only in the fields named here.
    #[test]
    fn machines_have_the_parameters_of_agents() {
        for (kind, foreign) in [("l2", ""), ("pl2-counter", "h3 = 40"), ("pl2-clock", "h3 = 40")] {
            let text = format!(
                "name = \"x\"\nduration_us = 10\n[rack]\nhosts = 3\nforeign = {{ {foreign} }}\n[scheme]\nkind = \"{kind}\"\n\
                 in_flight = 2\nlanes = 3\nk = 5\nt = 7\n[[traffic]]\nname = \"t\"\npattern = \"all-to-all\"\n\
                 arrivals = \"saturate\"\nsize = 1000\n"
            );
            let experiment = Experiment::parse(&text, "x.toml").unwrap();
            for (index, host) in experiment.rack.hosts.iter().enumerate() {
                let simulated = config(&experiment, index).unwrap();
                let described = endpoint_config(&experiment.rack, host, experiment.scheme).unwrap();
                let mut same = simulated;
                let (from, to) = (described.station(), same.station_mut());
                (to.catch_up, to.total_limit_frames, to.snap_bytes) =
                    (from.catch_up, from.total_limit_frames, from.snap_bytes);
                if let (Config::Pl2(described), Config::Pl2(pl2)) = (&described, &mut same) {
                    *pl2 = pl2::Config {
                        notify_patience: described.notify_patience,
                        pack: described.pack,
                        fresh: described.fresh,
                        grt_timeout_min: described.grt_timeout_min,
                        grt_timeout_max: described.grt_timeout_max,
                        release_after: described.release_after,
                        delay_window: described.delay_window,
                        ..pl2.clone()
                    };
                    assert_eq!(
                        (described.lanes, described.k, described.t_slots),
                        (3, 5, 7),
                        "{kind} {index}"
                    );
                }
                assert_eq!(same, described, "{kind} {index}");
            }
        }
    }
}
