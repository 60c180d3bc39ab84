//! Boards of Clio as their drivers use them.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

mod allocation;
mod artifact;
mod client;
mod fill;
