//! A filter that excludes groups that certainly do not contain a key.
//!
//! Most groups of a ternary or LPM table contain no entry for a given key. One bit, at a position that the
//! hash selects, shows this in a few instructions without dependencies, so all groups are checked together
//! and few are searched. A count per bit allows entries to be removed.

/// Initial number of bits.
const FEWEST: usize = 512;
/// Maximum number of bits. Beyond, a filter passes more keys instead of growing, which would delay packets.
const MOST: usize = 1 << 16;
/// Minimum bits per row, up to [`MOST`].
const SPARE: usize = 8;

/// The filter of one group.
#[derive(Clone, Debug)]
pub(super) struct Filter {
    bits: Vec<u64>,
    /// Number of rows per bit. A saturated count is never decremented.
    counts: Vec<u8>,
    rows: usize,
}

impl Filter {
    pub fn new() -> Filter {
        Filter { bits: vec![0; FEWEST / 64], counts: vec![0; FEWEST], rows: 0 }
    }

    /// Uses the half of the hash that an index does not store.
    #[inline(always)]
    fn place(&self, hash: u64) -> usize {
        (hash >> 32) as usize & (self.bits.len() * 64 - 1)
    }

    /// Whether there may be a row with this hash.
    #[inline(always)]
    pub fn may_have(&self, hash: u64) -> bool {
        let at = self.place(hash);
        self.bits[at / 64] >> (at % 64) & 1 != 0
    }

    /// Adds a row; `all` yields the hashes of all current rows.
    pub fn insert(&mut self, hash: u64, all: impl Iterator<Item = u64>) {
        self.rows += 1;
        if self.rows * SPARE <= self.counts.len() || self.counts.len() >= MOST {
            return self.mark(hash);
        }
        let bits = self.counts.len() * 2;
        (self.bits, self.counts) = (vec![0; bits / 64], vec![0; bits]);
        all.for_each(|hash| self.mark(hash));
    }

    fn mark(&mut self, hash: u64) {
        let at = self.place(hash);
        self.counts[at] = self.counts[at].saturating_add(1);
        self.bits[at / 64] |= 1 << (at % 64);
    }

    /// Removes a row.
    pub fn remove(&mut self, hash: u64) {
        let at = self.place(hash);
        self.rows -= 1;
        if self.counts[at] != u8::MAX {
            self.counts[at] -= 1;
            self.bits[at / 64] &= !(u64::from(self.counts[at] == 0) << (at % 64));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn never_denies_a_row_and_forgets_those_that_left(
            steps in proptest::collection::vec((any::<bool>(), any::<u16>()), 1..3000),
        ) {
            let hash = |key: u16| u64::from(key).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let (mut filter, mut there) = (Filter::new(), Vec::new());
            for (add, key) in steps {
                if add {
                    there.push(key);
                    filter.insert(hash(key), there.iter().map(|&key| hash(key)));
                } else if let Some(key) = there.pop() {
                    filter.remove(hash(key));
                }
                prop_assert!(there.iter().all(|&key| filter.may_have(hash(key))));
            }
            for key in there.drain(..) {
                filter.remove(hash(key));
            }
            prop_assert!(filter.bits.iter().all(|&bits| bits == 0));
        }
    }

    #[test]
    fn lets_few_others_through() {
        let hash = |key: u64| key.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut filter = Filter::new();
        for row in 0..1000 {
            filter.insert(hash(row), (0..=row).map(hash));
        }
        let let_through = (1_000_000..1_010_000).filter(|&key| filter.may_have(hash(key))).count();
        assert!(let_through < 1500, "{let_through} of 10,000");
    }
}
