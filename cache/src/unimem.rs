//! UniMem (Zhang et al., ATC 2024): the filter cache in the device, and pages in the host whose blocks are all in use.
//!
//! ```text
//!  device: filter cache ──▶ candidates: mean score ≥ 1.5, variance ≤ 0.25 ──▶ batch of 512 ──▶ host: two lists of pages
//!        ▲                                                                                   │
//!        └────────── blocks that were used in the host ──────────────────────────────────────┘
//! ```
//!
//! A block scores 2 if it is active, 1 if inactive, 0 if absent. The paper has a page's mean score say how hot it is and the
//! variance how fragmented; the two thresholds are ours. A full batch moves one page per access, so that no access takes long.

use crate::arena::{Arena, List};
use crate::filter::{Filter, Found};
use crate::pages::Pages;
use crate::{Action, Actions, Block, Policy, Refused, Served, Shape};

/// Candidates of a batch.
const BATCH: u32 = 512;

/// Content of a page in the host: a bit for each block.
#[derive(Clone, Copy, Default)]
struct Contents {
    dirty: u64,
    used: u64,
}

struct UniMem {
    device: Filter,
    host: Pages,
    contents: Vec<Contents>,
    batch: Batch,
    footprint: u32,
    /// Blocks of a page, as a power of two.
    shift: u32,
}

/// Pages that wait to be promoted together.
struct Batch {
    arena: Arena,
    list: List,
    size: u32,
    moving: bool,
}

pub(crate) fn open(shape: &Shape) -> Result<Box<dyn Policy>, Refused> {
    shape.check(2 * shape.pairs)?;
    let pages = shape.host_pages();
    // A batch of more than a part of the host's memory would replace itself.
    let size = BATCH.min(pages / 8).max(1);
    Ok(Box::new(UniMem {
        device: Filter::new(shape.device_blocks(), shape),
        host: Pages::new(pages),
        contents: vec![Contents::default(); pages as usize],
        batch: Batch { arena: Arena::new(size), list: List::EMPTY, size, moving: false },
        footprint: shape.footprint,
        shift: shape.blocks_per_page.trailing_zeros(),
    }))
}

impl Batch {
    fn add(&mut self, page: u32) {
        if self.list.len() < self.size && self.arena.find(page).is_none() {
            let slot = self.arena.insert(page, 0);
            self.arena.push(&mut self.list, slot);
        }
        self.moving |= self.list.len() == self.size;
    }

    /// The next page of a full batch.
    fn next(&mut self) -> Option<u32> {
        if !self.moving {
            return None;
        }
        let slot = self.list.tail();
        let page = self.arena.block(slot);
        self.arena.unlink(&mut self.list, slot);
        self.arena.release(slot);
        self.moving = self.list.len() > 0;
        Some(page)
    }
}

impl UniMem {
    fn blocks_per_page(&self) -> u32 {
        1 << self.shift
    }

    /// Whether a page is hot and not fragmented.
    fn is_candidate(&self, page: u32) -> bool {
        let (first, blocks) = (page << self.shift, self.blocks_per_page());
        // Sums and their squares in integers: mean ≥ 3/2, and mean of the squares − mean² ≤ 1/4.
        let (mut sum, mut squares) = (0, 0);
        // What the sum may lack of all blocks' best scores; most pages lack it after a few blocks.
        let mut lack = blocks / 2;
        for block in first..first + blocks {
            let score = self.device.score(block);
            if 2 - score > lack {
                return false;
            }
            lack -= 2 - score;
            sum += score;
            squares += score * score;
        }
        4 * (blocks * squares - sum * sum) <= blocks * blocks
    }

    /// A block of the page became active: the page may be worth a place in the host.
    fn consider(&mut self, block: Block) {
        let page = block >> self.shift;
        let whole = (page << self.shift) + self.blocks_per_page() <= self.footprint;
        if whole && !self.contents.is_empty() && !self.batch.moving && self.is_candidate(page) {
            self.batch.add(page);
        }
    }

    fn promote(&mut self, page: u32, actions: &mut Actions) {
        if self.host.arena.find(page).is_some() || !self.is_candidate(page) {
            return;
        }
        let first = page << self.shift;
        let (mut contents, mut missing) = (Contents::default(), 0u64);
        for index in 0..self.blocks_per_page() {
            match self.device.take(first + index) {
                Some(dirty) => contents.dirty |= u64::from(dirty) << index,
                None => missing |= 1 << index,
            }
        }
        if self.host.is_full() {
            self.demote(actions);
        }
        fetch(first, missing, actions);
        actions.push(Action::Promote { page });
        let slot = self.host.insert(page, 0);
        self.contents[slot as usize] = contents;
    }

    /// Drops the next page of the host. Blocks that were used there return to the device.
    fn demote(&mut self, actions: &mut Actions) {
        let Some(slot) = self.host.victim() else { return };
        let first = self.host.arena.block(slot) << self.shift;
        let contents = self.contents[slot as usize];
        self.host.remove(slot);
        for index in 0..self.blocks_per_page() {
            let (block, dirty) = (first + index, contents.dirty >> index & 1 != 0);
            if contents.used >> index & 1 != 0 {
                self.device.give(block, dirty, actions);
                actions.push(Action::Demote { block });
            } else {
                actions.evict(block, dirty);
            }
        }
    }
}

/// Fetches blocks of a page that nothing waits for; adjacent ones in one request.
pub(crate) fn fetch(first: Block, mut missing: u64, actions: &mut Actions) {
    while missing != 0 {
        let start = missing.trailing_zeros();
        let count = (missing >> start).trailing_ones();
        actions.push(Action::Fetch { first: first + start, count, ahead: true });
        let run = if count == 64 { u64::MAX } else { (1 << count) - 1 };
        missing &= !(run << start);
    }
}

impl UniMem {
    fn serve(&mut self, block: Block, write: bool, actions: &mut Actions) -> Served {
        if let Some(slot) = self.host.arena.find(block >> self.shift) {
            let bit = 1 << (block & (self.blocks_per_page() - 1));
            let contents = &mut self.contents[slot as usize];
            contents.used |= bit;
            contents.dirty |= if write { bit } else { 0 };
            self.host.used(slot);
            return Served::Host;
        }
        let found = self.device.access(block, write, actions);
        if matches!(found, Found::Activated | Found::Refault) {
            self.consider(block);
        }
        match found {
            Found::Active | Found::Activated => Served::Device,
            Found::Refault | Found::New => Served::Remote,
        }
    }
}

impl Policy for UniMem {
    fn access(&mut self, block: Block, write: bool, actions: &mut Actions) -> Served {
        actions.clear();
        let served = self.serve(block, write, actions);
        if let Some(page) = self.batch.next() {
            self.promote(page, actions);
        }
        served
    }

    fn metadata_bytes(&self) -> u64 {
        let contents = self.contents.len() * size_of::<Contents>();
        self.device.bytes() + self.host.arena.bytes() + contents as u64 + self.batch.arena.bytes()
    }
}
