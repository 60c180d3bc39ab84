//! The operations of a flow: when the next one begins, which place it reads or writes, and whether what comes back is right.
//!
//! ```text
//!  Idle ─┬─ read ──▶ Reads ── bytes: right or wrong ───────────────▶ Idle
//!        └─ write ─▶ Writes ─ done ────────────────────────────────▶ Idle
//!                       ▲  └─ sent ─▶ Rests ─▶ Looks ─ its bytes ──▶ Idle
//!                       └─ too late ─── ▲ ───────┘ earlier bytes
//! ```
//!
//! A write whose end means only that it has left ends once a read has found it, as for the library's programs
//! (`p4rack_hosts::remote::Certain`).

use super::cells::{CellContent, Cells};
use crate::random::{Distribution, Random};
use p4rack_wire::Nanos;

/// Pause before a read looks again for a write, and before the next operation after one that failed.
const PAUSE: Nanos = Nanos::from_micros(50);
/// A write that no read has found for this long ends as unknown.
const PATIENCE: Nanos = Nanos::from_secs(2);
/// Flows begin at random within this time, so that they are out of step.
const SPREAD_NS: u64 = 100_000;

/// How a flow operates.
#[derive(Clone, Debug)]
pub(in crate::topology) struct Pace {
    /// Share of reads.
    pub reads: f64,
    /// Operations under way, and in all.
    pub under_way: usize,
    pub most: u64,
    pub start: Nanos,
    pub stop: Nanos,
    /// Time between an end and the next operation.
    pub think: Nanos,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Idle,
    Reads,
    Writes,
    /// Looks for a write that left at this time, or waits until it does.
    Looks(Nanos),
    Rests(Nanos),
}

#[derive(Clone, Debug)]
struct Slot {
    step: Step,
    /// When it continues although its request has not ended.
    due: Nanos,
    begun: Nanos,
    cell: usize,
    checked_bytes: u64,
    again: u32,
}

/// A request to a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ask {
    pub slot: u16,
    /// First byte in the flow's part.
    pub at: u64,
    pub bytes: u32,
    pub is_write: bool,
}

/// How a request to a machine ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End<'a> {
    Read(&'a [u8]),
    /// A write has been executed.
    Done,
    /// All of a write has left.
    Sent,
    Refused,
    /// There is no answer.
    Unknown,
}

/// How an operation has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::topology) enum How {
    Done,
    /// It returned this many bytes that were never written there.
    Wrong(u64),
    Refused,
    Unknown,
}

/// An operation that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::topology) struct Ended {
    pub how: How,
    pub is_read: bool,
    pub bytes: u32,
    pub begun: Nanos,
    /// Bytes that were compared.
    pub checked_bytes: u64,
    /// How often its bytes were written again.
    pub again: u32,
}

impl Ended {
    /// Whether it was executed, with the right bytes.
    pub fn is_done(&self) -> bool {
        self.how == How::Done
    }
}

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Operations {
    cells: Cells,
    slots: Vec<Slot>,
    pace: Pace,
    /// After this time, no frame of a write that has left is under way.
    rewrite: Nanos,
    random: Random,
    /// Operations that have begun.
    pub begun: u64,
}

impl Operations {
    /// Operations on a part of this many bytes.
    pub fn new(
        part_bytes: u64,
        sizes: &Distribution,
        pace: Pace,
        rewrite: Nanos,
        mut random: Random,
    ) -> Operations {
        let cells = Cells::new(part_bytes, sizes, &mut random);
        let mut slot = |_| Slot {
            step: Step::Idle,
            due: pace.start + Nanos(random.below(SPREAD_NS)),
            begun: Nanos::ZERO,
            cell: 0,
            checked_bytes: 0,
            again: 0,
        };
        let slots = (0..pace.under_way).map(&mut slot).collect();
        Operations { cells, slots, pace, rewrite, random, begun: 0 }
    }

    /// Writes the first contents of its part.
    pub fn begin(&self, part: &mut [u8]) {
        self.cells.begin(part);
    }

    /// When it continues although its request has not ended. `Nanos::MAX`: never.
    pub fn due(&self) -> Nanos {
        self.slots.iter().map(|slot| slot.due).min().unwrap_or(Nanos::MAX)
    }

    /// The next thing to ask for, with a write's bytes over `data`. Call until `None`.
    pub fn next(&mut self, now: Nanos, data: &mut Vec<u8>) -> Option<Ask> {
        loop {
            let nth = self.slots.iter().position(|slot| slot.due <= now)?;
            let slot = &mut self.slots[nth];
            slot.due = Nanos::MAX;
            match slot.step {
                Step::Idle => {
                    if self.begun >= self.pace.most || now >= self.pace.stop {
                        continue;
                    }
                    let Some(cell) = self.cells.take(&mut self.random) else { continue };
                    let is_read = self.random.chance(self.pace.reads);
                    if !is_read {
                        self.cells.write(cell);
                    }
                    let step = if is_read { Step::Reads } else { Step::Writes };
                    *slot = Slot { step, due: Nanos::MAX, begun: now, cell, checked_bytes: 0, again: 0 };
                    self.begun += 1;
                }
                Step::Rests(left) if now.saturating_sub(left) >= self.rewrite => {
                    slot.step = Step::Writes;
                    slot.again += 1;
                }
                Step::Rests(left) => slot.step = Step::Looks(left),
                Step::Reads | Step::Writes | Step::Looks(_) => continue,
            }
            let (cell, is_write) = (slot.cell, slot.step == Step::Writes);
            if is_write {
                self.cells.latest(cell, data);
            }
            let (at, bytes) = self.cells.place(cell);
            return Some(Ask { slot: nth as u16, at, bytes, is_write });
        }
    }

