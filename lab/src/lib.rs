//! A whole rack on this machine: network namespaces, the embedded switch, the host agents, the workload, the
//! figures and the report.
//!
//! `up` owns every process of the rack. Namespaces are anonymous and exist only as long as something holds
//! them open, so nothing is left behind however the run ends.

pub mod bmv2;
pub mod cached;
mod control;
pub mod described;
pub mod edm;
mod ends;
pub mod error;
pub mod hostile;
pub mod keep;
mod kill;
pub mod log_store;
mod measure;
pub mod memory;
pub mod network;
pub mod process;
pub mod progress;
pub mod promises;
pub mod report;
pub mod results;
pub mod rows;
mod running;
pub mod state;
pub mod stats;
pub mod store;
pub mod sys;
pub mod table;
pub mod topology;
mod tors;
pub mod up;
mod usage;
pub mod ways;
pub mod workload;
pub mod worlds;
pub mod ycsb;

pub use error::LabError;
