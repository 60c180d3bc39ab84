//! The host's share where host and device are one memory: it moves in steps towards fewer misses.
//!
//! ```text
//!  epoch of accesses ─▶ fewer misses than in the one before? ── yes ─▶ a step further
//!                                                            └─ no ──▶ a step back
//! ```

use crate::{Served, Shape};

/// Accesses of an epoch at least.
const EPOCH_MIN: u64 = 1 << 14;
/// Steps from no host to the largest.
const STEPS: u32 = 16;

pub(super) struct Split {
    epoch: u64,
    accesses: u64,
    misses: u64,
    /// Misses of the epoch before.
    before: Option<u64>,
    grows: bool,
    step: u32,
    pages_max: u32,
    pages: u32,
}

impl Split {
    /// `None` if the host's share is given, or if the memory is too small for steps.
    pub(super) fn new(shape: &Shape) -> Option<Split> {
        let pages_max = shape.pages_max();
        let step = pages_max / STEPS;
        (shape.one_memory && step > 0).then(|| Split {
            epoch: EPOCH_MIN.max(u64::from(shape.capacity) * 4),
            accesses: 0,
            misses: 0,
            before: None,
            grows: false,
            step,
            pages_max,
            pages: shape.host_pages(),
        })
    }

    /// Pages that the host should have.
    pub(super) fn pages(&self) -> u32 {
        self.pages
    }

    /// Counts an access. At an epoch's end the host's pages may change.
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
            let pages =
                if self.grows { self.pages + self.step } else { self.pages.saturating_sub(self.step) };
            self.pages = pages.min(self.pages_max);
        }
    }
}
