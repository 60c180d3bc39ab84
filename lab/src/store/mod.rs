//! A key-value store and its clients: YCSB's mixes over TCP, or in remote memory by any way that has atomic
//! operations, on the same rack.

pub mod bulk;
pub mod client;
pub(crate) mod figures;
pub mod run;
pub mod simulated;
pub mod slot;
pub mod slots;
pub mod tcp;

use crate::sys;
use slot::Slot;

/// As expected version: any.
pub const ANY: u64 = u64::MAX;

/// Why an operation of a store failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It was not answered in time.
    Lost,
    /// The returned value was never written.
    Wrong,
    /// The store can't be reached any more, in words.
    Ended(String),
}

/// A store as its clients see it. Keys count from 0.
pub trait Store {
    /// The current value.
    fn get(&mut self, key: u32, until_ns: u64) -> Result<Slot, Failure>;

    /// Writes a value in place of the expected version, or of [`ANY`]. Returns the new version once the value is there, or `None`
    /// if another version was there.
    fn put(&mut self, key: u32, expected: u64, value: &[u8], until_ns: u64) -> Result<Option<u64>, Failure>;

    /// The time: the system's monotonic clock, or virtual time.
    fn now_ns(&mut self) -> u64 {
        sys::monotonic_ns()
    }

    /// Waits.
    fn sleep_until(&mut self, at_ns: u64) {
        sys::sleep_until(at_ns);
    }
}
