//! The receiving side of the shim: tracks which sequence numbers of a peer have been seen.

/// Sequence numbers behind the newest one that are tracked individually.
pub(crate) const WINDOW: u32 = 1024;
/// Numbers behind the window but within this distance are old copies.
const STALE: u32 = 4 * WINDOW;
/// A larger jump ahead means that the peer has restarted.
const JUMP_MAX: u32 = 1 << 16;
const WORDS: usize = WINDOW as usize / 64;

/// Classification of a sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// New. `lost` earlier numbers have turned out never to have come.
    Fresh { lost: u64 },
    /// Seen before, or too old to know.
    Duplicate,
    /// The peer started a new sequence, of which this is the first frame.
    Restart { lost: u64 },
}

/// Sliding window over one peer's sequence numbers, modulo 2³².
#[derive(Clone, Debug)]
pub(crate) struct Window {
    started: bool,
    /// The first number received. Earlier ones are new if they come late, but are not missed.
    first: u32,
    /// Numbers of the window before the first that have not come.
    unmissed: u64,
    /// The number after the newest.
    next: u32,
    /// Bit `n % WINDOW` says whether number n, one of the last `WINDOW`, has come.
    seen: [u64; WORDS],
}

impl Window {
    /// An empty window.
    pub fn new() -> Self {
        Window { started: false, first: 0, unmissed: 0, next: 0, seen: [u64::MAX; WORDS] }
    }

    /// Classifies and records `sequence`.
    pub fn accept(&mut self, sequence: u32) -> Verdict {
        if !self.started {
            self.restart(sequence);
            return Verdict::Fresh { lost: 0 };
        }
        let ahead = sequence.wrapping_sub(self.next);
        if ahead <= JUMP_MAX {
            return Verdict::Fresh { lost: self.advance(ahead, sequence) };
        }
        let behind = self.next.wrapping_sub(sequence);
        if behind <= WINDOW {
            let (word, bit) = place(sequence);
            if self.seen[word] & bit != 0 {
                return Verdict::Duplicate;
            }
            self.seen[word] |= bit;
            self.unmissed -= u64::from(self.before_first(sequence));
            return Verdict::Fresh { lost: 0 };
        }
        if behind <= STALE {
            return Verdict::Duplicate;
        }
        let lost = self.missing();
        self.restart(sequence);
        Verdict::Restart { lost }
    }

    /// Records `sequence` of a peer that has not started again, however far it is behind or ahead. Returns whether it is new; one
    /// that is too old to know is not.
    pub fn is_new(&mut self, sequence: u32) -> bool {
        if !self.started {
            self.restart(sequence);
            return true;
        }
        let ahead = sequence.wrapping_sub(self.next);
        if ahead <= u32::MAX / 2 {
            self.advance(ahead, sequence);
            return true;
        }
        self.next.wrapping_sub(sequence) <= WINDOW && self.accept(sequence) != Verdict::Duplicate
    }

    /// How far `sequence` is behind the number that comes next, more than half of all if it is ahead. `None` before the first one.
    pub fn behind(&self, sequence: u32) -> Option<u32> {
        self.started.then(|| self.next.wrapping_sub(sequence))
    }

    /// Numbers of the window that have not come (yet).
    pub fn missing(&self) -> u64 {
        self.seen.iter().map(|word| u64::from(word.count_zeros())).sum::<u64>() - self.unmissed
    }

    /// Whether `sequence`, which is in the window, is before the first one received.
    fn before_first(&self, sequence: u32) -> bool {
        self.unmissed > 0 && (sequence.wrapping_sub(self.first) as i32) < 0
    }

    /// Advances the window so that `sequence`, `ahead` after the expected one, is the newest. Unseen numbers
    /// that leave the window are lost.
    fn advance(&mut self, ahead: u32, sequence: u32) -> u64 {
        let mut lost = 0;
        if ahead >= WINDOW {
            lost = self.missing() + u64::from(ahead - WINDOW + 1);
            self.seen = [0; WORDS];
            self.unmissed = 0;
        } else {
            for step in 0..=ahead {
                let leaving = self.next.wrapping_add(step).wrapping_sub(WINDOW);
                let (word, bit) = place(leaving);
                if self.seen[word] & bit == 0 {
                    let before = self.before_first(leaving);
                    self.unmissed -= u64::from(before);
                    lost += u64::from(!before);
                }
                self.seen[word] &= !bit;
            }
        }
        let (word, bit) = place(sequence);
        self.seen[word] |= bit;
        self.next = sequence.wrapping_add(1);
        lost
    }

