//! Errors in traces.

use std::fmt::{Display, Formatter};
use thiserror::Error;

/// A place in a trace, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// A line of text.
    Line(u64),
    /// A record.
    Record(u64),
}

impl Display for At {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            At::Line(number) => write!(formatter, "line {number}"),
            At::Record(number) => write!(formatter, "record {number}"),
        }
    }
}

/// Why a trace can't be used.
#[derive(Debug, Error)]
pub enum TraceError {
    /// Reading or writing failed.
    #[error("{file}: {error}")]
    Io {
        /// Which file.
        file: String,
        /// The system's error.
        error: std::io::Error,
    },
    /// A line or record is not what it should be.
    #[error("{file}: {at}: {found}; expected {expected}: {advice}")]
    Wrong {
        /// Which file.
        file: String,
        /// Where in it.
        at: At,
        /// The text or value found.
        found: String,
        /// The expected text or value.
        expected: &'static str,
        /// Advice to the user.
        advice: &'static str,
    },
    /// No format has traces that begin like this.
    #[error("{file}: no known format begins like this; expected one of {expected}: name it with --format")]
    Unknown {
        /// Which file.
        file: String,
        /// The formats' names.
        expected: String,
    },
    /// A trace without accesses.
    #[error("{file}: has no accesses; expected at least one: record it again, or check that the program ran")]
    Empty {
        /// Which file.
        file: String,
    },
    /// A description of a synthetic trace is wrong.
    #[error("{file}: {message}")]
    Description {
        /// Which file.
        file: String,
        /// Field, what was expected.
        message: String,
    },
}

/// Where a reader is, for its errors.
#[derive(Clone, Debug)]
pub(crate) struct Position {
    pub(crate) file: String,
    pub(crate) count: u64,
    lines: bool,
}

impl Position {
    pub(crate) fn lines(file: &str) -> Position {
        Position { file: file.to_owned(), count: 0, lines: true }
    }

    pub(crate) fn records(file: &str) -> Position {
        Position { file: file.to_owned(), count: 0, lines: false }
    }

    pub(crate) fn wrong(
        &self,
        found: impl Into<String>,
        expected: &'static str,
        advice: &'static str,
    ) -> TraceError {
        let at = if self.lines { At::Line(self.count) } else { At::Record(self.count) };
        TraceError::Wrong { file: self.file.clone(), at, found: found.into(), expected, advice }
    }

    pub(crate) fn io(&self, error: std::io::Error) -> TraceError {
        TraceError::Io { file: self.file.clone(), error }
    }

    /// Refuses an access that does not end below 2^48.
    pub(crate) fn within(&self, address: u64, bytes: u32) -> Result<(), TraceError> {
        let end = address.checked_add(u64::from(bytes));
        if end.is_some_and(|end| end <= crate::ADDRESS_END) && bytes > 0 {
            return Ok(());
        }
        Err(self.wrong(
            format!("{bytes} bytes at {address:#x}"),
            "at least 1 byte below address 2^48",
            "check the trace's format, or drop accesses of the kernel",
        ))
    }
}
