//! Histories: the operations on shared memory, how each ended, and whether one order explains them all (linearizability:
//! Herlihy and Wing, TOPLAS 1990).
//!
//! | object | state | check |
//! |---|---|---|
//! | [`Word`] | 64 bits | [`linearizable`] |
//! | [`Page`] | bytes that one thread uses | [`linearizable`], and what memory has |
//! | [`Records`] | a version | an interval: the same answer without a search, for runs of hours |
//!
//! An operation is an [`Entry`]. Every way to end is one of three [`Outcome`]s. The search is exact and needs the whole history of
//! an object; runs of hours count versions instead. A test holds the two against each other
//! (`history/tests/records_against_the_search.rs`).

mod page;
mod record;
mod search;
mod word;

use std::collections::BTreeMap;
use std::fmt::{Debug, Display};
use std::hash::Hash;

pub use page::{Access, Page};
pub use record::{Records, Wrong, fill, version_of};
pub use search::{Order, Unexplained, linearizable};
pub use word::{Opcode, Word};

/// An operation's effect on an object, and its result.
pub trait Act: Debug {
    /// The object's contents.
    type State: Clone + Eq + Hash;

    /// The object behind the operation; `None` if its result contradicts this state.
    fn apply(&self, state: &Self::State) -> Option<Self::State>;

    /// Whether it changes nothing.
    fn is_read(&self) -> bool;

    /// Whether it found anything, which an order has to explain. An operation without a result can take effect in every
    /// state.
    fn finds(&self) -> bool;

    /// Whether its effect hides the whole state before it.
    fn overwrites(&self) -> bool {
        false
    }
}

/// How an operation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// By this time it had taken effect, once.
    Known(u64),
    /// It has no answer, or none yet: it takes effect once, at any time after the question, or never.
    Unknown,
    /// It was refused: it never takes effect.
    Refused,
}

impl Outcome {
    /// When it had taken effect, if that is known.
    pub fn known(self) -> Option<u64> {
        match self {
            Outcome::Known(at) => Some(at),
            Outcome::Unknown | Outcome::Refused => None,
        }
    }
}

/// An operation on an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<A> {
    /// Time of the request: nanoseconds, or any number that grows with time.
    pub asked: u64,
    /// How it ended, on the same clock.
    pub outcome: Outcome,
    /// Its operation.
    pub act: A,
}

/// Operations on many objects, by the objects' names. All objects are in the same state at first.
#[derive(Debug)]
pub struct History<K, A> {
    objects: BTreeMap<K, Vec<Entry<A>>>,
}

impl<K, A> Default for History<K, A> {
    fn default() -> Self {
        History { objects: BTreeMap::new() }
    }
}

impl<K: Ord + Display, A: Act> History<K, A> {
    /// Adds an operation. Returns its number among those of the object.
    pub fn add(&mut self, object: K, entry: Entry<A>) -> usize {
        let entries = self.objects.entry(object).or_default();
        entries.push(entry);
        entries.len() - 1
    }

    /// Notes that an operation had taken effect by this time, or earlier if that is known.
    pub fn done_by(&mut self, object: &K, nth: usize, at: u64) {
        if let Some(entry) = self.objects.get_mut(object).and_then(|entries| entries.get_mut(nth)) {
            entry.outcome = Outcome::Known(entry.outcome.known().map_or(at, |before| before.min(at)));
        }
    }

    /// Whether the object has any operation.
    pub fn knows(&self, object: &K) -> bool {
        self.objects.contains_key(object)
    }

    /// The objects whose operations no order explains, in words.
    pub fn problems(&self, first: &A::State, order: Order) -> Vec<String> {
        let problem = |(object, entries): (&K, &Vec<Entry<A>>)| {
            let unexplained = linearizable(entries, first, order).err()?;
            Some(format!("{object}: {unexplained} {entries:?}"))
        };
        self.objects.iter().filter_map(problem).collect()
    }
}

/// Operations that each leave a mark that can be counted: a version, an addition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// Those that took effect.
    pub known: u64,
    /// Those whose outcome is unknown.
    pub unknown: u64,
}

impl Effects {
    /// Effects that were lost, if this many are found.
    pub fn missing(self, found: u64) -> u64 {
        self.known.saturating_sub(found)
    }

    /// Effects that no operation has left, if this many are found.
    pub fn invented(self, found: u64) -> u64 {
        found.saturating_sub(self.known + self.unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_operations_may_have_left_their_mark() {
        let effects = Effects { known: 5, unknown: 2 };
        for (found, expected) in [(3, (2, 0)), (5, (0, 0)), (7, (0, 0)), (8, (0, 1))] {
            assert_eq!((effects.missing(found), effects.invented(found)), expected, "{found}");
        }
    }

    #[test]
    fn each_object_is_explained_for_itself() {
        let mut history = History::default();
        let read = |asked, found| Entry { asked, outcome: Outcome::Known(asked + 1), act: Word::Read(found) };
        let write = Entry { asked: 1, outcome: Outcome::Unknown, act: Word::Write(7) };
        let nth = history.add("a", write);
        history.add("a", read(10, 0));
        history.add("b", read(10, 0));
        assert!(history.knows(&"b") && !history.knows(&"c"));
        assert_eq!(history.problems(&0, Order::Any), Vec::<String>::new());
        // The write had taken effect before the read that does not see it.
        history.done_by(&"a", nth, 5);
        history.done_by(&"a", nth, 9);
        let problems = history.problems(&0, Order::Any);
        assert!(problems.len() == 1 && problems[0].starts_with("a: no order explains"), "{problems:?}");
    }
}
