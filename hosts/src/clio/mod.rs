//! A board of Clio on a UDP socket, and how programs become its clients. Neither needs root.
//!
//! ```text
//!  setup ═ gRPC: process, token, range ═ service
//!                                           │ commands
//!  session, kv ─ link: Client ═ UDP ══▶ server: Board ─ offloads
//! ```

mod arrivals;
mod background;
mod clients;
mod costs;
mod error;
pub mod hostile;
mod kv;
pub(crate) mod link;
mod manage;
mod memory;
mod names;
mod offloads;
mod port;
mod room;
pub mod server;
pub mod service;
mod session;
mod setup;
mod spread;
mod threads;
mod turn;
pub mod verify;

pub use error::ClioError;
pub use kv::{Kv, KvError, KvOutcome, KvRefused, KvRequest, KvShape, results_bytes_max};
pub use manage::{list, list_offloads, load_offload, remove_offload};
pub use p4rack_offload::{KEY_BYTES_MAX, VERSION_BYTES, block_bytes};
pub use session::{AskError, Reply, Session};
pub use setup::{Attached, Wanted, attach};
pub use spread::{BOARDS_MAX, at_board, of_board};

use p4rack_fabric::clio::lib;
use p4rack_wire::Nanos;

/// Number of the pointer chase among a board's offloads.
pub const CHASE: u64 = 0;
/// Number of the key-value store.
pub const KV: u64 = 1;

/// Timeouts and retries of a client on a host, and its target delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// TIMEOUT: time without an answer after which a packet is sent again.
    pub timeout: Nanos,
    /// Maximum retries. With long TIMEOUTs, the board's memory permits fewer.
    pub retries: u8,
    /// Delay in queues up to which the congestion window grows.
    pub target_delay: Nanos,
}

impl Default for Patience {
    /// Enough for processes that share a machine and wake late, which looks like a queue.
    fn default() -> Patience {
        Patience { timeout: Nanos::from_millis(20), retries: 12, target_delay: Nanos::from_millis(20) }
    }
}

/// Parameters of a client on a host, beside a board that remembers for `memory`.
pub fn client_config(patience: Patience, memory: Nanos, mtu_bytes: u32) -> lib::Config {
    let us = Nanos::from_micros;
    let timeout_max = Nanos(memory.0 / 3);
    lib::Config {
        // Pieces of a store's records share pages.
        granule: lib::Granule::Byte,
        requests_max: 1_024,
        thread_requests_max: 1_024,
        mtu_bytes,
        timeout: timeout_max.min(patience.timeout),
        timeout_max,
        memory,
        retries: patience.retries,
        slow_timeout: timeout_max,
        silence: timeout_max,
        busy_wait: us(50),
        base: us(100),
        queueing: patience.target_delay,
        // As many packets as a socket's buffer holds.
        cwnd_max: 64,
        ..lib::Config::default()
    }
}
