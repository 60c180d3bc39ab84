//! Drivers that connect the protocols' state machines to real packets.

pub mod agent;
pub mod balloon;
pub mod clio;
mod commands;
pub mod cowbird;
mod frames;
pub mod memory;
mod metrics;
pub mod outlet;
pub mod paging;
pub mod region;
pub mod remote;
pub mod report;
pub mod roce;
mod runtime;

pub use agent::{Agent, AgentConfig, AgentError};
pub use commands::{Gone, Handle};
