//! The allocator of the library's own Rust code: the C library's, under names that are not interposed. So nothing of the library is in
//! far memory, and a fault is served without a lock of the program's allocator.

use libc::{c_void, size_t};
use std::alloc::{GlobalAlloc, Layout};

unsafe extern "C" {
    fn __libc_malloc(bytes: size_t) -> *mut c_void;
    fn __libc_calloc(count: size_t, bytes: size_t) -> *mut c_void;
    fn __libc_realloc(object: *mut c_void, bytes: size_t) -> *mut c_void;
    fn __libc_memalign(align: size_t, bytes: size_t) -> *mut c_void;
    fn __libc_free(object: *mut c_void);
}

/// Alignment of everything that `__libc_malloc` returns.
const ALIGN: usize = 16;

/// The C library's allocator.
pub struct Own;

// SAFETY: all five functions are one allocator, and an object's alignment is met by `__libc_memalign` where 16 is too little.
unsafe impl GlobalAlloc for Own {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: any size is permitted, and the alignment is a power of two.
        let object = unsafe {
            match layout.align() <= ALIGN {
                true => __libc_malloc(layout.size()),
                false => __libc_memalign(layout.align(), layout.size()),
            }
        };
        object.cast()
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= ALIGN {
            // SAFETY: any size is permitted.
            return unsafe { __libc_calloc(1, layout.size()) }.cast();
        }
        // SAFETY: the caller's layout; the object has `size` bytes.
        unsafe {
            let object = self.alloc(layout);
            if !object.is_null() {
                object.write_bytes(0, layout.size());
            }
            object
        }
    }

    unsafe fn dealloc(&self, object: *mut u8, _layout: Layout) {
        // SAFETY: the object is from this allocator.
        unsafe { __libc_free(object.cast()) }
    }

    unsafe fn realloc(&self, object: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        if layout.align() <= ALIGN {
            // SAFETY: the object is from this allocator.
            return unsafe { __libc_realloc(object.cast(), bytes) }.cast();
        }
        // SAFETY: the new layout is valid, the copy is as long as the shorter object, and the two don't overlap.
        unsafe {
            let moved = self.alloc(Layout::from_size_align_unchecked(bytes, layout.align()));
            if !moved.is_null() {
                std::ptr::copy_nonoverlapping(object, moved, bytes.min(layout.size()));
                self.dealloc(object, layout);
            }
            moved
        }
    }
}
