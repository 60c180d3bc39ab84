//! Answers in lines, as Redis and Memcached give them: a line ends in CR LF, and a line that says so is followed by bytes of any kind,
//! and another CR LF. A few lines of our own instead of the clients of these servers, which own their sockets, threads and timers: here
//! many requests are under way on the socket of the store's one client.

use std::io::{self, ErrorKind};

/// Bytes of the longest line.
pub(super) const LINE_BYTES_MAX: usize = 1_024;
/// Bytes of a longer one that an error shows.
const SHOWN_BYTES: usize = 20;
const END: &[u8] = b"\r\n";

/// Why an answer can't be read.
#[derive(Debug)]
pub(super) enum Stop {
    /// The rest of it has not come yet.
    Partial,
    /// It is no answer, or the server says that it failed.
    Failed(String),
}

/// The rest of the input.
#[derive(Debug)]
pub(super) struct Lines<'a> {
    input: &'a [u8],
    taken: usize,
}

impl<'a> Lines<'a> {
    /// The next line without its end.
    pub(super) fn line(&mut self) -> Result<&'a [u8], Stop> {
        let rest = &self.input[self.taken..];
        let head = &rest[..rest.len().min(LINE_BYTES_MAX)];
        match head.windows(END.len()).position(|end| end == END) {
            Some(bytes) => {
                self.taken += bytes + END.len();
                Ok(&rest[..bytes])
            }
            None if head.len() == LINE_BYTES_MAX => {
                Err(failed("a line without an end", &head[..SHOWN_BYTES]))
            }
            None => Err(Stop::Partial),
        }
    }

    /// The bytes after a line that has said how many there are.
    pub(super) fn bytes(&mut self, bytes: usize) -> Result<&'a [u8], Stop> {
        let rest = &self.input[self.taken..];
        let Some((bytes, end)) = rest.get(..bytes.saturating_add(END.len())).map(|all| all.split_at(bytes))
        else {
            return Err(Stop::Partial);
        };
        if end != END {
            return Err(failed("bytes without an end", end));
        }
        self.taken += bytes.len() + END.len();
        Ok(bytes)
    }
}

/// Reads an answer. Returns it with its bytes, or `None` if it is not complete.
pub(super) fn read<'a, T>(
    input: &'a [u8],
    answer: impl FnOnce(&mut Lines<'a>) -> Result<T, Stop>,
) -> io::Result<Option<(T, usize)>> {
    let mut lines = Lines { input, taken: 0 };
    match answer(&mut lines) {
        Ok(answer) => Ok(Some((answer, lines.taken))),
        Err(Stop::Partial) => Ok(None),
        Err(Stop::Failed(why)) => Err(io::Error::new(ErrorKind::InvalidData, why)),
    }
}

/// An answer that means nothing here, or a failure.
pub(super) fn failed(what: &str, line: &[u8]) -> Stop {
    Stop::Failed(format!("the server answers {what}: `{}`", line.escape_ascii()))
}

/// A decimal number.
pub(super) fn number<T: std::str::FromStr>(text: &[u8]) -> Result<T, Stop> {
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    number.ok_or_else(|| failed("no number", text))
}
