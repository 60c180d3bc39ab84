//! Errors of a region.

use p4rack_cache::{PARTS, POLICIES, Refused};

/// Why a region could not be opened, or an access failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegionError {
    /// No policy has this name.
    #[error("policy: `{name}`; expected one of {}", names())]
    Policy {
        /// As given.
        name: String,
    },
    /// Bytes of a block.
    #[error("block_bytes: {0}; expected 64, 128, 256, … 4096")]
    Block(u32),
    /// Local memory is too small or too large.
    #[error(transparent)]
    Room(#[from] Refused),
    /// The way takes too few operations for a block.
    #[error(
        "block_bytes: {bytes}, which takes {operations} operations on this way, of at most {most}: use smaller blocks"
    )]
    Way {
        /// Bytes of a block.
        bytes: u32,
        /// Operations for it.
        operations: u64,
        /// Operations of the way in flight.
        most: usize,
    },
    /// The region is too long for its blocks.
    #[error(
        "region_bytes: {bytes}; expected at most {most_bytes} with blocks of {block_bytes}: reserve fewer bytes, or use larger blocks"
    )]
    Long {
        /// Bytes of the region.
        bytes: u64,
        /// Bytes of a block.
        block_bytes: u32,
        /// Bytes of the longest region.
        most_bytes: u64,
    },
    /// The region's thread did not start.
    #[error("starting the thread of a region: {0}; free memory or threads")]
    Thread(String),
    /// Bytes behind the end.
    #[error("bytes {at} to {end} of a region of {region_bytes}")]
    OutOfBounds {
        /// The first one.
        at: u64,
        /// Behind the last one.
        end: u64,
        /// Bytes of the region.
        region_bytes: u64,
    },
    /// Pieces and buffer differ.
    #[error("pieces of {pieces} bytes with a buffer of {buffer}")]
    Length {
        /// Bytes of all pieces.
        pieces: u64,
        /// Bytes of the buffer.
        buffer: u64,
    },
    /// A view of nothing.
    #[error("a view of 0 bytes; expected 1 or more")]
    Empty,
    /// Too many views.
    #[error("{0} views are open, the limit: close one first, or raise `guards`")]
    Guards(u16),
    /// Seconds for which views of a block kept an access from it, or views that write kept a flush: one view, or several that overlapped.
    #[error("views of the same block were open whenever it was tried, for {0} s: close them first")]
    Held(u64),
    /// Other accesses have all places of those that wait for a fetch, and do not go on although nothing is under way.
    #[error(
        "other accesses wait, as many as may, and have not gone on for {0} s: use fewer threads, or raise `local_bytes`"
    )]
    Crowded(u64),
    /// Remote memory is lost, with local changes of it.
    #[error("remote memory is lost, and the region with it: {0}")]
    Lost(String),
}

fn names() -> String {
    let names = POLICIES.iter().chain(PARTS).map(|policy| policy.name);
    names.collect::<Vec<_>>().join(", ")
}
