//! Output of `valgrind --tool=lackey --trace-mem=yes`.
//!
//! ```text
//! I  04025310,3          an instruction: left out
//!  L 1ffeffe7e0,8        a load: address in hexadecimal, bytes
//!  S 04222cac,1          a store
//!  M 0421c7cc,4          a load and a store: one access that writes
//! ==4242== …             valgrind's own lines: left out
//! ```

use super::{next_line, shown};
use crate::error::Position;
use crate::{Access, TraceError};
use std::io::BufRead;

const EXPECTED: &str = "lines such as ` L 1ffeffe7e0,8`, with L, S or M";
const ADVICE: &str = "record it by: valgrind --tool=lackey --trace-mem=yes --log-file=FILE PROGRAM";

/// Whether a text begins like Lackey's.
pub fn begins(head: &[u8]) -> bool {
    head.split(|byte| *byte == b'\n').take(20).any(|line| {
        let is_access = matches!(line, [b' ', b'L' | b'S' | b'M', b' ', ..] | [b'I', b' ', b' ', ..]);
        is_access && line.contains(&b',')
    })
}

/// Reads the accesses to data.
pub struct Reader<S> {
    source: S,
    position: Position,
    line: Vec<u8>,
    ended: bool,
}

impl<S: BufRead> Reader<S> {
    /// A reader; `file` names the source in errors.
    pub fn new(source: S, file: &str) -> Reader<S> {
        Reader { source, position: Position::lines(file), line: Vec::new(), ended: false }
    }

    fn parse(&self) -> Result<Option<Access>, TraceError> {
        let line = self.line.strip_suffix(b"\r").unwrap_or(&self.line);
        let wrong = || self.position.wrong(shown(line), EXPECTED, ADVICE);
        let (write, rest) = match line {
            [] | [b'=', b'=', ..] | [b'-', b'-', ..] | [b'I', b' ', b' ', ..] => return Ok(None),
            [b' ', b'L', b' ', rest @ ..] => (false, rest),
            [b' ', b'S' | b'M', b' ', rest @ ..] => (true, rest),
            _ => return Err(wrong()),
        };
        let text = std::str::from_utf8(rest).map_err(|_| wrong())?;
        let (address, bytes) = text.trim().split_once(',').ok_or_else(wrong)?;
        let address = u64::from_str_radix(address, 16).map_err(|_| wrong())?;
        let bytes = bytes.parse().map_err(|_| wrong())?;
        self.position.within(address, bytes)?;
        Ok(Some(Access { address, bytes, write, thread: 0 }))
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
