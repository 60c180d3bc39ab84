//! What one packet of a request writes, or asks for.

use p4rack_wire::Nanos;

/// How far a part is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    Unsent,
    InFlight,
    Back,
    Done,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub progress: Progress,
    /// Attempt that is in flight, or comes next.
    pub attempt: u8,
    /// Attempts without an answer in time, or that came damaged.
    pub losses: u8,
    /// Whether an attempt may have been executed without an answer.
    pub is_unsure: bool,
    /// Parts that the packet which begins here asks for.
    pub group: u16,
    /// When the first attempt left that may have been executed.
    pub first: Option<Nanos>,
    /// When the last attempt left.
    pub sent: Nanos,
}

/// A part that has not left yet.
pub(super) const UNSENT: Part = Part {
    progress: Progress::Unsent,
    attempt: 0,
    losses: 0,
    is_unsure: false,
    group: 0,
    first: None,
    sent: Nanos::ZERO,
};
