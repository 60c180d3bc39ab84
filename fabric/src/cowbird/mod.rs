//! Cowbird's offload engine on a host (Cowbird-Spot, paper §6), without I/O: it serves the sets of compute nodes with RDMA
//! requests to their memory and to memory pools. The rings are described in [`p4rack_wire::cowbird`].
//!
//! ```text
//!               probe, entries, request data          read, write
//!   compute ◀──── READ ──── ┌─────────────────┐ ──── READ, WRITE ────▶ pool
//!    node   ◀─── WRITE ──── │ Engine: an      │
//!        response data, red │ instance a set  │
//!                           └─────────────────┘
//!               poll_link ▼                   ▲ handle_link
//!                              RoCE adapter
//! ```
//!
//! All state that matters is in the set itself. An engine that takes over reads the green and the red block, skips completed
//! requests, and repeats the rest, first all writes, then reads. A request may be executed twice, since its first completion was
//! never reported. The predecessor's queue pairs must be removed first, so that nothing of it arrives late.

mod config;
mod engine;
#[cfg(test)]
mod engine_tests;
mod instance;
mod operation;
mod set;

pub use config::{Config, Counters};
pub use engine::{Engine, REGIONS_MAX, SetError};
pub use set::{Corruption, Pool, Set, State};
