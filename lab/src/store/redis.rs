//! The store on a Redis server, by RESP. A record is two strings: its value, and the number of its writes, its version.
//!
//! ```text
//!  get  MGET version value                                  ─▶ both, of one time
//!  put  MULTI, INCR version, SET value, EXEC                ─▶ the version that this leaves
//!       EVAL: SET value, INCR version, if the version is …  ─▶ the version that this leaves, or 0
//! ```
//!
//! All of a request leaves in one piece, so each is one exchange.

use super::lines::{self, LINE_BYTES_MAX, Lines, Stop, failed, number};
use super::piped::{Next, PendingRequest, Protocol, Purpose, Values};
use crate::ycsb::Ended;
use std::io;

/// Changes a value in place of one version: KEYS are of version and value, ARGV the version and another value.
const CHANGE: &str = "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end \
                      redis.call('SET', KEYS[2], ARGV[2]) \
                      return redis.call('INCR', KEYS[1])";

/// The protocol of a client.
#[derive(Debug)]
pub(super) struct Redis {
    values: Values,
    value: Vec<u8>,
}

impl Redis {
    /// Values have a multiple of 8 bytes, and are made from a seed.
    pub(super) fn new(value_bytes: usize, seed: u64) -> Redis {
        Redis { values: Values::new(value_bytes, seed), value: Vec::new() }
    }
}

/// Appends a command.
pub(super) fn command(out: &mut Vec<u8>, words: &[&[u8]]) {
    out.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
    for word in words {
        out.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
}

/// A reply; an array's elements follow as replies of their own.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reply<'a> {
    Word(&'a [u8]),
    Number(u64),
    Bytes(&'a [u8]),
    /// No such key.
    Nothing,
    Array(usize),
}

/// The next reply. Errors are replies of their own, which end the answer.
pub(super) fn reply<'a>(lines: &mut Lines<'a>) -> Result<Reply<'a>, Stop> {
    let line = lines.line()?;
    match line.split_first() {
        Some((b'+', word)) => Ok(Reply::Word(word)),
        Some((b':', value)) => number(value).map(Reply::Number),
        Some((b'$', b"-1")) => Ok(Reply::Nothing),
        Some((b'$', bytes)) => lines.bytes(number(bytes)?).map(Reply::Bytes),
        Some((b'*', count)) => number(count).map(Reply::Array),
        _ => Err(failed("an error", line)),
    }
}

/// The next reply, which has to be this one.
pub(super) fn expect(lines: &mut Lines<'_>, wanted: Reply<'_>) -> Result<(), Stop> {
    let found = reply(lines)?;
    if found == wanted {
        Ok(())
    } else {
        Err(Stop::Failed(format!("the server answers {found:?} instead of {wanted:?}")))
    }
}

impl Protocol for Redis {
    fn ask(&mut self, asked: PendingRequest, out: &mut Vec<u8>) {
        let [version, value] = ["n", "v"].map(|kind| format!("{kind}{}", asked.key).into_bytes());
        self.value.clear();
        match asked.what {
            Purpose::Get | Purpose::Count => command(out, &[b"MGET", &version, &value]),
            Purpose::Put(None) => {
                self.values.append(asked.key, &mut self.value);
                command(out, &[b"MULTI"]);
                command(out, &[b"INCR", &version]);
                command(out, &[b"SET", &value, &self.value]);
                command(out, &[b"EXEC"]);
            }
            Purpose::Put(Some(expected)) => {
                self.values.append(asked.key, &mut self.value);
                let (keys, expected) = (b"2", expected.to_string());
                command(
                    out,
                    &[b"EVAL", CHANGE.as_bytes(), keys, &version, &value, expected.as_bytes(), &self.value],
                );
            }
        }
    }

    fn answer(&mut self, asked: PendingRequest, input: &[u8]) -> io::Result<Option<(Next, usize)>> {
        let values = &self.values;
        lines::read(input, |lines| {
            let how = match asked.what {
                Purpose::Get | Purpose::Count => found(lines, |value| values.is_one(asked.key, value))?,
                Purpose::Put(None) => {
                    expect(lines, Reply::Word(b"OK"))?;
                    expect(lines, Reply::Word(b"QUEUED"))?;
                    expect(lines, Reply::Word(b"QUEUED"))?;
                    expect(lines, Reply::Array(2))?;
                    let version = reply(lines)?;
                    expect(lines, Reply::Word(b"OK"))?;
                    wrote(version)
                }
                Purpose::Put(Some(expected)) => changed(reply(lines)?, expected),
            };
            Ok(Next::Ended(how))
        })
    }

    fn answer_bytes_max(&self) -> usize {
        self.values.bytes() + 8 * LINE_BYTES_MAX
    }
}

/// How a read has ended that asked for version and value.
pub(super) fn found(lines: &mut Lines<'_>, is_one: impl FnOnce(&[u8]) -> bool) -> Result<Ended, Stop> {
    expect(lines, Reply::Array(2))?;
    Ok(match (reply(lines)?, reply(lines)?) {
        (Reply::Bytes(version), Reply::Bytes(value)) if is_one(value) => Ended::Found(number(version)?),
        _ => Ended::Wrong,
    })
}

/// How a script has ended that writes in place of a version. It is one step, so no other write is between what was read and this one.
pub(super) fn changed(version: Reply<'_>, expected: u64) -> Ended {
    match wrote(version) {
        Ended::Wrote(version) if Some(version) != expected.checked_add(1) => Ended::Wrong,
        how => how,
    }
}

/// How a write has ended that left this version, or 0 if another one was there.
pub(super) fn wrote(version: Reply<'_>) -> Ended {
    match version {
        Reply::Number(0) => Ended::Changed,
        Reply::Number(version) => Ended::Wrote(version),
        _ => Ended::Wrong,
    }
}
