//! The host's share where host and device are one memory: it moves in steps of a way towards fewer misses.
//!
//! ```text
//!  epoch of accesses ─▶ fewer misses than in the one before? ── yes ─▶ a step further
//!                                                            └─ no ──▶ a step back
//! ```

use super::layout::Layout;
use crate::{Served, Shape};

/// Accesses of an epoch at least.
const EPOCH_MIN: u64 = 1 << 14;

pub(super) struct Split {
    epoch: u64,
    accesses: u64,
    misses: u64,
    /// Misses of the epoch before.
    before: Option<u64>,
    grows: bool,
    ways_max: u32,
    ways: u32,
}

impl Split {
    /// `None` if the host's share is given, or if the memory is too small for groups.
    pub(super) fn new(layout: &Layout, shape: &Shape) -> Option<Split> {
        (shape.one_memory && layout.groups > 1 && layout.host_ways_max() > 0).then(|| Split {
            epoch: EPOCH_MIN.max(u64::from(shape.capacity) * 4),
            accesses: 0,
            misses: 0,
            before: None,
            grows: false,
            ways_max: layout.host_ways_max(),
            ways: layout.host_ways,
        })
    }

    /// Ways that the host should have.
    pub(super) fn ways(&self) -> u32 {
        self.ways
    }

    /// Counts an access. At an epoch's end the host's ways may change.
    #[inline]
    pub(super) fn served(&mut self, served: Served) {
        self.misses += u64::from(served == Served::Remote);
        self.accesses += 1;
        if self.accesses == self.epoch {
            self.accesses = 0;
            let misses = std::mem::take(&mut self.misses);
            if self.before.replace(misses).is_some_and(|before| misses > before) {
                self.grows = !self.grows;
            }
            let ways = if self.grows { self.ways + 1 } else { self.ways.saturating_sub(1) };
            self.ways = ways.min(self.ways_max);
        }
    }
}
