//! TNA: the way of a packet; `SECOND`: as the second generation has it.
//!
//! ```text
//!           ┌──────── resubmit ───────┐
//!  frame ───┴▶ parser ─ ingress ─ deparser ┬─ queue ─ parser ─ egress ─ deparser ┬─▶ frame
//!    ▲                                     ├─ bypasses egress ───────────────────┤
//!    │                                     └─ clone, copies of groups            ├─ clone
//!    └──────────────── ports that come back ◀────────────────────────────────────┘
//! ```
//!
//! Each parser begins with a header in which the device describes the packet (`prefix`). The frame in a queue is the
//! first deparser's output. Four pipes have 128 port numbers each; a program's pipelines follow each other in the
//! pipes, over and over.

mod arrival;
mod copies;
mod packet_apps;
mod pass;
mod port_data;
mod prefix;
mod queued;
mod replication;

pub(super) use arrival::{arrive, ingress};
pub(crate) use packet_apps::PacketApps;
pub use packet_apps::{PACKET_BUFFER_BYTES, PacketApp, PacketCounts, PacketPort, PacketTrigger};
pub(crate) use port_data::PortData;
pub(super) use queued::egress;
pub(crate) use replication::Engine;
pub use replication::{
    REPLICATION_SET, ReplicationConfig, ReplicationGroup, ReplicationLag, ReplicationMember, ReplicationNode,
    ReplicationPort,
};
