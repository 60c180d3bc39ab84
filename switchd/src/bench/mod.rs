//! Measurements on this machine: forwarding rate and timer latency.

pub mod forward;
pub mod other;
mod signs;
pub mod timers;
