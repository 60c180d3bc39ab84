//! A timer per slot, in a list sorted by time.

use p4rack_wire::Nanos;

/// The end of the list in both directions: the number behind all slots.
#[derive(Clone, Copy, Debug)]
struct Link {
    at: Nanos,
    before: u16,
    after: u16,
    is_set: bool,
}

/// Timers of slots. Nearly all of them run for the same time, so a new one belongs at the end of the list, or close to it.
#[derive(Clone, Debug)]
pub(super) struct Timers {
    /// By slot; the last one is the list's end, before the first and after the last timer.
    links: Vec<Link>,
}

impl Timers {
    /// Timers of `slots` slots, at most 65,535.
    pub fn new(slots: u16) -> Timers {
        let link = Link { at: Nanos::ZERO, before: slots, after: slots, is_set: false };
        Timers { links: vec![link; usize::from(slots) + 1] }
    }

    fn end(&self) -> usize {
        self.links.len() - 1
    }

    /// Sets a slot's timer, instead of an earlier one.
    pub fn set(&mut self, slot: u16, at: Nanos) {
        self.clear(slot);
        let end = self.end();
        let mut before = usize::from(self.links[end].before);
        while before != end && self.links[before].at > at {
            before = usize::from(self.links[before].before);
        }
        let after = self.links[before].after;
        self.links[usize::from(slot)] = Link { at, before: before as u16, after, is_set: true };
        self.links[before].after = slot;
        self.links[usize::from(after)].before = slot;
    }

    /// Removes a slot's timer, if it has one.
    pub fn clear(&mut self, slot: u16) {
        let Link { before, after, is_set, .. } = self.links[usize::from(slot)];
        if is_set {
            self.links[usize::from(before)].after = after;
            self.links[usize::from(after)].before = before;
            self.links[usize::from(slot)].is_set = false;
        }
    }

    /// Time of a slot's timer, if it has one.
    pub fn of(&self, slot: u16) -> Option<Nanos> {
        let link = &self.links[usize::from(slot)];
        link.is_set.then_some(link.at)
    }

    /// Time of the first timer.
    pub fn next_at(&self) -> Option<Nanos> {
        let first = usize::from(self.links[self.end()].after);
        (first != self.end()).then(|| self.links[first].at)
    }

    /// Takes the first timer if its time has come.
    pub fn pop(&mut self, now: Nanos) -> Option<u16> {
        self.next_at().filter(|at| *at <= now)?;
        let slot = self.links[self.end()].after;
        self.clear(slot);
        Some(slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// As a map of all timers has it.
        #[test]
        fn timers_expire_in_the_order_of_their_times(
            steps in proptest::collection::vec((0u16..6, proptest::option::of(0u64..50)), 1..80),
        ) {
            let (mut timers, mut model) = (Timers::new(6), BTreeMap::new());
            for (slot, at) in steps {
                match at {
                    Some(at) => {
                        timers.set(slot, Nanos(at));
                        model.insert(slot, at);
                    }
                    None => {
                        timers.clear(slot);
                        model.remove(&slot);
                    }
                }
                prop_assert_eq!(timers.next_at(), model.values().min().map(|at| Nanos(*at)));
            }
            for now in 0..50 {
                while let Some(slot) = timers.pop(Nanos(now)) {
                    prop_assert_eq!(model.remove(&slot), Some(now));
                }
            }
            prop_assert!(model.is_empty() && timers.next_at().is_none());
        }
    }
}
