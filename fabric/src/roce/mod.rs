//! Soft-RoCE: the reliable connection of RoCEv2 (InfiniBand Architecture 1.4, chapter 9), without I/O.
//!
//! ```text
//!                      ┌────────────────────────── Adapter ──────────────────────────┐
//!   handle_request ──▶ │  Requester ─┐                              ┌─▶ Responder ─┐ │ ◀── handle_receive
//!                      │  (one each  │  poll_link       handle_link │   (one each  │ │
//!                      │  queue pair)└──────▶ frames ─▶ ═ ─▶ frames ┘   queue pair)▼ │
//!   poll_completion ◀─ │                                                     Memory  │
//!                      └─────────────────────────────────────────────────────────────┘
//! ```
//!
//! SEND, RDMA WRITE and READ, compare and swap, fetch and add. The machines recover from loss, copies, reordering and
//! corruption: requests complete in order, and each is executed once. The formats are in [`p4rack_wire::roce`].

mod adapter;
mod config;
mod memory;
mod ready;
mod requester;
mod reservations;
mod responder;
mod timer;

pub use adapter::{Adapter, Completion, Counters, PairError};
pub use config::{BadConfig, Config, Connection};
pub use memory::{
    Access, Denied, Modify, Region, RegionError, Regions, RegisteredMemory, RemoteAddress, Rights,
};
pub use ready::Party;
pub use requester::{Counters as RequesterCounters, Failure, Outcome, Refused, Request, Requester};
pub use reservations::{Offer, Reservation, Reservations, Token, Unreserved};
pub use responder::{Counters as ResponderCounters, ReceiveRefused, Received, Responder};
