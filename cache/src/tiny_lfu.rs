//! W-TinyLFU (Einziger et al., ACM Transactions on Storage 2017): a small window for what is new, and a main part that only
//! blocks used more often than its next victim enter.
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
use crate::lists::{self, DIRTY, dirty};
use crate::{Actions, Block, Policy, Refused, Served, Shape};

// Lists, by the low bits of a slot's mark.
const WINDOW: u8 = 0;
const PROBATION: u8 = 1;
const PROTECTED: u8 = 2;
const LIST: u8 = 0x03;
/// The window has at least this many blocks, if half of the cache is more.
const WINDOW_MIN: u32 = 64;

/// The lists.
pub(crate) struct Lists {
    arena: Arena,
    lists: [List; 3],
    window_max: u32,
    main_max: u32,
    protected_max: u32,
}

impl Lists {
    /// Lists of up to `capacity` blocks, whose limit never falls below `least`. The window has 1 % of them, or `window_min`.
    pub(crate) fn new(capacity: u32, least: u32, window_min: u32) -> Lists {
        let window_max = (capacity / 100).max(window_min).min(least / 2).max(1);
        let arena = Arena::new(capacity);
        let mut lists = Lists { arena, lists: [List::EMPTY; 3], window_max, main_max: 0, protected_max: 0 };
        lists.set_limit(capacity);
        lists
    }

    /// Blocks that may be here.
    pub(crate) fn limit(&self) -> u32 {
        self.window_max + self.main_max
    }

    /// Changes the limit. Blocks above it go by [`shrink`](Lists::shrink).
    pub(crate) fn set_limit(&mut self, blocks: u32) {
        self.main_max = blocks - self.window_max;
        self.protected_max = (u64::from(self.main_max) * 8 / 10) as u32;
    }

    /// Evicts a block if there are more than the limit: whether there were.
    pub(crate) fn shrink(&mut self, actions: &mut Actions) -> bool {
        let over = self.main_len() > self.main_max;
        if over {
            self.evict(self.victim(), actions);
        }
        over
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.arena.bytes()
    }

    /// Blocks that the window holds.
    pub(crate) fn window_max(&self) -> u32 {
        self.window_max
    }

    #[inline]
    pub(crate) fn find(&self, block: Block) -> Option<u32> {
        self.arena.find(block)
    }

    /// A use of a block that is here.
    #[inline]
    pub(crate) fn hit(&mut self, slot: u32, write: bool) {
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

    /// Notes a write to a block that is here. It moves nowhere: the use is the one that fetched it.
    #[inline]
    pub(crate) fn touch(&mut self, slot: u32, write: bool) {
        *self.arena.mark_mut(slot) |= dirty(write);
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

    /// What leaves the main part next.
    fn victim(&self) -> u32 {
        let probation = &self.lists[usize::from(PROBATION)];
        if probation.len() > 0 { probation.tail() } else { self.lists[usize::from(PROTECTED)].tail() }
    }

    fn evict(&mut self, slot: u32, actions: &mut Actions) {
        let list = self.arena.mark(slot) & LIST;
        lists::evict(&mut self.arena, &mut self.lists[usize::from(list)], slot, actions);
    }

    /// Makes room for `count` blocks in the window; it can hold them.
    #[inline]
    pub(crate) fn room(&mut self, count: u32, counts: &Counts, actions: &mut Actions) {
        while self.lists[usize::from(WINDOW)].len() + count > self.window_max {
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
    pub(crate) fn enter(&mut self, block: Block, write: bool) {
        let slot = self.arena.insert(block, WINDOW | dirty(write));
        self.arena.push(&mut self.lists[usize::from(WINDOW)], slot);
    }

    /// Hands a block over to the host: whether it is dirty, if it is here.
    pub(crate) fn take(&mut self, block: Block) -> Option<bool> {
        let slot = self.arena.find(block)?;
        let mark = self.arena.mark(slot);
        self.arena.unlink(&mut self.lists[usize::from(mark & LIST)], slot);
        self.arena.release(slot);
        Some(mark & DIRTY != 0)
    }

    /// Takes a block back from the host if there is room, or if it was used more often than the next victim.
    pub(crate) fn give(&mut self, block: Block, write: bool, counts: &Counts, actions: &mut Actions) -> bool {
        let mut list = PROBATION;
        if self.main_len() >= self.main_max {
            let victim = self.victim();
            if self.lists[usize::from(WINDOW)].len() < self.window_max {
                list = WINDOW;
            } else if counts.frequency(block) > counts.frequency(self.arena.block(victim)) {
                self.evict(victim, actions);
            } else {
                return false;
            }
        }
        let slot = self.arena.insert(block, list | dirty(write));
        self.arena.push(&mut self.lists[usize::from(list)], slot);
        true
    }
}

struct TinyLfu {
    lists: Lists,
    counts: Counts,
}

pub(crate) fn open(shape: &Shape) -> Result<Box<dyn Policy>, Refused> {
    shape.check(2)?;
    let counts = Counts::new(shape.footprint, shape.capacity);
    Ok(Box::new(TinyLfu { lists: Lists::new(shape.capacity, shape.capacity, WINDOW_MIN), counts }))
}

impl Policy for TinyLfu {
    fn access(&mut self, block: Block, write: bool, actions: &mut Actions) -> Served {
        actions.clear();
        self.counts.used(block);
        if let Some(slot) = self.lists.find(block) {
            self.lists.hit(slot, write);
            return Served::Device;
        }
        self.lists.room(1, &self.counts, actions);
        actions.fetch(block);
        self.lists.enter(block, write);
        Served::Remote
    }

    fn metadata_bytes(&self) -> u64 {
        self.lists.bytes() + self.counts.bytes()
    }
}
