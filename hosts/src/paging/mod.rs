//! Ordinary memory whose pages come from a region of remote memory, by userfaultfd.
//!
//! ```text
//!  program ── loads, stores ──▶ range ── fault ──▶ SIGBUS in the thread, or a thread of the mapping
//!                                 ▲                        │
//!                                 │ operations             ▼
//!                               Memory ◀──── Inner ◀──▶ Pages      which page is where: no memory, no I/O
//!                                              │
//!                                              ▼
//!                                         RemoteRegion             blocks of 512 B, behind pages of 4 KB
//! ```
//!
//! - **A page** is filled from the region: blocks that are local, and one fetch of all others. A page without content
//!   is filled with zeros, without the region.
//! - **Writes** are found by protection. The first one to a page saves its *twin*; when the page leaves, only the pieces of 512 B are
//!   written to the region that differ from the twin.
//! - **Leaving.** Pages leave in batches, by a thread of the mapping before room is short, or else by the thread that needs room.
//!   `pages` has the order of the steps, and what stays.
//! - **Memory.** Pages in place, twins, pages on the shelf and tables never exceed `pages_bytes`. The region's bytes are its own.
//! - **A loss** of the region ends the mapping. Pages in place stay, and may be written; the first access to an absent page ends in SIGBUS
//!   (before Linux 6.6 with threads, every access in SIGSEGV), after a message on standard error. There is no other answer to a load.
//!
//! - **The program's own calls.** `munmap`, `mremap` and mappings at addresses of the range end the mapping as a loss does, and so does
//!   the next use of a page in place that the program has dropped by `madvise`.
//!
//! What else a program must not do with the range: protect or lock it; have the kernel use its pages behind the page table (O_DIRECT,
//! io_uring, RDMA); keep thread stacks or its allocator's own data there; share it with a child, which does not have it.

mod blocked;
mod config;
mod error;
mod holder;
mod idle;
mod inner;
mod kept;
mod leave;
mod memory;
mod pages;
#[cfg(test)]
mod plant;
#[cfg(test)]
mod planted;
mod signal;
mod statistics;
mod table;
#[cfg(test)]
mod tests;
mod thread;
mod twin;
mod uffd;

pub use blocked::with_signals_blocked;
pub use config::{Faults, MappingConfig, PAGE_BYTES, split};
pub use error::MappingError;
pub use statistics::{MappingStatistics, PageCounters};
pub use uffd::check_privileges;

use crate::region::RemoteRegion;
use idle::Idle;
use inner::{Batch, Inner};
use memory::Memory;
use p4rack_netdev::wait::Waker;
use pages::{BATCH, Pages, Step};
use std::fmt;
use std::ops::Deref;
use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::Arc;
use std::thread::JoinHandle;
use table::ENTRIES_MAX;
use uffd::Uffd;

const PAGE: u64 = PAGE_BYTES as u64;
/// Fewest pages in memory.
const PAGES_MIN: u64 = 64;
/// Pages that are discarded before other threads have a turn.
const TURN: u64 = 1_024;

/// A range of ordinary memory, backed by a region of remote memory. See the [module](self).
///
/// Dropping it writes nothing back, and unmaps the range.
pub struct Mapping {
    inner: Arc<Inner>,
    served: Option<signal::Served>,
    threads: Vec<JoinHandle<()>>,
    limit_bytes: u64,
    tables_bytes: u64,
    pages: u32,
}

impl fmt::Debug for Mapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mapping").field("pages", &self.pages).finish_non_exhaustive()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        self.served = None;
        self.inner.memory.end_threads();
        self.inner.close();
        for thread in self.threads.drain(..) {
            // A thread that has panicked has ended too.
            let _ = thread.join();
        }
    }
}

