//! Pages that leave: out of place onto the shelf, out of the shelf into the region, and those whose content is dropped.

use super::Pages;
use super::work::{Bytes, End, Op, Step, Work};
use crate::paging::table::{Entry, NONE, Page, State, Twin};

impl Pages {
    /// The next dirty page that has to leave the shelf, so that a batch has room there. Drops clean ones.
    pub fn evict(&mut self) -> Option<Work> {
        while !self.lost && self.shelf_capacity() - self.on_shelf + self.leaving < self.batch {
            let entry = self.shelf.tail()?;
            self.table.unlink(&mut self.shelf, entry);
            let place = *self.table.place(entry);
            if place.twin != Twin::None {
                self.leaving += 1;
                return Some(self.write_back(entry, End::Evicted));
            }
            self.forget(entry);
            self.counters.evicted += 1;
        }
        None
    }

    /// The next page that has to leave its place for the shelf.
    pub fn shelve(&mut self) -> Option<Work> {
        let is_wanted = self.free() + self.shelving < 2 * self.batch && self.on_shelf < self.shelf_capacity();
        let entry = self.placed.tail().filter(|_| is_wanted && !self.lost)?;
        self.table.unlink(&mut self.placed, entry);
        let buffer = self.take_buffer();
        self.on_shelf += 1;
        self.shelving += 1;
        self.count_memory();
        let place = self.table.place_mut(entry);
        place.buffer = buffer;
        let is_dirty = place.state == State::Dirty && !planted!(self, ShelvedWritable);
        let ops = [is_dirty.then_some(Op::Protect), Some(Op::Save(buffer)), Some(Op::Drop)];
        Some(self.start(entry, ops, End::Shelf))
    }

    /// The next step of a flush for an entry, in the order of their numbers. `None`: there are no more entries.
    pub fn clean(&mut self, entry: Entry) -> Option<Step> {
        if entry >= self.table.entries() {
            return None;
        }
        let place = *self.table.place(entry);
        Some(match place.state {
            _ if self.lost => Step::Lost,
            _ if !self.table.is_used(entry) => Step::Ready,
            State::Stuck => Step::Lost,
            State::Moving | State::Copied => Step::Wait,
            State::Clean => Step::Ready,
            State::Shelved if place.twin == Twin::None => Step::Ready,
            State::Shelved => {
                self.table.unlink(&mut self.shelf, entry);
                Step::Work(self.write_back(entry, End::Cleaned))
            }
            State::Dirty => {
                self.table.unlink(&mut self.placed, entry);
                Step::Work(self.write_back(entry, End::Cleaned))
            }
        })
    }

    /// Drops a page's content.
    pub fn discard(&mut self, page: Page) -> Step {
        if self.lost {
            return Step::Lost;
        }
        let had_content = self.table.content(page) != 0;
        let Some(entry) = self.table.find(page) else {
            self.table.clear_content(page);
            self.counters.discarded += u64::from(had_content);
            return Step::Ready;
        };
        match self.table.place(entry).state {
            State::Stuck => Step::Lost,
            State::Moving | State::Copied => Step::Wait,
            State::Shelved => {
                self.table.unlink(&mut self.shelf, entry);
                self.forget(entry);
                self.table.clear_content(page);
                self.counters.discarded += 1;
                Step::Ready
            }
            State::Clean | State::Dirty => {
                self.table.unlink(&mut self.placed, entry);
                self.work(entry, [Some(Op::Drop), None, None], End::Discarded)
            }
        }
    }

    pub(super) fn write_back(&mut self, entry: Entry, end: End) -> Work {
        let place = *self.table.place(entry);
        let twin = match place.twin {
            Twin::In(buffer) => Bytes::Buffer(buffer),
            Twin::None | Twin::Zeros => Bytes::Zeros,
        };
        let ops = match place.buffer {
            NONE => {
                let mut ops = [Some(Op::Protect), Some(Op::WriteBack { now: Bytes::Place, twin }), None];
                if planted!(self, WriteDuringWriteBackLost) {
                    ops.swap(0, 1);
                }
                ops
            }
            buffer => [Some(Op::WriteBack { now: Bytes::Buffer(buffer), twin }), None, None],
        };
        self.start(entry, ops, end)
    }

    /// Frees an entry that was on the shelf, with its buffers.
    pub(super) fn forget(&mut self, entry: Entry) {
        self.drop_twin(entry);
        self.backed_free.push(self.table.place(entry).buffer);
        self.on_shelf -= 1;
        self.table.remove(entry);
    }

    pub(super) fn drop_twin(&mut self, entry: Entry) {
        if let Twin::In(buffer) = std::mem::take(&mut self.table.place_mut(entry).twin) {
            self.backed_free.push(buffer);
        }
    }
}
