//! Measurements on this machine: how fast frames are forwarded, how late timers wake.

pub mod forward;
pub mod other;
mod signs;
pub mod timers;
