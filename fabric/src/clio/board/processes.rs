//! Processes: the only state that a board keeps of its clients.

use super::config::Quotas;
use super::entry::Space;
use super::grant::{Grant, Refused};
use super::pages::Pages;
use super::process::{FIRST_BYTES, Life, Process, Source};
use crate::clio::token::{self, Secret};
use p4rack_wire::clio::{PageSize, Status};
use std::collections::VecDeque;
use std::ops::Range;

/// Why a packet is not from a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unknown {
    /// There is no such process.
    Pid,
    /// The process with this PID has another epoch, or is ending.
    Epoch,
    /// The token is wrong.
    Token,
}

/// All processes. The PID is the place in the list, counted from 1.
#[derive(Clone, Debug)]
pub(super) struct Processes {
    list: Vec<Process>,
    /// Places that are free again. New ones come first, then the one that has been free for longest: so epochs wrap around late.
    free: VecDeque<u32>,
    max: u32,
    secret: Secret,
    /// Slots of the page table.
    slots: u64,
    /// Slots that are kept for processes, never more than there are.
    slots_promised: u64,
}

impl Processes {
    /// At most `max` processes, with a page table of `slots` slots.
    pub fn new(max: u32, slots: u64, secret: Secret) -> Processes {
        Processes { list: Vec::new(), free: VecDeque::new(), max, secret, slots, slots_promised: 0 }
    }

    /// Takes the memory of all processes now: otherwise it grows with each one.
    pub fn prefault(&mut self) {
        // The system gives memory when it is first written.
        let count = self.list.len();
        self.list.resize_with(self.max as usize, || Process::new(0, 0, 0, Quotas::default()));
        self.list.truncate(count);
    }

    /// Counts pages as a process's. Errors: it has ended ([`NoSuchProcess`](Status::NoSuchProcess)), the slots that are left are promised
    /// to others ([`NoAddressSpace`](Status::NoAddressSpace)), or its quota permits no more ([`NoMemory`](Status::NoMemory)).
    pub fn add(&mut self, space: Space, size: PageSize, pages: u32, source: Source) -> Result<(), Status> {
        let (slots, promised) = (self.slots, self.slots_promised);
        let process =
            self.get_mut(space).filter(|process| process.is_alive()).ok_or(Status::NoSuchProcess)?;
        let (before, quota) = (process.pages[size as usize], process.quotas[size as usize]);
        let mut after = before;
        let sum = before[source as usize].checked_add(pages).ok_or(Status::NoAddressSpace)?;
        after[source as usize] = sum;
        let promised = promised - process.slots(size, before) + process.slots(size, after);
        if promised > slots {
            return Err(Status::NoAddressSpace);
        }
        if sum > [quota.limit, quota.shared][source as usize] {
            return Err(Status::NoMemory);
        }
        process.pages[size as usize] = after;
        self.slots_promised = promised;
        Ok(())
    }

    /// Subtracts pages from a process's count, by [`Source`].
    pub fn remove(&mut self, space: Space, size: PageSize, pages: [u32; 2]) {
        let Some(process) = self.get_mut(space) else { return };
        let before = process.pages[size as usize];
        let after = [before[0] - pages[0], before[1] - pages[1]];
        process.pages[size as usize] = after;
        let freed = process.slots(size, before) - process.slots(size, after);
        self.slots_promised -= freed;
    }

    /// Processes that are not free, ending ones included.
    pub fn len(&self) -> usize {
        self.list.len() - self.free.len()
    }

    /// Begins a process with its reservations.
    pub fn begin(&mut self, quotas: Quotas, pages: &mut Pages) -> Result<Grant, Refused> {
        let sizes = || PageSize::ALL.into_iter().map(|(size, _)| size);
        if let Some(size) =
            sizes().find(|size| quotas[*size as usize].reserved > quotas[*size as usize].limit)
        {
            return Err(Refused::BadQuota(size));
        }
        if self.free.is_empty() && self.list.len() >= self.max as usize {
            return Err(Refused::Full);
        }
        let slots: u64 = quotas.iter().map(|quota| u64::from(quota.reserved)).sum();
        if let Some(size) = sizes().find(|size| !pages.promise(*size, quotas[*size as usize].reserved)) {
            sizes()
                .take_while(|other| *other != size)
                .for_each(|other| pages.unpromise(other, quotas[other as usize].reserved));
            return Err(Refused::NoMemory(size));
        }
        if self.slots_promised + slots > self.slots {
            sizes().for_each(|size| pages.unpromise(size, quotas[size as usize].reserved));
            return Err(Refused::NoSlots);
        }
        self.slots_promised += slots;
        let is_new = self.list.len() < self.max as usize;
        let again = if is_new { None } else { self.free.pop_front() };
        let at = again.unwrap_or(self.list.len() as u32);
        let known = self.list.get_mut(at as usize);
        let (pid, epoch) = (at + 1, known.as_ref().map_or(1, |last| last.space.epoch.wrapping_add(1)));
        let token = self.secret.token(pid, epoch);
        let process = Process::new(pid, epoch, token, quotas);
        match known {
            Some(known) => *known = process,
            None => self.list.push(process),
        }
        Ok(Grant { space: Space { pid, epoch }, token })
    }

