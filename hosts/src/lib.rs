//! Drivers that give the protocols' state machines real packets.

pub mod agent;
mod metrics;
pub mod report;

pub use agent::{Agent, AgentConfig, AgentError};
