//! Which blocks of a region are in local memory, and what moves: a cache by any policy, without bytes, I/O or threads.
//!
//! ```text
//!                access, prefetch, flush                   next_request
//!  threads ─────────────────────────────▶ Residency ─────────────────────▶ driver: reads and writes of remote memory
//!            ◀── Here(frame), Wait, Later     │  ▲ fetched, written
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
//! - **One copy.** A block has at most one frame. While it is there, nothing fetches the block: a block that is used again while it is
//!   leaving stays. So no fetch can pass a write-back of the same block, whatever the order of the way.
//! - **Turns.** The actions of one access are carried out in order. If frames are missing, the rest waits until write-backs end. The policy
//!   sees no access before it is carried out. Hits go on without the policy.
//! - **Uses.** The policy sees a block's use once between two changes of what is local. So hits on their own cost no call of the policy, and
//!   a test compares the fetches with those of a policy that sees all uses.
//! - **Prefetched blocks** have a few frames beside the policy's, first in, first out. The policy sees a block when it is used.
//! - **Frames.** The policy has `capacity` of them. The others are for blocks that a guard or a claim holds, and for prefetched blocks. So
//!   a turn waits for write-backs and fetches only, which end, or fail.
//!
//! After [`Residency::fail`] every access fails: local bytes that can't be written back are lost, so memory has no defined content.

