//! Key popularity of YCSB.

use crate::random::Random;

/// Numbers below `count`, the first ones more popular, by Gray et al.'s method (SIGMOD 1994), as in YCSB.
#[derive(Clone, Debug)]
pub struct Zipf {
    count: u32,
    exponent: f64,
    zeta: f64,
    eta: f64,
}

impl Zipf {
    /// The distribution of `count` numbers with popularity as rank to the power of `-exponent`, below 1.
    pub fn new(count: u32, exponent: f64) -> Zipf {
        let zeta = |n: u32| (1..=n).map(|i| f64::from(i).powf(-exponent)).sum::<f64>();
        let zeta_n = zeta(count);
        let n = f64::from(count);
        let eta = (1.0 - (2.0 / n).powf(1.0 - exponent)) / (1.0 - zeta(2.min(count)) / zeta_n);
        Zipf { count, exponent, zeta: zeta_n, eta }
    }

    /// Draws a number.
    pub fn sample(&self, random: &mut Random) -> u32 {
        let u = random.unit();
        let scaled = u * self.zeta;
        if scaled < 1.0 || self.count < 2 {
            return 0;
        }
        if scaled < 1.0 + 0.5f64.powf(self.exponent) || self.count < 3 {
            return 1;
        }
        let value = f64::from(self.count) * (self.eta * u - self.eta + 1.0).powf(1.0 / (1.0 - self.exponent));
        (value as u32).min(self.count - 1)
    }
}

/// Position of a key: uniform, whatever its popularity.
pub(crate) fn place(key: u32, places: usize) -> usize {
    let mixed = Random::new(u64::from(key)).next();
    ((u128::from(mixed) * places as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn popularity_falls_as_a_power() {
        let (zipf, mut random) = (Zipf::new(1_000, 0.99), Random::new(1));
        let mut counts = vec![0u32; 1_000];
        const SAMPLES: u32 = 400_000;
        (0..SAMPLES).for_each(|_| counts[zipf.sample(&mut random) as usize] += 1);
        let zeta: f64 = (1..=1_000).map(|i| f64::from(i).powf(-0.99)).sum();
        for rank in [1u32, 2, 10, 100] {
            // The method is exact for the first two numbers, and a continuous approximation beyond.
            let near: u32 =
                counts[rank as usize - 1..(rank as usize * 11 / 10).max(rank as usize)].iter().sum();
            let wide = (rank as usize * 11 / 10).max(rank as usize) - rank as usize + 1;
            let expected: f64 =
                (rank..rank + wide as u32).map(|i| f64::from(i).powf(-0.99)).sum::<f64>() / zeta;
            let share = f64::from(near) / f64::from(SAMPLES);
            assert!((share / expected - 1.0).abs() < 0.25, "{rank}: {share} {expected}");
        }
        let mut uses = [0; 4];
        (0..1_000).for_each(|key| uses[place(key, 4)] += 1);
        assert!(uses.iter().all(|uses| (200..300).contains(uses)), "{uses:?}");
    }
}
