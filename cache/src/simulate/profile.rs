//! Latencies of systems, always named in a result.

use std::borrow::Cow;

/// Latencies of a system.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Its name.
    pub name: &'static str,
    /// Where the figures are from.
    pub about: &'static str,
    /// A hit in the host's memory.
    pub host_ns: u64,
    /// A hit in the device's memory.
    pub device_ns: u64,
    /// A translation, for systems that pay one at each access.
    pub translation_ns: u64,
    /// A page's part of moving a batch to the host.
    pub promote_ns: u64,
    /// Latency of a read by its bytes; rising.
    read_ns: Cow<'static, [(u32, u64)]>,
    rate_bps: u64,
}

/// All profiles.
pub const PROFILES: &[Profile] = &[
    Profile {
        name: "paper",
        about: "UniMem, section 4.1: 2 us for 512 B, 4 us for 4 KB",
        host_ns: 80,
        device_ns: 150,
        translation_ns: 14,
        promote_ns: 3_900,
        read_ns: Cow::Borrowed(&[(512, 2_000), (1024, 2_500), (2048, 3_000), (4096, 4_000)]),
        rate_bps: 100_000_000_000,
    },
    Profile {
        name: "kona",
        about: "measured by Kona's authors: 2.6 us for 512 B, 3.1 us for 4 KB",
        host_ns: 82,
        device_ns: 130,
        translation_ns: 14,
        promote_ns: 3_900,
        read_ns: Cow::Borrowed(&[(64, 2_420), (512, 2_600), (1024, 2_690), (2048, 2_850), (4096, 3_110)]),
        rate_bps: 100_000_000_000,
    },
    // Intel's CacheLib demonstration at OCP 2023: a CXL 2.0 memory module on PCIe 5 x8 answers in 250 ns, and delivers 17.8 GB/s if all
    // accesses read. Longer reads are the lines of 64 B after the first one at that rate. All local memory is the host's, so hits
    // take one latency, nothing is translated, and nothing moves between host and device.
    Profile {
        name: "cxl",
        about: "CXL memory on PCIe 5 x8: measured 250 ns for 64 B and 17.8 GB/s; by that rate 275 ns for 512 B, 476 ns for 4 KB",
        host_ns: 80,
        device_ns: 80,
        translation_ns: 0,
        promote_ns: 0,
        read_ns: Cow::Borrowed(&[(64, 250), (512, 275), (1024, 304), (2048, 361), (4096, 476)]),
        rate_bps: 142_400_000_000,
    },
];

impl Profile {
    /// The local latencies of the profile `paper`, with others for reads of remote memory, by their bytes, and another link.
    pub fn with_remote(
        name: &'static str,
        about: &'static str,
        mut read_ns: Vec<(u32, u64)>,
        rate_bps: u64,
    ) -> Profile {
        read_ns.sort_unstable();
        Profile {
            name,
            about,
            read_ns: Cow::Owned(read_ns),
            rate_bps: rate_bps.max(1),
            ..PROFILES[0].clone()
        }
    }

    /// Latency of one request, by its bytes: between two figures on a line, outside as the nearest one.
    pub(super) fn read_ns(&self, bytes: u32) -> u64 {
        let above = self.read_ns.partition_point(|(size, _)| *size < bytes);
        let Some(&(size, ns)) = self.read_ns.get(above) else {
            return self.read_ns.last().map_or(0, |(_, ns)| *ns);
        };
        let Some(&(smaller, from_ns)) = above.checked_sub(1).and_then(|below| self.read_ns.get(below)) else {
            return ns;
        };
        from_ns + (ns - from_ns) * u64::from(bytes - smaller) / u64::from(size - smaller)
    }

    pub(super) fn transfer_ns(&self, bytes: u64) -> u64 {
        bytes * 8 * 1_000_000_000 / self.rate_bps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(name: &str) -> &'static Profile {
        PROFILES.iter().find(|one| one.name == name).unwrap()
    }

    #[test]
    fn latencies_lie_between_figures() {
        let ns = [64, 512, 768, 4096, 8192].map(|bytes| profile("paper").read_ns(bytes));
        assert_eq!(ns, [2_000, 2_000, 2_250, 4_000, 4_000]);
    }

    /// Only the first line of 64 B is measured.
    #[test]
    fn longer_reads_of_cxl_memory_take_the_links_time() {
        let cxl = profile("cxl");
        for bytes in [64u32, 512, 1024, 2048, 4096] {
            let lines_ns = cxl.transfer_ns(u64::from(bytes - 64));
            assert!(cxl.read_ns(bytes).abs_diff(250 + lines_ns) <= 1, "{bytes}: {lines_ns}");
        }
    }
}
