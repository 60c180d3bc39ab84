//! Which bytes of a message have arrived. Chunks may pass each other: a frame that asks for a window takes another pass through
//! the switch under `calendar`, and the next one does not.

/// Maximum ranges ahead of a gap. One window leaves one.
const AHEAD_MAX: usize = 8;

/// Whether a range is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// None of it had arrived.
    New,
    /// Some of it had arrived.
    Before,
    /// Too much is missing before it.
    TooFar,
}

/// Arrived bytes: all up to some byte, and ranges behind it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Parts {
    until: u32,
    /// Sorted; none touches another one, or `until`.
    ahead: Vec<(u32, u32)>,
}

impl Parts {
    /// Number of contiguous bytes from the first one on.
    pub fn until(&self) -> u32 {
        self.until
    }

    /// Records the bytes from `start` on, before `end`.
    pub fn take(&mut self, start: u32, end: u32) -> Taken {
        let nth = self.ahead.partition_point(|range| range.0 < start);
        let before = nth.checked_sub(1).map_or(self.until, |last| self.ahead[last].1);
        let overlaps = start < before || self.ahead.get(nth).is_some_and(|next| next.0 < end);
        if overlaps || start == end && start > before {
            return Taken::Before;
        }
        let next = self.ahead.get(nth).copied().filter(|next| next.0 == end);
        let end = next.map_or(end, |next| next.1);
        match (start == before, next) {
            (true, next) => {
                *nth.checked_sub(1).map_or(&mut self.until, |last| &mut self.ahead[last].1) = end;
                next.map(|_| self.ahead.remove(nth));
            }
            (false, Some(_)) => self.ahead[nth].0 = start,
            (false, None) if self.ahead.len() >= AHEAD_MAX => return Taken::TooFar,
            (false, None) => self.ahead.insert(nth, (start, end)),
        }
        Taken::New
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Nothing is new where everything before it has arrived, and leaves no range elsewhere.
    #[test]
    fn nothing_leaves_no_range() {
        let mut parts = Parts::default();
        assert_eq!(
            [(0, 0), (5, 5), (0, 4), (3, 3), (4, 4), (5, 5)].map(|(start, end)| parts.take(start, end)),
            [Taken::New, Taken::Before, Taken::New, Taken::Before, Taken::New, Taken::Before,]
        );
        assert_eq!(parts, Parts { until: 4, ahead: Vec::new() });
    }

    proptest! {
        /// As a list of all bytes has it.
        #[test]
        fn parts_are_what_has_arrived(ranges in proptest::collection::vec((0u32..40, 1u32..6), 1..60)) {
            let (mut parts, mut there) = (Parts::default(), [false; 64]);
            for (start, bytes) in ranges {
                let range = start as usize..(start + bytes) as usize;
                let is_new = !there[range.clone()].contains(&true);
                let taken = parts.take(start, start + bytes);
                if taken == Taken::TooFar {
                    prop_assert!(is_new && parts.ahead.len() == AHEAD_MAX);
                    continue;
                }
                prop_assert_eq!(taken == Taken::New, is_new);
                if is_new {
                    there[range].fill(true);
                }
                let until = there.iter().position(|byte| !byte);
                prop_assert_eq!(Some(parts.until() as usize), until);
            }
        }
    }
}
