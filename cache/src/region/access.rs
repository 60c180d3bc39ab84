//! Accesses of threads: hits, claims on blocks that are on their way, guards.

use super::frames::State;
use super::{Block, Found, Frame, Mode, Residency, planted};

impl Residency {
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
                return self.show_local(frame, block, mode);
            }
            return self.hit(frame, mode);
        }
        self.unready(frame, block, mode)
    }

    /// An access that writes all bytes of a block. If the block is absent, it needs no fetch.
    pub fn overwrite(&mut self, block: Block) -> Found {
        if self.frames.find(block).is_some() || self.turn.is_some() {
            return self.access(block, Mode::Write);
        }
        // Without a frame its turn would stay open, and fetch the block after all. If no guard, claim or block of the policy needs all
        // frames, one becomes free when a write-back or a fetch ends.
        let has_room = self.has_queue_room(crate::PAGE_BLOCKS_MAX) && self.has_room(block, 1);
        if self.limits.prefetched > 0 && !self.failed && !has_room {
            return Found::Later;
        }
        self.overwritten = Some(block);
        let found = self.access(block, Mode::Write);
        self.overwritten = None;
        match self.frames.find(block) {
            Some(frame) if found == Found::Wait && self.frames.state(frame).is(State::ARRIVED) => {
                self.claims -= 1;
                let state = self.frames.state_mut(frame);
                state.drop_claim();
                state.set(State::DIRTY);
                // The policy may have dropped it again.
                self.settle(frame);
                Found::Here(frame)
            }
            _ => found,
        }
    }

    /// An access to a block that is here and admits it.
    #[inline]
    fn hit(&mut self, frame: Frame, mode: Mode) -> Found {
        match self.frames.state(frame).is(State::HOST) {
            true => self.counters.from_host += 1,
            false => self.counters.from_device += 1,
        }
        self.note_use(frame);
        if mode == Mode::Write {
            self.frames.state_mut(frame).set(State::DIRTY);
        }
        Found::Here(frame)
    }

    /// The first use of a prefetched block counts.
    #[inline]
    fn note_use(&mut self, frame: Frame) {
        let state = self.frames.state_mut(frame);
        if state.is(State::UNUSED) {
            state.clear(State::UNUSED);
            self.counters.prefetched_used += 1;
        }
    }

    /// An access to a block that is here and admits it, which the policy sees.
    #[cold]
    fn show_local(&mut self, frame: Frame, block: Block, mode: Mode) -> Found {
        self.show_held(frame, block, mode);
        let state = self.frames.state_mut(frame);
        state.drop_claim();
        let is_dropped = mode == Mode::Read && state.may_go() && !state.is(State::PREFETCHED);
        if !is_dropped {
            let found = self.hit(frame, mode);
            // A write of a block that leaves.
            self.settle(frame);
            return found;
        }
        // The policy has dropped the block with this access. It stays for a claim, or has to come again.
        if self.claims >= self.limits.claims.into() {
            self.settle(frame);
            self.advance();
            return Found::Later;
        }
        self.hit(frame, mode);
        self.frames.state_mut(frame).claim();
        self.claims += 1;
        self.has_changed = true;
        Found::Wait
    }

    /// Shows the policy the use of a block that has a frame. The frame has one claim more behind it.
    pub(super) fn show_held(&mut self, frame: Frame, block: Block, mode: Mode) {
        self.frames.state_mut(frame).claim();
        self.show(block, mode);
        self.frames.state_mut(frame).set_epoch(self.epoch);
    }

    /// A block that has a frame, and is leaving, prefetched, on its way here, or in the hands of a guard.
    #[cold]
    fn unready(&mut self, frame: Frame, block: Block, mode: Mode) -> Found {
        let state = self.frames.state(frame);
        let is_unseen = self.turn.is_none() && (state.epoch() != self.epoch || !state.is(State::KEPT));
        match (state.is(State::ARRIVED), state.admits(mode)) {
            (true, false) => Found::Held,
            (true, true) if is_unseen => self.show_local(frame, block, mode),
            (true, true) => {
                self.hit(frame, mode);
                self.settle(frame);
                Found::Here(frame)
            }
            (false, _) if self.claims >= self.limits.claims.into() => Found::Later,
            (false, _) => {
                self.counters.joined += 1;
                if planted!(self, TwoFetches) {
                    self.request(block..block + 1);
                }
                self.note_use(frame);
                match is_unseen {
                    true => self.show_held(frame, block, mode),
                    false => self.frames.state_mut(frame).claim(),
                }
                self.claims += 1;
                Found::Wait
            }
        }
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

    /// The frame of a claimed block, pinned, once it has been fetched; this takes the claim. [`Found::Later`],
    /// [`Found::Held`]: the claim is void, access the block again.
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
            self.end_claim();
            return Found::Later;
        };
        let state = self.frames.state_mut(frame);
        if !state.is(State::ARRIVED) {
            return Found::Wait;
        }
        state.drop_claim();
        let admits = state.admits(mode);
        if admits {
            state.pin(mode);
        }
        self.end_claim();
        if admits { Found::Here(frame) } else { Found::Held }
    }

    /// Others may claim a block now.
    fn end_claim(&mut self) {
        self.claims -= 1;
        self.has_changed |= !planted!(self, ClaimIsSilent);
    }

    /// Gives up a claim.
    pub fn give_up(&mut self, block: Block) {
        self.end_claim();
        if let Some(turn) = self.turn.as_mut().filter(|turn| turn.wanted == block && turn.claims > 0) {
            turn.claims -= 1;
        } else if let Some(frame) = self.frames.find(block) {
            self.frames.state_mut(frame).drop_claim();
            self.settle(frame);
            self.advance();
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
        self.has_changed |= !planted!(self, ReleaseIsSilent);
        if !planted!(self, ReleaseLeaks) {
            self.settle(frame);
        }
        self.advance();
    }
}