impl Mapping {
    /// A mapping of a region that nothing else uses. Open the region under [`with_signals_blocked`].
    ///
    /// Errors: too little memory for pages, more than the tables can name; the process may not use userfaultfd.
    pub fn new(
        region: impl Deref<Target = RemoteRegion> + Send + Sync + 'static,
        config: &MappingConfig,
    ) -> Result<Mapping, MappingError> {
        if config.threads == 0 {
            return Err(MappingError::NoThread);
        }
        if !(1..=BATCH as u16).contains(&config.batch_pages) {
            return Err(MappingError::Batch(config.batch_pages));
        }
        let region_bytes = region.region_bytes();
        let most = u64::from(u32::MAX) * PAGE;
        if region_bytes > most {
            return Err(MappingError::TooLarge { what: "bytes of the region", given: region_bytes, most });
        }
        let pages = (region_bytes / PAGE) as u32;
        if pages == 0 {
            return Err(MappingError::NoPage(region_bytes));
        }
        let (capacity, tables_bytes) = room(pages, config.pages_bytes, region_bytes)?;
        let by_signal = config.faults == Faults::InThread;
        // All that are to be woken by it watch it when it is closed here, and so does what wakes them.
        let end = Waker::new().map_err(|source| MappingError::System { what: "making a waker", source })?;
        let memory = Memory::new(Uffd::open(by_signal)?, end.as_fd(), pages, capacity)?;
        let content = if config.starts_zeroed { 0 } else { u8::MAX };
        let inner =
            Inner::new(memory, Box::new(region), Pages::new(pages, capacity, config.batch_pages, content));
        let mut mapping = Mapping {
            inner: Arc::new(inner),
            served: None,
            threads: Vec::new(),
            limit_bytes: config.pages_bytes,
            tables_bytes,
            pages,
        };
        with_signals_blocked(|| mapping.start_threads(config, &end))?;
        Ok(mapping)
    }

    fn start_threads(&mut self, config: &MappingConfig, end: &Waker) -> Result<(), MappingError> {
        let failed = |source| MappingError::System { what: "starting a thread", source };
        let inner = Arc::clone(&self.inner);
        let reclaimer = std::thread::Builder::new().name("far-reclaim".to_owned());
        self.threads.push(reclaimer.spawn(move || inner.reclaim()).map_err(failed)?);
        if config.faults == Faults::InThread {
            self.served = Some(signal::Served::new(&self.inner)?);
        }
        // One thread has to learn of changes in any case.
        let threads = if config.faults == Faults::InThread { 1 } else { config.threads };
        for _ in 0..threads {
            let inner = Arc::clone(&self.inner);
            // All descriptors of a mapping are open when it is.
            let idle = Idle::new(self.inner.memory.uffd(), end).map_err(failed)?;
            let serve = move || {
                if let Err(error) = thread::serve(&inner, idle) {
                    let why = format!("a thread that serves faults has ended: {error}");
                    inner.lose_all(&mut inner.lock(), &why);
                }
            };
            let thread = std::thread::Builder::new().name("far-faults".to_owned());
            self.threads.push(thread.spawn(serve).map_err(failed)?);
        }
        Ok(())
    }

    /// Start of the range, at a page's boundary.
    pub fn start(&self) -> NonNull<u8> {
        self.inner.memory.start()
    }

    /// Bytes of the range: the region's whole pages.
    pub fn bytes(&self) -> u64 {
        u64::from(self.pages) * PAGE
    }

