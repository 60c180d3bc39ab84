//! Memory of nodes as the checks see it, whatever it is.

use super::*;
use std::fmt::Debug;

/// Memory that a node lends.
pub trait Store: Memory + Debug {
    /// Worlds of each kind in an ordinary run.
    const WORLDS: u64;
    /// How the checks say that an extent is lent before it is zeroed.
    const UNCLEAN: &'static str;

    /// Memory with that many units. An extent is not zeroed before it is asked more than `slow` times. `instance` is the node's: accesses
    /// to earlier ones reach nothing.
    fn new(units: u64, slow: u32, instance: u64) -> Self;

    /// Writes a word of an extent. Returns whether the access is valid.
    fn write(&mut self, access: &Access, nth: u64, word: u64) -> bool;

    /// A word of each unit of an extent; `None`: the access is not valid.
    fn read(&self, access: &Access) -> Option<Vec<u64>>;

    /// Start and end, in bytes, of each range that some key reaches.
    fn reached(&self) -> Vec<(u64, u64)>;

    /// Whether it is as it was at the beginning.
    fn is_clean(&self) -> bool;

    /// A violated rule, if there is one.
    fn problem(&mut self) -> Option<String>;
}

/// The first and the last unit of an extent.
pub fn units(extent: &Extent) -> (u64, u64) {
    (extent.place.start / UNIT, (extent.place.start + extent.bytes) / UNIT)
}

/// Whether some of these bytes are an extent's.
pub fn overlap(extent: &Extent, (start, end): (u64, u64)) -> bool {
    extent.place.start < end && start < extent.place.start + extent.bytes
}
