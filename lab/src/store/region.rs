//! The store in a region of remote memory with a cache in front, used by its one client. A record is its version and its value, side by side.

use super::piped::Values;
use crate::ycsb::{Ended, Error, Store};
use p4rack_hosts::region::RemoteRegion;
use p4rack_wire::Nanos;

/// Bytes of a version.
const VERSION_BYTES: usize = 8;
/// Records begin at multiples of this.
const LINE_BYTES: usize = 64;
/// A record that was never written.
const NOWHERE: u32 = u32::MAX;

/// The store.
pub(super) struct RegionStore<'a> {
    region: &'a RemoteRegion,
    values: Values,
    /// By key, the place: in the order in which records are first written, as an allocator gives it.
    places: Vec<u32>,
    next: u32,
    record: Vec<u8>,
}

fn record_bytes(value_bytes: u32) -> usize {
    VERSION_BYTES + value_bytes as usize
}

fn place_bytes(value_bytes: u32) -> usize {
    record_bytes(value_bytes).next_multiple_of(LINE_BYTES)
}

/// Bytes that records take.
pub(super) fn bytes(records: u32, value_bytes: u32) -> u64 {
    u64::from(records) * place_bytes(value_bytes) as u64
}

impl<'a> RegionStore<'a> {
    /// Without records. `seed` is the seed of the values. Errors: the region is too small.
    pub(super) fn new(
        region: &'a RemoteRegion,
        records: u32,
        value_bytes: u32,
        seed: u64,
    ) -> Result<RegionStore<'a>, String> {
        let (has, needs) = (region.region_bytes(), bytes(records, value_bytes));
        if has < needs {
            return Err(format!("the region has {has} bytes, and {records} records take {needs}"));
        }
        Ok(RegionStore {
            region,
            values: Values::new(value_bytes as usize, seed),
            places: vec![NOWHERE; records as usize],
            next: 0,
            record: vec![0; record_bytes(value_bytes)],
        })
    }

    /// Where a record is; one that was never written is nowhere.
    fn at(&self, key: u32) -> Option<u64> {
        let place = self.places.get(key as usize).copied().filter(|place| *place != NOWHERE)?;
        Some(u64::from(place) * place_bytes(self.values.bytes() as u32) as u64)
    }

    /// The version of the record that was read.
    fn version(&self) -> u64 {
        self.record.first_chunk().map_or(0, |version| u64::from_le_bytes(*version))
    }
}

impl Store for RegionStore<'_> {
    fn is_owned(&self) -> bool {
        true
    }

    fn get(&mut self, _token: usize, key: u32, _until: Nanos) -> Result<Option<Ended>, Error> {
        let Some(at) = self.at(key) else { return Ok(Some(Ended::Wrong)) };
        self.region.read(at, &mut self.record).map_err(Error::gone)?;
        let is_one = self.values.is_one(key, &self.record[VERSION_BYTES..]);
        Ok(Some(if is_one { Ended::Found(self.version()) } else { Ended::Wrong }))
    }

    fn put(
        &mut self,
        _token: usize,
        key: u32,
        expected: Option<u64>,
        _until: Nanos,
    ) -> Result<Option<Ended>, Error> {
        let (at, before) = match self.at(key) {
            Some(at) => {
                self.region.read(at, &mut self.record[..VERSION_BYTES]).map_err(Error::gone)?;
                (at, self.version())
            }
            None => {
                self.places[key as usize] = self.next;
                self.next += 1;
                (self.at(key).unwrap_or_default(), 0)
            }
        };
        if expected.is_some_and(|expected| expected != before) {
            return Ok(Some(Ended::Changed));
        }
        self.record.clear();
        self.record.extend((before + 1).to_le_bytes());
        self.values.append(key, &mut self.record);
        self.region.write(at, &self.record).map_err(Error::gone)?;
        Ok(Some(Ended::Wrote(before + 1)))
    }

    /// Operations end when they begin.
    fn wait(&mut self, _until: Nanos, _ended: &mut dyn FnMut(usize, Ended)) -> Result<bool, Error> {
        Ok(false)
    }
}
