//! What a way of forwarding and the measurement of it tell each other.

use crate::driver::DriverError;
use p4rack_netdev::Error;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// A device was refused.
    #[error(transparent)]
    Device(#[from] Error),
    /// A port was refused.
    #[error(transparent)]
    Port(#[from] DriverError),
    /// A system call failed.
    #[error("forwarding: {0}")]
    Io(#[from] io::Error),
    /// The built-in program did not compile.
    #[error("the built-in program: {0}")]
    Program(String),
    /// Another switch did not start.
    #[error("{0}")]
    Other(String),
}

/// Signals between a forwarding thread and the measurement.
pub(super) struct Signs<'a> {
    pub(super) ready: mpsc::Sender<()>,
    pub(super) stop: &'a AtomicBool,
}

impl Signs<'_> {
    /// Frames may come.
    pub(super) fn ready(&self) {
        // Who measures waits for it, or has given up.
        let _ = self.ready.send(());
    }

    /// Whether enough has been measured.
    pub(super) fn stop(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}
