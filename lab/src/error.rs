//! Why a rack did not run.

use std::io;
use std::path::PathBuf;

/// Anything that ends a run before its figures are complete.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The description is invalid.
    #[error(transparent)]
    Description(#[from] p4rack_codegen::RackError),
    /// The description is valid but describes nothing that can be run.
    #[error("{0}")]
    Unfit(String),
    /// The rack has no such memory.
    #[error(transparent)]
    NoMemory(#[from] p4rack_memory::NoMemory),
    /// A namespace, a link or a setting failed.
    #[error(transparent)]
    Device(#[from] p4rack_netdev::Error),
    /// A process of the rack misbehaved.
    #[error("{name} {what}{}", .said.as_deref().map(indented).unwrap_or_default())]
    Process {
        /// Name of the process.
        name: String,
        /// Its failure.
        what: String,
        /// The end of its standard error.
        said: Option<String>,
    },
    /// The switch's statistics or counters could not be read.
    #[error("reading the switch's {what}: {why}")]
    Control {
        /// The requested value.
        what: &'static str,
        /// The cause.
        why: String,
    },
    /// A measurement is missing or malformed; it is never replaced by zero.
    #[error("{what}: {why}")]
    Measurement {
        /// The measurement, and whose it is.
        what: String,
        /// Its error.
        why: String,
    },
    /// An operation on a file failed.
    #[error("{}: {source}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// A system call not about a file failed.
    #[error("{what}: {source}")]
    System {
        /// The attempted operation.
        what: &'static str,
        /// Error of the system.
        source: io::Error,
    },
    /// There is no such kept rack or host. The message says what to do.
    #[error("{0}")]
    NotThere(String),
    /// Interrupted by Ctrl-C or SIGTERM.
    #[error("interrupted; the rack was removed")]
    Interrupted,
}

impl LabError {
    /// For `map_err` on operations on files.
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> LabError {
        let path = path.into();
        move |source| LabError::File { path, source }
    }

    /// An unusable measurement.
    pub(crate) fn measurement(what: impl Into<String>, why: impl std::fmt::Display) -> LabError {
        LabError::Measurement { what: what.into(), why: why.to_string() }
    }

    /// For `map_err` on other operations.
    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> LabError {
        move |source| LabError::System { what, source }
    }
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("\n  {line}")).collect()
}
