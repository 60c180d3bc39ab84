//! The rack in virtual time: the generated program on the embedded switch's core, and a machine for each host.

use crate::{Host, Pace};
use p4rack_codegen::{Arch, GenerateError, Program, Rack, Scheme, program, rack};
use p4rack_entities::{Candidate, accepted, write};
use p4rack_fabric::common::Station;
use p4rack_fabric::{HostMachine, ethernet};
use p4rack_p4rt::p4::v1::WriteRequest;
use p4rack_switch::{Config, PortConfig, Switch};
use p4rack_wire::ethernet::Ethernet;
use p4rack_wire::ethernet::overhead::{MTU, wire_bytes};
use p4rack_wire::{EtherType, Nanos};
use std::collections::BTreeMap;
use std::fmt;

/// Time of a frame from one end of a link to the other, beyond its own length.
const LINK_DELAY: Nanos = Nanos(500);

/// Results of an incast.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Frames that applications sent.
    pub sent: u64,
    /// Frames that the receiver's application got.
    pub delivered: u64,
    /// Frames that the switch dropped.
    pub lost: u64,
    /// Most bytes that waited at one port of the switch.
    pub queue_max_bytes: u64,
    /// When the last frame was delivered.
    pub last: Nanos,
}

impl Outcome {
    /// Heading of a table of outcomes.
    pub const HEADING: &str = "        delivered  lost in the switch  longest queue  last frame";

    /// A line of that table.
    pub fn line(&self, scheme: Scheme) -> String {
        format!(
            "{:<5} {:>4} / {}  {:>18}  {:>10.1} KB  {:>7.1} ms",
            scheme.name(),
            self.delivered,
            self.sent,
            self.lost,
            self.queue_max_bytes as f64 / 1e3,
            self.last.as_secs_f64() * 1e3,
        )
    }
}

/// Why there is no outcome.
#[derive(Debug)]
pub enum SimError {
    /// The rack can't be generated.
    Generate(Box<GenerateError>),
    /// The switch refuses the program or its entries.
    Program(String),
}

impl fmt::Display for SimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SimError::Generate(error) => error.fmt(f),
            SimError::Program(problem) => write!(f, "generated program: {problem}"),
        }
    }
}

impl std::error::Error for SimError {}

/// Where a frame on a link arrives.
#[derive(Clone, Copy, Debug)]
enum End {
    /// At this port of the switch.
    Switch(u16),
    /// At this host.
    Host(usize),
}

/// Frames on links, by the time at which their last bit arrives and then as sent.
#[derive(Default)]
struct Links {
    frames: BTreeMap<(Nanos, u64), (End, Vec<u8>)>,
    sent: u64,
}

impl Links {
    /// A frame starts to leave.
    fn send(&mut self, frame: &[u8], to: End, rate_bps: u64, now: Nanos) {
        let wire = Nanos::on_wire(wire_bytes(frame.len() as u64), rate_bps);
        let at = now.saturating_add(wire).saturating_add(LINK_DELAY);
        self.frames.insert((at, self.sent), (to, frame.to_vec()));
        self.sent += 1;
    }

    /// When the next frame arrives.
    fn next_at(&self) -> Option<Nanos> {
        self.frames.keys().next().map(|(at, _)| *at)
    }

    /// A frame that has arrived.
    fn arrived(&mut self, now: Nanos) -> Option<(End, Vec<u8>)> {
        let first = self.frames.first_entry().filter(|first| first.key().0 <= now)?;
        Some(first.remove())
    }
}

