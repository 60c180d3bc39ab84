//! The page table: one hash table for all processes (paper §4.2).
//!
//! ```text
//!  page ── index ──▶ bucket 0 │ slot │ slot │ … K slots, read in one access
//!                    bucket 1 │ slot │ slot │ …
//! ```
//!
//! A page's entry is in the one bucket that its index names, so a translation reads one bucket. There is no overflow chain: the allocator
//! asks for [room](Table::reserve) before it gives an address away, and chooses another address if a bucket is full.

use super::entry::{Entry, Page};
use super::lookup3;
use p4rack_wire::SplitMix;
use std::ops::Range;

/// How a page's bucket is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Index {
    /// A hash of process and page number, the paper's. Neighbouring pages are scattered, so a long range is likely to
    /// meet a full bucket.
    Mixed,
    /// The page number behind a hash of the process. Neighbouring pages have neighbouring buckets, so a range meets
    /// full buckets as a whole or not at all.
    #[default]
    Salted,
    /// The authors' for their measurement of conflicts: Jenkins' lookup3 of the page number alone. Pages of the same number share a bucket
    /// whatever their process is, and without a secret anyone can compute it: for comparison only.
    Lookup3,
}

impl Index {
    /// Those for use, with their names.
    pub const ALL: [(Index, &'static str); 2] = [(Index::Mixed, "mixed"), (Index::Salted, "salted")];
    /// All, with their names.
    pub const WITH_ARTIFACT: [(Index, &'static str); 3] =
        [Index::ALL[0], Index::ALL[1], (Index::Lookup3, "lookup3")];
}

/// Number of a slot in the table.
pub(super) type Slot = u32;

/// Four slots, a cache line of most processors.
#[derive(Clone, Debug)]
#[repr(align(64))]
struct Line([Entry; LINE_SLOTS]);

const LINE_SLOTS: usize = 4;

/// The table.
#[derive(Clone, Debug)]
pub struct Table {
    lines: Vec<Line>,
    bucket_slots: u32,
    buckets: u64,
    index: Index,
    seed: u64,
    /// Slots of each bucket that are neither taken nor reserved. The slow path's shadow, which translations don't read.
    room: Vec<u8>,
    taken: u64,
    /// Whether a test has planted that full buckets are ignored.
    #[cfg(test)]
    pub(super) overflows: bool,
}

impl Table {
    /// An empty table with at least `slots` slots, below 2^32, in buckets of `bucket_slots`: 4, 8 or 16.
    pub(super) fn new(slots: u64, bucket_slots: u32, index: Index, seed: u64) -> Table {
        let buckets = slots.div_ceil(bucket_slots.into()).max(1);
        let lines = buckets as usize * bucket_slots as usize / LINE_SLOTS;
        let (lines, room) =
            (vec![Line([Entry::EMPTY; LINE_SLOTS]); lines], vec![bucket_slots as u8; buckets as usize]);
        Table {
            lines,
            bucket_slots,
            buckets,
            index,
            seed,
            room,
            taken: 0,
            #[cfg(test)]
            overflows: false,
        }
    }

    /// Where its slots are.
    pub(super) fn memory(&self) -> Range<*const u8> {
        let Range { start, end } = self.lines.as_ptr_range();
        start.cast()..end.cast()
    }

    /// Its slots.
    pub fn slots(&self) -> u64 {
        self.buckets * u64::from(self.bucket_slots)
    }

    /// Slots with an entry.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// Slots of each bucket that are neither taken nor reserved.
    #[cfg(test)]
    pub(super) fn room(&self) -> &[u8] {
        &self.room
    }

    /// The bucket of a page.
    #[inline]
    pub(super) fn bucket_of(&self, page: &Page) -> u32 {
        let space = u64::from(page.space.pid) << 32 | u64::from(page.space.epoch) << 16 | page.size as u64;
        let salt = SplitMix(space ^ self.seed).next();
        match self.index {
            Index::Mixed => {
                let hash = SplitMix(salt ^ u64::from(page.number)).next();
                ((u128::from(hash) * u128::from(self.buckets)) >> 64) as u32
            }
            // Half of the salt: the sum does not overflow.
            Index::Lookup3 => (u64::from(lookup3::hash(page.number.into())) % self.buckets) as u32,
            Index::Salted => (((salt >> 32) + u64::from(page.number)) % self.buckets) as u32,
        }
    }

    /// Finds a page's entry. Reads one bucket.
    #[inline]
    pub(super) fn find(&self, page: &Page) -> Option<(Slot, Entry)> {
        self.find_in(self.bucket_of(page), page.tag())
    }

    #[inline]
    fn find_in(&self, bucket: u32, tag: u128) -> Option<(Slot, Entry)> {
        let lines = self.bucket_slots as usize / LINE_SLOTS;
        let first = bucket as usize * lines;
        let entries = self.lines[first..first + lines].iter().flat_map(|line| line.0);
        let nth = entries.clone().position(|entry| entry.is_of(tag))?;
        let slot = bucket * self.bucket_slots + nth as u32;
        Some((slot, self.get(slot)))
    }

    /// Where a page's bucket is.
    #[inline]
    pub(super) fn bucket(&self, page: &Page) -> Range<*const u8> {
        let lines = self.bucket_slots as usize / LINE_SLOTS;
        let first = self.bucket_of(page) as usize * lines;
        let Range { start, end } = self.lines[first..first + lines].as_ptr_range();
        start.cast()..end.cast()
    }

    /// The entry in a slot.
    #[inline]
    pub(super) fn get(&self, slot: Slot) -> Entry {
        self.lines[slot as usize / LINE_SLOTS].0[slot as usize % LINE_SLOTS]
    }

    /// Changes the entry in a slot that is taken. The page stays the same.
    #[inline]
    pub(super) fn set(&mut self, slot: Slot, entry: Entry) {
        self.lines[slot as usize / LINE_SLOTS].0[slot as usize % LINE_SLOTS] = entry;
    }

    /// Whether a page's bucket has no room.
    #[inline]
    pub(super) fn is_full(&self, page: &Page) -> bool {
        self.room[self.bucket_of(page) as usize] == 0 && !self.overflows()
    }

    /// Whether a test has planted that full buckets are ignored.
    #[cfg(test)]
    fn overflows(&self) -> bool {
        self.overflows
    }

    /// Never outside of tests.
    #[cfg(not(test))]
    fn overflows(&self) -> bool {
        false
    }

    /// Reserves a slot for a page's entry. Returns whether there was room.
    pub(super) fn reserve(&mut self, page: &Page) -> bool {
        let bucket = self.bucket_of(page) as usize;
        let has_room = self.room[bucket] > 0;
        self.room[bucket] -= u8::from(has_room);
        has_room || self.overflows()
    }

    /// Gives a reservation back.
    pub(super) fn release(&mut self, page: &Page) {
        let bucket = self.bucket_of(page) as usize;
        self.room[bucket] += 1;
    }

    /// Writes the entry of a page for which a slot was reserved. Returns `None` if none was: then the bucket may be full.
    pub(super) fn insert(&mut self, page: &Page, entry: Entry) -> Option<Slot> {
        let first = self.bucket_of(page) * self.bucket_slots;
        let slot = (first..first + self.bucket_slots).find(|slot| self.get(*slot) == Entry::EMPTY);
        let slot = slot.or(self.overflows().then_some(first))?;
        self.set(slot, entry);
        self.taken += 1;
        Some(slot)
    }

    /// Empties a slot that is taken.
    pub(super) fn remove(&mut self, slot: Slot) {
        self.set(slot, Entry::EMPTY);
        self.room[(slot / self.bucket_slots) as usize] += 1;
        self.taken -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::super::entry::Space;
    use super::*;
    use p4rack_wire::clio::{PageSize, Rights};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn page(pid: u32, number: u32) -> Page {
        Page { space: Space { pid, epoch: 1 }, size: PageSize::M4, number }
    }

    #[test]
    fn salted_neighbours_lie_in_neighbouring_buckets_and_mixed_ones_anywhere() {
        let neighbours = |index| {
            let table = Table::new(1_024, 8, index, 7);
            let at = |number| u64::from(table.bucket_of(&page(3, number)));
            (0..1_000).filter(|number| at(number + 1) == (at(*number) + 1) % table.buckets).count()
        };
        assert_eq!(neighbours(Index::Salted), 1_000);
        assert!(neighbours(Index::Mixed) < 50);
    }

    #[test]
    fn all_buckets_are_used_alike() {
        for (index, name) in Index::ALL {
            let table = Table::new(1_000, 4, index, 7);
            let mut counts = vec![0u32; table.buckets as usize];
            for pid in 1..101 {
                (0..250).for_each(|number| counts[table.bucket_of(&page(pid, number)) as usize] += 1);
            }
            let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
            assert!(*least > 50 && *most < 160, "{name}: {least} to {most} of 100 each");
        }
    }

    proptest! {
        /// A table is a map from pages to entries, as long as each entry has reserved its slot; and reserving fails exactly if the
        /// bucket has as many entries and reservations as slots.
        #[test]
        fn it_is_a_map(
            steps in prop::collection::vec((0u8..3, 1u32..3, 0u32..40), 1..200), bucket_slots in prop::sample::select(vec![4u32, 8, 16]),
            salted: bool,
        ) {
            let index = if salted { Index::Salted } else { Index::Mixed };
            let mut table = Table::new(32, bucket_slots, index, 3);
            let mut map = BTreeMap::<(u32, u32), Entry>::new();
            for (what, pid, number) in steps {
                let page = page(pid, number);
                let found = table.find(&page);
                prop_assert_eq!(found.map(|(_, entry)| entry), map.get(&(pid, number)).copied());
                match (what, found) {
                    (0 | 1, None) => {
                        let bucket = table.bucket_of(&page);
                        let in_bucket = map.keys().filter(|key| table.bucket_of(&self::page(key.0, key.1)) == bucket).count();
                        prop_assert_eq!(table.is_full(&page), in_bucket == bucket_slots as usize);
                        if table.reserve(&page) {
                            let entry = Entry::allocated(&page, Rights::ALL);
                            prop_assert!(table.insert(&page, entry).is_some(), "there was room");
                            map.insert((pid, number), entry);
                        }
                    }
                    (0, Some((slot, entry))) => {
                        let entry = entry.with_frame(number);
                        table.set(slot, entry);
                        map.insert((pid, number), entry);
                    }
                    (_, Some((slot, _))) => {
                        table.remove(slot);
                        map.remove(&(pid, number));
                    }
                    _ => {}
                }
                prop_assert_eq!(table.taken(), map.len() as u64);
            }
        }
    }
}
