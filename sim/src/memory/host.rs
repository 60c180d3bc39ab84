//! A host of EDM on its link: the machines of a compute node and of a memory node.

use crate::kernel::{Clock, Uplink};
use p4rack_fabric::edm::host::{compute, memory};
use p4rack_wire::Nanos;
use p4rack_wire::edm::{Control, Kind};

/// A host.
#[derive(Debug)]
pub(super) struct EdmHost {
    pub compute: compute::Node,
    /// If it has memory.
    pub memory: Option<memory::Node>,
    pub uplink: Uplink,
}

impl EdmHost {
    /// A host whose link is free.
    pub fn new(compute: compute::Node, memory: Option<memory::Node>, rate_bps: u64, clock: Clock) -> EdmHost {
        EdmHost { compute, memory, uplink: Uplink::new(rate_bps, clock) }
    }

    /// Hands a message to the machine that it is for: answers and grants of requests to the compute node, all others to the memory
    /// node.
    #[inline]
    pub fn handle_message(&mut self, from: u16, payload: &[u8], now: Nanos) {
        let is_of_answer = || Control::parse(payload).is_ok_and(|grant| grant.answer != 0);
        match Kind::of(payload[0]) {
            Ok(Kind::Rres) => self.compute.handle_message(from, payload, now),
            Ok(Kind::Grant) if !is_of_answer() => self.compute.handle_message(from, payload, now),
            _ => {
                if let Some(memory) = &mut self.memory {
                    memory.handle_message(from, payload, now);
                }
            }
        }
    }

    /// When one of its machines has a message to send.
    #[inline]
    pub fn next_message(&self) -> Option<Nanos> {
        let memory = self.memory.as_ref().and_then(memory::Node::next_message);
        memory.into_iter().chain(self.compute.next_message()).min()
    }

    /// The next message, and the node that it is for: the memory node's go first.
    #[inline]
    pub fn poll_message(&mut self, now: Nanos, out: &mut Vec<u8>) -> Option<u16> {
        let of_memory = self.memory.as_mut().and_then(|memory| memory.poll_message(now, out));
        of_memory.or_else(|| self.compute.poll_message(now, out))
    }

    /// The same, but of the machine whose message was ready first.
    #[inline]
    pub fn poll_first_message(&mut self, now: Nanos, out: &mut Vec<u8>) -> Option<u16> {
        let ready = |at: Option<Nanos>| at.unwrap_or(Nanos::MAX);
        let memory = self.memory.as_ref().and_then(memory::Node::next_message);
        if ready(memory) < ready(self.compute.next_message()) {
            return self.poll_message(now, out);
        }
        let of_compute = self.compute.poll_message(now, out);
        of_compute.or_else(|| self.memory.as_mut()?.poll_message(now, out))
    }
}