/// Each host but the first sends it `frames` full frames, all at the beginning, under `scheme`: `l2` or `pace`.
pub fn incast(rack: &Rack, scheme: Scheme, frames: u64) -> Result<Outcome, SimError> {
    let switch = switch(rack, scheme)?;
    let pace = rack.protocol::<Pace>().filter(|_| scheme != Scheme::L2);
    Ok(match pace {
        Some(pace) => {
            let machine = |host| Host::new(pace.host(rack, host), Nanos::ZERO);
            run(rack, switch, rack.hosts.iter().map(machine).collect(), frames)
        }
        None => {
            let machine = |host: &rack::Host| {
                let station = Station::new(host.mac, host.rate_bps);
                let peers = rack.hosts.iter().map(|peer| peer.mac).collect();
                ethernet::Endpoint::new(ethernet::Config { station, peers }, Nanos::ZERO)
            };
            run(rack, switch, rack.hosts.iter().map(machine).collect(), frames)
        }
    })
}

/// Runs the incast with a machine for each host.
fn run<M: HostMachine>(rack: &Rack, mut switch: Switch, mut hosts: Vec<M>, frames: u64) -> Outcome {
    let mut outcome = Outcome::default();
    let mut now = Nanos::ZERO;
    for (from, host) in hosts.iter_mut().enumerate().skip(1) {
        let mut frame = vec![0; Ethernet::BYTES + MTU as usize];
        Ethernet { dst: rack.hosts[0].mac, src: rack.hosts[from].mac, ether_type: EtherType::IPV4 }
            .emit(&mut frame);
        for _ in 0..frames {
            host.handle_app(&frame, now);
            outcome.sent += 1;
        }
    }
    let (mut links, mut out) = (Links::default(), Vec::new());
    loop {
        for (host, described) in hosts.iter_mut().zip(&rack.hosts) {
            host.handle_timeout(now);
            while host.poll_link(now, &mut out).is_some() {
                links.send(&out, End::Switch(described.port), described.rate_bps, now);
            }
            while host.poll_app(&mut out) {
                outcome.delivered += 1;
                outcome.last = now;
            }
        }
        while let Some(port) = switch.poll_transmit(now, &mut out) {
            let Some(to) = rack.hosts.iter().position(|host| host.port == port) else { continue };
            links.send(&out, End::Host(to), rack.hosts[to].rate_bps, now);
        }
        let due = hosts.iter().filter_map(|host| host.next_timeout());
        let due = due.chain(switch.next_timeout()).chain(links.next_at());
        let Some(next) = due.min() else { break };
        now = now.max(next);
        while let Some((to, frame)) = links.arrived(now) {
            match to {
                End::Switch(port) => switch.handle_frame(port, &frame, now),
                End::Host(host) => hosts[host].handle_link(&frame, now, now),
            }
        }
    }
    let stats = switch.stats(now);
    outcome.lost = stats.drops.iter().map(|(_, count)| count).sum();
    outcome.queue_max_bytes = stats.ports.iter().map(|port| port.queue_max_bytes).max().unwrap_or(0);
    outcome
}

/// The switch with the rack's program for the scheme, and its entries.
fn switch(rack: &Rack, scheme: Scheme) -> Result<Switch, SimError> {
    let Program { p4, compiled, entries } =
        program(rack, scheme, Arch::V1model).map_err(|error| SimError::Generate(Box::new(error)))?;
    let mut switch = Switch::new(Config {
        ports: rack.hosts.iter().map(|host| PortConfig::new(host.port, host.port_rate_bps)).collect(),
        buffer_bytes: rack.switch.buffer_bytes,
        cpu_port: Some(rack.switch.cpu_port),
        drop_port: rack.switch.drop_port,
        time_unit_ns: rack.switch.time_unit_ns,
        catch_up: Nanos::ZERO,
        arrival_burst: Nanos::MAX,
        ..Config::default()
    });
    let program = Candidate::new(&p4, compiled).map_err(SimError::Program)?.load(None, &mut switch);
    let updates = entries.into_iter().map(|(_, update)| update).collect();
    let request = WriteRequest { updates, ..WriteRequest::default() };
    accepted(write(&program, &request, &mut switch, Nanos::ZERO)).map_err(SimError::Program)?;
    Ok(switch)
}
