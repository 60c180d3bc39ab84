//! Blocks of a region that were never written back, of a region that starts zeroed.

use std::ops::Range;

/// A bit for each block that was written back.
#[derive(Debug)]
pub(super) struct Fresh {
    written: Vec<u64>,
}

impl Fresh {
    /// No block was.
    pub fn new(blocks: u32) -> Fresh {
        Fresh { written: vec![0; blocks.div_ceil(64) as usize] }
    }

    /// Bytes of the bits.
    pub fn bytes(blocks: u32) -> u64 {
        u64::from(blocks.div_ceil(64)) * 8
    }

    /// A block is written back.
    pub fn write(&mut self, block: u32) {
        if let Some(word) = self.written.get_mut(block as usize / 64) {
            *word |= 1 << (block % 64);
        }
    }

    fn is_written(&self, block: u32) -> bool {
        self.written.get(block as usize / 64).is_some_and(|word| word >> (block % 64) & 1 == 1)
    }

    /// Adjacent blocks as runs, each of blocks that were written back, or of blocks that were not.
    pub fn runs(&self, blocks: Range<u32>) -> impl Iterator<Item = (bool, Range<u32>)> {
        let (mut at, end) = (blocks.start, blocks.end);
        std::iter::from_fn(move || {
            let start = at;
            let is_written = (start < end).then(|| self.is_written(start))?;
            while at < end && self.is_written(at) == is_written {
                at += 1;
            }
            Some((is_written, start..at))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_in_runs_of_their_kind() {
        let mut fresh = Fresh::new(200);
        [3, 4, 63, 64, 199].into_iter().for_each(|block| fresh.write(block));
        let runs = |blocks| fresh.runs(blocks).collect::<Vec<_>>();
        assert_eq!(runs(2..6), [(false, 2..3), (true, 3..5), (false, 5..6)]);
        assert_eq!(runs(63..66), [(true, 63..65), (false, 65..66)]);
        assert_eq!((runs(199..200), runs(7..7)), (vec![(true, 199..200)], vec![]));
        assert_eq!((Fresh::bytes(64), Fresh::bytes(65)), (8, 16));
    }
}
