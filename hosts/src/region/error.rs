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
    /// The way, or local memory, is too small or too large.
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
    /// A view is in the way.
    #[error("a view of the same bytes has been open for {0} s: close it first")]
    Held(u64),
    /// Remote memory is lost, with local changes of it.
    #[error("remote memory is lost, and the region with it: {0}")]
    Lost(String),
}

fn names() -> String {
    let names = POLICIES.iter().chain(PARTS).map(|policy| policy.name);
    names.collect::<Vec<_>>().join(", ")
}
