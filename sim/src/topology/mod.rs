//! Topologies: several switches with any programs, scripted hosts, and links between them.
//!
//! ```text
//!  experiment.toml ─ TopologyExperiment ◀─ Network: the topology, programs, entries
//!                           │ build
//!                           ▼
//!   TopologyWorld ── Group ── SwitchNode: any program on the switch's core     judge: where all frames have gone
//!                 │        └─ HostNode: senders, receivers                     run, outcome: figures by traffic, flow, link, switch
//!                 └─ Group …  Wires: links between nodes, mail between groups
//! ```
//!
//! The rack of [`world`](crate::world) has one switch in the middle, which one worker runs; here switches are as many as hosts, so
//! any worker runs any node. Links, agendas and buffers are the same.

mod agent;
mod build;
mod check;
#[cfg(test)]
mod copies_tests;
mod counts;
mod experiment;
mod frame;
mod group;
mod host;
mod judge;
#[cfg(test)]
mod loop_tests;
mod memory;
#[cfg(test)]
mod memory_tests;
mod network;
mod outcome;
mod plan;
mod receive;
mod remote;
mod run;
mod segments;
mod sender;
mod spec;
mod stream;
mod switch;
#[cfg(test)]
mod tests;
mod wires;
mod world;

pub use experiment::{Capture, TopologyExperiment, read_capture};
pub use judge::Balance;
pub use network::{LoadTime, Network, Programs, SwitchProgram};
pub use outcome::{
    FlowOutcome, HostCapture, LinkOutcome, OperationsOutcome, SentTraffic, SwitchNodeOutcome, Took,
    TopologyOutcome,
};
pub use run::TopologyRun;
pub use spec::{DelaySpec, SendKind, SenderSpec, TopologySpec};

/// The value of `kind` in such a file.
pub(crate) const KIND: &str = "topology";
