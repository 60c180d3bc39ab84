//! All tests of the front end in one program: it is linked once.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

mod aggregates;
mod common;
mod constructs;
mod fit;
mod limits;
mod p4info;
mod refusals;
mod robust;
mod syntax;
mod tna;
