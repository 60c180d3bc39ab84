//! Racks of compute and memory nodes, message by message.
//!
//! These runs have an event loop of their own. `World` moves Ethernet frames whose bytes a switch reads, in nanoseconds; what
//! is simulated here are blocks of 0.64 ns in the physical layer, which no frame and no pipeline ever sees, and half a
//! million chunks of a trace that are of interest only as intervals on links.
//!
//! ```text
//! workload ─▶ messages ─▶ scheme: exact, pipeline, published, … ─▶ times of each message ─▶ measures ─▶ outcome
//! ```

mod exact;
mod experiment;
mod faults;
mod hostile;
mod lane;
mod latency;
mod measure;
mod message;
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
pub use measure::{Mean, TimesNs};
pub use outcome::{MemoryOutcome, OperationOutcome, run_memory};
pub use programs::{MemoryHost, MemoryRack, SwitchCounts};
pub use spec::{
    EdmSpec, FramingSpec, HostileNodeSpec, Latencies, MemoryScheme, MemorySpec, PacketsSpec, PolicySpec,
};
pub use table1::{Table1, Table1Row};
pub use workload::{KindSpec, MixSpec, WorkloadSpec};
