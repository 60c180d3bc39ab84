//! Signals between a forwarding thread and the measurement, and their errors.

use crate::driver::DriverError;
use p4rack_netdev::Error;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

/// Why a measurement failed.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// A device could not be opened.
    #[error(transparent)]
    Device(#[from] Error),
    /// A port could not be opened.
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
    /// Signals that frames may be sent.
    pub(super) fn ready(&self) {
        // The measurement waits for it, or has given up.
        let _ = self.ready.send(());
    }

    /// Whether the forwarder should stop.
    pub(super) fn stop(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}
