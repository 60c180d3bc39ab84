//! A rack whose memory programs use, in virtual time. Their requests depend on answers and are not known in advance, so the
//! caller that runs the programs issues them, and gets completions in order of time.
//!
//! The generated program runs on the switch's core, and hosts have the machines of real ones. Programs, drivers and processors
//! take no time.

use super::host::EdmHost;
use crate::frames::{Frame, Frames};
use crate::kernel::{Agenda, Clock, Hub, SwitchCounts, Uplink};
use crate::requests::PoolLink;
use crate::switch::{Model, P4};
use p4rack_codegen::rack::{self, Rack};
use p4rack_codegen::scheme::edm::{Edm, NO_LOSS};
use p4rack_fabric::Machine;
use p4rack_fabric::edm::host::compute::{self, Outcome, Refused, Request};
use p4rack_fabric::edm::host::memory;
use p4rack_wire::edm;
use p4rack_wire::{EtherType, MacAddr, Nanos};
use std::collections::VecDeque;

/// Times beside transmission.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delays {
    /// From one end of a link to the other.
    pub link: Nanos,
    /// The switch's pipeline.
    pub forward: Nanos,
    /// From a host's link to its machines, by the kind of message; none: no time.
    pub inside: Option<fn(&[u8]) -> Nanos>,
}

const CLOCK: Clock = Clock::NANOSECONDS;

/// Role of a host.
#[derive(Clone, Debug)]
pub struct MemoryHost {
    /// As one that uses others' memory.
    pub compute: compute::Config,
    /// As one that has memory; the region begins at address 0.
    pub memory: Option<(memory::Config, memory::Region<Vec<u8>>)>,
}

enum Event {
    /// A host may have something to send, or something that has waited too long.
    Poll(usize),
    AtSwitch(usize, Frame),
    Switch,
    /// The last bit of a frame is at this host.
    AtHost(usize, Frame),
    /// It has passed the stages between the host's link and its machines.
    Inside(usize, Frame),
}

struct Host {
    mac: MacAddr,
    port: u16,
    machines: EdmHost,
    uplink: Uplink,
}

/// A rack in virtual time.
pub struct MemoryRack {
    hub: Hub,
    delays: Delays,
    ether_type: EtherType,
    hosts: Vec<Host>,
    agenda: Agenda<Event>,
    frames: Frames,
    payload: Vec<u8>,
    ended: VecDeque<(usize, u64, Outcome)>,
    now: Nanos,
}

impl std::fmt::Debug for MemoryRack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryRack").field("now", &self.now).finish_non_exhaustive()
    }
}

impl MemoryRack {
    /// The rack at time 0, which runs its scheme, with hosts as they are configured, in the rack's order.
    ///
    /// Errors: the rack has no EDM, its program can't be generated, or a host's memory is refused.
    pub fn new(rack: &Rack, hosts: Vec<MemoryHost>) -> Result<MemoryRack, String> {
        let switch = P4::new(rack, rack.scheme(), |_| {}).map_err(|error| error.to_string())?;
        let machines = |spec: MemoryHost| -> Result<EdmHost, String> {
            let memory = spec
                .memory
                .map(|(config, region)| memory::MemoryNode::new(config, vec![region]))
                .transpose()?;
            Ok(EdmHost { compute: compute::ComputeNode::new(spec.compute, 0), memory })
        };
        let hosts = hosts.into_iter().map(machines).collect::<Result<_, String>>()?;
        let delays = Delays { link: Nanos(300), forward: Nanos::ZERO, inside: None };
        MemoryRack::of(rack, switch, hosts, delays)
    }

    /// The same with hosts' machines and delays. Errors: the rack has no EDM.
    pub(super) fn of(
        rack: &Rack,
        switch: P4,
        hosts: Vec<EdmHost>,
        delays: Delays,
    ) -> Result<MemoryRack, String> {
        let edm = rack.protocol::<Edm>().ok_or("the rack runs no EDM")?;
        let host = |(of_rack, machines): (&rack::Host, EdmHost)| {
            let uplink = Uplink::new(of_rack.rate_bps, CLOCK);
            Host { mac: of_rack.mac, port: of_rack.port, machines, uplink }
        };
        Ok(MemoryRack {
            hub: Hub::new(switch, CLOCK),
            delays,
            ether_type: edm.ether_type,
            hosts: rack.hosts.iter().zip(hosts).map(host).collect(),
            agenda: Agenda::default(),
            frames: Frames::default(),
            payload: Vec::new(),
            ended: VecDeque::new(),
            now: Nanos::ZERO,
        })
    }

