//! Decides which pages are in place and which move: without memory, I/O or threads. The driver executes the steps,
//! under a lock of its own around each call.
//!
//! ```text
//!                 fault                      fault that writes
//!  absent ───────────────────▶ clean ───────────────────────────▶ dirty, with its twin
//!    ▲                           │ oldest page in place             │ protect
//!    │ write back what differs   ▼ copy, drop                       ▼ copy, drop
//!    └──────────────────────── on the shelf ────────────────────────┘     a fault puts it back in place
//! ```
//!
//! **Replacement** is a segmented FIFO, as VMS's page lists: a processor's loads leave no trace that a program may read cheaply, so
//! pages leave in the order in which they came, but to a *shelf*, an eighth of the memory, from where they leave for good. A page
//! in use comes back from the shelf at the price of a fault and a copy. So each page is a sample of its own use, and pages in use stay.
//!
//! **Steps.** One thread at a time works on a page; its state is [`State::Moving`], and other faults on it wait. The thread
//! carries out the operations of a [`Work`] in their order, then calls [`Pages::done`]. The orders are what keeps writes:
//!
//! - The twin is saved before the page becomes writable.
//! - A page is protected before it is copied or compared, and dropped after that. A write in between faults, waits, and finds the page
//!   absent, on the shelf, or clean.
//!
//! **Memory.** Pages in place, and buffers (twins, pages on the shelf, free ones whose memory is still there) are never more than the
//! capacity. Of it the shelf's share is held back, so that a page can always go there.

use super::statistics::PageCounters;
use super::table::{Buffer, Entry, List, NONE, Page, State, Table, Twin};
use super::twin::{Changed, PIECE_BYTES};
use work::End;
pub use work::{Bytes, Op, Step, Work};

/// Whether a test has planted this mistake; never outside of tests.
#[cfg(test)]
macro_rules! planted {
    ($pages:expr, $plant:ident) => {
        $pages.plant == Some($crate::paging::plant::Plant::$plant)
    };
}
#[cfg(not(test))]
macro_rules! planted {
    ($pages:expr, $plant:ident) => {
        false
    };
}

mod leaving;
mod room;
mod work;

/// The shelf's share of the capacity.
const SHELF: u32 = 8;
/// Most pages that leave together.
pub const BATCH: usize = 32;

/// See the [module](self).
pub struct Pages {
    table: Table,
    capacity: u32,
    /// Most pages that leave together: no more than half of the shelf.
    batch: u32,
    /// Pages in place that are not moving, by arrival.
    placed: List,
    shelf: List,
    /// Pages in place, or on their way there or from there.
    in_place: u32,
    /// Buffers of pages on the shelf, or on their way there or from there into the region.
    on_shelf: u32,
    /// Of the pages in place, those on their way to the shelf.
    shelving: u32,
    /// Of the pages on the shelf, those on their way into the region.
    leaving: u32,
    /// Buffers with memory, also free ones.
    backed: u32,
    backed_free: Vec<Buffer>,
    unbacked: Vec<Buffer>,
    most: u32,
    lost: bool,
    pub counters: PageCounters,
    #[cfg(test)]
    pub plant: Option<super::plant::Plant>,
}

impl Pages {
    /// Absent pages. At most `capacity` pages and copies may be in memory. Up to `batch` leave together. `content`: the
    /// pieces that the region has of each.
    pub fn new(pages: u32, capacity: u32, batch: u16, content: u8) -> Pages {
        Pages {
            table: Table::new(pages, capacity, content),
            capacity,
            batch: u32::from(batch).clamp(1, BATCH as u32).min((capacity / SHELF / 2).max(1)),
            placed: List::EMPTY,
            shelf: List::EMPTY,
            in_place: 0,
            on_shelf: 0,
            shelving: 0,
            leaving: 0,
            backed: 0,
            backed_free: Vec::with_capacity(capacity as usize),
            unbacked: (0..capacity).rev().collect(),
            most: 0,
            lost: false,
            counters: PageCounters::default(),
            #[cfg(test)]
            plant: None,
        }
    }

