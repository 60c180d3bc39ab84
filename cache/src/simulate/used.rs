//! Share of the fetched bytes that is used before it leaves.

use super::LINE_BYTES;
use crate::Block;

/// Lines that were accessed since their blocks were fetched. A block has one fetch for each time that it is local, so
/// the next fetch ends the period that the one before it began.
pub(super) struct Used {
    /// For each block, a bit for each of its lines, of which it has up to 64.
    lines: Vec<u64>,
    per_block: u32,
    /// Lines that were accessed, once for each fetch.
    count: u64,
}

impl Used {
    /// Of blocks of a footprint.
    pub(super) fn new(footprint_bytes: u64, block_bytes: u32) -> Used {
        let blocks = footprint_bytes / u64::from(block_bytes);
        Used { lines: vec![0; blocks as usize], per_block: block_bytes / LINE_BYTES, count: 0 }
    }

    /// Adjacent blocks were fetched.
    pub(super) fn fetched(&mut self, first: Block, count: u32) {
        self.lines[first as usize..(first + count) as usize].fill(0);
    }

    /// A line whose block is local was accessed.
    pub(super) fn access(&mut self, line: u32) {
        let bit = 1 << (line % self.per_block);
        let lines = &mut self.lines[(line / self.per_block) as usize];
        self.count += u64::from(*lines & bit == 0);
        *lines |= bit;
    }

    /// Bytes of lines that were accessed.
    pub(super) fn bytes(&self) -> u64 {
        self.count * u64::from(LINE_BYTES)
    }
}
