//! Whether this process is the one with far memory, or a child of it. The kernel wipes a page of memory in every child, also in those that
//! `_Fork` or `clone` make, of which no library hears.

use crate::near;
use std::io;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// The word: 1 in the process with far memory, 0 in its children. Null before there is any.
static WORD: AtomicPtr<AtomicU32> = AtomicPtr::new(null_mut());

/// Marks this process as the one with far memory.
pub fn mark() -> io::Result<()> {
    let (bytes, access) = (p4rack_memory::far::PAGE_BYTES as usize, libc::PROT_READ | libc::PROT_WRITE);
    // SAFETY: a new mapping at an address that the kernel chooses touches no existing memory.
    let page =
        unsafe { near::mmap(null_mut(), bytes, access, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0) };
    if page == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the page is this function's.
    if unsafe { near::madvise(page as usize, bytes, libc::MADV_WIPEONFORK) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let word = page.cast::<AtomicU32>();
    // SAFETY: the page holds an aligned word of zeros, and is never unmapped.
    unsafe { &*word }.store(1, Ordering::Relaxed);
    WORD.store(word, Ordering::Release);
    Ok(())
}

/// Whether this is a child of the process with far memory. A child of `vfork`, which shares its parent's memory, is not.
#[inline]
pub fn is_child() -> bool {
    let word = WORD.load(Ordering::Acquire);
    // SAFETY: a word that was published is never unmapped.
    !word.is_null() && unsafe { &*word }.load(Ordering::Relaxed) == 0
}
