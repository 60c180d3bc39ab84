//! Numbers of threads, which tell owners of locks apart.
//!
//! ```text
//!   0  │  1 … 61,439                │  61,440 … 65,535
//!   –  │  given to clients in turn  │  given to none: users name them
//! ```
//!
//! A [lock word](p4rack_wire::clio::lock_word) has 16 bits for the thread, and a board has more clients than that in its life. So a number
//! is given out again, but only when its client has left and no lock is held in its name. One list serves all processes: a client may get
//! rights to a second process, and needs a number of its own there, too.

use p4rack_wire::clio::lock_thread;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// Numbers that clients are given.
pub(super) const GIVEN: RangeInclusive<u16> = 1..=61_439;

/// Numbers in use.
#[derive(Clone, Debug)]
pub(super) struct Threads {
    range: RangeInclusive<u16>,
    used: BTreeSet<u16>,
    last: u16,
}

impl Threads {
    pub fn new(range: RangeInclusive<u16>) -> Threads {
        let last = *range.end();
        Threads { range, used: BTreeSet::new(), last }
    }

    /// The next number that no client has and that is in none of the [words](p4rack_wire::clio::lock_word) of locks that are held; `None`
    /// if there is none. The one that was given back last comes last.
    pub fn take(&mut self, held: impl Iterator<Item = u64>) -> Option<u16> {
        // The owner of a lock may be gone before its lease is over.
        let locked: BTreeSet<u16> = held.map(lock_thread).collect();
        let behind = self.last.saturating_add(1)..=*self.range.end();
        let ahead = *self.range.start()..=self.last;
        let number =
            behind.chain(ahead).find(|number| !self.used.contains(number) && !locked.contains(number))?;
        self.used.insert(number);
        self.last = number;
        Some(number)
    }

    /// A client has left.
    pub fn give_back(&mut self, number: u16) {
        self.used.remove(&number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use p4rack_wire::clio::lock_word;
    use std::iter::empty;

    #[test]
    fn of_more_clients_than_numbers_none_has_that_of_another_one() {
        let mut threads = Threads::new(GIVEN);
        let first = threads.take(empty()).unwrap();
        assert_eq!(first, 1);
        let mut given = BTreeSet::new();
        for nth in 0..200_000 {
            let number = threads.take(empty()).unwrap();
            assert!(number != first && GIVEN.contains(&number), "{number}, client {nth}");
            given.insert(number);
            threads.give_back(number);
        }
        assert_eq!(given.len(), GIVEN.len() - 1, "each in its turn");
    }

    #[test]
    fn numbers_in_use_or_in_locks_are_not_given_and_the_last_one_is() {
        let mut threads = Threads::new(1..=4);
        // Of two processes, the second with an epoch.
        let held = || [lock_word(7, 2, 0), lock_word(9, 2, 4)].into_iter();
        let all: Vec<_> = (0..3).filter_map(|_| threads.take(held())).collect();
        assert_eq!(all, [1, 3, 4]);
        assert_eq!(threads.take(held()), None);
        threads.give_back(3);
        assert_eq!(threads.take(held()), Some(3));
        assert_eq!((threads.take(empty()), threads.take(empty())), (Some(2), None));
    }

    #[test]
    fn a_number_that_was_given_back_with_a_lock_waits_for_its_end() {
        let mut threads = Threads::new(1..=2);
        let (owner, other) = (threads.take(empty()), threads.take(empty()));
        assert_eq!((owner, other), (Some(1), Some(2)));
        threads.give_back(1);
        assert_eq!(threads.take([lock_word(7, 1, 0)].into_iter()), None, "its lock is still held");
        threads.give_back(2);
        assert_eq!(threads.take([lock_word(7, 1, 0)].into_iter()), Some(2));
        assert_eq!(threads.take(empty()), Some(1), "the lock's lease is over");
    }
}
