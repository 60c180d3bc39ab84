//! Racks of compute and memory nodes, message by message.
//!
//! Each scheme has an event loop, on the kernel that racks with remote memory share (see [`crate::kernel`]).
//!
//! ```text
//! workload ─▶ messages ─▶ scheme: exact, pipeline, published, … ─▶ times of each message ─▶ measures ─▶ outcome
//! ```

mod exact;
mod experiment;
mod faults;
mod host;
mod hostile;
mod lane;
mod latency;
mod measure;
mod message;
mod messages;
mod mux;
mod outcome;
mod packets;
mod pipeline;
mod programs;
mod published;
mod spec;
mod table1;
#[cfg(test)]
mod tests;
mod workload;

pub use experiment::{KIND, MemoryExperiment};
pub use faults::{FaultsOutcome, FaultsRack, Plant};
pub(crate) use host::EdmHost;
pub use measure::{Mean, TimesNs};
pub use outcome::{MemoryOutcome, OperationOutcome, run_memory};
pub(crate) use pipeline::EdmPrograms;
pub use programs::{MemoryHost, MemoryRack};
pub use spec::{
    EdmSpec, FramingSpec, HostileNodeSpec, Latencies, MemoryNicSpec, MemoryScheme, MemorySpec, PacketsSpec,
    PolicySpec,
};
pub use table1::{KIND as TABLE_KIND, Table1, Table1Experiment, Table1Row};
pub use workload::{KindSpec, MixSpec, WorkloadSpec};
