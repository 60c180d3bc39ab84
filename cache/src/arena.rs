//! Slots of blocks with links: found by block, and in one list each.
//!
//! ```text
//!  heads ── hash of the block ─▶ slot ─ chain ─▶ slot …
//!                                │ prev, next: neighbours in a list
//!  List: head ◀──────────────────┴─▶ tail
//! ```
//!
//! Everything is allocated at the start. A slot takes 16 bytes, so one access to memory brings all of its links.

use crate::Block;

/// No slot.
pub(crate) const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Slot {
    block: Block,
    prev: u32,
    next: u32,
    chain: u32,
}

/// A list of slots. The head is the end where blocks enter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    head: u32,
    tail: u32,
    len: u32,
}

impl List {
    pub(crate) const EMPTY: List = List { head: NONE, tail: NONE, len: 0 };

    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    pub(crate) fn tail(&self) -> u32 {
        self.tail
    }
}

/// Slots for up to a number of blocks.
#[derive(Clone, Debug)]
pub(crate) struct Arena {
    slots: Vec<Slot>,
    heads: Vec<u32>,
    marks: Vec<u8>,
    /// Slots that were never used start here; others that are free are chained.
    fresh: u32,
    free: u32,
}

/// Spreads block numbers, so that strides do not meet in few buckets.
#[inline]
pub(crate) fn mix(block: Block) -> u32 {
    let mixed = u64::from(block ^ (block >> 15)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 32) as u32
}

impl Arena {
    pub(crate) fn new(capacity: u32) -> Arena {
        let empty = Slot { block: 0, prev: NONE, next: NONE, chain: NONE };
        let capacity = capacity as usize;
        Arena {
            slots: vec![empty; capacity],
            heads: vec![NONE; capacity.max(1)],
            marks: vec![0; capacity],
            fresh: 0,
            free: NONE,
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        (self.slots.len() * size_of::<Slot>() + self.heads.len() * size_of::<u32>() + self.marks.len()) as u64
    }

    #[inline]
    fn bucket(&self, block: Block) -> usize {
        ((u64::from(mix(block)) * self.heads.len() as u64) >> 32) as usize
    }

    /// The slot that has this block.
    #[inline]
    pub(crate) fn find(&self, block: Block) -> Option<u32> {
        let mut at = self.heads[self.bucket(block)];
        while at != NONE {
            let slot = &self.slots[at as usize];
            if slot.block == block {
                return Some(at);
            }
            at = slot.chain;
        }
        None
    }

    #[inline]
    pub(crate) fn block(&self, slot: u32) -> Block {
        self.slots[slot as usize].block
    }

    /// A byte that a policy keeps with a block.
    #[inline]
    pub(crate) fn mark(&self, slot: u32) -> u8 {
        self.marks[slot as usize]
    }

    #[inline]
    pub(crate) fn mark_mut(&mut self, slot: u32) -> &mut u8 {
        &mut self.marks[slot as usize]
    }

    /// Gives a block that has no slot one, in no list yet. There is a free one: callers keep the bound.
    #[inline]
    pub(crate) fn insert(&mut self, block: Block, mark: u8) -> u32 {
        let slot = match self.free {
            NONE => {
                self.fresh += 1;
                self.fresh - 1
            }
            free => {
                self.free = self.slots[free as usize].chain;
                free
            }
        };
        let bucket = self.bucket(block);
        self.slots[slot as usize] = Slot { block, prev: NONE, next: NONE, chain: self.heads[bucket] };
        self.heads[bucket] = slot;
        self.marks[slot as usize] = mark;
        slot
    }

    /// Takes the slot from its block. It is no longer in a list.
    #[inline]
    pub(crate) fn release(&mut self, slot: u32) {
        let Slot { block, chain, .. } = self.slots[slot as usize];
        let bucket = self.bucket(block);
        if self.heads[bucket] == slot {
            self.heads[bucket] = chain;
        } else {
            let mut at = self.heads[bucket];
            while self.slots[at as usize].chain != slot {
                at = self.slots[at as usize].chain;
            }
            self.slots[at as usize].chain = chain;
        }
        self.slots[slot as usize].chain = self.free;
        self.free = slot;
    }

    /// Puts a slot that is in no list at the head of one.
    #[inline]
    pub(crate) fn push(&mut self, list: &mut List, slot: u32) {
        let entry = &mut self.slots[slot as usize];
        (entry.prev, entry.next) = (NONE, list.head);
        match list.head {
            NONE => list.tail = slot,
            head => self.slots[head as usize].prev = slot,
        }
        list.head = slot;
        list.len += 1;
    }

    /// Takes a slot out of its list.
    #[inline]
    pub(crate) fn unlink(&mut self, list: &mut List, slot: u32) {
        let Slot { prev, next, .. } = self.slots[slot as usize];
        match prev {
            NONE => list.head = next,
            prev => self.slots[prev as usize].next = next,
        }
        match next {
            NONE => list.tail = prev,
            next => self.slots[next as usize].prev = prev,
        }
        list.len -= 1;
    }

    /// Moves a slot to the head of its list.
    #[inline]
    pub(crate) fn refresh(&mut self, list: &mut List, slot: u32) {
        if list.head != slot {
            self.unlink(list, slot);
            self.push(list, slot);
        }
    }

    /// The neighbour that is nearer to the head; `NONE` at the head.
    #[inline]
    pub(crate) fn towards_head(&self, slot: u32) -> u32 {
        self.slots[slot as usize].prev
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn a_list_is_a_deque(steps in prop::collection::vec((0u8..4, 0u32..40), 1..400)) {
            let (mut arena, mut list, mut model) = (Arena::new(8), List::EMPTY, VecDeque::new());
            for (step, block) in steps {
                let at = arena.find(block);
                prop_assert_eq!(at.is_some(), model.contains(&block));
                match (step, at) {
                    (0 | 1, None) if model.len() < 8 => {
                        let slot = arena.insert(block, step);
                        arena.push(&mut list, slot);
                        model.push_front(block);
                    }
                    (2, Some(slot)) => {
                        arena.refresh(&mut list, slot);
                        model.retain(|one| *one != block);
                        model.push_front(block);
                    }
                    (3, Some(slot)) => {
                        arena.unlink(&mut list, slot);
                        arena.release(slot);
                        model.retain(|one| *one != block);
                    }
                    _ => {}
                }
                let mut listed = Vec::new();
                let mut at = list.tail();
                while at != NONE {
                    listed.push(arena.block(at));
                    at = arena.towards_head(at);
                }
                prop_assert!(listed.iter().eq(model.iter().rev()));
                prop_assert_eq!(list.len() as usize, model.len());
            }
        }
    }
}
