//! All tests of headers in one program: it is linked once.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

mod dissector;
mod roce_frames;
mod round_trip;
