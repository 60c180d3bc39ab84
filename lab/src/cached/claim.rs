//! A compute node's share of a pool.

use serde::{Deserialize, Serialize};

/// An extent, and since when a compute node has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Claim {
    /// Number of the memory node.
    pub node: u16,
    /// Offset in the node's part of the pool.
    pub start: u64,
    /// Its bytes.
    pub bytes: u64,
    /// When the compute node had it, on the monotonic clock.
    pub since_ns: u64,
}

impl Claim {
    /// Whether the two extents overlap.
    pub(super) fn meets(&self, other: &Claim) -> bool {
        self.node == other.node
            && self.start < other.start + other.bytes
            && other.start < self.start + self.bytes
    }

    /// Whether both are the same extent.
    pub(super) fn is_same(&self, other: &Claim) -> bool {
        (self.node, self.start, self.bytes) == (other.node, other.start, other.bytes)
    }
}
