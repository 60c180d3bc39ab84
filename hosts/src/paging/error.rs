//! Errors of a mapping.

use crate::region::RegionError;
use std::io;

/// Why there is no mapping, or an operation on one failed.
#[derive(Debug, thiserror::Error)]
pub enum MappingError {
    /// The process may not do this, or the kernel can't.
    #[error("userfaultfd: {what}: {why}; {help}")]
    Userfaultfd {
        /// The attempted operation.
        what: &'static str,
        /// The kernel's answer.
        why: String,
        /// Advice to the user.
        help: &'static str,
    },
    /// A call of the system failed.
    #[error("{what}: {source}")]
    System {
        /// The attempted operation.
        what: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// Too little memory for pages.
    #[error("pages_bytes: {given}; expected at least {least} for a region of {region_bytes} bytes")]
    TooSmall {
        /// As configured.
        given: u64,
        /// Least bytes that suffice.
        least: u64,
        /// Bytes of the region.
        region_bytes: u64,
    },
    /// More than a mapping's tables can name.
    #[error("{what}: {given}; expected at most {most}")]
    TooLarge {
        /// Name of the setting.
        what: &'static str,
        /// Its value.
        given: u64,
        /// Largest value.
        most: u64,
    },
    /// The region has less than a page.
    #[error("a region of {0} bytes; expected at least 4096")]
    NoPage(u64),
    /// No thread serves faults.
    #[error("threads: 0; expected 1 or more")]
    NoThread,
    /// Pages that leave together.
    #[error("batch_pages: {0}; expected 1 to 32")]
    Batch(u16),
    /// Not whole pages of the range.
    #[error("bytes {at} to {end} of a range of {bytes}; expected whole pages of 4096 bytes")]
    Unaligned {
        /// The first one.
        at: u64,
        /// Behind the last one.
        end: u64,
        /// Bytes of the range.
        bytes: u64,
    },
    /// This processor's faults don't say whether they write.
    #[error(
        "faults: in_thread on this processor; expected by_thread, as only x86-64 names the kind of a fault"
    )]
    Processor,
    /// As many mappings of [`Faults::InThread`](super::Faults) as a process may have.
    #[error(
        "{0} mappings serve faults in the thread, the limit of a process: drop one first, or use by_thread"
    )]
    Mappings(usize),
    /// Pages no longer move.
    #[error("the mapping is lost: {0}")]
    Lost(String),
    /// The region failed.
    #[error(transparent)]
    Region(#[from] RegionError),
}

impl MappingError {
    /// Of the last system call.
    pub(super) fn last(what: &'static str) -> MappingError {
        MappingError::System { what, source: io::Error::last_os_error() }
    }
}
