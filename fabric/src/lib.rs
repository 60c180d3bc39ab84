//! The protocols' state machines, without I/O: bytes and `now` go in, bytes and the next timeout come out. No
//! sockets, no clock, no threads, and no randomness except from a seed.
//!
//! Every machine implements [`Machine`], which defines the order of calls. Those between applications' frames and a link also
//! implement [`HostMachine`]; [`Endpoint`] is one of any such scheme, and each scheme has a module with its own `Endpoint` and
//! `Config`.

pub mod balloon;
pub mod clio;
pub mod common;
pub mod cowbird;
pub mod edm;
mod endpoint;
pub mod ethernet;
pub mod hostile;
mod machine;
pub mod paths;
pub mod pl2;
pub mod remote;
pub mod roce;

pub use endpoint::{Config, Endpoint};
pub use machine::{Event, HostMachine, Machine};
pub use paths::Paths;
