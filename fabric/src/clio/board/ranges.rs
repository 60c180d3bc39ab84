//! A process's virtual addresses of one page size: which page numbers are allocated (like Linux's tree of areas, paper §4.2).

use super::few::Few;
use std::num::NonZeroU64;
use std::ops::Range;

/// State of a range of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Allocated: each page has an entry in the page table.
    Taken,
    /// A call of the slow path works on it.
    Held,
    /// It can't be allocated: the buckets of all its pages are full.
    Conflict,
}

/// Where a range ends, and its kind in the two lowest bits. No range ends at page 0.
#[derive(Clone, Copy, Debug)]
struct End(NonZeroU64);

impl End {
    fn new(end: u64, kind: Kind) -> End {
        End(NonZeroU64::new(end << 2 | kind as u64).unwrap_or(NonZeroU64::MIN))
    }

    fn page(self) -> u64 {
        self.0.get() >> 2
    }

    fn kind(self) -> Kind {
        match self.0.get() & 3 {
            0 => Kind::Taken,
            1 => Kind::Held,
            _ => Kind::Conflict,
        }
    }
}

/// Ranges that don't overlap. Gaps between them are free.
#[derive(Clone, Debug)]
pub(super) struct Ranges {
    /// By start. Neighbours that are taken are one range.
    map: Few<End>,
    /// No page below is free.
    lowest: u64,
    conflicts: usize,
}

/// Where the search for free pages goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gap {
    /// Enough pages are free here.
    At(u64),
    /// Not here: look from this page on.
    From(u64),
    /// There is none.
    None,
}

impl Ranges {
    /// All pages are free but page 0, so that no address is 0.
    pub fn new() -> Ranges {
        Ranges { map: Few::new(), lowest: 1, conflicts: 0 }
    }

    /// Allocated ranges, in order.
    pub fn taken(&self) -> impl Iterator<Item = Range<u64>> {
        let taken = self.map.iter().filter(|(_, end)| end.kind() == Kind::Taken);
        taken.map(|(start, end)| start..end.page())
    }

    /// The range that holds a page.
    pub fn holding(&self, page: u64) -> Option<(Range<u64>, Kind)> {
        let (start, end) = self.map.at_or_before(page)?;
        (page < end.page()).then_some((start..end.page(), end.kind()))
    }

    /// The first range that starts at a page or behind it.
    pub fn next(&self, page: u64) -> Option<(Range<u64>, Kind)> {
        self.map.at_or_behind(page).map(|(start, end)| (start..end.page(), end.kind()))
    }

    /// State of a range: [`Taken`](Kind::Taken) if all its pages are allocated, [`Held`](Kind::Held) if calls work on
    /// some of them, `None` if one is not allocated. Looks at one range more than twice the calls that work on it.
    pub fn kind_of(&self, range: &Range<u64>) -> Option<Kind> {
        let (mut at, mut all) = (range.start, Kind::Taken);
        while at < range.end {
            match self.holding(at)? {
                (_, Kind::Conflict) => return None,
                (holding, kind) => {
                    at = holding.end;
                    all = if kind == Kind::Held { kind } else { all };
                }
            }
        }
        Some(all)
    }

    /// Sets the kind of a range, or frees it if `kind` is `None`, whatever its pages were.
    pub fn set(&mut self, range: Range<u64>, kind: Option<Kind>) {
        self.cut_out(&range);
        let Range { mut start, mut end } = range;
        if kind == Some(Kind::Taken) {
            if let Some((before, Kind::Taken)) = start.checked_sub(1).and_then(|last| self.holding(last)) {
                self.map.remove(before.start);
                start = before.start;
            }
            if let Some((behind, Kind::Taken)) = self.next(end).filter(|(behind, _)| behind.start == end) {
                self.map.remove(end);
                end = behind.end;
            }
        }
        if let Some(kind) = kind {
            self.map.insert(start, End::new(end, kind));
        }
        self.conflicts += usize::from(kind == Some(Kind::Conflict));
        match kind {
            None => self.lowest = self.lowest.min(start),
            Some(Kind::Taken | Kind::Held) if start <= self.lowest => self.lowest = self.lowest.max(end),
            Some(_) => {}
        }
    }

    fn cut_out(&mut self, range: &Range<u64>) {
        let overlapping = |ranges: &Ranges| {
            let first = ranges.holding(range.start).or_else(|| ranges.next(range.start));
            first.filter(|(other, _)| other.start < range.end)
        };
        while let Some((other, kind)) = overlapping(self) {
            self.map.remove(other.start);
            self.conflicts -= usize::from(kind == Kind::Conflict);
            for rest in [other.start..range.start, range.end..other.end] {
                if rest.start < rest.end {
                    self.map.insert(rest.start, End::new(rest.end, kind));
                    self.conflicts += usize::from(kind == Kind::Conflict);
                }
            }
        }
    }

