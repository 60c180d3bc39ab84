//! Processes: the only state that a board keeps of its clients.

use super::config::Quotas;
use super::entry::Space;
use super::pages::Pages;
use super::ranges::Ranges;
use crate::clio::token::{self, Secret};
use p4rack_wire::clio::{PAGE_SIZES, PageSize};
use std::collections::VecDeque;
use std::fmt;

/// What a process gets when it begins. Its holder may use the process's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Its address space.
    pub space: Space,
    /// Its token, for each packet.
    pub token: u64,
}

/// Why no process begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The board has as many processes as it may have.
    Full,
    /// More is reserved than the limit permits.
    BadQuota(PageSize),
    /// The board has no frames of this size, or all are taken or reserved.
    NoMemory(PageSize),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::Full => write!(f, "the board has as many processes as it may have (processes_max)"),
            Refused::BadQuota(size) => {
                write!(
                    f,
                    "more pages of {} are reserved than the limit permits: raise the limit",
                    size.name()
                )
            }
            Refused::NoMemory(size) => {
                write!(f, "the board has not as many free frames of {}: reserve fewer", size.name())
            }
        }
    }
}

impl std::error::Error for Refused {}

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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    Free,
    Alive,
    /// Its memory is being freed.
    Ending,
}

/// A process.
#[derive(Clone, Debug)]
pub(super) struct Process {
    pub space: Space,
    token: u64,
    life: Life,
    quotas: Quotas,
    /// Pages that are allocated or being allocated, by size.
    allocated: [u32; PAGE_SIZES],
    /// Frames that it has taken, by size.
    taken: [u32; PAGE_SIZES],
    /// Its addresses, by page size.
    pub ranges: [Ranges; PAGE_SIZES],
    /// Reads of which an answer waits.
    pub reads: u32,
    /// Calls of the slow path that are not done.
    pub jobs: usize,
}

impl Process {
    fn new(pid: u32, epoch: u16, token: u64, quotas: Quotas) -> Process {
        let ranges = std::array::from_fn(|_| Ranges::new());
        let (allocated, taken) = ([0; PAGE_SIZES], [0; PAGE_SIZES]);
        let space = Space { pid, epoch };
        Process { space, token, life: Life::Alive, quotas, allocated, taken, ranges, reads: 0, jobs: 0 }
    }

    /// Counts pages as allocated. Returns whether the limit permits them.
    pub fn allocate(&mut self, size: PageSize, pages: u32) -> bool {
        let allocated = &mut self.allocated[size as usize];
        match allocated.checked_add(pages).filter(|sum| *sum <= self.quotas[size as usize].limit) {
            Some(sum) => *allocated = sum,
            None => return false,
        }
        true
    }

    /// Counts pages as no longer allocated.
    pub fn deallocate(&mut self, size: PageSize, pages: u32) {
        self.allocated[size as usize] -= pages;
    }

    /// Whether its next frame is one of those that are reserved for it.
    #[inline]
    pub fn is_promised(&self, size: PageSize) -> bool {
        self.taken[size as usize] < self.quotas[size as usize].reserved
    }

    /// Counts a frame as taken.
    #[inline]
    pub fn has_taken(&mut self, size: PageSize) {
        self.taken[size as usize] += 1;
    }

    /// Counts a frame as given back. Returns whether it is reserved for the process again.
    pub fn has_given_back(&mut self, size: PageSize) -> bool {
        self.taken[size as usize] -= 1;
        self.is_promised(size) && self.life == Life::Alive
    }

    /// Whether requests are taken.
    pub fn is_alive(&self) -> bool {
        self.life == Life::Alive
    }
}

/// All processes. The PID is the place in the list, counted from 1.
#[derive(Clone, Debug)]
pub(super) struct Processes {
    list: Vec<Process>,
    /// Places that are free again. New ones come first, then the one that has been free for longest: so epochs wrap around late.
    free: VecDeque<u32>,
    max: u32,
    secret: Secret,
}

impl Processes {
    pub fn new(max: u32, secret: Secret) -> Processes {
        Processes { list: Vec::new(), free: VecDeque::new(), max, secret }
    }

    /// Processes that are not free, ending ones included.
    pub fn len(&self) -> usize {
        self.list.len() - self.free.len()
    }

    /// Begins a process, with what it reserves.
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
        if let Some(size) = sizes().find(|size| !pages.promise(*size, quotas[*size as usize].reserved)) {
            sizes()
                .take_while(|other| *other != size)
                .for_each(|other| pages.unpromise(other, quotas[other as usize].reserved));
            return Err(Refused::NoMemory(size));
        }
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

    /// Takes no more requests of a process, and gives back what is still promised to it. Returns whether it was alive.
    pub fn end(&mut self, space: Space, pages: &mut Pages) -> bool {
        let Some(process) = self.get_mut(space).filter(|process| process.is_alive()) else { return false };
        process.life = Life::Ending;
        for (size, _) in PageSize::ALL {
            let (quota, taken) = (process.quotas[size as usize], process.taken[size as usize]);
            pages.unpromise(size, quota.reserved.saturating_sub(taken));
        }
        true
    }

    /// Frees the place of a process whose memory is free.
    pub fn forget(&mut self, space: Space) {
        if let Some(process) = self.get_mut(space).filter(|process| process.life == Life::Ending) {
            process.life = Life::Free;
            self.free.push_back(space.pid - 1);
        }
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
        quotas[PageSize::K4 as usize] = Quota { reserved, limit };
        quotas
    }

    fn processes(max: u32) -> (Processes, Pages) {
        let pages = Pages::new(&[Pool { size: PageSize::K4, frames: 10, ready: 1 }]);
        (Processes::new(max, Secret::new([7; 16])), pages)
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
        other[PageSize::G1 as usize] = Quota { reserved: 1, limit: 1 };
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
        let mut process = Process::new(1, 1, 0, quotas(1, 5));
        assert!(process.allocate(PageSize::K4, 5) && !process.allocate(PageSize::K4, 1));
        assert!(!process.allocate(PageSize::K4, u32::MAX) && !process.allocate(PageSize::M2, 1));
        process.deallocate(PageSize::K4, 1);
        assert!(process.allocate(PageSize::K4, 1));
        assert!(process.is_promised(PageSize::K4));
        process.has_taken(PageSize::K4);
        assert!(!process.is_promised(PageSize::K4) && process.has_given_back(PageSize::K4));
    }
}
