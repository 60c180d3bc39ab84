//! A host's machines under EDM. They share the link with the host's agent, as on a real host, and pace their own frames.

use crate::kernel::{Clock, Uplink};
use crate::memory::EdmHost;
use p4rack_fabric::Machine as _;
use p4rack_fabric::edm::host::compute::{Outcome, Request};
use p4rack_wire::edm::{emit_frame, parse_frame};
use p4rack_wire::{EtherType, MacAddr, Nanos};
use std::collections::BTreeMap;

/// See the module.
#[derive(Debug)]
pub(super) struct EdmNode {
    machines: EdmHost,
    uplink: Uplink,
    ether_type: EtherType,
    /// All nodes of the rack, and which of them this is.
    nodes: Vec<MacAddr>,
    own: usize,
    /// Flow, among those of its host, and slot of what was asked for, by the machine's number.
    asked: BTreeMap<u64, (u32, u16)>,
    payload: Vec<u8>,
}

impl EdmNode {
    /// The node at position `own` of these, on a link of this rate.
    pub fn new(
        machines: EdmHost,
        ether_type: EtherType,
        (nodes, own): (Vec<MacAddr>, usize),
        rate_bps: u64,
    ) -> EdmNode {
        EdmNode {
            machines,
            uplink: Uplink::new(rate_bps, Clock::NANOSECONDS),
            ether_type,
            nodes,
            own,
            asked: BTreeMap::new(),
            payload: Vec::new(),
        }
    }

    /// Asks for something in the memory of a node. Returns whether the machine takes it.
    pub fn ask(
        &mut self,
        (node, key): (u16, u32),
        address: u64,
        request: Request,
        (out, slot): (u32, u16),
        now: Nanos,
    ) -> bool {
        let asked = self.machines.compute.handle_request(node, key, address, request, now);
        asked.map(|number| self.asked.insert(number, (out, slot))).is_ok()
    }

    /// A request that has ended: its flow, its slot, and its result.
    pub fn poll_end(&mut self) -> Option<(u32, u16, Outcome)> {
        loop {
            let (number, outcome) = self.machines.compute.poll_completion()?;
            if let Some((out, slot)) = self.asked.remove(&number) {
                return Some((out, slot, outcome));
            }
        }
    }

    /// Takes a frame from the link. Returns whether it is one for these machines.
    #[inline]
    pub fn take(&mut self, frame: &[u8], received_at: Nanos, now: Nanos) -> bool {
        let Some((ethernet, payload)) = parse_frame(frame, self.ether_type) else { return false };
        let from = self.nodes.iter().position(|mac| *mac == ethernet.src);
        let Some(from) = from.filter(|_| ethernet.dst == self.nodes[self.own]) else { return false };
        self.machines.handle_link((from as u16, payload), received_at, now);
        true
    }

    /// Writes the next frame for the link over `frame`, if the link is free.
    pub fn poll(&mut self, now: Nanos, frame: &mut Vec<u8>) -> bool {
        let Some(to) = self.uplink.ask(&mut self.machines, now.0, &mut self.payload) else { return false };
        let Some(dst) = self.nodes.get(usize::from(to)) else { return false };
        emit_frame(*dst, self.nodes[self.own], self.ether_type, &self.payload, frame);
        self.uplink.send(frame, now.0);
        true
    }

    /// Counters by name.
    pub fn counters(&self, add: &mut dyn FnMut(&'static str, &'static str, u64)) {
        for (name, count) in self.machines.compute.counters().named() {
            add("compute", name, count);
        }
        for (name, count) in self.machines.memory.iter().flat_map(|memory| memory.counters().named()) {
            add("memory", name, count);
        }
    }

    /// When to poll it next; `Nanos::MAX`: not before a frame comes.
    pub fn due(&self) -> Nanos {
        self.uplink.next_call(&self.machines).unwrap_or(Nanos::MAX)
    }
}
