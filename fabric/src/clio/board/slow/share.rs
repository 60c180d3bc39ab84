//! Maps pages into another process as well.
//!
//! ```text
//!   look for addresses ──▶ map page by page ──▶ done
//!        │                      │ no frame, no right, or a process has ended
//!        ▼                      ▼
//!   give back the candidate   give back the slots of pages that are not mapped ──▶ unmap the others ──▶ failed
//! ```
//!
//! The other process has agreed when it began, by its quota: see [`Quota::shared`](super::super::Quota::shared).
//!
//! The pages keep their frames until both processes have freed them. The frames count against the quota of the process that took them.

use super::super::entry::{Page, Space, State};
use super::super::process::{Process, Source};
use super::super::ranges::Kind;
use super::super::search::{Progress, Search};
use super::super::vm::Vm;
use super::free::{Free, hold, pages_of};
use super::{Stand, Step};
use p4rack_wire::clio::{PageSize, Rights, ShareBody, Status};
use std::ops::Range;

#[derive(Clone, Debug)]
pub(super) struct Share {
    from: Space,
    to: Space,
    size: PageSize,
    /// Pages of `from`, which are held.
    range: Range<u64>,
    rights: Rights,
    search: Search,
    stage: Stage,
}

#[derive(Clone, Debug)]
enum Stage {
    /// Looks for addresses in `to`.
    Look,
    /// Maps pages: `first` is the first one in `to`.
    Map { first: u64, mapped: u64 },
    /// After a failure: gives back the slots of pages that are not mapped, from `next` on.
    Release { mapped: Range<u64>, next: u64, end: u64, status: Status },
    /// After a failure: frees the pages that are mapped.
    Unmap { free: Free, status: Status },
}

impl Share {
    /// Errors: the range is not allocated, there is no such process, it takes no shared pages, or not as many; `from` is confined.
    pub fn begin(from: Space, address: u64, body: &ShareBody, vm: &mut Vm) -> Result<Share, Status> {
        let (size, range) = pages_of(address, body.bytes)?;
        let rights = Rights::of(body.rights).map_err(|_| Status::BadRequest)?;
        let to = Space { pid: body.pid, epoch: body.epoch };
        let other = vm.processes.get(to).filter(|process| to != from && process.is_alive());
        if !other.ok_or(Status::NoSuchProcess)?.takes_shared(size) {
            return Err(Status::NotPermitted);
        }
        if vm.processes.get(from).is_none_or(|process| process.is_confined) {
            return Err(Status::NotPermitted);
        }
        hold(from, size, &range, vm)?;
        let pages = range.end - range.start;
        let search = Search::new(to, size, pages);
        let share = Share { from, to, size, range, rights, search, stage: Stage::Look };
        // A range that is allocated has fewer than 2^32 pages.
        if let Err(status) = vm.processes.add(to, size, pages as u32, Source::Other) {
            share.let_go(vm);
            return Err(status);
        }
        Ok(share)
    }

    pub fn retries(&self) -> u32 {
        self.search.retries()
    }

