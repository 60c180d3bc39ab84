//! Blocks used one after the other: a bit for each block, and a byte for each region.
//!
//! - A block *goes on* if the next block was used soon after it: while it was among the last 32 that were used. It is the note of the
//!   block's count.
//! - A region's *habit*, 0 to 15: the same of all of its blocks. A region without any takes that of the region before it,
//!   so the first pass over memory is fetched in runs too.

use crate::Block;
use crate::counts::Counts;

/// Blocks that were used last.
const RECENT: usize = 32;
/// A bit for each of them.
const BITS: [u32; RECENT] = {
    let (mut bits, mut at) = ([0; RECENT], 0);
    while at < RECENT {
        bits[at] = 1 << at;
        at += 1;
    }
    bits
};
/// Blocks of a region, as a power of two: 64 KB of blocks of 512 B.
const REGION_SHIFT: u32 = 7;
const HABIT_MAX: u8 = 15;
/// From this on, blocks that were never used are taken for parts of a stream.
const STREAMS: u8 = 12;
/// A region of which nothing is known.
const UNKNOWN: u8 = u8::MAX;
/// No block: behind the largest footprint.
const NONE: Block = Block::MAX - 1;

pub(super) struct Streams {
    recent: [Block; RECENT],
    /// A bit for each of the recent blocks whose next one was used.
    followed: u32,
    at: usize,
    last: Block,
    habits: Vec<u8>,
}

impl Streams {
    /// Without `by_region`, nothing is known of a block before its first use.
    pub(super) fn new(footprint: u32, by_region: bool) -> Streams {
        let regions = if by_region { (footprint >> REGION_SHIFT) as usize + 1 } else { 0 };
        Streams { recent: [NONE; RECENT], followed: 0, at: 0, last: NONE, habits: vec![UNKNOWN; regions] }
    }

    pub(super) fn bytes(&self) -> u64 {
        (size_of::<Streams>() + self.habits.len()) as u64
    }

    /// Learns from a use. Uses of a block that is among the recent ones are one visit, and count once: they say nothing on how
    /// soon it comes back (the correlated references of O'Neil et al., SIGMOD 1993).
    #[inline]
    pub(super) fn used(&mut self, block: Block, counts: &mut Counts) {
        if block == self.last {
            return;
        }
        self.last = block;
        let before = block.wrapping_sub(1);
        // A block has one place at most. In a stream it is most often the newest.
        let newest = (self.at + RECENT - 1) % RECENT;
        let found = if self.recent[newest] == before { 1 << newest } else { self.place_of(before) };
        if found & !self.followed != 0 {
            self.followed |= found;
            counts.set_note(before, true);
            self.learn(before, true);
        }
        // A block that is used in turns with others has one place: else it would leave as often as it is used.
        if self.recent.iter().fold(false, |is, one| is | (*one == block)) {
            return;
        }
        counts.used(block);
        let (leaving, bit) = (self.recent[self.at], 1 << self.at);
        if leaving != NONE && self.followed & bit == 0 {
            counts.set_note(leaving, false);
            self.learn(leaving, false);
        }
        self.recent[self.at] = block;
        self.followed &= !bit;
        self.at = (self.at + 1) % RECENT;
    }

    /// Where a block is among the recent ones, a bit for its place.
    #[inline]
    fn place_of(&self, block: Block) -> u32 {
        let places = self.recent.iter().zip(&BITS);
        places.fold(0, |found, (one, place)| found | if *one == block { *place } else { 0 })
    }

    #[inline]
    fn learn(&mut self, block: Block, followed: bool) {
        let region = (block >> REGION_SHIFT) as usize;
        let habit = self.habit(region).unwrap_or(HABIT_MAX / 2);
        if let Some(known) = self.habits.get_mut(region) {
            *known = if followed { (habit + 1).min(HABIT_MAX) } else { habit.saturating_sub(2) };
        }
    }

    /// The habit of a region, or else of the one before it.
    fn habit(&self, region: usize) -> Option<u8> {
        let known = |region: usize| self.habits.get(region).copied().filter(|habit| *habit != UNKNOWN);
        known(region).or_else(|| known(region.checked_sub(1)?))
    }

    /// Whether the block after this one is likely to be used soon after it.
    pub(super) fn goes_on(&self, block: Block, counts: &Counts) -> bool {
        counts.note(block)
            || counts.frequency(block + 1) == 0
                && self.habit((block >> REGION_SHIFT) as usize).is_some_and(|habit| habit >= STREAMS)
    }
}
