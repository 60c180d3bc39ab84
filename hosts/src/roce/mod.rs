//! Soft-RoCE on real links: an adapter at an interface, the set-up of connections, a memory pool, and its bench.
//!
//! ```text
//!  setup ── gRPC: addresses, queue pairs, keys ──┐
//!                                                ▼
//!  handle ── commands ──▶ Port: Adapter ═ raw socket ═ link
//! ```

pub mod bench;
mod desk;
mod error;
pub mod latency;
mod lease;
mod members;
pub mod pool;
pub mod port;
pub mod setup;
pub mod star;

pub use desk::Desk;
pub use error::SetupError;
pub use lease::Lease;
pub use members::{Member, Members};
pub use p4rack_p4rt::transport::tls;
pub use port::{Loss, PortCounters, RocePort, RocePortError};
