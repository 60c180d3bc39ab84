//! Entries of the pages that local memory has, in lists, and of all pages the entry and which pieces have content.

/// Number of a page of the range.
pub type Page = u32;
/// Number of an entry.
pub type Entry = u32;
/// Number of a buffer of one page.
pub type Buffer = u32;

/// No entry, no buffer.
pub const NONE: u32 = u32::MAX;
/// Most entries: a page's word has 24 bits for the entry's number.
pub const ENTRIES_MAX: u64 = (1 << 24) - 2;

/// Where a page of local memory is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// A thread works on it.
    #[default]
    Moving,
    /// A thread works on it, which may copy it: it is in place, and protected or about to be.
    Copied,
    /// In place, protected, with the region's content.
    Clean,
    /// In place, writable, with a twin.
    Dirty,
    /// In a buffer.
    Shelved,
    /// Its work has failed, and the mapping is lost: wherever the page is, it stays there.
    Stuck,
}

/// Content of a page when it last equalled the region's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Twin {
    /// It still is: no twin.
    #[default]
    None,
    /// All zeros.
    Zeros,
    /// As this buffer.
    In(Buffer),
}

/// A page of local memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place {
    pub page: Page,
    pub state: State,
    pub twin: Twin,
    /// Of a page on the shelf, its content.
    pub buffer: Buffer,
    next: Entry,
    previous: Entry,
}

/// A list of entries, the newest at the head.
#[derive(Clone, Copy, Debug)]
pub struct List {
    head: Entry,
    tail: Entry,
}

impl List {
    pub const EMPTY: List = List { head: NONE, tail: NONE };

    /// The oldest entry.
    pub fn tail(&self) -> Option<Entry> {
        (self.tail != NONE).then_some(self.tail)
    }
}

/// All pages of a range.
pub struct Table {
    /// Of each page: 8 bits, one a piece that may differ from zeros in the region; above them the entry plus 1, or 0.
    words: Vec<u32>,
    places: Vec<Place>,
    free: Vec<Entry>,
}

impl Table {
    /// Of `pages` pages, of which up to `entries` are local. `content`: pieces of each page that the region has.
    pub fn new(pages: u32, entries: u32, content: u8) -> Table {
        Table {
            words: vec![content.into(); pages as usize],
            places: vec![Place::default(); entries as usize],
            free: (0..entries).rev().collect(),
        }
    }

    /// Bytes of the tables for one page, and for one entry.
    pub const BYTES_EACH: (u64, u64) =
        (size_of::<u32>() as u64, (size_of::<Place>() + size_of::<Entry>()) as u64);

    pub fn entries(&self) -> u32 {
        self.places.len() as u32
    }

    #[inline]
    pub fn content(&self, page: Page) -> u8 {
        self.words[page as usize] as u8
    }

    pub fn add_content(&mut self, page: Page, pieces: u8) {
        self.words[page as usize] |= u32::from(pieces);
    }

    pub fn clear_content(&mut self, page: Page) {
        self.words[page as usize] &= !0xff;
    }

    #[inline]
    pub fn find(&self, page: Page) -> Option<Entry> {
        (self.words[page as usize] >> 8).checked_sub(1)
    }

    #[inline]
    pub fn place(&self, entry: Entry) -> &Place {
        &self.places[entry as usize]
    }

    #[inline]
    pub fn place_mut(&mut self, entry: Entry) -> &mut Place {
        &mut self.places[entry as usize]
    }

    /// Whether an entry has a page.
    pub fn is_used(&self, entry: Entry) -> bool {
        self.find(self.places[entry as usize].page) == Some(entry)
    }

    /// An entry, moving, for a page that has none. `None`: all are in use.
    pub fn insert(&mut self, page: Page) -> Option<Entry> {
        let entry = self.free.pop()?;
        self.places[entry as usize] =
            Place { page, buffer: NONE, next: NONE, previous: NONE, ..Place::default() };
        let word = &mut self.words[page as usize];
        *word = *word & 0xff | (entry + 1) << 8;
        Some(entry)
    }

    /// Frees an entry that is in no list.
    pub fn remove(&mut self, entry: Entry) {
        self.words[self.places[entry as usize].page as usize] &= 0xff;
        self.free.push(entry);
    }

    /// Puts an entry at the head of a list.
    pub fn push(&mut self, list: &mut List, entry: Entry) {
        let place = &mut self.places[entry as usize];
        (place.previous, place.next) = (NONE, list.head);
        match list.head {
            NONE => list.tail = entry,
            head => self.places[head as usize].previous = entry,
        }
        list.head = entry;
    }

    /// Takes an entry out of its list.
    pub fn unlink(&mut self, list: &mut List, entry: Entry) {
        let Place { next, previous, .. } = self.places[entry as usize];
        match previous {
            NONE => list.head = next,
            before => self.places[before as usize].next = next,
        }
        match next {
            NONE => list.tail = previous,
            after => self.places[after as usize].previous = previous,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_has_the_entry_and_what_has_content() {
        let mut table = Table::new(3, 2, 0);
        let entry = table.insert(1).unwrap();
        table.add_content(1, 0b1010);
        assert_eq!((table.find(1), table.content(1), table.find(0)), (Some(entry), 0b1010, None));
        table.insert(2).unwrap();
        assert_eq!(table.insert(0), None, "both entries are in use");
        table.remove(entry);
        assert_eq!((table.find(1), table.content(1), table.is_used(entry)), (None, 0b1010, false));
        table.clear_content(1);
        assert_eq!(table.content(1), 0);
    }

    #[test]
    fn lists_are_left_from_the_tail_and_from_within() {
        let (mut table, mut list) = (Table::new(4, 4, 0), List::EMPTY);
        let entries: Vec<_> = (0..4).filter_map(|page| table.insert(page)).collect();
        entries.iter().for_each(|entry| table.push(&mut list, *entry));
        table.unlink(&mut list, entries[1]);
        table.unlink(&mut list, entries[3]);
        let mut seen = Vec::new();
        while let Some(entry) = list.tail() {
            table.unlink(&mut list, entry);
            seen.push(entry);
        }
        assert_eq!(seen, [entries[0], entries[2]]);
    }
}
