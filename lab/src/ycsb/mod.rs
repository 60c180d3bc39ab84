//! YCSB's mixes on any key-value store: one client, with several operations in flight. Each result is checked.
//!
//! ```text
//!  Client ─ Store ─┬─ Slots      one-sided: records side by side in remote memory, which clients lock with atomic operations
//!                  ├─ Logged     a log whose older part is in remote memory, owned by its client
//!                  ├─ Cached     index and records in a cached region, owned by its client
//!                  ├─ KeyStore   a key-value offload beside the memory
//!                  ├─ RegionStore records side by side in a region with a cache, used by one client
//!                  └─ PipedStore a server of records: p4rack's, Redis, Memcached
//! ```
//!
//! The first three are over any way to remote memory that has what they need.

mod client;
mod report;

pub use client::{Client, ClientConfig, run};
pub(crate) use report::Teller;
pub use report::{ClientReport, Contents, MixReport, SoFar};

use p4rack_netdev::clock;
use p4rack_wire::Nanos;

/// How an operation of a store ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// A whole value was read, of this version.
    Found(u64),
    /// A value was written, of this version.
    Wrote(u64),
    /// Nothing was written, since the version wasn't the expected one.
    Changed,
    /// It was not answered in time.
    Lost,
    /// The value read was never written.
    Wrong,
}

/// Why a client can't go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The store can no longer be used.
    #[error("{0}")]
    Gone(String),
    /// No operation in flight ends.
    #[error("the store does not answer")]
    Silence,
    /// The store ended an operation that the client had not begun.
    #[error("the store answered what the client had not asked")]
    Unasked,
    /// Not all records could be written.
    #[error("{0} records could not be written and read back")]
    NotLoaded(u64),
    /// No progress reports.
    #[error("printing progress: {0}")]
    Telling(#[from] std::io::Error),
}

impl Error {
    /// Error of a store that can no longer be used.
    pub(crate) fn gone(error: impl std::fmt::Display) -> Error {
        Error::Gone(error.to_string())
    }
}

/// A client's costs so far, where known.
#[derive(Clone, Copy, Debug, Default)]
pub struct Costs {
    /// Values that were read from remote memory, by a store that has others.
    pub cold_reads: Option<u64>,
    /// Processor time of the client's thread, kernel included.
    pub thread_cpu: Option<Nanos>,
}

/// A store as its clients see it. Keys count from 0, and so do versions: the first write of a record leaves version 1. Values are the
/// store's to make, so that it knows them again; with each comes its version.
///
/// An operation has a token, an index below the client's depth, until it has ended: immediately, or in [`wait`](Self::wait).
pub trait Store {
    /// Whether this client alone writes the records.
    fn is_owned(&self) -> bool {
        false
    }

    /// What comes next is of the client's operation of this number, which counts from 1. Stores that choose by it choose the same.
    fn begin(&mut self, _number: u64) {}

    /// Begins to read a record. Returns how that ended, if it has.
    fn get(&mut self, token: usize, key: u32, until: Nanos) -> Result<Option<Ended>, Error>;

    /// Begins to write a record: in place of the expected version, which this token has just read, or of any.
    fn put(
        &mut self,
        token: usize,
        key: u32,
        expected: Option<u64>,
        until: Nanos,
    ) -> Result<Option<Ended>, Error>;

    /// Hands over operations that have ended, in the order in which they took effect. If none has, waits for one, at most until then;
    /// may come back earlier. Returns whether anything came.
    fn wait(&mut self, until: Nanos, ended: &mut dyn FnMut(usize, Ended)) -> Result<bool, Error>;

    /// Whether the store has no operations of its own in flight.
    fn is_quiet(&self) -> bool {
        true
    }

    /// The time: the system's monotonic clock, or virtual time.
    fn now(&self) -> Nanos {
        clock::now()
    }

    /// Its client's costs so far.
    fn costs(&self) -> Costs {
        Costs { cold_reads: None, thread_cpu: Some(clock::thread_cpu()) }
    }
}
