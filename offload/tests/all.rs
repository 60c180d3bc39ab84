//! All tests of offloads in one program: it is linked once.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

mod common;
mod offloads;
mod store_faults;
mod wasm;
