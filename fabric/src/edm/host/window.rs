//! Which ids were seen, of a counter that goes round.

/// What an id is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// It was not seen before.
    New,
    /// It was, or is so old that nobody knows.
    Before,
}

/// The newest id and which of the 127 before it were seen.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Window {
    newest: Option<u16>,
    /// Bit n: the id that is n before the newest.
    seen: u128,
}

impl Window {
    /// Notes an id. An id is newer than another if it is at most half way round ahead of it.
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
        if behind >= 128 || self.seen >> behind & 1 == 1 {
            return Seen::Before;
        }
        self.seen |= 1 << behind;
        Seen::New
    }
}
