//! Maps pages into another process as well.
//!
//! The pages keep their frames until both processes have freed them. The frames count against the quota of the process that took them;
//! the addresses against the limit of the process that has them.

use super::super::entry::{Page, Space, State};
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
    /// First page in `to`, once it is found.
    found: Option<u64>,
    /// Pages that are mapped.
    mapped: u64,
    /// After a failure: what is taken back, and the status of the answer.
    failed: Option<(Free, Status)>,
}

impl Share {
    /// Errors: the range is not allocated, there is no such process, or its limit is too low.
    pub fn begin(from: Space, address: u64, body: &ShareBody, vm: &mut Vm) -> Result<Share, Status> {
        let (size, range) = pages_of(address, body.bytes)?;
        let rights = Rights::of(body.rights).map_err(|_| Status::BadRequest)?;
        let to = Space { pid: body.pid, epoch: body.epoch };
        let pages = range.end - range.start;
        if to == from || !vm.processes.get(to).is_some_and(|process| process.is_alive()) {
            return Err(Status::NoSuchProcess);
        }
        hold(from, size, &range, vm)?;
        let fits = u32::try_from(pages)
            .is_ok_and(|pages| vm.processes.get_mut(to).is_some_and(|process| process.allocate(size, pages)));
        let search = Search::new(to, size, pages);
        let share = Share { from, to, size, range, rights, search, found: None, mapped: 0, failed: None };
        if !fits {
            share.let_go(vm);
            return Err(Status::NoMemory);
        }
        Ok(share)
    }

    pub fn retries(&self) -> u32 {
        self.search.retries()
    }

    /// Other calls may change the source's pages again.
    fn let_go(&self, vm: &mut Vm) {
        if let Some(process) = vm.processes.get_mut(self.from) {
            process.ranges[self.size as usize].set(self.range.clone(), Some(Kind::Taken));
        }
    }

    pub fn step(&mut self, step: &mut Step<'_>) -> Stand {
        if let Some((free, status)) = &mut self.failed {
            let status = *status;
            if free.step(step) == Stand::More {
                return Stand::More;
            }
            self.let_go(step.vm);
            return Stand::Ended(status, 0);
        }
        let Some(first) = self.found else { return self.look(step) };
        while self.mapped < self.range.end - self.range.start {
            if step.budget == 0 {
                return Stand::More;
            }
            step.budget -= 1;
            match self.map(first, step.vm) {
                Ok(()) => self.mapped += 1,
                Err(Status::NoPageYet) => return Stand::More,
                Err(status) => return self.fail(first, status, step.vm),
            }
        }
        let pages = self.range.end - self.range.start;
        if let Some(process) = step.vm.processes.get_mut(self.to) {
            process.ranges[self.size as usize].set(first..first + pages, Some(Kind::Taken));
        }
        self.let_go(step.vm);
        Stand::Ended(Status::Done, self.size.address_of(first as u32))
    }

    /// Looks for addresses in the other process.
    fn look(&mut self, step: &mut Step<'_>) -> Stand {
        let Vm { table, processes, .. } = &mut *step.vm;
        let Some(process) = processes.get_mut(self.to) else {
            self.let_go(step.vm);
            return Stand::Ended(Status::NoSuchProcess, 0);
        };
        let ranges = &mut process.ranges[self.size as usize];
        match self.search.step(ranges, table, step.limits, &mut step.budget) {
            Progress::More => Stand::More,
            Progress::Found(first) => {
                self.found = Some(first);
                Stand::More
            }
            Progress::Failed => {
                process.deallocate(self.size, (self.range.end - self.range.start) as u32);
                self.let_go(step.vm);
                Stand::Ended(Status::NoAddressSpace, 0)
            }
        }
    }

    /// Maps the next page, which gets a frame if it has none.
    fn map(&self, first: u64, vm: &mut Vm) -> Result<(), Status> {
        let page = |space, number: u64| Page { space, size: self.size, number: number as u32 };
        let source = page(self.from, self.range.start + self.mapped);
        let (slot, mut entry) = vm.table.find(&source).ok_or(Status::NoSuchAddress)?;
        if !vm.processes.get(self.to).is_some_and(|process| process.is_alive()) {
            return Err(Status::NoSuchProcess);
        }
        if !entry.rights().include(self.rights) {
            return Err(Status::NotPermitted);
        }
        if entry.state() == Some(State::Allocated) {
            entry = vm.fault(&source, slot, entry)?;
        }
        vm.map(&page(self.to, first + self.mapped), entry.frame(), self.rights, self.from);
        Ok(())
    }

    /// Takes back what was mapped, and the slots of what was not.
    fn fail(&mut self, first: u64, status: Status, vm: &mut Vm) -> Stand {
        let pages = self.range.end - self.range.start;
        for number in first + self.mapped..first + pages {
            vm.table.release(&Page { space: self.to, size: self.size, number: number as u32 });
        }
        self.failed = Some((Free::held(self.to, self.size, first..first + pages), status));
        Stand::More
    }
}
