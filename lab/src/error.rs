//! Why a rack did not run.

use std::io;
use std::path::PathBuf;

/// Anything that ends a run before its figures are in.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The description has mistakes.
    #[error(transparent)]
    Description(#[from] p4rack_codegen::RackError),
    /// The description is fine but asks for nothing that can be run.
    #[error("{0}")]
    Unfit(String),
    /// A namespace, a link or a setting was refused.
    #[error(transparent)]
    Device(#[from] p4rack_netdev::Error),
    /// One of the rack's processes did not do what it should.
    #[error("{name} {what}{}", .said.as_deref().map(indented).unwrap_or_default())]
    Process {
        /// Which one.
        name: String,
        /// What happened to it.
        what: String,
        /// The end of what it wrote to standard error.
        said: Option<String>,
    },
    /// The switch's statistics or counters could not be read.
    #[error("reading the switch's {what}: {why}")]
    Control {
        /// What was wanted.
        what: &'static str,
        /// What came instead.
        why: String,
    },
    /// A measurement that is missing or has another form than expected: never taken for zero.
    #[error("{what}: {why}")]
    Measurement {
        /// Whose, and which.
        what: String,
        /// What is wrong with it.
        why: String,
    },
    /// A file.
    #[error("{}: {source}", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A system call that is not about a file.
    #[error("{what}: {source}")]
    System {
        /// What was being done.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// No such kept rack or host; the message says what to do.
    #[error("{0}")]
    NotThere(String),
    /// Ctrl-C or SIGTERM.
    #[error("interrupted; the rack is gone")]
    Interrupted,
}

impl LabError {
    /// For `map_err` where a file is concerned.
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> LabError {
        let path = path.into();
        move |source| LabError::File { path, source }
    }

    /// For a measurement that can't be used.
    pub(crate) fn measurement(what: impl Into<String>, why: impl std::fmt::Display) -> LabError {
        LabError::Measurement { what: what.into(), why: why.to_string() }
    }

    /// For `map_err` elsewhere.
    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> LabError {
        move |source| LabError::System { what, source }
    }
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("\n  {line}")).collect()
}