mod counters;
mod frames;
mod limits;
#[cfg(test)]
mod plant;
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
    /// Nothing was begun: ask again after a change.
    Later,
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
    epoch: u32,
    fetches: VecDeque<(Block, u32)>,
    /// Frames that may have to be written back; each at most once.
    write_backs: VecDeque<Frame>,
    /// Frames whose content of the time of [`Residency::begin_flush`] is not in remote memory.
    unflushed: u32,
    guards: u32,
    claims: u32,
    failed: bool,
    counters: Counters,
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
        let queues = self.fetches.capacity() * size_of::<(Block, u32)>()
            + self.write_backs.capacity() * size_of::<Frame>();
        self.policy.metadata_bytes() + self.frames.bytes() + queues as u64 + size_of::<Residency>() as u64
    }

    /// What has happened so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// An access to a block of the region.
    #[inline]
    pub fn access(&mut self, block: Block, mode: Mode) -> Found {
        if self.failed {
            return Found::Failed;
        }
        let Some(frame) = self.frames.find(block) else { return self.miss(block, mode) };
        let state = self.frames.state(frame);
        if state.is(State::KEPT) && state.admits(mode) {
            if state.epoch() != self.epoch && self.turn.is_none() {
                self.show_local(frame, block, mode);
            }
            self.count_hit(frame);
            if mode == Mode::Write {
                self.frames.state_mut(frame).set(State::DIRTY);
            }
            return Found::Here(frame);
        }
        self.unready(frame, block, mode)
    }

    #[inline]
    fn count_hit(&mut self, frame: Frame) {
        match self.frames.state(frame).is(State::HOST) {
            true => self.counters.from_host += 1,
            false => self.counters.from_device += 1,
        }
    }

    /// Shows the policy the use of a block that has a frame.
    #[cold]
    fn show_local(&mut self, frame: Frame, block: Block, mode: Mode) {
        self.frames.state_mut(frame).claim();
        self.show(block, mode);
        self.frames.state_mut(frame).drop_claim();
        self.frames.state_mut(frame).set_epoch(self.epoch);
    }

    /// A block that has a frame, and is leaving, prefetched, on its way here, or in the hands of a guard.
    #[cold]
    fn unready(&mut self, frame: Frame, block: Block, mode: Mode) -> Found {
        let state = self.frames.state(frame);
        let (is_here, is_ready) = (state.is(State::ARRIVED), state.admits(mode));
        if !is_ready && self.claims >= self.limits.claims.into() {
            return Found::Later;
        }
        if self.turn.is_none() && (state.epoch() != self.epoch || !state.is(State::KEPT)) {
            self.show_local(frame, block, mode);
        }
        if is_here {
            self.count_hit(frame);
        } else {
            self.counters.joined += 1;
            if planted!(self, TwoFetches) {
                self.request(block..block + 1);
            }
        }
        if is_ready {
            if mode == Mode::Write {
                self.frames.state_mut(frame).set(State::DIRTY);
                self.settle(frame);
            }
            return Found::Here(frame);
        }
        self.frames.state_mut(frame).claim();
        self.claims += 1;
        Found::Wait
    }

    #[cold]
    fn miss(&mut self, block: Block, mode: Mode) -> Found {
        if self.claims >= self.limits.claims.into() {
            return Found::Later;
        }
        match &mut self.turn {
            Some(turn) if turn.wanted == block => {
                turn.claims += 1;
                self.counters.joined += 1;
            }
            Some(_) => return Found::Later,
            None => self.show_miss(block, mode),
        }
        self.claims += 1;
        Found::Wait
    }

    /// The frame of a claimed block, pinned, once it is there and no guard is in the way; it takes the claim. [`Found::Later`]: the claim
    /// is void, access the block again.
    pub fn claimed(&mut self, block: Block, mode: Mode) -> Found {
        if self.failed {
            self.give_up(block);
            return Found::Failed;
        }
        let Some(frame) = self.frames.find(block) else {
            let is_coming = self.turn.as_ref().is_some_and(|turn| turn.wanted == block && turn.claims > 0);
            if is_coming {
                return Found::Wait;
            }
            self.claims -= 1;
            return Found::Later;
        };
        if !self.frames.state(frame).admits(mode) {
            return Found::Wait;
        }
        self.claims -= 1;
        let state = self.frames.state_mut(frame);
        state.drop_claim();
        state.pin(mode);
        Found::Here(frame)
    }

    /// Gives up a claim.
    pub fn give_up(&mut self, block: Block) {
        self.claims -= 1;
        if let Some(turn) = self.turn.as_mut().filter(|turn| turn.wanted == block && turn.claims > 0) {
            turn.claims -= 1;
        } else if let Some(frame) = self.frames.find(block) {
            self.frames.state_mut(frame).drop_claim();
            self.settle(frame);
        }
    }

    /// Keeps a block in its frame for a guard, which [`Found::Here`] has just named. `false`: there are as many guards as may be.
    pub fn pin(&mut self, frame: Frame, mode: Mode) -> bool {
        let is_room = self.guards < self.limits.guards.into();
        if is_room {
            self.guards += 1;
            self.frames.state_mut(frame).pin(mode);
        }
        is_room
    }

    /// Makes the pin of a claim a guard's. `false`: there are as many guards as may be, and the pin is gone.
    pub fn keep(&mut self, frame: Frame, mode: Mode) -> bool {
        let is_room = self.guards < self.limits.guards.into();
        match is_room {
            true => self.guards += 1,
            false => self.unpin(frame, mode),
        }
        is_room
    }

    /// Ends a guard.
    pub fn release(&mut self, frame: Frame, mode: Mode) {
        self.guards -= 1;
        self.unpin(frame, mode);
    }

    /// Ends the pin of a claim.
    pub fn unpin(&mut self, frame: Frame, mode: Mode) {
        self.frames.state_mut(frame).unpin(mode);
        self.settle(frame);
    }

    /// Begins to fetch blocks that are absent, while there are frames for prefetched blocks. The policy sees them when they are used.
    /// Returns how many were begun.
    pub fn prefetch(&mut self, first: Block, count: u32) -> u32 {
        let before = self.counters.prefetched;
        let mut run = first..first;
        for block in first..first.saturating_add(count).min(self.footprint) {
            if self.frames.find(block).is_some() {
                self.request(run);
                run = block + 1..block + 1;
            } else if self.begin_prefetch(block) {
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
        let has_room = !self.failed && (is_below || self.drop_prefetched()) && self.frames.free() > 0;
        if has_room {
            let frame = self.frames.insert_prefetched(block);
            if planted!(self, PrefetchIsUse) && self.turn.is_none() {
                self.show_local(frame, block, Mode::Read);
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
        self.failed = true;
        self.fetches.clear();
        self.write_backs.clear();
    }

    /// Whether it has failed.
    pub fn has_failed(&self) -> bool {
        self.failed
    }

    /// Compares its counts with the frames, for tests: it looks at all of them. Errors: what does not agree.
    pub fn check(&self) -> Result<(), String> {
        let capacity = self.frames.count() - self.limits.frames();
        self.frames.check(capacity)
    }

    /// What a frame's state asks for: a write-back, or to be free again.
    fn settle(&mut self, frame: Frame) {
        let state = self.frames.state_mut(frame);
        if state.wants_write_back() {
            if !state.is(State::QUEUED) && !self.failed {
                state.set(State::QUEUED);
                self.write_backs.push_back(frame);
            }
        } else if state.may_go() && !state.is(State::PREFETCHED) {
            self.frames.release(frame);
        }
    }

    /// Drops the oldest prefetched block that nothing holds. `false`: there is none.
    fn drop_prefetched(&mut self) -> bool {
        let dropped = self.frames.drop_prefetched();
        self.counters.prefetched_unused += u64::from(dropped);
        dropped
    }
}
