//! The balloon: lends extents of a pool of several memory nodes to compute nodes (UniMem's Remote-Balloon, paper §3.1), without I/O.
//!
//! ```text
//!   compute nodes ── Request ──▶ ┌─────────┐ ── Command ──▶ memory nodes: Node, above a Memory
//!                 ◀── Reply ──── │ Balloon │ ◀─ Answer ────
//!                                └─────────┘
//! ```
//!
//! An extent has a power of two of bytes and one holder, so pages are never shared. The paper says nothing of failures. Here a compute
//! node has a lease, and an extent that its holder has lost is taken from it at the memory node before anything else happens to it:
//!
//! ```text
//!            Reserve: first fit              Granted                 Online
//!   free ───────────────────────▶ granting ──────────▶ lent, offline ──────▶ lent, online
//!    ▲                               │                   │     ▲  Offline: the     │
//!    │ Zeroed                        │ no answer         │     └─ holder has moved ┘
//!    │                               │ or refused        │        its data away    │
//!   zeroing ◀──── Fenced ── fencing ◀┴───────────────────┴── Return, lease ended ──┘ lease ended
//! ```
//!
//! - **Fencing** revokes the keys of the extent at its node, which refuses later writes of the former holder. Only then
//!   is the extent zeroed, and only then it is free. A node that does not answer keeps the extent out of use.
//! - **Every grant and every fence has an [`Epoch`]** of its own, larger than all before. A node refuses a command with
//!   a smaller epoch than the last one for these bytes, so commands may be lost, late, repeated and reordered.
//! - **The service keeps nothing.** When it starts, it joins the nodes, which report their extents and the holders. Its
//!   [`Term`] is larger than that of the services before it, whose commands no node takes any longer. A service that
//!   learns of a larger term has ended.
//! - **A memory node that restarts** is another instance. Its extents are lost, and their holders learn so when they
//!   renew.
//! - **A memory node has one number** in a term. Joined under a second one, it refuses: its bytes would be lent twice.
//! - **A memory node that is to go offline** lends nothing more. Holders learn it when they renew, reserve another extent, copy their
//!   bytes, and return the old one, which is fenced and zeroed as any. Their limits don't count what is to move.
//! - **Requests may be repeated.** A Reserve has a number, and the same number gives the same extent.

/// Whether a test has planted this bug; never outside of tests.
#[cfg(test)]
macro_rules! planted {
    ($of:expr, $plant:ident) => {
        $of.plant == Some($crate::balloon::plant::Plant::$plant)
    };
}
#[cfg(not(test))]
macro_rules! planted {
    ($of:expr, $plant:ident) => {
        false
    };
}

mod config;
mod counters;
mod free;
mod message;
mod node;
#[cfg(test)]
mod plant;
mod pool;
mod service;
#[cfg(test)]
mod tests;

pub use config::{Config, Quota};
pub use counters::Counters;
pub use message::{
    ACCESS_BYTES_MAX, Access, Answer, Ask, Command, Lent, Order, Refusal, Reply, Report, Reported, Request,
    Told, Why,
};
pub use node::{Memory, Node};
pub use pool::{OnPool, PoolExtents};
pub use service::{Balloon, End, ExtentFacts, HolderFacts, MemoryFacts, NodeFacts, Received, Sent, State};

use std::fmt;

/// Bytes of the smallest extent. Extents begin at multiples of it.
pub const EXTENT_BYTES_MIN: u64 = 2 << 20;
/// Bytes of the largest extent.
pub const EXTENT_BYTES_MAX: u64 = 1 << 30;
/// Maximum bytes that a node has.
pub const NODE_BYTES_MAX: u64 = 1 << 50;

/// Orders the services of a pool: first by number, then by service. No two services have the same term, even if their clocks agree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Term {
    /// Larger than those of the services before, such as the time of the start.
    pub number: u64,
    /// Identity of the service: random, drawn at its start.
    pub service: u64,
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{:x}", self.number, self.service)
    }
}

/// Orders all grants and fences of a pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch {
    /// Of the service that gave it.
    pub term: Term,
    /// Among those of this service.
    pub number: u64,
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.term, self.number)
    }
}

/// A compute node, from its start to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Session {
    /// Number of the compute node.
    pub holder: u32,
    /// Which start of it: larger than all before, such as the time at which it started. One whose lease has ended needs a larger one, too.
    pub instance: u64,
}

/// Where an extent begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Number of the memory node.
    pub node: u16,
    /// Offset in the node's part of the pool, a multiple of [`EXTENT_BYTES_MIN`].
    pub start: u64,
}

/// An extent that was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Extent {
    /// Where it begins.
    pub place: Place,
    /// A power of two, [`EXTENT_BYTES_MIN`] to [`EXTENT_BYTES_MAX`].
    pub bytes: u64,
    /// Of its grant.
    pub epoch: Epoch,
}

/// Whether an extent can have this many bytes.
pub fn is_extent(bytes: u64) -> bool {
    bytes.is_power_of_two() && (EXTENT_BYTES_MIN..=EXTENT_BYTES_MAX).contains(&bytes)
}
