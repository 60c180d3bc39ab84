//! How a request is cut into packets: at the MTU and at the edges of pages, because the board translates one page per packet.
//!
//! ```text
//!   pages     │            │            │            │
//!   request        ├──────────────────────────┤
//!   chunks         ├────┼──┼────┼────┼──┼─────┤           mtu bytes each, the last of each page shorter
//! ```

/// A range that is cut. Its chunks are numbered from 0; places count from its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Split {
    bytes: u32,
    mtu_bytes: u32,
    page_bytes: u64,
    /// Bytes up to the first edge of a page, and their chunks.
    head_bytes: u32,
    head_chunks: u32,
}

/// A chunk: place of its first byte and length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    pub at: u32,
    pub bytes: u32,
}

impl Split {
    /// Cuts `bytes` bytes from `address` on. Neither the MTU nor the page size is 0.
    pub fn new(address: u64, bytes: u32, mtu_bytes: u32, page_bytes: u64) -> Split {
        let to_edge = page_bytes - address % page_bytes;
        let head_bytes = u64::from(bytes).min(to_edge) as u32;
        Split { bytes, mtu_bytes, page_bytes, head_bytes, head_chunks: head_bytes.div_ceil(mtu_bytes) }
    }

    /// A request without data, or of a word: one chunk.
    pub fn one(bytes: u32) -> Split {
        Split { bytes, mtu_bytes: u32::MAX, page_bytes: u64::MAX, head_bytes: bytes, head_chunks: 1 }
    }

    /// Number of chunks.
    pub fn count(&self) -> u64 {
        let behind = u64::from(self.bytes - self.head_bytes);
        let pages = behind.checked_div(self.page_bytes).unwrap_or(0);
        let rest = behind - pages * self.page_bytes;
        u64::from(self.head_chunks) + pages * self.per_page() + rest.div_ceil(self.mtu_bytes.into())
    }

    /// The chunk with this number, which is one of them.
    pub fn nth(&self, nth: u32) -> Chunk {
        if nth < self.head_chunks {
            let at = nth * self.mtu_bytes;
            return Chunk { at, bytes: self.mtu_bytes.min(self.head_bytes - at) };
        }
        let behind = u64::from(nth - self.head_chunks);
        let (page, inside) = (behind / self.per_page(), behind % self.per_page() * u64::from(self.mtu_bytes));
        let at = u64::from(self.head_bytes) + page * self.page_bytes + inside;
        let bytes = u64::from(self.mtu_bytes)
            .min(self.page_bytes - inside)
            .min(u64::from(self.bytes).saturating_sub(at));
        Chunk { at: at as u32, bytes: bytes as u32 }
    }

    /// The chunk whose first byte has this place, if there is one.
    pub fn starts_at(&self, at: u32) -> Option<u32> {
        let nth = match at.checked_sub(self.head_bytes) {
            None => at / self.mtu_bytes,
            Some(behind) => {
                let (page, inside) =
                    (u64::from(behind) / self.page_bytes, u64::from(behind) % self.page_bytes);
                let nth = page * self.per_page() + inside / u64::from(self.mtu_bytes);
                u32::try_from(nth).ok()?.checked_add(self.head_chunks)?
            }
        };
        (at < self.bytes && self.nth(nth).at == at).then_some(nth)
    }

    /// Whether chunk `nth` is the last one of its page.
    pub fn ends_page(&self, nth: u32) -> bool {
        match nth.checked_sub(self.head_chunks) {
            None => nth + 1 == self.head_chunks,
            Some(behind) => (u64::from(behind) + 1).is_multiple_of(self.per_page()),
        }
    }

    fn per_page(&self) -> u64 {
        self.page_bytes.div_ceil(self.mtu_bytes.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_request_is_cut_at_the_mtu_and_at_pages() {
        let split = Split::new(4_000, 6_000, 1_408, 4_096);
        let chunks: Vec<(u32, u32)> =
            (0..split.count() as u32).map(|nth| (split.nth(nth).at, split.nth(nth).bytes)).collect();
        assert_eq!(
            chunks,
            [(0, 96), (96, 1_408), (1_504, 1_408), (2_912, 1_280), (4_192, 1_408), (5_600, 400)]
        );
        assert_eq!((Split::one(0).count(), Split::one(8).nth(0)), (1, Chunk { at: 0, bytes: 8 }));
    }

    proptest! {
        /// Chunks follow each other without gaps, none crosses a page or is longer than the MTU, and none could be longer.
        #[test]
        fn chunks_cover_the_range(address in 0u64..100_000, bytes in 1u32..40_000, mtu in 1u32..5_000) {
            let split = Split::new(address, bytes, mtu, 4_096);
            let (mut at, count) = (0, split.count() as u32);
            for nth in 0..count {
                let chunk = split.nth(nth);
                prop_assert_eq!(chunk.at, at);
                prop_assert!((1..=mtu).contains(&chunk.bytes));
                let (first, next) = (address + u64::from(at), address + u64::from(at + chunk.bytes));
                prop_assert_eq!(first / 4_096, (next - 1) / 4_096);
                prop_assert!(chunk.bytes == mtu || next % 4_096 == 0 || nth + 1 == count);
                prop_assert!(split.ends_page(nth) == (next % 4_096 == 0) || nth + 1 == count);
                prop_assert_eq!(split.starts_at(at), Some(nth));
                prop_assert!(chunk.bytes == 1 || split.starts_at(at + 1).is_none());
                at += chunk.bytes;
            }
            prop_assert_eq!((at, split.starts_at(at)), (bytes, None));
        }
    }
}