    /// Looks for `pages` free pages from `at` on, below `end`, at one range. Conflicts are forgotten if one of their pages has room by
    /// now: `is_full` says whether a page's bucket is full.
    pub fn gap(&mut self, at: u64, pages: u64, end: u64, is_full: impl Fn(u64) -> bool) -> Gap {
        let at = at.max(self.lowest);
        let in_the_way = self
            .holding(at)
            .or_else(|| self.next(at))
            .filter(|(range, _)| range.start < at.saturating_add(pages));
        match in_the_way {
            Some((range, Kind::Conflict)) if !range.clone().all(&is_full) => {
                self.set(range, None);
                Gap::From(at)
            }
            Some((range, _)) => Gap::From(range.end),
            None if at.saturating_add(pages) > end => Gap::None,
            None => Gap::At(at),
        }
    }

    /// Remembers that the buckets of a free range are full. With `max` conflicts, all others are forgotten first.
    pub fn remember_conflict(&mut self, range: Range<u64>, max: usize) {
        if self.conflicts >= max {
            self.forget_conflicts();
        }
        if max > 0 {
            self.set(range, Some(Kind::Conflict));
        }
    }

    /// Forgets all conflicts.
    pub fn forget_conflicts(&mut self) {
        if self.conflicts > 0 {
            self.map.retain(|end| end.kind() != Kind::Conflict);
            self.conflicts = 0;
        }
    }

    /// The first range of all.
    pub fn first(&self) -> Option<(Range<u64>, Kind)> {
        self.next(0)
    }

    /// Conflict ranges that are remembered.
    #[cfg(test)]
    pub fn conflicts(&self) -> usize {
        self.conflicts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PAGES: u64 = 40;

    fn kind() -> impl Strategy<Value = Option<Kind>> {
        prop::sample::select(vec![
            None,
            Some(Kind::Taken),
            Some(Kind::Taken),
            Some(Kind::Held),
            Some(Kind::Conflict),
        ])
    }

    proptest! {
        /// The ranges agree with a plain array of pages, and gaps are found where the array has them.
        #[test]
        fn ranges_are_pages(steps in prop::collection::vec((1..PAGES, 0u64..9, kind()), 0..60), at in 1..PAGES, pages in 1u64..6) {
            let (mut ranges, mut array) = (Ranges::new(), [None; PAGES as usize]);
            for (start, pages, kind) in steps {
                let range = start..(start + pages).min(PAGES);
                if range.is_empty() {
                    continue;
                }
                ranges.set(range.clone(), kind);
                range.clone().for_each(|page| array[page as usize] = kind);
                for page in 0..PAGES {
                    prop_assert_eq!(ranges.holding(page).map(|(_, kind)| kind), array[page as usize]);
                }
                let kinds = || range.clone().map(|page| array[page as usize]);
                let kind = match kinds().all(|kind| matches!(kind, Some(Kind::Taken | Kind::Held))) {
                    true if kinds().any(|kind| kind == Some(Kind::Held)) => Some(Kind::Held),
                    true => Some(Kind::Taken),
                    false => None,
                };
                prop_assert_eq!(ranges.kind_of(&range), kind);
                let conflicts = ranges.map.iter().filter(|(_, end)| end.kind() == Kind::Conflict).count();
                prop_assert_eq!(ranges.conflicts(), conflicts);
                prop_assert!((1..ranges.lowest).all(|page| array[page as usize].is_some()));
            }
            let wanted = (at..=PAGES - pages).find(|at| (*at..at + pages).all(|page| array[page as usize].is_none()));
            let mut gap = ranges.gap(at, pages, PAGES, |_| true);
            for _ in 0..2 * PAGES {
                if let Gap::From(at) = gap {
                    gap = ranges.gap(at, pages, PAGES, |_| true);
                }
            }
            prop_assert_eq!(gap, wanted.map_or(Gap::None, Gap::At));
        }
    }

    #[test]
    fn conflicts_are_forgotten_when_there_is_room_or_when_there_are_too_many() {
        let mut ranges = Ranges::new();
        ranges.remember_conflict(1..3, 2);
        assert_eq!(ranges.gap(1, 1, 10, |_| true), Gap::From(3));
        assert_eq!(ranges.gap(1, 1, 10, |page| page != 2), Gap::From(1));
        assert_eq!((ranges.gap(1, 1, 10, |_| true), ranges.conflicts()), (Gap::At(1), 0));
        (0..3).for_each(|nth| ranges.remember_conflict(2 * nth + 1..2 * nth + 2, 2));
        assert_eq!(
            (ranges.conflicts(), ranges.holding(1), ranges.holding(5)),
            (1, None, Some((5..6, Kind::Conflict)))
        );
    }
}