    /// Bytes of the tables for one page, and for one page of the capacity.
    pub const BYTES_EACH: (u64, u64) =
        (Table::BYTES_EACH.0, Table::BYTES_EACH.1 + 2 * size_of::<Buffer>() as u64);

    /// Pages and buffers in memory: now, and the most so far.
    pub fn in_memory(&self) -> (u32, u32) {
        (self.in_place + self.backed, self.most)
    }

    /// Pages in place, and on the shelf.
    pub fn pages(&self) -> (u32, u32) {
        (self.in_place, self.on_shelf)
    }

    pub fn is_lost(&self) -> bool {
        self.lost
    }

    /// Remote memory is lost: no page begins to move from now on.
    pub fn lose(&mut self) {
        self.lost = true;
    }

    /// A fault on a page.
    pub fn fault(&mut self, page: Page, writes: bool) -> Step {
        let Some(entry) = self.table.find(page) else { return self.fill(page, writes) };
        match self.table.place(entry).state {
            State::Moving if planted!(self, TwoFetches) => self.fill(page, writes),
            State::Moving | State::Copied => Step::Wait,
            State::Dirty => Step::Ready,
            State::Clean if !writes => Step::Ready,
            State::Clean if self.lost => self.free_for_writes(entry),
            State::Clean => self.make_twin(entry),
            State::Shelved => self.restore(entry, writes),
            State::Stuck => Step::Lost,
        }
    }

    /// Nothing is written back after a loss, so no twin is needed.
    fn free_for_writes(&mut self, entry: Entry) -> Step {
        self.table.unlink(&mut self.placed, entry);
        self.table.place_mut(entry).twin = Twin::Zeros;
        self.work(entry, [Some(Op::Unprotect), None, None], End::InPlace)
    }

    fn fill(&mut self, page: Page, writes: bool) -> Step {
        if self.lost {
            return Step::Lost;
        }
        let content = self.table.content(page);
        let has_twin = writes && content != 0;
        if let Some(step) = self.lacks(1, has_twin.into()) {
            return step;
        }
        let Some(entry) = self.table.insert(page) else { return Step::Room };
        self.in_place += 1;
        let (twin, ops) = match (content, writes) {
            (0, _) => {
                let fill = Op::Fill { from: Bytes::Zeros, protected: !writes };
                (if writes { Twin::Zeros } else { Twin::None }, [Some(fill), None, None])
            }
            (_, true) => {
                let buffer = self.take_buffer();
                let fill = Op::Fill { from: Bytes::Buffer(buffer), protected: false };
                (Twin::In(buffer), [Some(Op::Fetch(buffer)), Some(fill), None])
            }
            (_, false) => (Twin::None, [Some(Op::FetchInPlace), None, None]),
        };
        self.count_memory();
        self.table.place_mut(entry).twin = twin;
        match content {
            0 => self.counters.zeroed += 1,
            _ => self.counters.filled += 1,
        }
        self.work(entry, ops, End::InPlace)
    }

    fn make_twin(&mut self, entry: Entry) -> Step {
        let is_zeros = self.table.content(self.table.place(entry).page) == 0;
        if let Some(step) = self.lacks(0, (!is_zeros).into()) {
            return step;
        }
        self.table.unlink(&mut self.placed, entry);
        self.counters.twins += 1;
        let (twin, save) = match is_zeros {
            true => (Twin::Zeros, None),
            false => {
                let buffer = self.take_buffer();
                (Twin::In(buffer), Some(Op::Save(buffer)))
            }
        };
        self.count_memory();
        self.table.place_mut(entry).twin = twin;
        let mut ops = [save, Some(Op::Unprotect), None];
        if planted!(self, TwinTooLate) {
            ops.swap(0, 1);
        }
        self.work(entry, ops, End::InPlace)
    }

