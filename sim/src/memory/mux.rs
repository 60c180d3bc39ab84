//! Memory blocks and ordinary frames on one link, block by block (§3.2.3).
//!
//! ```text
//! memory   /MS/ /MD/ /MT/ ──────────────▶ ┌─────┐             ┌────────┐ ──▶ memory blocks, as they come
//! frames   encoder ─ 4 blocks of buffer ─▶ │ Mux │ ── link ──▶ │ Demux  │
//!                       ◀─ back-pressure ─ └─────┘             └────────┘ ──▶ frames, each whole once its /T/ is here
//! ```
//!
//! A link carries one block per cycle. If both have one, they take turns. A memory block may replace the gap between frames
//! (/E/), which the receiver restores.

use std::collections::VecDeque;

/// A block on the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symbol {
    /// /S/ of a frame, with the frame's number.
    Start(u32),
    /// /D/.
    Data(u32),
    /// /T/.
    Terminate(u32),
    /// /E/: the gap, or nothing to send.
    Idle,
    /// Any /M*/, /N/ or /G/ block, with its number.
    Memory(u32),
}

/// Maximum blocks of frames in the transmit path; the MAC keeps the others.
pub const BUFFER_BLOCKS: usize = 4;

/// The blocks of a frame of this many bytes with FCS. The preamble is in /S/, up to seven bytes are in /T/, and a gap of
/// one block follows.
pub fn frame(number: u32, bytes: u64) -> impl Iterator<Item = Symbol> {
    let data = (0..bytes / 8).map(move |_| Symbol::Data(number));
    [Symbol::Start(number)].into_iter().chain(data).chain([Symbol::Terminate(number), Symbol::Idle])
}

/// The sending end.
#[derive(Clone, Debug, Default)]
pub struct Mux {
    frames: VecDeque<Symbol>,
    memory: VecDeque<u32>,
    memory_was_last: bool,
    /// Gaps that carried memory blocks.
    pub gaps_used: u64,
}

impl Mux {
    /// Whether a block of a frame fits.
    pub fn accepts(&self) -> bool {
        self.frames.len() < BUFFER_BLOCKS
    }

    /// Adds a block of a frame; only while [`accepts`](Self::accepts) returns true.
    pub fn push_frame(&mut self, symbol: Symbol) {
        self.frames.push_back(symbol);
    }

    /// Adds a memory block.
    pub fn push_memory(&mut self, number: u32) {
        self.memory.push_back(number);
    }

    /// Returns the block to send in this cycle.
    pub fn poll(&mut self) -> Symbol {
        let gap = self.frames.front() == Some(&Symbol::Idle);
        if let Some(number) = self.memory.front().copied()
            && (gap || self.frames.is_empty() || !self.memory_was_last)
        {
            if gap {
                self.frames.pop_front();
                self.gaps_used += 1;
            }
            self.memory.pop_front();
            self.memory_was_last = true;
            return Symbol::Memory(number);
        }
        self.memory_was_last = false;
        self.frames.pop_front().unwrap_or(Symbol::Idle)
    }
}

/// The receiving end.
#[derive(Clone, Debug, Default)]
pub struct Demux {
    frame: Vec<Symbol>,
    /// Blocks for the decoder, in consecutive cycles.
    whole: VecDeque<Symbol>,
    /// Maximum blocks held so far.
    pub held_max: usize,
}

impl Demux {
    /// Accepts a block from the link. Returns a memory block's number immediately.
    pub fn push(&mut self, symbol: Symbol) -> Option<u32> {
        match symbol {
            Symbol::Memory(number) => return Some(number),
            Symbol::Idle => {}
            Symbol::Terminate(_) => {
                self.frame.push(symbol);
                self.whole.extend(self.frame.drain(..));
                self.whole.push_back(Symbol::Idle);
            }
            Symbol::Start(_) | Symbol::Data(_) => self.frame.push(symbol),
        }
        self.held_max = self.held_max.max(self.frame.len() + self.whole.len());
        None
    }

    /// Returns the block for the decoder in this cycle.
    pub fn poll(&mut self) -> Symbol {
        self.whole.pop_front().unwrap_or(Symbol::Idle)
    }
}

/// Mutual delay of memory messages and frames on one link.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Beside {
    /// Mean delay of a memory message's first block, compared with a link of its own, in cycles.
    pub first: f64,
    /// The same for its last block.
    pub last: f64,
    /// Maximum blocks of frames that the receiver held.
    pub held_max: usize,
}

