//! The calls for mappings as programs make them. Large, private, anonymous memory goes far; system calls on pages of
//! far memory are carried out by its mapping here, never by the kernel, which would tear a hole in it.

use crate::far::{self, Kind, NotFar};
use crate::near;
use libc::{c_int, c_void, off_t, size_t};
use p4rack_memory::far::PAGE_BYTES;
use std::ops::Range;

/// Flags of memory that may go far, beside those without a meaning for it.
const PRIVATE: c_int = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
const NO_MATTER: c_int = libc::MAP_NORESERVE | libc::MAP_POPULATE;
/// Access that far memory has.
const ACCESS: c_int = libc::PROT_READ | libc::PROT_WRITE;

fn fail(error: c_int) -> c_int {
    // SAFETY: the C library gives each thread its own `errno`.
    unsafe { *libc::__errno_location() = error };
    -1
}

fn not_mapped(error: c_int) -> *mut c_void {
    fail(error);
    libc::MAP_FAILED
}

/// `mmap`. An address without `MAP_FIXED` is a hint: such memory goes far only if the hint is in far memory.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap(
    at: *mut c_void,
    bytes: size_t,
    protection: c_int,
    flags: c_int,
    file: c_int,
    offset: off_t,
) -> *mut c_void {
    // A child's address space is put in order before it gets its first mapping.
    far::is_forked();
    let far_part = far::part(at as usize, bytes);
    if flags & (libc::MAP_FIXED | libc::MAP_FIXED_NOREPLACE) != 0 {
        if !far_part.is_empty() {
            return over_far(at as usize, bytes, far_part, (protection, flags));
        }
    } else if far::is_large(bytes)
        && flags & !NO_MATTER == PRIVATE
        && protection == ACCESS
        && let Some(mapped) = anonymous(at as usize, bytes)
    {
        return mapped;
    }
    // SAFETY: the caller's promise; the place is not in far memory.
    unsafe { near::mmap(at, bytes, protection, flags, file, offset) }
}

/// `mmap64`: the same, where offsets have 64 bits anyway.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap64(
    at: *mut c_void,
    bytes: size_t,
    protection: c_int,
    flags: c_int,
    file: c_int,
    offset: off_t,
) -> *mut c_void {
    // SAFETY: the caller's promise.
    unsafe { mmap(at, bytes, protection, flags, file, offset) }
}

/// Memory for the program: far, refused, or (`None`) near.
fn anonymous(at: usize, bytes: usize) -> Option<*mut c_void> {
    if at != 0 {
        let (far, _inside) = far::is_far(at).then(far::for_program)??;
        return far.map_at(at, bytes).then_some(at as *mut c_void);
    }
    match far::allocate(bytes, 1, Kind::Mapping) {
        Ok(at) => Some(at as *mut c_void),
        Err(NotFar::Refused) => Some(not_mapped(libc::ENOMEM)),
        Err(NotFar::Near) => None,
    }
}

/// A new mapping over pages of far memory: private anonymous ones that are readable and writable replace these pages,
/// all others are refused.
fn over_far(at: usize, bytes: usize, part: Range<usize>, (protection, flags): (c_int, c_int)) -> *mut c_void {
    let is_new = flags & libc::MAP_FIXED_NOREPLACE != 0;
    let kind = flags & (libc::MAP_TYPE | libc::MAP_ANONYMOUS);
    let fits = is_page(at) && part.len() == bytes && kind == PRIVATE && protection == ACCESS;
    let Some((far, _inside)) = fits.then(far::for_program).flatten() else {
        return not_mapped(if is_new && is_page(at) { libc::EEXIST } else { libc::EINVAL });
    };
    match is_new {
        true if far.map_at(at, bytes) => at as *mut c_void,
        true => not_mapped(libc::EEXIST),
        false if far.replace(part) => at as *mut c_void,
        // Far memory is lost.
        false => not_mapped(libc::ENOMEM),
    }
}

fn is_page(at: usize) -> bool {
    (at as u64).is_multiple_of(PAGE_BYTES)
}

/// `munmap`.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn munmap(at: *mut c_void, bytes: size_t) -> c_int {
    // SAFETY: the caller's promise, for the parts that are near.
    let kernel = |at, bytes| unsafe { near::munmap(at, bytes) };
    let release = |far: &far::Far, part| {
        far.release(part);
        true
    };
    apart(at as usize, bytes, release, kernel)
}

