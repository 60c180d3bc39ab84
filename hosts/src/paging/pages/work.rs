//! Work on a page, for a thread.

use crate::paging::table::{Buffer, Entry, Page};

/// Where bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bytes {
    /// Nowhere: zeros.
    Zeros,
    /// In a buffer.
    Buffer(Buffer),
    /// In place.
    Place,
}

/// An operation on a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Writes fault from now on.
    Protect,
    /// Writes fault no longer.
    Unprotect,
    /// Copies the page in place.
    Save(Buffer),
    /// Reads the pieces with content from the region into a buffer; the others are zeros.
    Fetch(Buffer),
    /// The same in place, in one step, protected.
    FetchInPlace,
    /// Puts the page in place, in one step.
    Fill {
        /// Its content.
        from: Bytes,
        /// Whether writes fault.
        protected: bool,
    },
    /// Takes the page out of its place.
    Drop,
    /// Writes the differences from the twin to the region.
    WriteBack {
        /// The page.
        now: Bytes,
        /// Its twin.
        twin: Bytes,
    },
}

/// State that [`Pages::done`](super::Pages::done) gives a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    InPlace,
    Shelf,
    Evicted,
    Cleaned,
    Discarded,
}

/// Operations on a page, which one thread carries out in their order.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Work {
    pub page: Page,
    /// The pieces that the region has.
    pub content: u8,
    pub ops: [Option<Op>; 3],
    pub(super) entry: Entry,
    pub(super) end: End,
}

/// Answer to a fault, or to another request for a page.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub enum Step {
    /// Nothing has to be done: the access may be repeated.
    Ready,
    /// Another thread works on the page: ask again after a change.
    Wait,
    /// Pages have to leave first, by [`Pages::evict`](super::Pages::evict) and [`Pages::shelve`](super::Pages::shelve): then ask again.
    Room,
    /// The memory of a free buffer has to be given back: call [`Pages::released`](super::Pages::released), then ask again.
    Release(Buffer),
    /// Carry it out.
    Work(Work),
    /// Remote memory is lost.
    Lost,
}
