//! Frames that each have a time to leave.

use p4rack_wire::Nanos;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Entries in the order of their times; those of the same time in the order in which they came.
#[derive(Clone, Debug)]
pub(super) struct Releases<T> {
    heap: BinaryHeap<Entry<T>>,
    came: u64,
}

#[derive(Clone, Debug)]
struct Entry<T> {
    at: Nanos,
    nth: u64,
    what: T,
}

impl<T> Releases<T> {
    pub fn new() -> Releases<T> {
        Releases { heap: BinaryHeap::new(), came: 0 }
    }

    /// Adds an entry that may leave from `at` on.
    pub fn push(&mut self, at: Nanos, what: T) {
        self.came += 1;
        self.heap.push(Entry { at, nth: self.came, what });
    }

    /// Time of the first entry.
    pub fn next_at(&self) -> Option<Nanos> {
        self.heap.peek().map(|entry| entry.at)
    }

    /// Takes the first entry if its time has come.
    pub fn pop(&mut self, now: Nanos) -> Option<T> {
        self.heap.peek().filter(|entry| entry.at <= now)?;
        self.heap.pop().map(|entry| entry.what)
    }

    pub fn len(&self) -> usize {
        self.heap.len()
    }

    pub fn any(&self, is: impl Fn(&T) -> bool) -> bool {
        self.heap.iter().any(|entry| is(&entry.what))
    }

    pub fn retain(&mut self, keep: impl Fn(&T) -> bool) {
        self.heap.retain(|entry| keep(&entry.what));
    }
}

/// The greatest entry is the first one to leave.
impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Entry<T>) -> Ordering {
        (other.at, other.nth).cmp(&(self.at, self.nth))
    }
}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Entry<T>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Entry<T>) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T> Eq for Entry<T> {}