    /// The time.
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// A host asks for something in the memory of the host at position `node`. Returns the operation's number at this host.
    ///
    /// Errors: the host's machine refuses the operation.
    pub fn ask(
        &mut self,
        host: usize,
        node: u16,
        key: u32,
        address: u64,
        request: Request,
    ) -> Result<u64, Refused> {
        let number =
            self.hosts[host].machines.compute.handle_request(node, key, address, request, self.now)?;
        self.after(host);
        Ok(number)
    }

    /// Goes on until an operation has ended: its host, its number there, and how. `None` at time `until`, if none has.
    pub fn next(&mut self, until: Nanos) -> Option<(usize, u64, Outcome)> {
        loop {
            if let Some(ended) = self.ended.pop_front() {
                return Some(ended);
            }
            let Some((at_ns, event)) = self.agenda.next_until(until.0) else {
                self.now = self.now.max(until);
                return None;
            };
            self.now = Nanos(at_ns);
            self.handle(event);
        }
    }

    /// Queues and the traffic manager's drops are counted from now on.
    pub fn start_counting(&mut self) {
        self.hub.model.reset_stats(self.now);
    }

    /// The switch's counters, with the queues of a host's port. `None`: the rack has no such host.
    pub fn counts(&self, host: usize) -> Option<SwitchCounts> {
        self.hub.counts(self.hosts.get(host)?.port, &NO_LOSS, self.now.0)
    }

    /// Bytes that a host's link has carried until this time.
    pub(super) fn link(&self, host: usize, now: Nanos) -> PoolLink {
        self.hosts.get(host).map_or_else(PoolLink::default, |host| self.hub.link(host.port, now.0))
    }

    /// Nothing happens before this time.
    pub(super) fn advance(&mut self, now: Nanos) {
        self.now = self.now.max(now);
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Poll(host) if self.hosts[host].uplink.is_due(self.now.0) => self.poll(host),
            Event::Poll(_) => {}
            Event::AtSwitch(host, frame) => {
                self.hub.take(self.hosts[host].port, &frame, self.now.0);
                self.frames.release(frame);
                self.transmit();
            }
            Event::Switch if self.hub.is_due(self.now.0) => self.transmit(),
            Event::Switch => {}
            Event::AtHost(host, frame) => match self.delays.inside {
                Some(inside) => {
                    let at = self.now + inside(&frame);
                    self.agenda.add(at.0, Event::Inside(host, frame));
                }
                None => self.arrived(host, frame),
            },
            Event::Inside(host, frame) => self.arrived(host, frame),
        }
    }

    /// Takes the results of a host, and plans its next turn.
    fn after(&mut self, nth: usize) {
        let Host { machines, uplink, .. } = &mut self.hosts[nth];
        while let Some((number, outcome)) = machines.compute.poll_completion() {
            self.ended.push_back((nth, number, outcome));
        }
        let poll = uplink.plan(machines, self.now.0);
        self.agenda.extend(poll.map(|at| (at, Event::Poll(nth))));
    }

    fn poll(&mut self, nth: usize) {
        let (now, Host { machines, uplink, .. }) = (self.now, &mut self.hosts[nth]);
        let to = uplink.ask(machines, now.0, &mut self.payload);
        if let Some(to) = to.map(usize::from).filter(|to| *to < self.hosts.len()) {
            let mut frame = self.frames.take(true);
            let (dst, src) = (self.hosts[to].mac, self.hosts[nth].mac);
            edm::emit_frame(dst, src, self.ether_type, &self.payload, &mut frame);
            let tail = self.hosts[nth].uplink.send(&frame, now.0);
            self.agenda.add(tail + self.delays.link.0, Event::AtSwitch(nth, frame));
        }
        self.after(nth);
    }

    fn transmit(&mut self) {
        let now = self.now.0;
        let way_ns = self.delays.forward.0 + self.delays.link.0;
        while let Some((port, frame)) = self.hub.poll(now, &mut self.frames) {
            match self.hosts.iter().position(|host| host.port == port) {
                Some(host) => {
                    let tail = now + self.hosts[host].uplink.on_wire(&frame);
                    self.agenda.add(tail + way_ns, Event::AtHost(host, frame));
                }
                None => self.frames.release(frame),
            }
        }
        self.agenda.extend(self.hub.again(now).map(|at| (at, Event::Switch)));
    }

    fn arrived(&mut self, nth: usize, frame: Frame) {
        let parsed = edm::parse_frame(&frame, self.ether_type);
        let from = |mac: MacAddr| self.hosts.iter().position(|host| host.mac == mac);
        if let Some((from, payload)) =
            parsed.and_then(|(ethernet, payload)| Some((from(ethernet.src)?, payload)))
        {
            self.hosts[nth].machines.handle_link((from as u16, payload), self.now, self.now);
            self.after(nth);
        }
        self.frames.release(frame);
    }
}

#[cfg(test)]
#[path = "programs_tests.rs"]
mod tests;
