//! Random numbers from a seed, and distributions given by quantiles.

use p4rack_wire::SplitMix;

/// A random stream.
#[derive(Clone, Debug)]
pub struct Random(SplitMix);

impl Random {
    /// A separate stream for each seed.
    pub fn new(seed: u64) -> Random {
        let mut random = Random(SplitMix(seed ^ 0x5851_f42d_4c95_7f2d));
        random.next();
        random
    }

    /// A separate stream for each purpose within a run.
    pub fn stream(seed: u64, purpose: u64) -> Random {
        Random::new(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ purpose.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// The next 64 random bits.
    #[inline]
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> u64 {
        self.0.next()
    }

    /// A number from 0 (inclusive) to 1 (exclusive).
    #[inline]
    pub fn unit(&mut self) -> f64 {
        self.0.unit()
    }

    /// A number from 0 to `limit` (exclusive); 0 if the limit is 0.
    #[inline]
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0.below(limit)
    }

    /// An exponentially distributed number with this mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }

    /// True with this probability.
    #[inline]
    pub fn chance(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.unit() < probability
    }
}

/// Interpolation between two quantiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Between {
    /// Linear, for delays.
    Linear,
    /// Linear in the logarithm, for sizes over many orders of magnitude.
    Logarithmic,
}

/// Cells of the lookup table.
const CELLS: usize = 1024;

/// A distribution given by quantiles.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    points: Vec<(f64, f64)>,
    between: Between,
    /// Values at the ends of cells. Within a cell that contains no quantile, values are interpolated
    /// linearly.
    ends: Box<[u32; CELLS + 1]>,
    /// From this cell on, `points` are used: in the last cell, because tails matter, or in all cells if
    /// linear interpolation is wrong.
    exact_from: usize,
}

impl Distribution {
    /// Builds a distribution from pairs of cumulative probability and value, which start at 0, end at 1 and
    /// ascend.
    pub fn new(points: &[(f64, f64)], between: Between) -> Result<Distribution, String> {
        let (Some(first), Some(last)) = (points.first(), points.last()) else {
            return Err("has no points; give pairs of probability and value".into());
        };
        if first.0 != 0.0 || last.0 != 1.0 {
            return Err(format!("goes from probability {} to {}; it has to go from 0 to 1", first.0, last.0));
        }
        for pair in points.windows(2) {
            if pair[1].0 <= pair[0].0 || pair[1].1 < pair[0].1 {
                return Err(format!(
                    "does not ascend from ({}, {}) to ({}, {})",
                    pair[0].0, pair[0].1, pair[1].0, pair[1].1
                ));
            }
        }
        let least = if between == Between::Logarithmic { 1.0 } else { 0.0 };
        if points.iter().any(|point| !(least..=4e9).contains(&point.1)) {
            return Err(format!("has values outside {least} to 4e9"));
        }
        let mut quantiles =
            Distribution { points: points.to_vec(), between, ends: Box::new([0; CELLS + 1]), exact_from: 0 };
        if between == Between::Linear {
            let value = |cell: usize| quantiles.at(cell as f64 / CELLS as f64).round() as u32;
            quantiles.ends = Box::new(std::array::from_fn(value));
            // Whatever rounding does.
            (1..=CELLS).for_each(|at| quantiles.ends[at] = quantiles.ends[at].max(quantiles.ends[at - 1]));
            quantiles.exact_from = CELLS - 1;
        }
        Ok(quantiles)
    }

    /// A distribution with a single value.
    pub fn constant(value: u32) -> Distribution {
        let points = vec![(0.0, value.into()), (1.0, value.into())];
        Distribution {
            points,
            between: Between::Linear,
            ends: Box::new([value; CELLS + 1]),
            exact_from: CELLS,
        }
    }

