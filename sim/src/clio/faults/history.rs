//! Operations on words of memory and on keys of stores.

use p4rack_history::{Act, History, Order, Word};
use std::fmt;

/// A word of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cell {
    /// Of the pages that all processes of a board share. A board that restarts has others.
    Shared { board: usize, life: u64, at: u64 },
    /// Of a range that a process has allocated.
    Own { range: usize, at: u64 },
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cell::Shared { board, life, at } => write!(f, "board {board}, start {life}, word {at:#x}"),
            Cell::Own { range, at } => write!(f, "range {range}, word {at:#x}"),
        }
    }
}

/// A key of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub board: usize,
    pub life: u64,
    pub key: u8,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "board {}, start {}, key {}", self.board, self.life, self.key)
    }
}

/// An operation on a key. Without an answer, its result is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyAct {
    /// It found this value, or no such key.
    Get(Option<u64>),
    Put(u64),
    /// Whether it found no such key.
    Create(u64, Option<bool>),
    /// Whether it found the key.
    Delete(Option<bool>),
}

impl Act for KeyAct {
    type State = Option<u64>;

    fn apply(&self, state: &Option<u64>) -> Option<Option<u64>> {
        match *self {
            KeyAct::Get(found) => (found == *state).then_some(*state),
            KeyAct::Put(value) => Some(Some(value)),
            KeyAct::Create(_, Some(is_new)) if is_new == state.is_some() => None,
            KeyAct::Create(value, _) => Some(state.or(Some(value))),
            KeyAct::Delete(Some(is_there)) if is_there != state.is_some() => None,
            KeyAct::Delete(_) => Some(None),
        }
    }

    fn is_read(&self) -> bool {
        matches!(self, KeyAct::Get(_))
    }

    fn finds(&self) -> bool {
        matches!(self, KeyAct::Get(_) | KeyAct::Create(_, Some(_)) | KeyAct::Delete(Some(_)))
    }

    fn overwrites(&self) -> bool {
        matches!(self, KeyAct::Put(_) | KeyAct::Delete(None))
    }
}

/// All operations.
#[derive(Debug, Default)]
pub(super) struct Histories {
    pub words: History<Cell, Word>,
    pub keys: History<Key, KeyAct>,
}

impl Histories {
    /// Results that no order explains, in words.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = self.words.problems(&0, Order::Any);
        problems.extend(self.keys.problems(&None, Order::Any));
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_created_once_and_deleted_when_it_is_there() {
        for (act, before, after) in [
            (KeyAct::Create(5, Some(true)), None, Some(Some(5))),
            (KeyAct::Create(5, Some(true)), Some(4), None),
            (KeyAct::Create(5, Some(false)), Some(4), Some(Some(4))),
            (KeyAct::Create(5, Some(false)), None, None),
            (KeyAct::Create(5, None), Some(4), Some(Some(4))),
            (KeyAct::Create(5, None), None, Some(Some(5))),
            (KeyAct::Delete(Some(true)), Some(4), Some(None)),
            (KeyAct::Delete(Some(true)), None, None),
            (KeyAct::Delete(Some(false)), Some(4), None),
            (KeyAct::Delete(None), Some(4), Some(None)),
            (KeyAct::Get(Some(4)), Some(4), Some(Some(4))),
            (KeyAct::Get(None), Some(4), None),
        ] {
            assert_eq!(act.apply(&before), after, "{act:?} of {before:?}");
        }
    }
}
