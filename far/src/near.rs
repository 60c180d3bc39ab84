//! Memory that is not far: the next allocator in the process, and the kernel's mappings.
//!
//! The next allocator may be the C library's or another library's, such as jemalloc: its memory goes back to it. Until
//! the dynamic linker has named it, requests are served from a small buffer, because the linker itself may allocate.

use libc::{c_int, c_long, c_uint, c_void, size_t};
use std::cell::UnsafeCell;
use std::ffi::CStr;
use std::mem::{MaybeUninit, transmute};
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

/// Bytes for allocations by the dynamic linker while it looks up the next allocator.
const EARLY_BYTES: usize = 16 << 10;

const UNKNOWN: u8 = 0;
const ASKING: u8 = 1;
const KNOWN: u8 = 2;

/// The functions of the next allocator.
#[derive(Clone, Copy)]
pub struct Heap {
    pub malloc: unsafe extern "C" fn(size_t) -> *mut c_void,
    pub calloc: unsafe extern "C" fn(size_t, size_t) -> *mut c_void,
    pub realloc: unsafe extern "C" fn(*mut c_void, size_t) -> *mut c_void,
    pub free: unsafe extern "C" fn(*mut c_void),
    pub posix_memalign: unsafe extern "C" fn(*mut *mut c_void, size_t, size_t) -> c_int,
    pub aligned_alloc: unsafe extern "C" fn(size_t, size_t) -> *mut c_void,
    pub memalign: unsafe extern "C" fn(size_t, size_t) -> *mut c_void,
    pub malloc_usable_size: unsafe extern "C" fn(*mut c_void) -> size_t,
}

struct Next {
    state: AtomicU8,
    heap: UnsafeCell<MaybeUninit<Heap>>,
}

// SAFETY: `heap` is written once, by the thread that moved `state` from UNKNOWN to ASKING, and read only after KNOWN was published.
unsafe impl Sync for Next {}

static NEXT: Next = Next { state: AtomicU8::new(UNKNOWN), heap: UnsafeCell::new(MaybeUninit::uninit()) };

/// Bytes given before the next allocator is known. They are never freed.
#[repr(align(16))]
struct Early(UnsafeCell<[u8; EARLY_BYTES]>);

// SAFETY: each byte is given to one caller only, because `EARLY_USED` only grows.
unsafe impl Sync for Early {}

static EARLY: Early = Early(UnsafeCell::new([0; EARLY_BYTES]));
static EARLY_USED: AtomicUsize = AtomicUsize::new(0);

/// The next allocator; `None` while the dynamic linker is asked for it.
#[inline]
pub fn heap() -> Option<&'static Heap> {
    match NEXT.state.load(Ordering::Acquire) {
        // SAFETY: KNOWN is published after the write, and nothing writes again.
        KNOWN => Some(unsafe { (*NEXT.heap.get()).assume_init_ref() }),
        _ => ask(),
    }
}

#[cold]
fn ask() -> Option<&'static Heap> {
    let first = NEXT.state.compare_exchange(UNKNOWN, ASKING, Ordering::AcqRel, Ordering::Acquire);
    if first.is_err() {
        // This thread asks already, or another one does.
        return (first == Err(KNOWN)).then(heap).flatten();
    }
    // SAFETY: each symbol is a function of the C library's interface, whose type the field has.
    let found = unsafe {
        Heap {
            malloc: transmute::<*mut c_void, unsafe extern "C" fn(size_t) -> *mut c_void>(symbol(c"malloc")),
            calloc: transmute::<*mut c_void, unsafe extern "C" fn(size_t, size_t) -> *mut c_void>(symbol(
                c"calloc",
            )),
            realloc: transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void, size_t) -> *mut c_void>(
                symbol(c"realloc"),
            ),
            free: transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void)>(symbol(c"free")),
            posix_memalign: transmute::<
                *mut c_void,
                unsafe extern "C" fn(*mut *mut c_void, size_t, size_t) -> c_int,
            >(symbol(c"posix_memalign")),
            aligned_alloc: transmute::<*mut c_void, unsafe extern "C" fn(size_t, size_t) -> *mut c_void>(
                symbol(c"aligned_alloc"),
            ),
            memalign: transmute::<*mut c_void, unsafe extern "C" fn(size_t, size_t) -> *mut c_void>(symbol(
                c"memalign",
            )),
            malloc_usable_size: transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void) -> size_t>(
                symbol(c"malloc_usable_size"),
            ),
        }
    };
    // SAFETY: this thread alone moved the state to ASKING, and nothing reads before KNOWN.
    unsafe { (*NEXT.heap.get()).write(found) };
    NEXT.state.store(KNOWN, Ordering::Release);
    heap()
}