    fn pages(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// Other calls may change the source's pages again.
    fn let_go(&self, vm: &mut Vm) {
        if let Some(process) = vm.processes.get_mut(self.from) {
            process.ranges[self.size as usize].set(self.range.clone(), Some(Kind::Taken));
        }
    }

    fn are_alive(&self, vm: &Vm) -> bool {
        [self.from, self.to].iter().all(|space| vm.processes.get(*space).is_some_and(Process::is_alive))
    }

    pub fn step(&mut self, step: &mut Step<'_>) -> Stand {
        match &mut self.stage {
            Stage::Look => self.look(step),
            Stage::Map { first, mapped } => {
                let (first, mapped) = (*first, *mapped);
                self.map(first, mapped, step)
            }
            Stage::Release { .. } => self.release(step),
            Stage::Unmap { free, status } => {
                let status = *status;
                if free.step(step) == Stand::More {
                    return Stand::More;
                }
                self.let_go(step.vm);
                Stand::Ended(status, 0)
            }
        }
    }

    /// Looks for addresses in the other process.
    fn look(&mut self, step: &mut Step<'_>) -> Stand {
        let is_alive = self.are_alive(step.vm);
        if !is_alive {
            self.search.stop();
        }
        let Vm { table, processes, .. } = &mut *step.vm;
        // The process exists as long as the search holds ranges of it.
        let progress = match processes.get_mut(self.to) {
            None => Progress::Failed,
            Some(to) => {
                self.search.step(&mut to.ranges[self.size as usize], table, step.limits, &mut step.budget)
            }
        };
        match progress {
            Progress::More => Stand::More,
            Progress::Found(first) => {
                self.stage = Stage::Map { first, mapped: 0 };
                Stand::More
            }
            Progress::Failed => {
                processes.remove(self.to, self.size, [0, self.pages() as u32]);
                self.let_go(step.vm);
                Stand::Ended(if is_alive { Status::NoAddressSpace } else { Status::NoSuchProcess }, 0)
            }
        }
    }

    /// Maps pages.
    fn map(&mut self, first: u64, mut mapped: u64, step: &mut Step<'_>) -> Stand {
        let pages = self.pages();
        while mapped < pages {
            if step.budget == 0 {
                break;
            }
            step.budget -= 1;
            match self.map_page(first, mapped, step.vm) {
                Ok(()) => mapped += 1,
                Err(Status::NoPageYet) => break,
                Err(status) => {
                    let (next, end) = (first + mapped, first + pages);
                    self.stage = Stage::Release { mapped: first..next, next, end, status };
                    return Stand::More;
                }
            }
        }
        if mapped < pages {
            self.stage = Stage::Map { first, mapped };
            return Stand::More;
        }
        if let Some(process) = step.vm.processes.get_mut(self.to) {
            process.ranges[self.size as usize].set(first..first + pages, Some(Kind::Taken));
        }
        self.let_go(step.vm);
        Stand::Ended(Status::Done, self.size.address_of(first as u32))
    }

    /// Maps a page, which gets a frame if it has none.
    fn map_page(&self, first: u64, nth: u64, vm: &mut Vm) -> Result<(), Status> {
        let page = |space, number: u64| Page { space, size: self.size, number: number as u32 };
        if !self.are_alive(vm) {
            return Err(Status::NoSuchProcess);
        }
        let source = page(self.from, self.range.start + nth);
        let (slot, mut entry) = vm.table.find(&source).ok_or(Status::NoSuchAddress)?;
        if !entry.rights().include(self.rights) {
            return Err(Status::NotPermitted);
        }
        if entry.state() == Some(State::Allocated) {
            entry = vm.fault(&source, slot, entry)?;
        }
        vm.map(&page(self.to, first + nth), entry.frame(), self.rights, self.from);
        Ok(())
    }

    /// Gives back slots of pages that are not mapped, and at the end the pages.
    fn release(&mut self, step: &mut Step<'_>) -> Stand {
        let Stage::Release { mapped, next, end, status } = &mut self.stage else { return Stand::More };
        while *next < *end {
            if step.budget == 0 {
                return Stand::More;
            }
            step.budget -= 1;
            step.vm.table.release(&Page { space: self.to, size: self.size, number: *next as u32 });
            *next += 1;
        }
        let (mapped, end, status) = (mapped.clone(), *end, *status);
        step.vm.processes.remove(self.to, self.size, [0, (end - mapped.end) as u32]);
        if let Some(process) = step.vm.processes.get_mut(self.to) {
            process.ranges[self.size as usize].set(mapped.end..end, None);
        }
        if mapped.is_empty() {
            self.let_go(step.vm);
            return Stand::Ended(status, 0);
        }
        self.stage = Stage::Unmap { free: Free::held(self.to, self.size, mapped), status };
        Stand::More
    }
}
