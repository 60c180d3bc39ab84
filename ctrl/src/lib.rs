//! The control plane: sessions with a switch, deploying a rack, PL2's registers, telemetry.
//!
//! ```text
//!  session     connection, arbitration, packets
//!  client      program and entries
//!  counters    the program's counters by name
//!  deploy      rack description → program, entries, read back
//!  mgmt        PL2's reservations, by management frames
//!  telemetry   the switch's statistics
//!  generator   packet generators
//!  bench       how fast a server is
//! ```

pub mod bench;
pub mod client;
mod counters;
pub mod deploy;
mod error;
pub mod generator;
pub mod mgmt;
pub mod session;
pub mod telemetry;

pub use error::{CtrlError, UpdateFailure};
pub use session::{Session, Target};
