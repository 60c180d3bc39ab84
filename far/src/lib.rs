//! A library for `LD_PRELOAD` that puts an unmodified program's large allocations in remote memory; `p4rack far run` starts programs with
//! it. docs/far.md explains it.
//!
//! ```text
//!  program ─ malloc, mmap, … ─▶ heap, maps ─┬─ large ─▶ Far: extents over a mapping ─ faults ─▶ region ─▶ way
//!                                           └─ small ─▶ the next allocator, the kernel
//! ```
//!
//! - **Far memory** is one range of addresses, so one comparison identifies a freed far pointer.
//! - **The library's own memory** is near: its Rust code allocates with the C library's allocator by names that are not interposed, and its
//!   threads' mappings are the kernel's ([`threads`]). Its descriptors outlive a program that closes all ([`descriptors`]).
//! - **No lock** of the program's allocator is needed to serve a fault, so that allocator's own tables may be far.

mod descriptors;
mod extents;
mod far;
mod global;
mod heap;
mod keeper;
mod maps;
mod near;
mod process;
mod start;
mod threads;

#[global_allocator]
static OWN: global::Own = global::Own;

/// Writes a line to standard error without allocating.
fn say(what: &str, more: &str) {
    for part in ["p4rack far: ", what, more, "\n"] {
        // SAFETY: the bytes are readable. A message that can't be written is lost.
        unsafe { libc::write(libc::STDERR_FILENO, part.as_ptr().cast(), part.len()) };
    }
}
