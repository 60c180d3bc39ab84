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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// As a list of all ids has it, wherever the counter begins.
        #[test]
        fn an_id_is_new_once(first: u16, moves in proptest::collection::vec(-140i64..100, 1..200)) {
            let (mut window, mut newest, mut seen) = (Window::default(), i64::from(first), BTreeSet::new());
            for by in moves {
                let id = newest + by;
                let is_new = seen.is_empty() || (newest - id < i64::from(IDS) && !seen.contains(&id));
                prop_assert_eq!(window.see(id as u16) == Seen::New, is_new, "{} after {}", id, newest);
                newest = if seen.is_empty() { id } else { newest.max(id) };
                seen.insert(id);
            }
        }
    }

    #[test]
    fn ids_are_newer_up_to_half_of_their_range() {
        let after = |first, then: u16| {
            let mut window = Window::default();
            (window.see(first), window.see(then))
        };
        assert_eq!(after(5, 5 + 0x7fff), (Seen::New, Seen::New));
        assert_eq!(after(5, 5 + 0x8000), (Seen::New, Seen::Before));
        let mut window = Window::default();
        let far = [0, 200, 72, 73, 73, 200].map(|id| window.see(id));
        assert_eq!(far, [Seen::New, Seen::New, Seen::Before, Seen::New, Seen::Before, Seen::Before]);
    }
}
