//! Facts about the words of the variables at a point of the code: numbers, and values in processor registers.
//!
//! Where paths merge, the facts on which all of them agree still hold. So a block is translated when all that lead to
//! it are, or can't be reached; a loop's first block before, with nothing known.

use crate::code::ops::Slot;
use cranelift_codegen::ir::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A fact about a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fact {
    Number(u64),
    Value(Value),
}

/// Facts at a point.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    pub words: HashMap<Slot, Fact>,
    /// Values that are numbers on the taken path.
    pub numbers: HashMap<Value, u64>,
    /// Position of the first byte that is not parsed.
    pub cursor: Option<Fact>,
}

impl Known {
    /// Keeps the facts that the other has, too.
    fn meet(&mut self, other: &Known) {
        self.words.retain(|slot, fact| other.words.get(slot) == Some(fact));
        self.numbers.retain(|value, number| other.numbers.get(value) == Some(number));
        self.cursor = self.cursor.filter(|cursor| other.cursor == Some(*cursor));
    }
}

/// Which block leads to which, by first operations, as often as there are ways.
#[derive(Debug, Default)]
pub(super) struct Ways {
    next: BTreeMap<u32, Vec<u32>>,
    /// Number of ways to each block.
    to: BTreeMap<u32, usize>,
}

impl Ways {
    pub fn new(blocks: impl Iterator<Item = (u32, Vec<u32>)>) -> Ways {
        let mut ways = Ways { next: blocks.collect(), to: BTreeMap::new() };
        for next in ways.next.values().flatten() {
            *ways.to.entry(*next).or_default() += 1;
        }
        ways
    }
}

/// Blocks that are still to be translated, and the facts at their starts.
#[derive(Debug, Default)]
pub(super) struct Pending<'a> {
    /// Unknown at first; then nothing is known where ways meet, either.
    ways: Option<&'a Ways>,
    /// For each block reached so far: the facts on which all paths agree.
    known: BTreeMap<u32, Known>,
    /// Ways that were seen, or that nothing can take.
    seen: BTreeMap<u32, usize>,
    /// Those that the block being translated has taken.
    taken: Vec<u32>,
    ready: Vec<u32>,
    waiting: BTreeSet<u32>,
}

impl<'a> Pending<'a> {
    pub fn new(ways: Option<&'a Ways>) -> Pending<'a> {
        Pending { ways, ..Pending::default() }
    }

    /// Whether it is known which ways there are.
    pub fn knows_ways(&self) -> bool {
        self.ways.is_some()
    }

    /// The block being translated leads to `to`.
    pub fn lead(&mut self, to: u32, known: &Known) {
        self.taken.push(to);
        match self.known.get_mut(&to) {
            Some(before) => before.meet(known),
            None => {
                self.known.insert(to, known.clone());
                self.waiting.insert(to);
            }
        }
        self.see(to);
    }

    fn see(&mut self, to: u32) {
        let seen = self.seen.entry(to).or_default();
        *seen += 1;
        if self.ways.is_some_and(|ways| ways.to.get(&to) == Some(&*seen)) {
            if self.waiting.remove(&to) {
                self.ready.push(to);
            } else if !self.known.contains_key(&to) {
                // Nothing reaches it.
                self.end(to);
            }
        }
    }

    /// The block is translated, or can't be reached. Ways that it did not take are none.
    pub fn end(&mut self, block: u32) {
        let taken = std::mem::take(&mut self.taken);
        let mut left = self.ways.and_then(|ways| ways.next.get(&block)).cloned().unwrap_or_default();
        for way in taken {
            if let Some(at) = left.iter().position(|to| *to == way) {
                left.swap_remove(at);
            }
        }
        left.into_iter().for_each(|to| self.see(to));
    }

    /// The next block, with the facts at its start.
    pub fn next(&mut self) -> Option<(u32, Known)> {
        if let Some(start) = self.ready.pop() {
            return Some((start, self.known.get(&start).cloned().unwrap_or_default()));
        }
        // Not all ways to it are seen.
        Some((self.waiting.pop_first()?, Known::default()))
    }
}
