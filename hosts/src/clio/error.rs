//! Why a board can't be used, or did not start.

use crate::roce::SetupError;
use p4rack_fabric::clio::board::Refused;
use p4rack_fabric::common::ConfigError;
use std::io;
use std::net::SocketAddr;

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
    System(#[from] io::Error),
    /// The board violates the protocol, or lacks the requested resources.
    #[error("{0}")]
    Broken(String),
}

/// Why a board did not start.
#[derive(Debug, thiserror::Error)]
pub enum BoardError {
    /// The address can't be had.
    #[error("can't take packets at {addr}: {error}; choose another address or end the program that uses it")]
    Bind {
        /// The address.
        addr: SocketAddr,
        /// The system's error.
        error: io::Error,
    },
    /// Its parameters are out of range.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The machine has less memory, or doesn't give the interface.
    #[error(transparent)]
    Machine(#[from] p4rack_netdev::Error),
    /// The interface is too narrow.
    #[error(
        "interface `{interface}` has an MTU of {has} bytes and the board's packets need {needs}: widen it, or use --link udp"
    )]
    TooNarrow {
        /// The interface.
        interface: String,
        /// Its MTU.
        has: u32,
        /// Maximum bytes of a packet.
        needs: u32,
    },
    /// No process began.
    #[error(transparent)]
    Process(#[from] Refused),
    /// No range was allocated.
    #[error("the board has no range of {0} bytes: {1}")]
    Range(u64, String),
    /// A system call failed.
    #[error(transparent)]
    System(#[from] io::Error),
}