    fn restart(&mut self, sequence: u32) {
        let unmissed = u64::from(WINDOW - 1);
        let next = sequence.wrapping_add(1);
        *self = Window { started: true, first: sequence, unmissed, next, seen: [0; WORDS] };
        let (word, bit) = place(sequence);
        self.seen[word] |= bit;
    }
}

fn place(sequence: u32) -> (usize, u64) {
    let bit = sequence % WINDOW;
    ((bit / 64) as usize, 1 << (bit % 64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    const FRESH: Verdict = Verdict::Fresh { lost: 0 };

    #[test]
    fn gaps_are_lost_only_when_they_leave_the_window() {
        let mut window = Window::new();
        assert_eq!(window.accept(u32::MAX - 1), FRESH);
        assert_eq!(window.accept(1), FRESH, "across the wrap; MAX and 0 are missing");
        assert_eq!(window.missing(), 2);
        assert_eq!(window.accept(0), FRESH, "a late one");
        assert_eq!(window.accept(0), Verdict::Duplicate);
        assert_eq!(window.accept(1), Verdict::Duplicate);
        for n in 2..WINDOW - 1 {
            assert_eq!(window.accept(n), FRESH, "{n}");
        }
        assert_eq!(window.accept(WINDOW - 1), Verdict::Fresh { lost: 1 }, "MAX left the window");
        assert_eq!(window.missing(), 0);
    }

    #[test]
    fn a_long_gap_is_counted_once() {
        let mut window = Window::new();
        window.accept(10);
        let Verdict::Fresh { lost } = window.accept(10 + 5_000) else { panic!("not fresh") };
        assert_eq!(lost + window.missing(), 4_999);
    }

    #[test]
    fn a_restarted_peer_is_heard_at_once() {
        let mut window = Window::new();
        window.accept(1_000_000);
        assert_eq!(window.accept(7), Verdict::Restart { lost: 0 });
        assert_eq!(window.accept(8), FRESH);
        assert_eq!(window.accept(7), Verdict::Duplicate);
        assert_eq!(window.accept(9u32.wrapping_sub(STALE)), Verdict::Duplicate, "an old copy");
    }

    #[test]
    fn a_peer_that_has_not_started_again_has_old_copies_and_far_jumps() {
        let mut window = Window::new();
        let far = 10 * JUMP_MAX;
        assert!(window.is_new(7) && window.is_new(far));
        assert_eq!((window.behind(7), Window::new().behind(7)), (Some(far - 6), None));
        assert_eq!([7, 8, far, far - WINDOW].map(|n| window.is_new(n)), [false; 4]);
        assert!(window.is_new(far - 1) && !window.is_new(far - 1) && window.is_new(far + 1));
    }

    #[test]
    fn frames_that_the_first_one_overtook_are_new_once() {
        let mut window = Window::new();
        window.accept(100);
        assert_eq!((window.accept(98), window.accept(98)), (FRESH, Verdict::Duplicate));
        assert_eq!(window.missing(), 0, "it is unknown whether 99 was sent");
        for n in 101..100 + 2 * WINDOW {
            assert_eq!(window.accept(n), FRESH, "{n}");
        }
        assert_eq!((window.missing(), window.unmissed), (0, 0));
    }

    proptest! {
        /// Reordered and duplicated within the window: each number is fresh exactly once, and the numbers
        /// left out are reported missing.
        #[test]
        fn each_number_is_fresh_once(start: u32, picks in proptest::collection::vec(0u32..600, 1..400)) {
            let mut window = Window::new();
            window.accept(start);
            let mut seen = HashSet::from([0]);
            let mut lost = 0;
            for pick in picks.iter().copied() {
                let verdict = window.accept(start.wrapping_add(pick));
                prop_assert_eq!(verdict != Verdict::Duplicate, seen.insert(pick));
                if let Verdict::Fresh { lost: more } = verdict { lost += more; }
            }
            let newest = seen.iter().copied().max().unwrap_or(0);
            prop_assert_eq!(lost + window.missing(), u64::from(newest) + 1 - seen.len() as u64);
        }
    }
}
