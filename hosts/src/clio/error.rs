//! Why a board can't be used.

use crate::roce::SetupError;

/// Why a client of a board does not begin, or ends.
#[derive(Debug, thiserror::Error)]
pub enum ClioError {
    /// The set-up failed.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The event loop failed.
    #[error(transparent)]
    Device(#[from] p4rack_netdev::Error),
    /// A system call failed.
    #[error(transparent)]
    System(#[from] std::io::Error),
    /// The board violates the protocol, or lacks the requested resources.
    #[error("{0}")]
    Broken(String),
}
