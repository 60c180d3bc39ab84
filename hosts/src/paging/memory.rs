//! Memory of a mapping: the range, a page that is never in place, and buffers of a page each, in this order.
//!
//! **Safety.** The range is the program's. This module touches its pages only as operations of a work do, which [`Pages`](super::pages)
//! hands to one thread at a time for each page: it reads a page in place only while the page is protected, so that nothing writes it,
//! and it moves bytes into place by the kernel alone. A page in place stays until its work drops it. So a read here never faults, unless
//! the program itself drops pages of the range, which [`Mapping`](super::Mapping) forbids: such a read ends in SIGBUS.
//!
//! A buffer is used by the thread whose work names it: `Pages` has it in one work, twin, shelved page, or list of free buffers at a time.

use super::blocked::with_signals_blocked;
use super::config::PAGE_BYTES;
use super::error::MappingError;
use super::holder::Holder;
use super::kept::Kept;
use super::pages::BATCH;
use super::table::{Buffer, Page};
use super::twin::PageBytes;
use super::uffd::Uffd;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};

const PAGE: u64 = PAGE_BYTES as u64;
static ZEROS: PageBytes = [0; PAGE_BYTES];

/// Fresh pages, taken when they are touched.
struct Fresh {
    start: NonNull<u8>,
    bytes: usize,
}

