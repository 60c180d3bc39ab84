//! Results of requests that change something, so that none is executed twice (paper §4.5).
//!
//! ```text
//!   attempt 0 ── lost or late ──────────────────────────▶ not executed: attempt 1 was
//!   attempt 1, same id ──▶ executed, remembered by (process, id, index)
//!   attempt 2 ───────────▶ not executed, gets the same result
//! ```
//!
//! In the paper a retry has a new id and names the old one, and the board remembers the ids of what it executed. A late original then
//! finds nothing under its own id and undoes later writes. Here all attempts have one id, so whichever comes first is the only one.
//!
//! Parts of a long write are remembered one by one: a retry repeats all of them, and only those that were lost are executed.
//!
//! A refusal that is not temporary is a result as well: the client gives up, and a late original must not succeed after that.
//!
//! A result is kept for a time, not for a number of others. If there is no room for another one, the board answers
//! [`Busy`](p4rack_wire::clio::Status::Busy) instead of forgetting a younger one.
//!
//! A call under way has no result yet, and may take longer than results are kept. Its place is set aside when it begins, so that its
//! result is kept whatever others do in between.

use super::entry::Space;
use super::recent::{Key, Recent};
use p4rack_wire::clio::Status;
use p4rack_wire::{Nanos, SplitMix};
use std::ops::Range;

/// The key that all attempts of a packet share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Operation {
    pub space: Space,
    pub id: u64,
    pub index: u16,
}

impl Key for Operation {
    #[inline]
    fn hash(&self, seed: u64) -> u64 {
        let space =
            u64::from(self.space.pid) << 32 | u64::from(self.space.epoch) << 16 | u64::from(self.index);
        SplitMix(SplitMix(space ^ seed).next() ^ self.id).next()
    }
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ended {
    pub status: Status,
    /// The answer's address.
    pub address: u64,
    /// The old word of an atomic operation.
    pub word: u64,
}

/// Results of the last operations, refusals included.
#[derive(Clone, Debug)]
pub(super) struct Retries {
    ended: Recent<Operation, (Nanos, Ended)>,
    keep: Nanos,
    /// Results that may be kept, those of calls under way included.
    max: u32,
    /// Places for results of calls under way.
    set_aside: u32,
}

impl Retries {
    /// At most `entries` results, each kept for at least `keep`.
    pub fn new(entries: u32, keep: Nanos, seed: u64) -> Retries {
        Retries { ended: Recent::new(entries, seed), keep, max: entries, set_aside: 0 }
    }

    /// Takes all of the memory now. No result was kept yet.
    pub fn prefault(&mut self) {
        let operation = Operation { space: Space { pid: 0, epoch: 0 }, id: 0, index: 0 };
        let ended = Ended { status: Status::Done, address: 0, word: 0 };
        self.ended.prefault(operation, (Nanos::ZERO, ended));
    }

    /// Where the results are.
    pub fn memory(&self) -> Range<*const u8> {
        self.ended.memory()
    }

    /// The result of an operation that was executed. After its time an id counts as new, although its entry may still be there: clients
    /// use ids again.
    #[inline]
    pub fn find(&self, operation: &Operation, now: Nanos) -> Option<Ended> {
        let is_kept = |at: Nanos| now < at.saturating_add(self.keep);
        self.ended.get(operation).filter(|(at, _)| is_kept(*at)).map(|(_, ended)| *ended)
    }

    /// Whether another result can be kept: there is room, or the oldest result has expired.
    #[inline]
    pub fn has_room(&self, now: Nanos) -> bool {
        !self.is_full() || self.ended.oldest().is_some_and(|(_, (at, _))| at.saturating_add(self.keep) <= now)
    }

    #[inline]
    fn is_full(&self) -> bool {
        self.ended.len() + self.set_aside >= self.max
    }

    /// Keeps the result of an operation. The caller has asked for [room](Self::has_room).
    #[inline]
    pub fn keep(&mut self, operation: Operation, ended: Ended, now: Nanos) {
        if self.is_full() {
            self.ended.remove_oldest();
        }
        self.ended.insert(operation, (now, ended));
    }

