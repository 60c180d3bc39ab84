//! Differences of a page from its twin, and copies by pieces.

use super::config::PAGE_BYTES;
use std::ops::Range;

/// Bytes of a piece: the unit of write-backs and of content.
pub const PIECE_BYTES: usize = 512;
/// Bytes that are compared at a time: a cache line.
const LINE_BYTES: usize = 64;

/// Bytes of a page.
pub type PageBytes = [u8; PAGE_BYTES];

/// Pieces that differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changed {
    /// A bit for each piece.
    pub pieces: u8,
    /// Number of lines.
    pub lines: u32,
}

/// Compares a page with its twin. `block_bytes`, of the region: a changed piece counts as all pieces of its block, so that
/// blocks are written whole.
pub fn changed(now: &PageBytes, twin: &PageBytes, block_bytes: u32) -> Changed {
    let mut changed = Changed::default();
    for (piece, (now, twin)) in now.chunks_exact(PIECE_BYTES).zip(twin.chunks_exact(PIECE_BYTES)).enumerate()
    {
        // Most pieces are equal, and comparing one is a call that uses vectors.
        if now == twin {
            continue;
        }
        let lines = now.chunks_exact(LINE_BYTES).zip(twin.chunks_exact(LINE_BYTES));
        changed.lines += lines.filter(|(now, twin)| now != twin).count() as u32;
        let first = piece as u32 & !(block_bytes / PIECE_BYTES as u32).saturating_sub(1);
        let count = (block_bytes / PIECE_BYTES as u32).max(1);
        changed.pieces |= (((1u32 << count) - 1) << first) as u8;
    }
    changed
}

/// Runs of pieces: the first byte of each in the page, and its length.
pub fn runs(pieces: u8) -> impl Iterator<Item = (usize, usize)> {
    let mut left = u32::from(pieces);
    std::iter::from_fn(move || {
        if left == 0 {
            return None;
        }
        let first = left.trailing_zeros();
        let count = (left >> first).trailing_ones();
        left &= !(((1 << count) - 1) << first);
        Some((first as usize * PIECE_BYTES, count as usize * PIECE_BYTES))
    })
}

/// The bytes of a page's changed pieces, in pieces or the larger blocks of the region, the last one first: a policy that fetches the
/// blocks behind a block then finds them there.
pub fn blocks(pieces: u8, block_bytes: u32) -> impl Iterator<Item = Range<usize>> {
    let bytes = PIECE_BYTES.max(block_bytes as usize);
    let starts = (0..PAGE_BYTES).step_by(bytes).rev();
    starts
        .filter(move |start| pieces >> (start / PIECE_BYTES) & 1 == 1)
        .map(move |start| start..start + bytes)
}

/// Moves pieces packed at a page's start to their places, and fills the others with zeros.
pub fn spread(page: &mut PageBytes, pieces: u8) {
    let mut from = pieces.count_ones() as usize;
    for piece in (0..PAGE_BYTES / PIECE_BYTES).rev() {
        let place = piece * PIECE_BYTES;
        if pieces >> piece & 1 == 0 {
            page[place..place + PIECE_BYTES].fill(0);
        } else {
            from -= 1;
            page.copy_within(from * PIECE_BYTES..(from + 1) * PIECE_BYTES, place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_changed_byte_is_seen_in_its_piece_and_line() {
        let twin: PageBytes = std::array::from_fn(|at| at as u8);
        assert_eq!(changed(&twin, &twin, 512), Changed::default());
        for at in 0..PAGE_BYTES {
            let mut now = twin;
            now[at] ^= 0x80;
            let expected = Changed { pieces: 1 << (at / 512), lines: 1 };
            assert_eq!(changed(&now, &twin, 512), expected, "byte {at}");
            assert_eq!(changed(&now, &twin, 64), expected, "byte {at}");
            let pair = 0b11 << (at / 1_024 * 2);
            assert_eq!(changed(&now, &twin, 1_024).pieces, pair, "byte {at}");
            assert_eq!(changed(&now, &twin, 4_096).pieces, 0xff, "byte {at}");
        }
    }

    #[test]
    fn blocks_come_from_the_last_to_the_first() {
        assert_eq!(blocks(0b1000_0011, 512).collect::<Vec<_>>(), [3_584..4_096, 512..1_024, 0..512]);
        assert_eq!(blocks(0b1100_0000, 1_024).map(|block| block.start).collect::<Vec<_>>(), [3_072]);
        assert_eq!(
            (blocks(0xff, 4_096).count(), blocks(0xff, 64).count(), blocks(0, 512).count()),
            (1, 8, 0)
        );
    }

    #[test]
    fn pieces_are_found_in_runs_and_spread_to_their_places() {
        for pieces in 0..=255u8 {
            let mut page = [9; PAGE_BYTES];
            let (mut all, mut at) = (0u8, 0);
            for (start, bytes) in runs(pieces) {
                for piece in start / PIECE_BYTES..(start + bytes) / PIECE_BYTES {
                    page[at..at + PIECE_BYTES].fill(piece as u8 + 1);
                    (all, at) = (all | 1 << piece, at + PIECE_BYTES);
                }
            }
            assert_eq!(all, pieces);
            spread(&mut page, pieces);
            for (piece, bytes) in page.chunks(PIECE_BYTES).enumerate() {
                let expected = if pieces >> piece & 1 == 1 { piece as u8 + 1 } else { 0 };
                assert!(bytes.iter().all(|byte| *byte == expected), "{pieces:08b}, piece {piece}");
            }
        }
    }
}
