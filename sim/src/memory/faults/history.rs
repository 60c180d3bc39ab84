//! What operations said, and whether one order of them explains it.

use p4rack_wire::edm::Opcode;
use std::collections::{BTreeMap, HashSet};

/// Operations on one object at most: as many as a set of them has bits.
const OPERATIONS_MAX: usize = 128;
/// States that are tried for one object at most.
const STATES_MAX: usize = 2_000_000;

/// What an operation does to an object, and what it said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// It found this.
    Read(u64),
    /// It leaves this.
    Write(u64),
    /// An atomic operation, and what it found there, if anybody knows.
    Modify(Opcode, [u64; 2], Option<u64>),
}

/// An operation on an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// When it was asked for.
    pub asked: u64,
    /// When it was answered. One without an answer happens at any time from then on, or never.
    pub answered: Option<u64>,
    pub act: Act,
}

impl Entry {
    /// The object behind the operation, if it may happen to `value`.
    fn apply(&self, value: u64) -> Option<u64> {
        match self.act {
            Act::Read(found) => (found == value).then_some(value),
            Act::Write(left) => Some(left),
            Act::Modify(_, _, Some(found)) if found != value => None,
            Act::Modify(opcode, operands, _) => Some(opcode.apply(value, operands)),
        }
    }
}

/// All operations, by object. All objects are 0 at first.
#[derive(Debug, Default)]
pub(super) struct History {
    objects: BTreeMap<(u16, u64), Vec<Entry>>,
}

impl History {
    /// Adds an operation. Returns its number among those of the object.
    pub fn add(&mut self, node: u16, address: u64, entry: Entry) -> usize {
        let entries = self.objects.entry((node, address)).or_default();
        entries.push(entry);
        entries.len() - 1
    }

    /// The operation has taken effect by then.
    pub fn done_by(&mut self, node: u16, address: u64, nth: usize, at: u64) {
        let entry = self.objects.get_mut(&(node, address)).and_then(|entries| entries.get_mut(nth));
        if let Some(entry) = entry {
            entry.answered = Some(entry.answered.map_or(at, |before| before.min(at)));
        }
    }

    /// Whether anything was asked of the object.
    pub fn knows(&self, node: u16, address: u64) -> bool {
        self.objects.contains_key(&(node, address))
    }

    /// The objects whose operations no order explains in which each takes effect once, between question and answer.
    pub fn problems(&self) -> Vec<String> {
        let problem = |((node, address), entries): (&(u16, u64), &Vec<Entry>)| {
            let what = match linearizable(entries) {
                Some(true) => return None,
                Some(false) => format!("no order explains {entries:?}"),
                None => format!("{} operations are too many to order", entries.len()),
            };
            Some(format!("node {node}, {address:#x}: {what}"))
        };
        self.objects.iter().filter_map(problem).collect()
    }
}

/// Whether an order explains what the operations said; `None` if there are too many to tell. Wing and Gong's search, which
/// visits no state twice.
pub(super) fn linearizable(entries: &[Entry]) -> Option<bool> {
    if entries.len() > OPERATIONS_MAX {
        return None;
    }
    let must =
        (0..entries.len()).filter(|n| entries[*n].answered.is_some()).fold(0u128, |set, n| set | 1 << n);
    let (mut seen, mut open) = (HashSet::new(), vec![(0u128, 0u64)]);
    while let Some((done, value)) = open.pop() {
        if done & must == must {
            return Some(true);
        }
        if !seen.insert((done, value)) {
            continue;
        }
        if seen.len() > STATES_MAX {
            return None;
        }
        let left = |n: &usize| done >> n & 1 == 0;
        // Whoever was asked for after another's answer comes behind that one.
        let first_answer = (0..entries.len()).filter(left).filter_map(|n| entries[n].answered).min();
        let can = |entry: &Entry| first_answer.is_none_or(|at| entry.asked <= at);
        for n in (0..entries.len()).filter(left).filter(|n| can(&entries[*n])) {
            open.extend(entries[n].apply(value).map(|next| (done | 1 << n, next)));
        }
    }
    Some(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(asked: u64, answered: u64, act: Act) -> Entry {
        Entry { asked, answered: (answered > 0).then_some(answered), act }
    }

    #[test]
    fn what_an_order_explains() {
        let add = |found| Act::Modify(Opcode::FetchAdd, [1, 0], found);
        for (entries, expected) in [
            (vec![entry(1, 2, Act::Read(0))], true),
            (vec![entry(1, 2, Act::Read(1))], false),
            // A write without an answer: before, after, or never.
            (vec![entry(1, 0, Act::Write(7)), entry(5, 6, Act::Read(0)), entry(7, 8, Act::Read(7))], true),
            (vec![entry(1, 0, Act::Write(7)), entry(5, 6, Act::Read(7)), entry(7, 8, Act::Read(0))], false),
            (vec![entry(6, 0, Act::Write(7)), entry(1, 5, Act::Read(7))], false),
            // Once.
            (vec![entry(1, 2, add(Some(0))), entry(3, 4, add(Some(1))), entry(5, 6, Act::Read(2))], true),
            (vec![entry(1, 2, add(Some(0))), entry(3, 4, add(Some(2)))], false),
            (vec![entry(1, 0, add(None)), entry(3, 4, add(Some(1)))], true),
            (vec![entry(1, 0, add(None)), entry(3, 4, add(Some(2)))], false),
            (vec![entry(1, 9, add(Some(1))), entry(2, 8, add(Some(0)))], true),
        ] {
            assert_eq!(linearizable(&entries), Some(expected), "{entries:?}");
        }
        assert_eq!(linearizable(&[entry(1, 2, Act::Read(0)); OPERATIONS_MAX + 1]), None);
    }
}