    fn restore(&mut self, entry: Entry, writes: bool) -> Step {
        if self.lost {
            return Step::Lost;
        }
        let place = *self.table.place(entry);
        let becomes_twin = writes && place.twin == Twin::None;
        // A place, and the share of the shelf, which is held back for another page.
        if self.free() < 2 {
            return Step::Room;
        }
        if let Some(step) = self.lacks_memory(1, 0) {
            return step;
        }
        self.table.unlink(&mut self.shelf, entry);
        (self.in_place, self.on_shelf) = (self.in_place + 1, self.on_shelf - 1);
        self.count_memory();
        self.counters.restored += 1;
        if becomes_twin {
            self.table.place_mut(entry).twin = Twin::In(place.buffer);
        }
        let protected = !writes && place.twin == Twin::None;
        let ops = [Some(Op::Fill { from: Bytes::Buffer(place.buffer), protected }), None, None];
        self.work(entry, ops, End::InPlace)
    }

    /// Whether a page is in place until its work drops it. Unless it is there, the program has dropped it.
    pub fn is_in_place(&self, page: Page) -> bool {
        let state = self.table.find(page).map(|entry| self.table.place(entry).state);
        matches!(state, Some(State::Copied | State::Clean | State::Dirty))
    }

    /// A page in place is not there, which ends the mapping.
    pub fn stick(&mut self, page: Page) {
        self.lost = true;
        if let Some(entry) = self.table.find(page) {
            self.table.place_mut(entry).state = State::Stuck;
        }
    }

    /// A work drops its page next.
    pub fn dropping(&mut self, work: &Work) {
        self.table.place_mut(work.entry).state = State::Moving;
    }

    /// The memory of a buffer was given back.
    pub fn released(&mut self, buffer: Buffer) {
        self.backed -= 1;
        self.unbacked.push(buffer);
    }

    /// An operation of a work has failed, which ends the mapping.
    pub fn failed(&mut self, work: &Work) {
        self.lost = true;
        self.table.place_mut(work.entry).state = State::Stuck;
    }

    /// All operations of a work are done. `changed`: the pieces that were written to the region.
    pub fn done(&mut self, work: &Work, changed: Changed) {
        let entry = work.entry;
        self.counters.changed_lines += u64::from(changed.lines);
        self.counters.written_back_bytes += u64::from(changed.pieces.count_ones()) * PIECE_BYTES as u64;
        self.table.add_content(work.page, changed.pieces);
        match work.end {
            End::InPlace => {
                let place = self.table.place_mut(entry);
                place.state = if place.twin == Twin::None { State::Clean } else { State::Dirty };
                let buffer = std::mem::replace(&mut place.buffer, NONE);
                let is_twin = place.twin == Twin::In(buffer);
                if buffer != NONE && !is_twin {
                    self.backed_free.push(buffer);
                }
                self.table.push(&mut self.placed, entry);
            }
            End::Shelf => {
                self.in_place -= 1;
                self.shelving -= 1;
                self.counters.shelved += 1;
                self.table.place_mut(entry).state = State::Shelved;
                self.table.push(&mut self.shelf, entry);
            }
            End::Evicted => {
                self.forget(entry);
                self.leaving -= 1;
                self.counters.evicted += 1;
                self.counters.evicted_dirty += 1;
            }
            End::Cleaned => {
                self.drop_twin(entry);
                match self.table.place(entry).buffer {
                    NONE => {
                        self.table.place_mut(entry).state = State::Clean;
                        self.table.push(&mut self.placed, entry);
                    }
                    _ => {
                        self.table.place_mut(entry).state = State::Shelved;
                        self.table.push(&mut self.shelf, entry);
                    }
                }
            }
            End::Discarded => {
                self.in_place -= 1;
                self.drop_twin(entry);
                self.table.remove(entry);
                self.table.clear_content(work.page);
                self.counters.discarded += 1;
            }
        }
    }

    fn start(&mut self, entry: Entry, ops: [Option<Op>; 3], end: End) -> Work {
        let copies = |op: &Op| matches!(op, Op::Save(_) | Op::WriteBack { now: Bytes::Place, .. });
        let place = self.table.place_mut(entry);
        place.state = if ops.iter().flatten().any(copies) { State::Copied } else { State::Moving };
        let page = place.page;
        Work { page, content: self.table.content(page), ops, entry, end }
    }

    fn work(&mut self, entry: Entry, ops: [Option<Op>; 3], end: End) -> Step {
        Step::Work(self.start(entry, ops, end))
    }
}
