//! libCacheSim's `oracleGeneral`: records of 24 bytes, little-endian, without a header.
//!
//! ```text
//!  0       4               12      16              24
//! ┌───────┬───────────────┬───────┬───────────────┐
//! │ time  │ object        │ bytes │ next access   │   next access: the number of the request, −1 if there is none
//! └───────┴───────────────┴───────┴───────────────┘
//! ```
//!
//! An object represents a unit of memory: its address is its number times the unit. The format has neither threads nor
//! writes.

use crate::error::Position;
use crate::{Access, TraceError};
use std::collections::HashMap;
use std::io::{Read, Write};

/// Bytes of a record.
pub const RECORD_BYTES: usize = 24;
/// Requests that [`Requests`] holds at most. With a table of all objects they take 5 GB.
pub const REQUESTS_MAX: usize = 1 << 27;

/// Whether the first records are plausible: times do not fall, sizes are not 0, the next access is later or none.
pub fn begins(head: &[u8]) -> bool {
    let records = head.chunks_exact(RECORD_BYTES).take(8).map(fields);
    let mut last = 0;
    let mut plausible = records.enumerate().map(|(at, (time, _, bytes, next))| {
        let rises = std::mem::replace(&mut last, time) <= time;
        rises && bytes > 0 && bytes < 1 << 30 && (next == -1 || next == i64::MAX || next > at as i64)
    });
    head.len() >= RECORD_BYTES && plausible.all(|one| one)
}

fn fields(record: &[u8]) -> (u32, u64, u32, i64) {
    let bytes = |from: usize, to: usize| {
        record[from..to].iter().rev().fold(0u64, |value, byte| value << 8 | u64::from(*byte))
    };
    (bytes(0, 4) as u32, bytes(4, 12), bytes(12, 16) as u32, bytes(16, 24) as i64)
}

/// Reads objects as accesses to memory.
pub struct Reader<S> {
    source: S,
    position: Position,
    unit_bytes: u64,
    ended: bool,
}

impl<S: Read> Reader<S> {
    /// A reader; `file` names the source in errors.
    pub fn new(source: S, file: &str, unit_bytes: u64) -> Reader<S> {
        Reader { source, position: Position::records(file), unit_bytes, ended: false }
    }

    fn record(&mut self) -> Result<Option<Access>, TraceError> {
        self.position.count += 1;
        let mut record = Vec::with_capacity(RECORD_BYTES);
        let read = self.source.by_ref().take(RECORD_BYTES as u64).read_to_end(&mut record);
        match read.map_err(|error| self.position.io(error))? {
            0 => return Ok(None),
            RECORD_BYTES => {}
            short => {
                return Err(self.position.wrong(
                    format!("{short} bytes"),
                    "records of 24 bytes",
                    "the trace was cut short: copy it again, or cut it at a whole record",
                ));
            }
        }
        let (_, object, bytes, _) = fields(&record);
        let address = object.saturating_mul(self.unit_bytes);
        // The size is that of a cached object. In units it never reaches into the next one.
        let bytes = u64::from(bytes).clamp(1, self.unit_bytes.max(1)) as u32;
        self.position.within(address, bytes)?;
        Ok(Some(Access { address, bytes, write: false, thread: 0 }))
    }
}

impl<S: Read> Iterator for Reader<S> {
    type Item = Result<Access, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let record = self.record();
        self.ended = record.is_err();
        record.transpose()
    }
}

/// Requests for the units that accesses touch, gathered to be written: each record names the next request of its object.
#[derive(Debug)]
pub struct Requests {
    objects: Vec<u64>,
    unit_bytes: u64,
    most: usize,
}

impl Requests {
    /// None yet.
    pub fn new(unit_bytes: u64) -> Requests {
        Requests { objects: Vec::new(), unit_bytes, most: REQUESTS_MAX }
    }

    /// Adds the units of an access. False: they would be more than [`REQUESTS_MAX`], and none is added.
    pub fn add(&mut self, access: &Access) -> bool {
        let last = access.address + u64::from(access.bytes.max(1)) - 1;
        let (first, last) = (access.address / self.unit_bytes, last / self.unit_bytes);
        let fits = last - first < (self.most - self.objects.len()) as u64;
        if fits {
            self.objects.extend(first..=last);
        }
        fits
    }

    /// All of them, in order.
    pub fn objects(&self) -> &[u64] {
        &self.objects
    }
}

/// Writes objects, each of size 1, with the next access of each, so that other tools count the same misses.
pub fn write(objects: &[u64], out: &mut dyn Write) -> std::io::Result<()> {
    let mut next = vec![-1i64; objects.len()];
    let mut later: HashMap<u64, i64> = HashMap::new();
    for (at, object) in objects.iter().enumerate().rev() {
        // Requests are numbered from 1.
        next[at] = later.insert(*object, at as i64 + 1).unwrap_or(-1);
    }
    for (at, (object, next)) in objects.iter().zip(next).enumerate() {
        out.write_all(&(at as u32 / 1_000).to_le_bytes())?;
        out.write_all(&object.to_le_bytes())?;
        out.write_all(&1u32.to_le_bytes())?;
        out.write_all(&next.to_le_bytes())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_requests_are_gathered_than_fit() {
        let mut requests = Requests { most: 4, ..Requests::new(512) };
        let access = |address, bytes| Access { address, bytes, write: false, thread: 0 };
        assert!(requests.add(&access(500, 24)));
        assert!(!requests.add(&access(0, u32::MAX)), "8 M units at a time");
        assert!(!requests.add(&access(1 << 20, 3 * 512)));
        assert!(requests.add(&access(1 << 20, 2 * 512)));
        assert!(!requests.add(&access(0, 1)));
        assert_eq!(requests.objects(), [0, 1, 2048, 2049]);
    }
}
