//! Rights of reservations: the lanes and cells of every (source, destination) pair.

use p4rack_fabric::pl2::full_frame_wire_bytes;

/// The switch's clock has 48 bits.
const TIMES: u64 = 1 << 48;
/// Larger differences mean a time in the past.
const HORIZON: u64 = 1 << 30;

/// How far `time` is ahead of `now`, in ticks; 0 if it is in the past.
pub(crate) fn ahead(time: u64, now: u64) -> u64 {
    Some(time.wrapping_sub(now) % TIMES).filter(|ahead| *ahead < HORIZON).unwrap_or(0)
}

/// Limits of the rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Lanes per pair.
    pub lanes: u8,
    /// With clocks: parts of a slot, the unit of reservations.
    pub slot_parts: u8,
    /// t: waits up to this many slots let a burst go unsolicited.
    pub t_slots: u64,
    /// T: unsolicited frames are dropped while more slots are reserved.
    pub drop_threshold_slots: u64,
    /// Wire bytes of a full frame, which fills a slot.
    pub full_wire_bytes: u64,
    /// How early a frame may come, in slots of the slower link.
    pub early_slots: u64,
    /// How late a frame may come, in the same slots.
    pub late_slots: u64,
}

impl Limits {
    /// Whole slots, T = 8 t (at least 32), frames with shims at most 4 slots early and K + 1000 slots late.
    pub fn new(lanes: u8, k: u8, t_slots: u32) -> Limits {
        Limits {
            lanes,
            slot_parts: 1,
            t_slots: t_slots.into(),
            drop_threshold_slots: u64::from(8 * t_slots).max(32),
            full_wire_bytes: full_frame_wire_bytes(true),
            early_slots: 4,
            late_slots: 1000 + u64::from(k),
        }
    }
}

/// Why a frame that claims a reservation becomes best effort.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Demoted {
    /// Its cell does not hold enough, or its burst was sent unsolicited.
    Uncovered,
    /// Unsolicited beyond the demand.
    UncoveredUnsolicited,
    /// It comes before its burst's time.
    Early,
    /// It comes long after its burst's time.
    Late,
}

/// Fate of a frame that claims a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is scheduled.
    Scheduled,
    /// It becomes best effort.
    Demoted(Demoted),
    /// Unsolicited although its waits exceed t: it is dropped, and will come again in its slots.
    HasSlots,
    /// Unsolicited while more than T is reserved: it is dropped.
    OverThreshold,
}

/// The rights of a cell before its slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unsolicited {
    Left(u64),
    /// None, because its waits exceed t.
    HasSlots,
}

/// The remaining rights of a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cell {
    left: u64,
    unsolicited: Unsolicited,
    starts_at: u64,
    /// Whether its burst went unsolicited, so that it has no slots.
    went_unsolicited: bool,
}

/// The half of a lane with a reservation that has not begun.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Lock {
    half: Option<u8>,
    /// Whether frames do not free it.
    hard: bool,
}

/// How early and how late a frame may come, in ticks.
pub type Grace = (u64, u64);
/// Source, destination and the pair's cell.
pub type Name = (usize, usize, u8);

/// All lanes. Times are ticks of the switch's clock, compared as in the program, which sees 48 bits of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rights {
    lanes: usize,
    hosts: usize,
    /// Whether a half that holds a lane and never sent gives back its slots, as in counter mode.
    counting: bool,
    locks: Vec<Lock>,
    cells: Vec<Cell>,
}

impl Rights {
    /// All lanes of all pairs of hosts, free. `counting` means counter mode.
    pub fn new(hosts: usize, lanes: u8, counting: bool) -> Rights {
        let lanes = usize::from(lanes.max(1));
        let all = hosts * hosts * lanes;
        let cell = Cell { left: 0, unsolicited: Unsolicited::Left(0), starts_at: 0, went_unsolicited: false };
        Rights { lanes, hosts, counting, locks: vec![Lock::default(); all], cells: vec![cell; 2 * all] }
    }

    /// Whether a pair has such a cell.
    pub fn has(&self, cell: u8) -> bool {
        usize::from(cell) < 2 * self.lanes
    }

    fn at(&self, (source, destination, cell): Name) -> usize {
        2 * self.lanes * (source * self.hosts + destination) + usize::from(cell)
    }

    fn has_not_begun(&self, at: usize, (early, _): Grace, now: u64) -> bool {
        ahead(self.cells[at].starts_at, now) > early
    }

