//! Order of a thread's requests (§3.1, §4.5): dependencies between accesses of the same pages, and barriers.
//!
//! ```text
//!   admit ─▶ write p1 ◀─ read p1 ◀─ write p1..p2        each waits for those to its left that it conflicts with
//!            write p5                 ▲
//!                     barrier ◀───────┘ … everything behind it, and it waits for everything before it
//! ```
//!
//! The board executes packets as they arrive, so a request leaves only when no earlier request that it depends on is unfinished.
//! Ranges make a request of thousands of pages as cheap as one of a page. The number of unfinished requests is limited, and each
//! admission and each end compares with all of them.

use super::config::Granule;
use p4rack_wire::clio::address::ADDRESS_BITS;

/// A request's kind of access to its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Reads it: waits for writes (RAW).
    Read,
    /// Changes it: waits for reads and writes (WAR, WAW).
    Write,
    /// Waits for all earlier requests, and all later ones wait for it.
    Barrier,
}

/// A request as the order sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Access {
    kind: Kind,
    /// First and last granule; the range is empty if they are swapped.
    first: u64,
    last: u64,
}

impl Access {
    /// Accesses `bytes` bytes of a board from an address on, which is one of a range.
    pub fn of(kind: Kind, (board, address): (u16, u64), bytes: u64, granule: Granule) -> Access {
        if bytes == 0 {
            return Access { kind, first: 1, last: 0 };
        }
        let (shift, board) = (granule.shift(address), u64::from(board) << ADDRESS_BITS);
        Access { kind, first: (board | address) >> shift, last: (board | (address + bytes - 1)) >> shift }
    }

    /// Accesses nothing, e.g. allocates; waits for barriers only.
    pub fn nothing() -> Access {
        Access { kind: Kind::Read, first: 1, last: 0 }
    }

    /// A barrier.
    pub fn barrier() -> Access {
        Access { kind: Kind::Barrier, first: 1, last: 0 }
    }

    /// Whether it waits for the earlier request.
    fn depends_on(&self, earlier: &Access) -> bool {
        let is_barrier = self.kind == Kind::Barrier || earlier.kind == Kind::Barrier;
        let is_change = self.kind == Kind::Write || earlier.kind == Kind::Write;
        is_barrier || is_change && self.first <= earlier.last && earlier.first <= self.last
    }
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    slot: u16,
    access: Access,
    /// Unfinished earlier requests that it depends on.
    waits: u16,
}

/// A thread's unfinished requests, the oldest first.
#[derive(Clone, Debug)]
pub(super) struct Order {
    entries: Vec<Entry>,
    max: usize,
}

impl Order {
    /// An order of at most `max` unfinished requests.
    pub fn new(max: usize) -> Order {
        Order { entries: Vec::with_capacity(max), max }
    }

    /// Whether it takes no more requests.
    pub fn is_full(&self) -> bool {
        self.entries.len() >= self.max
    }

    /// Number of unfinished requests.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Adds a request. Returns whether it may start. The caller has checked that there is room.
    pub fn admit(&mut self, slot: u16, access: Access) -> bool {
        debug_assert!(!self.is_full(), "the caller checks for room");
        let waits = self.entries.iter().filter(|earlier| access.depends_on(&earlier.access)).count() as u16;
        self.entries.push(Entry { slot, access, waits });
        waits == 0
    }

