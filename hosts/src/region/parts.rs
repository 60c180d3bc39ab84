//! Accesses in parts, each within one block.

use p4rack_cache::region::{Frame, Mode};

/// Bytes of the program.
pub(super) enum Bytes<'a> {
    /// Of a read.
    Into(&'a mut [u8]),
    /// Of a write.
    From(&'a [u8]),
}

impl Bytes<'_> {
    #[inline]
    pub fn mode(&self) -> Mode {
        match self {
            Bytes::Into(_) => Mode::Read,
            Bytes::From(_) => Mode::Write,
        }
    }

    pub fn len(&self) -> usize {
        match self {
            Bytes::Into(bytes) => bytes.len(),
            Bytes::From(bytes) => bytes.len(),
        }
    }
}

/// A part of an access.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub block: u32,
    /// Of its first byte in the block.
    pub offset: u32,
    pub len: u32,
    /// Of its first byte in the program's buffer.
    pub start: usize,
    /// Whether it has a claim on the block.
    pub is_claimed: bool,
    /// Of a guard: the frame.
    pub frame: Frame,
}

/// The parts of spans of a region, each given by its offset and length.
#[derive(Clone, Debug)]
pub(super) struct Parts<I> {
    spans: I,
    at: u64,
    left: u64,
    start: usize,
    shift: u32,
}

impl<I: Iterator<Item = (u64, u64)>> Parts<I> {
    /// Blocks have `1 << shift` bytes.
    #[inline]
    pub fn new(spans: I, shift: u32) -> Parts<I> {
        Parts { spans, at: 0, left: 0, start: 0, shift }
    }
}

impl<I: Iterator<Item = (u64, u64)>> Iterator for Parts<I> {
    type Item = Part;

    #[inline]
    fn next(&mut self) -> Option<Part> {
        while self.left == 0 {
            (self.at, self.left) = self.spans.next()?;
        }
        let block_bytes = 1 << self.shift;
        let offset = self.at & (block_bytes - 1);
        let len = self.left.min(block_bytes - offset);
        let part = Part {
            block: (self.at >> self.shift) as u32,
            offset: offset as u32,
            len: len as u32,
            start: self.start,
            is_claimed: false,
            frame: 0,
        };
        (self.at, self.left, self.start) = (self.at + len, self.left - len, self.start + len as usize);
        Some(part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_cut_at_blocks() {
        let parts = Parts::new([(500, 30), (7, 0), (1_024, 512), (10, 1)].into_iter(), 9);
        let seen: Vec<_> = parts.map(|part| (part.block, part.offset, part.len, part.start)).collect();
        assert_eq!(seen, [(0, 500, 12, 0), (1, 0, 18, 12), (2, 0, 512, 30), (0, 10, 1, 542)]);
    }
}
