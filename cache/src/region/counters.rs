//! Counters of a region, by tier.

/// Counters since the start. Accesses are block by block: one of several blocks counts for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Accesses to blocks in the host's pages.
    pub from_host: u64,
    /// Accesses to other local blocks.
    pub from_device: u64,
    /// Accesses to blocks that were absent.
    pub from_remote: u64,
    /// Of them, those that wrote all of the block, and needed no fetch.
    pub overwritten: u64,
    /// Accesses that waited for a fetch under way.
    pub joined: u64,
    /// Accesses to blocks that were leaving and stayed.
    pub rescued: u64,
    /// Blocks fetched.
    pub fetched: u64,
    /// Of them, by [`prefetch`](super::Residency::prefetch).
    pub prefetched: u64,
    /// Prefetched blocks that were used.
    pub prefetched_used: u64,
    /// Prefetched blocks that were dropped unused.
    pub prefetched_unused: u64,
    /// Blocks dropped by the policy.
    pub evicted: u64,
    /// Blocks written back.
    pub written_back: u64,
    /// Pages that moved to the host.
    pub promoted: u64,
}

impl Counters {
    /// All accesses.
    pub fn accesses(&self) -> u64 {
        self.from_host + self.from_device + self.from_remote + self.joined
    }

    /// Accesses that waited for a fetch.
    pub fn waited(&self) -> u64 {
        self.from_remote - self.overwritten + self.joined
    }
}
