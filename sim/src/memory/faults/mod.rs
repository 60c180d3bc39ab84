//! EDM under faults: compute nodes, memory nodes and switches that run the generated program, while frames are lost, duplicated,
//! delayed or damaged, nodes fall silent or restart, switches lose their state, and a hostile host sends arbitrary frames.
//!
//! ```text
//! clients ─▶ compute nodes ─▶ links with faults ─▶ one switch or two ─▶ links with faults ─▶ memory nodes
//!    └──────▶ history ─▶ is there an order that explains it?
//! ```
//!
//! A seed determines everything: the number of switches, the faults and their times, the clients' operations.

mod account;
mod breaks;
mod client;
mod faulty;
mod hostile;
mod links;
mod plant;
mod probe;
mod rack;
mod world;
mod writes;

pub use plant::Plant;
pub use rack::FaultsRack;
pub use world::FaultsOutcome;
