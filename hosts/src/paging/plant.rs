//! Mistakes that tests plant, which the checks have to find.

/// A mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plant {
    /// The twin is saved after the page has become writable.
    TwinTooLate,
    /// A page leaves for the shelf while it is writable, so that a write between its copy and its drop is lost.
    ShelvedWritable,
    /// A flush protects a page after it has compared it.
    WriteDuringWriteBackLost,
    /// A second fault on a page that is being filled fetches it again.
    TwoFetches,
}
