//! Our policy: blocks as small as UniMem's, fetched as long as they are used.
//!
//! ```text
//!  miss ──▶ fetch b, b+1, … as far as they were used together ──▶ device: W-TinyLFU over blocks
//!                     │ the run is full: fetch the next one ahead          │ half of a page is here
//!                     ▼                                                    ▼
//!            when its first block is used                       host: pages, while there is room;
//!                                                               then only those used 1.25 times as often
//! ```
//!
//! Each part can be left out, which shows what it gives: [`Parts`].

mod host;
mod split;
mod streams;
#[cfg(test)]
mod tests;

use crate::counts::Counts;
use crate::tiny_lfu::Lists;
use crate::unimem::fetch;
use crate::{Action, Actions, Block, Policy, Refused, Served, Shape};
use host::Host;
use split::Split;
use streams::Streams;

/// Blocks of a request at most.
const RUN_MAX: u32 = 8;
/// Blocks of the window at least, but no more than an eighth of the cache: runs fetched ahead for 16 streams wait there.
const WINDOW_MIN: u32 = 256;

/// The policy's parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    /// A miss fetches the run of blocks that were used together.
    pub runs: bool,
    /// The next run is fetched before it is used.
    pub ahead: bool,
    /// Blocks that were never used follow the habit of their region.
    pub regions: bool,
    /// Pages in the host.
    pub host: bool,
}

impl Parts {
    /// All of them.
    pub const ALL: Parts = Parts { runs: true, ahead: true, regions: true, host: true };

    /// Makes the policy with these parts only.
    pub fn open(self, shape: &Shape) -> Result<Box<dyn Policy>, Refused> {
        let mut shape = shape.clone();
        if !self.host {
            (shape.host_percent, shape.one_memory) = (0, false);
        }
        shape.check(4)?;
        let split = Split::new(&shape);
        let whole = shape.capacity;
        let (largest, least) = match split {
            Some(_) => (whole, whole - shape.pages_max() * shape.blocks_per_page),
            None => (shape.device_blocks(), shape.device_blocks()),
        };
        let mut device = Lists::new(largest, least, WINDOW_MIN.min(shape.capacity / 8));
        device.set_limit(shape.device_blocks());
        Ok(Box::new(Runs {
            run_max: if self.runs { RUN_MAX.min(device.window_max() / 2).max(1) } else { 1 },
            device,
            counts: Counts::new(shape.footprint, shape.capacity),
            streams: Streams::new(shape.footprint, self.regions),
            host: Host::new(&shape),
            footprint: shape.footprint,
            capacity: shape.capacity,
            ahead: self.ahead,
            split,
        }))
    }
}

pub(crate) fn open(shape: &Shape) -> Result<Box<dyn Policy>, Refused> {
    Parts::ALL.open(shape)
}

struct Runs {
    device: Lists,
    counts: Counts,
    streams: Streams,
    host: Host,
    footprint: u32,
    capacity: u32,
    run_max: u32,
    ahead: bool,
    /// Chooses the host's share, if it is not given.
    split: Option<Split>,
}

impl Runs {
    fn is_local(&self, block: Block) -> bool {
        self.host.find(self.host.page_of(block)).is_some() || self.device.find(block).is_some()
    }

    /// Whether the block after this one is remote, and likely to be used soon after it.
    fn goes_on(&self, block: Block) -> bool {
        let next = block + 1;
        next < self.footprint && self.streams.goes_on(block, &self.counts) && !self.is_local(next)
    }

    /// How many blocks from `first` on to fetch in one request.
    fn length(&self, first: Block) -> u32 {
        (1..self.run_max).find(|count| !self.goes_on(first + count - 1)).unwrap_or(self.run_max)
    }

    /// Brings `count` remote blocks into the device. What was fetched ahead is not used yet: no frequency grows.
    fn bring(&mut self, first: Block, count: u32, ahead: bool, actions: &mut Actions) {
        let from = actions.as_slice().len();
        self.device.room(count, &self.counts, actions);
        self.host.settle(&actions.as_slice()[from..]);
        actions.push(Action::Fetch { first, count, ahead });
        for block in first..first + count {
            self.device.enter(block, false);
            self.host.entered(block);
        }
    }