    /// The quantile of `p`.
    pub fn at(&self, p: f64) -> f64 {
        let p = p.clamp(0.0, 1.0);
        let above = self.points.partition_point(|point| point.0 <= p).clamp(1, self.points.len() - 1);
        let ((p0, v0), (p1, v1)) = (self.points[above - 1], self.points[above]);
        let part = (p - p0) / (p1 - p0);
        match self.between {
            Between::Linear => v0 + part * (v1 - v0),
            Between::Logarithmic => v0 * (v1 / v0).powf(part),
        }
    }

    /// Minimum value.
    pub fn least(&self) -> u64 {
        self.at(0.0).floor() as u64
    }

    /// Mean value.
    pub fn mean(&self) -> f64 {
        let segment = |pair: &[(f64, f64)]| {
            let ((p0, v0), (p1, v1)) = (pair[0], pair[1]);
            let mean = match self.between {
                Between::Logarithmic if v1 > v0 => (v1 - v0) / (v1 / v0).ln(),
                _ => (v0 + v1) / 2.0,
            };
            (p1 - p0) * mean
        };
        self.points.windows(2).map(segment).sum()
    }

    /// Mean of a function of the values.
    pub fn mean_of(&self, f: impl Fn(u64) -> f64) -> f64 {
        const STEPS: u32 = 4_096;
        // The tail separately, where few values weigh much.
        let part = |from: f64, to: f64| {
            let step = (to - from) / f64::from(STEPS);
            let value = |i| f(self.at(from + (f64::from(i) + 0.5) * step).round() as u64);
            (0..STEPS).map(value).sum::<f64>() * step
        };
        part(0.0, 0.99) + part(0.99, 0.9999) + part(0.9999, 1.0)
    }

    /// Draws a value.
    #[inline]
    pub fn sample(&self, random: &mut Random) -> u64 {
        let bits = random.next();
        let cell = (bits >> 54) as usize & (CELLS - 1);
        if cell >= self.exact_from {
            return self.exact(bits);
        }
        let (start, end) = (u64::from(self.ends[cell]), u64::from(self.ends[cell + 1]));
        start + (((end - start) * (bits >> 22 & 0xffff_ffff)) >> 32)
    }

    #[cold]
    fn exact(&self, bits: u64) -> u64 {
        self.at((bits >> 11) as f64 / (1u64 << 53) as f64).round() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_follow_the_quantiles() {
        let points = [(0.0, 100.0), (0.5, 200.0), (0.999, 300.0), (1.0, 9_000.0)];
        let quantiles = Distribution::new(&points, Between::Linear).unwrap();
        let mut random = Random::new(3);
        let mut samples: Vec<u64> = (0..200_000).map(|_| quantiles.sample(&mut random)).collect();
        samples.sort_unstable();
        assert!(samples[100_000].abs_diff(200) <= 1, "{}", samples[100_000]);
        assert!(samples[199_500].abs_diff(300) <= 2, "{}", samples[199_500]);
        assert!(samples[199_999] > 7_000, "the tail is there");
        let mean = samples.iter().sum::<u64>() as f64 / 200_000.0;
        assert!((mean - quantiles.mean()).abs() < 1.0, "{mean} {}", quantiles.mean());
    }

    #[test]
    fn what_is_no_distribution_is_refused() {
        for points in [
            &[][..],
            &[(0.0, 1.0)],
            &[(0.0, 1.0), (0.9, 2.0)],
            &[(0.0, 1.0), (0.5, 3.0), (1.0, 2.0)],
            &[(0.0, 1.0), (0.5, 1.0), (0.5, 2.0), (1.0, 2.0)],
            &[(0.0, -1.0), (1.0, 2.0)],
        ] {
            assert!(Distribution::new(points, Between::Linear).is_err(), "{points:?}");
        }
    }

    #[test]
    fn logarithmic_mean_is_the_samples_mean() {
        let points = [(0.0, 1.0), (0.5, 100.0), (1.0, 1e6)];
        let quantiles = Distribution::new(&points, Between::Logarithmic).unwrap();
        let sum = quantiles.mean_of(|size| size as f64);
        assert!((sum / quantiles.mean() - 1.0).abs() < 0.01, "{sum} {}", quantiles.mean());
    }
}
