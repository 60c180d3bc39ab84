//! After recovery, every node probes every region.

use super::client::{CHUNKS_AT, CHUNKS_MAX, PROBES_AT, Why};
use super::rack::{CHUNK_BYTES, COMPUTES, MEMORIES};
use super::world::{Event, FaultsWorld, Probe};
use p4rack_fabric::edm::host::compute;
use p4rack_wire::edm;

/// Passes that an operation may take before the next one starts. `calendar` refuses demands that arrive while others are between
/// their passes, so simultaneous operations would not all succeed at the first attempt.
const PASSES: u64 = 32;

impl FaultsWorld<'_> {
    /// After recovery, every node reads, writes and changes all remaining memory. A timeout later, reads check the written values,
    /// because writes have no answer.
    pub(super) fn probe(&mut self, stage: Probe, now_ns: u64) {
        let timeout_ns = self.rack.timeout.0;
        let is_busy = self.clients.iter().any(|client| client.left > 0 || client.open() > 0);
        match stage {
            Probe::Ends | Probe::Greeted | Probe::Tried if is_busy => {
                self.agenda.add(now_ns + timeout_ns, Event::Probe(stage));
            }
            // The first answer of a restarted node reveals the restart. Unused lanes expire.
            Probe::Ends => {
                let last_ns = self.greet(now_ns);
                self.agenda.add(last_ns + 2 * timeout_ns, Event::Probe(Probe::Greeted));
            }
            Probe::Greeted => self.agenda.add(now_ns + 3 * timeout_ns, Event::Probe(Probe::Begins)),
            Probe::Tried => self.agenda.add(now_ns + timeout_ns, Event::Probe(Probe::Written)),
            Probe::Begins => {
                let last_ns = self.try_all(now_ns);
                self.agenda.add(last_ns + timeout_ns, Event::Probe(Probe::Tried));
            }
            Probe::Written => {
                self.is_over = true;
                let mut at_ns = now_ns;
                for own in 0..COMPUTES {
                    for (node, address, value) in self.clients[usize::from(own)].probed() {
                        let read = (node, address, compute::Request::Read(edm::WORD_BYTES));
                        at_ns = self.ask_in_turn(own, read, Why::Check(value), at_ns, now_ns);
                    }
                }
            }
        }
    }

    /// Issues a probe at this time. Returns the time of the next one, which is the same if passes take no time.
    fn ask_in_turn(
        &mut self,
        own: u16,
        asked: (u16, u64, compute::Request),
        why: Why,
        at_ns: u64,
        now_ns: u64,
    ) -> u64 {
        if at_ns == now_ns {
            self.ask(own, asked, why, now_ns);
        } else {
            self.agenda.add(at_ns, Event::Ask(own, asked, why));
        }
        at_ns + PASSES * self.rack.pass_delay.0
    }

    /// Each compute node with each remaining memory node.
    fn pairs(&self) -> Vec<(u16, u16)> {
        let is_left = |node: u16| !self.nodes[usize::from(node)].is_dead;
        let of = |own| MEMORIES.filter(move |node| *node != own).map(move |node| (own, node));
        (0..COMPUTES).flat_map(of).filter(|(own, node)| is_left(*own) && is_left(*node)).collect()
    }

    /// Every node reads a word of each remaining memory node. Returns the time for the next operation.
    fn greet(&mut self, now_ns: u64) -> u64 {
        let mut at_ns = now_ns;
        for (own, node) in self.pairs() {
            let read = (node, PROBES_AT, compute::Request::Read(edm::WORD_BYTES));
            at_ns = self.ask_in_turn(own, read, Why::Work, at_ns, now_ns);
        }
        at_ns
    }

    /// Issues the probes. Returns the time for the next operation.
    fn try_all(&mut self, now_ns: u64) -> u64 {
        let mut at_ns = now_ns;
        for (own, node) in self.pairs() {
            let word = PROBES_AT + 16 * u64::from(own);
            let value = self.clients[usize::from(own)].value();
            for (address, request) in [
                (word, compute::Request::Modify(edm::Opcode::FetchAdd, [1, 0])),
                (word, compute::Request::Read(edm::WORD_BYTES)),
                (word + 8, compute::Request::Write(value.to_be_bytes().to_vec())),
                (CHUNKS_AT, compute::Request::Read(CHUNKS_MAX as u32 * CHUNK_BYTES)),
            ] {
                at_ns = self.ask_in_turn(own, (node, address, request), Why::Probe, at_ns, now_ns);
            }
        }
        at_ns
    }
}
