//! A rack whose memory programs use, in virtual time. Their requests depend on answers and are not known in advance, so the
//! caller that runs the programs issues them, and gets completions in order of time.
//!
//! The generated program runs on the switch's core, and hosts have the machines of real ones. Programs, drivers and processors
//! take no time.

use crate::events::Agenda;
use crate::outcome::depth_quantile;
use crate::switch::{Model, P4};
use p4rack_codegen::rack::{self, Rack};
use p4rack_codegen::scheme::edm::{Edm, NO_LOSS};
use p4rack_fabric::edm::host::compute::{self, Outcome, Refused, Request};
use p4rack_fabric::edm::host::memory;
use p4rack_switch::DropReason;
use p4rack_wire::edm::{self, Control, Kind};
use p4rack_wire::ethernet::overhead;
use p4rack_wire::{EtherType, MacAddr, Nanos};
use std::collections::{BTreeMap, VecDeque};

/// From one end of a link to the other.
const LINK: Nanos = Nanos(300);

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
    AtSwitch(usize, Vec<u8>),
    Switch,
    AtHost(usize, Vec<u8>),
}

struct Host {
    mac: MacAddr,
    port: u16,
    rate_bps: u64,
    compute: compute::Node,
    memory: Option<memory::Node>,
    /// When its link is free, and when it is asked next; other polls are out of date.
    free: Nanos,
    poll: Nanos,
}

/// A rack in virtual time.
pub struct MemoryRack {
    switch: P4,
    switch_due: Nanos,
    ether_type: EtherType,
    hosts: Vec<Host>,
    agenda: Agenda<Event>,
    ended: VecDeque<(usize, u64, Outcome)>,
    now: Nanos,
}

impl std::fmt::Debug for MemoryRack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryRack").field("now", &self.now).finish_non_exhaustive()
    }
}

/// Counters of a rack's switch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SwitchCounts {
    /// Frames dropped by the program and by the traffic manager, by reason.
    pub drops: BTreeMap<String, u64>,
    /// Maximum bytes that waited for a port.
    pub queue_max_bytes: u64,
    /// Bytes that waited for it in 99.9 % of the time, at most.
    pub queue_p999_bytes: u64,
}

