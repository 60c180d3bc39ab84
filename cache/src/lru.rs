//! LRU and FIFO: one list; the tail goes.

use crate::arena::{Arena, List};
use crate::lists::{self, dirty};
use crate::{Actions, Block, Policy, Refused, Served, Shape};

/// One list of blocks.
pub(crate) struct OneList {
    arena: Arena,
    list: List,
    capacity: u32,
    /// Whether a use moves a block to the head.
    by_use: bool,
}

pub(crate) fn lru(shape: &Shape) -> Result<Box<dyn Policy>, Refused> {
    open(shape, true)
}

pub(crate) fn fifo(shape: &Shape) -> Result<Box<dyn Policy>, Refused> {
    open(shape, false)
}

fn open(shape: &Shape, by_use: bool) -> Result<Box<dyn Policy>, Refused> {
    shape.check(1)?;
    let capacity = shape.capacity;
    Ok(Box::new(OneList { arena: Arena::new(capacity), list: List::EMPTY, capacity, by_use }))
}

impl Policy for OneList {
    fn access(&mut self, block: Block, write: bool, actions: &mut Actions) -> Served {
        actions.clear();
        if let Some(slot) = self.arena.find(block) {
            *self.arena.mark_mut(slot) |= dirty(write);
            if self.by_use {
                self.arena.refresh(&mut self.list, slot);
            }
            return Served::Device;
        }
        if self.list.len() == self.capacity {
            let tail = self.list.tail();
            lists::evict(&mut self.arena, &mut self.list, tail, actions);
        }
        lists::fetch(&mut self.arena, &mut self.list, block, dirty(write), actions);
        Served::Remote
    }

    fn metadata_bytes(&self) -> u64 {
        self.arena.bytes()
    }
}
