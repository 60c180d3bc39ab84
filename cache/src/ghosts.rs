//! Addresses of blocks that were evicted, as proof that a block was here before.

use crate::Block;
use crate::arena::{Arena, List};

/// Blocks that left, first in, first out. A block that returns takes its entry with it.
///
/// Entries hold whole block numbers: a hit is never another block's.
#[derive(Clone, Debug)]
pub(crate) struct Ghosts {
    arena: Arena,
    list: List,
    capacity: u32,
}

impl Ghosts {
    pub(crate) fn new(capacity: u32) -> Ghosts {
        Ghosts { arena: Arena::new(capacity), list: List::EMPTY, capacity }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.arena.bytes()
    }

    /// Enters a block, which has no entry: it took it when it came. The oldest one goes if there is no room.
    pub(crate) fn enter(&mut self, block: Block) {
        if self.capacity == 0 {
            return;
        }
        debug_assert!(self.arena.find(block).is_none(), "it was taken");
        if self.list.len() == self.capacity {
            let oldest = self.list.tail();
            self.arena.unlink(&mut self.list, oldest);
            self.arena.release(oldest);
        }
        let slot = self.arena.insert(block, 0);
        self.arena.push(&mut self.list, slot);
    }

    /// Whether the block has an entry, which is gone afterwards: one eviction proves one return.
    pub(crate) fn take(&mut self, block: Block) -> bool {
        let Some(slot) = self.arena.find(block) else { return false };
        self.arena.unlink(&mut self.list, slot);
        self.arena.release(slot);
        true
    }
}
