//! Cowbird's engine as a generated program, on the embedded switch: compute node and pool are Soft-RoCE's adapters, threads use
//! the client library, in virtual time, over links that lose, copy and reorder frames.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;

mod forged;
mod idle;
mod rack;
mod seeds;
mod turns;
