//! All tests of the simulator in one program: it is linked once.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

mod cache;
mod cache_rack;
mod clio_faults;
mod clio_rack;
mod cowbird;
mod cowbird_hostile;
mod edm_modes;
mod faults;
mod golden;
mod links;
mod memory_hostile;
#[path = "common/summary.rs"]
mod summary;
mod workloads;
