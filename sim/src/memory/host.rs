//! A host of EDM: the machines of a compute node and of a memory node.

use p4rack_fabric::Machine;
use p4rack_fabric::edm::host::{compute, memory};
use p4rack_wire::Nanos;
use p4rack_wire::edm::{Control, Kind};

/// A host. Its memory node's messages go first.
#[derive(Debug)]
pub(crate) struct EdmHost {
    pub compute: compute::ComputeNode,
    /// If it has memory.
    pub memory: Option<memory::MemoryNode>,
}

impl EdmHost {
    /// The next message, but of the machine whose message was ready first.
    #[inline]
    pub fn poll_first(&mut self, now: Nanos, out: &mut Vec<u8>) -> Option<u16> {
        let ready = |at: Option<Nanos>| at.unwrap_or(Nanos::MAX);
        let memory = self.memory.as_ref().and_then(Machine::next_link);
        if ready(memory) < ready(self.compute.next_link()) {
            return self.poll_link(now, out);
        }
        let of_compute = self.compute.poll_link(now, out);
        of_compute.or_else(|| self.memory.as_mut()?.poll_link(now, out))
    }
}

impl Machine for EdmHost {
    type Received<'a> = (u16, &'a [u8]);
    type Sent = u16;
    type Buffer = Vec<u8>;

    /// Hands a message to the machine that it is for: answers and grants of requests to the compute node, all others to the memory
    /// node.
    #[inline]
    fn handle_link(&mut self, (from, payload): (u16, &[u8]), received_at: Nanos, now: Nanos) {
        let is_of_answer = || Control::parse(payload).is_ok_and(|grant| grant.answer != 0);
        match Kind::of(payload[0]) {
            Ok(Kind::Rres) => self.compute.handle_link((from, payload), received_at, now),
            Ok(Kind::Grant) if !is_of_answer() => {
                self.compute.handle_link((from, payload), received_at, now);
            }
            _ => {
                if let Some(memory) = &mut self.memory {
                    memory.handle_link((from, payload), received_at, now);
                }
            }
        }
    }

    fn handle_timeout(&mut self, now: Nanos) {
        self.compute.handle_timeout(now);
    }

    #[inline]
    fn poll_link(&mut self, now: Nanos, out: &mut Vec<u8>) -> Option<u16> {
        let of_memory = self.memory.as_mut().and_then(|memory| memory.poll_link(now, out));
        of_memory.or_else(|| self.compute.poll_link(now, out))
    }

    #[inline]
    fn next_link(&self) -> Option<Nanos> {
        let memory = self.memory.as_ref().and_then(Machine::next_link);
        memory.into_iter().chain(self.compute.next_link()).min()
    }

    fn next_timeout(&self) -> Option<Nanos> {
        self.compute.next_timeout()
    }
}