impl MemoryRack {
    /// The rack at time 0, which runs its scheme, with hosts as they are configured, in the rack's order.
    ///
    /// Errors: the rack has no EDM, its program can't be generated, or a host's memory is refused.
    pub fn new(rack: &Rack, hosts: Vec<MemoryHost>) -> Result<MemoryRack, String> {
        let edm = rack.protocol::<Edm>().ok_or("the rack runs no EDM")?;
        let switch = P4::new(rack, rack.scheme(), |_| {}).map_err(|error| error.to_string())?;
        let host = |(of_rack, spec): (&rack::Host, MemoryHost)| -> Result<Host, String> {
            let memory =
                spec.memory.map(|(config, region)| memory::Node::new(config, vec![region])).transpose()?;
            Ok(Host {
                mac: of_rack.mac,
                port: of_rack.port,
                rate_bps: of_rack.rate_bps,
                compute: compute::Node::new(spec.compute, 0),
                memory,
                free: Nanos::ZERO,
                poll: Nanos::MAX,
            })
        };
        Ok(MemoryRack {
            switch,
            switch_due: Nanos::MAX,
            ether_type: edm.ether_type,
            hosts: rack.hosts.iter().zip(hosts).map(host).collect::<Result<_, String>>()?,
            agenda: Agenda::default(),
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
        let number = self.hosts[host].compute.handle_request(node, key, address, request, self.now)?;
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
        self.switch.reset_stats(self.now);
    }

    /// The switch's counters, with the queues of a host's port. `None`: the rack has no such host.
    pub fn counts(&self, host: usize) -> Option<SwitchCounts> {
        let number = self.hosts.get(host)?.port;
        let stats = self.switch.stats(self.now);
        let port = stats.ports.iter().find(|port| port.port == number)?;
        // The program's drops are counted there by reason.
        let by_manager = stats.drops.iter().filter(|(reason, _)| *reason != DropReason::IngressDrop);
        let by_manager = by_manager.map(|(reason, count)| (format!("switch.{}", reason.name()), *count));
        let by_program = self.switch.counted().drops;
        let by_program = by_program.into_iter().filter(|(reason, _)| !NO_LOSS.contains(reason));
        let by_program = by_program.map(|(reason, count)| (format!("program.{reason}"), count));
        Some(SwitchCounts {
            drops: by_manager.chain(by_program).filter(|(_, count)| *count > 0).collect(),
            queue_max_bytes: port.queue_max_bytes,
            queue_p999_bytes: depth_quantile(port, 0.999),
        })
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Poll(host) if self.hosts[host].poll == self.now => self.poll(host),
            Event::Poll(_) => {}
            Event::AtSwitch(host, frame) => {
                self.switch.take(self.hosts[host].port, &frame, self.now);
                self.transmit();
            }
            Event::Switch if self.switch_due == self.now => self.transmit(),
            Event::Switch => {}
            Event::AtHost(host, frame) => self.arrived(host, &frame),
        }
    }

    /// Collects a host's completions, and schedules its next frame or timeout.
    fn after(&mut self, nth: usize) {
        let host = &mut self.hosts[nth];
        while let Some((number, outcome)) = host.compute.poll_completion() {
            self.ended.push_back((nth, number, outcome));
        }
        let messages =
            [host.compute.next_message(), host.memory.as_ref().and_then(memory::Node::next_message)];
        let message = messages.into_iter().flatten().min().map(|at| at.max(host.free));
        let Some(at) = message.into_iter().chain(host.compute.next_timeout()).min() else { return };
        let at = at.max(self.now);
        if at < host.poll || host.poll < self.now {
            host.poll = at;
            self.agenda.add(at.0, Event::Poll(nth));
        }
    }

    fn poll(&mut self, nth: usize) {
        let (now, host, mut payload) = (self.now, &mut self.hosts[nth], Vec::new());
        host.poll = Nanos::MAX;
        host.compute.handle_timeout(now);
        let to = match host.free > now {
            true => None,
            false => {
                let of_memory =
                    host.memory.as_mut().and_then(|memory| memory.poll_message(now, &mut payload));
                of_memory.or_else(|| host.compute.poll_message(now, &mut payload))
            }
        };
        if let Some(to) = to.map(usize::from).filter(|to| *to < self.hosts.len()) {
            let mut frame = Vec::new();
            edm::emit_frame(self.hosts[to].mac, self.hosts[nth].mac, self.ether_type, &payload, &mut frame);
            let end = self.end_of(nth, &frame);
            self.hosts[nth].free = end;
            self.agenda.add((end + LINK).0, Event::AtSwitch(nth, frame));
        }
        self.after(nth);
    }

    /// When a frame that begins now is whole at the other end of a host's link, but for the link's length.
    fn end_of(&self, host: usize, frame: &[u8]) -> Nanos {
        let bits = u128::from(overhead::wire_bytes(frame.len() as u64)) * 8;
        self.now + Nanos((bits * 1_000_000_000).div_ceil(u128::from(self.hosts[host].rate_bps)) as u64)
    }

    fn transmit(&mut self) {
        let mut frame = Vec::new();
        self.switch_due = Nanos::MAX;
        while let Some(port) = self.switch.poll_transmit(self.now, &mut frame) {
            let frame = std::mem::take(&mut frame);
            if let Some(host) = self.hosts.iter().position(|host| host.port == port) {
                let at = self.end_of(host, &frame) + LINK;
                self.agenda.add(at.0, Event::AtHost(host, frame));
            }
        }
        let due = self.switch.due();
        if due < Nanos::MAX {
            self.switch_due = due.max(self.now);
            self.agenda.add(self.switch_due.0, Event::Switch);
        }
    }

    fn arrived(&mut self, nth: usize, frame: &[u8]) {
        let Some((ethernet, payload)) = edm::parse_frame(frame, self.ether_type) else { return };
        let Some(from) = self.hosts.iter().position(|host| host.mac == ethernet.src) else { return };
        let (now, from, host) = (self.now, from as u16, &mut self.hosts[nth]);
        let is_of_answer = || Control::parse(payload).is_ok_and(|grant| grant.answer != 0);
        match Kind::of(payload[0]) {
            Ok(Kind::Rres) => host.compute.handle_message(from, payload, now),
            Ok(Kind::Grant) if !is_of_answer() => host.compute.handle_message(from, payload, now),
            _ => {
                if let Some(memory) = &mut host.memory {
                    memory.handle_message(from, payload, now);
                }
            }
        }
        self.after(nth);
    }
}

#[cfg(test)]
#[path = "programs_tests.rs"]
mod tests;
