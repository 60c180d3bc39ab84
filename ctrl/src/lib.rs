//! The control plane: sessions with a switch, deploying a rack, PL2's registers, telemetry.
//!
//! ```text
//!  connect     address of a switch, identity, TLS
//!  client      program, entries
//!  bfrt        the same over BFRuntime, for Tofino (link: either of them)
//!  gateway     P4Runtime in front of a switch that speaks BFRuntime
//!  items       table entries, groups, counters … by name
//!  session     arbitration, packets, digests
//!  log         requests as text
//!  counters    the program's counters by name
//!  reconcile   what has to be changed: a pure function (normal: of what is compared, readback: with what)
//!  bmv2        what BMv2 asks for beyond P4Runtime
//!  desired     what a switch should hold
//!  deploy      rack description → program, changes, read back
//!  entries     files with entries (runtime_json: those of the P4 tutorials)
//!  provision   what the switches of a topology should hold
//!  install     another program on a running switch (carry: which of its entities it can hold)
//!  watch       the same, continuously
//!  mgmt        PL2's reservations, by management frames
//!  etcd        where controllers share a description
//!  telemetry   the switch's statistics
//!  generator   packet generators
//!  cowbird     what Cowbird's engine in a switch serves
//!  trace       what a program does with single packets
//!  bench       how fast a server is
//! ```

pub mod bench;
pub mod bfrt;
pub mod bmv2;
mod carry;
pub mod client;
pub mod connect;
mod counters;
pub mod cowbird;
pub mod deploy;
mod desired;
pub mod entries;
mod error;
pub mod etcd;
pub mod gateway;
pub mod generator;
pub mod install;
pub mod items;
mod link;
mod log;
pub mod mgmt;
mod normal;
mod protocol;
pub mod provision;
mod reach;
mod readback;
pub mod reconcile;
pub mod runtime_json;
pub mod session;
pub mod telemetry;
pub mod trace;
pub mod watch;

pub use client::Client;
pub use connect::{ConnectOptions, RoleConfig};
pub use error::{CtrlError, UpdateFailure};
pub use link::Link;
pub use log::RequestLog;
pub use normal::normal;
pub use p4rack_p4rt::values;
pub use protocol::Protocol;
pub use session::Session;
