//! W-TinyLFU (Einziger et al., ACM Transactions on Storage 2017): a small window for new blocks, and a main part that
//! only blocks used more often than its next victim enter.
//!
//! ```text
//!  miss ──▶ window: LRU, 1 % ── tail ──▶ used more often than the victim? ──▶ probation ── used ──▶ protected, 80 %
//!                                            │ no: it goes                       ▲ tail: victim      │ over 80 %
//!                                            ▼                                   └───────────────────┘
//! ```
//!
//! Frequencies are exact, 4 bits for each block of remote memory: a region knows how many it has, so no sketch is needed.

use crate::arena::{Arena, List};
use crate::counts::Counts;
use crate::lists::{self, dirty};
use crate::{Actions, Block, Policy, Refused, Served, Shape};

// Lists, by the low bits of a slot's mark.
const WINDOW: u8 = 0;
const PROBATION: u8 = 1;
const PROTECTED: u8 = 2;
const LIST: u8 = 0x03;
/// The window has at least this many blocks, if half of the cache is more.
const WINDOW_MIN: u32 = 64;

/// The lists.
struct Lists {
    arena: Arena,
    lists: [List; 3],
    window_max: u32,
    main_max: u32,
    protected_max: u32,
}

impl Lists {
    /// Lists of up to `capacity` blocks. The window has 1 % of them.
    fn new(capacity: u32) -> Lists {
        let window_max = (capacity / 100).max(WINDOW_MIN).min(capacity / 2).max(1);
        let main_max = capacity - window_max;
        let protected_max = (u64::from(main_max) * 8 / 10) as u32;
        Lists { arena: Arena::new(capacity), lists: [List::EMPTY; 3], window_max, main_max, protected_max }
    }

    fn bytes(&self) -> u64 {
        self.arena.bytes()
    }

    #[inline]
    fn find(&self, block: Block) -> Option<u32> {
        self.arena.find(block)
    }

    /// A use of a block that is here.
    #[inline]
    fn hit(&mut self, slot: u32, write: bool) {
        let mark = self.arena.mark(slot) | dirty(write);
        *self.arena.mark_mut(slot) = mark;
        let list = mark & LIST;
        if list != PROBATION {
            return self.arena.refresh(&mut self.lists[usize::from(list)], slot);
        }
        self.relist(slot, PROTECTED);
        if self.lists[usize::from(PROTECTED)].len() > self.protected_max {
            self.relist(self.lists[usize::from(PROTECTED)].tail(), PROBATION);
        }
    }

    fn relist(&mut self, slot: u32, list: u8) {
        let mark = self.arena.mark(slot);
        self.arena.unlink(&mut self.lists[usize::from(mark & LIST)], slot);
        self.arena.push(&mut self.lists[usize::from(list)], slot);
        *self.arena.mark_mut(slot) = (mark & !LIST) | list;
    }

    fn main_len(&self) -> u32 {
        self.lists[usize::from(PROBATION)].len() + self.lists[usize::from(PROTECTED)].len()
    }

    /// The main part's next victim.
    fn victim(&self) -> u32 {
        let probation = &self.lists[usize::from(PROBATION)];
        if probation.len() > 0 { probation.tail() } else { self.lists[usize::from(PROTECTED)].tail() }
    }

    fn evict(&mut self, slot: u32, actions: &mut Actions) {
        let list = self.arena.mark(slot) & LIST;
        lists::evict(&mut self.arena, &mut self.lists[usize::from(list)], slot, actions);
    }

    /// Makes room for a block in the window.
    #[inline]
    fn room(&mut self, counts: &Counts, actions: &mut Actions) {
        while self.lists[usize::from(WINDOW)].len() == self.window_max {
            let candidate = self.lists[usize::from(WINDOW)].tail();
            if self.main_len() >= self.main_max {
                let victim = self.victim();
                let uses = |slot: u32| counts.frequency(self.arena.block(slot));
                if uses(candidate) <= uses(victim) {
                    self.evict(candidate, actions);
                    continue;
                }
                self.evict(victim, actions);
            }
            self.relist(candidate, PROBATION);
        }
    }

    /// Puts a block into the window, which has room.
    #[inline]
    fn enter(&mut self, block: Block, write: bool) {
        let slot = self.arena.insert(block, WINDOW | dirty(write));
        self.arena.push(&mut self.lists[usize::from(WINDOW)], slot);
    }
}

struct TinyLfu {
    lists: Lists,
    counts: Counts,
}

pub(crate) fn open(shape: &Shape) -> Result<Box<dyn Policy>, Refused> {
    shape.check(2)?;
    let counts = Counts::new(shape.footprint, shape.capacity);
    Ok(Box::new(TinyLfu { lists: Lists::new(shape.capacity), counts }))
}

impl Policy for TinyLfu {
    fn access(&mut self, block: Block, write: bool, actions: &mut Actions) -> Served {
        actions.clear();
        self.counts.used(block);
        if let Some(slot) = self.lists.find(block) {
            self.lists.hit(slot, write);
            return Served::Device;
        }
        self.lists.room(&self.counts, actions);
        actions.fetch(block);
        self.lists.enter(block, write);
        Served::Remote
    }

    fn metadata_bytes(&self) -> u64 {
        self.lists.bytes() + self.counts.bytes()
    }
}
