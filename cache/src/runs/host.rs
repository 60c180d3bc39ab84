//! Pages in the host, chosen by how often they are used.
//!
//! A byte for each page of remote memory counts its recent uses. A page comes if its group has room, or if it was used
//! more often than the least used page of its group by the factor that the move costs.

use super::layout::{Layout, way_of};
use crate::Shape;

/// No page.
const EMPTY: u32 = u32::MAX;
/// Uses that a page must have more than the one that it replaces: moving a page takes 3.9 us, and a use of the host saves 70 ns.
const MARGIN: u8 = 64;
/// Uses are halved once in N accesses for each block of remote memory.
const ROUND: u64 = 4;

pub(super) struct Host {
    /// Pages of each group.
    pages: Vec<u32>,
    /// Their dirty blocks.
    dirty: Vec<u64>,
    stride: usize,
    /// Pages that a group may have.
    limit: usize,
    uses: Vec<u8>,
    hand: usize,
    credit: u64,
    round: u64,
    /// The group that [`over`](Host::over) looks at next.
    group: usize,
    /// Whether a page has to be used more than the one that it replaces.
    pub(super) choosy: bool,
    /// Whether any page comes while there is room.
    pub(super) filled: bool,
}

/// A place of a page in the host.
pub(super) type Place = usize;

impl Host {
    /// Groups with up to `ways` pages each.
    pub(super) fn new(layout: &Layout, shape: &Shape, ways: u32) -> Host {
        let stride = ways as usize;
        let places = layout.groups as usize * stride;
        // Without a host nothing is counted.
        let pages = if places > 0 { shape.pages() as usize } else { 0 };
        Host {
            pages: vec![EMPTY; places],
            dirty: vec![0; places],
            stride,
            limit: stride,
            uses: vec![0; pages],
            hand: 0,
            credit: 0,
            round: u64::from(shape.footprint) * ROUND,
            group: 0,
            choosy: true,
            filled: true,
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        (self.pages.len() * (size_of::<u32>() + size_of::<u64>()) + self.uses.len()) as u64
    }

    pub(super) fn limit(&self) -> u32 {
        self.limit as u32
    }

    /// Changes how many pages a group may have. Those above it are the caller's to remove.
    pub(super) fn set_limit(&mut self, ways: u32) {
        self.limit = ways as usize;
        self.group = 0;
    }

    #[inline]
    fn group(&self, group: u32) -> &[u32] {
        let first = group as usize * self.stride;
        &self.pages[first..first + self.stride]
    }

    /// Where a page of this group is.
    #[inline]
    pub(super) fn find(&self, group: u32, page: u32) -> Option<Place> {
        way_of(self.group(group), page, 0).map(|way| group as usize * self.stride + way)
    }

    /// Counts a use of a page, and ages the counts of all pages a little; returns the page's recent uses.
    #[inline]
    pub(super) fn used(&mut self, page: u32) -> u8 {
        let Some(uses) = self.uses.get_mut(page as usize) else { return 0 };
        *uses = uses.saturating_add(1);
        let uses = *uses;
        self.credit += self.uses.len() as u64;
        while self.credit >= self.round {
            self.credit -= self.round;
            self.uses[self.hand] /= 2;
            self.hand = if self.hand + 1 == self.uses.len() { 0 } else { self.hand + 1 };
        }
        uses
    }

    /// A write to a block of a page that is here.
    #[inline]
    pub(super) fn write(&mut self, place: Place, index: u32) {
        self.dirty[place] |= 1 << index;
    }

    /// Where a page of this group would go, if it is worth it.
    pub(super) fn place_for(&self, group: u32, page: u32) -> Option<Place> {
        let uses = |page: u32| self.uses.get(page as usize).copied().unwrap_or(0);
        let ways = &self.group(group)[..self.limit];
        let (first, own) = (group as usize * self.stride, uses(page));
        if let Some(way) = ways.iter().position(|one| *one == EMPTY) {
            return (self.filled || own > MARGIN).then_some(first + way);
        }
        if self.choosy && own <= MARGIN {
            return None;
        }
        let (one, others) = ways.split_first()?;
        let (mut least, mut victim) = (uses(*one), first);
        for (place, page) in (first + 1..).zip(others) {
            if uses(*page) < least {
                (least, victim) = (uses(*page), place);
            }
        }
        (!self.choosy || own > least.saturating_add(MARGIN)).then_some(victim)
    }

    /// A group that has more pages than the limit, and the place of one that has to go. `None` after the last one.
    pub(super) fn over(&mut self) -> Option<(u32, Place)> {
        while self.group * self.stride < self.pages.len() {
            let first = self.group * self.stride;
            let mut above = first + self.limit..first + self.stride;
            if let Some(place) = above.find(|place| self.pages[*place] != EMPTY) {
                return Some((self.group as u32, place));
            }
            self.group += 1;
        }
        None
    }

    /// Takes a page out: its number and its dirty blocks, if there is one.
    pub(super) fn remove(&mut self, place: Place) -> Option<(u32, u64)> {
        let page = std::mem::replace(&mut self.pages[place], EMPTY);
        (page != EMPTY).then(|| (page, std::mem::take(&mut self.dirty[place])))
    }

    /// Brings a page to an empty place.
    pub(super) fn insert(&mut self, place: Place, page: u32, dirty: u64) {
        (self.pages[place], self.dirty[place]) = (page, dirty);
    }
}
