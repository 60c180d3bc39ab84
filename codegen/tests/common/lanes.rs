//! The lanes of all pairs in a few lines of Rust, to compare the programs with.

use super::{Built, Fate};
use p4rack_codegen::Scheme;
use std::collections::HashMap;

const TIMES: u64 = 1 << 48;

/// What a cell holds.
#[derive(Clone, Copy, Default)]
struct Cell {
    left: u64,
    left_unsolicited: u64,
    start: u64,
}

/// A cell by source port, destination port and number within the pair.
pub type Name = (u16, u16, u8);

pub struct Lanes {
    early: u64,
    late: u64,
    /// What a slot (or part of one) gives a right to: frames, or bytes on the wire.
    unit: u64,
    frames: bool,
    count: u8,
    /// Bytes of the longest frame that counts as one.
    full: u64,
    /// Cells that hold their lanes, by lane, and whether frames don't free them.
    holders: HashMap<Name, (u8, bool)>,
    cells: HashMap<Name, Cell>,
}

impl Lanes {
    pub fn new(built: &Built) -> Lanes {
        let (rack, frames) = (&built.rack, built.scheme == Scheme::Pl2Counter);
        Lanes {
            early: rack.early_units(),
            late: rack.late_units(),
            unit: if frames { 1 } else { rack.part_wire_bytes() },
            frames,
            full: rack.wire_bytes(built.scheme) - 24,
            count: rack.pl2.as_ref().map_or(0, |pl2| pl2.lanes),
            holders: HashMap::new(),
            cells: HashMap::new(),
        }
    }

    pub fn exists(&self, cell: u8) -> bool {
        cell / 2 < self.count
    }

    fn lane((from, to, cell): Name) -> Name {
        (from, to, cell / 2)
    }

    /// Whether this start is further ahead than a burst may come.
    fn has_not_begun(&self, start: u64, now: u64) -> bool {
        let ahead = start.wrapping_sub(now) % TIMES;
        ahead > self.early && ahead < 1 << 30
    }

    /// What an RSV makes of the lane: `None` if it must wait; else it takes it, and so much is given back of a half that
    /// held it and never sent.
    pub fn take(&mut self, name: Name, demand: u8, now: u64) -> Option<u64> {
        let holder = self.holders.get(&Self::lane(name)).map(|holder| holder.0);
        let mut given_back = 0;
        if let Some(holder) = holder.filter(|holder| demand > 0 || *holder == name.2) {
            let other = (name.0, name.1, holder);
            let start = self.cells.get(&other).map_or(0, |cell| cell.start);
            if self.has_not_begun(start, now) {
                return None;
            }
            if self.frames && holder != name.2 {
                given_back = self.replace(other, 0);
            }
        }
        if demand > 0 {
            self.holders.insert(Self::lane(name), (name.2, false));
        } else if holder == Some(name.2) {
            self.holders.remove(&Self::lane(name));
        }
        Some(given_back)
    }

    fn cost(&self, bytes: u64) -> u64 {
        match self.frames {
            true if bytes > self.full => u64::MAX,
            true => 1,
            false => bytes + 24,
        }
    }

    /// Gives rights; returns the slots or bytes that the cell still held.
    pub fn replace(&mut self, name: Name, demand: u8) -> u64 {
        let cell = self.cells.entry(name).or_default();
        let right = u64::from(demand) * self.unit;
        cell.left_unsolicited = right;
        std::mem::replace(&mut cell.left, right)
    }

    pub fn begin_at(&mut self, name: Name, start: u64) {
        self.cells.entry(name).or_default().start = start % TIMES;
    }

    /// Nothing was reserved after all.
    pub fn give_back(&mut self, name: Name) {
        self.holders.remove(&Self::lane(name));
        self.replace(name, 0);
    }

    /// A scheduled frame of so many bytes: its fate, and whether it was covered.
    pub fn scheduled(&mut self, name: Name, bytes: u64, now: u64) -> (Fate, bool) {
        let holds = self.holders.get(&Self::lane(name)) == Some(&(name.2, false));
        if holds {
            self.holders.remove(&Self::lane(name));
        }
        let cost = self.cost(bytes);
        let cell = self.cells.entry(name).or_default();
        let covered = cost <= cell.left;
        if covered {
            cell.left -= cost;
        }
        let start = cell.start;
        if (covered || holds) && self.has_not_begun(start, now) {
            self.holders.entry(Self::lane(name)).or_insert((name.2, true)).1 = true;
            return (Fate::Demoted("early"), covered);
        }
        if !covered {
            return (Fate::Demoted("uncovered"), false);
        }
        let since = now.wrapping_sub(start).wrapping_add(self.early) % TIMES;
        let in_time = since <= self.early + self.late;
        (if in_time { Fate::Scheduled } else { Fate::Demoted("late") }, true)
    }

    /// Whether an unsolicited frame is covered.
    pub fn unsolicited(&mut self, name: Name, bytes: u64) -> bool {
        let cost = self.cost(bytes);
        let cell = self.cells.entry(name).or_default();
        let covered = cost <= cell.left_unsolicited;
        if covered {
            cell.left_unsolicited -= cost;
        }
        covered
    }

    /// The controller takes back what a cell holds; how much.
    pub fn forget(&mut self, name: Name) -> u64 {
        if self.holders.get(&Self::lane(name)).is_some_and(|holder| holder.0 == name.2) {
            self.holders.remove(&Self::lane(name));
        }
        self.replace(name, 0)
    }
}
