//! Compute node, engine and pool in virtual time, over a network that loses, copies, reorders and corrupts frames.

#![allow(clippy::unwrap_used)]

mod corruption;
mod losses;
mod rack;
mod seeds;
