//! The lanes of one destination: choose the next reservation's cell, and count what is given back.
//!
//! A lane is free for the next reservation once the switch knows that the previous one has begun, because the
//! first frame of its burst has left. A burst that was finished before its slots came (it went unsolicited)
//! sends no such frame; its lane is free when its start has passed, and the next reservation uses the same
//! half, since nothing of the first is in flight.
//!
//! In counter mode a cell holds its slots until frames use them or the cell's next reservation replaces them.
//! A cell that may hold unused slots is given back by an RSV with demand 0, which is repeated until
//! it is answered. The switch gives back the cell's real content, so this may err on the safe side.

use p4rack_wire::Nanos;

/// The lanes of a destination, at most 64.
#[derive(Clone, Debug)]
pub(super) struct Lanes {
    /// Bit set of free lanes.
    free: u64,
    /// Bit set of the half that each lane's next reservation uses.
    halves: u64,
    passing: Vec<Passing>,
    holding: Vec<Holding>,
    /// Whether cells hold slots, as in counter mode.
    counting: bool,
}

/// A lane whose burst was finished before its slots.
#[derive(Clone, Copy, Debug)]
struct Passing {
    cell: u8,
    /// Start of its slots; zero once that was noticed.
    starts_at: Nanos,
}

/// A cell that may hold unused slots.
#[derive(Clone, Copy, Debug)]
struct Holding {
    cell: u8,
    /// When to give them back, for the first time or again; `Nanos::MAX` while the RSV waits in the NIC.
    due: Nanos,
    tries: u32,
    id: u32,
    /// When the RSV left.
    left_at: Option<Nanos>,
}

impl Lanes {
    /// This many lanes (1 to 64), all free.
    pub fn new(lanes: u8, counting: bool) -> Lanes {
        let free = u64::MAX >> (64 - lanes.clamp(1, 64));
        Lanes { free, halves: 0, passing: Vec::new(), holding: Vec::new(), counting }
    }

    /// Whether [`take`](Self::take) would return a cell. `clear` says that no unsolicited frame waits in the
    /// NIC.
    #[inline]
    pub fn has_free(&self, now: Nanos, clear: bool) -> bool {
        self.free != 0 || clear && self.passed(now).is_some()
    }

    fn passed(&self, now: Nanos) -> Option<usize> {
        self.passing.iter().position(|passing| passing.starts_at <= now)
    }

    /// A cell for the next reservation, and when it was next [due](Self::due); `Nanos::MAX` is never.
    pub fn take(&mut self, now: Nanos, clear: bool) -> Option<(u8, Nanos)> {
        // A reservation replaces its cell's content. Without clocks nothing else does so soon.
        let passed = if self.counting || self.free == 0 { self.passed(now).filter(|_| clear) } else { None };
        let mut was_due = Nanos::MAX;
        let cell = match passed {
            Some(at) => {
                let Passing { cell, starts_at } = self.passing.swap_remove(at);
                was_due = if starts_at == Nanos::ZERO { Nanos::MAX } else { starts_at };
                cell
            }
            None if self.free == 0 => return None,
            None => {
                let lane = self.free.trailing_zeros();
                self.free &= self.free - 1;
                self.halves ^= 1 << lane;
                2 * lane as u8 + (!self.halves >> lane & 1) as u8
            }
        };
        if let Some(at) = self.holding.iter().position(|holding| holding.cell == cell) {
            was_due = was_due.min(self.holding.remove(at).due);
        }
        Some((cell, was_due))
    }

    /// Records that the first frame of a cell's burst has left. Slots left unused because frames are lost are
    /// given back at `due`. Returns whether the cell is scheduled to be given back.
    pub fn begun(&mut self, cell: u8, due: Nanos) -> bool {
        self.free |= 1 << (cell / 2);
        self.hold(cell, due)
    }

    /// Records that a cell's burst sends nothing in its slots, which begin at `starts_at`. Unless the cell is
    /// reserved again, they are given back at `due`.
    pub fn unused(&mut self, cell: u8, starts_at: Nanos, due: Nanos) {
        self.passing.push(Passing { cell, starts_at: starts_at.max(Nanos(1)) });
        self.hold(cell, due.max(starts_at));
    }

    /// Records that the switch may have made a reservation that no request waits for. Returns false if the cell
    /// is known, or holds nothing.
    pub fn hold(&mut self, cell: u8, due: Nanos) -> bool {
        let new = self.counting && !self.holding.iter().any(|holding| holding.cell == cell);
        if new {
            self.holding.push(Holding { cell, due, tries: 0, id: 0, left_at: None });
        }
        new
    }

    /// Whether slots that a burst leaves unused begin now, so that its lane has become free.
    pub fn notice_passed(&mut self, now: Nanos) -> bool {
        let mut any = false;
        for passing in self.passing.iter_mut().filter(|passing| passing.starts_at <= now) {
            any |= passing.starts_at != Nanos::ZERO;
            passing.starts_at = Nanos::ZERO;
        }
        any
    }

    /// A cell to give back now.
    pub fn to_release(&self, now: Nanos) -> Option<u8> {
        self.holding.iter().find(|holding| holding.due <= now).map(|holding| holding.cell)
    }

    /// Frames of the cell may still wait in the NIC, so gives nothing back before `due`.
    pub fn postpone(&mut self, now: Nanos, due: Nanos) {
        self.holding.iter_mut().filter(|holding| holding.due <= now).for_each(|holding| holding.due = due);
    }

    /// Records that an RSV that gives a cell back is in the NIC.
    pub fn releasing(&mut self, cell: u8, id: u32) {
        if let Some(holding) = self.holding.iter_mut().find(|holding| holding.cell == cell) {
            *holding = Holding { due: Nanos::MAX, tries: holding.tries + 1, id, left_at: None, ..*holding };
        }
    }

