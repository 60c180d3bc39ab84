//! The protocols' state machines, without input or output: bytes and `now` go in, bytes and the
//! next timeout come out. No sockets, no clock, no threads, no randomness but from a seed.
//!
//! Every host's machine has the shape of [`HostMachine`]. [`Endpoint`] is one of any scheme; each scheme has a module with an
//! `Endpoint` and a `Config` of its own.

pub mod common;
mod endpoint;
pub mod ethernet;
pub mod hostile;
mod machine;
pub mod pl2;

pub use endpoint::{Config, Endpoint};
pub use machine::{Event, HostMachine};
