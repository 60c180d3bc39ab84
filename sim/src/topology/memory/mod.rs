//! Remote memory in a network: what a flow does with its part of another host's memory, and the machines of both hosts.
//!
//! ```text
//!  Client: Operations ─┬─ EdmNode ─ frames beside the agent, within a rack ─▶ EdmNode
//!     Cells: contents  └─ Library ─ packets of UDP, from anywhere ─────────▶ Board
//! ```
//!
//! Each flow has its part of the memory for itself and knows what each byte of it has to be, so every read is checked.

mod board;
mod cells;
mod check;
mod client;
mod counts;
mod machines;
mod node;
mod operations;
mod reach;
mod setup;

pub(super) use board::packet;
pub(super) use check::{check, check_hosts, region_bytes};
pub(super) use client::Client;
pub(super) use counts::Operated;
pub(super) use machines::Machines;
pub(super) use operations::{Ended, Pace};
pub(super) use reach::udp_port;
pub(super) use setup::{Setup, Wanted};
