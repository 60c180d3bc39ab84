//! All tests of entities of P4Runtime in one program: it is linked once.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

mod restrictions;
mod rules;
mod shown;
mod state;
