//! Operations of the interface (§3.1), and their outcomes.

use p4rack_wire::clio::{Atomic, PageSize, Rights, Status};
use std::fmt;

/// An operation on remote memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation<'a> {
    /// `ralloc`: allocates bytes, which are zeros. The outcome has their address.
    Alloc {
        /// Number of bytes; whole pages are allocated.
        bytes: u64,
        /// Size of the pages.
        page_size: PageSize,
        /// Rights to the range.
        rights: Rights,
    },
    /// `rfree`: frees pages of an allocated range. No access to them that the thread asks for later starts before it ends.
    Free {
        /// Address of the first page.
        address: u64,
        /// Number of bytes.
        bytes: u64,
    },
    /// Maps a range into another process as well. The outcome has its address there.
    Share {
        /// Address of the first page.
        address: u64,
        /// Number of bytes.
        bytes: u64,
        /// The other process, and its epoch.
        with: (u32, u16),
        /// Its rights.
        rights: Rights,
    },
    /// `rread`
    Read {
        /// Address of the first byte.
        address: u64,
        /// Number of bytes.
        bytes: u32,
    },
    /// `rwrite`. Each packet of it takes effect in one step; a longer write is not atomic.
    Write {
        /// Address of the first byte.
        address: u64,
        /// The bytes.
        bytes: &'a [u8],
    },
    /// Modifies a word in one step. The outcome has the word before.
    Modify {
        /// Address of the word, a multiple of 8.
        address: u64,
        /// The operation.
        change: Change,
    },
    /// `rlock`: takes the lock in a word that is 0. The outcome is [`Outcome::Held`] while another thread has it: ask again.
    Lock {
        /// Address of the word, a multiple of 8.
        address: u64,
    },
    /// `runlock`: releases the lock, after all that the thread asked for before.
    Unlock {
        /// Address of the word, a multiple of 8.
        address: u64,
    },
    /// `rfence`: the board executes later requests after all that it has under way.
    Fence {
        /// Whether requests of all processes wait, as in the paper, or those of this process.
        all: bool,
    },
    /// Calls an offload.
    Call {
        /// Number of the offload.
        offload: u64,
        /// Its function.
        function: u8,
        /// Arguments, at most a packet ([`Config::mtu_bytes`](super::Config::mtu_bytes)).
        arguments: &'a [u8],
        /// Maximum bytes of the results, for which the incast window keeps room. The outcome of a call with more is
        /// [`BadLength`](Status::BadLength).
        results_bytes_max: u32,
        /// Whether the call starts after all that the thread asked for before, and later requests after the call: for offloads that use
        /// memory of the caller. Else it has no order.
        is_ordered: bool,
    },
    /// `rrelease`: ends when all that the thread asked for before has ended; later requests start after it.
    Release,
}

/// Change of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It becomes the second word if it is the first.
    CompareSwap(u64, u64),
    /// This is added, modulo 2^64.
    FetchAdd(u64),
    /// It becomes this.
    Swap(u64),
}

impl Change {
    /// Number of the operation, and its operands.
    pub(super) fn operands(self) -> (Atomic, [u64; 2]) {
        match self {
            Change::CompareSwap(compare, swap) => (Atomic::CompareSwap, [compare, swap]),
            Change::FetchAdd(add) => (Atomic::FetchAdd, [add, 0]),
            Change::Swap(word) => (Atomic::Swap, [word, 0]),
        }
    }
}

/// Outcome of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome<'a> {
    /// It was executed.
    Done,
    /// The bytes of a read.
    Read(&'a [u8]),
    /// The results of a call.
    Results(&'a [u8]),
    /// The word before an atomic operation.
    Word(u64),
    /// Address of memory that was allocated or shared.
    Address(u64),
    /// The lock is held by another thread, with this [lock word](p4rack_wire::clio::lock_word).
    Held(u64),
    /// The board refused it. Of a write of several packets, some may have been executed.
    Refused(Status),
    /// No answer to any attempt: it was executed once, will be, or never is.
    Unknown,
}

/// How a request ended; the slot has the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Done,
    Word(u64),
    Address(u64),
    Held(u64),
    Refused(Status),
    Unknown,
}

/// Why an operation is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// There is no such thread or board.
    NoSuchEnd,
    /// It has no bytes, or more than [`Config::request_bytes_max`](super::Config::request_bytes_max); the arguments of a call: more than a
    /// packet.
    BadLength,
    /// The range leaves the address space.
    BadAddress,
    /// The address of its word is not a multiple of 8.
    Unaligned,
    /// The client, or the thread, has as many requests and outcomes as it may have: fetch outcomes first.
    Full,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refused::NoSuchEnd => "there is no such thread or board",
            Refused::BadLength => "it has no bytes, or more than a request may have",
            Refused::BadAddress => "the range leaves the address space",
            Refused::Unaligned => "a word's address must be a multiple of 8",
            Refused::Full => "as many requests as allowed are under way: fetch outcomes first",
        })
    }
}

impl std::error::Error for Refused {}
