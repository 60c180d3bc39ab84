//! Room for pages and buffers.

use super::work::Step;
use super::{Pages, SHELF};
use crate::paging::table::{Buffer, NONE};

impl Pages {
    pub(super) fn shelf_capacity(&self) -> u32 {
        self.capacity / SHELF
    }

    pub(super) fn free(&self) -> u32 {
        let used = self.backed - self.backed_free.len() as u32;
        let held_back = self.shelf_capacity() - self.on_shelf;
        self.capacity.saturating_sub(self.in_place + used + held_back)
    }

    /// Whether pages should leave before the next faults need it.
    pub fn is_short(&self) -> bool {
        self.free() < self.batch && !self.lost
    }

    /// Whether pages leave one by one. Then the thread that needs room has one leave itself, which takes less time than waking another.
    pub fn leave_alone(&self) -> bool {
        self.batch == 1
    }

    /// The next step to get memory for pages and buffers; `None`: there is enough.
    pub(super) fn lacks(&mut self, places: u32, buffers: u32) -> Option<Step> {
        if self.free() < places + buffers {
            return Some(Step::Room);
        }
        self.lacks_memory(places, buffers)
    }

    pub(super) fn lacks_memory(&mut self, places: u32, buffers: u32) -> Option<Step> {
        let fresh = buffers.saturating_sub(self.backed_free.len() as u32);
        if self.in_place + places + self.backed + fresh <= self.capacity {
            return None;
        }
        self.backed_free.pop().map(Step::Release)
    }

    /// A buffer, after [`Pages::lacks`] has said that there is one, or of the shelf's share.
    pub(super) fn take_buffer(&mut self) -> Buffer {
        self.backed_free.pop().unwrap_or_else(|| {
            self.backed += 1;
            self.unbacked.pop().unwrap_or(NONE)
        })
    }

    pub(super) fn count_memory(&mut self) {
        self.most = self.most.max(self.in_place + self.backed);
    }
}
