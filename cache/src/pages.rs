//! Two lists of pages, as in Linux: a page enters the inactive list, its second use takes it to the active one, which is
//! never longer than the inactive one.

use crate::arena::{Arena, List};
use crate::{Actions, Block};

/// In a slot's mark.
pub(crate) const ACTIVE: u8 = 1;

/// Pages and their order. The user keeps the pages' contents, by slot.
#[derive(Clone, Debug)]
pub(crate) struct Pages {
    pub(crate) arena: Arena,
    active: List,
    inactive: List,
    capacity: u32,
}

impl Pages {
    pub(crate) fn new(capacity: u32) -> Pages {
        Pages { arena: Arena::new(capacity), active: List::EMPTY, inactive: List::EMPTY, capacity }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.active.len() + self.inactive.len() == self.capacity
    }

    /// A use of a page that is here.
    #[inline]
    pub(crate) fn used(&mut self, slot: u32) {
        if self.arena.mark(slot) & ACTIVE != 0 {
            return self.arena.refresh(&mut self.active, slot);
        }
        self.arena.unlink(&mut self.inactive, slot);
        self.arena.push(&mut self.active, slot);
        *self.arena.mark_mut(slot) |= ACTIVE;
        if self.active.len() > self.inactive.len() {
            self.cool();
        }
    }

    fn cool(&mut self) {
        let slot = self.active.tail();
        self.arena.unlink(&mut self.active, slot);
        self.arena.push(&mut self.inactive, slot);
        *self.arena.mark_mut(slot) &= !ACTIVE;
    }

    /// The page that goes next, if there is one.
    pub(crate) fn victim(&self) -> Option<u32> {
        let list = if self.inactive.len() > 0 { &self.inactive } else { &self.active };
        (list.len() > 0).then(|| list.tail())
    }

    /// Takes a page out.
    pub(crate) fn remove(&mut self, slot: u32) {
        let active = self.arena.mark(slot) & ACTIVE != 0;
        let list = if active { &mut self.active } else { &mut self.inactive };
        self.arena.unlink(list, slot);
        self.arena.release(slot);
        if self.active.len() > self.inactive.len() {
            self.cool();
        }
    }

    /// Inserts an absent page. The caller has made room.
    pub(crate) fn insert(&mut self, page: Block, mark: u8) -> u32 {
        let slot = self.arena.insert(page, mark);
        self.arena.push(&mut self.inactive, slot);
        slot
    }

    /// Evicts the next page of a cache whose blocks are pages.
    pub(crate) fn evict(&mut self, dirty: u8, actions: &mut Actions) {
        if let Some(slot) = self.victim() {
            actions.evict(self.arena.block(slot), self.arena.mark(slot) & dirty != 0);
            self.remove(slot);
        }
    }
}
