//! Virtual memory: translation, permission and page faults of one access, in bounded work (paper §4.2 and §4.3).
//!
//! ```text
//!  address ─▶ TLB ── hit ──────────────────────┐
//!              └ miss ─▶ one bucket ─▶ TLB ────┼─▶ state and rights ─▶ physical address
//!                                              │        └ allocated, not valid: a page fault
//!                                              └───────── a ready frame ─▶ entry, TLB ◀┘
//! ```
//!
//! Life of a page:
//!
//! ```text
//!   free ──alloc──▶ allocated ──first access──▶ valid ──free──▶ closing ──all reads answered──▶ free
//!                       └───────────────────────free──────────────▲
//! ```

use super::entry::{Entry, Page, Space, State};
use super::pages::Pages;
use super::process::Source;
use super::processes::Processes;
use super::table::{Slot, Table};
use super::tlb::Tlb;
use p4rack_wire::clio::{PageSize, Rights, Status};
use std::collections::BTreeMap;

/// How an address was translated, for models of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Translation {
    /// There was nothing to translate.
    #[default]
    None,
    /// The TLB had the entry.
    Hit,
    /// A bucket of the page table was read.
    Miss,
    /// It was the first access to the page, whose entry the TLB or a bucket had.
    Fault,
}

/// Where an access goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Physical address.
    pub at: u64,
    /// The page's size and frame.
    pub size: PageSize,
    pub frame: u32,
    pub translation: Translation,
}

/// Page table, TLB, frames and processes: all that a translation needs.
#[derive(Clone, Debug)]
pub(super) struct Vm {
    pub table: Table,
    pub tlb: Tlb,
    pub pages: Pages,
    pub processes: Processes,
    /// Frames that more than one page has.
    shared: BTreeMap<(PageSize, u32), Shared>,
    /// Translations by hit, miss and fault.
    pub counts: [u64; 3],
    #[cfg(test)]
    pub plant: Option<super::plant::Plant>,
}

/// A frame of several pages.
#[derive(Clone, Copy, Debug)]
struct Shared {
    pages: u32,
    /// The process that took the frame; it counts against its quota until the last page is gone.
    owner: Space,
}

impl Vm {
    pub fn new(table: Table, tlb: Tlb, pages: Pages, processes: Processes) -> Vm {
        Vm {
            table,
            tlb,
            pages,
            processes,
            shared: BTreeMap::new(),
            counts: [0; 3],
            #[cfg(test)]
            plant: None,
        }
    }

    /// Translates the address of `bytes` bytes for an access that needs `rights`. The first access takes a frame.
    ///
    /// Errors: not all bytes are in one page, the page is not allocated, is being freed or lacks a right, or there is no frame for it.
    #[inline]
    pub fn translate(
        &mut self,
        space: Space,
        address: u64,
        bytes: u32,
        rights: Rights,
    ) -> Result<Place, Status> {
        let size = PageSize::of_address(address).map_err(|_| Status::NoSuchAddress)?;
        if size.bytes_in_page(address, bytes.into()) != u64::from(bytes) || bytes == 0 {
            return Err(Status::BadLength);
        }
        let page = Page { space, size, number: size.page_of(address) };
        let (mut translation, (slot, mut entry)) = match self.tlb.find(page.tag()) {
            Some(found) => (Translation::Hit, found),
            None => {
                let found = self.table.find(&page).ok_or(Status::NoSuchAddress)?;
                self.tlb.insert(found.0, found.1);
                (Translation::Miss, found)
            }
        };
        if !entry.rights().include(rights) && !planted!(self, NoRights) {
            return Err(Status::NotPermitted);
        }
        match entry.state() {
            Some(State::Valid) => {}
            Some(State::Allocated) => {
                entry = self.fault(&page, slot, entry)?;
                translation = Translation::Fault;
            }
            Some(State::Closing) => return Err(Status::Closing),
            None => return Err(Status::NoSuchAddress),
        }
        self.counts[match translation {
            Translation::Miss => 1,
            Translation::Fault => 2,
            Translation::Hit | Translation::None => 0,
        }] += 1;
        let frame = entry.frame();
        let at = self.pages.address_of(size, frame) + size.offset_of(address);
        Ok(Place { at, size, frame, translation })
    }

    /// Gives an allocated page its frame: a few steps, whatever the sizes of table, memory and processes. Fails if no
    /// frame is free for it, or its process has ended.
    pub fn fault(&mut self, page: &Page, slot: Slot, entry: Entry) -> Result<Entry, Status> {
        let process = self.processes.get_mut(page.space).filter(|process| process.is_alive());
        let process = process.ok_or(Status::NoSuchProcess)?;
        let frame = self.pages.take(page.size, process.is_promised(page.size))?;
        process.has_taken(page.size);
        let entry = entry.with_frame(frame);
        if !planted!(self, FaultForgotten) {
            self.change(slot, entry);
        }
        Ok(entry)
    }

    /// Size and owner of each frame that several pages have.
    pub fn shared_frames(&self) -> impl Iterator<Item = (PageSize, Space)> {
        self.shared.iter().map(|((size, _), shared)| (*size, shared.owner))
    }

    /// Writes an entry to its slot, and to the TLB.
    pub fn change(&mut self, slot: Slot, entry: Entry) {
        self.table.set(slot, entry);
        self.tlb.update(slot, entry);
    }

    /// Maps a page to another page's frame, too. A slot was reserved for it. `owner` is the process of the other page.
    pub fn map(&mut self, page: &Page, frame: u32, rights: Rights, owner: Space) {
        let entry = Entry::allocated(page, rights).with_frame(frame).received();
        if self.table.insert(page, entry).is_some() {
            self.shared.entry((page.size, frame)).or_insert(Shared { pages: 1, owner }).pages += 1;
        }
    }

    /// Removes a page from TLB, table and memory. Returns how its process got it; `None` if the page wasn't mapped.
    pub fn unmap(&mut self, page: &Page) -> Option<Source> {
        let (slot, entry) = self.table.find(page)?;
        if !planted!(self, StaleTlb) {
            self.tlb.forget(page.tag());
        }
        self.table.remove(slot);
        if entry.has_frame() {
            self.release(page, entry.frame());
        }
        Some(if entry.is_received() { Source::Other } else { Source::Own })
    }

    /// A page no longer has its frame, which is free if it was the last one.
    fn release(&mut self, page: &Page, frame: u32) {
        let key = (page.size, frame);
        let mut owner = page.space;
        if let Some(shared) = self.shared.get_mut(&key) {
            shared.pages -= 1;
            owner = shared.owner;
            if shared.pages > 0 {
                return;
            }
            self.shared.remove(&key);
        }
        let promised = self.processes.get_mut(owner).is_some_and(|process| process.has_given_back(page.size));
        self.pages.give_back(page.size, frame, promised);
    }
}
