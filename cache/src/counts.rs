//! Four bits for each block of remote memory: its recent uses and, if wanted, a note of the policy's own.
//!
//! ```text
//!   3   2   1   0                       3   2   1   0
//! ┌───────────────┐                   ┌───┬───────────┐
//! │   frequency   │  or, with a note: │ N │ frequency │
//! └───────────────┘                   └───┴───────────┘
//! ```
//!
//! Frequencies are halved every ten times the capacity in uses, as TinyLFU asks. A hand goes round and halves a few
//! at each use, so that none takes long.

use crate::Block;

const NOTE: u64 = 0x08;
/// Blocks of a word.
const LANES: usize = 16;

#[derive(Clone, Debug)]
pub(crate) struct Counts {
    words: Vec<u64>,
    /// The bits of a frequency, and so its largest value.
    frequency: u64,
    hand: usize,
    /// All words are halved within `round` uses.
    credit: u64,
    round: u64,
}

/// The same four bits for all blocks of a word.
const fn lanes(bits: u64) -> u64 {
    bits * 0x1111_1111_1111_1111
}

#[inline]
fn place(block: Block) -> (usize, usize) {
    (block as usize / LANES, block as usize % LANES * 4)
}

impl Counts {
    /// Frequencies up to 15.
    pub(crate) fn new(footprint: u32, capacity: u32) -> Counts {
        let words = vec![0; (footprint as usize).div_ceil(LANES)];
        Counts { words, frequency: 0x0f, hand: 0, credit: 0, round: u64::from(capacity) * 10 }
    }

    /// Frequencies up to 7, and notes.
    pub(crate) fn with_notes(footprint: u32, capacity: u32) -> Counts {
        Counts { frequency: 0x07, ..Counts::new(footprint, capacity) }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.words.len() as u64 * 8
    }

    /// Recent uses.
    #[inline]
    pub(crate) fn frequency(&self, block: Block) -> u8 {
        let (word, shift) = place(block);
        (self.words[word] >> shift & self.frequency) as u8
    }

    /// Counts a use, and lets all frequencies age a little.
    #[inline]
    pub(crate) fn used(&mut self, block: Block) {
        let (word, shift) = place(block);
        let word = &mut self.words[word];
        *word += u64::from(*word >> shift & self.frequency != self.frequency) << shift;
        self.credit += self.words.len() as u64;
        while self.credit >= self.round {
            self.credit -= self.round;
            let word = &mut self.words[self.hand];
            let halved = *word >> 1 & lanes(self.frequency >> 1);
            *word = halved | *word & lanes(0x0f ^ self.frequency);
            self.hand = if self.hand + 1 == self.words.len() { 0 } else { self.hand + 1 };
        }
    }

    /// The policy's own bit.
    #[inline]
    pub(crate) fn note(&self, block: Block) -> bool {
        let (word, shift) = place(block);
        self.words[word] >> shift & NOTE != 0
    }

    #[inline]
    pub(crate) fn set_note(&mut self, block: Block, note: bool) {
        let (word, shift) = place(block);
        let word = &mut self.words[word];
        *word = *word & !(NOTE << shift) | (u64::from(note) * NOTE) << shift;
    }
}
