//! Memory shared with the kernel.
//!
//! A ring shared with the kernel consists of words that name the owner of each part, and the parts themselves.
//! Words are accessed atomically, so that they need no `unsafe`. A borrower of a part promises that the words assign it
//! to them.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// Pages mapped into this process, unmapped when dropped.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: the pages belong to the process, not to a thread, and stay until the value is dropped; access
// goes through atomics, or through `part`, whose callers answer for it.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps a part of `fd` at an offset.
    pub(crate) fn of(fd: BorrowedFd<'_>, offset: libc::off_t, length: usize) -> io::Result<Mapping> {
        Mapping::map(length, libc::MAP_SHARED | libc::MAP_POPULATE, fd.as_raw_fd(), offset)
    }

    /// Pages of a file from its start, or fresh ones; taken when they are touched.
    pub(crate) fn on_demand(file: Option<BorrowedFd<'_>>, length: usize) -> io::Result<Mapping> {
        match file {
            Some(fd) => Mapping::map(length, libc::MAP_SHARED, fd.as_raw_fd(), 0),
            None => Mapping::map(length, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0),
        }
    }

    /// Fresh pages, filled with zeros.
    pub(crate) fn fresh(length: usize) -> io::Result<Mapping> {
        // Shared: a child process must not get copies of pages that the kernel knows.
        Mapping::map(length, libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_POPULATE, -1, 0)
    }

    fn map(length: usize, flags: libc::c_int, fd: libc::c_int, offset: libc::off_t) -> io::Result<Mapping> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address that the kernel chooses touches no existing mapping.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), length, access, flags, fd, offset) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Mapping { start, length })
    }

    /// All bytes, of a mapping without other users.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: in bounds, initialised by the kernel, and alive as long as the borrow of `self`; writers borrow
        // `self` exclusively, see `bytes_mut`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }

    /// The same, to write.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above; `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }

    /// Length in bytes.
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// Start address, for the kernel.
    pub(crate) fn address(&self) -> u64 {
        self.start.as_ptr() as u64
    }

    /// The 32-bit word at an offset, which must be aligned and within the mapping.
    #[inline]
    pub(crate) fn word(&self, at: usize) -> &AtomicU32 {
        assert!(at.is_multiple_of(4) && at + 4 <= self.length, "word {at} of {}", self.length);
        // SAFETY: in bounds and aligned (pages are); the memory lives as long as the borrow of `self`; every
        // bit pattern is a value; this process only reads and writes it atomically, and so does the kernel.
        unsafe { AtomicU32::from_ptr(self.start.as_ptr().add(at).cast()) }
    }

    /// The 64-bit word at an offset, which must be aligned and within the mapping.
    #[inline]
    pub(crate) fn double(&self, at: usize) -> &AtomicU64 {
        assert!(at.is_multiple_of(8) && at + 8 <= self.length, "double word {at} of {}", self.length);
        // SAFETY: as in `word`.
        unsafe { AtomicU64::from_ptr(self.start.as_ptr().add(at).cast()) }
    }

    /// The bytes from `at` on; `None` outside of the mapping.
    ///
    /// # Safety
    /// Until the result is dropped, the kernel must not access these bytes (the words of the ring gave them
    /// to this process), and neither may anyone else in the process through another `part`, `word` or
    /// `double`.
    #[inline]
    #[allow(clippy::mut_from_ref)] // The parts of a mapping are borrowed singly; the caller keeps them apart.
    pub(crate) unsafe fn part(&self, at: usize, length: usize) -> Option<&mut [u8]> {
        if at.checked_add(length)? > self.length {
            return None;
        }
        // SAFETY: in bounds, initialised by the kernel, alive as long as the borrow of `self`, and not borrowed
        // otherwise, by the caller's promise.
        Some(unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().add(at), length) })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: `map` made this mapping, no borrow of it is left, and it is unmapped only here. A kernel that still
        // writes (a socket that outlives its ring's mapping) does so to the pages it holds itself.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn words_and_parts_are_the_same_memory_and_keep_within_bounds() {
        let mapping = Mapping::fresh(4096).unwrap();
        mapping.word(8).store(0x01020304, Ordering::Relaxed);
        // SAFETY: the mapping has no other user.
        let part = unsafe { mapping.part(8, 4) }.unwrap();
        assert_eq!(part, 0x01020304u32.to_ne_bytes());
        // SAFETY: as above.
        assert!(
            unsafe { mapping.part(4095, 2) }.is_none() && unsafe { mapping.part(1, usize::MAX) }.is_none()
        );
        assert_eq!(mapping.double(8).load(Ordering::Relaxed) as u32, 0x01020304);
    }

    #[test]
    #[should_panic(expected = "word 4096")]
    fn a_word_outside_is_refused() {
        Mapping::fresh(4096).unwrap().word(4096);
    }
}
