//! Frames of local memory: which block each one has, and its state.

use super::Mode;
use crate::Block;
use crate::arena::{Arena, List, NONE};
use std::ops::Range;

/// State of a frame; 12 bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct State {
    /// The epoch in which the policy saw the last use.
    epoch: u32,
    flags: u16,
    /// Guards and pins that read.
    readers: u16,
    /// Accesses that wait for the block.
    claims: u16,
}

impl State {
    /// The bytes are here.
    pub const ARRIVED: u16 = 1;
    /// The policy counts the block as local.
    pub const KEPT: u16 = 1 << 1;
    /// In a page of the host.
    pub const HOST: u16 = 1 << 2;
    /// Differs from remote memory, even once a write-back under way has ended.
    pub const DIRTY: u16 = 1 << 3;
    /// A write-back is under way.
    pub const WRITING: u16 = 1 << 4;
    /// In the queue of write-backs.
    pub const QUEUED: u16 = 1 << 5;
    /// A guard or pin writes.
    pub const EXCLUSIVE: u16 = 1 << 6;
    /// A flush waits for a write-back that has yet to begin.
    pub const FLUSH: u16 = 1 << 7;
    /// A flush waits for the write-back under way.
    pub const FLUSHING: u16 = 1 << 8;
    /// One of the prefetched blocks.
    pub const PREFETCHED: u16 = 1 << 9;
    /// Was prefetched, and not used since; the policy may have it by now.
    pub const UNUSED: u16 = 1 << 10;

    #[inline]
    pub fn is(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    #[inline]
    pub fn set(&mut self, flags: u16) {
        self.flags |= flags;
    }

    #[inline]
    pub fn clear(&mut self, flags: u16) {
        self.flags &= !flags;
    }

    #[inline]
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    pub fn set_epoch(&mut self, epoch: u32) {
        self.epoch = epoch;
    }

    pub fn claim(&mut self) {
        self.claims += 1;
    }

    pub fn drop_claim(&mut self) {
        self.claims -= 1;
    }

    /// Whether an access may use the bytes now.
    #[inline]
    pub fn admits(&self, mode: Mode) -> bool {
        self.flags & (State::ARRIVED | State::EXCLUSIVE) == State::ARRIVED
            && (mode == Mode::Read || self.readers == 0)
    }

    /// Holds the bytes for a user that they admit.
    pub fn pin(&mut self, mode: Mode) {
        match mode {
            Mode::Read => self.readers += 1,
            Mode::Write => self.set(State::EXCLUSIVE | State::DIRTY),
        }
    }

    pub fn unpin(&mut self, mode: Mode) {
        match mode {
            Mode::Read => self.readers -= 1,
            Mode::Write => self.clear(State::EXCLUSIVE),
        }
    }

    /// Whether a write-back has to begin, and may.
    pub fn wants_write_back(&self) -> bool {
        let leaves = !self.is(State::KEPT) || self.is(State::FLUSH);
        self.is(State::DIRTY) && !self.is(State::WRITING | State::EXCLUSIVE) && leaves
    }

    /// Whether nothing needs the frame.
    pub fn may_go(&self) -> bool {
        let busy = State::KEPT | State::DIRTY | State::WRITING | State::EXCLUSIVE;
        self.is(State::ARRIVED) && !self.is(busy) && self.readers == 0 && self.claims == 0
    }
}

/// Sums over all frames, for checks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    pub kept: u32,
    pub prefetched: u32,
    pub unused: u32,
    pub claims: u32,
    /// Guards, and pins of claims.
    pub pins: u32,
    pub unflushed: u32,
    /// Write-backs that have to begin and are in no queue.
    pub forgotten: u32,
}

/// All frames.
pub(super) struct Frames {
    arena: Arena,
    states: Vec<State>,
    used: u32,
    /// Prefetched blocks, the newest at the head.
    prefetched: List,
}

impl Frames {
    pub fn new(count: u32) -> Frames {
        let states = vec![State::default(); count as usize];
        Frames { arena: Arena::new(count), states, used: 0, prefetched: List::EMPTY }
    }

    pub fn count(&self) -> u32 {
        self.states.len() as u32
    }

    pub fn bytes(&self) -> u64 {
        self.arena.bytes() + (self.states.len() * size_of::<State>()) as u64
    }

