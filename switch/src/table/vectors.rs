//! Rows that no hash finds: ranges, and masks that few rows share.
//!
//! The key is cut into bytes. For each byte and each of its values a bit vector says which rows accept it;
//! the rows that accept a key are in all the vectors that the key selects. Rows that accept any value of a byte
//! stand in one vector for all of them. Ranges longer than a byte are only narrowed down this way, so a row found
//! has still to be compared. Vectors come in blocks of 512 rows, one cache line each, so that a new row
//! never moves old ones.

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
    /// Which byte, counted over all fields: its lines are there in a block.
    number: usize,
    word: usize,
    shift: u32,
    /// Of a range field: where its bounds start in the row's ranges, its limbs and this byte's limb.
    range: Option<(usize, usize, usize)>,
    /// Rows that do not accept any value.
    picky: u32,
}

/// The values of one byte that a row accepts.
#[derive(Clone, Copy)]
struct Accepts {
    mask: u8,
    value: u8,
    lo: u8,
    hi: u8,
}

#[derive(Clone, Debug)]
struct Block {
    /// No row has more.
    rank: i32,
    used: usize,
    rows: Vec<u32>,
    live: Line,
    /// By chunk: rows that accept any value.
    any: Vec<Line>,
    /// By chunk, then value.
    lines: Vec<Line>,
}

/// All blocks.
#[derive(Clone, Debug)]
pub(super) struct Vectors {
    /// The pickiest first: where no row is left, the others need not be looked at.
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
                let (number, word, shift) = (chunks.len(), key.offset + limb, byte as u32 % 8 * 8);
                chunks.push(Chunk { number, word, shift, range, picky: 0 });
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
            for chunk in &self.chunks {
                let value = (key[chunk.word] >> chunk.shift) as u8;
                let line = &block.lines[chunk.number * 256 + value as usize];
                let any = &block.any[chunk.number];
                let mut left = 0;
                for (found, (line, any)) in found.iter_mut().zip(line.iter().zip(any)) {
                    *found &= line | any;
                    left |= *found;
                }
                if left == 0 {
                    break;
                }
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
                    any: vec![[0; BLOCK / 64]; self.chunks.len()],
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
        block.mark(&self.chunks, slot, key, true);
        // Last, so that the row is there whole or not at all.
        block.live[slot / 64] |= 1 << (slot % 64);
        self.count(key, 1);
    }

    /// Removes a row with this key.
    pub fn remove(&mut self, row: u32, key: &PackedKey) {
        for block in &mut self.blocks {
            if let Some(slot) = block.rows.iter().position(|&found| found == row) {
                block.rows[slot] = FREE;
                block.live[slot / 64] &= !(1 << (slot % 64));
                block.used -= 1;
                block.mark(&self.chunks, slot, key, false);
                return self.count(key, -1);
            }
        }
    }

    /// A row with this key has come or gone.
    fn count(&mut self, key: &PackedKey, by: i32) {
        for chunk in &mut self.chunks {
            if !chunk.accepts(key).any() {
                chunk.picky = chunk.picky.saturating_add_signed(by);
            }
        }
        self.chunks.sort_unstable_by_key(|chunk| (std::cmp::Reverse(chunk.picky), chunk.number));
    }
}

impl Block {
    /// Sets or clears the bits of a row.
    fn mark(&mut self, chunks: &[Chunk], slot: usize, key: &PackedKey, set: bool) {
        let (word, bit) = (slot / 64, 1u64 << (slot % 64));
        let mark = |line: &mut Line| line[word] = if set { line[word] | bit } else { line[word] & !bit };
        for chunk in chunks {
            let accepts = chunk.accepts(key);
            if accepts.any() {
                mark(&mut self.any[chunk.number]);
                continue;
            }
            let lines = &mut self.lines[chunk.number * 256..][..256];
            // Of a whole mask there is one value.
            let last = if accepts.mask == u8::MAX { accepts.value } else { accepts.hi };
            let first = if accepts.mask == u8::MAX { accepts.value } else { accepts.lo };
            (first..=last)
                .filter(|value| value & accepts.mask == accepts.value)
                .for_each(|value| mark(&mut lines[value as usize]));
        }
    }
}

impl Accepts {
    fn any(self) -> bool {
        self.mask == 0 && self.lo == 0 && self.hi == u8::MAX
    }
}

impl Chunk {
    /// Which values of this byte a row may match.
    fn accepts(&self, key: &PackedKey) -> Accepts {
        let byte = |words: &[u64], limb: usize| (words[limb] >> self.shift) as u8;
        let Some((from, limbs, limb)) = self.range else {
            let (mask, value) = (byte(&key.mask, self.word), byte(&key.value, self.word));
            return Accepts { mask, value, lo: 0, hi: u8::MAX };
        };
        let (lo, hi) = (&key.ranges[from..from + limbs], &key.ranges[from + limbs..from + 2 * limbs]);
        let above = |words: &[u64]| words[limb].checked_shr(self.shift + 8).unwrap_or(0);
        // Where the bytes above differ, this one says nothing.
        if lo[limb + 1..] == hi[limb + 1..] && above(lo) == above(hi) {
            Accepts { mask: 0, value: 0, lo: byte(lo, limb), hi: byte(hi, limb) }
        } else {
            Accepts { mask: 0, value: 0, lo: 0, hi: u8::MAX }
        }
    }
}
