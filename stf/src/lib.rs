//! Runs P4 programs against the simple test framework (STF) of p4c's test suite and against captures,
//! on the embedded switch, in simulated time: no sockets, no clock.
//!
//! ```text
//!  STF text ─ parse ─→ statements ─ runner ─→ Switch ─→ frames ─ compared ─→ Outcome
//!  pcap ─ read ─→ frames ─ play ─→ Switch ─→ frames and trace
//! ```

mod command;
mod compare;
mod names;
mod parse;
mod play;
mod runner;

pub use command::{Call, Command, Compare, EntryAction, Index, KeyText, Number, Pattern, Statement};
pub use compare::{Failure, Output, differences};
pub use parse::parse;
pub use play::{Fate, MAX_FRAMES, Player, Sent, TooMany};
pub use runner::{DROP_PORT, MAX_EVENTS, Outcome, Traced, run, run_with_drop_port};

/// Maximum statements of a file.
pub const MAX_STATEMENTS: usize = 100_000;
/// Maximum digits of a number; a frame may have 16 times as many.
pub const MAX_DIGITS: usize = 2048;

/// A statement that is malformed, or names something that the program lacks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct StfError {
    /// Line number, from 1.
    pub line: u32,
    /// The mistake, and a remedy.
    pub what: String,
}

impl StfError {
    pub(crate) fn new(line: u32, what: impl Into<String>) -> StfError {
        StfError { line, what: what.into() }
    }
}
