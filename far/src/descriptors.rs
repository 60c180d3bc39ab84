//! The library's descriptors. A program may close all descriptors that it does not know, as daemons do. Without userfaultfd's, the kernel
//! would fill absent pages with zeros. So calls of the program that close descriptors leave these out, as if they were not open.

use crate::threads::Inside;
use crate::{far, near};
use libc::{c_int, c_uint};
use std::io;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

/// Descriptors have numbers below this: the kernel gives the lowest free one.
const NUMBERS: usize = 4_096;

/// A bit for each descriptor of the library.
static OURS: [AtomicU64; NUMBERS / 64] = [const { AtomicU64::new(0) }; NUMBERS / 64];
/// The process that has them: a child of `vfork` shares this memory, and has descriptors of its own.
static PROCESS: AtomicI32 = AtomicI32::new(0);

/// All open descriptors of the process.
pub fn all() -> io::Result<Vec<c_int>> {
    let listed = std::fs::read_dir("/proc/self/fd")?
        .map(|entry| entry.map(|entry| entry.file_name().to_str().and_then(|name| name.parse().ok())))
        .filter_map(Result::transpose)
        .collect::<io::Result<Vec<c_int>>>()?;
    // SAFETY: it takes no pointers.
    let is_open = |fd: &c_int| unsafe { libc::fcntl(*fd, libc::F_GETFD) } >= 0;
    // The list's own descriptor is closed by now.
    Ok(listed.into_iter().filter(is_open).collect())
}

/// Protects all descriptors but those that the program had before. Errors: they can't be listed, or a number is too large.
pub fn protect_all_but(before: &[c_int]) -> io::Result<()> {
    for fd in all()?.into_iter().filter(|fd| !before.contains(fd)) {
        let (word, bit) = place(fd as c_uint)
            .ok_or_else(|| io::Error::other(format!("descriptor {fd}; expected below {NUMBERS}")))?;
        word.fetch_or(bit, Ordering::Relaxed);
    }
    PROCESS.store(this_process(), Ordering::Relaxed);
    Ok(())
}

/// Closes them in a forked child: its parent's locks and connections must not last as long as the child.
pub fn close_all() {
    for fd in (0..NUMBERS as c_uint).filter(|fd| is_ours(*fd)) {
        // SAFETY: this process doesn't use the objects that own them.
        unsafe { near::close(fd as c_int) };
        forget(fd);
    }
}

fn place(fd: c_uint) -> Option<(&'static AtomicU64, u64)> {
    OURS.get(fd as usize / 64).map(|word| (word, 1 << (fd % 64)))
}

fn is_ours(fd: c_uint) -> bool {
    place(fd).is_some_and(|(word, bit)| word.load(Ordering::Relaxed) & bit != 0)
}

fn forget(fd: c_uint) {
    if let Some((word, bit)) = place(fd) {
        word.fetch_and(!bit, Ordering::Relaxed);
    }
}

fn this_process() -> libc::pid_t {
    // SAFETY: it has no arguments and can't fail.
    unsafe { libc::syscall(libc::SYS_getpid) as libc::pid_t }
}

/// Whether a descriptor must stay in spite of this call. The library itself may close it.
fn stays(fd: c_uint) -> bool {
    if !is_ours(fd) || far::is_forked() || PROCESS.load(Ordering::Relaxed) != this_process() {
        return false;
    }
    let is_programs = Inside::enter().is_some();
    if !is_programs {
        forget(fd);
    }
    is_programs
}

fn not_open() -> c_int {
    // SAFETY: the C library gives each thread its own `errno`.
    unsafe { *libc::__errno_location() = libc::EBADF };
    -1
}

/// `close`.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn close(fd: c_int) -> c_int {
    if stays(fd as c_uint) {
        return not_open();
    }
    // SAFETY: the caller's promise.
    unsafe { near::close(fd) }
}

/// `dup2`.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dup2(fd: c_int, to: c_int) -> c_int {
    if fd == to {
        // SAFETY: it takes no pointers.
        return if unsafe { libc::fcntl(fd, libc::F_GETFD) } < 0 { -1 } else { to };
    }
    // SAFETY: the caller's promise.
    unsafe { dup3(fd, to, 0) }
}

/// `dup3`.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dup3(fd: c_int, to: c_int, flags: c_int) -> c_int {
    if stays(to as c_uint) {
        return not_open();
    }
    // SAFETY: the caller's promise.
    unsafe { near::dup3(fd, to, flags) }
}

/// `close_range`.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    let mut from = first;
    let end = last.min(NUMBERS as c_uint - 1);
    // They are closed on `exec` anyway.
    let closes = flags as c_uint & libc::CLOSE_RANGE_CLOEXEC == 0;
    for fd in (first..=end).filter(|fd| closes && stays(*fd)) {
        // SAFETY: the caller's promise, for these.
        if from < fd && unsafe { near::close_range(from, fd - 1, flags) } != 0 {
            return -1;
        }
        from = fd + 1;
    }
    if from > last && from > first {
        return 0;
    }
    // SAFETY: the caller's promise.
    unsafe { near::close_range(from, last, flags) }
}

/// `closefrom`.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn closefrom(first: c_int) {
    // SAFETY: the caller's promise.
    unsafe { close_range(first.max(0) as c_uint, c_uint::MAX, 0) };
}
