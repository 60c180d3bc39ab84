//! All tests of hosts in real time in one program: it is linked once.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

mod agents;
mod balloon;
mod balloon_callers;
mod balloon_pools;
#[path = "common/board.rs"]
mod board;
mod bytes;
#[path = "../../tests/certificates.rs"]
mod certificates;
mod clio;
mod clio_boards;
mod clio_fence;
mod clio_link;
mod cowbird;
mod memory;
#[path = "common/pieces.rs"]
mod pieces;
mod region;
mod region_edm;
mod region_faults;
mod region_restarts;
mod region_waits;
#[path = "../../tests/silent.rs"]
mod silent;
mod soft_roce;
mod ways;
