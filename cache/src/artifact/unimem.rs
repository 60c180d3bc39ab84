//! UniMem as its authors simulate it, with promotion and without.

use super::Counters;
use super::lists::{Limits, Lists};
use super::two_lists::TwoLists;
use crate::{Action, Actions, Block, Policy, Refused, Served, Shape};

/// The filter cache alone.
#[derive(Debug)]
pub struct NoPromote(Lists);

impl NoPromote {
    /// Errors: a shape that no policy can serve.
    pub fn open(shape: &Shape) -> Result<NoPromote, Refused> {
        let shape = Shape { host_percent: 0, ..shape.clone() };
        shape.check(2)?;
        let blocks = shape.capacity;
        let nine_tenths = (u64::from(blocks) * 9 / 10) as u32;
        let limits = Limits { active: nine_tenths, inactive: blocks.div_ceil(10), queue: nine_tenths };
        Ok(NoPromote(Lists::new(limits)))
    }

    /// Events since the start.
    pub fn counters(&self) -> Counters {
        self.0.counters
    }

    /// Lengths of the active list, the inactive list and the refault queue, in blocks.
    pub fn lengths(&self) -> [u32; 3] {
        self.0.lengths()
    }
}

impl Policy for NoPromote {
    fn access(&mut self, block: Block, write: bool, actions: &mut Actions) -> Served {
        actions.clear();
        self.0.access(block, write, actions)
    }

    fn metadata_bytes(&self) -> u64 {
        self.0.bytes()
    }
}

/// The filter cache, and whole pages in the host. Its capacity is all memory that it has, which is eight times the stated one.
#[derive(Debug)]
pub struct UniMem {
    device: Lists,
    host: TwoLists,
    /// Bits for the blocks of each of the host's pages that are dirty, by slot.
    dirty: Vec<u64>,
    active_max: u32,
    inactive_max: u32,
    /// Blocks of a page, as a power of two.
    shift: u32,
}

impl UniMem {
    /// Errors: a shape that no policy can serve.
    pub fn open(shape: &Shape) -> Result<UniMem, Refused> {
        shape.check(2 * shape.blocks_per_page)?;
        // A list grows while its length is below a limit that is a fraction, so limits are rounded up. Double precision and the
        // order of the operations are the authors', because products such as 80 × 0.7 are rounded too.
        let pages = shape.capacity / shape.blocks_per_page;
        let share = |percent: u32| f64::from(percent) / 100.0;
        let device = f64::from(pages * shape.blocks_per_page) * share(100 - shape.host_percent);
        let host = f64::from(pages) * share(shape.host_percent);
        let limit = |blocks: f64| blocks.ceil() as u32;
        let limits = Limits {
            active: limit(device * 9.0 / 10.0),
            inactive: limit((device + 9.0) / 10.0),
            queue: limit(device),
        };
        // Without a share for the host, their program reads memory that is not its own.
        let (active_max, inactive_max) = (limit(host / 2.0).max(1), limit((host + 1.0) / 2.0));
        Ok(UniMem {
            device: Lists::new(limits),
            host: TwoLists::new(active_max + inactive_max),
            dirty: vec![0; (active_max + inactive_max) as usize],
            active_max,
            inactive_max,
            shift: shape.blocks_per_page.trailing_zeros(),
        })
    }

    /// Events since the start.
    pub fn counters(&self) -> Counters {
        self.device.counters
    }

    /// Lengths of the device's active list, inactive list and refault queue, in blocks; of the host's active and inactive list,
    /// in pages.
    pub fn lengths(&self) -> [u32; 5] {
        let [active, inactive, queue] = self.device.lengths();
        [active, inactive, queue, self.host.active.len(), self.host.inactive.len()]
    }

    fn blocks(&self, page: u32) -> std::ops::Range<Block> {
        page << self.shift..(page + 1) << self.shift
    }

    fn promote(&mut self, page: u32, actions: &mut Actions) {
        if self.host.inactive.len() == self.inactive_max {
            self.drop_page(actions);
        }
        let dirty =
            self.blocks(page).rev().fold(0, |bits, block| bits << 1 | u64::from(self.device.take(block)));
        let slot = self.host.insert(page, 0);
        self.dirty[slot as usize] = dirty;
        self.device.counters.promotions += 1;
        actions.push(Action::Promote { page });
    }

    /// Drops the tail of the host's inactive list.
    fn drop_page(&mut self, actions: &mut Actions) {
        let slot = self.host.inactive.tail();
        let (page, dirty) = (self.host.arena.block(slot), self.dirty[slot as usize]);
        self.host.arena.unlink(&mut self.host.inactive, slot);
        self.host.arena.release(slot);
        self.device.counters.host_evictions += 1;
        for (index, block) in self.blocks(page).enumerate() {
            actions.evict(block, dirty >> index & 1 != 0);
        }
    }
}

impl Policy for UniMem {
    fn access(&mut self, block: Block, write: bool, actions: &mut Actions) -> Served {
        actions.clear();
        let page = block >> self.shift;
        if let Some(slot) = self.host.arena.find(page) {
            let index = block & ((1 << self.shift) - 1);
            self.dirty[slot as usize] |= u64::from(write) << index;
            let active_max = self.active_max;
            self.host.used(slot, |active, _| active < active_max);
            self.device.counters.host_hits += 1;
            return Served::Host;
        }
        let served = self.device.access(block, write, actions);
        if self.blocks(page).all(|block| self.device.is_active(block)) {
            self.promote(page, actions);
        }
        served
    }

    fn metadata_bytes(&self) -> u64 {
        let dirty = (self.dirty.len() * size_of::<u64>()) as u64;
        self.device.bytes() + self.host.arena.bytes() + dirty
    }
}
