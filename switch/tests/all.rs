//! All tests of the switch's core in one program: it is linked once.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

mod common;
mod congestion;
mod generator;
mod native;
mod nowhere;
mod packet_apps;
mod programs;
mod replication;
mod robust;
mod tna;
mod tracing;
