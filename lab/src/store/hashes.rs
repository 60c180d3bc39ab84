//! Records of several fields on a Redis server. A record is a hash: a field `n` with the number of its writes, its version, and fields
//! `f0`, `f1`, … with values.
//!
//! ```text
//!  get  HMGET n, one field                                     ─▶ both, of one time
//!  put  MULTI, HINCRBY n, HSET one field (first: all), EXEC    ─▶ the version that this leaves
//!       EVAL: HSET one field, HINCRBY n, if the version is …   ─▶ the version that this leaves, or 0
//! ```

use super::fields::Fields;
use super::lines::{self, LINE_BYTES_MAX};
use super::piped::{Next, PendingRequest, Protocol, Purpose};
use super::redis::{self, Reply, command, expect, reply, wrote};
use crate::ycsb::Ended;
use std::io;

/// Changes a field in place of one version: KEYS is of the record, ARGV the version, the field and another value.
const CHANGE: &str = "if redis.call('HGET', KEYS[1], 'n') ~= ARGV[1] then return 0 end \
                      redis.call('HSET', KEYS[1], ARGV[2], ARGV[3]) \
                      return redis.call('HINCRBY', KEYS[1], 'n', 1)";

/// The protocol of a client.
#[derive(Debug)]
pub(super) struct Hashes {
    fields: Fields,
    /// By key, whether the record was written.
    is_written: Vec<bool>,
    /// Values of a request.
    values: Vec<u8>,
}

impl Hashes {
    /// Records with these fields.
    pub(super) fn new(records: u32, fields: Fields) -> Hashes {
        Hashes { fields, is_written: vec![false; records as usize], values: Vec::new() }
    }

    /// Sets fields to other values.
    fn set(&mut self, key: u32, (first, count): (u32, u32), out: &mut Vec<u8>) {
        self.values.clear();
        (first..first + count).for_each(|field| self.fields.append(key, field, &mut self.values));
        let names: Vec<String> = (first..first + count).map(name).collect();
        let record = record(key);
        let mut words: Vec<&[u8]> = vec![b"HSET", record.as_bytes()];
        for (name, value) in names.iter().zip(self.values.chunks_exact(self.fields.bytes())) {
            words.extend([name.as_bytes(), value]);
        }
        command(out, &words);
    }
}

fn record(key: u32) -> String {
    format!("r{key}")
}

fn name(field: u32) -> String {
    format!("f{field}")
}

impl Protocol for Hashes {
    fn ask(&mut self, asked: PendingRequest, out: &mut Vec<u8>) {
        let (record, field) = (record(asked.key), self.fields.of(asked.number));
        match asked.what {
            Purpose::Get | Purpose::Count => {
                command(out, &[b"HMGET", record.as_bytes(), b"n", name(field).as_bytes()]);
            }
            Purpose::Put(None) => {
                let is_written = self.is_written.get_mut(asked.key as usize);
                let is_first = is_written.is_some_and(|is_written| !std::mem::replace(is_written, true));
                command(out, &[b"MULTI"]);
                command(out, &[b"HINCRBY", record.as_bytes(), b"n", b"1"]);
                let which = if is_first { (0, self.fields.count()) } else { (field, 1) };
                self.set(asked.key, which, out);
                command(out, &[b"EXEC"]);
            }
            Purpose::Put(Some(expected)) => {
                self.values.clear();
                self.fields.append(asked.key, field, &mut self.values);
                let (expected, name) = (expected.to_string(), name(field));
                let words: [&[u8]; 7] = [
                    b"EVAL",
                    CHANGE.as_bytes(),
                    b"1",
                    record.as_bytes(),
                    expected.as_bytes(),
                    name.as_bytes(),
                    &self.values,
                ];
                command(out, &words);
            }
        }
    }

    fn answer(&mut self, asked: PendingRequest, input: &[u8]) -> io::Result<Option<(Next, usize)>> {
        let (fields, field) = (&self.fields, self.fields.of(asked.number));
        lines::read(input, |lines| {
            let how = match asked.what {
                Purpose::Get | Purpose::Count => {
                    redis::found(lines, |value| fields.is_one(asked.key, field, value))?
                }
                Purpose::Put(None) => {
                    expect(lines, Reply::Word(b"OK"))?;
                    expect(lines, Reply::Word(b"QUEUED"))?;
                    expect(lines, Reply::Word(b"QUEUED"))?;
                    expect(lines, Reply::Array(2))?;
                    let version = reply(lines)?;
                    match reply(lines)? {
                        // How many fields are new.
                        Reply::Number(_) => wrote(version),
                        _ => Ended::Wrong,
                    }
                }
                Purpose::Put(Some(expected)) => redis::changed(reply(lines)?, expected),
            };
            Ok(Next::Ended(how))
        })
    }

    fn answer_bytes_max(&self) -> usize {
        self.fields.bytes() + 8 * LINE_BYTES_MAX
    }
}
