//! The memory of a simulated board.

use p4rack_fabric::clio::board::PhysicalMemory;
use std::ops::Range;

/// Memories up to this size keep written bytes.
pub(crate) const KEPT_BYTES: u64 = 1 << 29;
/// Bytes onto which a larger memory folds all its addresses: a multiple of all page sizes but the largest.
const FOLDED_BYTES: u64 = 1 << 26;
/// Longest range.
const RANGE_BYTES: u64 = 1 << 16;

/// Memory of a size. One that is too large to be kept is folded, as the paper maps 4 TB onto 2 GB (§7.1): addresses share few
/// bytes, and contents mean nothing.
#[derive(Clone, Debug)]
pub(crate) struct SimMemory {
    bytes: u64,
    contents: Vec<u8>,
}

impl SimMemory {
    /// Whether a memory of this size keeps written bytes.
    pub const fn keeps(bytes: u64) -> bool {
        bytes <= KEPT_BYTES
    }

    /// Zeros.
    pub fn new(bytes: u64) -> SimMemory {
        let kept = if SimMemory::keeps(bytes) { bytes } else { FOLDED_BYTES };
        SimMemory { bytes, contents: vec![0; (kept + RANGE_BYTES) as usize] }
    }

    /// Memory without contents, for boards that only allocate.
    pub fn bare(bytes: u64) -> SimMemory {
        SimMemory { bytes, contents: Vec::new() }
    }

    /// Whether it keeps written bytes.
    pub fn is_kept(&self) -> bool {
        self.contents.len() as u64 == self.bytes + RANGE_BYTES
    }

    fn place(&self, range: Range<u64>) -> Range<usize> {
        let start = if self.is_kept() { range.start } else { range.start % FOLDED_BYTES };
        let end = start + (range.end - range.start);
        (start as usize).min(self.contents.len())..(end as usize).min(self.contents.len())
    }
}

impl PhysicalMemory for SimMemory {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn at(&self, range: Range<u64>) -> &[u8] {
        &self.contents[self.place(range)]
    }

    fn at_mut(&mut self, range: Range<u64>) -> &mut [u8] {
        let place = self.place(range);
        &mut self.contents[place]
    }

    fn zero(&mut self, range: Range<u64>) {
        if self.is_kept() {
            self.at_mut(range).fill(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_memories_keep_what_is_written_and_large_ones_are_folded() {
        let mut small = SimMemory::new(1 << 20);
        small.at_mut(100..104).copy_from_slice(b"clio");
        assert_eq!((small.at(100..104), small.is_kept()), (&b"clio"[..], true));
        small.zero(0..1 << 20);
        assert_eq!(small.at(100..104), [0; 4]);
        let mut large = SimMemory::new(1 << 44);
        let far = (1 << 44) - 4;
        large.at_mut(far..far + 4).copy_from_slice(b"clio");
        assert_eq!((large.at(far..far + 4), large.is_kept()), (&b"clio"[..], false));
        assert!(SimMemory::bare(1 << 40).at(7..8).is_empty());
    }
}
