//! Sizes of boards' memories, which follow from an experiment.

use super::experiment::{ClioExperiment, KEY_BYTES};
use super::spec::{ClioScheme, Load};
use p4rack_offload::block_bytes;

impl ClioExperiment {
    /// Pages that the store needs.
    pub(super) fn store_pages(&self) -> u64 {
        let spec = &self.spec;
        if spec.load != Load::Kv || spec.scheme != ClioScheme::Clio {
            return 0;
        }
        let block = block_bytes(u64::from(KEY_BYTES), spec.bytes);
        // Updates write a new block before they free the old one.
        let blocks = u64::from(spec.keys) + 64;
        (block * blocks + 8 * self.buckets() + 4_096).div_ceil(self.page_size.bytes())
    }

    /// Buckets of the store's index.
    pub(super) fn buckets(&self) -> u64 {
        2 * u64::from(self.spec.keys)
    }

    /// Frames of a board's memory.
    pub(super) fn frames(&self) -> u64 {
        let spec = &self.spec;
        let processes = u64::from(spec.compute_nodes) * u64::from(spec.processes);
        match spec.load {
            // Nothing is freed, and at the end operations are under way.
            Load::Allocations => {
                let under_way = processes * u64::from(spec.threads) * u64::from(spec.window);
                self.page_size.pages(spec.bytes).saturating_mul(spec.operations + spec.warmup + under_way)
            }
            Load::Kv => self.store_pages(),
            Load::Accesses | Load::Fill => processes * spec.pages,
        }
    }
}
