//! Captures in the classic pcap format: a header, then for each frame a record header and its bytes. Read from memory;
//! written to memory, or by [`header`] and [`record`] to wherever a caller writes.

use crate::Nanos;
use std::fmt;

const MICROS: u32 = 0xa1b2_c3d4;
const NANOS: u32 = 0xa1b2_3c4d;
const NEXT_GENERATION: u32 = 0x0a0d_0d0a;
const ETHERNET: u32 = 1;
const HEADER: usize = 24;
const RECORD: usize = 16;
/// Maximum length of a captured frame.
pub const MAX_FRAME: usize = 64 * 1024;

/// Why a capture cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PcapError {
    /// Shorter than a header.
    Short(usize),
    /// It is in pcapng format.
    NextGeneration,
    /// Not a capture: its magic number is this.
    Magic(u32),
    /// The link type is not Ethernet.
    LinkType(u32),
    /// A record is too long for a frame.
    Length {
        /// Offset of the record.
        at: usize,
        /// Its length in bytes.
        length: u32,
    },
    /// The file ends within a record.
    Truncated(usize),
}

impl fmt::Display for PcapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PcapError::Short(bytes) => {
                write!(f, "is not a pcap file: {bytes} bytes, the header alone has 24")
            }
            PcapError::NextGeneration => {
                write!(f, "is a pcapng file; convert it first: editcap -F pcap IN.pcapng OUT.pcap")
            }
            PcapError::Magic(magic) => write!(f, "is not a pcap file: it starts with {magic:#010x}"),
            PcapError::LinkType(link) => write!(f, "has link type {link}; only Ethernet (1) is read"),
            PcapError::Length { at, length } => {
                write!(f, "byte {at}: a frame of {length} bytes; at most 65536 are read")
            }
            PcapError::Truncated(at) => write!(f, "byte {at}: the file ends within this record"),
        }
    }
}

impl std::error::Error for PcapError {}

/// A captured frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Time since 1970.
    pub time: Nanos,
    /// The captured part of the frame.
    pub frame: &'a [u8],
}

/// The frames of a capture, in order. Ends after an error.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    big_endian: bool,
    unit_ns: u64,
}

fn word(bytes: &[u8], at: usize, big_endian: bool) -> Option<u32> {
    let four: [u8; 4] = bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
    Some(if big_endian { u32::from_be_bytes(four) } else { u32::from_le_bytes(four) })
}

impl<'a> Reader<'a> {
    /// Opens a capture and checks its header.
    pub fn new(bytes: &'a [u8]) -> Result<Reader<'a>, PcapError> {
        let short = PcapError::Short(bytes.len());
        let magic = word(bytes, 0, false).ok_or(short.clone())?;
        let (big_endian, unit_ns) = match (magic, magic.swap_bytes()) {
            (MICROS, _) => (false, 1000),
            (NANOS, _) => (false, 1),
            (_, MICROS) => (true, 1000),
            (_, NANOS) => (true, 1),
            (NEXT_GENERATION, _) => return Err(PcapError::NextGeneration),
            _ => return Err(PcapError::Magic(magic)),
        };
        // The upper bits give the length of the FCS, if there is one.
        let link = word(bytes, 20, big_endian).ok_or(short)? & 0x0fff_ffff;
        if link != ETHERNET {
            return Err(PcapError::LinkType(link));
        }
        Ok(Reader { bytes, at: HEADER, big_endian, unit_ns })
    }

    fn record(&mut self) -> Result<Record<'a>, PcapError> {
        let at = self.at;
        let field =
            |index: usize| word(self.bytes, at + 4 * index, self.big_endian).ok_or(PcapError::Truncated(at));
        let (secs, fraction, length) = (field(0)?, field(1)?, field(2)?);
        field(3)?;
        if length as usize > MAX_FRAME {
            return Err(PcapError::Length { at, length });
        }
        let start = at + RECORD;
        let frame = self.bytes.get(start..start + length as usize).ok_or(PcapError::Truncated(at))?;
        self.at = start + frame.len();
        let time = u64::from(secs) * 1_000_000_000 + u64::from(fraction) * self.unit_ns;
        Ok(Record { time: Nanos(time), frame })
    }
}

