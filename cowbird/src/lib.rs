//! Cowbird's client library: a thread reads and writes remote memory by loads and stores of its own memory alone; an offload
//! engine moves the data (paper §4). The rings and blocks in that memory are described in [`p4rack_wire::cowbird`].
//!
//! ```text
//!  async_read, async_write ─▶ request ring, request data, green block ─┐
//!                                                                     engine, with RDMA
//!  poll_wait ◀──────────────── response data, red block ◀──────────────┘
//! ```
//!
//! Each thread has a set of its own, so nothing is locked and nothing but loads and stores is needed. Nothing happens in
//! the background.
//!
//! # Memory ordering
//!
//! A set is a slice of atomic words, in the process or mapped from elsewhere. What the library writes for a request is
//! ordered by one store: `request_tail`, with `Release`. The responder that serves the engine's RDMA reads words upwards, each
//! with `Acquire` ([`words::read`]), and the tail is the lowest of the green block. So an engine that knows of a request
//! sees its entry, its data and the rest of the block as they were or later. What the engine writes arrives in the order of
//! its RDMA WRITEs, data before the red block, each word with `Release` ([`words::write`]); the library reads progress with
//! `Acquire` before it reads data. Response data is overwritten only after a request that reserves its place: all the
//! thread's loads of the old data stand before that request's `Release`. On x86-64 these are plain moves.
//!
//! `tests/model.rs` has loom try all interleavings, with these very sources.

mod area;
pub mod bench;
mod client;
#[cfg(test)]
mod client_tests;
mod group;
pub mod words;
#[cfg(test)]
mod words_tests;

/// The atomics. The model replaces them with loom's.
mod sync {
    pub use std::sync::atomic::{AtomicU64, Ordering};
}

pub use area::Area;
pub use client::{BadSet, Client, Data, PollError, Refused, Response};
pub use group::PollId;
pub use p4rack_wire::cowbird::{Kind, Layout, RequestId};