    pub fn free(&self) -> u32 {
        self.count() - self.used
    }

    pub fn prefetched(&self) -> u32 {
        self.prefetched.len()
    }

    #[inline]
    pub fn find(&self, block: Block) -> Option<u32> {
        self.arena.find(block)
    }

    pub fn block(&self, frame: u32) -> Block {
        self.arena.block(frame)
    }

    #[inline]
    pub fn state(&self, frame: u32) -> &State {
        &self.states[frame as usize]
    }

    #[inline]
    pub fn state_mut(&mut self, frame: u32) -> &mut State {
        &mut self.states[frame as usize]
    }

    /// Gives an absent block a frame; there is a free one.
    pub fn insert(&mut self, block: Block, flags: u16) -> u32 {
        let frame = self.arena.insert(block, 0);
        self.used += 1;
        let state = self.state_mut(frame);
        // The frame may still be in the queue of write-backs, which then finds nothing to write.
        state.flags = flags | state.flags & State::QUEUED;
        frame
    }

    pub fn insert_prefetched(&mut self, block: Block) -> u32 {
        let frame = self.insert(block, State::PREFETCHED | State::UNUSED);
        self.arena.push(&mut self.prefetched, frame);
        frame
    }

    /// Makes a block that is here, or on its way, the policy's. Returns whether it was prefetched.
    pub fn adopt(&mut self, frame: u32) -> bool {
        let state = self.state_mut(frame);
        state.set(State::KEPT);
        let prefetched = state.is(State::PREFETCHED);
        if prefetched {
            state.clear(State::PREFETCHED);
            self.arena.unlink(&mut self.prefetched, frame);
        }
        prefetched
    }

    /// Takes the oldest prefetched block that nothing holds, none of these, out of the list. `None`: there is none.
    pub fn take_prefetched(&mut self, but: &Range<Block>) -> Option<u32> {
        let mut frame = self.prefetched.tail();
        while frame != NONE {
            if self.state(frame).may_go() && !but.contains(&self.block(frame)) {
                self.arena.unlink(&mut self.prefetched, frame);
                return Some(frame);
            }
            frame = self.arena.towards_head(frame);
        }
        None
    }

    /// Frees a frame that is in no list.
    pub fn release(&mut self, frame: u32) {
        self.arena.release(frame);
        self.used -= 1;
        let state = self.state_mut(frame);
        *state = State { flags: state.flags & State::QUEUED, ..State::default() };
    }

    /// Sums over all frames. Errors: a frame that is neither free nor found by its block, or that nothing needs and
    /// nothing will free.
    pub fn check(&self) -> Result<Totals, String> {
        let mut is_free = vec![false; self.states.len()];
        self.arena.free_slots().for_each(|frame| is_free[frame as usize] = true);
        let mut totals = Totals::default();
        let mut used = 0;
        for (frame, state) in (0..).zip(&self.states) {
            let (block, is_free) = (self.block(frame), is_free[frame as usize]);
            match (is_free, self.find(block) == Some(frame)) {
                (true, false) => continue,
                (false, true) => used += 1,
                (is_free, _) => {
                    return Err(format!("frame {frame}: free: {is_free}, found by its block: {is_free}"));
                }
            }
            if state.may_go() && !state.is(State::PREFETCHED) {
                return Err(format!("frame {frame} is lost: nothing needs its block {block}"));
            }
            let count = |flags| u32::from(state.is(flags));
            totals.kept += count(State::KEPT);
            totals.prefetched += count(State::PREFETCHED);
            totals.unused += count(State::UNUSED);
            totals.claims += u32::from(state.claims);
            totals.pins += u32::from(state.readers) + count(State::EXCLUSIVE);
            totals.unflushed += count(State::FLUSH | State::FLUSHING);
            totals.forgotten += u32::from(state.wants_write_back() && !state.is(State::QUEUED));
        }
        match () {
            () if used != self.used => Err(format!("{used} frames are in use, and {} count", self.used)),
            () if totals.prefetched != self.prefetched() => {
                Err(format!("{} blocks are prefetched, not {}", totals.prefetched, self.prefetched()))
            }
            () => Ok(totals),
        }
    }
}