    /// Handles the end of a request. Returns the operation if that has ended.
    pub fn ended(&mut self, nth: u16, end: End<'_>, now: Nanos) -> Option<Ended> {
        let slot = self.slots.get_mut(usize::from(nth)).filter(|slot| slot.due == Nanos::MAX)?;
        let found = match end {
            End::Read(bytes) => {
                slot.checked_bytes += bytes.len() as u64;
                Some(self.cells.check(slot.cell, bytes))
            }
            _ => None,
        };
        let how = match (slot.step, end, found) {
            (Step::Idle | Step::Rests(_), ..) => return None,
            (_, _, Some(CellContent::Wrong(bytes))) => How::Wrong(bytes),
            (Step::Writes, End::Sent, _) => {
                (slot.step, slot.due) = (Step::Rests(now), now);
                return None;
            }
            (Step::Looks(left), _, Some(CellContent::Earlier))
                if now.saturating_sub(slot.begun) < PATIENCE =>
            {
                (slot.step, slot.due) = (Step::Rests(left), now + PAUSE);
                return None;
            }
            (Step::Reads, _, Some(_)) | (Step::Looks(_), _, Some(CellContent::Latest)) => How::Done,
            (Step::Writes, End::Done, _) => How::Done,
            (_, End::Refused, _) => How::Refused,
            _ => How::Unknown,
        };
        let (begun, checked_bytes, again) = (slot.begun, slot.checked_bytes, slot.again);
        let is_read = slot.step == Step::Reads;
        match is_read {
            true => self.cells.read(slot.cell),
            false => self.cells.wrote(slot.cell, how == How::Done),
        }
        let think = if how == How::Done { self.pace.think } else { self.pace.think.max(PAUSE) };
        (slot.step, slot.due) = (Step::Idle, now + think);
        let bytes = self.cells.place(slot.cell).1;
        Some(Ended { how, is_read, bytes, begun, checked_bytes, again })
    }

    /// Reads and writes that have not ended.
    pub fn open(&self) -> [u64; 2] {
        let of = |is_read: bool| {
            let open = self.slots.iter().filter(|slot| slot.step != Step::Idle);
            open.filter(|slot| (slot.step == Step::Reads) == is_read).count() as u64
        };
        [of(true), of(false)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REWRITE: Nanos = Nanos::from_micros(120);

    fn operations(reads: f64) -> Operations {
        let pace = Pace {
            reads,
            under_way: 1,
            most: 3,
            start: Nanos::ZERO,
            stop: Nanos::from_secs(9),
            think: Nanos(5),
        };
        Operations::new(4_096, &Distribution::constant(16), pace, REWRITE, Random::new(1))
    }

    /// The next request, and its time.
    fn next(operations: &mut Operations) -> (Ask, Nanos, Vec<u8>) {
        let (now, mut data) = (operations.due(), Vec::new());
        (operations.next(now, &mut data).expect("something is due"), now, data)
    }

    #[test]
    fn reads_are_compared_with_what_is_there() {
        let mut operations = operations(1.0);
        let mut part = vec![0; 4_096];
        operations.begin(&mut part);
        let mut hows = Vec::new();
        for damage in [0, 1, 0] {
            let (ask, now, _) = next(&mut operations);
            let mut bytes = part[ask.at as usize..][..16].to_vec();
            bytes[3] ^= damage;
            hows.push(operations.ended(ask.slot, End::Read(&bytes), now + Nanos(7)).map(|ended| ended.how));
        }
        assert_eq!(hows, [Some(How::Done), Some(How::Wrong(1)), Some(How::Done)]);
        assert_eq!(operations.next(Nanos::from_secs(1), &mut Vec::new()), None, "three were asked for");
    }

    #[test]
    fn a_write_that_only_left_is_looked_for_and_written_again() {
        let mut operations = operations(0.0);
        let mut part = vec![0; 4_096];
        operations.begin(&mut part);
        let (ask, begun, data) = next(&mut operations);
        assert!(ask.is_write && data.len() == 16);
        assert_eq!(operations.ended(ask.slot, End::Sent, begun), None);
        let before = &part[ask.at as usize..][..16];
        let mut asked = Vec::new();
        loop {
            let (ask, now, again) = next(&mut operations);
            asked.push((now.saturating_sub(begun), ask.is_write));
            if ask.is_write {
                assert_eq!(again, data);
                assert_eq!(operations.ended(ask.slot, End::Sent, now), None);
                let (look, now, _) = next(&mut operations);
                let ended = operations.ended(look.slot, End::Read(&data), now).expect("it is there");
                assert_eq!((ended.how, ended.again, ended.is_read), (How::Done, 1, false));
                break;
            }
            assert_eq!(operations.ended(ask.slot, End::Read(before), now), None);
        }
        let us = Nanos::from_micros;
        assert_eq!(asked, [(us(0), false), (us(50), false), (us(100), false), (us(150), true)]);
        let (ask, now, _) = next(&mut operations);
        assert_eq!(operations.open(), [0, 1]);
        let ended = operations.ended(ask.slot, End::Unknown, now).expect("it is over");
        assert_eq!((ended.how, operations.open()), (How::Unknown, [0, 0]));
    }
}
