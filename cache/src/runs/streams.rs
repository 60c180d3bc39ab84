//! What is used one after the other: a few bits for each block, and a byte for each region.
//!
//! - A block's *follow* counter, 0 to 4: up by 2 if the next block is used while this one is among the last 32 that were used,
//!   down by 1 if it leaves them without.
//! - A region's *habit*, 0 to 15: the same events of all of its blocks. A region without any takes that of the region before it,
//!   so the first pass over memory is fetched in runs too.

use crate::Block;
use crate::counts::Counts;

/// Blocks that were used last.
const RECENT: usize = 32;
const FOLLOW_MAX: u8 = 4;
/// From this on, the next block is fetched with a block.
const FOLLOWS: u8 = 2;
/// Bits of a block's notes.
const FOLLOW: u8 = 0x07;
const MARKER: u8 = 0x08;
/// Blocks of a region, as a power of two: 64 KB of blocks of 512 B.
const REGION_SHIFT: u32 = 7;
const HABIT_MAX: u8 = 15;
/// From this on, blocks that were never used are taken for parts of a stream.
const STREAMS: u8 = 12;
/// A region of which nothing is known.
const UNKNOWN: u8 = u8::MAX;
/// No block: behind the largest footprint.
const NONE: Block = Block::MAX - 1;

pub(crate) struct Streams {
    recent: [Block; RECENT],
    /// A bit for each of the recent blocks whose next one was used.
    followed: u32,
    at: usize,
    last: Block,
    habits: Vec<u8>,
    by_region: bool,
}

impl Streams {
    pub(crate) fn new(footprint: u32, by_region: bool) -> Streams {
        let regions = if by_region { (footprint >> REGION_SHIFT) as usize + 1 } else { 0 };
        let habits = vec![UNKNOWN; regions];
        Streams { recent: [NONE; RECENT], followed: 0, at: 0, last: NONE, habits, by_region }
    }

    pub(crate) fn bytes(&self) -> u64 {
        (size_of::<Streams>() + self.habits.len()) as u64
    }

    /// Learns from a use.
    #[inline]
    pub(crate) fn used(&mut self, block: Block, counts: &mut Counts) {
        if block == self.last {
            return;
        }
        self.last = block;
        let before = block.wrapping_sub(1);
        let found = self.places_of(before);
        if found & !self.followed != 0 {
            self.followed |= found;
            let notes = counts.notes(before);
            let follow = ((notes & FOLLOW) + 2).min(FOLLOW_MAX);
            counts.set_notes(before, (notes & !FOLLOW) | follow);
            self.learn(before, true);
        }
        // A block that is used in turns with others has one place: else it would leave as often as it is used.
        if self.places_of(block) != 0 {
            return;
        }
        let (leaving, bit) = (self.recent[self.at], 1 << self.at);
        if leaving != NONE && self.followed & bit == 0 {
            let notes = counts.notes(leaving);
            counts.set_notes(leaving, (notes & !FOLLOW) | (notes & FOLLOW).saturating_sub(1));
            self.learn(leaving, false);
        }
        self.recent[self.at] = block;
        self.followed &= !bit;
        self.at = (self.at + 1) % RECENT;
    }

    #[inline]
    fn places_of(&self, block: Block) -> u32 {
        self.recent.iter().enumerate().fold(0, |found, (at, one)| found | u32::from(*one == block) << at)
    }

    #[inline]
    fn learn(&mut self, block: Block, followed: bool) {
        if !self.by_region {
            return;
        }
        let region = (block >> REGION_SHIFT) as usize;
        let habit = self.habit(region).unwrap_or(HABIT_MAX / 2);
        self.habits[region] = if followed { (habit + 1).min(HABIT_MAX) } else { habit.saturating_sub(2) };
    }

    /// What is known of a region, or else of the one before it.
    fn habit(&self, region: usize) -> Option<u8> {
        let known = |region: usize| self.habits.get(region).copied().filter(|habit| *habit != UNKNOWN);
        known(region).or_else(|| known(region.checked_sub(1)?))
    }

    /// Whether the block after this one is likely to be used soon after it.
    pub(crate) fn goes_on(&self, block: Block, counts: &Counts) -> bool {
        let follow = counts.notes(block) & FOLLOW;
        if follow >= FOLLOWS {
            return true;
        }
        let unused = follow == 0 && counts.frequency(block + 1) == 0;
        unused && self.habit((block >> REGION_SHIFT) as usize).is_some_and(|habit| habit >= STREAMS)
    }

    /// Marks a block whose use starts a fetch ahead.
    pub(crate) fn set_marker(&mut self, block: Block, counts: &mut Counts) {
        counts.set_notes(block, counts.notes(block) | MARKER);
    }

    /// Whether the block is marked; it no longer is afterwards.
    #[inline]
    pub(crate) fn take_marker(&mut self, block: Block, counts: &mut Counts) -> bool {
        let notes = counts.notes(block);
        if notes & MARKER != 0 {
            counts.set_notes(block, notes & !MARKER);
        }
        notes & MARKER != 0
    }
}
