//! The one seeded generator. The same seed gives the same numbers on every machine.

/// Steele, Lea and Flood's SplitMix64.
#[derive(Clone, Debug)]
pub struct SplitMix(pub u64);

impl SplitMix {
    /// The next 64 random bits.
    // Endless, so not an iterator.
    #[allow(clippy::should_implement_trait)]
    #[inline]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from 0 (inclusive) to 1 (exclusive).
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number from 0 to `limit` (exclusive); 0 if the limit is 0.
    #[inline]
    pub fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64
    }

    /// A number between both bounds, inclusive; `lo` if they are swapped.
    pub fn between(&mut self, lo: u64, hi: u64) -> u64 {
        match hi.checked_sub(lo) {
            None => lo,
            Some(u64::MAX) => self.next(),
            Some(span) => lo + self.below(span + 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::SplitMix;

    /// The generator's published reference: <https://prng.di.unimi.it/splitmix64.c>, seed 1234567.
    #[test]
    fn numbers_are_those_of_the_reference() {
        let mut random = SplitMix(1_234_567);
        let numbers = [(); 3].map(|()| random.next());
        assert_eq!(
            numbers,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn bounds_are_included_and_may_be_swapped() {
        let mut random = SplitMix(1);
        let mut seen: Vec<u64> = (0..100).map(|_| random.between(3, 5)).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen, [3, 4, 5]);
        assert_eq!(random.between(5, 3), 5);
    }
}
