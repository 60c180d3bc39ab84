//! Allocates addresses. No frame is taken: that is left to the first access.

use super::super::entry::{Entry, Page, Space};
use super::super::process::Source;
use super::super::ranges::Kind;
use super::super::search::{Progress, Search};
use super::super::vm::Vm;
use super::{Stand, Step};
use p4rack_wire::clio::{AllocBody, PageSize, Rights, Status};

#[derive(Clone, Debug)]
pub(super) struct Alloc {
    space: Space,
    size: PageSize,
    pages: u32,
    rights: Rights,
    search: Search,
    /// First page, once it is found.
    found: Option<u64>,
    /// Pages whose entries are in the table.
    inserted: u32,
}

impl Alloc {
    /// Errors: no bytes, no such pages at this board, more than the process's limit or its address space.
    pub fn begin(space: Space, body: &AllocBody, vm: &mut Vm) -> Result<Alloc, Status> {
        let size = PageSize::of(body.page_size).map_err(|_| Status::BadRequest)?;
        let rights = Rights::of(body.rights).map_err(|_| Status::BadRequest)?;
        if !vm.pages.has(size) {
            return Err(Status::BadRequest);
        }
        let pages = u32::try_from(size.pages(body.bytes)).map_err(|_| Status::NoAddressSpace)?;
        if pages == 0 {
            return Err(Status::BadLength);
        }
        vm.processes.add(space, size, pages, Source::Own)?;
        let search = Search::new(space, size, pages.into());
        Ok(Alloc { space, size, pages, rights, search, found: None, inserted: 0 })
    }

    pub fn retries(&self) -> u32 {
        self.search.retries()
    }

    pub fn step(&mut self, step: &mut Step<'_>) -> Stand {
        let Vm { table, processes, .. } = &mut *step.vm;
        let Some(process) = processes.get_mut(self.space) else {
            return Stand::Ended(Status::NoSuchProcess, 0);
        };
        if !process.is_alive() {
            self.search.stop();
        }
        let ranges = &mut process.ranges[self.size as usize];
        if self.found.is_none() {
            match self.search.step(ranges, table, step.limits, &mut step.budget) {
                Progress::More => return Stand::More,
                Progress::Found(first) => self.found = Some(first),
                Progress::Failed => {
                    processes.remove(self.space, self.size, [self.pages, 0]);
                    return Stand::Ended(Status::NoAddressSpace, 0);
                }
            }
        }
        let Some(first) = self.found else { return Stand::More };
        while self.inserted < self.pages {
            if step.budget == 0 {
                return Stand::More;
            }
            step.budget -= 1;
            let number = first as u32 + self.inserted;
            let page = Page { space: self.space, size: self.size, number };
            let has_slot = table.insert(&page, Entry::allocated(&page, self.rights));
            debug_assert!(has_slot.is_some(), "its slot was reserved");
            self.inserted += 1;
        }
        ranges.set(first..first + u64::from(self.pages), Some(Kind::Taken));
        Stand::Ended(Status::Done, self.size.address_of(first as u32))
    }
}
