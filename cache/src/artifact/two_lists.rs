//! An active list and an inactive one of pages, as in Linux. When the active list has room is the user's rule.

use crate::Block;
use crate::arena::{Arena, List};

/// In a slot's mark.
const ACTIVE: u8 = 1;

#[derive(Debug)]
pub(super) struct TwoLists {
    pub(super) arena: Arena,
    pub(super) active: List,
    pub(super) inactive: List,
}

impl TwoLists {
    pub(super) fn new(pages: u32) -> TwoLists {
        TwoLists { arena: Arena::new(pages), active: List::EMPTY, inactive: List::EMPTY }
    }

    /// A use of a page that is here: whether it was active. `has_room` gets the lengths of both lists without the page.
    pub(super) fn used(&mut self, slot: u32, has_room: impl Fn(u32, u32) -> bool) -> bool {
        let TwoLists { arena, active, inactive } = self;
        if arena.mark(slot) & ACTIVE != 0 {
            arena.refresh(active, slot);
            return true;
        }
        arena.unlink(inactive, slot);
        if !has_room(active.len(), inactive.len()) {
            let tail = active.tail();
            arena.unlink(active, tail);
            arena.push(inactive, tail);
            *arena.mark_mut(tail) &= !ACTIVE;
        }
        arena.push(active, slot);
        *arena.mark_mut(slot) |= ACTIVE;
        false
    }

    /// Inserts an absent page. The caller has made room. Returns its slot.
    pub(super) fn insert(&mut self, page: Block, mark: u8) -> u32 {
        let slot = self.arena.insert(page, mark);
        self.arena.push(&mut self.inactive, slot);
        slot
    }
}
