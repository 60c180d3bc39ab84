//! Key-value stores in cached regions of a pool's memory, as `up`'s workload: index and records are bytes of the region, so the region's
//! policy alone decides which of them are local.
//!
//! ```text
//!  compute node: Client ─ Cached ─ RemoteRegion ─ a way ═▶ memory node          each percentage of local memory opens the region again
//!                                        └─ Joined ─ extents ═▶ boards          by Clio: extents that a balloon lends
//! ```
//!
//! By Clio, a compute node may be killed at the end: its lease ends, and another one gets its extents.

mod claim;
mod client;
mod extents;
mod pool;
pub(crate) mod rack;
mod setup;
mod store;
pub(crate) mod takeover;

pub use client::{ClientTask, Fate, Lending, use_store};
