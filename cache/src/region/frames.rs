//! Frames of local memory: which block each one has, and its state.

use super::index::Index;
use super::queue::Queue;
use super::{Frame, Mode};
use crate::Block;
use std::collections::VecDeque;
use std::ops::Range;

/// No frame.
const NONE: Frame = Frame::MAX;

/// State of a frame; 8 bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct State {
    /// The epoch in which the policy saw the last use.
    epoch: u16,
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
    /// A guard or pin writes.
    pub const EXCLUSIVE: u16 = 1 << 5;
    /// A flush waits for a write-back that has yet to begin.
    pub const FLUSH: u16 = 1 << 6;
    /// A flush waits for the write-back under way.
    pub const FLUSHING: u16 = 1 << 7;
    /// One of the prefetched blocks.
    pub const PREFETCHED: u16 = 1 << 8;
    /// Was prefetched, and not used since; the policy may have it by now.
    pub const UNUSED: u16 = 1 << 9;

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
    pub fn epoch(&self) -> u16 {
        self.epoch
    }

    pub fn set_epoch(&mut self, epoch: u16) {
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
    /// Write-backs that have to begin and are not queued.
    pub forgotten: u32,
}

/// A frame: its state, and its block, or the next free frame.
#[derive(Clone, Copy, Debug)]
struct Slot {
    block: Block,
    state: State,
}

/// All frames.
pub(super) struct Frames {
    slots: Vec<Slot>,
    index: Index,
    used: u32,
    /// The last frame that became free.
    free: Frame,
    /// Frames from here on were never used, and are not in the list of free ones.
    fresh: Frame,
    /// Prefetched blocks, the newest at the back.
    prefetched: VecDeque<Frame>,
    /// Frames that may have to be written back.
    pub write_backs: Queue,
}

impl Frames {
    /// Up to `prefetched` of them have prefetched blocks.
    pub fn new(count: u32, prefetched: u16) -> Frames {
        let empty = Slot { block: NONE, state: State::default() };
        Frames {
            slots: vec![empty; count as usize],
            index: Index::new(count),
            used: 0,
            free: NONE,
            fresh: 0,
            prefetched: VecDeque::with_capacity(prefetched.into()),
            write_backs: Queue::new(count),
        }
    }

    pub fn count(&self) -> u32 {
        self.slots.len() as u32
    }

    pub fn bytes(&self) -> u64 {
        let prefetched = self.prefetched.capacity() * size_of::<Frame>();
        let slots = self.slots.len() * size_of::<Slot>();
        self.index.bytes() + self.write_backs.bytes() + (slots + prefetched) as u64
    }

    pub fn free(&self) -> u32 {
        self.count() - self.used
    }

    pub fn prefetched(&self) -> u32 {
        self.prefetched.len() as u32
    }

    #[inline]
    pub fn find(&self, block: Block) -> Option<Frame> {
        self.index.find(block, |frame| self.slots[frame as usize].block)
    }

    pub fn block(&self, frame: Frame) -> Block {
        self.slots[frame as usize].block
    }

    #[inline]
    pub fn state(&self, frame: Frame) -> &State {
        &self.slots[frame as usize].state
    }

    #[inline]
    pub fn state_mut(&mut self, frame: Frame) -> &mut State {
        &mut self.slots[frame as usize].state
    }

    /// Gives an absent block a frame; there is a free one.
    pub fn insert(&mut self, block: Block, flags: u16) -> Frame {
        let frame = match self.free {
            NONE => {
                self.fresh += 1;
                self.fresh - 1
            }
            free => {
                self.free = self.block(free);
                free
            }
        };
        self.slots[frame as usize] = Slot { block, state: State { flags, ..State::default() } };
        self.index.insert(block, frame);
        self.used += 1;
        frame
    }

    pub fn insert_prefetched(&mut self, block: Block) -> Frame {
        let frame = self.insert(block, State::PREFETCHED | State::UNUSED);
        self.prefetched.push_back(frame);
        frame
    }

    /// Makes a block that is here, or on its way, the policy's. Returns whether it was prefetched.
    pub fn adopt(&mut self, frame: Frame) -> bool {
        let state = self.state_mut(frame);
        state.set(State::KEPT);
        let prefetched = state.is(State::PREFETCHED);
        if prefetched {
            state.clear(State::PREFETCHED);
            self.prefetched.retain(|other| *other != frame);
        }
        prefetched
    }

    /// Takes the oldest prefetched block that nothing holds, none of these, out of the list. `None`: there is none.
    pub fn take_prefetched(&mut self, but: &Range<Block>) -> Option<Frame> {
        let may_go = |frame: &Frame| self.state(*frame).may_go() && !but.contains(&self.block(*frame));
        let place = self.prefetched.iter().position(may_go)?;
        self.prefetched.remove(place)
    }

    /// Frees a frame that is in no list.
    pub fn release(&mut self, frame: Frame) {
        self.index.remove(self.block(frame), frame, |frame| self.slots[frame as usize].block);
        self.slots[frame as usize] = Slot { block: self.free, state: State::default() };
        self.free = frame;
        self.used -= 1;
    }

    /// Frames without a block, in no order.
    fn free_frames(&self) -> impl Iterator<Item = Frame> {
        let next = |frame: Frame| (frame != NONE).then_some(frame);
        let freed = std::iter::successors(next(self.free), move |frame| next(self.block(*frame)));
        freed.chain(self.fresh..self.count())
    }

    /// Sums over all frames. Errors: a frame that is neither free nor found by its block, or that nothing needs and
    /// nothing will free.
    pub fn check(&self) -> Result<Totals, String> {
        let mut is_free = vec![false; self.slots.len()];
        self.free_frames().for_each(|frame| is_free[frame as usize] = true);
        let mut totals = Totals::default();
        let mut used = 0;
        for (frame, Slot { block, state }) in (0..).zip(&self.slots) {
            let is_free = is_free[frame as usize];
            match (is_free, self.find(*block) == Some(frame)) {
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
            totals.forgotten += u32::from(state.wants_write_back() && !self.write_backs.contains(frame));
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