/// A function of the next library that has it. A process without one can't allocate: it ends.
fn symbol(name: &CStr) -> *mut c_void {
    // SAFETY: the name is terminated and outlives the call.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    if found.is_null() {
        crate::say("no library after this one has ", name.to_str().unwrap_or("malloc"));
        std::process::abort();
    }
    found
}

/// Bytes of zeros from the early buffer; null if it is used up.
#[cold]
pub fn early(bytes: usize, align: usize) -> *mut c_void {
    let align = align.max(16);
    let base = EARLY.0.get() as usize;
    let place = |used: usize| {
        let start = (base + used).checked_next_multiple_of(align)? - base;
        let end = start.checked_add(bytes)?;
        (end <= EARLY_BYTES).then_some((start, end))
    };
    let taken = EARLY_USED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| Some(place(used)?.1));
    match taken.ok().and_then(place) {
        Some((start, _)) => (base + start) as *mut c_void,
        None => std::ptr::null_mut(),
    }
}

/// Whether an address is in the early buffer.
#[inline]
pub fn is_early(object: *mut c_void) -> bool {
    (object as usize).wrapping_sub(EARLY.0.get() as usize) < EARLY_BYTES
}

/// Bytes from an address in the early buffer to the buffer's end.
pub fn early_bytes(object: *mut c_void) -> usize {
    EARLY.0.get() as usize + EARLY_BYTES - object as usize
}

/// The kernel's `mmap`.
///
/// # Safety
/// As `mmap`'s.
pub unsafe fn mmap(
    at: *mut c_void,
    bytes: size_t,
    protection: c_int,
    flags: c_int,
    file: c_int,
    offset: i64,
) -> *mut c_void {
    // SAFETY: the caller's promise.
    unsafe { libc::syscall(libc::SYS_mmap, at, bytes, protection, flags, file, offset) as *mut c_void }
}

/// The kernel's `munmap`.
///
/// # Safety
/// As `munmap`'s.
pub unsafe fn munmap(at: usize, bytes: size_t) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { libc::syscall(libc::SYS_munmap, at, bytes) as c_int }
}

/// The kernel's `mremap`.
///
/// # Safety
/// As `mremap`'s.
pub unsafe fn mremap(
    at: *mut c_void,
    bytes: size_t,
    new: size_t,
    flags: c_int,
    to: *mut c_void,
) -> *mut c_void {
    // SAFETY: the caller's promise.
    unsafe { libc::syscall(libc::SYS_mremap, at, bytes, new, c_long::from(flags), to) as *mut c_void }
}

/// The kernel's `madvise`.
///
/// # Safety
/// As `madvise`'s.
pub unsafe fn madvise(at: usize, bytes: size_t, advice: c_int) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { libc::syscall(libc::SYS_madvise, at, bytes, c_long::from(advice)) as c_int }
}

/// The kernel's `mprotect`.
///
/// # Safety
/// As `mprotect`'s.
pub unsafe fn mprotect(at: usize, bytes: size_t, protection: c_int) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { libc::syscall(libc::SYS_mprotect, at, bytes, c_long::from(protection)) as c_int }
}

/// The kernel's `close`.
///
/// # Safety
/// As `close`'s.
pub unsafe fn close(fd: c_int) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { libc::syscall(libc::SYS_close, c_long::from(fd)) as c_int }
}

/// The kernel's `dup3`.
///
/// # Safety
/// As `dup3`'s.
pub unsafe fn dup3(fd: c_int, to: c_int, flags: c_int) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { libc::syscall(libc::SYS_dup3, c_long::from(fd), c_long::from(to), c_long::from(flags)) as c_int }
}

/// The kernel's `close_range`.
///
/// # Safety
/// As `close_range`'s.
pub unsafe fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        libc::syscall(libc::SYS_close_range, c_long::from(first), c_long::from(last), c_long::from(flags))
            as c_int
    }
}
