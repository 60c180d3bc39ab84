//! Formats of traces. [`FORMATS`] lists them; a new one is a module and a line there.

pub mod lackey;
pub mod oracle;
pub mod own;
pub mod twitter;

use crate::error::Position;
use crate::{Access, TraceError};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// Accesses of a trace, one by one. It ends after an error.
pub type Accesses = Box<dyn Iterator<Item = Result<Access, TraceError>>>;

/// A format that can be read.
pub struct Format {
    /// Its name.
    pub name: &'static str,
    /// Programs that write it, in a few words.
    pub about: &'static str,
    /// Whether a trace that begins with these bytes, at most [`HEAD_BYTES`], has it.
    begins: fn(&[u8]) -> bool,
    /// Reads it. The text names the file in errors.
    read: fn(Box<dyn BufRead>, &str, Options) -> Accesses,
}

/// Options of a reader.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Bytes per object, in formats that number objects.
    pub unit_bytes: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options { unit_bytes: 512 }
    }
}

/// All formats, in the order in which a file is tried.
pub const FORMATS: &[Format] = &[
    Format {
        name: "p4rack",
        about: "our own: compact, with threads",
        begins: own::begins,
        read: |source, file, _| Box::new(own::Reader::new(source, file)),
    },
    Format {
        name: "lackey",
        about: "text of valgrind --tool=lackey --trace-mem=yes",
        begins: lackey::begins,
        read: |source, file, _| Box::new(lackey::Reader::new(source, file)),
    },
    Format {
        name: "twitter",
        about: "CSV of Twitter's caches: time, key, sizes, client, operation, TTL",
        begins: twitter::begins,
        read: |source, file, _| Box::new(twitter::Reader::new(source, file)),
    },
    Format {
        name: "oracleGeneral",
        about: "libCacheSim's records of 24 bytes",
        begins: oracle::begins,
        read: |source, file, options| Box::new(oracle::Reader::new(source, file, options.unit_bytes)),
    },
];

/// Bytes by which a format is recognised.
pub const HEAD_BYTES: usize = 4096;
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Opens a trace, compressed by zstd or not. Without a format's name, its first bytes decide.
pub fn open(path: &Path, format: Option<&str>, options: Options) -> Result<Accesses, TraceError> {
    let name = path.display().to_string();
    let io = |error| TraceError::Io { file: name.clone(), error };
    let source = BufReader::new(File::open(path).map_err(io)?);
    read(Box::new(source), &name, format, options)
}

/// The same for any source of bytes.
pub fn read(
    source: Box<dyn BufRead>,
    file: &str,
    format: Option<&str>,
    options: Options,
) -> Result<Accesses, TraceError> {
    let position = Position::records(file);
    let mut source = with_head(source, &position)?;
    if source.1.starts_with(&ZSTD) {
        let decoder = ruzstd::decoding::StreamingDecoder::new(source.0).map_err(|error| {
            position.wrong(error.to_string(), "zstd's frames", "compress the trace again")
        })?;
        source = with_head(Box::new(BufReader::new(decoder)), &position)?;
    }
    let (source, head) = source;
    let found = FORMATS.iter().find(|one| match format {
        Some(name) => one.name == name,
        None => (one.begins)(&head),
    });
    match found {
        Some(format) => Ok((format.read)(source, file, options)),
        None if head.is_empty() => Err(TraceError::Empty { file: file.to_owned() }),
        None => Err(TraceError::Unknown {
            file: file.to_owned(),
            expected: FORMATS.iter().map(|format| format.name).collect::<Vec<_>>().join(", "),
        }),
    }
}

/// A source and its first bytes, which it still yields.
type Headed = (Box<dyn BufRead>, Vec<u8>);

fn with_head(mut source: Box<dyn BufRead>, position: &Position) -> Result<Headed, TraceError> {
    let mut head = Vec::new();
    source.by_ref().take(HEAD_BYTES as u64).read_to_end(&mut head).map_err(|error| position.io(error))?;
    let source = std::io::Cursor::new(head.clone()).chain(source);
    Ok((Box::new(source), head))
}

/// Bytes of a line that is read at most: longer ones are of another format.
const LINE_MAX: u64 = 4096;

/// Reads the next line without its end; `None` at the end of the source.
fn next_line(
    source: &mut dyn BufRead,
    line: &mut Vec<u8>,
    position: &mut Position,
) -> Result<Option<()>, TraceError> {
    line.clear();
    position.count += 1;
    let read = source.take(LINE_MAX).read_until(b'\n', line).map_err(|error| position.io(error))?;
    if read == 0 {
        return Ok(None);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
    } else if read as u64 == LINE_MAX {
        return Err(position.wrong(
            "a line that does not end",
            "lines of text",
            "name the format with --format",
        ));
    }
    Ok(Some(()))
}

/// The beginning of a line, as an error shows it.
fn shown(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(&line[..line.len().min(60)]).into_owned();
    format!("{text:?}")
}
