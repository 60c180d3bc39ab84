//! Random numbers from a seed: the same seed gives the same packets.

/// A SplitMix64 generator.
#[derive(Clone, Debug)]
pub(crate) struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    /// A number between both bounds, inclusive; `lo` if they are swapped.
    pub fn between(&mut self, lo: u64, hi: u64) -> u64 {
        match hi.checked_sub(lo) {
            None => lo,
            Some(u64::MAX) => self.next(),
            Some(span) => lo + ((u128::from(self.next()) * u128::from(span + 1)) >> 64) as u64,
        }
    }
}
