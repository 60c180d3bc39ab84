//! Once all is quiet: everybody tries all memory.

use super::client::Why;
use super::rack::{CHUNK_BYTES, COMPUTES, MEMORIES};
use super::world::{Event, Probe, World};
use p4rack_fabric::edm::host::compute;
use p4rack_wire::edm;

impl World<'_> {
    /// Once all is quiet, everybody reads, writes and changes all memory that is left. What they write is there a timeout later:
    /// nothing else says so, since writes have no answer.
    pub(super) fn probe(&mut self, stage: Probe, now_ns: u64) {
        let timeout_ns = self.rack.timeout.0;
        let is_busy = self.clients.iter().any(|client| client.left > 0 || client.open() > 0);
        match stage {
            Probe::Ends | Probe::Tried if is_busy => {
                self.agenda.add(now_ns + timeout_ns, Event::Probe(stage));
            }
            // Lanes that nobody uses any more are given up.
            Probe::Ends => self.agenda.add(now_ns + 3 * timeout_ns, Event::Probe(Probe::Begins)),
            Probe::Tried => self.agenda.add(now_ns + timeout_ns, Event::Probe(Probe::Written)),
            Probe::Begins => {
                self.try_all(now_ns);
                self.agenda.add(now_ns + timeout_ns, Event::Probe(Probe::Tried));
            }
            Probe::Written => {
                for own in 0..COMPUTES {
                    for (node, address, value) in self.clients[usize::from(own)].probed() {
                        let read = (node, address, compute::Request::Read(edm::WORD_BYTES));
                        self.ask(own, read, Why::Check(value), now_ns);
                    }
                }
            }
        }
    }

    fn try_all(&mut self, now_ns: u64) {
        let alive: Vec<u16> = MEMORIES.filter(|node| !self.nodes[usize::from(*node)].is_dead).collect();
        for own in (0..COMPUTES).filter(|own| !self.nodes[usize::from(*own)].is_dead).collect::<Vec<_>>() {
            for node in alive.iter().copied().filter(|node| *node != own) {
                let word = 2_048 + 16 * u64::from(own);
                let value = self.clients[usize::from(own)].value();
                for (address, request) in [
                    (word, compute::Request::Modify(edm::Opcode::FetchAdd, [1, 0])),
                    (word, compute::Request::Read(edm::WORD_BYTES)),
                    (word + 8, compute::Request::Write(value.to_be_bytes().to_vec())),
                    (1_024, compute::Request::Read(4 * CHUNK_BYTES)),
                ] {
                    self.ask(own, (node, address, request), Why::Probe, now_ns);
                }
            }
        }
    }
}
