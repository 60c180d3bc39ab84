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
pub use p4rack_fabric::clio::lib::Patience;
pub use p4rack_offload::{KEY_BYTES_MAX, VERSION_BYTES, block_bytes};
pub use session::{AskError, Reply, Session};
pub use setup::{Attached, Wanted, attach};
pub use spread::{BOARDS_MAX, at_board, of_board};

/// Number of the pointer chase among a board's offloads.
pub const CHASE: u64 = 0;
/// Number of the key-value store.
pub const KV: u64 = 1;
