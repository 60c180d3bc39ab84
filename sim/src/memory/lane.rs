//! One direction of a link: blocks of short messages go between the blocks of a chunk, or, where chunks are frames, between
//! frames; chunks go one after another.

use std::collections::VecDeque;

/// A chunk on a lane, known to the caller by a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Waiting {
    chunk: u32,
    blocks: u64,
    /// The lane can't be done with it before this: the tail comes only then.
    tail_ps: u64,
}

/// One direction of a link.
#[derive(Clone, Debug, Default)]
pub struct Lane {
    /// Whether a chunk that has begun is not interrupted.
    whole: bool,
    /// When the last block of all short messages so far has left.
    short_until_ps: u64,
    /// The chunk under way, and when its last block will have left.
    current: Option<(u32, u64)>,
    waiting: VecDeque<Waiting>,
    waiting_blocks: u64,
    /// Most blocks that waited behind a chunk.
    pub waiting_max: u64,
    /// Blocks that have been sent, or will be.
    pub blocks: u64,
}

impl Lane {
    /// An idle lane whose chunks are frames, which nothing interrupts, if `whole`.
    pub fn new(whole: bool) -> Lane {
        Lane { whole, ..Lane::default() }
    }

    /// Sends a message of a few blocks, which waits for nothing but the block under way and others of its kind. Returns when
    /// its last block has left.
    pub fn short(&mut self, now_ps: u64, blocks: u64, block_ps: u64) -> u64 {
        self.blocks += blocks;
        let mut start_ps = now_ps.max(self.short_until_ps);
        if let Some((_, tail_ps)) = &mut self.current {
            if *tail_ps > start_ps && !self.whole {
                // At the end of the block that is on the lane.
                start_ps += (*tail_ps - start_ps) % block_ps.max(1);
                *tail_ps += blocks * block_ps;
            } else {
                start_ps = start_ps.max(*tail_ps);
            }
        }
        self.short_until_ps = start_ps + blocks * block_ps;
        self.short_until_ps
    }

    /// Sends a chunk whose last block is here at `tail_ps`, or earlier. Returns when to call [`done`](Self::done), if it starts
    /// now.
    pub fn chunk(
        &mut self,
        now_ps: u64,
        chunk: u32,
        blocks: u64,
        tail_ps: u64,
        block_ps: u64,
    ) -> Option<u64> {
        self.blocks += blocks;
        let waiting = Waiting { chunk, blocks, tail_ps };
        if self.current.is_some() {
            self.waiting_blocks += blocks;
            self.waiting_max = self.waiting_max.max(self.waiting_blocks);
            self.waiting.push_back(waiting);
            return None;
        }
        Some(self.start(now_ps, waiting, block_ps))
    }

    fn start(&mut self, now_ps: u64, waiting: Waiting, block_ps: u64) -> u64 {
        let from_ps = now_ps.max(self.short_until_ps);
        let tail_ps = (from_ps + waiting.blocks * block_ps).max(waiting.tail_ps);
        self.current = Some((waiting.chunk, tail_ps));
        tail_ps
    }

    /// The chunk under way, and when its last block will have left.
    pub fn current(&self) -> Option<(u32, u64)> {
        self.current
    }

    /// The chunk under way has its last block here only at `tail_ps`.
    pub fn hold(&mut self, until_ps: u64) {
        if let Some((_, tail_ps)) = &mut self.current {
            *tail_ps = until_ps.max(*tail_ps);
        }
    }

    /// The chunk that has left by now, or the time to ask again, since short messages have held it up; then the same for the
    /// next chunk.
    pub fn done(&mut self, now_ps: u64, block_ps: u64) -> Done {
        match self.current {
            Some((_, tail_ps)) if tail_ps > now_ps => Done { left: None, again_ps: Some(tail_ps) },
            Some((chunk, _)) => {
                self.current = None;
                let next = self.waiting.pop_front();
                let again_ps = next.map(|next| {
                    self.waiting_blocks -= next.blocks;
                    self.start(now_ps, next, block_ps)
                });
                Done { left: Some(chunk), again_ps }
            }
            None => Done { left: None, again_ps: None },
        }
    }
}

/// Answer of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// A chunk that has left.
    pub left: Option<u32>,
    /// When to ask again.
    pub again_ps: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_interrupts_a_frame() {
        let mut lane = Lane::new(true);
        assert_eq!(lane.chunk(0, 7, 8, 0, 640), Some(5_120));
        assert_eq!(lane.short(1_000, 11, 640), 5_120 + 7_040);
        assert_eq!(lane.chunk(2_000, 8, 4, 0, 640), None);
        assert_eq!(lane.done(5_120, 640), Done { left: Some(7), again_ps: Some(12_160 + 2_560) });
    }

    #[test]
    fn a_short_message_waits_for_a_block_and_holds_up_the_chunk_by_its_own() {
        let mut lane = Lane::default();
        assert_eq!(lane.chunk(0, 7, 8, 0, 640), Some(5_120));
        assert_eq!(lane.short(1_000, 1, 640), 1_280 + 640);
        assert_eq!(lane.short(1_000, 2, 640), 1_920 + 1_280);
        assert_eq!(lane.chunk(2_000, 8, 4, 0, 640), None);
        assert_eq!(lane.done(5_120, 640), Done { left: None, again_ps: Some(7_040) });
        assert_eq!(lane.done(7_040, 640), Done { left: Some(7), again_ps: Some(7_040 + 2_560) });
        assert_eq!(lane.done(9_600, 640), Done { left: Some(8), again_ps: None });
        assert_eq!((lane.blocks, lane.waiting_max), (15, 4));
    }
}