    /// Drops the content of whole pages without writing it back; they read as zeros from then on. Threads that use them at the same time
    /// may see either. The region isn't involved: blocks of the pages that it already has stay in its local memory, and are written to
    /// remote memory if they are dirty. The caller's stack must not be in the range.
    ///
    /// Errors: not whole pages of the range; the mapping is lost.
    pub fn discard(&self, at: u64, bytes: u64) -> Result<(), MappingError> {
        let end = at.saturating_add(bytes);
        if !at.is_multiple_of(PAGE) || !bytes.is_multiple_of(PAGE) || end > self.bytes() {
            return Err(MappingError::Unaligned { at, end, bytes: self.bytes() });
        }
        with_signals_blocked(|| {
            let (mut batch, mut count): (Batch, usize) = ([None; BATCH], 0);
            let mut locked = self.inner.lock();
            let mut page = at / PAGE;
            while page < end / PAGE {
                match locked.pages.discard(page as u32) {
                    Step::Work(work) => {
                        batch[count] = Some(work);
                        count += 1;
                    }
                    Step::Ready => {}
                    Step::Lost => return Err(self.inner.lost(&locked)),
                    // Others may wait for the pages of the batch.
                    Step::Wait | Step::Room | Step::Release(_) if count > 0 => {
                        locked = self.inner.carry_out(locked, &mut batch);
                        count = 0;
                        continue;
                    }
                    Step::Wait | Step::Room | Step::Release(_) => {
                        locked = self.inner.wait(locked);
                        continue;
                    }
                }
                page += 1;
                if count == BATCH || page.is_multiple_of(TURN) {
                    locked = self.inner.carry_out(locked, &mut batch);
                    count = 0;
                    drop(locked);
                    locked = self.inner.lock();
                }
            }
            drop(self.inner.carry_out(locked, &mut batch));
            Ok(())
        })
    }

    /// Waits until all writes to the range that returned before are in remote memory. The caller's stack must not be in the range.
    /// Errors: the mapping is lost.
    pub fn flush(&self) -> Result<(), MappingError> {
        with_signals_blocked(|| {
            let mut locked = self.inner.lock();
            let mut entry = 0;
            while let Some(step) = locked.pages.clean(entry) {
                match step {
                    Step::Work(work) => locked = self.inner.carry_out_one(locked, work),
                    Step::Ready => {}
                    Step::Lost => return Err(self.inner.lost(&locked)),
                    Step::Wait | Step::Room | Step::Release(_) => {
                        locked = self.inner.wait(locked);
                        continue;
                    }
                }
                entry += 1;
            }
            drop(locked);
            Ok(self.inner.region().flush()?)
        })
    }

    /// Sizes, and counters so far.
    pub fn statistics(&self) -> MappingStatistics {
        with_signals_blocked(|| {
            let region = self.inner.region().statistics();
            let locked = self.inner.lock();
            let (in_memory, most) = locked.pages.in_memory();
            let (in_place, on_shelf) = locked.pages.pages();
            MappingStatistics {
                bytes: self.bytes(),
                limit_bytes: self.limit_bytes,
                local_bytes: u64::from(in_memory) * PAGE + self.tables_bytes,
                local_bytes_max: u64::from(most) * PAGE + self.tables_bytes,
                tables_bytes: self.tables_bytes,
                in_place: in_place.into(),
                on_shelf: on_shelf.into(),
                pages: locked.pages.counters,
                region,
            }
        })
    }
}

/// Pages that fit into memory beside their tables, and bytes of the tables.
fn room(pages: u32, pages_bytes: u64, region_bytes: u64) -> Result<(u32, u64), MappingError> {
    let (a_page, an_entry) = Pages::BYTES_EACH;
    let fixed = u64::from(pages) * a_page + size_of::<Inner>() as u64;
    let fits = pages_bytes.saturating_sub(fixed) / (PAGE + an_entry);
    if fits < PAGES_MIN {
        let least = fixed + PAGES_MIN * (PAGE + an_entry);
        return Err(MappingError::TooSmall { given: pages_bytes, least, region_bytes });
    }
    // All pages, each with a twin, beside the shelf.
    let fits = fits.min(u64::from(pages) * 5 / 2 + PAGES_MIN);
    if fits > ENTRIES_MAX {
        let most = fixed + ENTRIES_MAX * (PAGE + an_entry);
        return Err(MappingError::TooLarge { what: "pages_bytes", given: pages_bytes, most });
    }
    Ok((fits as u32, fixed + fits * an_entry))
}