    /// Stops taking requests of a process, and gives back its unused reservations. Returns whether it was alive.
    pub fn end(&mut self, space: Space, pages: &mut Pages) -> bool {
        let Some(process) = self.get_mut(space).filter(|process| process.is_alive()) else { return false };
        for (size, _) in PageSize::ALL {
            pages.unpromise(size, process.reserved(size).saturating_sub(process.taken[size as usize]));
        }
        let before = process.slots_of_all();
        process.life = Life::Ending;
        let freed = before - process.slots_of_all();
        self.slots_promised -= freed;
        true
    }

    /// Frees the place of a process whose memory is free.
    pub fn forget(&mut self, space: Space) {
        if let Some(process) = self.get_mut(space).filter(|process| process.life == Life::Ending) {
            process.life = Life::Free;
            // A call that has no addresses yet may be about to share pages with it.
            let left = process.slots_of_all();
            self.slots_promised -= left;
            self.free.push_back(space.pid - 1);
        }
    }

    /// Where a request finds what it needs of a process, if there is one with this PID.
    #[inline]
    pub fn place(&self, pid: u32) -> Option<Range<*const u8>> {
        let start = std::ptr::from_ref(self.list.get(pid.wrapping_sub(1) as usize)?).cast::<u8>();
        Some(start..start.wrapping_add(FIRST_BYTES))
    }

    /// Checks whether a packet is from a process that is alive.
    #[inline]
    pub fn verify(&self, pid: u32, epoch: u16, token: u64) -> Result<Space, Unknown> {
        let process = self.list.get(pid.wrapping_sub(1) as usize).ok_or(Unknown::Pid)?;
        if process.space.epoch != epoch || process.life != Life::Alive {
            return Err(Unknown::Epoch);
        }
        if !token::is_same(process.token, token) {
            return Err(Unknown::Token);
        }
        Ok(process.space)
    }

    /// All, ending ones included, in the order of their PIDs.
    pub fn iter(&self) -> impl Iterator<Item = &Process> {
        self.list.iter().filter(|process| process.life != Life::Free)
    }

    /// The process with this address space, if its place is not free.
    #[inline]
    pub fn get(&self, space: Space) -> Option<&Process> {
        let process = self.list.get(space.pid.wrapping_sub(1) as usize)?;
        (process.space == space && process.life != Life::Free).then_some(process)
    }

    /// See [`get`](Self::get).
    #[inline]
    pub fn get_mut(&mut self, space: Space) -> Option<&mut Process> {
        let process = self.list.get_mut(space.pid.wrapping_sub(1) as usize)?;
        (process.space == space && process.life != Life::Free).then_some(process)
    }
}

#[cfg(test)]
mod tests {
    use super::super::config::{Pool, Quota};
    use super::*;

    fn quotas(reserved: u32, limit: u32) -> Quotas {
        let mut quotas = Quotas::default();
        quotas[PageSize::K4 as usize] = Quota { reserved, limit, shared: 3 };
        quotas
    }

    fn processes(max: u32) -> (Processes, Pages) {
        let pages = Pages::new(&[Pool { size: PageSize::K4, frames: 10, ready: 1 }]);
        (Processes::new(max, 12, Secret::new([7; 16])), pages)
    }

    #[test]
    fn packets_are_of_a_living_process_or_say_why_not() {
        let (mut processes, mut pages) = processes(1);
        let Grant { space, token } = processes.begin(quotas(0, 5), &mut pages).unwrap();
        assert_eq!(processes.verify(space.pid, space.epoch, token), Ok(space));
        assert_eq!(processes.verify(0, space.epoch, token), Err(Unknown::Pid));
        assert_eq!(processes.verify(2, space.epoch, token), Err(Unknown::Pid));
        assert_eq!(processes.verify(space.pid, space.epoch + 1, token), Err(Unknown::Epoch));
        assert_eq!(processes.verify(space.pid, space.epoch, token ^ 1), Err(Unknown::Token));
        assert!(processes.end(space, &mut pages) && !processes.end(space, &mut pages));
        assert_eq!(processes.verify(space.pid, space.epoch, token), Err(Unknown::Epoch));
        assert!(processes.get(space).is_some(), "until its memory is free");
        processes.forget(space);
        assert!(processes.get(space).is_none());
        let next = processes.begin(quotas(0, 5), &mut pages).unwrap();
        assert_eq!((next.space.pid, next.space.epoch), (space.pid, space.epoch + 1));
        assert_eq!(processes.verify(space.pid, space.epoch, token), Err(Unknown::Epoch));
    }

