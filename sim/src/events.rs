//! What happens when, in picoseconds, for racks that are no `World`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Events in order of time; those of the same time in the order in which they were added.
#[derive(Debug)]
pub struct Agenda<E> {
    heap: BinaryHeap<Reverse<Entry<E>>>,
    added: u64,
}

#[derive(Debug)]
struct Entry<E> {
    at_ps: u64,
    nth: u64,
    event: E,
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        (self.at_ps, self.nth) == (other.at_ps, other.nth)
    }
}
impl<E> Eq for Entry<E> {}
impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at_ps, self.nth).cmp(&(other.at_ps, other.nth))
    }
}

impl<E> Default for Agenda<E> {
    fn default() -> Self {
        Agenda { heap: BinaryHeap::new(), added: 0 }
    }
}

impl<E> Agenda<E> {
    /// Adds an event.
    pub fn add(&mut self, at_ps: u64, event: E) {
        self.heap.push(Reverse(Entry { at_ps, nth: self.added, event }));
        self.added += 1;
    }

    /// The next event and its time.
    pub fn next(&mut self) -> Option<(u64, E)> {
        self.heap.pop().map(|Reverse(entry)| (entry.at_ps, entry.event))
    }
}
