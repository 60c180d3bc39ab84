//! The store on a Memcached server, by its meta commands. A record is two items: its value, and the number of its writes, its version.
//!
//! ```text
//!  get  mg version, mg value                ─▶ both, and the value's unique number
//!  put  ms value, ma version                ─▶ the version that this leaves
//!       ms value, if its number is …  ─ HD ─▶ ma version ─▶ the version that this leaves
//!                                     └ EX ─▶ changed
//! ```
//!
//! Two commands of a request leave in one piece, so each request is one exchange; others may come between them. So a read may find a
//! newer value than the version says, never an older one. Writes are counted exactly. Whether a conditional write replaced what was
//! read is the server's word alone.

use super::lines::{self, LINE_BYTES_MAX, Lines, Stop, failed, number};
use super::piped::{Next, PendingRequest, Protocol, Purpose, Values};
use crate::ycsb::Ended;
use std::io::{self, Write};

/// The protocol of a client.
#[derive(Debug)]
pub(super) struct Memcached {
    values: Values,
    /// By token, the unique number of the value that it has read.
    numbers: Vec<u64>,
}

impl Memcached {
    /// Values have a multiple of 8 bytes, and are made from a seed.
    pub(super) fn new(value_bytes: usize, seed: u64) -> Memcached {
        Memcached { values: Values::new(value_bytes, seed), numbers: Vec::new() }
    }

    /// Appends a command that sets a value, with these flags.
    fn set(&mut self, key: u32, flags: &str, out: &mut Vec<u8>) {
        put(out, format_args!("ms v{key} {}{flags}\r\n", self.values.bytes()));
        self.values.append(key, out);
        out.extend_from_slice(b"\r\n");
    }

    /// Keeps the unique number of a value that a token has read.
    fn keep(&mut self, token: usize, number: u64) {
        if self.numbers.len() <= token {
            self.numbers.resize(token + 1, 0);
        }
        self.numbers[token] = number;
    }
}

/// Appends text.
fn put(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    // A vector takes everything.
    let _ = out.write_fmt(text);
}

/// Appends the command that counts a write: the first one leaves 1.
fn count(key: u32, out: &mut Vec<u8>) {
    put(out, format_args!("ma n{key} N0 J1 v\r\n"));
}

/// An item, and its unique number if it was asked for; `None` if there is none.
fn item<'a>(lines: &mut Lines<'a>) -> Result<Option<(&'a [u8], u64)>, Stop> {
    let line = lines.line()?;
    let mut words = line.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
    match words.next() {
        Some(b"VA") => {
            let bytes = lines.bytes(number(words.next().unwrap_or_default())?)?;
            let unique = words.find_map(|flag| flag.strip_prefix(b"c")).map_or(Ok(0), number)?;
            Ok(Some((bytes, unique)))
        }
        Some(b"EN") => Ok(None),
        _ => Err(failed("an error", line)),
    }
}

/// The version that a write has left.
fn counted(lines: &mut Lines<'_>) -> Result<Ended, Stop> {
    match item(lines)? {
        Some((version, _)) => number(version).map(Ended::Wrote),
        None => Ok(Ended::Wrong),
    }
}

impl Protocol for Memcached {
    fn ask(&mut self, asked: PendingRequest, out: &mut Vec<u8>) {
        let key = asked.key;
        match asked.what {
            Purpose::Get => put(out, format_args!("mg n{key} v\r\nmg v{key} v c\r\n")),
            Purpose::Put(None) => {
                self.set(key, "", out);
                count(key, out);
            }
            Purpose::Put(Some(_)) => {
                let number = self.numbers.get(asked.token).copied().unwrap_or(0);
                self.set(key, &format!(" C{number}"), out);
            }
            Purpose::Count => count(key, out),
        }
    }

    fn answer(&mut self, asked: PendingRequest, input: &[u8]) -> io::Result<Option<(Next, usize)>> {
        let values = &self.values;
        let mut unique = None;
        let answer = lines::read(input, |lines| match asked.what {
            Purpose::Get => Ok(Next::Ended(match (item(lines)?, item(lines)?) {
                (Some((version, _)), Some((value, number_of))) if values.is_one(asked.key, value) => {
                    unique = Some(number_of);
                    Ended::Found(number(version)?)
                }
                _ => Ended::Wrong,
            })),
            Purpose::Put(expected) => match (lines.line()?, expected) {
                (b"HD", None) => counted(lines).map(Next::Ended),
                (b"HD", Some(_)) => Ok(Next::Ask(Purpose::Count)),
                (b"EX", Some(_)) => Ok(Next::Ended(Ended::Changed)),
                (line, _) => Err(failed("an error", line)),
            },
            Purpose::Count => counted(lines).map(Next::Ended),
        })?;
        if let Some(number) = unique {
            self.keep(asked.token, number);
        }
        Ok(answer)
    }

    fn answer_bytes_max(&self) -> usize {
        self.values.bytes() + 4 * LINE_BYTES_MAX
    }
}
