//! Hosts in several pipes of a chip under EDM: what asks for time in another pipe visits the clock there, and the lane of its
//! message in the pipe by which data comes in.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;

mod grants;
mod hosts;
mod lanes;
mod lost;
mod rack;
mod registers;
