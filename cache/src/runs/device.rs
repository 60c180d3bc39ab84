//! Blocks in the device: sets of a few blocks, of which the one that was used least goes.
//!
//! ```text
//!  a set:  newest │ window │ … │ oldest      a word for each block: its number, dirty, marker
//!                          └─ the least used of these goes; of equals, the newest
//! ```
//!
//! A block stays at least until the window's size of others came to its set. Then it competes by its frequency, as in
//! W-TinyLFU (Einziger et al., ACM Transactions on Storage 2017): a block used once does not displace one used often.

use super::layout::{Layout, way_of};
use crate::counts::Counts;
use crate::{Actions, Block};
use std::ops::Range;

const DIRTY: u32 = 1;
/// The use of this block starts a fetch ahead.
const MARKER: u32 = 2;
const NUMBER_SHIFT: u32 = 2;
/// No block; behind all blocks of a set.
const EMPTY: u32 = u32::MAX;
/// One block in four of a set is in the window, but at least a block in use and two of a run that comes.
const WINDOW_PART: usize = 4;
const WINDOW_MIN: usize = 3;

/// The sets.
pub(super) struct Device {
    words: Vec<u32>,
    /// Words of a set.
    stride: usize,
    /// Words of a set that may be used.
    limit: usize,
    window: usize,
    /// Whether frequencies count. Else the oldest block goes.
    by_frequency: bool,
    /// The set that [`shrink`](Device::shrink) looks at next.
    hand: usize,
}

impl Device {
    /// Sets with up to `ways` blocks each.
    pub(super) fn new(layout: &Layout, ways: u32, by_frequency: bool) -> Device {
        let stride = ways as usize;
        let sets = (layout.groups << layout.shift) as usize;
        let mut device =
            Device { words: vec![EMPTY; sets * stride], stride, limit: 0, window: 0, by_frequency, hand: 0 };
        device.set_limit(ways);
        device
    }

    pub(super) fn bytes(&self) -> u64 {
        (self.words.len() * size_of::<u32>()) as u64
    }

    pub(super) fn sets(&self) -> usize {
        self.words.len() / self.stride
    }

    pub(super) fn limit(&self) -> u32 {
        self.limit as u32
    }

    /// Changes how many blocks a set may have. Those above it go by [`shrink`](Device::shrink).
    pub(super) fn set_limit(&mut self, ways: u32) {
        self.limit = ways as usize;
        self.window = (self.limit / WINDOW_PART).max(WINDOW_MIN).min(self.limit);
        self.hand = 0;
    }

    #[inline]
    fn set(&self, set: u32) -> &[u32] {
        let first = set as usize * self.stride;
        &self.words[first..first + self.stride]
    }

    #[inline]
    fn set_mut(&mut self, set: u32) -> &mut [u32] {
        let first = set as usize * self.stride;
        &mut self.words[first..first + self.stride]
    }

    /// Blocks of a set.
    fn len(&self, set: u32) -> usize {
        self.set(set).iter().map(|word| usize::from(*word != EMPTY)).sum()
    }

    /// Whether a block may come without displacing another.
    #[inline]
    pub(super) fn has_room(&self, set: u32) -> bool {
        self.set(set)[self.limit - 1] == EMPTY
    }

    /// Where a block of this set is.
    #[inline]
    pub(super) fn find(&self, set: u32, block: Block) -> Option<usize> {
        way_of(self.set(set), block, NUMBER_SHIFT)
    }

    /// A use of a block that is here: whether it had a marker, which is gone now. Then the block becomes the newest, so that the
    /// run that its use fetches does not displace it.
    #[inline]
    pub(super) fn hit(&mut self, set: u32, way: usize, write: bool) -> bool {
        let words = self.set_mut(set);
        let marked = words[way] & MARKER != 0;
        words[way] = (words[way] & !MARKER) | u32::from(write);
        if marked {
            words[..=way].rotate_right(1);
        }
        marked
    }

    /// Marks a block that is here.
    pub(super) fn mark(&mut self, set: u32, block: Block) {
        if let Some(way) = self.find(set, block) {
            self.set_mut(set)[way] |= MARKER;
        }
    }

    /// The least used block of a set, the newest of equals, from this way on: its way and its frequency.
    fn least(&self, set: u32, from: usize, len: usize, counts: &Counts) -> (usize, u8) {
        if !self.by_frequency {
            return (len - 1, 0);
        }
        let mut least = (len - 1, u8::MAX);
        for (way, word) in (from..).zip(&self.set(set)[from..len]) {
            let uses = counts.frequency(word >> NUMBER_SHIFT);
            if uses < least.1 {
                least = (way, uses);
            }
            if uses == 0 {
                break;
            }
        }
        least
    }

    /// Takes a word out; the set's blocks stay without gaps.
    fn remove(&mut self, set: u32, way: usize) -> u32 {
        let words = self.set_mut(set);
        let word = words[way];
        words.copy_within(way + 1.., way);
        words[words.len() - 1] = EMPTY;
        word
    }

    fn evict(&mut self, set: u32, way: usize, actions: &mut Actions) {
        let word = self.remove(set, way);
        actions.evict(word >> NUMBER_SHIFT, word & DIRTY != 0);
    }

    /// Inserts an absent block; the block that it displaces leaves first.
    pub(super) fn enter(&mut self, set: u32, block: Block, counts: &Counts, actions: &mut Actions) {
        let mut free = self.limit - 1;
        // Blocks are without gaps: a last word in use means a full set.
        while !self.has_room(set) {
            let len = if self.limit == self.stride { self.stride } else { self.len(set) };
            // The window counts the block that comes.
            let (way, _) = self.least(set, self.window - 1, len, counts);
            if len > self.limit {
                self.evict(set, way, actions);
                continue;
            }
            let word = self.set(set)[way];
            actions.evict(word >> NUMBER_SHIFT, word & DIRTY != 0);
            free = way;
            break;
        }
        let words = self.set_mut(set);
        words.copy_within(..free, 1);
        words[0] = block << NUMBER_SHIFT;
    }

    /// Hands a block over to the host: whether it is dirty, if it is here.
    pub(super) fn take(&mut self, set: u32, block: Block) -> Option<bool> {
        let way = self.find(set, block)?;
        Some(self.remove(set, way) & DIRTY != 0)
    }

    /// Takes a block back from the host if its set has room, or if it was used more often than the least used one of
    /// its set.
    pub(super) fn give(
        &mut self,
        set: u32,
        block: Block,
        dirty: bool,
        counts: &Counts,
        actions: &mut Actions,
    ) -> bool {
        let mut len = self.len(set);
        if len >= self.limit {
            let (way, uses) = self.least(set, self.window.min(len - 1), len, counts);
            if counts.frequency(block) <= uses {
                return false;
            }
            self.evict(set, way, actions);
            len -= 1;
        }
        self.set_mut(set)[len] = block << NUMBER_SHIFT | u32::from(dirty);
        true
    }

    /// Takes blocks above the limit out of the next sets, a few at a call, but not out of sets in use: whether some may remain.
    pub(super) fn shrink(&mut self, in_use: Range<u32>, counts: &Counts, actions: &mut Actions) -> bool {
        const SETS: usize = 4;
        for _ in 0..SETS {
            if self.hand == self.sets() {
                return false;
            }
            let set = self.hand as u32;
            if in_use.contains(&set) {
                return true;
            }
            let len = self.len(set);
            if len > self.limit {
                let (way, _) = self.least(set, self.window.min(len - 1), len, counts);
                self.evict(set, way, actions);
            }
            self.hand += usize::from(len <= self.limit + 1);
        }
        true
    }
}
