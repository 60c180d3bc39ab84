//! Shared parts of the event loops of simulated racks.
//!
//! ```text
//!  machine ─ Uplink ─ Wires ─▶ Hub ─ Wires ─▶ machine      Agenda: what happens when; Clock: its ticks, and the machines'
//!                                                          nanoseconds; Wires: jitter and faults of links
//! ```
//!
//! ARCHITECTURE.md lists which loop uses which part. `FrameWorld` stays apart for its lookahead: hosts and switch put
//! frames into each other's future, so events of one time need an order that does not depend on which was simulated
//! first ([`RankedAgenda`](crate::agenda::RankedAgenda)), and links keep the frames that are under way.

mod agenda;
mod clock;
mod due;
mod hub;
mod uplink;
mod wires;

pub(crate) use agenda::Agenda;
pub(crate) use clock::Clock;
pub(crate) use due::Due;
pub use hub::SwitchCounts;
pub(crate) use hub::{Hub, WIRE_BYTES};
pub(crate) use uplink::Uplink;
pub(crate) use wires::{Direction, Wires};