    /// Records that it has left. `deadline` says when it is overdue, given the number of tries.
    pub fn release_left(&mut self, id: u32, now: Nanos, deadline: impl FnOnce(u32) -> Nanos) {
        let is_it = |holding: &&mut Holding| holding.id == id && holding.tries > 0;
        if let Some(holding) = self.holding.iter_mut().find(is_it) {
            (holding.left_at, holding.due) = (Some(now), deadline(holding.tries - 1));
        }
    }

    /// Records its answer. Returns when it had left, if this is the answer to it. If `refused`, it is
    /// repeated when overdue.
    pub fn released(&mut self, cell: u8, id: u32, refused: bool) -> Option<Nanos> {
        let is_it = |holding: &Holding| (holding.cell, holding.id) == (cell, id);
        let at = self.holding.iter().position(is_it)?;
        let left_at = self.holding[at].left_at.take()?;
        if refused {
            return Some(left_at);
        }
        self.holding.swap_remove(at);
        if let Some(at) = self.passing.iter().position(|passing| passing.cell == cell) {
            self.passing.swap_remove(at);
            self.free |= 1 << (cell / 2);
        }
        Some(left_at)
    }

    /// Whether something may become due.
    #[inline]
    pub fn is_active(&self) -> bool {
        !self.holding.is_empty() || self.passing.iter().any(|passing| passing.starts_at != Nanos::ZERO)
    }

    /// The next time at which something is due; `Nanos::MAX` is never.
    #[inline]
    pub fn due(&self) -> Nanos {
        let passing = self.passing.iter().map(|passing| passing.starts_at).filter(|at| *at != Nanos::ZERO);
        passing.chain(self.holding.iter().map(|holding| holding.due)).min().unwrap_or(Nanos::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(lanes: &mut Lanes, now: Nanos, clear: bool) -> Option<u8> {
        lanes.take(now, clear).map(|(cell, _)| cell)
    }

    #[test]
    fn the_halves_of_a_lane_take_turns() {
        let mut lanes = Lanes::new(2, false);
        assert_eq!((take(&mut lanes, Nanos(0), true), take(&mut lanes, Nanos(0), true)), (Some(0), Some(2)));
        assert_eq!((take(&mut lanes, Nanos(0), true), lanes.has_free(Nanos(0), true)), (None, false));
        lanes.begun(2, Nanos(9));
        assert_eq!(take(&mut lanes, Nanos(0), true), Some(3));
        lanes.begun(0, Nanos(9));
        assert_eq!(take(&mut lanes, Nanos(0), true), Some(1));
        lanes.begun(1, Nanos(9));
        assert_eq!(
            (take(&mut lanes, Nanos(0), true), lanes.due()),
            (Some(0), Nanos::MAX),
            "clocks hold no slots"
        );
        assert_eq!(Lanes::new(64, false).free, u64::MAX);
    }

    #[test]
    fn what_was_not_used_is_free_at_its_start_and_keeps_its_half() {
        let mut lanes = Lanes::new(1, true);
        assert_eq!(take(&mut lanes, Nanos(0), true), Some(0));
        lanes.unused(0, Nanos(50), Nanos(100));
        assert_eq!((take(&mut lanes, Nanos(49), true), lanes.due()), (None, Nanos(50)));
        assert!(!lanes.notice_passed(Nanos(49)) && lanes.notice_passed(Nanos(50)));
        assert!(!lanes.notice_passed(Nanos(51)), "once");
        assert_eq!((lanes.due(), take(&mut lanes, Nanos(51), false)), (Nanos(100), None));
        assert_eq!(
            (take(&mut lanes, Nanos(51), true), lanes.due()),
            (Some(0), Nanos::MAX),
            "the next one replaces it"
        );
    }

    /// With clocks, no reservation needs to be replaced, so a lane of its own comes first.
    #[test]
    fn with_clocks_a_free_lane_comes_before_one_that_passed() {
        let mut lanes = Lanes::new(2, false);
        assert_eq!(take(&mut lanes, Nanos(0), true), Some(0));
        lanes.unused(0, Nanos(5), Nanos(100));
        assert_eq!([9, 9, 9].map(|now| take(&mut lanes, Nanos(now), true)), [Some(2), Some(0), None]);
    }

    #[test]
    fn what_nobody_uses_goes_back_until_that_is_answered() {
        let mut lanes = Lanes::new(1, true);
        take(&mut lanes, Nanos(0), true);
        lanes.unused(0, Nanos(5), Nanos(100));
        assert_eq!((lanes.to_release(Nanos(99)), lanes.to_release(Nanos(100))), (None, Some(0)));
        lanes.notice_passed(Nanos(100));
        lanes.releasing(0, 7);
        assert_eq!((lanes.due(), lanes.released(0, 7, false)), (Nanos::MAX, None), "it hasn't left");
        lanes.release_left(7, Nanos(101), |tries| Nanos(200 + u64::from(tries)));
        assert_eq!(lanes.to_release(Nanos(200)), Some(0), "overdue");
        lanes.releasing(0, 8);
        lanes.release_left(8, Nanos(201), |tries| Nanos(200 + u64::from(tries)));
        assert_eq!((lanes.released(0, 7, false), lanes.released(0, 8, true)), (None, Some(Nanos(201))));
        assert_eq!((lanes.released(0, 8, false), lanes.to_release(Nanos(201))), (None, Some(0)), "refused");
        lanes.releasing(0, 9);
        lanes.release_left(9, Nanos(202), |_| Nanos(900));
        assert_eq!(lanes.released(0, 9, false), Some(Nanos(202)));
        assert_eq!((lanes.is_active(), take(&mut lanes, Nanos(202), true)), (false, Some(1)));
    }
}
