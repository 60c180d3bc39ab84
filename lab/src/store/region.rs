//! The store in a region of remote memory with a cache in front, used by its one client. A record is its version and its fields, side by
//! side.

use super::fields::Fields;
use super::load::Load;
use crate::ycsb::{Ended, Error, Store};
use p4rack_hosts::region::RemoteRegion;
use p4rack_hosts::remote::Piece;
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
    fields: Fields,
    /// By key, the place: in the order in which records are first written, as an allocator gives it.
    places: Vec<u32>,
    next: u32,
    place_bytes: usize,
    /// The field of the client's operation.
    field: u32,
    /// Version and field, or the whole place of a record.
    record: Vec<u8>,
}

fn place_bytes(load: &Load) -> usize {
    (VERSION_BYTES + load.record_bytes() as usize).next_multiple_of(LINE_BYTES)
}

/// Bytes that records take.
pub(super) fn bytes(load: &Load) -> u64 {
    u64::from(load.records) * place_bytes(load) as u64
}

/// Bytes of the client's own memory that say where each record is.
pub(super) fn index_bytes(load: &Load) -> u64 {
    u64::from(load.records) * size_of::<u32>() as u64
}

impl<'a> RegionStore<'a> {
    /// Without records. Errors: the region is too small.
    pub(super) fn new(region: &'a RemoteRegion, load: &Load) -> Result<RegionStore<'a>, String> {
        let (has, needs) = (region.region_bytes(), bytes(load));
        if has < needs {
            return Err(format!("the region has {has} bytes, and {} records take {needs}", load.records));
        }
        Ok(RegionStore {
            region,
            fields: load.fields(),
            places: vec![NOWHERE; load.records as usize],
            next: 0,
            place_bytes: place_bytes(load),
            field: 0,
            record: Vec::with_capacity(place_bytes(load)),
        })
    }

    /// Where a record is; one that was never written is nowhere.
    fn at(&self, key: u32) -> Option<u64> {
        let place = self.places.get(key as usize).copied().filter(|place| *place != NOWHERE)?;
        Some(u64::from(place) * self.place_bytes as u64)
    }

    /// Version and one field of a record, in adjacent pieces if it is the first one.
    fn pieces(&self, at: u64, field: u32) -> [Piece; 2] {
        let bytes = self.fields.bytes();
        let version = Piece { at, bytes: VERSION_BYTES as u32 };
        let field_at = at + (VERSION_BYTES + field as usize * bytes) as u64;
        [version, Piece { at: field_at, bytes: bytes as u32 }]
    }

    /// The version of the record that was read.
    fn version(&self) -> u64 {
        self.record.first_chunk().map_or(0, |version| u64::from_le_bytes(*version))
    }

    fn version_at(&mut self, at: u64) -> Result<u64, Error> {
        self.record.resize(VERSION_BYTES, 0);
        self.region.read(at, &mut self.record).map_err(Error::gone)?;
        Ok(self.version())
    }

    /// Writes version and fields, and all of their place: blocks that it fills need no fetch.
    fn write_whole(&mut self, at: u64, key: u32) -> Result<(), Error> {
        (0..self.fields.count()).for_each(|field| self.fields.append(key, field, &mut self.record));
        self.record.resize(self.place_bytes, 0);
        self.region.write(at, &self.record).map_err(Error::gone)
    }
}

impl Store for RegionStore<'_> {
    fn is_owned(&self) -> bool {
        true
    }

    fn begin(&mut self, number: u64) {
        self.field = self.fields.of(number);
    }

    fn get(&mut self, _token: usize, key: u32, _until: Nanos) -> Result<Option<Ended>, Error> {
        let Some(at) = self.at(key) else { return Ok(Some(Ended::Wrong)) };
        let field = self.field;
        self.record.resize(VERSION_BYTES + self.fields.bytes(), 0);
        match field {
            0 => self.region.read(at, &mut self.record),
            _ => self.region.gather(&self.pieces(at, field), &mut self.record),
        }
        .map_err(Error::gone)?;
        let is_one = self.fields.is_one(key, field, &self.record[VERSION_BYTES..]);
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
            Some(at) => (at, self.version_at(at)?),
            None => {
                self.places[key as usize] = self.next;
                self.next += 1;
                (self.at(key).unwrap_or_default(), 0)
            }
        };
        if expected.is_some_and(|expected| expected != before) {
            return Ok(Some(Ended::Changed));
        }
        let field = self.field;
        self.record.clear();
        self.record.extend((before + 1).to_le_bytes());
        if before == 0 || self.fields.count() == 1 {
            self.write_whole(at, key)?;
        } else {
            self.fields.append(key, field, &mut self.record);
            self.region.scatter(&self.pieces(at, field), &self.record).map_err(Error::gone)?;
        }
        Ok(Some(Ended::Wrote(before + 1)))
    }

    /// Operations end when they begin.
    fn wait(&mut self, _until: Nanos, _ended: &mut dyn FnMut(usize, Ended)) -> Result<bool, Error> {
        Ok(false)
    }
}
