//! How a mapping uses local memory and serves faults.

use p4rack_wire::Nanos;

/// Bytes of a page.
pub const PAGE_BYTES: usize = 4_096;

/// Where faults are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Faults {
    /// In the thread that faults, by a handler of SIGBUS. Needs no privileges. System calls that are passed addresses of absent pages
    /// fail with EFAULT. A thread that blocks SIGBUS must not touch the range: the kernel ends the process. Not for programs that run
    /// on stacks of their own making, as Go's and Java's do.
    InThread,
    /// By threads of the mapping. System calls may use the range as any memory. [`check_privileges`](super::check_privileges) says
    /// whether the process may do this.
    #[default]
    ByThread,
}

/// How a mapping uses local memory and serves faults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappingConfig {
    /// Where faults are served.
    pub faults: Faults,
    /// Most bytes of pages in place, of copies of pages, and of the mapping's tables together. The region's bytes are its own.
    pub pages_bytes: u64,
    /// Whether the range begins as zeros, whatever the region contains. Otherwise it begins with the region's content.
    pub starts_zeroed: bool,
    /// Threads that serve faults, at least 1; of [`Faults::ByThread`].
    pub threads: u16,
    /// How long a thread that has served a fault looks for the next one before it sleeps; of [`Faults::ByThread`]. It takes a processor
    /// for that time, and saves the faulting thread the time to wake one.
    pub spin: Nanos,
    /// Most pages that leave together, 1 to 32.
    pub batch_pages: u16,
}

impl MappingConfig {
    /// A range that begins with the region's content, and whose faults threads serve.
    pub fn new(pages_bytes: u64) -> MappingConfig {
        MappingConfig {
            faults: Faults::ByThread,
            pages_bytes,
            starts_zeroed: false,
            threads: 4,
            spin: Nanos::ZERO,
            batch_pages: 32,
        }
    }
}

/// Divides local memory: the bytes of pages, and those of the region behind them.
///
/// A page in place is as fast as any memory, and a block in the region saves a fetch. A quarter for blocks keeps the blocks of small
/// objects near whose pages do not fit.
pub fn split(local_bytes: u64) -> (u64, u64) {
    let region_bytes = local_bytes / 4;
    (local_bytes - region_bytes, region_bytes)
}
