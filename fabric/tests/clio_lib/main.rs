//! Clio's client library and a plain board, in virtual time, over a network that loses, copies, reorders, damages and delays.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

mod board;
mod calls;
mod faults;
mod plants;
mod windows;
mod work;
mod world;
