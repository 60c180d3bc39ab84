//! Frees pages, when no access to them is under way. That waits for the answers of as many reads as a process may have, while accesses
//! and calls that come are refused with [`Closing`](Status::Closing).
//!
//! ```text
//!   closing: no access begins ──▶ reads under way are answered ──▶ out of TLB and table, frames are free
//! ```

use super::super::entry::{Page, Space};
use super::super::ranges::Kind;
use super::super::vm::Vm;
use super::{Stand, Step};
use p4rack_wire::clio::{PageSize, Status};
use std::ops::Range;

#[derive(Clone, Debug)]
pub(super) struct Free {
    space: Space,
    size: PageSize,
    /// The pages, which are held.
    range: Range<u64>,
    /// Next page to close.
    close: u64,
    /// Next page to remove.
    remove: u64,
    /// Pages that are removed, by [`Source`](super::super::process::Source).
    removed: [u32; 2],
}

/// The page size and the pages of a range of bytes. Errors: it is empty, does not begin with a page, or has addresses that don't exist.
pub(super) fn pages_of(address: u64, bytes: u64) -> Result<(PageSize, Range<u64>), Status> {
    let size = PageSize::of_address(address).map_err(|_| Status::NoSuchAddress)?;
    if size.offset_of(address) != 0 {
        return Err(Status::BadRequest);
    }
    let first = u64::from(size.page_of(address));
    let end = first.checked_add(size.pages(bytes)).filter(|end| *end <= size.pages_max());
    match end {
        Some(end) if end > first => Ok((size, first..end)),
        Some(_) => Err(Status::BadLength),
        None => Err(Status::NoSuchAddress),
    }
}

/// Holds a range that is allocated, so that no other call changes it. Errors: another call works on a part of it
/// ([`Closing`](Status::Closing)), or not all of it is allocated.
pub(super) fn hold(space: Space, size: PageSize, range: &Range<u64>, vm: &mut Vm) -> Result<(), Status> {
    let process = vm.processes.get_mut(space).ok_or(Status::NoSuchProcess)?;
    let ranges = &mut process.ranges[size as usize];
    match ranges.kind_of(range) {
        Some(Kind::Taken) => ranges.set(range.clone(), Some(Kind::Held)),
        Some(_) => return Err(Status::Closing),
        None => return Err(Status::NoSuchAddress),
    }
    Ok(())
}

impl Free {
    /// Frees a range of a process: whole pages, of one or of several allocations.
    pub fn begin(space: Space, address: u64, bytes: u64, vm: &mut Vm) -> Result<Free, Status> {
        let (size, range) = pages_of(address, bytes)?;
        hold(space, size, &range, vm)?;
        Ok(Free::held(space, size, range))
    }

    /// Frees a range that is held.
    pub fn held(space: Space, size: PageSize, range: Range<u64>) -> Free {
        Free { space, size, close: range.start, remove: range.start, range, removed: [0; 2] }
    }

    fn page(&self, number: u64) -> Page {
        Page { space: self.space, size: self.size, number: number as u32 }
    }

    pub fn step(&mut self, step: &mut Step<'_>) -> Stand {
        let first = self.size.address_of(self.range.start as u32);
        while self.close < self.range.end {
            if step.budget == 0 {
                return Stand::More;
            }
            step.budget -= 1;
            if let Some((slot, entry)) = step.vm.table.find(&self.page(self.close)) {
                step.vm.change(slot, entry.closing());
            }
            self.close += 1;
        }
        let bytes = (self.range.end - self.range.start) << self.size.shift();
        let is_read = self.remove < self.range.end && (step.is_read)(self.space, &(first..first + bytes));
        if is_read && !planted!(step.vm, FreeAtOnce) {
            return Stand::More;
        }
        while self.remove < self.range.end {
            if step.budget == 0 {
                return Stand::More;
            }
            step.budget -= 1;
            if let Some(source) = step.vm.unmap(&self.page(self.remove)) {
                self.removed[source as usize] += 1;
            }
            self.remove += 1;
        }
        if let Some(process) = step.vm.processes.get_mut(self.space) {
            process.ranges[self.size as usize].set(self.range.clone(), None);
        }
        step.vm.processes.remove(self.space, self.size, self.removed);
        Stand::Ended(Status::Done, first)
    }
}
