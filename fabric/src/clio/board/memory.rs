//! The board's memory: bytes by physical address.

use std::ops::Range;

/// Memory of a board. Ranges are within [`bytes`](Self::bytes): the board has checked all addresses.
pub trait PhysicalMemory: Send {
    /// Its size in bytes.
    fn bytes(&self) -> u64;

    /// The bytes of a range.
    fn at(&self, range: Range<u64>) -> &[u8];

    /// The bytes of a range, to change them.
    fn at_mut(&mut self, range: Range<u64>) -> &mut [u8];

    /// Fills a range with zeros. Memory of an operating system may have a faster way.
    fn zero(&mut self, range: Range<u64>) {
        self.at_mut(range).fill(0);
    }
}

impl PhysicalMemory for Vec<u8> {
    fn bytes(&self) -> u64 {
        self.len() as u64
    }

    fn at(&self, range: Range<u64>) -> &[u8] {
        &self[range.start as usize..range.end as usize]
    }

    fn at_mut(&mut self, range: Range<u64>) -> &mut [u8] {
        &mut self[range.start as usize..range.end as usize]
    }
}