impl Fresh {
    fn new(bytes: u64) -> Result<Fresh, MappingError> {
        let what = "taking addresses for pages";
        let bytes = usize::try_from(bytes).map_err(|_| MappingError::last(what))?;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping at an address that the kernel chooses touches no existing memory.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, flags, -1, 0) };
        let start = NonNull::new(start.cast()).filter(|_| start != libc::MAP_FAILED);
        let fresh = Fresh { start: start.ok_or_else(|| MappingError::last(what))?, bytes };
        // A huge page would be in place as a whole. A kernel without them refuses to be asked for none.
        let _ = fresh.advise(0, bytes, libc::MADV_NOHUGEPAGE);
        // A child would write pages that the mapping does not see.
        let kept = fresh.advise(0, bytes, libc::MADV_DONTFORK);
        kept.map_err(|source| MappingError::System { what, source })?;
        Ok(fresh)
    }

    fn advise(&self, at: usize, bytes: usize, advice: libc::c_int) -> io::Result<()> {
        assert!(at + bytes <= self.bytes, "within");
        // SAFETY: the pages are of this mapping; those that are dropped are not referred to, see the module.
        match unsafe { libc::madvise(self.start.as_ptr().add(at).cast(), bytes, advice) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Leaves the first `bytes` to the program.
    fn leave(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        // SAFETY: in bounds, or just behind the last byte.
        (self.start, self.bytes) = (unsafe { self.start.add(bytes) }, self.bytes - bytes);
    }

    fn page(&self, number: usize) -> NonNull<PageBytes> {
        let at = number * PAGE_BYTES;
        assert!(at < self.bytes, "within");
        // SAFETY: in bounds.
        unsafe { self.start.add(at) }.cast()
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        // SAFETY: the mapping is of `new`, and nothing in this module refers to it afterwards. A program must not use
        // addresses of a range that has ended.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// See the [module](self).
pub struct Memory {
    uffd: Uffd,
    holder: Holder,
    /// Whether faults are still answered.
    is_held: AtomicBool,
    fresh: Fresh,
    /// Pages of the range.
    pages: u32,
    /// This process, to drop scattered pages with one call. `None`: the kernel has no such call.
    process: Option<Kept>,
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.end_watch();
        if self.uffd.changed().is_some() {
            // The program may have memory of its own there.
            self.fresh.leave(self.range_bytes() + PAGE_BYTES);
        }
    }
}

// SAFETY: the pages belong to the process, not to a thread, and stay until the value is dropped; see the module for the user of each.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// A range of absent pages, and buffers without memory. `end` is an eventfd that wakes the threads which serve faults.
    pub fn new(uffd: Uffd, end: BorrowedFd<'_>, pages: u32, buffers: u32) -> Result<Memory, MappingError> {
        let registered_bytes = (u64::from(pages) + 1) * PAGE;
        let fresh = Fresh::new(registered_bytes + u64::from(buffers) * PAGE)?;
        let what = "registering the range";
        let registered = uffd.register(fresh.start.as_ptr() as u64, registered_bytes);
        registered.map_err(|source| MappingError::System { what, source })?;
        // SAFETY: it takes no pointers.
        let process = unsafe { libc::syscall(libc::SYS_pidfd_open, libc::getpid(), 0) };
        // SAFETY: the kernel has just returned it.
        let process = (process >= 0).then(|| unsafe { OwnedFd::from_raw_fd(process as libc::c_int) });
        let process = process.and_then(|process| Kept::new(process).ok());
        let range = (fresh.start.as_ptr() as u64, registered_bytes);
        let holder = with_signals_blocked(|| Holder::new(uffd.as_fd(), end, range))?;
        let mut memory = Memory { uffd, holder, is_held: true.into(), fresh, pages, process };
        // Kernels before 6.13 drop no pages this way, not even of the process itself.
        if memory.process.is_some() && memory.drop_together(&[0]).is_err() {
            memory.process = None;
        }
        Ok(memory)
    }

    pub fn uffd(&self) -> &Uffd {
        &self.uffd
    }

    pub fn start(&self) -> NonNull<u8> {
        self.fresh.start
    }

    fn range_bytes(&self) -> usize {
        self.pages as usize * PAGE_BYTES
    }

    /// The page at an address. `None`: it is not of the range.
    pub fn page_at(&self, address: u64) -> Option<Page> {
        let at = address.checked_sub(self.fresh.start.as_ptr() as u64)?;
        (at < self.range_bytes() as u64).then_some((at / PAGE) as Page)
    }

    fn address(&self, page: Page) -> u64 {
        self.fresh.page(page as usize).as_ptr() as u64
    }

    /// Errors: the descriptor no longer answers faults. It can't protect the page behind the range, which protects nothing otherwise.
    pub fn check(&self) -> io::Result<()> {
        self.protect(self.pages, 1)
    }

    /// Writes to `count` pages fault from now on.
    pub fn protect(&self, first: Page, count: u32) -> io::Result<()> {
        self.uffd.protect(self.address(first), u64::from(count) * PAGE, true)
    }

    /// Writes to a page fault no longer. Threads that wait for it go on.
    pub fn unprotect(&self, page: Page) -> io::Result<()> {
        self.uffd.protect(self.address(page), PAGE, false)
    }

    /// Threads that wait for a page go on.
    pub fn wake(&self, page: Page) -> io::Result<()> {
        self.uffd.wake(self.address(page), PAGE)
    }

    /// Puts a page in place. Threads that wait for it go on.
    pub fn fill(&self, page: Page, from: &PageBytes, protects: bool) -> io::Result<()> {
        self.uffd.copy(self.address(page), from, protects)
    }

    pub fn zeros() -> &'static PageBytes {
        &ZEROS
    }

    /// Takes pages out of their places.
    pub fn drop_pages(&self, pages: &[Page]) -> io::Result<()> {
        // The program may have memory of its own there.
        self.uffd.changed().map_or(Ok(()), |changed| Err(io::Error::other(changed)))?;
        match (pages, &self.process) {
            ([_, _, ..], Some(_)) => pages.chunks(BATCH).try_for_each(|some| self.drop_together(some)),
            _ => pages.iter().try_for_each(|page| {
                self.fresh.advise(*page as usize * PAGE_BYTES, PAGE_BYTES, libc::MADV_DONTNEED)
            }),
        }
    }

    /// Up to [`BATCH`] pages.
    fn drop_together(&self, pages: &[Page]) -> io::Result<()> {
        let Some(process) = &self.process else { return Ok(()) };
        let nothing = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
        let mut parts = [nothing; BATCH];
        for (part, page) in parts.iter_mut().zip(pages) {
            *part = libc::iovec {
                iov_base: self.fresh.page(*page as usize).as_ptr().cast(),
                iov_len: PAGE_BYTES,
            };
        }
        let count = pages.len().min(BATCH);
        // SAFETY: pointer and count describe `parts`, which are pages of the range; see `advise`.
        let dropped = unsafe {
            libc::syscall(
                libc::SYS_process_madvise,
                process.as_raw_fd(),
                parts.as_ptr(),
                count,
                libc::MADV_DONTNEED,
                0,
            )
        };
        match usize::try_from(dropped) {
            Ok(bytes) if bytes == count * PAGE_BYTES => Ok(()),
            Ok(bytes) => {
                Err(io::Error::other(format!("the kernel has dropped {bytes} bytes of {count} pages")))
            }
            Err(_) => Err(io::Error::last_os_error()),
        }
    }

    /// A page in place.
    ///
    /// # Safety
    /// The page is in place and protected, and stays so as long as the result is used.
    pub unsafe fn placed(&self, page: Page) -> &PageBytes {
        // SAFETY: in bounds, and by the caller's promise there and not written.
        unsafe { self.fresh.page(page as usize).as_ref() }
    }

    /// A buffer's number among all pages.
    fn place(&self, buffer: Buffer) -> usize {
        self.pages as usize + 1 + buffer as usize
    }

    /// A buffer.
    ///
    /// # Safety
    /// Nothing else uses the buffer as long as the result is used.
    #[allow(clippy::mut_from_ref)] // Buffers are borrowed singly; the caller keeps them apart.
    pub unsafe fn buffer(&self, buffer: Buffer) -> &mut PageBytes {
        // SAFETY: in bounds, initialised by the kernel, and nothing else's by the caller's promise.
        unsafe { self.fresh.page(self.place(buffer)).as_mut() }
    }

    /// Gives back the memory of a buffer that is not in use.
    pub fn release(&self, buffer: Buffer) -> io::Result<()> {
        self.fresh.advise(self.place(buffer) * PAGE_BYTES, PAGE_BYTES, libc::MADV_DONTNEED)
    }

    /// Errors: a page that was put in place is not there, because the program has dropped it. It does not come back; an access to it ends
    /// in SIGBUS (before Linux 6.6, it reads as zeros).
    pub fn confirm(&self, page: Page) -> io::Result<()> {
        let put = match self.uffd.can_poison() {
            true => self.uffd.poison(self.address(page), PAGE),
            false => self.fill(page, &ZEROS, true),
        };
        match put {
            Err(error) if error.raw_os_error() == Some(libc::EEXIST) => Ok(()),
            Err(error) => Err(error),
            Ok(()) => Err(io::Error::other("the program has dropped pages of it itself (by madvise)")),
        }
    }

    /// Answers a fault beside the range: on the page behind it, or on pages that the program has moved, which are inaccessible soon.
    pub fn refuse(&self, address: u64) -> io::Result<()> {
        let page = address & !(PAGE - 1);
        match page == self.address(self.pages) {
            true => self.deny(self.pages),
            false => self.uffd.wake(page, PAGE),
        }
    }

    /// Makes accesses to a page that is absent end in a signal, as nothing can answer them. One that is in place becomes writable.
    pub fn deny(&self, page: Page) -> io::Result<()> {
        if !self.uffd.can_poison() {
            return self.deny_all();
        }
        match self.uffd.poison(self.address(page), PAGE) {
            // In place, or denied by another thread.
            Err(error) if error.raw_os_error() == Some(libc::EEXIST) => self.unprotect(page),
            poisoned => poisoned,
        }
    }

    /// Makes all accesses to the range end in a signal.
    pub fn deny_all(&self) -> io::Result<()> {
        let (start, bytes) = (self.start().as_ptr(), self.range_bytes());
        // SAFETY: the range is of this mapping; that accesses fail from now on is the purpose.
        if unsafe { libc::mprotect(start.cast(), bytes, libc::PROT_NONE) } != 0 {
            return Err(io::Error::last_os_error());
        }
        self.end_watch();
        Ok(())
    }

    /// Ends the threads that serve faults.
    pub fn end_threads(&self) {
        self.holder.wake();
    }

    /// Whether the range is watched, and so accessible.
    pub fn is_held(&self) -> bool {
        self.is_held.load(Ordering::Relaxed)
    }

    /// Threads that wait for a page go on.
    fn end_watch(&self) {
        self.is_held.store(false, Ordering::Relaxed);
        self.holder.end_watch();
    }
}