impl<'a> Iterator for Reader<'a> {
    type Item = Result<Record<'a>, PcapError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.bytes.len() {
            return None;
        }
        let record = self.record();
        if record.is_err() {
            self.at = self.bytes.len();
        }
        Some(record)
    }
}

/// Header of a capture: Ethernet, timestamps in nanoseconds.
pub fn header() -> [u8; HEADER] {
    bytes_of([NANOS, 4 << 16 | 2, 0, 0, MAX_FRAME as u32, ETHERNET])
}

/// Header of a frame, and its kept bytes: at most [`MAX_FRAME`]. `time` counts from 1970.
pub fn record(time: Nanos, frame: &[u8]) -> ([u8; RECORD], &[u8]) {
    let kept = &frame[..frame.len().min(MAX_FRAME)];
    let (seconds, nanos) = (time.0 / 1_000_000_000, time.0 % 1_000_000_000);
    (bytes_of([seconds as u32, nanos as u32, kept.len() as u32, frame.len() as u32]), kept)
}

fn bytes_of<const WORDS: usize, const BYTES: usize>(words: [u32; WORDS]) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    for (four, word) in bytes.chunks_exact_mut(4).zip(words) {
        four.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

/// A capture in memory.
#[derive(Clone, Debug)]
pub struct Writer {
    bytes: Vec<u8>,
}

impl Default for Writer {
    fn default() -> Writer {
        Writer { bytes: header().to_vec() }
    }
}

impl Writer {
    /// Adds a frame, truncated to [`MAX_FRAME`].
    pub fn add(&mut self, time: Nanos, frame: &[u8]) {
        let (head, kept) = record(time, frame);
        self.bytes.extend_from_slice(&head);
        self.bytes.extend_from_slice(kept);
    }

    /// The contents of the file.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read() {
        let mut writer = Writer::default();
        writer.add(Nanos(1_000_000_007), &[1, 2, 3]);
        writer.add(Nanos(2_000_000_000), &[]);
        let read: Vec<_> = Reader::new(writer.bytes()).unwrap().map(Result::unwrap).collect();
        assert_eq!(read[0], Record { time: Nanos(1_000_000_007), frame: &[1, 2, 3] });
        assert_eq!(read[1], Record { time: Nanos(2_000_000_000), frame: &[] });
        assert_eq!(read.len(), 2);
    }

    #[test]
    fn both_orders_and_units_are_read() {
        let mut bytes = Vec::new();
        for field in [MICROS, 2 << 16 | 4, 0, 0, 65_535, ETHERNET, 3, 5, 1, 60] {
            bytes.extend_from_slice(&field.to_be_bytes());
        }
        bytes.push(0xab);
        let mut reader = Reader::new(&bytes).unwrap();
        let expected = Record { time: Nanos(3_000_005_000), frame: &[0xab] };
        assert_eq!(reader.next(), Some(Ok(expected)));
        assert_eq!(reader.next(), None);
    }

    #[test]
    fn faults_are_named() {
        assert_eq!(Reader::new(&[1, 2]).unwrap_err(), PcapError::Short(2));
        assert_eq!(Reader::new(&NEXT_GENERATION.to_le_bytes()).unwrap_err(), PcapError::NextGeneration);
        let mut writer = Writer::default();
        writer.add(Nanos(0), &[1, 2, 3]);
        let cut = &writer.bytes()[..writer.bytes().len() - 1];
        assert_eq!(Reader::new(cut).unwrap().next(), Some(Err(PcapError::Truncated(24))));
        let mut long = writer.bytes().to_vec();
        long[34] = 9;
        let found = Reader::new(&long).unwrap().next();
        assert_eq!(found, Some(Err(PcapError::Length { at: 24, length: 9 << 16 | 3 })));
        let mut wifi = writer.bytes().to_vec();
        wifi[20] = 105;
        assert_eq!(Reader::new(&wifi).unwrap_err(), PcapError::LinkType(105));
    }
}
