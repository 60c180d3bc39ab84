//! Kona-PC as UniMem's authors simulate it: a page more than stated, and an active list that may be one page longer than the other.

use super::Counters;
use super::two_lists::TwoLists;
use crate::lists::{self, dirty};
use crate::{Actions, Block, Policy, Refused, Served, Shape};

/// Linux's page cache in front of remote memory. Blocks are pages.
#[derive(Debug)]
pub struct PageCache {
    pages: TwoLists,
    /// Pages that it holds at most.
    most: u32,
    counters: Counters,
}

impl PageCache {
    /// Errors: a shape that no policy can serve.
    pub fn open(shape: &Shape) -> Result<PageCache, Refused> {
        shape.check(2)?;
        let most = shape.capacity + 1;
        Ok(PageCache { pages: TwoLists::new(most), most, counters: Counters::default() })
    }

    /// Events since the start.
    pub fn counters(&self) -> Counters {
        self.counters
    }
}

impl Policy for PageCache {
    fn access(&mut self, block: Block, write: bool, actions: &mut Actions) -> Served {
        actions.clear();
        let (pages, counters) = (&mut self.pages, &mut self.counters);
        if let Some(slot) = pages.arena.find(block) {
            *pages.arena.mark_mut(slot) |= dirty(write);
            match pages.used(slot, |active, inactive| active <= inactive) {
                true => counters.active_hits += 1,
                false => counters.inactive_hits += 1,
            }
            return Served::Device;
        }
        counters.faults += 1;
        if pages.active.len() + pages.inactive.len() == self.most {
            // The active list is at most one page longer, so the other one has pages.
            let tail = pages.inactive.tail();
            lists::evict(&mut pages.arena, &mut pages.inactive, tail, actions);
            counters.evictions += 1;
        }
        actions.fetch(block);
        pages.insert(block, dirty(write));
        Served::Remote
    }

    fn metadata_bytes(&self) -> u64 {
        self.pages.arena.bytes()
    }
}
