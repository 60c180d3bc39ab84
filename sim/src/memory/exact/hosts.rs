//! Hosts: their demands and received data.

use super::{Batch, Event, Exact, destination, source};
use crate::memory::message::Operation;
use p4rack_fabric::edm::scheduler::{Demand, Kind};

impl Exact<'_> {
    pub(super) fn message(&mut self, nth: u32, now_ps: u64) {
        let message = self.messages.all[nth as usize];
        let most = self.params.pending_max;
        let pending = &mut self.peer(message.compute, message.memory).pending[message.operation as usize];
        if pending.len() >= most {
            self.messages.shown.refused += 1;
            self.ended(nth, now_ps);
            return;
        }
        pending.push_back(nth);
        self.ask(message.compute, message.memory, message.operation, now_ps);
    }

    /// Notifies the switch of waiting messages, while fewer than X of the pair are active.
    fn ask(&mut self, compute: u16, memory: u16, operation: Operation, now_ps: u64) {
        let (of, x) = (operation as usize, self.params.scheduler.active_per_pair);
        loop {
            let first = self.batched.len() as u32;
            let mega_bytes = if operation == Operation::Write { self.params.mega_bytes } else { 0 };
            let peer = &mut self.peers[usize::from(compute) * self.nodes + usize::from(memory)];
            if peer.active[of] >= x {
                return;
            }
            let Some(message) = peer.pending[of].pop_front() else { return };
            self.batched.push(message);
            let mut bytes = self.messages.all[message as usize].bytes;
            while let Some(next) = peer.pending[of].front()
                && bytes.saturating_add(self.messages.all[*next as usize].bytes) <= mega_bytes
            {
                bytes += self.messages.all[*next as usize].bytes;
                self.batched.push(*next);
                peer.pending[of].pop_front();
            }
            peer.active[of] += 1;
            let id = peer.next_id[of];
            peer.next_id[of] = id.wrapping_add(1);
            let count = self.batched.len() as u32 - first;
            self.batches.push(Batch {
                operation,
                compute,
                memory,
                id,
                bytes,
                fetched_ps: now_ps + self.params.memory_ps,
                first,
                count,
                received: 0,
                complete: 0,
            });
            let nth = self.batches.len() as u32 - 1;
            self.agenda.add(now_ps + self.params.modules.request_ps, Event::Ask(nth));
        }
    }

    pub(super) fn demand(&self, nth: u32) -> Demand {
        let batch = &self.batches[nth as usize];
        let kind = if batch.operation == Operation::Read { Kind::Read } else { Kind::Write };
        let (source, destination) = (source(batch), destination(batch));
        Demand { source, destination, id: batch.id, kind, bytes: batch.bytes, token: nth }
    }

    pub(super) fn retire(&mut self, batch: &Batch, now_ps: u64) {
        self.peer(batch.compute, batch.memory).active[batch.operation as usize] -= 1;
        self.ask(batch.compute, batch.memory, batch.operation, now_ps);
    }

    pub(super) fn received(&mut self, nth: u32, now_ps: u64) {
        let chunk = self.chunks[nth as usize];
        self.free_chunks.push(nth);
        let batch = &mut self.batches[chunk.batch as usize];
        batch.received += chunk.bytes;
        // Bytes come in order, so the messages of a batch are complete one after another.
        let (mut before, mut complete) = (0, 0);
        for at in 0..batch.count {
            let message = self.batched[(batch.first + at) as usize] as usize;
            before += self.messages.all[message].bytes;
            if at >= batch.complete && before <= batch.received {
                batch.complete += 1;
                complete += 1;
            }
        }
        let batch = *batch;
        for at in batch.complete - complete..batch.complete {
            self.stored(self.batched[(batch.first + at) as usize], now_ps);
        }
        if batch.received == batch.bytes && batch.operation == Operation::Read {
            self.retire(&batch, now_ps);
        }
    }

    /// A message's last byte has arrived, and goes into memory.
    pub(super) fn stored(&mut self, nth: u32, now_ps: u64) {
        let next = self.messages.stored(nth, now_ps);
        self.follows(next);
    }

    /// A message has ended in another way.
    fn ended(&mut self, nth: u32, at_ps: u64) {
        let next = self.messages.ended(nth, at_ps);
        self.follows(next);
    }

    fn follows(&mut self, next: Option<(u64, u32)>) {
        self.agenda.extend(next.map(|(at_ps, next)| (at_ps, Event::Message(next))));
    }
}