/// `madvise`: pages that aren't needed are dropped; all other advice has no effect on far memory.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn madvise(at: *mut c_void, bytes: size_t, advice: c_int) -> c_int {
    let drops = matches!(
        advice,
        libc::MADV_DONTNEED | libc::MADV_DONTNEED_LOCKED | libc::MADV_FREE | libc::MADV_REMOVE
    );
    let far_part = |far: &far::Far, part| !drops || far.discard(part);
    // SAFETY: the caller's promise, for the parts that are near.
    let kernel = |at, bytes| unsafe { near::madvise(at, bytes, advice) };
    apart(at as usize, bytes, far_part, kernel)
}

/// Does a call's work for the part of a range in far memory, and gives the parts before and behind it to the kernel. A call that is not
/// the program's goes to the kernel whole.
fn apart(
    at: usize,
    bytes: usize,
    far_part: impl FnOnce(&far::Far, Range<usize>) -> bool,
    kernel: impl Fn(usize, usize) -> c_int,
) -> c_int {
    let part = far::part(at, bytes);
    if part.is_empty() {
        return kernel(at, bytes);
    }
    if !is_page(at) {
        return fail(libc::EINVAL);
    }
    match far::for_program() {
        // Far memory is lost.
        Some((far, _inside)) if !far_part(far, part.clone()) => return fail(libc::EIO),
        Some(_) => {}
        // A child has no far memory: there is nothing to do.
        None if far::is_forked() => {}
        None => return kernel(at, bytes),
    }
    let end = at.saturating_add(bytes);
    for (from, to) in [(at, part.start), (part.end, end)] {
        if from < to && kernel(from, to - from) != 0 {
            return -1;
        }
    }
    0
}

/// `mprotect`: far memory is readable and writable, and stays so.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mprotect(at: *mut c_void, bytes: size_t, protection: c_int) -> c_int {
    let part = far::part(at as usize, bytes);
    let is_programs = far::for_program().is_some();
    if part.is_empty() || !is_programs && !far::is_forked() {
        // SAFETY: the caller's promise.
        return unsafe { near::mprotect(at as usize, bytes, protection) };
    }
    match is_programs && protection == ACCESS && part.len() == bytes {
        true => 0,
        false => fail(libc::EACCES),
    }
}

/// `mremap`. A mapping in far memory shrinks and grows in place, or moves within far memory.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mremap(
    at: *mut c_void,
    bytes: size_t,
    new: size_t,
    flags: c_int,
    to: *mut c_void,
) -> *mut c_void {
    let is_to_far = flags & libc::MREMAP_FIXED != 0 && !far::part(to as usize, new).is_empty();
    if far::part(at as usize, bytes.max(1)).is_empty() && !is_to_far {
        // SAFETY: the caller's promise; neither place is in far memory.
        return unsafe { near::mremap(at, bytes, new, flags, to) };
    }
    if !is_page(at as usize) {
        return not_mapped(libc::EINVAL);
    }
    let whole = |bytes: usize| bytes.checked_next_multiple_of(PAGE_BYTES as usize);
    let (Some(bytes), Some(new)) = (whole(bytes), whole(new)) else { return not_mapped(libc::EINVAL) };
    let part = far::part(at as usize, bytes);
    if is_to_far || part.len() != bytes || new == 0 || flags & !libc::MREMAP_MAYMOVE != 0 {
        return not_mapped(libc::EINVAL);
    }
    let Some((far, inside)) = far::for_program() else { return not_mapped(libc::EFAULT) };
    if new <= bytes {
        far.release(part.start + new..part.end);
        return at;
    }
    if far.take_at(part.end, new - bytes) {
        return at;
    }
    // The copy faults as the program's access.
    drop(inside);
    if flags & libc::MREMAP_MAYMOVE == 0 {
        return not_mapped(libc::ENOMEM);
    }
    let Ok(moved) = far::allocate(new, 1, Kind::Mapping) else { return not_mapped(libc::ENOMEM) };
    // SAFETY: both mappings have these bytes, and they do not overlap.
    unsafe { std::ptr::copy_nonoverlapping(at.cast::<u8>(), moved as *mut u8, bytes) };
    if let Some((far, _inside)) = far::for_program() {
        far.release(part);
    }
    moved as *mut c_void
}
