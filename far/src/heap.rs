//! The allocator's functions as programs call them: large objects go far, all others to the next allocator.

use crate::far::{self, Kind, NotFar};
use crate::near;
use libc::{c_int, c_void, size_t};
use std::ptr::null_mut;

/// Alignment that every heap object has.
const ALIGN: usize = 16;

fn refused() -> *mut c_void {
    // SAFETY: the C library gives each thread its own `errno`.
    unsafe { *libc::__errno_location() = libc::ENOMEM };
    null_mut()
}

/// A large object: far, refused, or (`None`) near.
fn large(bytes: usize, align: usize) -> Option<*mut c_void> {
    match far::allocate(bytes, align, Kind::Object) {
        Ok(at) => Some(at as *mut c_void),
        Err(NotFar::Refused) => Some(refused()),
        Err(NotFar::Near) => None,
    }
}

/// `malloc`.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc(bytes: size_t) -> *mut c_void {
    if far::is_large(bytes)
        && let Some(object) = large(bytes, ALIGN)
    {
        return object;
    }
    match near::heap() {
        // SAFETY: any size is permitted.
        Some(next) => unsafe { (next.malloc)(bytes) },
        None => near::early(bytes, ALIGN),
    }
}

/// `calloc`.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn calloc(count: size_t, bytes: size_t) -> *mut c_void {
    let Some(whole) = count.checked_mul(bytes) else { return refused() };
    // Free pages of far memory read as zeros.
    if far::is_large(whole)
        && let Some(object) = large(whole, ALIGN)
    {
        return object;
    }
    match near::heap() {
        // SAFETY: any size is permitted.
        Some(next) => unsafe { (next.calloc)(count, bytes) },
        None => near::early(whole, ALIGN),
    }
}

/// `realloc`.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn realloc(object: *mut c_void, bytes: size_t) -> *mut c_void {
    if object.is_null() {
        // SAFETY: any size is permitted.
        return unsafe { malloc(bytes) };
    }
    if far::owner(object as usize).is_some() {
        // SAFETY: a heap object of the library begins there.
        return unsafe { realloc_far(object, bytes) };
    }
    if near::is_early(object) {
        // Its length is not known: bytes behind it are copied too.
        // SAFETY: the copy ends at the end of the early buffer.
        return unsafe { moved(object, near::early_bytes(object).min(bytes), malloc(bytes)) };
    }
    let Some(next) = near::heap() else { return refused() };
    if far::is_large(bytes)
        && let Some(new) = large(bytes, ALIGN)
    {
        // SAFETY: the object is the next allocator's, and both have the copied bytes.
        return unsafe {
            let copied = (next.malloc_usable_size)(object).min(bytes);
            let new = moved(object, copied, new);
            if !new.is_null() {
                (next.free)(object);
            }
            new
        };
    }
    // SAFETY: the object is the next allocator's.
    unsafe { (next.realloc)(object, bytes) }
}

/// # Safety
/// A heap object of the library begins at `object`.
#[cold]
unsafe fn realloc_far(object: *mut c_void, bytes: usize) -> *mut c_void {
    let Some((far, inside)) = far::for_program() else { return refused() };
    let old = far.object_bytes(object as usize).unwrap_or(0);
    if bytes == 0 {
        far.free(object as usize);
        return null_mut();
    }
    if far.resize(object as usize, bytes) {
        return object;
    }
    // The copy faults, and the new object may be near: both as the program's calls.
    drop(inside);
    // SAFETY: both objects have the copied bytes.
    let new = unsafe { moved(object, old.min(bytes), malloc(bytes)) };
    if !new.is_null() {
        free_far(object as usize);
    }
    new
}

/// The new object, with the first bytes of the old one; null stays null.
///
/// # Safety
/// Both have these bytes and do not overlap.
unsafe fn moved(old: *const c_void, bytes: usize, new: *mut c_void) -> *mut c_void {
    if !new.is_null() {
        // SAFETY: the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(old.cast::<u8>(), new.cast::<u8>(), bytes) };
    }
    new
}

/// `free`.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(object: *mut c_void) {
    if far::is_far(object as usize) && (far::is_forked() || far::owner(object as usize).is_some()) {
        return free_far(object as usize);
    }
    if object.is_null() || near::is_early(object) {
        return;
    }
    if let Some(next) = near::heap() {
        // SAFETY: the object is the next allocator's.
        unsafe { (next.free)(object) };
    }
}

/// Frees a heap object of the library, and keeps `errno`, as `free` does. A forked child has none of its parent's far memory, and nothing to
/// free.
#[cold]
fn free_far(at: usize) {
    // SAFETY: the C library gives each thread its own `errno`.
    let errno = unsafe { *libc::__errno_location() };
    if let Some((far, _inside)) = far::for_program() {
        far.free(at);
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

/// `posix_memalign`.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_memalign(into: *mut *mut c_void, align: size_t, bytes: size_t) -> c_int {
    if !align.is_power_of_two() || !align.is_multiple_of(size_of::<usize>()) {
        return libc::EINVAL;
    }
    let object = match far::is_large(bytes).then(|| large(bytes, align)).flatten() {
        Some(object) => object,
        None => match near::heap() {
            // SAFETY: the caller's arguments.
            Some(next) => return unsafe { (next.posix_memalign)(into, align, bytes) },
            None => near::early(bytes, align),
        },
    };
    if object.is_null() {
        return libc::ENOMEM;
    }
    // SAFETY: the caller's place for the result.
    unsafe { into.write(object) };
    0
}

/// `aligned_alloc`.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aligned_alloc(align: size_t, bytes: size_t) -> *mut c_void {
    // SAFETY: the next allocator's arguments are the caller's.
    unsafe { aligned(align, bytes, |next| (next.aligned_alloc)(align, bytes)) }
}

/// `memalign`.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memalign(align: size_t, bytes: size_t) -> *mut c_void {
    // SAFETY: the next allocator's arguments are the caller's.
    unsafe { aligned(align, bytes, |next| (next.memalign)(align, bytes)) }
}

fn aligned(align: usize, bytes: usize, near: impl FnOnce(&near::Heap) -> *mut c_void) -> *mut c_void {
    if align.is_power_of_two()
        && far::is_large(bytes)
        && let Some(object) = large(bytes, align)
    {
        return object;
    }
    match near::heap() {
        Some(next) => near(next),
        None => near::early(bytes, align),
    }
}

/// `malloc_usable_size`.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc_usable_size(object: *mut c_void) -> size_t {
    if object.is_null() {
        return 0;
    }
    if let Some(bytes) = far::owner(object as usize).and_then(|far| far.object_bytes(object as usize)) {
        return bytes;
    }
    if near::is_early(object) {
        return 0;
    }
    // SAFETY: the object is the next allocator's.
    near::heap().map_or(0, |next| unsafe { (next.malloc_usable_size)(object) })
}
