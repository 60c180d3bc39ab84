//! EDM, Ethernet disaggregated memory (Su and Shrivastav, ASPLOS 2025): memory messages in the physical layer,
//! scheduled by the switch.
//!
//! Times here are picoseconds, because a block of 66 bits takes 640 of them at 100 Gb/s and a cycle of the
//! scheduler 333.

pub mod blocks;
pub mod host;
pub mod scheduler;