    /// Sets a place aside for the result of a call that begins. The caller has asked for [room](Self::has_room).
    pub fn set_aside(&mut self) {
        if self.is_full() {
            self.ended.remove_oldest();
        }
        self.set_aside += 1;
    }

    /// Gives back the places of calls that were not executed.
    pub fn give_back(&mut self, calls: u32) {
        self.set_aside -= calls;
    }

    /// Keeps the result of a call, in the place that was set aside.
    pub fn keep_call(&mut self, operation: Operation, ended: Ended, now: Nanos) {
        self.set_aside -= 1;
        self.keep(operation, ended, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(id: u64, index: u16) -> Operation {
        Operation { space: Space { pid: 1, epoch: 1 }, id, index }
    }

    const DONE: Ended = Ended { status: Status::Done, address: 0, word: 5 };

    #[test]
    fn results_are_kept_by_packet_and_for_their_time() {
        let mut retries = Retries::new(2, Nanos(100), 3);
        retries.keep(operation(1, 0), DONE, Nanos(0));
        assert!(retries.has_room(Nanos(10)));
        retries.keep(operation(1, 1), DONE, Nanos(10));
        assert_eq!(retries.find(&operation(1, 1), Nanos(10)), Some(DONE));
        assert_eq!(
            [operation(1, 2), operation(2, 0)].map(|other| retries.find(&other, Nanos(10))),
            [None; 2]
        );
        let other = Operation { space: Space { pid: 1, epoch: 2 }, ..operation(1, 0) };
        assert_eq!(retries.find(&other, Nanos(10)), None, "another process with the same PID");
        assert!(!retries.has_room(Nanos(99)), "the oldest is too young to go");
        assert!(retries.has_room(Nanos(100)));
        retries.keep(operation(7, 0), DONE, Nanos(100));
        assert_eq!([0, 1].map(|index| retries.find(&operation(1, index), Nanos(100))), [None, Some(DONE)]);
        assert!(!Retries::new(0, Nanos(1), 0).has_room(Nanos(5)), "without entries nothing can be kept");
    }

    /// Ids wrap around. A board with few writes still has the entry of the one that had the id before.
    #[test]
    fn an_id_that_is_used_again_after_its_time_is_a_new_operation() {
        let mut retries = Retries::new(8, Nanos(100), 3);
        retries.keep(operation(1, 0), DONE, Nanos(0));
        let find = |retries: &Retries, now| retries.find(&operation(1, 0), Nanos(now));
        assert_eq!([99, 100].map(|now| find(&retries, now)), [Some(DONE), None]);
        let again = Ended { word: 6, ..DONE };
        retries.keep(operation(1, 0), again, Nanos(100));
        assert_eq!([100, 199, 200].map(|now| find(&retries, now)), [Some(again), Some(again), None]);
    }

    #[test]
    fn a_call_under_way_keeps_its_place_however_long_it_takes() {
        let mut retries = Retries::new(2, Nanos(100), 3);
        retries.set_aside();
        retries.keep(operation(1, 0), DONE, Nanos(0));
        assert!(!retries.has_room(Nanos(99)) && retries.has_room(Nanos(500)));
        retries.keep(operation(2, 0), DONE, Nanos(500));
        assert_eq!([1, 2].map(|id| retries.find(&operation(id, 0), Nanos(500))), [None, Some(DONE)]);
        assert!(!retries.has_room(Nanos(501)));
        retries.keep_call(operation(3, 0), DONE, Nanos(501));
        assert_eq!(
            [2, 3].map(|id| retries.find(&operation(id, 0), Nanos(501))),
            [Some(DONE); 2],
            "neither has gone for the other"
        );
        // Without results to forget, calls alone use up the room.
        let mut retries = Retries::new(1, Nanos(100), 3);
        retries.set_aside();
        assert!(!retries.has_room(Nanos(1_000)));
        retries.give_back(1);
        assert!(retries.has_room(Nanos(0)));
    }
}
