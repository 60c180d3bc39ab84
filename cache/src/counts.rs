//! A byte for each block of remote memory: how often it was used of late, and four bits of the policy's own.
//!
//! ```text
//!   7   6   5   4   3   2   1   0
//! ┌───────────────┬───────────────┐
//! │     notes     │   frequency   │
//! └───────────────┴───────────────┘
//! ```
//!
//! Frequencies are halved every ten times the capacity in accesses, as TinyLFU asks. A hand goes round and halves a few
//! at each access, so that none takes long.

use crate::Block;

const FREQUENCY: u8 = 0x0f;

#[derive(Clone, Debug)]
pub(crate) struct Counts {
    words: Vec<[u8; 8]>,
    hand: usize,
    /// All words are halved within `round` accesses.
    credit: u64,
    round: u64,
}

impl Counts {
    pub(crate) fn new(footprint: u32, capacity: u32) -> Counts {
        let words = vec![[0; 8]; footprint.div_ceil(8) as usize];
        Counts { words, hand: 0, credit: 0, round: u64::from(capacity) * 10 }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.words.len() as u64 * 8
    }

    #[inline]
    fn at(&self, block: Block) -> u8 {
        self.words[block as usize / 8][block as usize % 8]
    }

    #[inline]
    fn at_mut(&mut self, block: Block) -> &mut u8 {
        &mut self.words[block as usize / 8][block as usize % 8]
    }

    /// Uses of late, up to 15.
    #[inline]
    pub(crate) fn frequency(&self, block: Block) -> u8 {
        self.at(block) & FREQUENCY
    }

    /// Counts a use, and lets all frequencies age a little.
    #[inline]
    pub(crate) fn used(&mut self, block: Block) {
        let count = self.at_mut(block);
        *count += u8::from(*count & FREQUENCY != FREQUENCY);
        self.credit += self.words.len() as u64;
        while self.credit >= self.round {
            self.credit -= self.round;
            let word = u64::from_ne_bytes(self.words[self.hand]);
            let halved = (word & 0xf0f0_f0f0_f0f0_f0f0) | ((word >> 1) & 0x0707_0707_0707_0707);
            self.words[self.hand] = halved.to_ne_bytes();
            self.hand = if self.hand + 1 == self.words.len() { 0 } else { self.hand + 1 };
        }
    }

    /// The policy's own four bits.
    #[inline]
    pub(crate) fn notes(&self, block: Block) -> u8 {
        self.at(block) >> 4
    }

    #[inline]
    pub(crate) fn set_notes(&mut self, block: Block, notes: u8) {
        let byte = self.at_mut(block);
        *byte = (*byte & FREQUENCY) | (notes << 4);
    }
}
