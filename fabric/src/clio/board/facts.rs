//! State of a board's processes, for operators.

use super::memory::PhysicalMemory;
use super::process::{PagesOf, Process};
use super::{Board, Space};
use p4rack_wire::clio::{PAGE_SIZES, PageSize};
use std::collections::BTreeMap;

/// State of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessFacts {
    /// Its address space.
    pub space: Space,
    /// It has ended, and its memory is being freed.
    pub is_ending: bool,
    /// By page size.
    pub pages: [PagesOf; PAGE_SIZES],
    /// Locks that it holds.
    pub locks: u32,
    /// Reads whose answers wait for the link.
    pub reads: u32,
    /// Calls of the slow path and of offloads that are not done.
    pub calls: u32,
}

impl<M: PhysicalMemory, P: Copy + Send> Board<M, P> {
    /// [Lock words](p4rack_wire::clio::lock_word) of the locks that are held.
    pub fn lock_words(&self) -> impl Iterator<Item = u64> {
        self.locks.words()
    }

    /// Allocated ranges of a process, address and bytes, by page size and address; neighbours are one, and those are left out that a call
    /// works on.
    pub fn ranges_of(&self, space: Space) -> impl Iterator<Item = (u64, u64)> {
        let process = self.vm.processes.get(space);
        process.into_iter().flat_map(|process| {
            PageSize::ALL.into_iter().flat_map(move |(size, _)| {
                let taken = process.ranges[size as usize].taken();
                taken.map(move |pages| {
                    (size.address_of(pages.start as u32), (pages.end - pages.start) << size.shift())
                })
            })
        })
    }

    /// All processes, in the order of their PIDs. It takes as long as there are processes, shared frames and locks.
    pub fn list(&self) -> Vec<ProcessFacts> {
        let (mut shared, mut locks) = (BTreeMap::<(Space, PageSize), u32>::new(), BTreeMap::new());
        for (size, owner) in self.vm.shared_frames() {
            *shared.entry((owner, size)).or_default() += 1;
        }
        for owner in self.locks.owners() {
            *locks.entry(owner).or_default() += 1;
        }
        let facts = |process: &Process| {
            let mut pages = process.pages();
            for (size, _) in PageSize::ALL {
                pages[size as usize].shared = shared.get(&(process.space, size)).copied().unwrap_or(0);
            }
            ProcessFacts {
                space: process.space,
                is_ending: !process.is_alive(),
                pages,
                locks: locks.get(&process.space).copied().unwrap_or(0),
                reads: process.reads,
                calls: u32::try_from(process.jobs).unwrap_or(u32::MAX),
            }
        };
        self.vm.processes.iter().map(facts).collect()
    }
}
