//! Message sizes of published workloads: a dozen quantiles each, in bytes, logarithms interpolated.
//!
//! W1–W5 are the workloads of Homa's evaluation (Montazeri et al., SIGCOMM 2018), also used in PL2's
//! §6: W1 Facebook's memcached (Atikoglu et al., SIGMETRICS 2012), W2 Google's search, W3 all of a
//! Google datacentre's RPCs, W4 a Hadoop cluster at Facebook (Roy et al., SIGCOMM 2015), W5 DCTCP's
//! web search (Alizadeh et al., SIGCOMM 2010).

use crate::random::{Between, Quantiles};

/// A workload: name, quantiles.
type Workload = (&'static str, [(f64, f64); 12]);

const WORKLOADS: [Workload; 5] = [
    (
        "W1",
        [
            (0.0, 1.0),
            (0.1, 2.0),
            (0.3, 5.0),
            (0.5, 27.0),
            (0.7, 149.0),
            (0.9, 499.0),
            (0.95, 800.0),
            (0.99, 1_853.0),
            (0.999, 4_871.0),
            (0.9999, 11_601.0),
            (0.99999, 26_605.0),
            (1.0, 838_172.0),
        ],
    ),
    (
        "W2",
        [
            (0.0, 2.0),
            (0.1, 3.0),
            (0.3, 58.0),
            (0.5, 269.0),
            (0.7, 366.0),
            (0.9, 512.0),
            (0.95, 931.0),
            (0.99, 3_151.0),
            (0.999, 21_845.0),
            (0.9999, 154_202.0),
            (0.99999, 912_974.0),
            (1.0, 3_529_904.0),
        ],
    ),
    (
        "W3",
        [
            (0.0, 3.0),
            (0.1, 36.0),
            (0.3, 110.0),
            (0.5, 268.0),
            (0.7, 402.0),
            (0.9, 1_755.0),
            (0.95, 5_521.0),
            (0.99, 31_013.0),
            (0.999, 356_516.0),
            (0.9999, 2_342_777.0),
            (0.99999, 10_668_901.0),
            (1.0, 15_158_197.0),
        ],
    ),
    (
        "W4",
        [
            (0.0, 50.0),
            (0.1, 315.0),
            (0.3, 502.0),
            (0.5, 662.0),
            (0.6, 960.0),
            (0.7, 6_387.0),
            (0.8, 49_408.0),
            (0.9, 120_373.0),
            (0.95, 273_075.0),
            (0.98, 1_660_940.0),
            (0.995, 6_322_443.0),
            (1.0, 10_000_000.0),
        ],
    ),
    (
        "W5",
        [
            (0.0, 1_442.0),
            (0.1, 5_768.0),
            (0.3, 27_398.0),
            (0.5, 70_658.0),
            (0.6, 191_786.0),
            (0.7, 961_814.0),
            (0.8, 1_922_186.0),
            (0.9, 4_806_186.0),
            (0.93, 15_381_814.0),
            (0.95, 19_227_628.0),
            (0.98, 24_995_628.0),
            (1.0, 28_840_000.0),
        ],
    ),
];

/// The distribution of this name.
pub fn named(name: &str) -> Result<Quantiles, String> {
    match WORKLOADS.iter().find(|(known, _)| *known == name) {
        Some((_, points)) => Quantiles::new(points, Between::Logarithmic),
        None => Err(format!("`{name}` is no distribution; there are W1 to W5, or write a number of bytes")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_distributions_near_their_sources_means() {
        // Means of the sources, bytes; a dozen points keep the shape, W3's tail a third too heavy.
        for (name, mean, within) in [
            ("W1", 185.0, 0.1),
            ("W2", 440.8, 0.15),
            ("W3", 2_927.0, 0.35),
            ("W4", 127_797.0, 0.1),
            ("W5", 2_515_857.0, 0.1),
        ] {
            let ours = named(name).unwrap().mean();
            assert!((ours / mean - 1.0).abs() < within, "{name}: {ours}");
        }
        assert!(named("W6").is_err());
    }
}
