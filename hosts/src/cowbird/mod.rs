//! Cowbird on real links: the engine of a spare host, the compute node whose threads it serves, and how they find each other.
//!
//! ```text
//!  compute node ── Reserve ─▶ pool: memory of its own, and a token for it
//!       │                      ▲
//!       └── Serve: sets, token ─▶ engine ── Attach: token
//! ```
//!
//! Both calls are the compute node's and stay open: they are its leases. The memory outlives the engine, so another engine can
//! go on where one ended; a queue pair that attaches with a token takes the place of the one before, so nothing of a lost
//! engine arrives late.

pub mod hostile;
pub mod node;
pub mod rack;
mod service;
pub mod spot;
pub mod tenant;
pub mod verify;

pub use node::{CowbirdNode, NodeConfig, NodeError, NodeState};
pub use service::{Service, SpotConfig, serve};
pub use spot::{Spot, SpotCounters};
