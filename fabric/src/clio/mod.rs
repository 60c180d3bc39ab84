//! Clio: memory disaggregation with virtual addresses at the memory node and no connections (Guo et al., ASPLOS 2022).
//!
//! ```text
//!   applications ─ CLib at a compute node (CN) ── UDP, any network ── Board, the memory node (MN) ─ DRAM
//!                  order, retries, windows                            translation, page faults, allocation
//! ```
//!
//! All state about requests in flight is at the compute node. [`board`] is the memory node, [`token`] the proof that a packet is from a
//! process that the board knows. `p4rack_wire::clio` describes packets and addresses.

pub mod board;
pub mod token;
