//! EDM under faults: compute nodes, memory nodes and switches that run the generated program, while frames get lost, come
//! twice, late or damaged, nodes fall silent or start again, switches forget what they knew, and a hostile host sends what it likes.
//!
//! ```text
//! clients ─▶ compute nodes ─▶ links with faults ─▶ one switch or two ─▶ links with faults ─▶ memory nodes
//!    └──────▶ history ─▶ is there an order that explains it?
//! ```
//!
//! A seed determines everything: how many switches there are, which faults happen and when, what the clients ask for.

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
