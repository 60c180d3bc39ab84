//! How local memory is divided: groups of pages, each with room of its own.
//!
//! ```text
//!  remote pages  p, p + 1, p + 2, …  ──▶ groups in turn
//!
//!  a group:   host ways      page page page …
//!             device ways    set of first blocks, set of second blocks, … of the group's pages
//! ```
//!
//! A page that moves to the host leaves room in just the sets where the blocks of the page that it replaces belong. Each group
//! serves the same number of remote pages, so no group is short of room while another has some.

use crate::{Block, Shape};
use std::ops::RangeInclusive;

/// Ways of a group, host and device together: enough to find a good victim, few enough to look at all of them.
const WAYS: RangeInclusive<u32> = 16..=32;
/// Ways that the device keeps.
pub(super) const DEVICE_WAYS_MIN: u32 = 8;
/// Shifts pages by this many groups from one round over all groups to the next, so that strides meet many groups.
const ROTATION: u32 = 0x9e37_79b1;

/// Which group a block belongs to, and how many ways a group has.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) groups: u32,
    /// 2^64 divided by `groups`, rounded up.
    inverse: u64,
    /// Ways of a group, host and device together.
    pub(super) ways: u32,
    /// Those that are the host's.
    pub(super) host_ways: u32,
    /// Blocks of a page, as a power of two. 0 if memory is too small for pages.
    pub(super) shift: u32,
}

/// Which of the words has this number, if one has. All words are compared, so that a processor compares several at a time.
#[inline]
pub(super) fn way_of(words: &[u32], number: u32, shift: u32) -> Option<usize> {
    let ways = words.iter().zip(1u32..);
    let found = ways.fold(0, |found, (word, way)| found | if word >> shift == number { way } else { 0 });
    (found as usize).checked_sub(1)
}

impl Layout {
    pub(super) fn new(shape: &Shape) -> Layout {
        let (blocks, share) = (shape.capacity, shape.host_percent);
        let pages = blocks / shape.blocks_per_page;
        if pages < *WAYS.start() {
            // Too small to give pages room of their own: sets of single blocks.
            let ways = WAYS.max_by_key(|ways| blocks / ways * ways).unwrap_or(1).min(blocks);
            return Layout::with(blocks / ways, ways, 0, 0);
        }
        let host_pages = pages * share / 100;
        let layout = |ways: u32| {
            let host_ways = (ways * share / 100).min(ways - DEVICE_WAYS_MIN);
            Layout::with(pages / ways, ways, host_ways, shape.blocks_per_page.trailing_zeros())
        };
        let lost = |one: &Layout| {
            pages - one.groups * one.ways + host_pages.saturating_sub(one.groups * one.host_ways)
        };
        let ways = *WAYS.start()..=pages.min(*WAYS.end());
        ways.map(layout).min_by_key(lost).unwrap_or_else(|| layout(*WAYS.start()))
    }

    fn with(groups: u32, ways: u32, host_ways: u32, shift: u32) -> Layout {
        // Wraps for a single group, which needs no division.
        let inverse = (u64::MAX / u64::from(groups)).wrapping_add(1);
        Layout { groups, inverse, ways, host_ways, shift }
    }

    pub(super) fn device_ways(&self) -> u32 {
        self.ways - self.host_ways
    }

    /// Ways that the host may have at most.
    pub(super) fn host_ways_max(&self) -> u32 {
        if self.shift > 0 { self.ways - DEVICE_WAYS_MIN } else { 0 }
    }

    pub(super) fn blocks_per_page(&self) -> u32 {
        1 << self.shift
    }

    #[inline]
    pub(super) fn page_of(&self, block: Block) -> u32 {
        block >> self.shift
    }

    #[inline]
    pub(super) fn first_of(&self, page: u32) -> Block {
        page << self.shift
    }

    /// The group of a page. Any `groups` adjacent pages from a multiple of `groups` on have one group each.
    #[inline]
    pub(super) fn group_of(&self, page: u32) -> u32 {
        if self.groups == 1 {
            return 0;
        }
        // A division by multiplication, exact for 32 bits.
        let round = ((u128::from(self.inverse) * u128::from(page)) >> 64) as u32;
        let turned = (u64::from(round.wrapping_mul(ROTATION)) * u64::from(self.groups)) >> 32;
        let group = page - round * self.groups + turned as u32;
        if group < self.groups { group } else { group - self.groups }
    }

    /// A block's place in its page.
    #[inline]
    pub(super) fn index_of(&self, block: Block) -> u32 {
        block & (self.blocks_per_page() - 1)
    }

    /// The set of a block of this group. A page's blocks have one set each; which is whose differs between pages, so that pages of which
    /// only the first blocks are used fill all sets.
    #[inline]
    pub(super) fn set_in(&self, group: u32, block: Block) -> u32 {
        let turn = self.page_of(block).wrapping_mul(ROTATION).rotate_left(8);
        group << self.shift | ((block ^ turn) & (self.blocks_per_page() - 1))
    }

    /// The set of a block.
    #[inline]
    pub(super) fn set_of(&self, block: Block) -> u32 {
        self.set_in(self.group_of(self.page_of(block)), block)
    }
}
