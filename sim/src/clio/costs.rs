//! Modelled times, by profile: `fpga` is the paper's prototype, `asic` its projection. Each default names its source.
//!
//! *Paper* is Guo et al., ASPLOS 2022; *authors' output* is the expected output of their artifact's tests
//! (github.com/WukLab/Clio, Documentation/asplos-ae.md). Where nothing is published a value is *assumed*. One figure
//! was used to set the assumed ones: a write of 4 bytes takes 1.87 µs.

use serde::{Deserialize, Serialize};

/// Where default times come from.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// The prototype: an FPGA at 250 MHz with a port of 10 Gb/s.
    #[default]
    Fpga,
    /// The projection: a chip at 2 GHz with a port of 100 Gb/s.
    Asic,
}

impl Profile {
    /// Its name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Profile::Fpga => "fpga",
            Profile::Asic => "asic",
        }
    }
}

/// A cost of a table: its name, its value, and the range of values.
pub(super) type Ranged = (&'static str, u64, u64, u64);

/// A table of costs: as a file gives it, and with the profile's values for fields that the file leaves out.
macro_rules! costs {
    (
        $(#[$about:meta])* $spec:ident, $costs:ident {
            $($(#[$doc:meta])* $field:ident = $fpga:literal, $asic:literal, $least:literal to $most:literal;)*
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, Default, Deserialize, Serialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct $spec {
            $($(#[$doc])* #[serde(skip_serializing_if = "Option::is_none")] pub $field: Option<u64>,)*
        }

        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $costs {
            $($(#[$doc])* pub $field: u64,)*
        }

        impl $spec {
            /// With the profile's values for missing fields.
            pub fn with(&self, profile: Profile) -> $costs {
                $costs {
                    $($field: self.$field.unwrap_or(match profile {
                        Profile::Fpga => $fpga,
                        Profile::Asic => $asic,
                    }),)*
                }
            }
        }

        impl $costs {
            /// Names, values and ranges.
            pub(super) fn ranges(&self) -> Vec<Ranged> {
                vec![$((stringify!($field), self.$field, $least, $most),)*]
            }
        }
    };
}

costs! {
    /// `[compute]`: a compute node.
    ComputeSpec, ComputeCosts {
        /// CLib, from a call to the adapter's doorbell: half of the paper's 250 ns (§7.1).
        send_ns = 125, 125, 0 to 1_000_000;
        /// CLib, from the packet in memory to the end of the call: the other half.
        receive_ns = 125, 125, 0 to 1_000_000;
        /// Adapter and PCIe, one way. Assumed: 250 ns across PCIe (Neugebauer et al., SIGCOMM 2018) and 50 ns for the adapter.
        nic_ns = 300, 300, 0 to 1_000_000;
        /// Bytes sent inline, without a read of host memory: Clio's frames of at most this many bytes, and RDMA's
        /// messages with at most as much data (the artifact's `DEFAULT_MAX_INLINE_SIZE`).
        inline_bytes = 128, 128, 0 to 9_000;
        /// A read of host memory by an adapter, Clio's or RDMA's. Authors' output: 413 ns between writes of 4 and 64 bytes, of which the
        /// links have 63.
        fetch_ns = 350, 350, 0 to 1_000_000;
    }
}

costs! {
    /// `[board]`: the fast path of a board.
    BoardSpec, BoardCosts {
        /// A cycle (paper §5: 250 MHz; 2 GHz).
        clock_ps = 4_000, 500, 100 to 1_000_000;
        /// Cycles from one beat to the next (paper: 1).
        interval_cycles = 1, 1, 1 to 1_000;
        /// Bytes of a beat (paper: 512 bits).
        beat_bytes = 64, 64, 8 to 4_096;
        /// PHY and MAC, one way. Assumed.
        mac_ns = 130, 50, 0 to 1_000_000;
        /// Parser, match table and checks. Assumed.
        parse_cycles = 8, 8, 0 to 100_000;
        /// A look-up in the TLB (artifact, `LookupTableStoppable`).
        tlb_cycles = 2, 2, 0 to 100_000;
        /// A TLB miss beside the access to DRAM: the hash, and 4 beats of a bucket (artifact).
        bucket_cycles = 5, 5, 0 to 100_000;
        /// A first access beside its miss (paper §4.3: 3 cycles).
        fault_cycles = 3, 3, 0 to 100_000;
        /// An access to DRAM. Authors' output: a miss adds 135 ns to a read, of which 20 are the bucket's; the chip's is assumed.
        dram_ns = 110, 80, 0 to 1_000_000;
        /// Set-up of a read's DMA, during which no other read begins (paper §7.1: the DMA IP is not pipelined). Assumed.
        dma_cycles = 10, 1, 0 to 100_000;
        /// Data of an answer in the network stack, per byte; answers of a process follow each other. Authors' output: reads take 2.6 ns a
        /// byte up to 1 KB, of which links have 1.06; the chip's stack is assumed to stream.
        stack_ps_per_byte = 1_500, 0, 0 to 1_000_000;
        /// Time for which a frame with data, either way, keeps its process's stack from the next one, per byte; its own answer doesn't wait
        /// for it. 0: as long as its data take above, and nothing for requests. With 1500, four threads take as long as the authors' do
        /// (Figure 8), but their text's 9.4 Gb/s need two processes.
        frame_ps_per_byte = 0, 0, 0 to 1_000_000;
        /// Cycles of an offload's call beside its accesses to memory. Assumed.
        call_cycles = 20, 20, 0 to 1_000_000;
        /// Calls of an offload under way; others wait. The artifact's store keeps 128 requests (`KeyValueStore.numBlocks`), and reads
        /// through one DMA port.
        offload_units = 128, 128, 1 to 1_024;
    }
}

costs! {
    /// `[slow]`: the slow path of a board.
    SlowSpec, SlowCosts {
        /// From the fast path to the processor, one way (paper §5: 40 µs; the chip's is assumed).
        cross_ns = 40_000, 5_000, 0 to 1_000_000_000;
        /// A call (paper §7.1: below 20 µs for physical memory; the chip's is assumed).
        call_ns = 20_000, 2_000, 0 to 1_000_000_000;
        /// A candidate that met a full bucket (paper §4.2: "a few µs").
        retry_ns = 3_000, 3_000, 0 to 1_000_000_000;
        /// Time between two steps. Assumed.
        step_ns = 1_000, 1_000, 1 to 1_000_000_000;
        /// Pages that a step looks at. Assumed: 16 ns each.
        step_pages = 64, 64, 1 to 65_536;
        /// Bytes that a step zeroes: 19.2 GB/s, a channel of DDR4-2400. Assumed; the artifact zeroes nothing.
        zero_bytes = 19_200, 19_200, 1 to 1_099_511_627_776;
    }
}

costs! {
    /// `[rdma]`: the modelled baselines, on the same links. No machine of them runs.
    RdmaSpec, RdmaCosts {
        /// Posting a request: 175 ns (Zambre et al., Breaking Band, ICPP 2019, Table 1).
        post_ns = 175, 175, 0 to 1_000_000;
        /// Taking a completion (the same table).
        poll_ns = 62, 62, 0 to 1_000_000;
        /// PCIe, one way (Neugebauer et al., SIGCOMM 2018).
        pcie_ns = 250, 250, 0 to 1_000_000;
        /// A packet's way through an adapter. Assumed.
        packet_ns = 50, 50, 0 to 1_000_000;
        /// Queue pairs whose state the memory node's adapter caches (paper §2.2: latency grows above 2^8 with ConnectX-3).
        cached_pairs = 256, 4_096, 1 to 16_777_216;
        /// Page table entries that it caches (paper §7.1: 2^8, or 2^12 with a newer one).
        cached_pages = 256, 4_096, 1 to 16_777_216;
        /// With `load = "kv"`: bytes of a page of the store, which all queue pairs share. Assumed: huge pages.
        page_bytes = 2_097_152, 2_097_152, 4_096 to 1_073_741_824;
        /// Memory regions that it caches. Assumed to be as many.
        cached_regions = 256, 4_096, 1 to 16_777_216;
        /// Memory regions that it can have (paper §7.1: it fails above 2^18).
        regions_max = 262_144, 262_144, 1 to 4_294_967_296;
        /// A miss: a read across PCIe, with the walk at the host. Assumed.
        miss_ns = 900, 900, 0 to 1_000_000;
        /// A page fault with on-demand paging: the paper's number (§7.1: 16.8 ms).
        fault_ns = 16_800_000, 16_800_000, 0 to 1_000_000_000;
        /// Two-sided: cores of the memory node that serve requests.
        cores = 8, 8, 1 to 256;
        /// Two-sided: a request's work beside memory. Assumed: as Cowbird's servers, 25 ns to see it, 28 to post a receive, 30 to serve it.
        serve_ns = 83, 83, 0 to 1_000_000;
        /// Two-sided: a random access to memory (Cowbird's model: 180 ns).
        access_ns = 180, 180, 0 to 1_000_000;
        /// Two-sided: each further line of a value (Cowbird's model: 8 ns).
        line_ns = 8, 8, 0 to 1_000_000;
        /// Registration of a memory region: the call. Assumed.
        register_ns = 30_000, 30_000, 0 to 1_000_000_000;
        /// Registration: pinning a page, whatever its size. Assumed.
        register_page_ns = 250, 250, 0 to 1_000_000;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_change_single_costs_of_a_profile() {
        let spec: BoardSpec = toml::from_str("dram_ns = 90").unwrap();
        let (fpga, asic) = (spec.with(Profile::Fpga), spec.with(Profile::Asic));
        assert_eq!((fpga.dram_ns, asic.dram_ns), (90, 90));
        assert_eq!((fpga.clock_ps, asic.clock_ps), (4_000, 500));
        assert!(toml::from_str::<BoardSpec>("dram = 90").is_err());
    }

    #[test]
    fn all_defaults_are_in_their_ranges() {
        for profile in [Profile::Fpga, Profile::Asic] {
            let tables = [
                ComputeSpec::default().with(profile).ranges(),
                BoardSpec::default().with(profile).ranges(),
                SlowSpec::default().with(profile).ranges(),
                RdmaSpec::default().with(profile).ranges(),
            ];
            for (name, value, least, most) in tables.into_iter().flatten() {
                assert!((least..=most).contains(&value), "{name}: {value}");
            }
        }
    }
}
