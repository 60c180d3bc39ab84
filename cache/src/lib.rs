//! Policies of a cache of remote memory: they decide which blocks to fetch, drop and write back. No I/O, no clock.
//!
//! ```text
//!            access(block, write)                 actions, in order
//!  driver ───────────────────────▶ Policy ──────────────────────────▶ driver: requests to remote memory, copies
//!                                    │
//!                                    └─ Served: from host memory, from device memory, from remote memory
//! ```
//!
//! Remote memory is an array of blocks of equal size, numbered from 0. A policy knows numbers only; bytes, requests and
//! latencies are the driver's. [`POLICIES`] lists all policies. A new one is a module that implements [`Policy`] and a line there.
//!
//! Memory of a policy is allocated when it is made. An access takes constant time, some policies' amortised, and allocates nothing.

mod actions;
mod arc;
mod arena;
pub mod artifact;
mod belady;
mod counts;
mod filter;
mod ghosts;
mod kona;
mod lists;
mod lru;
mod page_cache;
mod pages;
pub mod region;
mod registry;
mod ring;
mod runs;
mod s3_fifo;
mod shape;
mod sieve;
pub mod simulate;
mod tiny_lfu;
mod two_q;
mod unimem;

pub use actions::{Action, Actions, MAX_ACTIONS};
pub use registry::{ARTIFACT, Build, Counting, Definition, PARTS, POLICIES, find, simulated};
pub use runs::Parts;
pub use shape::{FOOTPRINT_MAX, Refused, Shape};

/// Bytes of a page.
const PAGE_BYTES: u32 = 4096;
/// Most blocks of a page, of 64 bytes each.
const PAGE_BLOCKS_MAX: u32 = 64;

/// Number of a block of remote memory.
pub type Block = u32;

/// A policy, or why it can't serve a shape.
pub type Opened = Result<Box<dyn Policy>, Refused>;

/// Memory that served an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Served {
    /// Memory of the host: whole pages.
    Host,
    /// Memory of the device: single blocks. All local memory is this if a policy has one tier.
    Device,
    /// Remote memory: the access waits for its fetch.
    Remote,
}

/// A policy of a cache of remote memory.
///
/// A driver calls [`access`](Policy::access) for each access and carries out the actions in their order. Afterwards the block
/// is local. The cache never holds more blocks than its capacity, not even between two actions.
pub trait Policy: Send {
    /// An access to `block`, which is below [`Shape::footprint`]. `actions` is cleared first.
    fn access(&mut self, block: Block, write: bool, actions: &mut Actions) -> Served;

    /// Bytes of the policy's own tables.
    fn metadata_bytes(&self) -> u64;
}
