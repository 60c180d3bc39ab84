//! Rows that no hash finds: ranges, and masks that few rows share.
//!
//! The key is cut into bytes. For each byte and each of its values a bit vector says which rows accept it;
//! the rows that accept a key are in all the vectors that the key selects. Ranges longer than a byte are
//! only narrowed down this way, so a row found has still to be compared. Vectors come in blocks of 512 rows, one
//! cache line each, so that a new row never moves old ones.

use crate::shape::{KeyShape, PackedKey};
use p4rack_p4::ir::MatchKind;

/// Rows of a block.
const BLOCK: usize = 512;
/// No row.
const FREE: u32 = u32::MAX;

type Line = [u64; BLOCK / 64];

/// A byte of the key.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    word: usize,
    shift: u32,
    /// Of a range field: where its bounds start in the row's ranges, its limbs and this byte's limb.
    range: Option<(usize, usize, usize)>,
}

#[derive(Clone, Debug)]
struct Block {
    /// No row has more.
    rank: i32,
    used: usize,
    rows: Vec<u32>,
    live: Line,
    /// By chunk, then value.
    lines: Vec<Line>,
}

/// All blocks.
#[derive(Clone, Debug)]
pub(super) struct Vectors {
    chunks: Vec<Chunk>,
    blocks: Vec<Block>,
}

impl Vectors {
    pub fn new(keys: &[KeyShape]) -> Vectors {
        let mut chunks = Vec::new();
        let mut bounds = 0;
        for key in keys {
            let from = (key.kind == MatchKind::Range).then_some(bounds);
            for byte in 0..key.width.div_ceil(8) as usize {
                let limb = byte / 8;
                let range = from.map(|from| (from, key.limbs, limb));
                chunks.push(Chunk { word: key.offset + limb, shift: byte as u32 % 8 * 8, range });
            }
            bounds += from.map_or(0, |_| 2 * key.limbs);
        }
        Vectors { chunks, blocks: Vec::new() }
    }

    /// Whether there is nothing to look at for one who has found `rank`.
    #[inline]
    pub fn is_below(&self, rank: Option<i32>) -> bool {
        self.blocks.iter().all(|block| rank.is_some_and(|rank| rank > block.rank))
    }

    /// Calls `each` with the rows that may accept a key, until it says `false`, leaving out blocks where `beaten`
    /// says so of their highest rank.
    #[inline]
    pub fn candidates(&self, key: &[u64], mut each: impl FnMut(u32) -> bool, beaten: impl Fn(i32) -> bool) {
        for block in &self.blocks {
            if beaten(block.rank) {
                continue;
            }
            let mut found = block.live;
            for (chunk, lines) in self.chunks.iter().zip(block.lines.chunks_exact(256)) {
                let line = &lines[(key[chunk.word] >> chunk.shift) as u8 as usize];
                found.iter_mut().zip(line).for_each(|(found, line)| *found &= line);
            }
            for (word, mut bits) in found.into_iter().enumerate() {
                while bits != 0 {
                    let row = block.rows[word * 64 + bits.trailing_zeros() as usize];
                    bits &= bits - 1;
                    if !each(row) {
                        return;
                    }
                }
            }
        }
    }

    /// Adds a row.
    pub fn insert(&mut self, row: u32, key: &PackedKey) {
        let at = match self.blocks.iter().position(|block| block.used < BLOCK) {
            Some(at) => at,
            None => {
                self.blocks.push(Block {
                    rank: i32::MIN,
                    used: 0,
                    rows: vec![FREE; BLOCK],
                    live: [0; BLOCK / 64],
                    lines: vec![[0; BLOCK / 64]; self.chunks.len() * 256],
                });
                self.blocks.len() - 1
            }
        };
        let block = &mut self.blocks[at];
        let Some(slot) = block.rows.iter().position(|&row| row == FREE) else {
            return;
        };
        block.rows[slot] = row;
        block.used += 1;
        block.rank = if block.used == 1 { key.rank } else { block.rank.max(key.rank) };
        let (word, bit) = (slot / 64, 1 << (slot % 64));
        for (chunk, lines) in self.chunks.iter().zip(block.lines.chunks_exact_mut(256)) {
            let accepts = chunk.accepts(key);
            for (value, line) in lines.iter_mut().enumerate() {
                line[word] = if accepts(value as u8) { line[word] | bit } else { line[word] & !bit };
            }
        }
        // Last, so that the row is there whole or not at all.
        block.live[word] |= bit;
    }

    /// Removes a row.
    pub fn remove(&mut self, row: u32) {
        for block in &mut self.blocks {
            if let Some(slot) = block.rows.iter().position(|&found| found == row) {
                block.rows[slot] = FREE;
                block.live[slot / 64] &= !(1 << (slot % 64));
                block.used -= 1;
                return;
            }
        }
    }
}

impl Chunk {
    /// Which values of this byte a row may match.
    fn accepts(self, key: &PackedKey) -> impl Fn(u8) -> bool {
        let byte = |words: &[u64], limb: usize| (words[limb] >> self.shift) as u8;
        let (mask, value, lo, hi) = match self.range {
            None => (byte(&key.mask, self.word), byte(&key.value, self.word), 0, u8::MAX),
            Some((from, limbs, limb)) => {
                let (lo, hi) = (&key.ranges[from..from + limbs], &key.ranges[from + limbs..from + 2 * limbs]);
                let above = |words: &[u64]| words[limb].checked_shr(self.shift + 8).unwrap_or(0);
                // Where the bytes above differ, this one says nothing.
                if lo[limb + 1..] == hi[limb + 1..] && above(lo) == above(hi) {
                    (0, 0, byte(lo, limb), byte(hi, limb))
                } else {
                    (0, 0, 0, u8::MAX)
                }
            }
        };
        move |found| found & mask == value && lo <= found && found <= hi
    }
}
