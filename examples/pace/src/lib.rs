//! Pace: a scheme of its own, outside of p4rack's crates. docs/protocol-author.md builds it step by step.
//!
//! A host requests a grant of the switch before it sends to a destination. The switch keeps one time per port, until
//! which the port's link is promised. It answers with the wait until then, and promises the link for as long as the
//! frames take:
//!
//! ```text
//!  h2 ── ask, 64 frames to h1 ──▶ switch: promised_until[h1] += 64 slots
//!  h2 ◀─ grant, wait 79 ms ─────
//!  h2 ── 79 ms later: 64 frames ─▶ h1
//! ```
//!
//! So an incast waits in the hosts that cause it, and the switch's buffer stays nearly empty.

mod generator;
mod host;
mod simulator;

pub use generator::{Definition, Pace};
pub use host::{Config, Host};
pub use simulator::{Outcome, SimError, incast};

p4rack_wire::header! {
    /// A request, and the switch's answer to it.
    Frame = "pace_t" {
        /// 1: a request; 2: a grant
        kind / "kind": u8 = 8;
        /// frames that the host wants to send
        frames / "frames": u8 = 8;
        /// number of the request; its grant has the same
        id / "id": u16 = 16;
        /// in a grant: nanoseconds to wait before the first of these frames
        wait_ns / "wait": u32 = 32;
    }
}

/// [`Frame::kind`] of a request.
pub const ASK: u8 = 1;
/// [`Frame::kind`] of a grant.
pub const GRANT: u8 = 2;
/// EtherType of requests and grants.
pub const ETHER_TYPE: p4rack_wire::EtherType = p4rack_wire::EtherType(0x88b7);
