//! The pool's records. Their content is computed from place and version, so a hundred million of them need no memory,
//! and every reader can check its bytes.

use p4rack_fabric::roce::{Access, Denied, Modify, RegisteredMemory, RemoteAddress};
use std::collections::BTreeMap;

/// Key of the pool's memory, and address of its first byte.
pub(super) const POOL_KEY: u32 = 0x99;
pub(super) const POOL_START: u64 = 1 << 32;
/// Bytes behind the records for a hostile host. Nothing is stored there.
pub(super) const SCRATCH_BYTES: u64 = 16 << 20;
/// Bytes of a word.
const WORD: usize = 8;

/// A word of a record: by its place among all words of the table, and the version.
#[inline]
pub(super) fn word(place: u64, version: u32) -> u64 {
    let mut z = (place ^ u64::from(version) << 44).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 32)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z ^ (z >> 29)
}

/// A mistake planted by a test, which the checks have to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CowbirdPlant {
    /// One read of 64 brings a wrong bit.
    FlippedBit,
    /// One write of 64 does not reach the memory.
    LostWrite,
}

/// Records as memory of an adapter.
#[derive(Clone, Debug)]
pub(super) struct Records {
    bytes: u64,
    /// Words written since the beginning.
    written: BTreeMap<u64, u64>,
    plant: Option<CowbirdPlant>,
    accesses: std::cell::Cell<u64>,
}

impl Records {
    pub fn new(bytes: u64, plant: Option<CowbirdPlant>) -> Records {
        Records { bytes, written: BTreeMap::new(), plant, accesses: std::cell::Cell::new(0) }
    }

    /// Place of the first word of an access: records are whole words.
    fn first(&self, place: RemoteAddress, bytes: usize) -> Result<u64, Denied> {
        if place.key != POOL_KEY {
            return Err(Denied::Key);
        }
        let at = place.address.checked_sub(POOL_START).ok_or(Denied::Bounds)?;
        let fits = at.checked_add(bytes as u64).is_some_and(|end| end <= self.bytes + SCRATCH_BYTES);
        let whole = at.is_multiple_of(WORD as u64) && bytes.is_multiple_of(WORD);
        if fits && whole { Ok(at / WORD as u64) } else { Err(Denied::Bounds) }
    }

    /// Whether the planted mistake applies to this access.
    fn strikes(&self, plant: CowbirdPlant) -> bool {
        self.accesses.set(self.accesses.get() + 1);
        self.plant == Some(plant) && self.accesses.get().is_multiple_of(64)
    }
}

impl RegisteredMemory for Records {
    fn check(&self, place: RemoteAddress, _: Access, bytes: u32) -> Result<(), Denied> {
        self.first(place, bytes as usize).map(|_| ())
    }

    fn read(&self, place: RemoteAddress, into: &mut [u8]) -> Result<(), Denied> {
        let first = self.first(place, into.len())?;
        for (bytes, at) in into.chunks_exact_mut(WORD).zip(first..) {
            let value = match self.written.is_empty() {
                true => word(at, 0),
                false => self.written.get(&at).copied().unwrap_or_else(|| word(at, 0)),
            };
            bytes.copy_from_slice(&value.to_le_bytes());
        }
        if self.strikes(CowbirdPlant::FlippedBit) {
            into[0] ^= 4;
        }
        Ok(())
    }

    fn write(&mut self, place: RemoteAddress, bytes: &[u8]) -> Result<(), Denied> {
        let first = self.first(place, bytes.len())?;
        if first * WORD as u64 >= self.bytes || self.strikes(CowbirdPlant::LostWrite) {
            return Ok(());
        }
        for (bytes, at) in bytes.as_chunks::<WORD>().0.iter().zip(first..) {
            self.written.insert(at, u64::from_le_bytes(*bytes));
        }
        Ok(())
    }

    fn modify(&mut self, place: RemoteAddress, _: Modify) -> Result<u64, Denied> {
        let first = self.first(place, WORD)?;
        if first * WORD as u64 >= self.bytes { Ok(0) } else { Err(Denied::Rights) }
    }
}

/// Fills a record with its content.
pub(super) fn fill(record: &mut [u8], first: u64, version: u32) {
    for (bytes, at) in record.chunks_exact_mut(WORD).zip(first..) {
        bytes.copy_from_slice(&word(at, version).to_le_bytes());
    }
}

/// Whether a record has the content of one of these versions.
pub(super) fn is_right(record: &[u8], first: u64, versions: std::ops::RangeInclusive<u32>) -> bool {
    let words = record.as_chunks::<WORD>().0;
    let is = |version: u32| {
        words.iter().zip(first..).all(|(bytes, at)| u64::from_le_bytes(*bytes) == word(at, version))
    };
    versions.rev().any(is)
}
