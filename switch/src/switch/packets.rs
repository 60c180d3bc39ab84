//! Packets on their way, for any architecture: their variables, queues and ends.

use crate::code::ops::Vars;
use crate::code::plans::{Code, NO_LIST, RUN};
use crate::compile::Pipeline;
use crate::exec::{Exit, Requests};
use crate::pool::{Meta, NONE, PacketId};
use crate::stats::DropReason;
use crate::switch::tracer::Tracer;
use crate::switch::{Running, Switch};
use p4rack_wire::Nanos;

impl Switch {
    /// Saves the variables that egress needs with the packet.
    #[inline(never)]
    pub(crate) fn save(&mut self, id: PacketId) {
        if let Some(running) = &self.running {
            let saved = &mut self.pool.get_mut(id).saved;
            saved.clear();
            for &(slot, count) in &running.pipeline.code.saved {
                saved.extend_from_slice(&self.vars[slot as usize..][..count as usize]);
            }
        }
    }

    /// Restores the variables that were saved with the packet.
    pub(crate) fn restore(&mut self, id: PacketId) {
        if let Some(running) = &self.running {
            restore(&running.pipeline.code, &mut self.vars, &self.pool.get(id).saved);
        }
    }

    /// Saves the variables of the hot packet, because another packet is about to use them.
    #[inline]
    pub(crate) fn save_hot(&mut self) {
        if self.hot != NONE {
            let id = std::mem::replace(&mut self.hot, NONE);
            self.save(id);
        }
    }

    /// Puts a packet into a queue. Returns false if it was dropped.
    #[inline(always)]
    pub(crate) fn enqueue(&mut self, id: PacketId, port: u64, now: Nanos) -> bool {
        let Some(at) = self.manager.find(port) else {
            return self.enqueue_nowhere(id, port, now);
        };
        let packet = self.pool.get(id);
        let len = packet.len().min(packet.meta.truncate as usize);
        self.enqueue_at(id, len, at, now)
    }

    /// Same for a number without a port. The packet passes egress all the same, where the program may recirculate or clone
    /// it; only a frame that egress sends there is dropped.
    #[cold]
    #[inline(never)]
    fn enqueue_nowhere(&mut self, id: PacketId, port: u64, now: Nanos) -> bool {
        let Some((at, number)) = self.manager.nowhere(port).zip(u16::try_from(port).ok()) else {
            self.end(id, DropReason::NoSuchPort, None);
            return false;
        };
        let packet = self.pool.get(id);
        let len = packet.len().min(packet.meta.truncate as usize);
        let is_queued = self.enqueue_at(id, len, at, now);
        if is_queued {
            self.pool.get_mut(id).meta.egress_port = number;
        }
        is_queued
    }

    /// Same for the port at position `at`; the packet takes `len` bytes of the buffer.
    #[inline(always)]
    pub(crate) fn enqueue_at(&mut self, id: PacketId, len: usize, at: usize, now: Nanos) -> bool {
        if let Err(reason) = self.manager.enqueue(&mut self.pool, id, len, at, now) {
            self.end(id, reason, Some(at));
            return false;
        }
        true
    }

    /// Drops a packet whose block did not finish.
    #[cold]
    #[inline(never)]
    pub(crate) fn give_up(&mut self, id: PacketId, exit: Exit, at: Option<usize>) {
        self.requests = Requests::default();
        let reason = match exit {
            Exit::LoopLimit => DropReason::LoopLimit,
            Exit::Rejected => DropReason::ParserReject,
            Exit::AssertFailed | Exit::Done => DropReason::AssertFailed,
        };
        self.end(id, reason, at);
    }

    /// Drops a packet.
    #[cold]
    #[inline(never)]
    pub(crate) fn end(&mut self, id: PacketId, reason: DropReason, at: Option<usize>) {
        self.tell_of(self.pool.get(id).meta.trace);
        self.drop_frame(reason, at);
        self.tell_of(0);
        self.pool.release(id);
    }
}

/// The form of the program for a packet: traced or not.
#[inline(always)]
pub(crate) fn form<'a>(running: &'a Pipeline, tracer: Option<&'a Tracer>, meta: &Meta) -> &'a Pipeline {
    match tracer {
        Some(tracer) if meta.trace != 0 => &tracer.pipeline,
        _ => running,
    }
}

/// Clears the words that a program may read before writing them.
#[inline(always)]
pub(crate) fn clear(code: &Code, vars: &mut Vars) {
    for &slot in &code.to_clear {
        if let Some(run) = vars[slot as usize..].first_chunk_mut::<RUN>() {
            *run = [0; RUN];
        }
    }
}

/// Clears the variables, then restores those that were saved.
#[inline]
pub(crate) fn restore(code: &Code, vars: &mut Vars, saved: &[u64]) {
    clear(code, vars);
    let mut from = 0;
    for &(slot, count) in &code.saved {
        let words = &saved[from..from + count as usize];
        vars[slot as usize..][..count as usize].copy_from_slice(words);
        from += count as usize;
    }
}

/// Saves the values of a field list.
pub(crate) fn save_list(running: &Option<Running>, vars: &Vars, list: u16, words: &mut Vec<u64>) {
    words.clear();
    if let Some(running) = running
        && list != NO_LIST
    {
        for &(slot, count) in running.pipeline.code.lists.get(list as usize).into_iter().flatten() {
            words.extend_from_slice(&vars[slot as usize..][..count as usize]);
        }
    }
}

/// Restores the values of a field list.
pub(crate) fn restore_list(code: &Code, vars: &mut Vars, list: u16, words: &[u64]) {
    let mut from = 0;
    for &(slot, count) in code.lists.get(list as usize).into_iter().flatten() {
        if let Some(words) = words.get(from..from + count as usize) {
            vars[slot as usize..][..count as usize].copy_from_slice(words);
        }
        from += count as usize;
    }
}
