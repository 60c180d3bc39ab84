//! Traces of memory accesses: reading, writing, making, filtering through a CPU's caches, and summaries.
//!
//! ```text
//!  file ─ formats ─┐                                    ┌─ Summary: footprint, density, reuse, runs
//!                  ├─▶ Access ─▶ CpuCache ─▶ Memory ──▶ │
//!  TOML ─ synth ───┘                                    └─ Places: addresses without gaps, for a cache's policies
//! ```
//!
//! Readers hold one record at a time, so traces may be larger than memory. Each error names the file, the line or record, what was
//! expected, and what to do.

mod cpu;
mod error;
pub mod formats;
mod places;
mod summary;
pub mod synth;

pub use cpu::{CpuCache, MODELS, Memory, Model};
pub use error::{At, TraceError};
pub use places::Places;
pub use summary::{Summary, Watcher};

/// Bytes of a CPU's cache line.
pub const LINE_BYTES: u64 = 64;
/// Bytes of a page.
pub const PAGE_BYTES: u64 = 4096;
/// Addresses are below this.
pub const ADDRESS_END: u64 = 1 << 48;

/// An access of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The first byte's address, below [`ADDRESS_END`].
    pub address: u64,
    /// How many bytes, at least 1.
    pub bytes: u32,
    /// Whether it changes them.
    pub write: bool,
    /// Which thread or client.
    pub thread: u16,
}

impl Access {
    /// The cache lines that it touches, by number.
    pub fn lines(&self) -> impl Iterator<Item = u64> + use<> {
        let last = self.address + u64::from(self.bytes.max(1)) - 1;
        self.address / LINE_BYTES..=last / LINE_BYTES
    }
}
