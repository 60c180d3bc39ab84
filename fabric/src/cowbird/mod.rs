//! Cowbird's offload engine on a host (Cowbird-Spot, paper §6), without I/O: it serves sets of compute nodes by RDMA requests
//! to their memory and to memory pools. The rings are described in [`p4rack_wire::cowbird`].
//!
//! ```text
//!               probe, entries, request data          read, write
//!   compute ◀──── READ ──── ┌─────────────────┐ ──── READ, WRITE ────▶ pool
//!    node   ◀─── WRITE ──── │ Engine: an      │
//!        response data, red │ instance a set  │
//!                           └─────────────────┘
//!            poll_request ▼                   ▲ handle_outcome
//!                              RoCE adapter
//! ```
//!
//! All state that matters is in the set itself. An engine that takes over reads green and red block, skips what is done, and
//! does the rest again, first all writes, then reads: each may be done twice, as nobody was told of the first time. The queue
//! pairs of its predecessor have to be gone before, so that nothing of it arrives late.

mod config;
mod engine;
mod instance;
mod operation;
mod set;

pub use config::{Config, Counters};
pub use engine::{Engine, REGIONS_MAX, SetError};
pub use set::{Corruption, Pool, Set, State};
