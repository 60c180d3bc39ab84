//! UniMem, and the systems beside it, as the programs of UniMem's authors simulate them (github.com/yijieZ/UniMem, 2024).
//!
//! They differ from the paper and from the other policies here:
//!
//! | | the paper, or the other policies here | the authors' programs |
//! |---|---|---|
//! | UniMem's memory | the stated one | eight times that: the number of blocks is taken as the number of pages |
//! | stated memory | a share of the touched pages' bytes, tables included | the share of the touched pages for policies of pages, of the touched blocks for UniMem; no tables |
//! | Kona's four ways | LRU | FIFO |
//! | Kona-PC | as many pages as fit | one more; the active list may have one more than the inactive one |
//! | inactive list | 10 % at least, all of the cache while it fills | 10 % at most |
//! | refault queue | the last evictions, as many as the cache has blocks | addresses that did not return yet; without promotion 90 % of the blocks |
//! | promotion | scores and their variance, batches of 512 | all blocks of a page are active |
//! | a page that leaves the host | its used blocks return to the device | all blocks are dropped |
//! | host's lists | the active one is never longer than the inactive one | half of the host each |
//! | time of a promotion | 3.9 µs, which accesses wait for | 3.88 ns |
//! | translation | Kona | Kona and Kona-PC |
//! | time | requests wait for the link | the number of events by their latencies |
//! | amplification | one denominator, the touched lines | touched pages, or touched blocks |
//!
//! Write-backs are counted here by correct marks and take no time. The programs charge them in full, but never initialise their
//! marks, so their numbers are partly chance. Their variants with several pairs of lists are not here.
//!
//! These policies may hold a few blocks more than their capacity, because each list's limit is rounded up. They are for
//! simulations only.

mod lists;
mod page_cache;
mod two_lists;
mod unimem;

pub use page_cache::PageCache;
pub use unimem::{NoPromote, UniMem};

/// Events that the authors' programs count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Accesses that waited for a fetch.
    pub faults: u64,
    /// Those of them whose address was in the refault queue.
    pub refaults: u64,
    /// Hits of the active list: of the device, or of Kona-PC.
    pub active_hits: u64,
    /// Hits of the inactive list.
    pub inactive_hits: u64,
    /// Hits of the host's pages.
    pub host_hits: u64,
    /// Pages that moved to the host.
    pub promotions: u64,
    /// Blocks that left the device's lists, or pages that left Kona-PC's.
    pub evictions: u64,
    /// Pages that left the host.
    pub host_evictions: u64,
}
