//! Random numbers of tests, which a seed repeats.

use p4rack_wire::SplitMix;

/// Numbers of a seed.
#[derive(Clone)]
pub struct Random(SplitMix);

impl Random {
    /// Numbers of this seed.
    pub fn new(seed: u64) -> Random {
        Random(SplitMix(seed))
    }

    /// A number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.0.next() % n
    }
}

/// A number from the environment, to send more frames or others.
pub fn variable(name: &str, default: u64) -> u64 {
    let value = std::env::var(name).ok();
    value.map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
}
