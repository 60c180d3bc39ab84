//! A board's work between packets: it completes fences, takes steps of the slow path, and releases locks.

use super::Board;
use super::answers::Body;
use super::entry::Space;
use super::locks::Lock;
use super::memory::PhysicalMemory;
use super::retry::{Ended, Operation};
use super::search::Limits;
use super::vm::Translation;
use p4rack_wire::clio::packet;
use p4rack_wire::clio::{Status, WORD_BYTES};
use std::ops::Range;

impl<M: PhysicalMemory, P: Copy + Send> Board<M, P> {
    /// Completes fences that are over, and handles the requests that waited for them.
    pub(super) fn settle(&mut self) {
        while !self.fences.is_empty() {
            let (vm, reads, jobs) = (&self.vm, self.reads, self.slow.len() + self.calls.unfinished());
            let over = self.fences.poll(|fence| match fence.all {
                _ if planted!(vm, NoFence) => true,
                true => reads == 0 && jobs == 0,
                false => vm
                    .processes
                    .get(fence.space)
                    .is_none_or(|process| process.reads == 0 && process.jobs == 0),
            });
            if let Some(fence) = over {
                self.counters.fences += 1;
                let ended = Ended { status: Status::Done, address: fence.asked.header.address, word: 0 };
                self.answer(&fence.asked, ended, Body::None, 0, Translation::None);
            } else if let Some(held) = self.fences.poll_held() {
                match packet::parse(&held.bytes) {
                    Ok(packet) if !self.answers.is_full(held.space.pid) => {
                        self.execute(held.space, held.peer, &packet);
                    }
                    _ => self.counters.overflows += 1,
                }
                self.fences.reuse(held.bytes);
            } else {
                break;
            }
        }
        self.schedule();
    }

    /// Sets the time of the next step of the slow path, if there is anything to do.
    pub(super) fn schedule(&mut self) {
        if self.step_at.is_none() && (self.slow.len() > 0 || self.vm.pages.needs_zeroing()) {
            self.step_at = Some(self.now.saturating_add(self.config.step));
        }
    }

    /// Does a step of the slow path: a part of a call, and zeroing.
    pub(super) fn step(&mut self) {
        let limits = Limits { retries: self.config.retries_max, conflicts: self.config.conflicts_max };
        let answers = &self.answers;
        let is_read = |space: Space, addresses: &Range<u64>| answers.is_read(space, addresses);
        let ended = self.slow.step(&mut self.vm, limits, self.config.step_pages, &is_read);
        self.vm.pages.zero(&mut self.memory, self.config.step_zero_bytes);
        let Some((job, status, address)) = ended else { return };
        self.counters.search_retries += u64::from(job.retries());
        let Some(asked) = job.asked else { return };
        if let Some(process) = self.vm.processes.get_mut(job.space) {
            process.jobs -= 1;
        }
        let operation = Operation { space: job.space, id: asked.header.id, index: asked.header.index };
        let ended = Ended { status, address, word: 0 };
        self.retries.keep_call(operation, ended, self.now);
        self.counters.calls += u64::from(status == Status::Done);
        if self.vm.processes.get(job.space).is_some_and(|process| process.is_alive()) {
            self.answer(&asked, ended, Body::None, 0, Translation::None);
        }
    }

    /// Writes 0 to a lock, if it is one still.
    pub(super) fn end_lock(&mut self, at: u64, lock: &Lock) {
        let word = at..at + u64::from(WORD_BYTES);
        let is_same_life = self.vm.pages.life(lock.life.size, lock.life.frame) == lock.life.nth;
        if is_same_life && self.memory.at(word.clone()) == lock.word.to_le_bytes() {
            self.memory.at_mut(word).copy_from_slice(&[0; WORD_BYTES as usize]);
            self.counters.locks_ended += 1;
        }
    }
}
