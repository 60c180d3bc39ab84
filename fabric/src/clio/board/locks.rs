//! Locks that are held: their owners, and until when.
//!
//! A lock is a word of memory: 0, or the [lock word](p4rack_wire::clio::lock_word) of its owner. The board writes 0 for owners that have
//! died: when the lease has ended, or the process. Owners extend a lease by locking again.
//!
//! The word is what counts. If a process overwrites its lock with a plain write, the board leaves the word alone.

use super::entry::{Entry, Space};
use super::recent::{Key, Recent};
use super::table::Slot;
use p4rack_wire::{Nanos, SplitMix};

/// A lock that is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lock {
    pub owner: Space,
    /// The owner's lock word.
    pub word: u64,
    /// The page by which it was locked, and its slot: after the page was freed, the word is no longer the lock.
    pub entry: Entry,
    pub slot: Slot,
    until: Nanos,
}

impl Key for u64 {
    #[inline]
    fn hash(&self, seed: u64) -> u64 {
        SplitMix(*self ^ seed).next()
    }
}

/// Locks by physical address. All leases are equally long, so the one that was locked first ends first.
#[derive(Clone, Debug)]
pub(super) struct Locks {
    held: Recent<u64, Lock>,
    lease: Nanos,
}

impl Locks {
    pub fn new(max: u32, lease: Nanos, seed: u64) -> Locks {
        Locks { held: Recent::new(max, seed), lease }
    }

    /// Whether the word at this address can be locked: it is already, or there is room for another lock.
    pub fn has_room(&self, at: u64) -> bool {
        !self.held.is_full() || self.held.get(&at).is_some()
    }

    /// Notes a lock, or that its owner has locked it again. The caller has asked for [room](Self::has_room).
    pub fn hold(&mut self, at: u64, owner: Space, word: u64, page: (Slot, Entry), now: Nanos) {
        let (slot, entry) = page;
        self.held.insert(at, Lock { owner, word, entry, slot, until: now.saturating_add(self.lease) });
    }

    /// The lock at this address was given back.
    pub fn release(&mut self, at: u64) {
        self.held.remove(&at);
    }

    /// When the first lease ends.
    pub fn next_end(&self) -> Option<Nanos> {
        self.held.oldest().map(|(_, lock)| lock.until)
    }

    /// Takes a lock out whose lease has ended, with its address.
    pub fn poll_ended(&mut self, now: Nanos) -> Option<(u64, Lock)> {
        let (at, lock) =
            self.held.oldest().filter(|(_, lock)| lock.until <= now).map(|(at, lock)| (*at, *lock))?;
        self.held.remove(&at);
        Some((at, lock))
    }

    /// Takes a lock out whose owner is this process, with its address.
    pub fn poll_of(&mut self, owner: Space) -> Option<(u64, Lock)> {
        let (at, lock) =
            self.held.iter().find(|(_, lock)| lock.owner == owner).map(|(at, lock)| (*at, *lock))?;
        self.held.remove(&at);
        Some((at, lock))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leases_end_in_order_unless_they_are_extended() {
        let (mut locks, owner) = (Locks::new(2, Nanos(100), 1), Space { pid: 1, epoch: 1 });
        locks.hold(8, owner, 1, (0, Entry::EMPTY), Nanos(0));
        locks.hold(16, owner, 2, (0, Entry::EMPTY), Nanos(10));
        assert!(locks.has_room(8) && !locks.has_room(24));
        locks.hold(8, owner, 1, (0, Entry::EMPTY), Nanos(20));
        assert_eq!((locks.next_end(), locks.poll_ended(Nanos(109))), (Some(Nanos(110)), None));
        assert_eq!(locks.poll_ended(Nanos(110)).map(|(at, lock)| (at, lock.word)), Some((16, 2)));
        assert_eq!(locks.poll_ended(Nanos(119)), None);
        locks.release(16);
        assert!(locks.poll_of(Space { pid: 2, epoch: 1 }).is_none());
        assert_eq!(locks.poll_of(owner).map(|(at, _)| at), Some(8));
        assert_eq!((locks.poll_of(owner), locks.next_end()), (None, None));
    }
}
