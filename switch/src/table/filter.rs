//! Which keys a group of entries has for certain not.
//!
//! Most groups of a ternary or LPM table have no entry for a given key. One bit, at a place that the hash says, tells
//! so in a few instructions that wait for nothing, so all groups are asked at once and few are searched. A count beside
//! each bit lets entries go again.

/// Bits of a new filter.
const FEWEST: usize = 512;
/// Most bits: beyond, a filter lets more through, and growing would keep packets waiting.
const MOST: usize = 1 << 16;
/// Bits a row, at least, until there are [`MOST`].
const SPARE: usize = 8;

/// The filter of one group.
#[derive(Clone, Debug)]
pub(super) struct Filter {
    bits: Vec<u64>,
    /// Rows at each bit; one that is full is never cleared again.
    counts: Vec<u8>,
    rows: usize,
}

impl Filter {
    pub fn new() -> Filter {
        Filter { bits: vec![0; FEWEST / 64], counts: vec![0; FEWEST], rows: 0 }
    }

    /// The half of the hash that an index keeps of a row.
    #[inline(always)]
    fn place(&self, hash: u64) -> usize {
        (hash >> 32) as usize & (self.bits.len() * 64 - 1)
    }

    /// Whether a row with this hash may be there.
    #[inline(always)]
    pub fn may_have(&self, hash: u64) -> bool {
        let at = self.place(hash);
        self.bits[at / 64] >> (at % 64) & 1 != 0
    }

    /// A row has come; `all` are the hashes of the rows there are now.
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

    /// A row has gone.
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
