//! Our policy: blocks as small as UniMem's, fetched as long as they are used.
//!
//! ```text
//!  miss ──▶ fetch b, b+1, … as far as they were used together ──▶ device: the least used blocks go
//!                     │ the run is full: fetch the next one ahead          │ half of a page is here
//!                     ▼                                                    ▼
//!            when its first block is used                       host: pages, while there is room;
//!                                                               then only those used 64 times more than another
//! ```
//!
//! Each part can be left out, which shows its contribution: [`Parts`].

mod device;
mod host;
mod layout;
mod split;
mod streams;
#[cfg(test)]
mod tests;

use crate::counts::Counts;
use crate::unimem::fetch;
use crate::{Action, Actions, Block, Policy, Refused, Served, Shape};
use device::Device;
use host::{Host, Place};
use layout::{DEVICE_WAYS_MIN, Layout};
use split::Split;
use streams::Streams;

/// Blocks of a request at most.
const RUN_MAX: u32 = 8;
/// Sets from which on no more than two blocks of a run meet in one, which its window holds.
const SETS_MIN: usize = 8;
/// A page in use is considered for the host at each miss of it, and else once in N uses: a power of two.
const CONSIDERED: u8 = 16;

/// The policy's parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    /// A miss fetches the run of blocks that were used together.
    pub runs: bool,
    /// The next run is fetched before it is used.
    pub ahead: bool,
    /// Blocks that were never used follow the habit of their region.
    pub regions: bool,
    /// The device drops the least used block; otherwise the oldest.
    pub frequency: bool,
    /// Pages in the host.
    pub host: bool,
    /// Once the host is full, only pages that are used more come there; else all of which half is here.
    pub choosy: bool,
    /// While the host has room, all pages come of which half is here; else those that are used often, as into a full one.
    pub filled: bool,
    /// Where host and device are one memory, the split is chosen; else it stays as given.
    pub split: bool,
}

impl Parts {
    /// All of them.
    pub const ALL: Parts = Parts {
        runs: true,
        ahead: true,
        regions: true,
        frequency: true,
        host: true,
        choosy: true,
        filled: true,
        split: true,
    };

    /// Makes the policy with these parts only.
    pub fn open(self, shape: &Shape) -> Result<Box<dyn Policy>, Refused> {
        let mut shape = shape.clone();
        if !self.host {
            (shape.host_percent, shape.one_memory) = (0, false);
        }
        shape.check(4)?;
        Ok(Box::new(Runs::new(self, &shape)))
    }
}

pub(crate) fn open(shape: &Shape) -> Result<Box<dyn Policy>, Refused> {
    Parts::ALL.open(shape)
}

struct Runs {
    layout: Layout,
    device: Device,
    counts: Counts,
    streams: Streams,
    host: Host,
    footprint: u32,
    run_max: u32,
    ahead: bool,
    /// Chooses the host's share, if it is not given.
    split: Option<Split>,
}

/// A page, with what blocks of it have in common.
#[derive(Clone, Copy)]
struct Spot {
    page: u32,
    group: u32,
    in_host: bool,
}

impl Runs {
    fn new(parts: Parts, shape: &Shape) -> Runs {
        let layout = Layout::new(shape);
        let split = if parts.split { Split::new(&layout, shape) } else { None };
        let (device_ways, host_ways) = match split {
            Some(_) => (layout.ways, layout.host_ways_max()),
            None => (layout.device_ways(), layout.host_ways),
        };
        let mut device = Device::new(&layout, device_ways, parts.frequency);
        device.set_limit(layout.device_ways());
        let mut host = Host::new(&layout, shape, host_ways);
        (host.choosy, host.filled) = (parts.choosy, parts.filled);
        host.set_limit(layout.host_ways);
        let room = device.sets() >= SETS_MIN && layout.ways - host_ways >= DEVICE_WAYS_MIN;
        Runs {
            run_max: if parts.runs && room { RUN_MAX } else { 1 },
            device,
            counts: Counts::with_notes(shape.footprint, shape.capacity),
            streams: Streams::new(shape.footprint, parts.regions),
            host,
            footprint: shape.footprint,
            ahead: parts.ahead,
            split,
            layout,
        }
    }

    fn spot(&self, page: u32) -> Spot {
        let group = self.layout.group_of(page);
        Spot { page, group, in_host: self.host.find(group, page).is_some() }
    }

    /// Whether the block after this one is remote, and worth fetching with it: likely to be used soon after it, or in the same page while
    /// its set has room. `spot` is any page's, and becomes that of the block after this one.
    fn goes_on(&self, block: Block, spot: &mut Spot) -> bool {
        let next = block + 1;
        if next >= self.footprint {
            return false;
        }
        let is_likely = self.streams.goes_on(block, &self.counts);
        if !is_likely && self.layout.index_of(next) == 0 {
            return false;
        }
        let page = self.layout.page_of(next);
        if spot.page != page {
            *spot = self.spot(page);
        }
        let set = self.layout.set_in(spot.group, next);
        (is_likely || self.device.has_room(set)) && !spot.in_host && self.device.find(set, next).is_none()
    }

    /// How many blocks from `first` on to fetch in one request.
    fn length(&self, first: Block, mut spot: Spot) -> u32 {
        (1..self.run_max).find(|count| !self.goes_on(first + count - 1, &mut spot)).unwrap_or(self.run_max)
    }

