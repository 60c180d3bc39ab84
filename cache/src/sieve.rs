//! SIEVE (Zhang et al., NSDI 2024): blocks stay where they entered, and a hand drops the first one that was not used since
//! it last passed.
//!
//! ```text
//!  head ─ a ─ b* ─ c* ─ d ─ tail     * used since
//!                  ▲ hand: spares c and b, evicts a
//! ```

use crate::arena::{Arena, List, NONE};
use crate::lists::{self, dirty};
use crate::{Actions, Block, Policy, Refused, Served, Shape};

/// In a slot's mark.
const USED: u8 = 1;

struct Sieve {
    arena: Arena,
    list: List,
    hand: u32,
    capacity: u32,
}

pub(crate) fn open(shape: &Shape) -> Result<Box<dyn Policy>, Refused> {
    shape.check(1)?;
    let capacity = shape.capacity;
    Ok(Box::new(Sieve { arena: Arena::new(capacity), list: List::EMPTY, hand: NONE, capacity }))
}

impl Sieve {
    fn evict(&mut self, actions: &mut Actions) {
        let from = |hand: u32, list: &List| if hand == NONE { list.tail() } else { hand };
        let mut victim = from(self.hand, &self.list);
        while self.arena.mark(victim) & USED != 0 {
            *self.arena.mark_mut(victim) &= !USED;
            victim = from(self.arena.towards_head(victim), &self.list);
        }
        self.hand = self.arena.towards_head(victim);
        lists::evict(&mut self.arena, &mut self.list, victim, actions);
    }
}

impl Policy for Sieve {
    fn access(&mut self, block: Block, write: bool, actions: &mut Actions) -> Served {
        actions.clear();
        if let Some(slot) = self.arena.find(block) {
            *self.arena.mark_mut(slot) |= USED | dirty(write);
            return Served::Device;
        }
        if self.list.len() == self.capacity {
            self.evict(actions);
        }
        lists::fetch(&mut self.arena, &mut self.list, block, dirty(write), actions);
        Served::Remote
    }

    fn metadata_bytes(&self) -> u64 {
        self.arena.bytes()
    }
}
