//! The store: an index and records in the bytes of a region.
//!
//! ```text
//! index: buckets of 8 bytes, at most half of them used        records, in the order of their first writes
//! │ key + 1 (4) │ place (4) │ … 0: free │ … to a page's end   │ slot │ slot │ …
//! ```
//!
//! A read looks at the key's bucket, and at those behind it as long as they are other keys', then at the slot. Slots are those of stores
//! in memory that clients share, without their locks: one client owns this store. After a write its record may be local alone, until the
//! policy drops its blocks or the region is closed.

use crate::store::slot::{HEADER_BYTES, Slot, Word, slot_bytes};
use crate::ycsb::{Ended, Error, Store};
use p4rack_history::fill;
use p4rack_hosts::region::{RegionConfig, RegionError, RemoteRegion, Statistics};
use p4rack_hosts::remote::{Remote, WordOrder};
use p4rack_netdev::clock;
use p4rack_wire::Nanos;
use std::time::Duration;

/// Bytes of a bucket.
const BUCKET_BYTES: u64 = 8;
/// Bytes of a page, to which index and region are filled up.
const PAGE_BYTES: u64 = 4_096;
/// Order of the bytes in a slot's word.
const WORDS: WordOrder = WordOrder::BigEndian;

/// Sizes of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// Maximum records.
    pub records: u32,
    /// Bytes of a value.
    pub value_bytes: usize,
}

impl Layout {
    fn buckets(self) -> u64 {
        (2 * u64::from(self.records)).next_power_of_two()
    }

    fn index_bytes(self) -> u64 {
        (self.buckets() * BUCKET_BYTES).next_multiple_of(PAGE_BYTES)
    }

    fn slot_bytes(self) -> u64 {
        slot_bytes(self.value_bytes) as u64
    }

    /// Bytes of the region.
    pub fn region_bytes(self) -> u64 {
        (self.index_bytes() + u64::from(self.records) * self.slot_bytes()).next_multiple_of(PAGE_BYTES)
    }

    /// Where a record of the place is.
    fn slot_at(self, place: u32) -> u64 {
        self.index_bytes() + u64::from(place) * self.slot_bytes()
    }

    /// A key's first bucket.
    fn bucket(self, key: u32) -> u64 {
        let hash = (u64::from(key) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (hash >> 32) % self.buckets()
    }
}

/// Entry of the index for a key.
enum Entry {
    /// The record's place.
    There(u32),
    /// Offset of the bucket that it would get.
    Free(u64),
    /// It can't be: other keys have all buckets, or the place is none.
    Wrong,
}

/// A store in a region, for one client with one operation at a time.
pub(super) struct Cached {
    /// `None`: it could not be opened again.
    region: Option<RemoteRegion>,
    layout: Layout,
    /// Records that have been written.
    filled: u32,
    /// Bytes of a slot.
    bytes: Vec<u8>,
}

impl Cached {
    /// An empty store in a way's memory, which is zeros.
    pub fn new(way: Box<dyn Remote>, layout: Layout, config: &RegionConfig) -> Result<Cached, RegionError> {
        let region = Some(RemoteRegion::new(way, config)?);
        Ok(Cached { region, layout, filled: 0, bytes: vec![0; HEADER_BYTES + layout.value_bytes] })
    }

    /// Closes the region and opens another one over the same way: nothing of the store is local then.
    pub fn reopen(&mut self, config: &RegionConfig) -> Result<(), RegionError> {
        let region = self.region.take().ok_or_else(gone)?;
        self.region = Some(RemoteRegion::new(region.close()?, config)?);
        Ok(())
    }

    /// Sizes of the region, and its counters.
    pub fn statistics(&self) -> Result<Statistics, RegionError> {
        self.region().map(RemoteRegion::statistics)
    }

    fn region(&self) -> Result<&RemoteRegion, RegionError> {
        self.region.as_ref().ok_or_else(gone)
    }

    fn word(&self, at: u64) -> Result<[u8; 8], RegionError> {
        let mut word = [0; 8];
        self.region()?.read(at, &mut word)?;
        Ok(word)
    }

    fn find(&self, key: u32) -> Result<Entry, RegionError> {
        let first = self.layout.bucket(key);
        for nth in 0..self.layout.buckets() {
            let at = (first + nth) % self.layout.buckets() * BUCKET_BYTES;
            let word = u64::from_be_bytes(self.word(at)?);
            if word == 0 {
                return Ok(Entry::Free(at));
            }
            if word >> 32 == u64::from(key) + 1 {
                let place = word as u32;
                return Ok(if place < self.filled { Entry::There(place) } else { Entry::Wrong });
            }
        }
        Ok(Entry::Wrong)
    }

    fn read(&mut self, key: u32) -> Result<Ended, RegionError> {
        let Entry::There(place) = self.find(key)? else { return Ok(Ended::Wrong) };
        let mut bytes = std::mem::take(&mut self.bytes);
        let read = self.region().and_then(|region| region.read(self.layout.slot_at(place), &mut bytes));
        let slot = Slot::decode(&bytes, WORDS).filter(|slot| slot.key == u64::from(key));
        self.bytes = bytes;
        read.map(|()| slot.map_or(Ended::Wrong, |slot| Ended::Found(slot.version)))
    }

    fn write(&mut self, key: u32, expected: Option<u64>) -> Result<Ended, RegionError> {
        let (place, free, version) = match self.find(key)? {
            Entry::There(place) => {
                let word = self.word(self.layout.slot_at(place))?;
                (place, None, Word::from_bits(WORDS.word(word)).version)
            }
            Entry::Free(at) if self.filled < self.layout.records => (self.filled, Some(at), 0),
            Entry::Free(_) | Entry::Wrong => return Ok(Ended::Wrong),
        };
        if expected.is_some_and(|expected| expected != version) {
            return Ok(Ended::Changed);
        }
        let mut slot =
            Slot { key: key.into(), version: version + 1, value: vec![0; self.layout.value_bytes] };
        fill(slot.key, slot.version, &mut slot.value);
        self.region()?.write(self.layout.slot_at(place), &slot.encode(WORDS))?;
        if let Some(at) = free {
            let word = (u64::from(key) + 1) << 32 | u64::from(place);
            self.region()?.write(at, &word.to_be_bytes())?;
            self.filled += 1;
        }
        Ok(Ended::Wrote(slot.version))
    }
}

fn gone() -> RegionError {
    RegionError::Lost("it could not be opened again".to_owned())
}

impl Store for Cached {
    fn is_owned(&self) -> bool {
        true
    }

    fn get(&mut self, _: usize, key: u32, _: Nanos) -> Result<Option<Ended>, Error> {
        self.read(key).map(Some).map_err(Error::gone)
    }

    fn put(&mut self, _: usize, key: u32, expected: Option<u64>, _: Nanos) -> Result<Option<Ended>, Error> {
        self.write(key, expected).map(Some).map_err(Error::gone)
    }

    /// No operation is left under way.
    fn wait(&mut self, until: Nanos, _: &mut dyn FnMut(usize, Ended)) -> Result<bool, Error> {
        std::thread::sleep(Duration::from_nanos(until.saturating_sub(clock::now()).0));
        Ok(false)
    }
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
