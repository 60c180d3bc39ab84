//! Notification groups: requests whose completion is waited for together.

use p4rack_wire::cowbird::{Kind, RequestId};
use std::collections::VecDeque;

/// A notification group of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PollId(pub(crate) usize);

impl PollId {
    /// As a number, for interfaces that have nothing else.
    pub const fn number(self) -> u32 {
        self.0 as u32
    }

    /// From a number. A client refuses one that it did not give.
    pub const fn of_number(number: u32) -> PollId {
        PollId(number as usize)
    }
}

/// Requests by kind, in the order of their numbers: requests of a kind complete in that order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Group {
    reads: VecDeque<RequestId>,
    writes: VecDeque<RequestId>,
}

impl Group {
    #[inline]
    fn of(&mut self, kind: Kind) -> &mut VecDeque<RequestId> {
        match kind {
            Kind::Read => &mut self.reads,
            Kind::Write => &mut self.writes,
        }
    }

    /// Adds a request. Returns whether it is new.
    #[inline]
    pub(crate) fn add(&mut self, id: RequestId) -> bool {
        let requests = self.of(id.kind());
        // Nearly always the newest one.
        if requests.back().is_none_or(|last| last.is_done(id.number().wrapping_sub(1))) {
            requests.push_back(id);
            return true;
        }
        let at = requests.partition_point(|other| other.is_done(id.number().wrapping_sub(1)));
        let new = requests.get(at) != Some(&id);
        if new {
            requests.insert(at, id);
        }
        new
    }

    /// Removes a request. Returns whether it was a member.
    pub(crate) fn remove(&mut self, id: RequestId) -> bool {
        let requests = self.of(id.kind());
        let at = requests.iter().position(|other| *other == id);
        at.and_then(|at| requests.remove(at)).is_some()
    }

    /// The next request of a kind that is done when `progress` are.
    #[inline]
    pub(crate) fn next(&mut self, kind: Kind, progress: u64) -> Option<RequestId> {
        let requests = self.of(kind);
        let done = requests.front().is_some_and(|id| id.is_done(progress));
        if done { requests.pop_front() } else { None }
    }

    /// Whether nothing is waited for.
    pub(crate) fn is_empty(&self) -> bool {
        self.reads.is_empty() && self.writes.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// A sorted set is the model; numbers go round.
        #[test]
        fn requests_come_in_order_once(
            start in prop::sample::select(vec![1u64, (1 << 47) - 8]),
            steps in prop::collection::vec((0..3, 0..24u64), 1..60),
        ) {
            let id = |number: u64| RequestId::new(Kind::Read, 1, start + number);
            let (mut group, mut model) = (Group::default(), BTreeSet::new());
            for (what, number) in steps {
                match what {
                    0 => prop_assert_eq!(group.add(id(number)), model.insert(number)),
                    1 => prop_assert_eq!(group.remove(id(number)), model.remove(&number)),
                    _ => {
                        let next = model.first().copied().filter(|first| *first <= number);
                        if let Some(next) = next {
                            model.remove(&next);
                        }
                        prop_assert_eq!(group.next(Kind::Read, start + number), next.map(id));
                    }
                }
                prop_assert_eq!(group.is_empty(), model.is_empty());
            }
        }
    }
}
