//! Locks: the times for which an owner certainly has one. Those of two owners never overlap.

use p4rack_wire::Nanos;
use std::collections::BTreeMap;

/// A lock: board, its start, and which of its locks.
pub(super) type Lock = (usize, u64, usize);
/// A session, and its thread.
pub(super) type Owner = (usize, u16);

#[derive(Clone, Copy, Debug)]
struct Hold {
    owner: Owner,
    /// From the answer on, until the owner asks to unlock, has crashed, or the lease may have ended.
    from: Nanos,
    until: Nanos,
}

/// All times for which locks were held.
#[derive(Debug, Default)]
pub(super) struct Holds {
    all: BTreeMap<Lock, Vec<Hold>>,
}

impl Holds {
    /// An owner has got a lock, or extended it.
    pub fn hold(&mut self, lock: Lock, owner: Owner, from: Nanos, until: Nanos) {
        self.give_up(lock, owner, from);
        if from < until {
            self.all.entry(lock).or_default().push(Hold { owner, from, until });
        }
    }

    /// From now on, an owner may no longer have a lock.
    pub fn give_up(&mut self, lock: Lock, owner: Owner, now: Nanos) {
        let holds = self.all.get_mut(&lock).into_iter().flatten();
        for hold in holds.filter(|hold| hold.owner == owner) {
            hold.until = hold.until.min(now);
        }
    }

    /// A session is closed: its locks may be others'.
    pub fn close(&mut self, session: usize, now: Nanos) {
        for hold in self.all.values_mut().flatten().filter(|hold| hold.owner.0 == session) {
            hold.until = hold.until.min(now);
        }
    }

    /// Until when an owner has a lock, if it has it.
    pub fn until(&self, lock: Lock, owner: Owner) -> Option<Nanos> {
        let holds = self.all.get(&lock).into_iter().flatten();
        holds.filter(|hold| hold.owner == owner).map(|hold| hold.until).max()
    }

    /// Locks that two owners had, in words.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for ((board, life, nth), holds) in &self.all {
            let mut holds: Vec<&Hold> = holds.iter().filter(|hold| hold.from < hold.until).collect();
            holds.sort_by_key(|hold| hold.from);
            for pair in holds.windows(2).filter(|pair| pair[1].from < pair[0].until) {
                let (one, other) = (pair[0], pair[1]);
                problems.push(format!(
                    "board {board}, start {life}, lock {nth}: {:?} has it until {}, and {:?} from {} on",
                    one.owner, one.until, other.owner, other.from
                ));
            }
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCK: Lock = (0, 0, 0);

    #[test]
    fn two_owners_at_a_time_are_a_problem() {
        let mut holds = Holds::default();
        holds.hold(LOCK, (0, 0), Nanos(10), Nanos(100));
        holds.give_up(LOCK, (0, 0), Nanos(50));
        holds.hold(LOCK, (1, 0), Nanos(50), Nanos(150));
        assert_eq!((holds.problems().len(), holds.until(LOCK, (1, 0))), (0, Some(Nanos(150))));
        holds.hold((0, 0, 1), (0, 0), Nanos(60), Nanos(70));
        assert_eq!(holds.problems().len(), 0, "another lock");
        holds.hold(LOCK, (0, 0), Nanos(149), Nanos(200));
        assert_eq!(holds.problems().len(), 1);
        holds.close(1, Nanos(100));
        assert_eq!(holds.problems().len(), 0, "its session has ended before");
    }
}