    /// Fetches the run behind the one that starts at `first`, if that run is all here.
    fn bring_next(&mut self, first: Block, actions: &mut Actions) {
        let last = (first..first + self.run_max).find(|block| self.goes_on(*block));
        let Some(start) = last.map(|last| last + 1) else { return };
        let count = self.length(start);
        self.bring(start, count, true, actions);
        if count == self.run_max {
            self.streams.set_marker(start, &mut self.counts);
        }
    }

    fn miss(&mut self, block: Block, write: bool, actions: &mut Actions) {
        let count = self.length(block);
        self.bring(block, count, false, actions);
        if let Some(slot) = self.device.find(block) {
            self.device.touch(slot, write);
        }
        if self.ahead && count == self.run_max && count > 1 {
            self.streams.set_marker(block + 1, &mut self.counts);
        }
    }

    /// Moves the block's page to the host if it is worth it.
    fn promote(&mut self, block: Block, actions: &mut Actions) {
        let page = self.host.page_of(block);
        if !self.host.wants(page) {
            return;
        }
        let first = self.host.first_of(page);
        let (mut dirty, mut missing) = (0u64, 0u64);
        for index in 0..self.host.blocks_per_page() {
            match self.device.take(first + index) {
                Some(is_dirty) => dirty |= u64::from(is_dirty) << index,
                None => missing |= 1 << index,
            }
        }
        self.host.emptied(page);
        if self.host.is_full() {
            self.demote(actions);
        }
        fetch(first, missing, actions);
        actions.push(Action::Promote { page });
        self.host.insert(page, dirty);
    }

    /// Moves host and device towards the split that was chosen. The side that shrinks gives up blocks before the other one grows,
    /// a page or a few blocks at an access.
    fn follow_split(&mut self, served: Served, actions: &mut Actions) {
        const BLOCKS_AT_AN_ACCESS: usize = 4;
        let Some(split) = &mut self.split else { return };
        split.served(served);
        let pages = split.pages();
        let blocks = self.capacity - pages * self.host.blocks_per_page();
        if self.host.limit() == pages && self.device.limit() == blocks {
            return;
        }
        self.host.set_limit(self.host.limit().min(pages));
        self.device.set_limit(self.device.limit().min(blocks));
        if self.host.is_over() {
            return self.demote(actions);
        }
        for _ in 0..BLOCKS_AT_AN_ACCESS {
            let from = actions.as_slice().len();
            if !self.device.shrink(actions) {
                self.host.set_limit(pages);
                self.device.set_limit(blocks);
                return;
            }
            self.host.settle(&actions.as_slice()[from..]);
        }
    }

    /// Drops the host's next page; its blocks compete for a place in the device.
    fn demote(&mut self, actions: &mut Actions) {
        let Some((page, dirty)) = self.host.remove() else { return };
        let first = self.host.first_of(page);
        for index in 0..self.host.blocks_per_page() {
            let (block, is_dirty) = (first + index, dirty >> index & 1 != 0);
            let from = actions.as_slice().len();
            let stays = self.device.give(block, is_dirty, &self.counts, actions);
            self.host.settle(&actions.as_slice()[from..]);
            if stays {
                actions.push(Action::Demote { block });
                self.host.entered(block);
            } else {
                actions.evict(block, is_dirty);
            }
        }
    }
}

impl Policy for Runs {
    fn access(&mut self, block: Block, write: bool, actions: &mut Actions) -> Served {
        actions.clear();
        self.counts.used(block);
        self.streams.used(block, &mut self.counts);
        self.host.used(block);
        let served = if self.host.hit(block, write) {
            Served::Host
        } else if let Some(slot) = self.device.find(block) {
            self.device.hit(slot, write);
            Served::Device
        } else {
            self.miss(block, write, actions);
            Served::Remote
        };
        if served != Served::Remote && self.ahead && self.streams.take_marker(block, &mut self.counts) {
            self.bring_next(block, actions);
        }
        if served != Served::Host {
            self.promote(block, actions);
        }
        self.follow_split(served, actions);
        served
    }

    fn metadata_bytes(&self) -> u64 {
        self.device.bytes() + self.counts.bytes() + self.streams.bytes() + self.host.bytes()
    }
}
