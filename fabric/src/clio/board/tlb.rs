//! The TLB: entries of the page table that were used last, on the chip. It is updated together with every change of the table.

use super::entry::Entry;
use super::recent::{Key, Recent};
use super::table::Slot;
use p4rack_wire::SplitMix;

/// Which entry goes when another one comes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Replacement {
    /// The one that was used least recently, the paper's.
    #[default]
    Lru,
    /// The one that came first, the published code's.
    Fifo,
}

impl Replacement {
    /// All, with their names.
    pub const ALL: [(Replacement, &'static str); 2] =
        [(Replacement::Lru, "lru"), (Replacement::Fifo, "fifo")];
}

impl Key for u128 {
    #[inline]
    fn hash(&self, seed: u64) -> u64 {
        SplitMix(*self as u64 ^ (*self >> 64) as u64 ^ seed).next()
    }
}

/// The TLB, by tags of pages.
#[derive(Clone, Debug)]
pub(super) struct Tlb {
    entries: Recent<u128, (Slot, Entry)>,
    replacement: Replacement,
}

impl Tlb {
    /// Without entries. With a size of 0, none are kept.
    pub fn new(entries: u32, replacement: Replacement, seed: u64) -> Tlb {
        Tlb { entries: Recent::new(entries, seed), replacement }
    }

    /// The entry of the page with this tag, and its slot in the table.
    #[inline]
    pub fn find(&mut self, tag: u128) -> Option<(Slot, Entry)> {
        match self.replacement {
            Replacement::Lru => self.entries.touch(&tag).copied(),
            Replacement::Fifo => self.entries.get(&tag).copied(),
        }
    }

    /// Adds the entry in a slot of the table.
    #[inline]
    pub fn insert(&mut self, slot: Slot, entry: Entry) {
        self.entries.insert(entry.tag(), (slot, entry));
    }

    /// The table's entry has changed.
    pub fn update(&mut self, slot: Slot, entry: Entry) {
        if let Some(known) = self.entries.get_mut(&entry.tag()) {
            *known = (slot, entry);
        }
    }

    /// The table no longer has the page with this tag.
    pub fn forget(&mut self, tag: u128) {
        self.entries.remove(&tag);
    }
}

#[cfg(test)]
mod tests {
    use super::super::entry::{Page, Space};
    use super::*;
    use p4rack_wire::clio::{PageSize, Rights};

    /// After 0, 1, 0 in a TLB of two entries, 2 replaces 1 or 0.
    #[test]
    fn the_replacement_is_the_one_asked_for() {
        for (replacement, kept) in [(Replacement::Lru, [true, false]), (Replacement::Fifo, [false, true])] {
            let entry = |number| {
                let page = Page { space: Space { pid: 1, epoch: 0 }, size: PageSize::K4, number };
                Entry::allocated(&page, Rights::ALL)
            };
            let mut tlb = Tlb::new(2, replacement, 9);
            (0..2).for_each(|number| tlb.insert(number, entry(number)));
            assert_eq!(tlb.find(entry(0).tag()), Some((0, entry(0))));
            tlb.insert(2, entry(2));
            assert_eq!([0, 1].map(|number| tlb.find(entry(number).tag()).is_some()), kept, "{replacement:?}");
            tlb.update(2, entry(2).with_frame(5));
            assert_eq!(tlb.find(entry(2).tag()), Some((2, entry(2).with_frame(5))));
            tlb.forget(entry(2).tag());
            assert_eq!(tlb.find(entry(2).tag()), None);
        }
    }
}