    /// Brings `count` remote blocks, the first of which is in this page, into the device. Blocks fetched ahead are not used yet: no
    /// frequency grows.
    fn bring(&mut self, first: Block, count: u32, ahead: bool, spot: Spot, actions: &mut Actions) {
        let Spot { mut page, mut group, .. } = spot;
        for block in first..first + count {
            if self.layout.page_of(block) != page {
                page = self.layout.page_of(block);
                group = self.layout.group_of(page);
            }
            self.device.enter(self.layout.set_in(group, block), block, &self.counts, actions);
        }
        actions.push(Action::Fetch { first, count, ahead });
    }

    /// The use of this block, which is here, fetches the next run.
    fn mark(&mut self, block: Block) {
        self.device.mark(self.layout.set_of(block), block);
    }

    /// Fetches the run behind the one that starts at `first`, if that run is all here.
    fn bring_next(&mut self, first: Block, mut spot: Spot, actions: &mut Actions) {
        let last = (first..first + self.run_max).find(|block| self.goes_on(*block, &mut spot));
        let Some(start) = last.map(|last| last + 1) else { return };
        let count = self.length(start, spot);
        self.bring(start, count, true, spot, actions);
        if count == self.run_max {
            self.mark(start);
        }
    }

    fn miss(&mut self, block: Block, spot: Spot, write: bool, actions: &mut Actions) {
        let count = self.length(block, spot);
        self.bring(block, count, false, spot, actions);
        if write {
            let set = self.layout.set_in(spot.group, block);
            if let Some(way) = self.device.find(set, block) {
                self.device.hit(set, way, true);
            }
        }
        if self.ahead && count == self.run_max && count > 1 {
            self.mark(block + 1);
        }
    }

    /// Moves a page to the host if half of it is here, and if it is worth it.
    fn promote(&mut self, Spot { page, group, .. }: Spot, actions: &mut Actions) {
        let (first, blocks) = (self.layout.first_of(page), self.layout.blocks_per_page());
        let Some(place) = self.host.place_for(group, page) else { return };
        let here = (0..blocks)
            .filter(|index| {
                self.device.find(self.layout.set_in(group, first + index), first + index).is_some()
            })
            .count();
        if 2 * here < blocks as usize || first + blocks > self.footprint {
            return;
        }
        let (mut dirty, mut missing) = (0u64, 0u64);
        for index in 0..blocks {
            match self.device.take(self.layout.set_in(group, first + index), first + index) {
                Some(is_dirty) => dirty |= u64::from(is_dirty) << index,
                None => missing |= 1 << index,
            }
        }
        self.demote(place, actions);
        fetch(first, missing, actions);
        actions.push(Action::Promote { page });
        self.host.insert(place, page, dirty);
    }

    /// Drops the page of a place; its blocks compete for room in the device.
    fn demote(&mut self, place: Place, actions: &mut Actions) {
        let Some((page, dirty)) = self.host.remove(place) else { return };
        let (first, group) = (self.layout.first_of(page), self.layout.group_of(page));
        for index in 0..self.layout.blocks_per_page() {
            let (block, is_dirty) = (first + index, dirty >> index & 1 != 0);
            if self.device.give(self.layout.set_in(group, block), block, is_dirty, &self.counts, actions) {
                actions.push(Action::Demote { block });
            } else {
                actions.evict(block, is_dirty);
            }
        }
    }

    /// Moves host and device towards the split that was chosen. The side that shrinks gives up blocks before the other one grows,
    /// a page or a few blocks at an access. The group in use waits for another access.
    fn follow_split(&mut self, group: u32, served: Served, actions: &mut Actions) {
        let Some(split) = &mut self.split else { return };
        split.served(served);
        let host = split.ways();
        let device = self.layout.ways - host;
        if self.host.limit() > host || self.device.limit() > device {
            self.host.set_limit(self.host.limit().min(host));
            self.device.set_limit(self.device.limit().min(device));
        }
        if self.host.limit() + self.device.limit() == self.layout.ways {
            return;
        }
        if let Some((over, place)) = self.host.over() {
            if over != group {
                self.demote(place, actions);
            }
            return;
        }
        let in_use = group << self.layout.shift..(group + 1) << self.layout.shift;
        if !self.device.shrink(in_use, &self.counts, actions) {
            self.host.set_limit(host);
            self.device.set_limit(device);
        }
    }
}

impl Policy for Runs {
    fn access(&mut self, block: Block, write: bool, actions: &mut Actions) -> Served {
        actions.clear();
        self.streams.used(block, &mut self.counts);
        let page = self.layout.page_of(block);
        let uses = self.host.used(page);
        let group = self.layout.group_of(page);
        let set = self.layout.set_in(group, block);
        if let Some(place) = self.host.find(group, page) {
            if write {
                self.host.write(place, self.layout.index_of(block));
            }
            self.follow_split(group, Served::Host, actions);
            return Served::Host;
        }
        let spot = Spot { page, group, in_host: false };
        let served = match self.device.find(set, block) {
            Some(way) => {
                if self.device.hit(set, way, write) && self.ahead {
                    self.bring_next(block, spot, actions);
                }
                Served::Device
            }
            None => {
                self.miss(block, spot, write, actions);
                Served::Remote
            }
        };
        if served == Served::Remote || uses.is_multiple_of(CONSIDERED) {
            self.promote(spot, actions);
        }
        self.follow_split(group, served, actions);
        served
    }

    fn metadata_bytes(&self) -> u64 {
        self.device.bytes() + self.counts.bytes() + self.streams.bytes() + self.host.bytes()
    }
}
