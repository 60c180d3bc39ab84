//! Which of many things is used next.

use p4rack_wire::SplitMix;

/// 0, 1, … in random order.
pub(super) fn shuffled(count: u64, random: &mut SplitMix) -> Vec<u32> {
    let mut order: Vec<u32> = (0..count as u32).collect();
    for at in (1..order.len()).rev() {
        order.swap(at, random.below(at as u64 + 1) as usize);
    }
    order
}

/// Zipf's law, exactly: shares of all ranks, summed up.
#[derive(Clone, Debug)]
pub(super) struct Popularity {
    sums: Vec<f64>,
}

impl Popularity {
    pub(super) fn new(count: u64, exponent: f64) -> Popularity {
        let mut sum = 0.0;
        let sums = (1..=count).map(|rank| {
            sum += (rank as f64).powf(-exponent);
            sum
        });
        Popularity { sums: sums.collect() }
    }

    /// A rank, from 0 on.
    pub(super) fn sample(&self, random: &mut SplitMix) -> usize {
        let total = self.sums.last().copied().unwrap_or_default();
        let point = random.unit() * total;
        self.sums.partition_point(|sum| *sum <= point).min(self.sums.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_used_by_zipfs_law() {
        let (popularity, mut random) = (Popularity::new(1_000, 0.99), SplitMix(7));
        let mut uses = vec![0u32; 1_000];
        const SAMPLES: u32 = 200_000;
        (0..SAMPLES).for_each(|_| uses[popularity.sample(&mut random)] += 1);
        let zeta: f64 = (1..=1_000).map(|rank| f64::from(rank).powf(-0.99)).sum();
        for rank in [1u32, 2, 10, 100] {
            let expected = f64::from(rank).powf(-0.99) / zeta * f64::from(SAMPLES);
            let real = f64::from(uses[rank as usize - 1]);
            assert!((real - expected).abs() < 6.0 * expected.sqrt(), "{rank}: {real}, expected {expected}");
        }
    }
}
