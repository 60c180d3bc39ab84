//! Locks that are held: their owners, and until when.
//!
//! A lock is a word of memory: 0, or the [lock word](p4rack_wire::clio::lock_word) of its owner. The board writes 0 for owners that have
//! died: when the lease has ended, or the process. Owners extend a lease by locking again.
//!
//! Only the word counts. If a process overwrites its lock with a plain write, the board leaves the word alone.
//!
//! A lock is in a frame, which several processes may share. So it outlives the page by which it was taken, and ends with the frame.

use super::entry::Space;
use super::recent::{Key, Recent};
use p4rack_wire::clio::PageSize;
use p4rack_wire::{Nanos, SplitMix};

/// A frame, from the time when a page takes it to the time when its last page has freed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Life {
    pub size: PageSize,
    pub frame: u32,
    /// How often the frame was freed before.
    pub nth: u32,
}

/// A lock that is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lock {
    pub owner: Space,
    /// The owner's lock word.
    pub word: u64,
    /// Its frame: after that was freed, the word is no longer the lock.
    pub life: Life,
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
    /// Locks by owner's PID.
    of: Vec<u32>,
    /// Locks of each process and of all.
    max: [u32; 2],
    lease: Nanos,
}

impl Locks {
    /// At most `max` locks of each of `processes` processes and of all; one of each process has always room.
    pub fn new(max: [u32; 2], processes: u32, lease: Nanos, seed: u64) -> Locks {
        let of = vec![0; processes as usize + 1];
        Locks { held: Recent::new(max[1].saturating_add(processes), seed), of, max, lease }
    }

    /// Whether a process can lock the word at this address: it has already, or there is room for another lock.
    pub fn has_room(&self, at: u64, owner: Space) -> bool {
        match self.held.get(&at) {
            Some(lock) if lock.owner == owner => true,
            known => {
                let own = self.of[owner.pid as usize];
                own < self.max[0] && (known.is_some() || own == 0 || self.held.len() < self.max[1])
            }
        }
    }

    /// Notes a lock, or that its owner has locked it again. The caller has asked for [room](Self::has_room).
    pub fn hold(&mut self, at: u64, owner: Space, word: u64, life: Life, now: Nanos) {
        self.release(at);
        self.of[owner.pid as usize] += 1;
        self.held.insert(at, Lock { owner, word, life, until: now.saturating_add(self.lease) });
    }

    /// The lock at this address was given back.
    pub fn release(&mut self, at: u64) {
        if let Some(lock) = self.held.remove(&at) {
            self.of[lock.owner.pid as usize] -= 1;
        }
    }

    /// When the first lease ends.
    pub fn next_end(&self) -> Option<Nanos> {
        self.held.oldest().map(|(_, lock)| lock.until)
    }

    /// Takes a lock out whose lease has ended, with its address.
    pub fn poll_ended(&mut self, now: Nanos) -> Option<(u64, Lock)> {
        let (at, lock) =
            self.held.oldest().filter(|(_, lock)| lock.until <= now).map(|(at, lock)| (*at, *lock))?;
        self.release(at);
        Some((at, lock))
    }

    /// The owner of each lock.
    pub fn owners(&self) -> impl Iterator<Item = Space> {
        self.held.iter().map(|(_, lock)| lock.owner)
    }

    /// The word of each lock.
    pub fn words(&self) -> impl Iterator<Item = u64> {
        self.held.iter().map(|(_, lock)| lock.word)
    }

    /// Takes a lock out whose owner is this process, with its address.
    pub fn poll_of(&mut self, owner: Space) -> Option<(u64, Lock)> {
        if self.of[owner.pid as usize] == 0 {
            return None;
        }
        let (at, lock) =
            self.held.iter().find(|(_, lock)| lock.owner == owner).map(|(at, lock)| (*at, *lock))?;
        self.release(at);
        Some((at, lock))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFE: Life = Life { size: PageSize::K4, frame: 0, nth: 0 };

    #[test]
    fn leases_end_in_order_unless_they_are_extended() {
        let (mut locks, owner) = (Locks::new([2, 2], 2, Nanos(100), 1), Space { pid: 1, epoch: 1 });
        locks.hold(8, owner, 1, LIFE, Nanos(0));
        locks.hold(16, owner, 2, LIFE, Nanos(10));
        assert!(locks.has_room(8, owner) && !locks.has_room(24, owner));
        locks.hold(8, owner, 1, LIFE, Nanos(20));
        assert_eq!((locks.next_end(), locks.poll_ended(Nanos(109))), (Some(Nanos(110)), None));
        assert_eq!(locks.poll_ended(Nanos(110)).map(|(at, lock)| (at, lock.word)), Some((16, 2)));
        assert_eq!(locks.poll_ended(Nanos(119)), None);
        locks.release(16);
        assert!(locks.poll_of(Space { pid: 2, epoch: 1 }).is_none());
        assert_eq!(locks.poll_of(owner).map(|(at, _)| at), Some(8));
        assert_eq!((locks.poll_of(owner), locks.next_end()), (None, None));
    }

    #[test]
    fn each_process_has_its_share() {
        let [one, other] = [1, 2].map(|pid| Space { pid, epoch: 1 });
        let mut locks = Locks::new([2, 3], 2, Nanos(100), 1);
        locks.hold(8, one, 1, LIFE, Nanos(0));
        locks.hold(16, one, 1, LIFE, Nanos(0));
        assert!(locks.has_room(8, one) && !locks.has_room(24, one) && locks.has_room(24, other));
        // A word that its owner has overwritten is locked by another process.
        locks.hold(16, other, 2, LIFE, Nanos(1));
        assert!(locks.has_room(24, one));
        locks.hold(24, other, 2, LIFE, Nanos(1));
        assert!(!locks.has_room(32, one), "three in all");
        assert!(!locks.has_room(8, other) && locks.poll_of(one).is_some() && locks.poll_of(one).is_none());
        locks.release(24);
        assert!(locks.has_room(8, other));
    }
}
