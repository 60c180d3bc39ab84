//! Message sizes of published workloads: a dozen quantiles each, in bytes, interpolated logarithmically.
//!
//! W1–W5 are the workloads of Homa's evaluation (Montazeri et al., SIGCOMM 2018), also used in PL2's §6: W1
//! Facebook's memcached (Atikoglu et al., SIGMETRICS 2012), W2 Google's search, W3 all RPCs of a Google
//! datacentre, W4 a Hadoop cluster at Facebook (Roy et al., SIGCOMM 2015), W5 DCTCP's web search (Alizadeh et
//! al., SIGCOMM 2010).

use crate::random::{Between, Distribution};

/// A workload: name and quantiles.
type Workload = (&'static str, [(f64, f64); 12]);

/// The five applications of EDM's §4.3 (Su et al., ASPLOS 2025), as in its trace generator: deciles,
/// interpolated linearly.
const EDM: [(&str, [f64; 11]); 5] = [
    ("EDM-hadoop", edm([5_840.0, 5_840.0, 128_480.0, 243_820.0, 1_343_200.0])),
    ("EDM-spark", edm([5_840.0, 5_840.0, 18_980.0, 321_200.0, 1_357_800.0])),
    ("EDM-sparksql", edm([10_220.0, 10_220.0, 121_180.0, 204_400.0, 1_430_800.0])),
    ("EDM-graphlab", edm([5_840.0, 5_840.0, 128_480.0, 243_820.0, 1_576_800.0])),
    ("EDM-memcached", edm([5_840.0, 5_840.0, 93_440.0, 432_160.0, 1_775_360.0])),
];

/// Half of the messages of each application are four packets of 1460 bytes.
const fn edm(upper: [f64; 5]) -> [f64; 11] {
    let [p60, p70, p80, p90, p100] = upper;
    let four = 5_840.0;
    [four, four, four, four, four, four, p60, p70, p80, p90, p100]
}

/// Name of the workload with VGG16's gradients.
pub const VGG16: &str = "VGG16";

/// Parameters of VGG16's layers (Simonyan and Zisserman, ICLR 2015, configuration D), weights and biases,
/// from the last to the first as in back-propagation. 528 MB as 32-bit numbers.
const VGG16_PARAMETERS: [u32; 16] = [
    4_097_000,
    16_781_312,
    102_764_544,
    2_359_808,
    2_359_808,
    2_359_808,
    2_359_808,
    2_359_808,
    1_180_160,
    590_080,
    590_080,
    295_168,
    147_584,
    73_856,
    36_928,
    1_792,
];

/// Bytes of each layer's gradient for one of `servers` parameter servers, at this fraction of the true size.
pub fn vgg16(servers: usize, scale: f64) -> Vec<u32> {
    let part =
        |parameters: &u32| (f64::from(*parameters) * 4.0 * scale / servers.max(1) as f64).ceil() as u32;
    VGG16_PARAMETERS.iter().map(part).collect()
}

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

/// The distribution with this name.
pub fn named(name: &str) -> Result<Distribution, String> {
    if let Some((_, points)) = WORKLOADS.iter().find(|(known, _)| *known == name) {
        return Distribution::new(points, Between::Logarithmic);
    }
    if let Some((_, tenths)) = EDM.iter().find(|(known, _)| *known == name) {
        let points: Vec<(f64, f64)> = tenths.iter().enumerate().map(|(n, v)| (n as f64 / 10.0, *v)).collect();
        return Distribution::new(&points, Between::Linear);
    }
    Err(format!(
        "`{name}` is no distribution; there are W1 to W5, EDM-hadoop, EDM-spark, EDM-sparksql, EDM-graphlab, \
         EDM-memcached and, in rounds, VGG16; or write a number of bytes"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

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
        for (name, tenths) in EDM {
            let ours = named(name).unwrap();
            assert!((0..=10).all(|n| ours.at(n as f64 / 10.0) == tenths[n]), "{name}");
        }
        let bytes: u64 = vgg16(2, 1.0).iter().map(|part| u64::from(*part)).sum();
        assert_eq!(2 * bytes, 4 * 138_357_544);
    }

    /// The full data, where it is at hand.
    #[test]
    fn quantiles_are_the_sources() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/edm-cdf");
        for (name, tenths) in EDM {
            let path = folder.join(format!("{}.csv", name.trim_start_matches("EDM-")));
            let Ok(text) = std::fs::read_to_string(&path) else {
                // Past the harness, which hides what a passing test prints.
                let said = format!(
                    "skipped: needs EDM's distributions, get them by putting its trace generator's at {}\n",
                    folder.display()
                );
                let _ = std::io::stderr().write_all(said.as_bytes());
                return;
            };
            let sizes = text.lines().skip(1).filter_map(|line| line.split(',').nth(2)?.parse::<f64>().ok());
            assert_eq!(sizes.collect::<Vec<f64>>(), tenths, "{name}");
        }
    }
}
