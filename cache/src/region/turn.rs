//! Turns: the policy's actions after one access, executed in order as frames become free.

use super::frames::State;
use super::{Block, Mode, Residency, planted};
use crate::{Action, Served};

/// The turn of an access.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    /// The next action.
    at: usize,
    /// The block of the access.
    pub(super) wanted: Block,
    /// Accesses that wait for this block, as long as it has no frame.
    pub(super) claims: u16,
}

impl Residency {
    /// Shows the policy an access, and begins its actions. No turn is open, and a claim holds the block's frame, if it
    /// has one.
    pub(super) fn show(&mut self, block: Block, mode: Mode) {
        self.begin_turn(block, mode, 0);
    }

    /// The same for a block without a frame, with a claim.
    pub(super) fn show_miss(&mut self, block: Block, mode: Mode) {
        self.counters.from_remote += 1;
        self.begin_turn(block, mode, 1);
    }

    fn begin_turn(&mut self, block: Block, mode: Mode, claims: u16) {
        let served = self.policy.access(block, mode == Mode::Write, &mut self.actions);
        debug_assert!(claims == 0 || served == Served::Remote, "the policy knows what is local");
        if self.actions.as_slice().is_empty() {
            return;
        }
        self.epoch = self.epoch.wrapping_add(1);
        self.turn = Some(Turn { at: 0, wanted: block, claims });
        self.advance();
    }

    /// Executes as much of the turn as possible.
    pub(super) fn advance(&mut self) {
        while let Some(turn) = self.turn.filter(|_| !self.failed) {
            let Some(action) = self.actions.as_slice().get(turn.at).copied() else {
                (self.turn, self.has_changed) = (None, true);
                return;
            };
            match action {
                Action::Fetch { first, count, .. } => {
                    if !self.has_queue_room(count) || !self.has_room(first, count) {
                        return;
                    }
                    self.bring(first, count, turn);
                }
                Action::Evict { block, .. } => self.evict(block),
                Action::Promote { page } => self.promote(page),
                Action::Demote { block } => {
                    if let Some(frame) = self.frames.find(block) {
                        self.frames.state_mut(frame).clear(State::HOST);
                    }
                }
            }
            if let Some(turn) = &mut self.turn {
                turn.at += 1;
            }
        }
    }

    /// Whether there are frames for those of the blocks that have none. Other prefetched blocks make room.
    pub(super) fn has_room(&mut self, first: Block, count: u32) -> bool {
        let blocks = first..first + count;
        let missing = blocks.clone().filter(|block| self.frames.find(*block).is_none()).count() as u32;
        while missing > self.frames.free() {
            if !self.drop_prefetched(&blocks) {
                return false;
            }
        }
        true
    }

    /// Makes blocks local: those that have a frame stay, the others are fetched.
    fn bring(&mut self, first: Block, count: u32, turn: Turn) {
        let mut run = first..first;
        for block in first..first + count {
            let frame = match self.frames.find(block) {
                Some(frame) => {
                    self.request(run);
                    run = block + 1..block + 1;
                    if !self.frames.adopt(frame) {
                        self.counters.rescued += 1;
                    }
                    frame
                }
                // Its bytes are about to be written.
                None if self.overwritten == Some(block) => {
                    self.request(run);
                    run = block + 1..block + 1;
                    self.counters.overwritten += 1;
                    self.frames.insert(block, State::KEPT | State::ARRIVED)
                }
                None => {
                    run.end = block + 1;
                    self.frames.insert(block, State::KEPT)
                }
            };
            if block == turn.wanted {
                let claims = self.turn.as_mut().map_or(0, |turn| std::mem::take(&mut turn.claims));
                (0..claims).for_each(|_| self.frames.state_mut(frame).claim());
            }
        }
        self.request(run);
    }

    /// The policy drops a block. Its frame is free once nothing needs it.
    fn evict(&mut self, block: Block) {
        let Some(frame) = self.frames.find(block) else { return };
        self.counters.evicted += 1;
        let state = self.frames.state_mut(frame);
        state.clear(State::KEPT | State::HOST);
        if planted!(self, EvictionCleans) {
            self.frames.state_mut(frame).clear(State::DIRTY);
        }
        if planted!(self, EvictionIgnoresGuards) && self.frames.state(frame).is(State::ARRIVED) {
            return self.free(frame);
        }
        self.settle(frame);
    }

    fn promote(&mut self, page: u32) {
        self.counters.promoted += 1;
        let first = page * self.blocks_per_page;
        for block in first..first + self.blocks_per_page {
            let Some(frame) = self.frames.find(block) else { continue };
            self.frames.state_mut(frame).set(State::HOST);
            if planted!(self, PromotionCleans) {
                self.frames.state_mut(frame).clear(State::DIRTY);
            }
        }
    }
}
