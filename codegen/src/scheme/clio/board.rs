//! The board of a description: its memory, its page table, and the table's size.

use super::Clio;
use p4rack_fabric::clio::board::{Config, Index, Pool};
use p4rack_wire::Nanos;

/// TIMEOUTs for which a board remembers what it has executed. The paper's 3 are too few where processes share a machine and retries come
/// late.
const MEMORY_TIMEOUTS: u64 = 30;
/// Operations that a board remembers: 430,000 a second with the default TIMEOUT.
const REMEMBERED: u32 = 1 << 18;
/// Bytes of a slot.
const SLOT_BYTES: u64 = 16;

impl Clio {
    /// Configuration of a board with `memory_bytes` of memory instead of the description's.
    pub fn board(&self, memory_bytes: u64) -> Config {
        let share = memory_bytes / (self.page_sizes.len() as u64).max(1);
        let pools = self.page_sizes.iter().map(|size| {
            let frames = u32::try_from(size.pages(share)).unwrap_or(u32::MAX);
            Pool { size: *size, frames, ready: self.free_pages.min(frames) }
        });
        Config {
            index: self.index,
            bucket_slots: self.slots,
            spare_percent: self.spare_percent,
            tlb_entries: self.tlb_entries,
            // One is offered to all.
            processes_max: self.processes_max + 1,
            retry_entries: REMEMBERED,
            retry_keep: Nanos(self.timeout.0.saturating_mul(MEMORY_TIMEOUTS)),
            ..Config::new(pools.collect())
        }
    }
}

/// Size of a board's page table, and its share of the memory.
pub(super) fn table_share(config: &Config) -> String {
    let table = config.slots() * SLOT_BYTES;
    format!("{table} B, {:.2} % of the memory", 100.0 * table as f64 / config.bytes().max(1) as f64)
}

/// Expected buckets that would have to hold more pages than they have slots if `mixed` scattered all pages of one size over an empty
/// table. At each address that it tries, an allocation of all pages meets none of these with a chance of e^−(that number).
pub(super) fn full_buckets(config: &Config, pool: &Pool) -> f64 {
    if config.index == Index::Salted {
        return 0.0;
    }
    let slots = u64::from(config.bucket_slots);
    let buckets = config.slots() / slots;
    // Pages fall into buckets independently.
    let mean = f64::from(pool.frames) / buckets.max(1) as f64;
    let mut chance = (-mean).exp();
    let mut above = 0.0;
    for pages in 1..=slots + 100 {
        chance *= mean / pages as f64;
        if pages > slots {
            above += chance;
        }
    }
    above * buckets as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use p4rack_wire::clio::PageSize;

    fn clio(index: Index, slots: u32, spare_percent: u32) -> Clio {
        let page_sizes = vec![PageSize::K4];
        Clio { page_sizes, index, slots, spare_percent, ..Clio::new(vec!["h1".to_owned()], 0) }
    }

    #[test]
    fn memory_is_divided_among_page_sizes() {
        let clio = Clio { page_sizes: vec![PageSize::M2, PageSize::K4], ..clio(Index::Salted, 8, 25) };
        let config = clio.board(64 << 20);
        let pools: Vec<(PageSize, u32)> = config.pools.iter().map(|pool| (pool.size, pool.frames)).collect();
        assert_eq!(pools, [(PageSize::M2, 16), (PageSize::K4, 8192)]);
        assert_eq!((config.pools[0].ready, config.pools[1].ready), (16, 64));
        assert_eq!((config.slots(), config.processes_max), (10_264, 257));
        assert_eq!(config.check(), Ok(()));
    }

    /// Shares of the paper's and of our design's table.
    #[test]
    fn a_table_costs_what_a_page_size_makes_it_cost() {
        let share = |size: PageSize, spare_percent| {
            let clio = Clio { page_sizes: vec![size], ..clio(Index::Salted, 16, spare_percent) };
            table_share(&clio.board(1 << 30))
        };
        assert_eq!(share(PageSize::K4, 0), "4194304 B, 0.39 % of the memory");
        assert_eq!(share(PageSize::K4, 100), "8388608 B, 0.78 % of the memory");
        assert_eq!(share(PageSize::M4, 100), "8192 B, 0.00 % of the memory");
    }

    /// With 2 slots for each frame a bucket of 16 would need more with a chance of 3.7 in 1000.
    #[test]
    fn scattered_pages_fill_buckets() {
        let full = |index, slots, frames_bytes: u64| {
            let config = clio(index, slots, 100).board(frames_bytes);
            full_buckets(&config, &config.pools[0])
        };
        let buckets = (1u64 << 30) / 4096 * 2 / 16;
        let share = full(Index::Mixed, 16, 1 << 30) / buckets as f64;
        assert!((0.0036..0.0038).contains(&share), "{share}");
        assert!(full(Index::Mixed, 4, 1 << 20) > full(Index::Mixed, 16, 1 << 20));
        assert_eq!(full(Index::Salted, 4, 1 << 30), 0.0);
    }
}
