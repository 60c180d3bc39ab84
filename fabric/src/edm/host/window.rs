//! Remembers which ids of a wrapping counter were seen.

/// Whether an id is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// It was not seen before.
    New,
    /// Seen before, or too old to decide.
    Before,
}

/// Number of ids that a window remembers, including the newest one.
pub(super) const IDS: u16 = 128;

/// The newest id and which of the 127 before it were seen.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Window {
    newest: Option<u16>,
    /// Bit n: the id that is n before the newest.
    seen: u128,
}

impl Window {
    /// Records an id. An id is newer than another if it is at most half of the counter's range ahead.
    pub fn see(&mut self, id: u16) -> Seen {
        let Some(newest) = self.newest else {
            (self.newest, self.seen) = (Some(id), 1);
            return Seen::New;
        };
        let ahead = id.wrapping_sub(newest);
        if ahead != 0 && ahead <= u16::MAX / 2 {
            self.seen = self.seen.checked_shl(ahead.into()).unwrap_or(0) | 1;
            self.newest = Some(id);
            return Seen::New;
        }
        let behind = newest.wrapping_sub(id);
        if behind >= IDS || self.seen >> behind & 1 == 1 {
            return Seen::Before;
        }
        self.seen |= 1 << behind;
        Seen::New
    }
}
