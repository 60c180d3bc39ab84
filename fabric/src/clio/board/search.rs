//! The search for addresses whose entries find room in the page table (paper §4.2).
//!
//! ```text
//!   first gap that is long enough ──▶ hold it ──▶ reserve a slot for each page ──▶ found
//!        ▲                                            │ a bucket is full
//!        └── from behind the full buckets ◀── remember them, give slots and gap back: a retry
//! ```
//!
//! It goes on in steps of bounded work. Slots are reserved before the range is given away, so entries always find room.

use super::entry::{Page, Space};
use super::ranges::{Gap, Kind, Ranges};
use super::table::Table;
use p4rack_wire::clio::PageSize;
use std::ops::Range;

/// Full buckets that one retry steps past.
const STEP_PAST_MAX: u64 = 64;

/// A search.
#[derive(Clone, Debug)]
pub(super) struct Search {
    space: Space,
    size: PageSize,
    pages: u64,
    /// The candidate's first page.
    at: u64,
    /// Whether the candidate is held.
    held: bool,
    /// Pages of the candidate that have a slot.
    reserved: u64,
    /// Pages of the candidate whose buckets are full: slots and candidate are being given back.
    full: Option<Range<u64>>,
    /// The search is over: it gives back its ranges.
    stopped: bool,
    retries: u32,
}

/// Progress of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// It needs another step.
    More,
    /// From this page on, all pages are held and have slots.
    Found(u64),
    /// There is no such range.
    Failed,
}

/// Limits of a search.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub retries: u32,
    pub conflicts: usize,
}

impl Search {
    /// A search for `pages` pages, at least 1.
    pub fn new(space: Space, size: PageSize, pages: u64) -> Search {
        Search { space, size, pages, at: 0, held: false, reserved: 0, full: None, stopped: false, retries: 0 }
    }

    /// Makes the search give back its ranges, and then fail.
    pub fn stop(&mut self) {
        self.stopped = true;
    }

    /// Candidates that met a full bucket.
    pub fn retries(&self) -> u32 {
        self.retries
    }

    fn page(&self, number: u64) -> Page {
        Page { space: self.space, size: self.size, number: number as u32 }
    }

    /// Goes on for as many ranges and pages as `budget` says, and takes them off.
    pub fn step(
        &mut self,
        ranges: &mut Ranges,
        table: &mut Table,
        limits: Limits,
        budget: &mut u32,
    ) -> Progress {
        while *budget > 0 {
            *budget -= 1;
            if let Some(full) = self.full.clone() {
                self.give_back(full, ranges, table, limits);
            } else if (self.stopped || self.retries >= limits.retries) && !self.held {
                return Progress::Failed;
            } else if self.stopped {
                self.full = Some(self.at..self.at);
            } else if !self.held {
                let is_full = |number| table.is_full(&self.page(number));
                match ranges.gap(self.at, self.pages, self.size.pages_max(), is_full) {
                    Gap::At(at) => {
                        (self.at, self.held) = (at, true);
                        ranges.set(at..at + self.pages, Some(Kind::Held));
                    }
                    Gap::From(at) => self.at = at,
                    Gap::None => return Progress::Failed,
                }
            } else if !table.reserve(&self.page(self.at + self.reserved)) {
                self.retry(ranges, table, budget);
            } else {
                self.reserved += 1;
                if self.reserved == self.pages {
                    return Progress::Found(self.at);
                }
            }
        }
        Progress::More
    }

    /// Gives up the candidate, whose next page's bucket is full.
    fn retry(&mut self, ranges: &Ranges, table: &Table, budget: &mut u32) {
        let full = self.at + self.reserved;
        let behind = ranges.next(self.at + self.pages).map_or(self.size.pages_max(), |(next, _)| next.start);
        let end = behind.min(full + STEP_PAST_MAX);
        let behind = (full + 1..end).find(|number| !table.is_full(&self.page(*number))).unwrap_or(end);
        *budget = budget.saturating_sub((behind - full) as u32);
        self.full = Some(full..behind);
        self.retries += 1;
    }

    /// Gives back a slot of the candidate, or at the end the candidate itself.
    fn give_back(&mut self, full: Range<u64>, ranges: &mut Ranges, table: &mut Table, limits: Limits) {
        if let Some(left) = self.reserved.checked_sub(1) {
            self.reserved = left;
            table.release(&self.page(self.at + left));
            return;
        }
        ranges.set(self.at..self.at + self.pages, None);
        (self.at, self.held, self.full) = (full.end, false, None);
        // Behind the candidate other calls may have found their pages since.
        let end = ranges.next(full.start).map_or(full.end, |(next, _)| next.start.min(full.end));
        if full.start < end {
            ranges.remember_conflict(full.start..end, limits.conflicts);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::entry::Entry;
    use super::super::table::Index;
    use super::*;
    use p4rack_wire::clio::Rights;

    const SPACE: Space = Space { pid: 1, epoch: 1 };
    const LIMITS: Limits = Limits { retries: 10, conflicts: 8 };

    fn page(number: u64) -> Page {
        Page { space: SPACE, size: PageSize::K4, number: number as u32 }
    }

    /// A table of four buckets, of which those of pages 3 and 4 are full.
    fn table() -> Table {
        let mut table = Table::new(16, 4, Index::Salted, 7);
        for number in [3, 4].into_iter().flat_map(|number| [number, number + 4, number + 8, number + 12]) {
            assert!(table.reserve(&page(number)));
            table.insert(&page(number), Entry::allocated(&page(number), Rights::ALL));
        }
        table
    }

    /// While a search gives back its candidate, another call takes pages behind it whose buckets were full then.
    #[test]
    fn full_buckets_are_remembered_of_free_pages_alone() {
        let (mut table, mut ranges) = (table(), Ranges::new());
        let mut search = Search::new(SPACE, PageSize::K4, 3);
        // One to hold pages 1 to 3, two to reserve, one to find page 3 without room; and with it page 4, behind the candidate.
        assert_eq!(search.step(&mut ranges, &mut table, LIMITS, &mut 4), Progress::More);
        assert_eq!((search.retries(), search.full.clone()), (1, Some(3..5)));
        ranges.set(4..6, Some(Kind::Held));
        assert_eq!(search.step(&mut ranges, &mut table, LIMITS, &mut 3), Progress::More);
        assert_eq!(ranges.holding(3), Some((3..4, Kind::Conflict)));
        assert_eq!(ranges.holding(4), Some((4..6, Kind::Held)), "the other call's");
    }

    #[test]
    fn a_search_that_is_stopped_gives_everything_back() {
        let (mut table, mut ranges) = (table(), Ranges::new());
        for steps in 0..9 {
            let mut search = Search::new(SPACE, PageSize::K4, 2);
            let found = search.step(&mut ranges, &mut table, LIMITS, &mut (steps % 3));
            assert_eq!(found, Progress::More);
            search.stop();
            let mut budget = 5;
            assert_eq!(search.step(&mut ranges, &mut table, LIMITS, &mut budget), Progress::Failed);
            assert_eq!(ranges.first(), None, "{steps} steps");
        }
        let room = (1..3).flat_map(|number| [number; 4]).filter(|number| table.reserve(&page(*number)));
        assert_eq!(room.count(), 8);
    }
}
