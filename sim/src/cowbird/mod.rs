//! Racks of a compute node, a memory pool, a spare host and a switch: Cowbird, and the schemes that its paper compares it with.
//!
//! The machines are the real ones: adapters (`fabric::roce`), the client library, the engine on a spare host, or the generated
//! program with the engine in it, which executes each frame. Times of processors, PCIe, adapters and links are modelled. Every
//! record that arrives is checked.
//!
//! ```text
//! experiment ─▶ world: threads, adapters, switch, engine's cores or servers ─▶ outcome
//! ```

mod competing;
mod connect;
mod costs;
mod experiment;
mod links;
mod nic;
mod outcome;
mod program;
mod programs;
mod rack;
mod records;
mod redy;
mod server;
mod spot;
#[cfg(test)]
mod tests;
mod thread;
mod world;

pub use costs::{CpuSpec, NicSpec as CowbirdNicSpec, P4Spec, RedySpec, SpotSpec};
pub use experiment::{
    CompetingClass, CompetingSpec, CowbirdExperiment, CowbirdScheme, CowbirdSpec, HostileComputeSpec, KIND,
};
pub use outcome::{CowbirdOutcome, LinkShare, run_cowbird};
pub(crate) use programs::CowbirdPrograms;
