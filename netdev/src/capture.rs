//! Captures in pcap format with nanosecond timestamps.

use crate::Error;
use crate::clock::WallOffset;
use crate::error::Context;
use p4rack_wire::{Nanos, pcap};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// A capture being written.
#[derive(Debug)]
pub struct Capture<W: Write = BufWriter<File>> {
    out: W,
    offset: WallOffset,
}

impl Capture {
    /// Creates or truncates the file.
    pub fn create(path: &Path) -> Result<Capture, Error> {
        File::create(path)
            .and_then(|file| Capture::new(BufWriter::with_capacity(1 << 16, file)))
            .context(|| format!("writing the capture {}", path.display()))
    }
}

impl<W: Write> Capture<W> {
    /// Starts a capture on any writer.
    pub fn new(mut out: W) -> io::Result<Capture<W>> {
        out.write_all(&pcap::header())?;
        Ok(Capture { out, offset: WallOffset::measure() })
    }

    /// Adds a frame (without FCS) seen at `at` on the monotonic clock.
    pub fn write(&mut self, frame: &[u8], at: Nanos) -> io::Result<()> {
        let (head, kept) = pcap::record(Nanos(self.offset.wall(at)), frame);
        self.out.write_all(&head)?;
        self.out.write_all(kept)
    }

    /// Flushes buffered frames, so that readers see them.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capture_has_header_record_and_bytes() {
        let mut file = Vec::new();
        let mut capture = Capture::new(&mut file).unwrap();
        let at = crate::clock::now();
        let wall = capture.offset.wall(at);
        capture.write(&[1, 2, 3], at).unwrap();
        assert_eq!(file.len(), 24 + 16 + 3);
        assert_eq!(&file[..4], &[0x4d, 0x3c, 0xb2, 0xa1]);
        let number = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
        assert_eq!(u64::from(number(24)) * 1_000_000_000 + u64::from(number(28)), wall);
        assert_eq!((number(32), number(36)), (3, 3));
        assert_eq!(&file[40..], &[1, 2, 3]);
    }
}
