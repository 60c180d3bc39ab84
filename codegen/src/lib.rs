//! From a rack description to what the switch needs: a P4 program, its table entries, its P4Info
//! and the constants that P4, Rust and Python share.

pub mod rack;

pub use rack::{Rack, RackError, Scheme};
