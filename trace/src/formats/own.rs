//! Our own format: about three bytes an access, written and read as a stream.
//!
//! ```text
//!  "p4trace\x01" │ access │ access │ … │ 0x80, number of accesses
//!
//!  access:   7   6   5   4   3   2   1   0
//!          ┌───┬───────┬───────────┬───┬───┐
//!          │ 0 │   0   │   size    │ T │ W │  size: 2^size bytes, 7: a number follows
//!          └───┴───────┴───────────┴───┴───┘  T: a thread's number follows; W: it writes
//!          [thread] [bytes] address − the one before it, zigzag
//! ```
//!
//! Numbers are LEB128: 7 bits a byte, the low ones first. The mark at the end shows whether a trace is whole.

use crate::error::Position;
use crate::{Access, TraceError};
use std::io::{BufRead, Write};

const MAGIC: &[u8; 8] = b"p4trace\x01";
const WRITE: u8 = 0x01;
const THREAD: u8 = 0x02;
const SIZE_SHIFT: u32 = 2;
const SIZE_FOLLOWS: u8 = 7;
const KNOWN: u8 = 0x1f;
const END: u8 = 0x80;
const ADVICE: &str = "the trace was cut short or changed: record or convert it again";

/// Whether a file begins like this format's.
pub fn begins(head: &[u8]) -> bool {
    head.starts_with(MAGIC)
}

/// Writes accesses.
pub struct Writer<W: Write> {
    out: W,
    address: u64,
    thread: u16,
    count: u64,
}

impl<W: Write> Writer<W> {
    /// Writes the beginning.
    pub fn new(mut out: W) -> std::io::Result<Writer<W>> {
        out.write_all(MAGIC)?;
        Ok(Writer { out, address: 0, thread: 0, count: 0 })
    }

    /// Writes an access.
    pub fn add(&mut self, access: Access) -> std::io::Result<()> {
        let power = access.bytes.is_power_of_two().then(|| access.bytes.trailing_zeros() as u8);
        let size = power.filter(|power| *power < SIZE_FOLLOWS).unwrap_or(SIZE_FOLLOWS);
        let thread = access.thread != self.thread;
        let head = u8::from(access.write) | u8::from(thread) << 1 | size << SIZE_SHIFT;
        // One byte and three numbers.
        let (mut buffer, mut len) = ([0; 32], 1);
        buffer[0] = head;
        if thread {
            put(&mut buffer, &mut len, u64::from(access.thread));
        }
        if size == SIZE_FOLLOWS {
            put(&mut buffer, &mut len, u64::from(access.bytes));
        }
        let delta = access.address.wrapping_sub(self.address) as i64;
        put(&mut buffer, &mut len, ((delta << 1) ^ (delta >> 63)) as u64);
        self.out.write_all(&buffer[..len])?;
        (self.address, self.thread) = (access.address, access.thread);
        self.count += 1;
        Ok(())
    }

    /// Writes the end. A trace without it counts as cut short.
    pub fn finish(mut self) -> std::io::Result<W> {
        let (mut buffer, mut len) = ([0; 32], 1);
        buffer[0] = END;
        put(&mut buffer, &mut len, self.count);
        self.out.write_all(&buffer[..len])?;
        self.out.flush()?;
        Ok(self.out)
    }
}

fn put(buffer: &mut [u8; 32], len: &mut usize, mut number: u64) {
    loop {
        let more = number > 0x7f;
        buffer[*len] = (number & 0x7f) as u8 | u8::from(more) << 7;
        *len += 1;
        number >>= 7;
        if !more {
            return;
        }
    }
}

/// Reads accesses.
pub struct Reader<S> {
    source: S,
    position: Position,
    address: u64,
    thread: u16,
    ended: bool,
}

impl<S: BufRead> Reader<S> {
    /// A reader; `file` names the source in errors.
    pub fn new(source: S, file: &str) -> Reader<S> {
        Reader { source, position: Position::records(file), address: 0, thread: 0, ended: false }
    }

    fn byte(&mut self) -> Result<u8, TraceError> {
        let mut byte = [0];
        match self.source.read_exact(&mut byte) {
            Ok(()) => Ok(byte[0]),
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                Err(self.position.wrong("the end of the file", "accesses, and a mark at the end", ADVICE))
            }
            Err(error) => Err(self.position.io(error)),
        }
    }

    fn number(&mut self) -> Result<u64, TraceError> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(self.position.wrong("a number of more than 64 bits", "numbers in LEB128", ADVICE))
    }

    fn magic(&mut self) -> Result<(), TraceError> {
        for expected in MAGIC {
            if self.byte()? != *expected {
                return Err(self.position.wrong(
                    "another beginning",
                    "`p4trace` and the version, 1",
                    "name the trace's format with --format",
                ));
            }
        }
        Ok(())
    }

    fn access(&mut self) -> Result<Option<Access>, TraceError> {
        if self.position.count == 0 {
            self.magic()?;
        }
        self.position.count += 1;
        let head = self.byte()?;
        if head == END {
            let (count, read) = (self.number()?, self.position.count - 1);
            if count != read {
                let found = format!("an end after {read} accesses that says {count}");
                return Err(self.position.wrong(found, "the number of accesses", ADVICE));
            }
            return Ok(None);
        }
        if head & !KNOWN != 0 {
            return Err(self.position.wrong(format!("byte {head:#04x}"), "an access or the end", ADVICE));
        }
        if head & THREAD != 0 {
            let thread = self.number()?;
            self.thread = u16::try_from(thread).map_err(|_| {
                self.position.wrong(format!("thread {thread}"), "threads below 65,536", ADVICE)
            })?;
        }
        let size = head >> SIZE_SHIFT;
        let bytes = if size == SIZE_FOLLOWS { self.number()? } else { 1 << size };
        let zigzag = self.number()?;
        let delta = (zigzag >> 1) as i64 ^ -((zigzag & 1) as i64);
        self.address = self.address.wrapping_add(delta as u64);
        let bytes = u32::try_from(bytes)
            .map_err(|_| self.position.wrong(format!("{bytes} bytes"), "less than 4 GB an access", ADVICE))?;
        self.position.within(self.address, bytes)?;
        Ok(Some(Access { address: self.address, bytes, write: head & WRITE != 0, thread: self.thread }))
    }
}

impl<S: BufRead> Iterator for Reader<S> {
    type Item = Result<Access, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let access = self.access();
        self.ended = !matches!(access, Ok(Some(_)));
        access.transpose()
    }
}
