//! Counters of a mapping.

use crate::region;

/// Counters of pages since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageCounters {
    /// Faults that read.
    pub read_faults: u64,
    /// Faults that wrote, also those of pages in place that were not written before.
    pub write_faults: u64,
    /// Faults that waited for another thread's work on the page.
    pub joined: u64,
    /// Pages filled with zeros, without the region.
    pub zeroed: u64,
    /// Pages filled from the region.
    pub filled: u64,
    /// Pages that came back from the shelf.
    pub restored: u64,
    /// Twins made.
    pub twins: u64,
    /// Pages moved to the shelf.
    pub shelved: u64,
    /// Pages dropped from the shelf.
    pub evicted: u64,
    /// Of them, dirty ones.
    pub evicted_dirty: u64,
    /// Processor time of threads while they had pages leave, for the shelf or the region: an estimate by one of 17 times.
    pub leaving_cpu_ns: u64,
    /// Lines of 64 B that differed from their twin when a page was written back.
    pub changed_lines: u64,
    /// Bytes written to the region.
    pub written_back_bytes: u64,
    /// Pages discarded that had content.
    pub discarded: u64,
}

/// Sizes of a mapping, and its counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappingStatistics {
    /// Bytes of the range.
    pub bytes: u64,
    /// Limit of `local_bytes`.
    pub limit_bytes: u64,
    /// Bytes of pages in place, of copies, and of tables.
    pub local_bytes: u64,
    /// The most that `local_bytes` has been.
    pub local_bytes_max: u64,
    /// Of the limit, tables.
    pub tables_bytes: u64,
    /// Pages in place.
    pub in_place: u64,
    /// Pages on the shelf.
    pub on_shelf: u64,
    /// Counters of pages.
    pub pages: PageCounters,
    /// Of the region behind: blocks here, fetched, written back.
    pub region: region::Statistics,
}