    /// Removes a request that has ended, and calls `ready` for those that may start now, in their order.
    pub fn finish(&mut self, slot: u16, mut ready: impl FnMut(u16)) {
        let Some(nth) = self.entries.iter().position(|entry| entry.slot == slot) else { return };
        let ended = self.entries.remove(nth);
        for later in &mut self.entries[nth..] {
            if later.access.depends_on(&ended.access) {
                later.waits -= 1;
                if later.waits == 0 {
                    ready(later.slot);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PAGE: u64 = 4_096;

    fn read(address: u64, bytes: u64) -> Access {
        Access::of(Kind::Read, (0, address), bytes, Granule::Page)
    }

    fn write(address: u64, bytes: u64) -> Access {
        Access::of(Kind::Write, (0, address), bytes, Granule::Page)
    }

    #[test]
    fn each_dependency_of_a_page_waits_and_reads_do_not() {
        for (first, second, waits) in [
            (read(0, 8), read(0, 8), false),
            (write(0, 8), read(0, 8), true),
            (read(0, 8), write(0, 8), true),
            (write(0, 8), write(0, 8), true),
            // A false dependency: the same page, other bytes.
            (write(0, 8), read(8, 8), true),
            (write(0, 8), read(PAGE, 8), false),
            (write(PAGE - 1, 2), read(PAGE, 8), true),
            (read(0, 3 * PAGE), write(2 * PAGE, 1), true),
            (write(0, 8), Access::nothing(), false),
            (write(0, 8), Access::barrier(), true),
            (Access::barrier(), read(0, 8), true),
            (Access::barrier(), Access::nothing(), true),
            (write(0, 0), write(0, 8), false),
        ] {
            let mut order = Order::new(2);
            assert!(order.admit(0, first));
            assert_eq!(order.admit(1, second), !waits, "{first:?} {second:?}");
            assert!(order.is_full());
            let mut ready = Vec::new();
            order.finish(0, |slot| ready.push(slot));
            assert_eq!(ready, if waits { vec![1] } else { vec![] });
        }
    }

    #[test]
    fn bytes_as_granules_have_no_false_dependencies() {
        let access = |kind, address| Access::of(kind, (0, address), 8, Granule::Byte);
        let mut order = Order::new(3);
        assert!(order.admit(0, access(Kind::Write, 0)));
        assert!(order.admit(1, access(Kind::Write, 8)));
        assert!(!order.admit(2, access(Kind::Read, 4)));
    }

    #[test]
    fn the_same_addresses_of_two_boards_do_not_depend_on_each_other() {
        for granule in [Granule::Page, Granule::Byte] {
            let write = |board| Access::of(Kind::Write, (board, 5 * PAGE), 8, granule);
            let mut order = Order::new(3);
            assert!(order.admit(0, write(1)));
            assert!(order.admit(1, write(2)));
            assert!(!order.admit(2, write(1)));
        }
    }

    fn access() -> impl Strategy<Value = Access> {
        let kind = prop_oneof![4 => Just(Kind::Read), 4 => Just(Kind::Write), 1 => Just(Kind::Barrier)];
        (kind, 0u64..6, 1u64..3).prop_map(|(kind, page, pages)| match kind {
            Kind::Barrier => Access::barrier(),
            kind => Access::of(kind, (0, page * PAGE), pages * PAGE, Granule::Page),
        })
    }

    proptest! {
        /// As a list of all requests has it: a request may start once no earlier unfinished one conflicts with it.
        #[test]
        fn requests_start_when_nothing_that_they_depend_on_is_left(
            steps in proptest::collection::vec((access(), any::<prop::sample::Index>(), any::<bool>()), 1..80),
        ) {
            let (mut order, mut model, mut started) = (Order::new(16), Vec::<(u16, Access)>::new(), Vec::new());
            for (slot, (access, pick, ends)) in (0u16..).zip(steps) {
                if order.is_full() || ends && !started.is_empty() {
                    let ended: u16 = started.swap_remove(pick.index(started.len()));
                    order.finish(ended, |slot| started.push(slot));
                    model.retain(|(slot, _)| *slot != ended);
                } else {
                    if order.admit(slot, access) {
                        started.push(slot);
                    }
                    model.push((slot, access));
                }
                let conflicts = |a: &Access, b: &Access| match (a.kind, b.kind) {
                    (Kind::Barrier, _) | (_, Kind::Barrier) => true,
                    (Kind::Read, Kind::Read) => false,
                    _ => (a.first..=a.last).any(|page| (b.first..=b.last).contains(&page)),
                };
                let mut expected: Vec<u16> = (0..model.len())
                    .filter(|nth| !model[..*nth].iter().any(|earlier| conflicts(&earlier.1, &model[*nth].1)))
                    .map(|nth| model[nth].0)
                    .collect();
                let mut found = started.clone();
                expected.sort_unstable();
                found.sort_unstable();
                prop_assert_eq!(found, expected);
            }
        }
    }
}
