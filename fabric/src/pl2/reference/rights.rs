//! What each reservation entitles to: the lanes and cells of every (source, destination) pair.

use p4rack_wire::Nanos;

/// Limits of what reservations entitle to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Lanes a pair.
    pub lanes: u8,
    /// With clocks: parts of a slot in which reservations count.
    pub slot_parts: u8,
    /// Slots by which a frame may come before its burst's time.
    pub early_slots: u64,
    /// Slots by which it may come after it.
    pub late_slots: u64,
}

impl Limits {
    /// Whole slots, frames at most 4 slots early and K + 1000 slots late.
    pub fn new(lanes: u8, k: u8) -> Limits {
        Limits { lanes, slot_parts: 1, early_slots: 4, late_slots: 1000 + u64::from(k) }
    }
}

/// Why a frame that claims a reservation goes as best effort.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Demoted {
    /// Its cell doesn't hold what it takes.
    Uncovered,
    /// The same for an unsolicited frame.
    UncoveredUnsolicited,
    /// Its burst's time is not yet.
    Early,
    /// Its burst's time has long passed.
    Late,
}

/// What one reservation still entitles to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cell {
    pub left: u64,
    left_unsolicited: u64,
    starts_at: Nanos,
}

/// All lanes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rights {
    lanes: usize,
    hosts: usize,
    /// Which half of each lane is reserved and has not begun.
    locks: Vec<Option<u8>>,
    cells: Vec<Cell>,
}

/// How early and how late a frame may come.
pub(super) type Grace = (Nanos, Nanos);

impl Rights {
    pub fn new(hosts: usize, lanes: u8) -> Rights {
        let lanes = usize::from(lanes.max(1));
        let all = hosts * hosts * lanes;
        Rights { lanes, hosts, locks: vec![None; all], cells: vec![Cell::default(); 2 * all] }
    }

    /// Whether a pair has such a cell.
    pub fn has(&self, cell: u8) -> bool {
        usize::from(cell) < 2 * self.lanes
    }

    fn at(&self, (source, destination): (usize, usize), cell: u8) -> usize {
        2 * self.lanes * (source * self.hosts + destination) + usize::from(cell)
    }

    /// Takes a cell for a reservation: what it held, or nothing if its lane's reservation has not begun.
    pub fn admit(
        &mut self,
        pair: (usize, usize),
        cell: u8,
        rights: u64,
        grace: Grace,
        now: Nanos,
    ) -> Option<u64> {
        let at = self.at(pair, cell);
        let lock = &mut self.locks[at / 2];
        match *lock {
            // It gives back and takes nothing.
            held if rights == 0 => *lock = held.filter(|half| *half != cell % 2),
            Some(half)
                if now.saturating_add(grace.0) < self.cells[at / 2 * 2 + usize::from(half)].starts_at =>
            {
                return None;
            }
            _ => *lock = Some(cell % 2),
        }
        let old = std::mem::replace(&mut self.cells[at].left, rights);
        self.cells[at].left_unsolicited = rights;
        Some(old)
    }

    /// Notes when the burst of a reservation that was admitted may begin.
    pub fn starts(&mut self, pair: (usize, usize), cell: u8, starts_at: Nanos) {
        let at = self.at(pair, cell);
        self.cells[at].starts_at = starts_at;
    }

    /// A frame claims what a cell holds: whether that covered it, and why it is demoted, if it is.
    pub fn claim(
        &mut self,
        pair: (usize, usize),
        cell: u8,
        unsolicited: bool,
        cost: u64,
        grace: Grace,
        now: Nanos,
    ) -> (bool, Result<(), Demoted>) {
        let at = self.at(pair, cell);
        let (lock, held) = (&mut self.locks[at / 2], &mut self.cells[at]);
        let take = |left: &mut u64| left.checked_sub(cost).map(|rest| *left = rest).is_some();
        if unsolicited {
            let covered = take(&mut held.left_unsolicited);
            return (covered, if covered { Ok(()) } else { Err(Demoted::UncoveredUnsolicited) });
        }
        let begins = *lock == Some(cell % 2);
        let covered = take(&mut held.left);
        let early = held.starts_at > now.saturating_add(grace.0);
        *lock = lock.filter(|_| !begins || early);
        // A burst that began too early counts as not begun, also where another frame of it was first.
        if early && covered {
            *lock = lock.or(Some(cell % 2));
        }
        let late = now > held.starts_at.saturating_add(grace.1);
        let verdict = match (covered, early, late) {
            (false, ..) => Err(Demoted::Uncovered),
            (_, true, _) => Err(Demoted::Early),
            (_, _, true) => Err(Demoted::Late),
            _ => Ok(()),
        };
        (covered, verdict)
    }

    /// Forgets a cell's reservation: what it held.
    pub fn forget(&mut self, pair: (usize, usize), cell: u8) -> u64 {
        let at = self.at(pair, cell);
        let lock = &mut self.locks[at / 2];
        *lock = lock.filter(|half| *half != cell % 2);
        self.cells[at].left_unsolicited = 0;
        std::mem::take(&mut self.cells[at].left)
    }

    /// What all cells of a source, or of a destination, hold.
    #[cfg(test)]
    pub fn held(&self, of: impl Fn(usize, usize) -> bool) -> u64 {
        let pair = |at: usize| (at / (2 * self.lanes) / self.hosts, at / (2 * self.lanes) % self.hosts);
        let cells = self.cells.iter().enumerate();
        cells.filter(|(at, _)| of(pair(*at).0, pair(*at).1)).map(|(_, cell)| cell.left).sum()
    }
}
