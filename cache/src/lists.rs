//! Shared parts of policies with lists of blocks: the mark of a dirty block, insertion and removal.

use crate::arena::{Arena, List};
use crate::{Actions, Block};

/// In a slot's mark: the block has to be written back.
pub(crate) const DIRTY: u8 = 0x80;

/// The mark of a block that an access brings.
#[inline]
pub(crate) fn dirty(write: bool) -> u8 {
    if write { DIRTY } else { 0 }
}

/// Evicts the block of a slot, which is in this list.
#[inline]
pub(crate) fn evict(arena: &mut Arena, list: &mut List, slot: u32, actions: &mut Actions) -> Block {
    let block = arena.block(slot);
    actions.evict(block, arena.mark(slot) & DIRTY != 0);
    arena.unlink(list, slot);
    arena.release(slot);
    block
}

/// Fetches a block to the head of a list.
#[inline]
pub(crate) fn fetch(arena: &mut Arena, list: &mut List, block: Block, mark: u8, actions: &mut Actions) {
    actions.fetch(block);
    let slot = arena.insert(block, mark);
    arena.push(list, slot);
}
