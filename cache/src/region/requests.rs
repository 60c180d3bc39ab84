//! Requests to the driver, and their results.

use super::frames::State;
use super::{Block, Frame, Residency, planted};

/// A request to the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Read adjacent blocks into their frames ([`Residency::frame_of`]), then call [`Residency::fetched`].
    Fetch {
        /// The first block.
        first: Block,
        /// How many.
        count: u32,
    },
    /// Write a frame's bytes, as they are now, to its block, then call [`Residency::written`].
    WriteBack {
        /// The block.
        block: Block,
        /// Its frame.
        frame: Frame,
    },
}

impl Residency {
    /// Queues a fetch of blocks, in requests of at most as many as one may have.
    pub(super) fn request(&mut self, blocks: std::ops::Range<Block>) {
        self.counters.fetched += blocks.len() as u64;
        let mut first = blocks.start;
        while first < blocks.end {
            let count = self.limits.fetch.min(blocks.end - first);
            self.fetches.push_back((first, count));
            first += count;
        }
    }

    /// Whether the queue has room for the fetches of this many blocks beside those queued and under way. An empty one takes any number.
    pub(super) fn has_queue_room(&self, count: u32) -> bool {
        let fetches = self.fetches.len() as u32 + self.fetching;
        // Each fetch waits in a frame of its own.
        let is_for_all = self.fetches_max == self.frames.count();
        is_for_all || fetches == 0 || fetches + count <= self.fetches_max
    }

    /// From here on, [`Residency::is_flushed`] says whether all writes so far are in remote memory. One flush at a time.
    pub fn begin_flush(&mut self) {
        self.unflushed = 0;
        for frame in 0..self.frames.count() {
            let state = self.frames.state_mut(frame);
            state.clear(State::FLUSH | State::FLUSHING);
            if state.is(State::DIRTY) {
                state.set(State::FLUSH);
            } else if state.is(State::WRITING) {
                state.set(State::FLUSHING);
            } else {
                continue;
            }
            self.unflushed += 1;
            self.settle(frame);
        }
    }

    /// Whether the flush has ended.
    pub fn is_flushed(&self) -> bool {
        self.unflushed == 0
    }

    /// The next request to remote memory. Fetches come first: accesses wait for them, and they have their frames. Where these run out, there
    /// are no fetches until write-backs end.
    pub fn next_request(&mut self) -> Option<Request> {
        if self.failed {
            return None;
        }
        if let Some((first, count)) = self.fetches.pop_front() {
            self.fetching += 1;
            return Some(Request::Fetch { first, count });
        }
        while let Some(frame) = self.frames.write_backs.pop() {
            let state = self.frames.state_mut(frame);
            if !state.wants_write_back() {
                continue;
            }
            if state.is(State::FLUSH) {
                state.clear(State::FLUSH);
                state.set(State::FLUSHING);
            }
            state.set(State::WRITING);
            if !planted!(self, WriteDuringWriteBackLost) {
                self.frames.state_mut(frame).clear(State::DIRTY);
            }
            self.counters.written_back += 1;
            return Some(Request::WriteBack { block: self.frames.block(frame), frame });
        }
        None
    }

    /// Whether [`Residency::next_request`] may have one.
    #[inline]
    pub fn has_requests(&self) -> bool {
        !(self.fetches.is_empty() && self.frames.write_backs.is_empty())
    }

    /// A block that the flush waits for while a guard writes it, if nothing but such blocks may be left.
    pub fn held_flush(&self) -> Option<Block> {
        if self.unflushed > self.guards {
            return None;
        }
        let is_held = |frame: &u32| {
            let state = self.frames.state(*frame);
            state.is(State::FLUSH) && state.is(State::EXCLUSIVE)
        };
        (0..self.frames.count()).find(is_held).map(|frame| self.frames.block(frame))
    }

    /// Takes a request back that was not carried out: the way had no room, or refused it. It comes again.
    pub fn refuse(&mut self, request: Request) {
        match request {
            _ if self.failed => {}
            Request::Fetch { first, count } => {
                self.fetching -= 1;
                self.fetches.push_front((first, count));
            }
            Request::WriteBack { frame, .. } => {
                self.counters.written_back -= 1;
                let state = self.frames.state_mut(frame);
                state.clear(State::WRITING);
                state.set(State::DIRTY);
                if state.is(State::FLUSHING) {
                    state.clear(State::FLUSHING);
                    state.set(State::FLUSH);
                }
                self.frames.write_backs.put_back(frame);
            }
        }
    }

    /// A fetch has ended, and its bytes are in the frames.
    pub fn fetched(&mut self, first: Block, count: u32) {
        self.fetching -= 1;
        for block in first..first + count {
            let Some(frame) = self.frames.find(block) else { continue };
            self.frames.state_mut(frame).set(State::ARRIVED);
            self.settle(frame);
        }
        self.has_changed = true;
        self.advance();
    }

    /// A write-back has ended.
    pub fn written(&mut self, frame: Frame) {
        let state = self.frames.state_mut(frame);
        state.clear(State::WRITING);
        if planted!(self, WriteDuringWriteBackLost) {
            self.frames.state_mut(frame).clear(State::DIRTY);
        }
        let state = self.frames.state_mut(frame);
        if state.is(State::FLUSHING) {
            state.clear(State::FLUSHING);
            self.unflushed -= 1;
        }
        self.has_changed = true;
        self.settle(frame);
        self.advance();
    }
}
