//! Racks of compute nodes and boards of Clio, and the schemes that its paper compares it with.
//!
//! The machines are the real ones: the board, the client library, the hosts' machines below them, the generated program of the switch.
//! The times of a board's stages, of libraries and of adapters are modelled ([`costs`]), and so are the baselines ([`modelled`]). Each
//! read's bytes are checked, if the memory keeps its contents.
//!
//! ```text
//! experiment ─┬▶ setup: boards, processes, memory ─▶ world: threads, libraries, switch, boards ─▶ outcome
//!             └▶ fill: a board without a rack, allocations until its memory is full ─────────────────▲
//! ```

mod board;
mod compute;
mod costs;
mod direct;
mod experiment;
mod faults;
mod fill;
mod memory;
mod modelled;
mod offload;
mod outcome;
mod outside;
mod programs;
mod rack;
mod setup;
mod shared;
mod sizes;
mod spec;
mod world;

pub use board::Translations;
pub use costs::{
    BoardCosts, BoardSpec, ComputeCosts, ComputeSpec, Profile, RdmaCosts, RdmaSpec, SlowCosts, SlowSpec,
};
pub(crate) use direct::Direct;
pub use experiment::ClioExperiment;
pub use faults::{ClioPlant, run_clio_faults};
pub use fill::FillOutcome;
pub(crate) use memory::{KEPT_BYTES, SimMemory};
pub use outcome::{ClioOutcome, TableCost, run_clio};
pub use programs::{StoreBoard, StoreOutcome, StoreRack};
pub(crate) use rack::{End, datagram};
pub(crate) use setup::secret;
pub(crate) use shared::ClioPrograms;
pub use spec::{
    ClibSpec, ClioScheme, ClioSpec, FillSpec, KIND, Load, NetworkScheme, NetworkSpec, Order, TableSpec, Walk,
};
