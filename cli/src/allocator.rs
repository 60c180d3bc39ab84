//! Source of memory: small objects from mimalloc, which keeps freed memory for the next ones, and large ones from the
//! system, which takes them back when they are freed. A message of 127 MiB would otherwise stay with the process to its
//! end.

use mimalloc::MiMalloc;
use std::alloc::{GlobalAlloc, Layout, System};

/// Objects of this size or more, in bytes, come from the system.
const LARGE: usize = 4 << 20;

/// mimalloc, and the system's allocator for large objects.
pub struct Allocator;

unsafe extern "C" {
    /// mimalloc's own: gives the calling thread's free memory back to the system.
    fn mi_collect(force: bool);
}

/// Lets the system take back each large object when it is freed. Without this, it keeps larger ones the more it has seen.
pub fn start() {
    p4rack_netdev::process::map_objects_from(LARGE);
}

/// Gives free memory back to the system. For a thread that ends after long work: mimalloc would keep its memory for other threads,
/// and these may never need as much.
pub fn give_back() {
    // SAFETY: any thread may call it at any time.
    if !p4rack_netdev::sched::while_unlocked(|| unsafe { mi_collect(true) }) {
        tracing::warn!("the process's memory is no longer locked, and may be evicted");
    }
}

const fn is_large(bytes: usize) -> bool {
    bytes >= LARGE
}

// SAFETY: which of two allocators an object belongs to follows from its layout alone, and an object that changes sides is
// copied. Both keep the trait's contract.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's layout is handed on.
        unsafe { if is_large(layout.size()) { System.alloc(layout) } else { MiMalloc.alloc(layout) } }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's layout is handed on.
        unsafe {
            if is_large(layout.size()) { System.alloc_zeroed(layout) } else { MiMalloc.alloc_zeroed(layout) }
        }
    }

    unsafe fn dealloc(&self, object: *mut u8, layout: Layout) {
        // SAFETY: the object has this layout, so it is from this allocator.
        unsafe {
            if is_large(layout.size()) {
                System.dealloc(object, layout)
            } else {
                MiMalloc.dealloc(object, layout)
            }
        }
    }

    unsafe fn realloc(&self, object: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: the object has this layout; the copy is as long as the shorter of the two, which don't overlap.
        unsafe {
            match (is_large(layout.size()), is_large(bytes)) {
                (true, true) => System.realloc(object, layout, bytes),
                (false, false) => MiMalloc.realloc(object, layout, bytes),
                _ => {
                    let moved = self.alloc(Layout::from_size_align_unchecked(bytes, layout.align()));
                    if !moved.is_null() {
                        std::ptr::copy_nonoverlapping(object, moved, bytes.min(layout.size()));
                        self.dealloc(object, layout);
                    }
                    moved
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_keep_their_content_across_the_limit() {
        let mut bytes: Vec<u8> = (0..LARGE - 1).map(|at| at as u8).collect();
        bytes.reserve_exact(1);
        bytes.push(7);
        assert!(bytes.capacity() >= LARGE && bytes[LARGE - 2] == (LARGE - 2) as u8 && bytes[LARGE - 1] == 7);
        bytes.truncate(100);
        bytes.shrink_to_fit();
        assert!(bytes.iter().enumerate().all(|(at, byte)| *byte == at as u8));
        assert!(vec![0u64; LARGE].iter().all(|word| *word == 0));
    }
}
