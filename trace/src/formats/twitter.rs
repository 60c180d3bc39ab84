//! Twitter's cache traces (Yang et al., OSDI 2020): a line for each request.
//!
//! ```text
//! time,key,key bytes,value bytes,client,operation,TTL
//! 0,q:q:1:8WTfjZU14ee,17,213,4,get,0
//! ```
//!
//! Each key gets memory of its own when it first occurs, of its key's and value's bytes, one after the other in steps of 16 bytes
//! as an allocator would. Clients are threads.

use super::{next_line, shown};
use crate::error::Position;
use crate::{Access, TraceError};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::io::BufRead;

const EXPECTED: &str = "time,key,key bytes,value bytes,client,operation,TTL";
const READS: &[&str] = &["get", "gets"];
const WRITES: &[&str] = &["set", "add", "replace", "cas", "append", "prepend", "delete", "incr", "decr"];
/// Steps of memory that objects take.
const STEP: u64 = 16;
/// Keys whose places are remembered: about 8 GB of tables.
const KEYS_MAX: usize = 1 << 27;

/// Whether a text begins like this format's.
pub fn begins(head: &[u8]) -> bool {
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    std::str::from_utf8(line).is_ok_and(|line| fields(line).is_some())
}

/// Key, its and its value's bytes, client, whether it writes. A key may contain commas.
fn fields(line: &str) -> Option<(&str, u64, u32, bool)> {
    let line = line.strip_suffix('\r').unwrap_or(line);
    let (time, rest) = line.split_once(',')?;
    time.parse::<u64>().ok()?;
    let mut from_end = rest.rsplitn(6, ',');
    let _: u64 = from_end.next()?.parse().ok()?;
    let operation = from_end.next()?;
    let client: u32 = from_end.next()?.parse().ok()?;
    let value: u32 = from_end.next()?.parse().ok()?;
    let key_bytes: u32 = from_end.next()?.parse().ok()?;
    let key = from_end.next()?;
    let write = WRITES.contains(&operation);
    (write || READS.contains(&operation)).then_some((
        key,
        u64::from(key_bytes) + u64::from(value),
        client,
        write,
    ))
}

/// Reads requests as accesses to the memory of their objects.
pub struct Reader<S> {
    source: S,
    position: Position,
    line: Vec<u8>,
    /// For each key its address and bytes.
    places: HashMap<Vec<u8>, (u64, u32), BuildHasherDefault<DefaultHasher>>,
    end: u64,
    ended: bool,
    keys_max: usize,
}

impl<S: BufRead> Reader<S> {
    /// A reader; `file` names the source in errors.
    pub fn new(source: S, file: &str) -> Reader<S> {
        let places = HashMap::default();
        Reader {
            source,
            position: Position::lines(file),
            line: Vec::new(),
            places,
            end: STEP,
            ended: false,
            keys_max: KEYS_MAX,
        }
    }

    fn parse(&mut self) -> Result<Option<Access>, TraceError> {
        if self.line.is_empty() {
            return Ok(None);
        }
        let wrong = |reader: &Self| {
            reader.position.wrong(
                shown(&reader.line),
                EXPECTED,
                "check the file, or name its format with --format",
            )
        };
        let parsed = std::str::from_utf8(&self.line).ok().and_then(fields);
        let Some((key, bytes, client, write)) = parsed else { return Err(wrong(self)) };
        let bytes = u32::try_from(bytes.max(1)).map_err(|_| wrong(self))?;
        let place = match self.places.get(key.as_bytes()) {
            Some(place) => *place,
            None => {
                if self.places.len() == self.keys_max {
                    return Err(self.position.wrong("a key too many", "at most 2^27 keys", "cut the trace"));
                }
                self.position.within(self.end, bytes)?;
                let place = (self.end, bytes);
                self.places.insert(key.as_bytes().to_vec(), place);
                self.end += u64::from(bytes).next_multiple_of(STEP);
                place
            }
        };
        let (address, room) = place;
        Ok(Some(Access { address, bytes: bytes.min(room), write, thread: client as u16 }))
    }
}

impl<S: BufRead> Iterator for Reader<S> {
    type Item = Result<Access, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.ended {
            let access = match next_line(&mut self.source, &mut self.line, &mut self.position) {
                Ok(None) => break,
                Ok(Some(())) => self.parse(),
                Err(error) => Err(error),
            };
            self.ended = access.is_err();
            if let Some(access) = access.transpose() {
                return Some(access);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_too_many_is_refused_with_its_line() {
        let lines = "1,a,1,10,1,get,0\n1,b,1,10,1,get,0\n2,a,1,10,1,set,0\n3,c,1,10,1,get,0\n";
        let mut reader = Reader { keys_max: 2, ..Reader::new(lines.as_bytes(), "keys.csv") };
        assert_eq!(reader.by_ref().filter(Result::is_ok).count(), 3);
        let error = Reader { keys_max: 2, ..Reader::new(lines.as_bytes(), "keys.csv") }.find_map(Result::err);
        let error = error.expect("there are three keys").to_string();
        assert!(error.starts_with("keys.csv: line 4: a key too many"), "{error}");
    }
}