    /// Handles an RSV for its lane. Returns `None` if it must wait. Otherwise the RSV takes the lane, unless
    /// it demands nothing, and the result is the other half's released slots, if that held the lane and
    /// never sent.
    pub fn take(&mut self, name: Name, demand: u8, grace: Grace, now: u64) -> Option<u64> {
        let (at, half) = (self.at(name), name.2 % 2);
        let holder = self.locks[at / 2].half;
        let mut released = 0;
        if let Some(holder) = holder.filter(|holder| demand > 0 || *holder == half) {
            let other = at / 2 * 2 + usize::from(holder);
            if self.has_not_begun(other, grace, now) {
                return None;
            }
            if self.counting && holder != half {
                released = std::mem::take(&mut self.cells[other].left);
                self.cells[other].unsolicited = Unsolicited::Left(0);
            }
        }
        if demand > 0 {
            self.locks[at / 2] = Lock { half: Some(half), hard: false };
        } else if holder == Some(half) {
            self.locks[at / 2] = Lock::default();
        }
        Some(released)
    }

    /// Replaces the rights of a cell. Returns the slots that it still held.
    pub fn replace(&mut self, name: Name, right: u64) -> u64 {
        let at = self.at(name);
        std::mem::replace(&mut self.cells[at].left, right)
    }

    /// Sets the consequences of both waits: when the burst begins, or whether it is sent (`announced`) and
    /// may be sent (`short`) before.
    pub fn settle(&mut self, name: Name, starts_at: u64, announced: bool, short: bool) {
        let at = self.at(name);
        let cell = &mut self.cells[at];
        cell.starts_at = starts_at % TIMES;
        cell.went_unsolicited = announced && short;
        cell.unsolicited = match (announced, short) {
            (true, true) => Unsolicited::Left(cell.left),
            (true, false) => Unsolicited::HasSlots,
            (false, _) => Unsolicited::Left(0),
        };
    }

    /// A frame claims the rights of a cell. Returns whether it was covered, and why it is demoted if it is
    /// not.
    pub fn scheduled(
        &mut self,
        name: Name,
        cost: u64,
        grace: Grace,
        now: u64,
    ) -> (bool, Result<(), Demoted>) {
        let (at, half) = (self.at(name), name.2 % 2);
        let begins = self.locks[at / 2] == Lock { half: Some(half), hard: false };
        if begins {
            self.locks[at / 2] = Lock::default();
        }
        let covered = spend(&mut self.cells[at].left, cost);
        // A burst that began too early counts as not begun, even if another frame of it came first.
        if (covered || begins) && self.has_not_begun(at, grace, now) {
            let lock = &mut self.locks[at / 2];
            *lock = Lock { half: lock.half.or(Some(half)), hard: true };
            return (covered, Err(Demoted::Early));
        }
        let (cell, (early, late)) = (&self.cells[at], grace);
        if !covered || cell.went_unsolicited {
            return (covered, Err(Demoted::Uncovered));
        }
        let in_time = now.wrapping_sub(cell.starts_at).wrapping_add(early) % TIMES <= early + late;
        (true, if in_time { Ok(()) } else { Err(Demoted::Late) })
    }

    /// A frame comes before its burst's slots. Returns whether that is covered, or must not be.
    pub fn unsolicited(&mut self, name: Name, cost: u64) -> Fate {
        let at = self.at(name);
        match &mut self.cells[at].unsolicited {
            Unsolicited::HasSlots => Fate::HasSlots,
            Unsolicited::Left(left) => match spend(left, cost) {
                true => Fate::Scheduled,
                false => Fate::Demoted(Demoted::UncoveredUnsolicited),
            },
        }
    }

    /// Takes back a cell's reservation. Returns the slots that it held.
    pub fn forget(&mut self, name: Name) -> u64 {
        let at = self.at(name);
        if self.locks[at / 2].half == Some(name.2 % 2) {
            self.locks[at / 2] = Lock::default();
        }
        self.cells[at].unsolicited = Unsolicited::Left(0);
        std::mem::take(&mut self.cells[at].left)
    }

    /// Slots in all cells of a source, or of a destination.
    #[cfg(test)]
    pub fn held(&self, of: impl Fn(usize, usize) -> bool) -> u64 {
        let pair = |at: usize| (at / (2 * self.lanes) / self.hosts, at / (2 * self.lanes) % self.hosts);
        let cells = self.cells.iter().enumerate();
        cells.filter(|(at, _)| of(pair(*at).0, pair(*at).1)).map(|(_, cell)| cell.left).sum()
    }
}

/// Deducts the cost if enough is left.
fn spend(left: &mut u64, cost: u64) -> bool {
    left.checked_sub(cost).map(|rest| *left = rest).is_some()
}
