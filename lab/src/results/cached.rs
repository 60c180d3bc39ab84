//! Figures of stores in cached regions.

use serde::{Deserialize, Serialize};

/// Counters of all clients' regions under a mix.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct CacheResult {
    /// Local memory in percent of the region.
    pub local_percent: u32,
    /// Share of uses of blocks that found them local.
    pub hit_share: f64,
    /// Bytes fetched.
    pub fetched_bytes: u64,
    /// Bytes written back.
    pub written_back_bytes: u64,
    /// Both, for each operation.
    pub moved_bytes: f64,
    /// Local memory of a client, blocks and tables: the most of all.
    pub local_bytes: u64,
    /// Its limit.
    pub limit_bytes: u64,
}

/// Fate of the extents of a killed client.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Takeover {
    /// Host of the client.
    pub host: String,
    /// Host of the client that got them.
    pub by: String,
    /// Number of the extents.
    pub extents: u64,
    /// Of them, those that the other client had in the end.
    pub taken: u64,
    /// Time from the kill until it had the last of them; `None`: it did not get all.
    pub after_ms: Option<u64>,
    /// Time for which a client that does not renew holds extents.
    pub lease_ms: u64,
    /// Bytes in extents that the other client got that were not zero.
    pub foreign_bytes: u64,
    /// Bytes of them that were not read again as the other client wrote them.
    pub unlike_bytes: u64,
    /// Pairs of extents that shared bytes and were held at the same time.
    pub owned_twice: u64,
}
