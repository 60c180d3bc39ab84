//! Which pages of far memory are in use: first fit over the free ranges. Places and lengths are in pages.

use std::ops::Range;

/// The pages of far memory.
#[derive(Debug)]
pub struct Extents {
    /// Free ranges in the order of their places; no two touch.
    free: Vec<Range<u32>>,
    /// Number of the first page among all pages of the address space, for alignment.
    base: u64,
    in_use: u32,
    in_use_max: u32,
}

impl Extents {
    /// All pages free. `base` is the first one's address in pages.
    pub fn new(pages: u32, base: u64) -> Extents {
        let whole = 0..pages;
        Extents { free: vec![whole], base, in_use: 0, in_use_max: 0 }
    }

    /// Takes the first free range of this length whose address is a multiple of `align` pages. `None`: there is none.
    pub fn take(&mut self, pages: u32, align: u32) -> Option<u32> {
        let (base, align) = (self.base, u64::from(align.max(1)));
        let place = |free: &Range<u32>| {
            let start = (base + u64::from(free.start)).next_multiple_of(align) - base;
            (start + u64::from(pages) <= u64::from(free.end)).then_some(start as u32)
        };
        let (nth, start) = self.free.iter().enumerate().find_map(|(nth, free)| Some((nth, place(free)?)))?;
        self.cut(nth, start..start + pages);
        Some(start)
    }

    /// Takes this range, if all of it is free.
    pub fn take_at(&mut self, range: Range<u32>) -> bool {
        let nth = self.free.partition_point(|free| free.end < range.end);
        let is_free = self.free.get(nth).is_some_and(|free| free.start <= range.start);
        if is_free && !range.is_empty() {
            self.cut(nth, range);
        }
        is_free
    }

    /// Takes a part of a free range.
    fn cut(&mut self, nth: usize, taken: Range<u32>) {
        let free = self.free[nth].clone();
        let (before, behind) = (free.start..taken.start, taken.end..free.end);
        self.in_use += taken.len() as u32;
        self.in_use_max = self.in_use_max.max(self.in_use);
        let left = [before, behind].into_iter().filter(|range| !range.is_empty());
        self.free.splice(nth..=nth, left);
    }

    /// Takes the free pieces of a range, so that all of it is in use.
    pub fn take_rest(&mut self, range: Range<u32>) {
        loop {
            let nth = self.free.partition_point(|free| free.end <= range.start);
            let Some(free) = self.free.get(nth).filter(|free| free.start < range.end) else { return };
            let piece = free.start.max(range.start)..free.end.min(range.end);
            self.cut(nth, piece);
        }
    }

    /// Frees the used pieces of a range. Each piece is given to `each` first; if that fails for one, all stay in use. Returns whether
    /// they are free.
    pub fn release(&mut self, range: Range<u32>, mut each: impl FnMut(Range<u32>) -> bool) -> bool {
        if range.is_empty() {
            return true;
        }
        // The free ranges that touch it become one with it.
        let first = self.free.partition_point(|free| free.end < range.start);
        let behind = self.free.partition_point(|free| free.start <= range.end);
        let (mut whole, mut at, mut used_pages) = (range.clone(), range.start, 0);
        let mut used = |piece: Range<u32>| {
            used_pages += piece.len() as u32;
            piece.is_empty() || each(piece)
        };
        for free in &self.free[first..behind] {
            if !used(at..free.start) {
                return false;
            }
            at = at.max(free.end);
            whole = whole.start.min(free.start)..whole.end.max(free.end);
        }
        if !used(at..range.end) {
            return false;
        }
        self.in_use -= used_pages;
        self.free.splice(first..behind, [whole]);
        true
    }

