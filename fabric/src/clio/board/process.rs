//! A process: what it may have, and what it has.

use super::config::{Quota, Quotas};
use super::entry::Space;
use super::ranges::Ranges;
use p4rack_wire::clio::{PAGE_SIZES, PageSize};

/// A process's pages of one size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PagesOf {
    /// Its limits.
    pub quota: Quota,
    /// Pages that are allocated.
    pub allocated: u32,
    /// Frames that it has taken: pages that were accessed.
    pub taken: u32,
    /// Those of them that other processes' pages have, too.
    pub shared: u32,
    /// Pages that other processes share with it.
    pub from_others: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    Free,
    Alive,
    /// Its memory is being freed.
    Ending,
}

/// A process. What each request needs comes first, so that it is in one line of the processor's cache, or two.
#[derive(Clone, Debug)]
#[repr(C)]
pub(super) struct Process {
    pub token: u64,
    pub space: Space,
    /// Reads of which an answer waits.
    pub reads: u32,
    pub life: Life,
    /// Whether its pages never become those of others, too.
    pub is_confined: bool,
    /// Calls of the slow path and of offloads that are not done.
    pub jobs: usize,
    pub quotas: Quotas,
    /// Pages that it has or is about to have, by size and by [`Source`].
    pub pages: [[u32; 2]; PAGE_SIZES],
    /// Frames that it has taken, by size.
    pub taken: [u32; PAGE_SIZES],
    /// Its addresses, by page size.
    pub ranges: [Ranges; PAGE_SIZES],
}

/// Bytes of a process that each request needs.
pub(super) const FIRST_BYTES: usize = std::mem::offset_of!(Process, quotas);

impl Process {
    pub fn new(pid: u32, epoch: u16, token: u64, quotas: Quotas) -> Process {
        let ranges = std::array::from_fn(|_| Ranges::new());
        let (pages, taken, life) = ([[0; 2]; PAGE_SIZES], [0; PAGE_SIZES], Life::Alive);
        Process {
            space: Space { pid, epoch },
            token,
            life,
            quotas,
            pages,
            taken,
            ranges,
            reads: 0,
            jobs: 0,
            is_confined: false,
        }
    }

    /// Frames that are reserved for it; none after it has ended.
    #[inline]
    pub fn reserved(&self, size: PageSize) -> u32 {
        if self.life == Life::Alive { self.quotas[size as usize].reserved } else { 0 }
    }

    /// Slots of the page table that are kept for it if it has these pages: one for each, and one for each frame that is reserved beyond
    /// them.
    pub fn slots(&self, size: PageSize, [own, others]: [u32; 2]) -> u64 {
        u64::from(own.max(self.reserved(size))) + u64::from(others)
    }

    /// [`slots`](Self::slots) for the pages of all sizes that it has.
    pub fn slots_of_all(&self) -> u64 {
        PageSize::ALL.iter().map(|(size, _)| self.slots(*size, self.pages[*size as usize])).sum()
    }

    /// Whether others may share pages with it at all.
    pub fn takes_shared(&self, size: PageSize) -> bool {
        self.quotas[size as usize].shared > 0
    }

    /// Whether its next frame is one of those that are reserved for it.
    #[inline]
    pub fn is_promised(&self, size: PageSize) -> bool {
        self.taken[size as usize] < self.reserved(size)
    }

    /// Counts a frame as taken.
    #[inline]
    pub fn has_taken(&mut self, size: PageSize) {
        self.taken[size as usize] += 1;
    }

    /// Counts a frame as given back. Returns whether it is reserved for the process again.
    pub fn has_given_back(&mut self, size: PageSize) -> bool {
        self.taken[size as usize] -= 1;
        self.is_promised(size)
    }

    /// Its pages by size, but for those that are shared.
    pub fn pages(&self) -> [PagesOf; PAGE_SIZES] {
        std::array::from_fn(|size| PagesOf {
            quota: self.quotas[size],
            allocated: self.pages[size][Source::Own as usize],
            taken: self.taken[size],
            shared: 0,
            from_others: self.pages[size][Source::Other as usize],
        })
    }

    /// Whether requests are taken.
    pub fn is_alive(&self) -> bool {
        self.life == Life::Alive
    }
}

/// How a process got its pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(super) enum Source {
    /// It allocates them.
    Own = 0,
    /// Another process shares them with it.
    Other = 1,
}
