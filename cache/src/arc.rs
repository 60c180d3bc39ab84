//! ARC (Megiddo and Modha, FAST 2003): two LRU lists, blocks seen once and more often, each with the addresses of
//! blocks that left it. A hit among those addresses moves the target size of the first list.

use crate::arena::{Arena, List};
use crate::lists::{DIRTY, dirty};
use crate::{Actions, Block, Policy, Refused, Served, Shape};

// Lists, by the low bits of a slot's mark. Ghosts have an address alone.
const ONCE: u8 = 0;
const OFTEN: u8 = 1;
const ONCE_GHOST: u8 = 2;
const OFTEN_GHOST: u8 = 3;
const LIST: u8 = 0x03;

struct Arc {
    arena: Arena,
    lists: [List; 4],
    capacity: u32,
    /// Size that the list of blocks seen once should have.
    target: f64,
}

pub(crate) fn open(shape: &Shape) -> Result<Box<dyn Policy>, Refused> {
    shape.check(1)?;
    let capacity = shape.capacity;
    Ok(Box::new(Arc {
        arena: Arena::new(capacity.saturating_mul(2).saturating_add(1)),
        lists: [List::EMPTY; 4],
        capacity,
        target: 0.0,
    }))
}

impl Arc {
    fn len(&self, list: u8) -> u32 {
        self.lists[usize::from(list)].len()
    }

    fn unlink(&mut self, list: u8, slot: u32) {
        self.arena.unlink(&mut self.lists[usize::from(list)], slot);
    }

    fn push(&mut self, list: u8, slot: u32, dirty: u8) {
        *self.arena.mark_mut(slot) = list | dirty;
        self.arena.push(&mut self.lists[usize::from(list)], slot);
    }

    /// Evicts the tail of a list; its address stays as a ghost, or goes too.
    fn evict(&mut self, list: u8, keep: bool, actions: &mut Actions) {
        let slot = self.lists[usize::from(list)].tail();
        actions.evict(self.arena.block(slot), self.arena.mark(slot) & DIRTY != 0);
        self.unlink(list, slot);
        if keep {
            self.push(list + ONCE_GHOST, slot, 0);
        } else {
            self.arena.release(slot);
        }
    }

    fn forget(&mut self, ghosts: u8) {
        let slot = self.lists[usize::from(ghosts)].tail();
        self.unlink(ghosts, slot);
        self.arena.release(slot);
    }

    /// The paper's REPLACE.
    fn replace(&mut self, hit_often_ghost: bool, actions: &mut Actions) {
        let once = f64::from(self.len(ONCE));
        let over = once > self.target || (once == self.target && hit_often_ghost);
        let list = if (once > 0.0 && over) || self.len(OFTEN) == 0 { ONCE } else { OFTEN };
        self.evict(list, true, actions);
    }

    /// The paper's case IV: the address is in no list.
    fn make_room(&mut self, actions: &mut Actions) {
        if self.len(ONCE) + self.len(OFTEN) < self.capacity {
            return;
        }
        if self.len(ONCE) + self.len(ONCE_GHOST) >= self.capacity {
            if self.len(ONCE_GHOST) == 0 {
                return self.evict(ONCE, false, actions);
            }
            self.forget(ONCE_GHOST);
        } else if self.lists.iter().map(List::len).sum::<u32>() >= 2 * self.capacity {
            self.forget(OFTEN_GHOST);
        }
        self.replace(false, actions);
    }
}

impl Policy for Arc {
    fn access(&mut self, block: Block, write: bool, actions: &mut Actions) -> Served {
        actions.clear();
        let Some(slot) = self.arena.find(block) else {
            self.make_room(actions);
            actions.fetch(block);
            let slot = self.arena.insert(block, 0);
            self.push(ONCE, slot, dirty(write));
            return Served::Remote;
        };
        let mark = self.arena.mark(slot);
        let list = mark & LIST;
        if list == ONCE || list == OFTEN {
            self.unlink(list, slot);
            self.push(OFTEN, slot, (mark & DIRTY) | dirty(write));
            return Served::Device;
        }
        let (once, often) = (f64::from(self.len(ONCE_GHOST)), f64::from(self.len(OFTEN_GHOST)));
        self.target = if list == ONCE_GHOST {
            (self.target + (often / once).max(1.0)).min(f64::from(self.capacity))
        } else {
            (self.target - (once / often).max(1.0)).max(0.0)
        };
        self.unlink(list, slot);
        if self.len(ONCE) + self.len(OFTEN) == self.capacity {
            self.replace(list == OFTEN_GHOST, actions);
        }
        actions.fetch(block);
        self.push(OFTEN, slot, dirty(write));
        Served::Remote
    }

    fn metadata_bytes(&self) -> u64 {
        self.arena.bytes()
    }
}
