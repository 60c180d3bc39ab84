//! Cowbird's client library: a thread reads and writes remote memory by loads and stores of its own memory alone; an offload
//! engine moves the data (paper §4). The rings and blocks in that memory are described in [`p4rack_wire::cowbird`].
//!
//! ```text
//!  async_read, async_write ─▶ request ring, request data, green block ─┐
//!                                                                     engine, with RDMA
//!  poll_wait ◀──────────────── response data, red block ◀──────────────┘
//! ```
//!
//! Each thread has a set of its own, so the library needs only loads and stores, no locks and no background work.
//!
//! # Memory ordering
//!
//! A set is a slice of atomic words, in the process or mapped from elsewhere. One store publishes everything that
//! the library writes for a request: `request_tail`, with `Release`. The responder that serves the engine's RDMA reads words upwards, each
//! with `Acquire` ([`words::read`]), and the tail is the lowest of the green block. So an engine that sees a request's tail
//! also sees its entry, its data and the rest of the block as of then or later. The engine's writes arrive in the order of
//! its RDMA WRITEs, data before the red block, each word with `Release` ([`words::write`]); the library reads progress with
//! `Acquire` before it reads data. Response data is overwritten only after a request that reserves its place: all the
//! thread's loads of the old data precede that request's `Release`. On x86-64 these are plain moves.
//!
//! In `tests/model.rs` loom explores all interleavings of these sources.

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
