//! All tests of policies in one program: it is linked once.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

mod against_references;
mod artifact;
mod common;
mod promises;
mod reference;
