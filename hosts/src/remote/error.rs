//! Errors of opening or using a way to remote memory.

use super::Status;
use crate::clio::ClioError;
use crate::commands::Gone;
use crate::cowbird::NodeError;
use crate::cowbird::rack::RackError;
use crate::memory;
use crate::roce::{RocePortError, SetupError};
use p4rack_fabric::roce::PairError;

/// Why remote memory can't be used.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// The rack did not start.
    #[error(transparent)]
    Rack(#[from] RackError),
    /// The compute node did not start.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// An adapter failed.
    #[error(transparent)]
    Port(#[from] RocePortError),
    /// A set-up failed.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// A queue pair was refused.
    #[error(transparent)]
    Pair(#[from] PairError),
    /// A board of Clio failed.
    #[error(transparent)]
    Clio(#[from] ClioError),
    /// A node of EDM failed.
    #[error(transparent)]
    Edm(#[from] memory::EdmPortError),
    /// A node of EDM failed after its start.
    #[error(transparent)]
    EdmGone(#[from] memory::Error),
    /// A thread has ended.
    #[error(transparent)]
    Gone(#[from] Gone),
    /// A namespace can't be entered.
    #[error(transparent)]
    Device(#[from] p4rack_netdev::Error),
    /// A system call failed.
    #[error(transparent)]
    System(#[from] std::io::Error),
    /// The place lacks a field that the way needs.
    #[error("this way needs {0}")]
    Lacks(String),
    /// An essential operation failed.
    #[error(transparent)]
    Failed(#[from] Status),
    /// The other end violates the protocol.
    #[error("{0}")]
    Broken(String),
}
