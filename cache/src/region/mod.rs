//! Decides which blocks of a region are in local memory and which move: a cache by any policy, without bytes, I/O or
//! threads.
//!
//! ```text
//!                access, prefetch, flush                   next_request
//!  threads ─────────────────────────────▶ Residency ─────────────────────▶ driver: reads and writes of remote memory
//!            ◀─ Here(frame), Wait, Later, …   │  ▲ fetched, written
//!                                             ▼  │
//!                                           Policy: what to fetch, what to drop
//! ```
//!
//! Local memory is an array of frames of one block each. The driver has their bytes, and calls under a lock of its own.
//! A frame with a block:
//!
//! ```text
//!              fetched                     dropped by the policy
//!  fetching ───────────▶ kept, clean ──────────────────────────────▶ free
//!                        │    ▲ its write-back has ended              ▲ its write-back has ended,
//!                  write ▼    │                                       │ and no guard or claim is left
//!                        kept, dirty ──────────────────────────────▶ leaving
//!                                          dropped by the policy
//! ```
//!
//! - **One copy.** A block has at most one frame. While it exists, nothing fetches the block: a block that is used
//!   again while it is leaving stays. So no fetch can pass a write-back of the same block, whatever the order of the
//!   way.
//! - **Turns.** The actions of one access are carried out in order. If frames are missing, the rest waits until write-backs end. The policy
//!   sees no access before it is carried out. Hits go on without the policy.
//! - **Uses.** The policy sees a block's use once between two changes of the local blocks. So hits on their own cost no
//!   call of the policy, and a test compares the fetches with those of a policy that sees all uses.
//! - **Prefetched blocks** have a few frames beside the policy's, first in, first out. The policy sees a block when it is used.
//! - **Frames.** The policy has `capacity` of them. The others are for blocks that a guard or a claim holds, and for prefetched blocks. So
//!   a turn waits for write-backs and fetches only, which end, or fail.
//! - **Claims** wait for fetches only, so they end too. An access that a guard keeps from a block has none, and asks again.
//! - **Changes.** [`Residency::take_changed`] says whether an access that was not served may go on now. The driver wakes it then.
//!
//! After [`Residency::fail`] every access fails: local bytes that can't be written back are lost, so memory has no defined content.

mod access;
mod counters;
mod frames;
mod index;
mod limits;
#[cfg(test)]
mod plant;
mod queue;
mod requests;
#[cfg(test)]
mod tests;
mod turn;

pub use counters::Counters;
pub use limits::{Limits, Room};
pub use requests::Request;

use crate::{Actions, Block, Policy};
use frames::{Frames, State};
use std::collections::VecDeque;
use std::ops::Range;
use turn::Turn;

/// Whether a test has planted this mistake; never outside of tests.
#[cfg(test)]
macro_rules! planted {
    ($residency:expr, $plant:ident) => {
        $residency.plant == Some($crate::region::plant::Plant::$plant)
    };
}
#[cfg(not(test))]
macro_rules! planted {
    ($residency:expr, $plant:ident) => {
        false
    };
}
use planted;

/// Number of a frame.
pub type Frame = u32;

/// Kind of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Reads, beside other reads.
    Read,
    /// Writes; excludes guards.
    Write,
}

/// Answer to an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The block is in this frame until the next call; [`Residency::pin`] keeps it there.
    Here(Frame),
    /// The access has a claim on the block: ask [`Residency::claimed`] after each change.
    Wait,
    /// Nothing was begun, because too much is under way: ask again after a change.
    Later,
    /// Nothing was begun, because a guard keeps this access from the block: ask again after a change.
    Held,
    /// The region has failed.
    Failed,
}

/// The blocks of a region that are local. See the [module](self).
pub struct Residency {
    policy: Box<dyn Policy>,
    actions: Actions,
    turn: Option<Turn>,
    frames: Frames,
    limits: Limits,
    footprint: u32,
    blocks_per_page: u32,
    /// Changes when blocks move; a use is shown to the policy once in it.
    epoch: u16,
    fetches: VecDeque<(Block, u32)>,
    /// Most fetches, queued or under way.
    fetches_max: u32,
    /// Fetches under way.
    fetching: u32,
    /// Frames whose content of the time of [`Residency::begin_flush`] is not in remote memory.
    unflushed: u32,
    guards: u32,
    claims: u32,
    failed: bool,
    /// See [`Residency::take_changed`].
    has_changed: bool,
    counters: Counters,
    /// The block of an access that writes all of it, during the access.
    overwritten: Option<Block>,
    #[cfg(test)]
    plant: Option<plant::Plant>,
}

impl std::fmt::Debug for Residency {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Residency").field("counters", &self.counters).finish_non_exhaustive()
    }
}

