//! UniMem's filter cache as its authors simulate it: three lists with a limit each.
//!
//! ```text
//!  miss ─────────────────▶ inactive: FIFO, 10 % at most ── used ──▶ active: LRU, 90 % at most
//!  miss, in the queue ──────────────│───────────────────────────────▶ │
//!         ▲                         │ full                            │ full
//!         └── refault queue: FIFO ◀─┴─────────────────────────────────┘ both leave the cache
//! ```

use super::Counters;
use crate::arena::{Arena, List};
use crate::lists::{self, DIRTY, dirty};
use crate::{Actions, Block, Served};

/// In a slot's mark.
const ACTIVE: u8 = 1;

/// Lengths of the lists at most, in blocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) active: u32,
    pub(super) inactive: u32,
    pub(super) queue: u32,
}

#[derive(Debug)]
pub(super) struct Lists {
    blocks: Arena,
    active: List,
    inactive: List,
    /// Addresses of evicted blocks that did not return, which blocks of the cache never are.
    left: Arena,
    queue: List,
    limits: Limits,
    pub(super) counters: Counters,
}

impl Lists {
    pub(super) fn new(limits: Limits) -> Lists {
        Lists {
            blocks: Arena::new(limits.active + limits.inactive),
            active: List::EMPTY,
            inactive: List::EMPTY,
            left: Arena::new(limits.queue),
            queue: List::EMPTY,
            limits,
            counters: Counters::default(),
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.blocks.bytes() + self.left.bytes()
    }

    /// Lengths of the active list, the inactive list and the queue.
    pub(super) fn lengths(&self) -> [u32; 3] {
        [self.active.len(), self.inactive.len(), self.queue.len()]
    }

    pub(super) fn access(&mut self, block: Block, write: bool, actions: &mut Actions) -> Served {
        if let Some(slot) = self.blocks.find(block) {
            *self.blocks.mark_mut(slot) |= dirty(write);
            if self.blocks.mark(slot) & ACTIVE != 0 {
                self.blocks.refresh(&mut self.active, slot);
                self.counters.active_hits += 1;
            } else {
                self.blocks.unlink(&mut self.inactive, slot);
                self.room_in_active(actions);
                self.blocks.push(&mut self.active, slot);
                *self.blocks.mark_mut(slot) |= ACTIVE;
                self.counters.inactive_hits += 1;
            }
            return Served::Device;
        }
        self.counters.faults += 1;
        if let Some(entry) = self.left.find(block) {
            self.left.unlink(&mut self.queue, entry);
            self.left.release(entry);
            self.counters.refaults += 1;
            self.room_in_active(actions);
            lists::fetch(&mut self.blocks, &mut self.active, block, ACTIVE | dirty(write), actions);
        } else {
            if self.inactive.len() == self.limits.inactive {
                let tail = self.inactive.tail();
                let gone = lists::evict(&mut self.blocks, &mut self.inactive, tail, actions);
                self.enter(gone);
            }
            lists::fetch(&mut self.blocks, &mut self.inactive, block, dirty(write), actions);
        }
        Served::Remote
    }

    fn room_in_active(&mut self, actions: &mut Actions) {
        if self.active.len() == self.limits.active {
            let tail = self.active.tail();
            let gone = lists::evict(&mut self.blocks, &mut self.active, tail, actions);
            self.enter(gone);
        }
    }

    /// Enters an evicted block into the queue; the oldest entry goes.
    fn enter(&mut self, block: Block) {
        self.counters.evictions += 1;
        if self.queue.len() == self.limits.queue {
            let oldest = self.queue.tail();
            self.left.unlink(&mut self.queue, oldest);
            self.left.release(oldest);
        }
        let entry = self.left.insert(block, 0);
        self.left.push(&mut self.queue, entry);
    }

    pub(super) fn is_active(&self, block: Block) -> bool {
        self.blocks.find(block).is_some_and(|slot| self.blocks.mark(slot) & ACTIVE != 0)
    }

    /// Hands an active block over to the host: whether it is dirty.
    pub(super) fn take(&mut self, block: Block) -> bool {
        let Some(slot) = self.blocks.find(block) else { return false };
        let is_dirty = self.blocks.mark(slot) & DIRTY != 0;
        self.blocks.unlink(&mut self.active, slot);
        self.blocks.release(slot);
        is_dirty
    }
}
