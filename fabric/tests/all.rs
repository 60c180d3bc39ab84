//! All tests of the host machines in one program: it is linked once.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

mod clio;
mod clio_lib;
mod machines;
mod pl2_backlog;
mod pl2_time;
mod pl2_unsolicited;
mod roce;
