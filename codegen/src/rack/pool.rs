//! Stores in cached regions, and the pool of memory nodes that holds these.

use serde::{Deserialize, Serialize};

/// Regions with a cache in local memory, each with a client's store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cache {
    /// Local memory of each client in percent of its region, tables included: one after the other, each for an equal part of the
    /// duration.
    pub local_percent: Vec<u32>,
    /// Name of the policy that decides which blocks are local.
    pub policy: String,
    /// Bytes of a block; `None`: the policy's.
    pub block_bytes: Option<u32>,
    /// Name of the spare host for an offload engine.
    pub engine: Option<String>,
    /// Whose memory it is.
    pub pool: Pool,
}

/// Memory nodes whose memory is lent to compute nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pool {
    /// Names of the memory nodes.
    pub memory: Vec<String>,
    /// Bytes of an extent.
    pub extent_bytes: u64,
    /// Seconds for which a compute node that does not renew holds its extents.
    pub lease_s: u32,
}
