//! Errors of the set-up.

use p4rack_p4rt::transport::tls::TlsError;
use std::net::SocketAddr;

/// Why a set-up failed.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// A file for TLS can't be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// Listening failed.
    #[error("can't listen on {addr}: {error}; choose another address or end the program that uses it")]
    Bind {
        /// The address.
        addr: SocketAddr,
        /// The system's error.
        error: std::io::Error,
    },
    /// The server can't be reached.
    #[error("can't reach the set-up service at {addr}: {reason}")]
    Connect {
        /// The address.
        addr: String,
        /// The innermost cause.
        reason: String,
    },
    /// The server refused.
    #[error("{addr} refuses: {reason}")]
    Refused {
        /// The address.
        addr: String,
        /// The server's words.
        reason: String,
    },
    /// The server said something that makes no sense.
    #[error("{addr} answers nonsense: {reason}")]
    Nonsense {
        /// The address.
        addr: String,
        /// Description of the error.
        reason: String,
    },
    /// The server failed.
    #[error("the set-up service failed: {0}")]
    Transport(#[from] tonic::transport::Error),
}
