//! Connections of gRPC servers: one entrance for all of them, a share for each caller, and TLS at both ends.
//!
//! ```text
//!  listener ─ entrance: handshakes with a limit in number and time ─ register: who is let in ─▶ tonic
//!                 └ tls, patience                                     └ visitors ─ shares: what each tenant holds
//! ```

mod entrance;
mod patience;
mod shares;
pub mod tls;
mod visitors;

pub use entrance::{Caller, Entrance, Guest, Register, Tenant, handles_max};
pub use shares::{Full, Share, Shares};
pub use visitors::{Visitor, Visitors};

/// The innermost cause of an error. The outermost one of gRPC only says that the transport failed.
pub fn innermost(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
