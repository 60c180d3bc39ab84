//! Bit vectors for rows that no hash finds: ranges, and masks that few rows share.
//!
//! The key is cut into pieces of four bits. For each piece and each of its values, a bit vector says which
//! rows accept it; the rows that accept a key are in all the vectors that the key selects. This only narrows
//! down ranges that are longer than a piece, so candidates still have to be compared. Vectors come in blocks
//! of 512 rows, one cache line each, so that a new row never moves old ones.

use crate::shape::{KeyShape, PackedKey};
use p4rack_p4::ir::MatchKind;

/// Rows per block.
const BLOCK: usize = 512;
/// Bits per piece.
const BITS: u32 = 4;
const VALUES: usize = 1 << BITS;
/// Pieces intersected between checks whether a row is left. More frequent checks would be harder to predict.
const STRIDE: usize = 4;
/// Marks a free position.
const FREE: u32 = u32::MAX;

type Line = [u64; BLOCK / 64];

/// A piece of the key.
#[derive(Clone, Copy, Debug)]
struct Piece {
    /// Its number, counted over all fields; the index of its lines in a block.
    number: usize,
    word: usize,
    shift: u32,
    /// For a range field: where its bounds start in the row's ranges, its limbs, and the limb of this piece.
    range: Option<(usize, usize, usize)>,
    /// Bits of the piece that rows match on, over all rows.
    asked: u32,
}

/// The values of a piece that a row accepts.
#[derive(Clone, Copy)]
struct Accepts {
    mask: u8,
    value: u8,
    lo: u8,
    hi: u8,
}

#[derive(Clone, Debug)]
struct Block {
    /// Upper bound of its rows' ranks.
    rank: i32,
    used: usize,
    rows: Vec<u32>,
    live: Line,
    /// Lines by piece, then by value.
    lines: Vec<[Line; VALUES]>,
}

/// All blocks of a table.
#[derive(Clone, Debug)]
pub(super) struct Vectors {
    /// Pieces, those that most rows match on first: if no row is left, the others are skipped.
    pieces: Vec<Piece>,
    blocks: Vec<Block>,
}

impl Vectors {
    pub fn new(keys: &[KeyShape]) -> Vectors {
        let mut pieces = Vec::new();
        let mut bounds = 0;
        for key in keys {
            let from = (key.kind == MatchKind::Range).then_some(bounds);
            for bit in (0..key.width).step_by(BITS as usize) {
                let limb = bit as usize / 64;
                let range = from.map(|from| (from, key.limbs, limb));
                let (number, word, shift) = (pieces.len(), key.offset + limb, bit % 64);
                pieces.push(Piece { number, word, shift, range, asked: 0 });
            }
            bounds += from.map_or(0, |_| 2 * key.limbs);
        }
        Vectors { pieces, blocks: Vec::new() }
    }

    /// Whether no row can beat `rank`.
    #[inline]
    pub fn is_below(&self, rank: Option<i32>) -> bool {
        self.blocks.iter().all(|block| rank.is_some_and(|rank| rank > block.rank))
    }

    /// Calls `each` with candidate rows for a key until it returns false. Skips blocks for whose highest rank
    /// `beaten` returns true.
    #[inline]
    pub fn candidates(&self, key: &[u64], mut each: impl FnMut(u32) -> bool, beaten: impl Fn(i32) -> bool) {
        for block in &self.blocks {
            if beaten(block.rank) {
                continue;
            }
            let mut found = block.live;
            for pieces in self.pieces.chunks(STRIDE) {
                for piece in pieces {
                    let line = &block.lines[piece.number][piece.of(key[piece.word])];
                    found.iter_mut().zip(line).for_each(|(found, line)| *found &= line);
                }
                if found.iter().fold(0, |any, word| any | word) == 0 {
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
                    lines: vec![[[0; BLOCK / 64]; VALUES]; self.pieces.len()],
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
        block.mark(&self.pieces, slot, key, true);
        // Last, so that the row is either complete or absent.
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
                block.mark(&self.pieces, slot, key, false);
                return self.count(key, -1);
            }
        }
    }

    /// Updates the counts for a row that was added or removed.
    fn count(&mut self, key: &PackedKey, by: i32) {
        for piece in &mut self.pieces {
            let accepts = (0..VALUES as u8).filter(|&value| piece.accepts(key).has(value)).count();
            let asked = BITS - accepts.max(1).ilog2();
            piece.asked = piece.asked.saturating_add_signed(asked as i32 * by);
        }
        self.pieces.sort_unstable_by_key(|piece| (std::cmp::Reverse(piece.asked), piece.number));
    }
}

impl Block {
    /// Sets or clears the bits of a row.
    fn mark(&mut self, pieces: &[Piece], slot: usize, key: &PackedKey, set: bool) {
        let (word, bit) = (slot / 64, 1u64 << (slot % 64));
        for piece in pieces {
            let accepts = piece.accepts(key);
            for (value, line) in self.lines[piece.number].iter_mut().enumerate() {
                if accepts.has(value as u8) {
                    line[word] = if set { line[word] | bit } else { line[word] & !bit };
                }
            }
        }
    }
}

impl Accepts {
    fn has(self, value: u8) -> bool {
        value & self.mask == self.value && self.lo <= value && value <= self.hi
    }
}

impl Piece {
    /// Value of the piece in a word of the key.
    #[inline(always)]
    fn of(&self, word: u64) -> usize {
        (word >> self.shift) as usize % VALUES
    }

    /// The values of the piece that a row may match.
    fn accepts(&self, key: &PackedKey) -> Accepts {
        let most = VALUES as u8 - 1;
        let piece = |words: &[u64], limb: usize| self.of(words[limb]) as u8;
        let Some((from, limbs, limb)) = self.range else {
            let (mask, value) = (piece(&key.mask, self.word), piece(&key.value, self.word));
            return Accepts { mask, value, lo: 0, hi: most };
        };
        let (lo, hi) = (&key.ranges[from..from + limbs], &key.ranges[from + limbs..from + 2 * limbs]);
        let above = |words: &[u64]| words[limb].checked_shr(self.shift + BITS).unwrap_or(0);
        // If higher pieces differ, this one does not matter.
        let (lo, hi) = match lo[limb + 1..] == hi[limb + 1..] && above(lo) == above(hi) {
            true => (piece(lo, limb), piece(hi, limb)),
            false => (0, most),
        };
        Accepts { mask: 0, value: 0, lo, hi }
    }
}
