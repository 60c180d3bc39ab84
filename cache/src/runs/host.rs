//! Pages in the host, chosen by how often they are used.
//!
//! Two bytes for each page of remote memory: its uses of late, and how many of its blocks the device has. Uses are halved like
//! the frequencies of blocks.

use crate::arena::{Arena, List};
use crate::{Action, Block, Shape};

pub(crate) struct Host {
    arena: Arena,
    list: List,
    /// Dirty blocks of the pages here, by slot.
    dirty: Vec<u64>,
    /// Pages that may be here.
    limit: u32,
    uses: Vec<u8>,
    in_device: Vec<u8>,
    hand: usize,
    credit: u64,
    round: u64,
    footprint: u32,
    shift: u32,
}

impl Host {
    pub(crate) fn new(shape: &Shape) -> Host {
        let limit = shape.host_pages();
        let capacity = if shape.one_memory { shape.pages_max() } else { limit };
        // Without a host nothing is counted.
        let pages = if capacity > 0 { shape.pages() as usize } else { 0 };
        Host {
            arena: Arena::new(capacity),
            list: List::EMPTY,
            dirty: vec![0; capacity as usize],
            limit,
            uses: vec![0; pages],
            in_device: vec![0; pages],
            hand: 0,
            credit: 0,
            round: u64::from(shape.capacity) * 10,
            footprint: shape.footprint,
            shift: shape.blocks_per_page.trailing_zeros(),
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.arena.bytes() + (self.dirty.len() * 8 + self.uses.len() + self.in_device.len()) as u64
    }

    pub(crate) fn blocks_per_page(&self) -> u32 {
        1 << self.shift
    }

    #[inline]
    pub(crate) fn page_of(&self, block: Block) -> u32 {
        block >> self.shift
    }

    pub(crate) fn first_of(&self, page: u32) -> Block {
        page << self.shift
    }

    #[inline]
    pub(crate) fn find(&self, page: u32) -> Option<u32> {
        if self.dirty.is_empty() { None } else { self.arena.find(page) }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.list.len() >= self.limit
    }

    pub(crate) fn limit(&self) -> u32 {
        self.limit
    }

    /// Changes the limit. Pages above it are the caller's to remove.
    pub(crate) fn set_limit(&mut self, pages: u32) {
        self.limit = pages;
    }

    /// Whether there are more pages than the limit.
    pub(crate) fn is_over(&self) -> bool {
        self.list.len() > self.limit
    }

    /// Counts a use of the block's page, and lets the counts of all pages age a little.
    #[inline]
    pub(crate) fn used(&mut self, block: Block) {
        let page = self.page_of(block) as usize;
        let Some(uses) = self.uses.get_mut(page) else { return };
        *uses = uses.saturating_add(1);
        self.credit += self.uses.len() as u64;
        while self.credit >= self.round {
            self.credit -= self.round;
            self.uses[self.hand] /= 2;
            self.hand = if self.hand + 1 == self.uses.len() { 0 } else { self.hand + 1 };
        }
    }

    /// Serves an access if the block's page is here.
    #[inline]
    pub(crate) fn hit(&mut self, block: Block, write: bool) -> bool {
        let Some(slot) = self.find(self.page_of(block)) else { return false };
        if write {
            self.dirty[slot as usize] |= 1 << (block & (self.blocks_per_page() - 1));
        }
        true
    }

    /// The device has one more block.
    #[inline]
    pub(crate) fn entered(&mut self, block: Block) {
        let page = self.page_of(block) as usize;
        if let Some(blocks) = self.in_device.get_mut(page) {
            *blocks += 1;
        }
    }

    /// The device has none of this page's blocks any more.
    pub(crate) fn emptied(&mut self, page: u32) {
        self.in_device[page as usize] = 0;
    }

    /// Counts the blocks that these actions evict from the device.
    #[inline]
    pub(crate) fn settle(&mut self, actions: &[Action]) {
        for action in actions {
            let Action::Evict { block, .. } = action else { continue };
            let page = self.page_of(*block) as usize;
            if let Some(blocks) = self.in_device.get_mut(page) {
                *blocks -= 1;
            }
        }
    }

    /// Whether a page that is not here should come: half of it is in the device, and there is room or it was used 1.25
    /// times as often as the page that it would replace. That page gets another round if not.
    pub(crate) fn wants(&mut self, page: u32) -> bool {
        let Some(blocks) = self.in_device.get(page as usize) else { return false };
        let whole = self.first_of(page) + self.blocks_per_page() <= self.footprint;
        if u32::from(*blocks) * 2 < self.blocks_per_page() || !whole || self.limit == 0 {
            return false;
        }
        if !self.is_full() {
            return true;
        }
        let victim = self.list.tail();
        let uses = |page: u32| u32::from(self.uses[page as usize]);
        if 4 * uses(page) > 5 * uses(self.arena.block(victim)) {
            return true;
        }
        self.arena.refresh(&mut self.list, victim);
        false
    }

    /// Takes the next page out: its number and its dirty blocks.
    pub(crate) fn remove(&mut self) -> Option<(u32, u64)> {
        if self.list.len() == 0 {
            return None;
        }
        let slot = self.list.tail();
        let page = self.arena.block(slot);
        self.arena.unlink(&mut self.list, slot);
        self.arena.release(slot);
        Some((page, self.dirty[slot as usize]))
    }

    /// Brings a page; there is room.
    pub(crate) fn insert(&mut self, page: u32, dirty: u64) {
        let slot = self.arena.insert(page, 0);
        self.arena.push(&mut self.list, slot);
        self.dirty[slot as usize] = dirty;
    }
}