    /// Pages in use, and the most that ever were.
    pub fn in_use(&self) -> (u32, u32) {
        (self.in_use, self.in_use_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_taken_first_fit_and_join_when_freed() {
        let mut extents = Extents::new(16, 0);
        assert_eq!([3, 4, 5].map(|pages| extents.take(pages, 1)), [Some(0), Some(3), Some(7)]);
        assert_eq!(extents.take(5, 1), None);
        let mut released = |range| {
            let mut pieces = Vec::new();
            assert!(extents.release(range, |piece| {
                pieces.push((piece.start, piece.end));
                true
            }));
            let free = extents.free.iter().map(|free| (free.start, free.end));
            (pieces, free.collect::<Vec<_>>())
        };
        assert_eq!(released(3..7), (vec![(3, 7)], vec![(3, 7), (12, 16)]));
        // Free pieces of a range are left out.
        assert_eq!(released(2..9), (vec![(2, 3), (7, 9)], vec![(2, 9), (12, 16)]));
        assert_eq!(released(0..16), (vec![(0, 2), (9, 12)], vec![(0, 16)]));
        assert_eq!(extents.in_use(), (0, 12));
    }

    #[test]
    fn alignment_counts_from_the_start_of_the_address_space() {
        let mut extents = Extents::new(64, 3);
        assert_eq!(extents.take(8, 8), Some(5));
        assert_eq!(extents.take(5, 1), Some(0));
        assert_eq!(extents.take(16, 16), Some(13));
        assert_eq!(extents.take(64, 1), None);
    }

    #[test]
    fn a_range_grows_into_free_pages_alone() {
        let mut extents = Extents::new(8, 0);
        let other = [extents.take(2, 1), extents.take(2, 1)][1].unwrap();
        assert!(!extents.take_at(2..3), "in use");
        assert!(extents.take_at(4..6) && !extents.take_at(5..7) && !extents.take_at(7..9));
        extents.release(other..other + 2, |_| true);
        assert!(extents.take_at(2..4) && !extents.take_at(2..4));
    }

    #[test]
    fn the_free_pieces_of_a_range_are_taken() {
        let mut extents = Extents::new(16, 0);
        assert!(extents.take_at(4..6) && extents.take_at(8..9));
        extents.take_rest(3..12);
        assert_eq!((extents.free.as_slice(), extents.in_use()), (&[0..3, 12..16][..], (9, 9)));
        extents.take_rest(0..16);
        assert_eq!((extents.free.len(), extents.in_use()), (0, (16, 16)));
    }

    #[test]
    fn pages_whose_content_cannot_be_dropped_stay_in_use() {
        let mut extents = Extents::new(16, 0);
        assert!(extents.take_at(0..4) && extents.take_at(8..12));
        assert!(!extents.release(0..12, |piece| piece.start < 8));
        assert_eq!((extents.in_use(), extents.take(5, 1)), ((8, 8), None));
    }

    /// Against a plain list of pages: nothing is given twice, and all comes back.
    #[test]
    fn random_use_agrees_with_a_list_of_pages() {
        let mut state = 1u64;
        let mut random = |below: u32| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as u32 % below
        };
        let (mut extents, mut used) = (Extents::new(200, 7), [false; 200]);
        for _ in 0..20_000 {
            let (pages, align) = (1 + random(20), 1 << random(3));
            if random(2) == 0 {
                if let Some(start) = extents.take(pages, align) {
                    assert_eq!((u64::from(start) + 7) % u64::from(align), 0);
                    let place = &mut used[start as usize..][..pages as usize];
                    assert!(place.iter().all(|used| !used));
                    place.fill(true);
                }
            } else {
                let start = random(200);
                let range = start..(start + pages).min(200);
                let mut expected = used[range.start as usize..range.end as usize].to_vec();
                extents.release(range.clone(), |piece| {
                    for page in piece {
                        assert!(std::mem::take(&mut expected[(page - range.start) as usize]));
                    }
                    true
                });
                assert!(expected.iter().all(|left| !left));
                used[range.start as usize..range.end as usize].fill(false);
            }
            assert_eq!(extents.in_use().0 as usize, used.iter().filter(|used| **used).count());
            assert!(extents.free.windows(2).all(|two| two[0].end < two[1].start), "{:?}", extents.free);
        }
    }
}