impl Residency {
    /// Number of frames.
    pub fn frame_count(&self) -> u32 {
        self.frames.count()
    }

    /// Bytes of all tables, the policy's included.
    pub fn tables_bytes(&self) -> u64 {
        let tables = self.fetches.capacity() * size_of::<(Block, u32)>() + size_of::<Residency>();
        self.policy.metadata_bytes() + self.frames.bytes() + tables as u64
    }

    /// Counters so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Begins to fetch blocks that are absent, while there are frames for prefetched blocks and no turn waits. The policy sees them when
    /// they are used. Returns how many were begun.
    pub fn prefetch(&mut self, first: Block, count: u32) -> u32 {
        let before = self.counters.prefetched;
        let mut run = first..first;
        for block in first..first.saturating_add(count).min(self.footprint) {
            if self.frames.find(block).is_some() {
                self.request(run);
                run = block + 1..block + 1;
            } else if self.has_queue_room(run.len() as u32 + 1) && self.begin_prefetch(block) {
                run.end = block + 1;
            } else {
                break;
            }
        }
        self.request(run);
        (self.counters.prefetched - before) as u32
    }

    /// Gives an absent block a frame, if there is one for it.
    fn begin_prefetch(&mut self, block: Block) -> bool {
        let is_below = self.frames.prefetched() < self.limits.prefetched.into();
        // The block that a turn waits for has claims, which go to the frame that the turn gives it.
        let may_begin = !self.failed && self.turn.is_none();
        let has_room = may_begin && (is_below || self.drop_prefetched(&(0..0))) && self.frames.free() > 0;
        if has_room {
            let frame = self.frames.insert_prefetched(block);
            if planted!(self, PrefetchIsUse) {
                self.show_held(frame, block, Mode::Read);
                self.frames.state_mut(frame).drop_claim();
            }
            self.counters.prefetched += 1;
        }
        has_room
    }

    /// The frame that waits for a block, or has it.
    pub fn frame_of(&self, block: Block) -> Option<Frame> {
        self.frames.find(block)
    }

    /// Remote memory is lost: every access fails from now on.
    pub fn fail(&mut self) {
        (self.failed, self.has_changed) = (true, true);
        self.fetches.clear();
        self.frames.write_backs.clear();
    }

    /// Whether it has failed.
    pub fn has_failed(&self) -> bool {
        self.failed
    }

    /// Whether something has changed since the last call for which an access or a flush may wait.
    #[inline]
    pub fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.has_changed)
    }

    /// Compares its counts with the frames, for tests: it looks at all of them. The error says which facts don't agree.
    pub fn check(&self) -> Result<(), String> {
        let totals = self.frames.check()?;
        let capacity = self.frames.count() - self.limits.frames();
        let claims = totals.claims + self.turn.map_or(0, |turn| u32::from(turn.claims));
        let Counters { prefetched, prefetched_used, prefetched_unused, .. } = self.counters;
        let prefetches = prefetched_used + prefetched_unused + u64::from(totals.unused);
        match () {
            () if totals.kept > capacity => {
                Err(format!("{} blocks are the policy's, of at most {capacity}", totals.kept))
            }
            () if prefetches != prefetched => {
                Err(format!("{prefetched} blocks were prefetched, and {prefetches} used, dropped or here"))
            }
            () if totals.pins != self.guards => {
                Err(format!("{} pins, and {} guards", totals.pins, self.guards))
            }
            () if self.failed => Ok(()),
            () if claims != self.claims => Err(format!("frames have {claims} claims, of {}", self.claims)),
            () if totals.unflushed != self.unflushed => {
                Err(format!("{} frames are unflushed, and {} count", totals.unflushed, self.unflushed))
            }
            () if totals.forgotten > 0 => Err(format!("{} write-backs are in no queue", totals.forgotten)),
            () => Ok(()),
        }
    }

    /// Begins the next move of a frame by its state: a write-back, or its release.
    fn settle(&mut self, frame: Frame) {
        let state = self.frames.state_mut(frame);
        if state.wants_write_back() {
            if !self.failed {
                self.frames.write_backs.insert(frame);
            }
        } else if state.may_go() && !state.is(State::PREFETCHED) {
            self.free(frame);
        }
    }

    /// Frees a frame that is in no list.
    fn free(&mut self, frame: Frame) {
        self.counters.prefetched_unused += u64::from(self.frames.state(frame).is(State::UNUSED));
        self.frames.release(frame);
    }

    /// Drops the oldest prefetched block that nothing holds, none of these. `false`: there is none.
    fn drop_prefetched(&mut self, but: &Range<Block>) -> bool {
        let frame = self.frames.take_prefetched(but);
        frame.map(|frame| self.free(frame)).is_some()
    }
}