    #[test]
    fn what_is_reserved_has_to_be_there() {
        let (mut processes, mut pages) = processes(2);
        assert_eq!(processes.begin(quotas(6, 5), &mut pages), Err(Refused::BadQuota(PageSize::K4)));
        assert_eq!(processes.begin(quotas(11, 20), &mut pages), Err(Refused::NoMemory(PageSize::K4)));
        let mut other = quotas(1, 1);
        other[PageSize::G1 as usize] = Quota { reserved: 1, limit: 1, shared: 0 };
        assert_eq!(processes.begin(other, &mut pages), Err(Refused::NoMemory(PageSize::G1)));
        assert_eq!(pages.usage(PageSize::K4).promised, 0, "a refused process has reserved nothing");
        let first = processes.begin(quotas(10, 20), &mut pages).unwrap();
        assert_eq!(processes.begin(quotas(1, 1), &mut pages), Err(Refused::NoMemory(PageSize::K4)));
        processes.begin(quotas(0, 1), &mut pages).unwrap();
        assert_eq!(processes.begin(quotas(0, 1), &mut pages), Err(Refused::Full));
        processes.end(first.space, &mut pages);
        assert_eq!(pages.usage(PageSize::K4).promised, 0);
        processes.forget(first.space);
        assert_eq!(processes.len(), 1);
    }

    #[test]
    fn limits_count_pages() {
        let (mut processes, mut pages) = processes(2);
        let space = processes.begin(quotas(1, 5), &mut pages).unwrap().space;
        let mut add = |size, pages, source| processes.add(space, size, pages, source);
        assert_eq!(add(PageSize::K4, 5, Source::Own), Ok(()));
        assert_eq!(add(PageSize::K4, 1, Source::Own), Err(Status::NoMemory));
        assert_eq!(add(PageSize::K4, u32::MAX, Source::Own), Err(Status::NoAddressSpace));
        assert_eq!(add(PageSize::M2, 1, Source::Own), Err(Status::NoMemory));
        assert_eq!(add(PageSize::K4, 3, Source::Other), Ok(()), "beside its own");
        assert_eq!(add(PageSize::K4, 1, Source::Other), Err(Status::NoMemory));
        processes.remove(space, PageSize::K4, [1, 0]);
        assert_eq!(processes.add(space, PageSize::K4, 1, Source::Other), Err(Status::NoMemory));
        assert_eq!(processes.add(space, PageSize::K4, 1, Source::Own), Ok(()));
        let process = processes.get_mut(space).unwrap();
        assert!(process.is_promised(PageSize::K4));
        process.has_taken(PageSize::K4);
        assert!(!process.is_promised(PageSize::K4) && process.has_given_back(PageSize::K4));
        processes.end(space, &mut pages);
        assert!(!processes.get_mut(space).unwrap().is_promised(PageSize::K4), "nothing is reserved any more");
        assert_eq!(processes.add(space, PageSize::K4, 1, Source::Other), Err(Status::NoSuchProcess));
    }

    #[test]
    fn slots_are_kept_for_what_is_reserved() {
        let (mut processes, mut pages) = processes(3);
        let [careful, greedy] = [(4, 6), (0, 40)]
            .map(|(reserved, limit)| processes.begin(quotas(reserved, limit), &mut pages).unwrap());
        let mut add = |of: Grant, pages| processes.add(of.space, PageSize::K4, pages, Source::Own);
        assert_eq!(
            (add(greedy, 9), add(greedy, 8)),
            (Err(Status::NoAddressSpace), Ok(())),
            "8 of 12 are left"
        );
        assert_eq!(add(greedy, 1), Err(Status::NoAddressSpace));
        assert_eq!(
            (add(careful, 4), add(careful, 1)),
            (Ok(()), Err(Status::NoAddressSpace)),
            "as many as it has reserved"
        );
        processes.remove(greedy.space, PageSize::K4, [2, 0]);
        assert_eq!(processes.begin(quotas(3, 3), &mut pages), Err(Refused::NoSlots));
        assert_eq!(pages.usage(PageSize::K4).promised, 4, "a refused process has reserved nothing");
        // When a process has ended, others get its unused slots; its pages keep theirs until they are freed.
        processes.remove(careful.space, PageSize::K4, [3, 0]);
        assert_eq!(processes.add(greedy.space, PageSize::K4, 3, Source::Own), Err(Status::NoAddressSpace));
        assert!(processes.end(careful.space, &mut pages));
        assert_eq!(processes.add(greedy.space, PageSize::K4, 6, Source::Own), Err(Status::NoAddressSpace));
        assert_eq!(processes.add(greedy.space, PageSize::K4, 5, Source::Own), Ok(()));
        processes.forget(careful.space);
        assert_eq!(processes.add(greedy.space, PageSize::K4, 1, Source::Own), Ok(()));
    }
}