/// Sends a memory message next to endless frames of `frame_bytes`, once starting at each block of a frame.
pub fn beside_frames(message_blocks: u32, frame_bytes: u64) -> Beside {
    let period = frame(0, frame_bytes).count();
    let (mut first, mut last, mut demux) = (0, 0, Demux::default());
    for phase in period..2 * period {
        let (mut mux, mut cycle) = (Mux::default(), 0);
        let mut frames = (0..).flat_map(|number| frame(number, frame_bytes));
        let mut left = message_blocks;
        while left > 0 {
            while mux.accepts()
                && let Some(symbol) = frames.next()
            {
                mux.push_frame(symbol);
            }
            if cycle == phase {
                (0..message_blocks).for_each(|number| mux.push_memory(number));
            }
            if let Some(number) = demux.push(mux.poll()) {
                left -= 1;
                let late = cycle - phase - number as usize;
                first += if number == 0 { late } else { 0 };
                last += if left == 0 { late } else { 0 };
            }
            demux.poll();
            cycle += 1;
        }
        demux = Demux { held_max: demux.held_max, ..Demux::default() };
    }
    let mean = |sum: usize| sum as f64 / period as f64;
    Beside { first: mean(first), last: mean(last), held_max: demux.held_max }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Runs frames and memory blocks over a link. Returns the memory blocks and the decoder's blocks that come out.
    fn run(seed: u64, frames: &[u64], memory: u32, demux: &mut Demux) -> (Vec<u32>, Vec<Symbol>) {
        let mut random = Random::new(seed);
        let mut mux = Mux::default();
        let mut blocks =
            frames.iter().enumerate().flat_map(|(nth, bytes)| frame(nth as u32, *bytes)).peekable();
        let (mut numbers, mut decoded, mut sent) = (Vec::new(), Vec::new(), 0);
        for _ in 0..20_000 {
            while mux.accepts() && blocks.peek().is_some() {
                mux.frames.extend(blocks.next());
            }
            if sent < memory && random.chance(0.4) {
                mux.push_memory(sent);
                sent += 1;
            }
            let busy = !mux.frames.is_empty() || !mux.memory.is_empty();
            let symbol = mux.poll();
            let gap = symbol == Symbol::Idle && busy;
            assert!(!gap || mux.memory.is_empty(), "a cycle is wasted");
            numbers.extend(demux.push(symbol));
            decoded.push(demux.poll());
        }
        (numbers, decoded)
    }

    /// Frames whose blocks are not in consecutive cycles, or not all there.
    fn broken(frames: &[u64], decoded: &[Symbol]) -> Option<String> {
        let mut left = decoded.iter().skip_while(|symbol| **symbol == Symbol::Idle).peekable();
        for (nth, bytes) in frames.iter().enumerate() {
            for expected in frame(nth as u32, *bytes) {
                match left.next() {
                    Some(symbol) if *symbol == expected => {}
                    other => return Some(format!("frame {nth}: {other:?} instead of {expected:?}")),
                }
            }
            while left.next_if(|symbol| **symbol == Symbol::Idle).is_some() {}
        }
        left.next().map(|symbol| format!("{symbol:?} of no frame"))
    }

    #[test]
    fn frames_stay_whole_and_memory_blocks_in_order() {
        for seed in 0..50 {
            let mut random = Random::new(seed);
            let frames: Vec<u64> = (0..20).map(|_| 64 + random.below(1_455)).collect();
            let memory = random.below(3_000) as u32;
            let mut demux = Demux::default();
            let (numbers, decoded) = run(seed, &frames, memory, &mut demux);
            assert_eq!(numbers, (0..memory).collect::<Vec<u32>>());
            assert_eq!(broken(&frames, &decoded), None);
            assert!(demux.held_max <= 2 * frame(0, 1_518).count(), "{}", demux.held_max);
        }
    }

    #[test]
    fn a_decoder_without_its_buffer_would_see_broken_frames() {
        let (mut mux, mut decoded) = (Mux::default(), Vec::new());
        (0..4).for_each(|number| mux.push_memory(number));
        let mut blocks = frame(0, 64);
        for _ in 0..20 {
            mux.frames.extend(blocks.next());
            decoded.push(match mux.poll() {
                Symbol::Memory(_) => Symbol::Idle,
                symbol => symbol,
            });
        }
        assert!(broken(&[64], &decoded).is_some());
    }

    #[test]
    fn a_memory_block_waits_for_one_block_not_for_a_frame() {
        let one = beside_frames(1, 1_518);
        assert!(one.first == one.last && one.first < 1.0, "{one:?}");
        // Nine blocks take turns with the frame's; a gap saves one now and then.
        let nine = beside_frames(9, 1_518);
        assert!((7.0..=9.0).contains(&nine.last), "{nine:?}");
        assert_eq!(nine.held_max, frame(0, 1_518).count(), "a frame, and no more");
    }

    #[test]
    fn gaps_carry_memory_blocks() {
        let mut mux = Mux::default();
        let mut frames = (0..).flat_map(|number| frame(number, 64));
        let (mut memory, mut of_frames) = (0u32, 0u32);
        for number in 0..11_000 {
            while mux.accepts() {
                mux.frames.extend(frames.next());
            }
            if mux.memory.is_empty() {
                mux.push_memory(number);
            }
            match mux.poll() {
                Symbol::Memory(_) => memory += 1,
                Symbol::Idle => {}
                _ => of_frames += 1,
            }
        }
        // Ten blocks of a frame take turns with ten of memory, one of which has the gap's place: no cycle is idle.
        assert_eq!(memory + of_frames, 11_000);
        assert!(mux.gaps_used >= 540 && memory.abs_diff(of_frames) <= 1, "{memory} {of_frames}");
    }
}
