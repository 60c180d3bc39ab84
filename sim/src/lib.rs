//! The rack in virtual time: the generated P4 on the embedded switch's core and the hosts' own
//! machines, under one clock of nanoseconds. The measured programs and machines are those
//! installed.
//!
//! ```text
//! experiment.toml ─ Experiment::parse ─▶ run ─▶ Outcome (JSON), captures, one message's way
//! ```
//!
//! Nothing here reads a clock or a file: the same text and seed give the same bytes.

mod agenda;
mod cache;
mod check;
#[cfg(test)]
mod check_tests;
mod clio;
mod cowbird;
mod crew;
#[cfg(test)]
mod crew_tests;
mod experiment;
mod flow;
mod frames;
mod host;
mod hostile;
#[cfg(test)]
mod hostile_tests;
mod kernel;
mod kind;
mod latency;
mod link;
mod memory;
mod message;
mod outcome;
mod random;
mod record;
mod requests;
mod schedule;
mod scheme;
mod sizes;
mod sweep;
mod switch;
mod topology;
mod trace;
mod traffic;
mod transport;
mod world;
mod ycsb;

pub use cache::{CacheExperiment, CacheOutcome, CachePlant, CacheRackSpec, CacheSpec, Gathered, RackOutcome};
pub use check::Verdict;
pub use clio::{
    BoardCosts, BoardSpec, ClibSpec, ClioExperiment, ClioOutcome, ClioPlant, ClioScheme, ClioSpec,
    ComputeCosts, ComputeSpec, FillOutcome, FillSpec, Load, NetworkScheme, NetworkSpec, Order, Profile,
    RdmaCosts, RdmaSpec, SlowCosts, SlowSpec, StoreBoard, StoreOutcome, StoreRack, TableCost, TableSpec,
    Translations, Walk, run_clio, run_clio_faults,
};
pub use cowbird::{
    CompetingClass, CompetingSpec, CowbirdExperiment, CowbirdNicSpec, CowbirdOutcome, CowbirdScheme,
    CowbirdSpec, CpuSpec, HostileComputeSpec, LinkShare, P4Spec, RedySpec, SpotSpec, run_cowbird,
};
pub use crew::{Alone, Crew};
pub use experiment::{
    Arrivals, Experiment, ExperimentError, FailSpec, HostileSpec, LinkSpec, LoadIn, MachineLocation,
    NO_ATTACK, NicSpec, PaperSpec, Pattern, RackSpec, SchemeKind, SchemeSpec, SizeSpec, Spec, TimedFrom,
    TrafficSpec, Ycsb,
};
pub use hostile::OthersOutcome;
pub use kernel::SwitchCounts;
pub use kind::{ExperimentKind, kind_of};
pub use latency::Latency;
pub use link::{Faults, LinkStats};
pub use memory::{
    EdmSpec, FaultsOutcome, FaultsRack, FramingSpec, HostileNodeSpec, KindSpec, Latencies, Mean,
    MemoryExperiment, MemoryHost, MemoryNicSpec, MemoryOutcome, MemoryRack, MemoryScheme, MemorySpec,
    MixSpec, OperationOutcome, PacketsSpec, Plant, PolicySpec, Table1, Table1Experiment, Table1Row, TimesNs,
    WorkloadSpec, run_memory,
};
pub use outcome::{
    Compared, ControlOutcome, Decile, Outcome, SwitchOutcome, TrafficOutcome, figure, run, run_with_crew,
};
pub use random::{Between, Distribution, Random};
pub use record::{FRAMES_MAX, Point, Recorder, Sight, Step};
pub use sweep::{Ratio, Sweep, Task, TaskResult, base_of};
pub use switch::SwitchError;
pub use topology::{
    Balance, Capture, DelaySpec, FlowOutcome, HostCapture, LinkOutcome, LoadTime, Network, OperationsOutcome,
    Programs, SendKind, SenderSpec, SentTraffic, SwitchNodeOutcome, SwitchProgram, Took, TopologyExperiment,
    TopologyOutcome, TopologyRun, TopologySpec, read_capture,
};
pub use trace::{Entry, Trace};
pub use transport::{Transport, TransportSpec};
pub use world::SimError;
pub use ycsb::Zipf;
