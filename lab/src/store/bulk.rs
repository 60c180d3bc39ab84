//! Bulk load: a host writes to the store's server, or writes and reads, as fast as it can while clients use the store.

use super::tcp;
use crate::sys;
use crate::workload::Span;
use crate::workload::rpc::connect;
use p4rack_hosts::remote::{Operation, Outcome, Remote, RemoteError, Status};
use p4rack_wire::Nanos;
use serde::{Deserialize, Serialize};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::time::Duration;

/// Writes to remote memory in flight. With TCP, the window is the limit.
pub const UNDER_WAY: usize = 16;
/// Bytes behind the records that are written over and over.
pub const ROOM_BYTES: u64 = 64 << 10;
/// Bytes given to TCP at a time.
const PIECE_BYTES: usize = 64 << 10;
/// Time limit of a TCP write between two checks for the end of the span.
const LOOK: Duration = Duration::from_millis(100);

/// Amount written and read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BulkReport {
    /// Bytes of data that left the host, or came.
    pub bytes: u64,
}

/// Operations that a host has under way in remote memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Writes.
    pub writes: usize,
    /// Reads.
    pub reads: usize,
    /// Bytes of each.
    pub bytes: usize,
}

impl Load {
    /// Writes only, of this many bytes.
    pub const fn writing(bytes: usize) -> Load {
        Load { writes: UNDER_WAY, reads: 0, bytes }
    }

    /// Address of an operation, in the room that begins at `start`.
    fn at(&self, start: u64, nth: u64) -> u64 {
        let bytes = self.bytes as u64;
        start + nth % (ROOM_BYTES / bytes.max(1)).max(1) * bytes
    }
}

/// Writes to a store's TCP server until the span is over.
pub fn over_tcp(to: SocketAddr, span: Span) -> io::Result<BulkReport> {
    let mut stream = connect(to)?;
    stream.write_all(&tcp::BULK_REQUEST)?;
    stream.set_write_timeout(Some(LOOK))?;
    sys::sleep_until(span.start_ns);
    let (piece, mut report) = (vec![0; PIECE_BYTES], BulkReport::default());
    while sys::monotonic_ns() < span.end_ns() {
        match stream.write(&piece) {
            Ok(bytes) => report.bytes += bytes as u64,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(report)
}

/// Writes to and reads from the room at `start` until the span is over.
pub fn over(remote: &mut dyn Remote, start: u64, load: Load, span: Span) -> io::Result<BulkReport> {
    let failed = |error: &dyn std::fmt::Display| io::Error::other(error.to_string());
    while remote.now().0 < span.start_ns {
        remote.poll(Nanos(span.start_ns), &mut |_, _| {}).map_err(|error| failed(&error))?;
    }
    // Tags of writes are even, those of reads odd.
    let (most, mut open) = ([load.writes, load.reads], [0, 0]);
    let (mut report, mut nth) = (BulkReport::default(), 0u64);
    let mut bytes = vec![0; load.bytes];
    while remote.now().0 < span.end_ns() || open != [0, 0] {
        for kind in [0, 1] {
            while open[kind] < most[kind] && remote.now().0 < span.end_ns() {
                let at = load.at(start, nth);
                bytes.fill(nth as u8);
                let operation = match kind {
                    0 => Operation::Write { at, bytes: &bytes },
                    _ => Operation::Read { at, bytes: load.bytes as u32 },
                };
                remote.submit(2 * nth + kind as u64, operation).map_err(|status| failed(&status))?;
                (nth, open[kind]) = (nth + 1, open[kind] + 1);
            }
        }
        let until = remote.now() + Nanos::from_millis(100);
        let mut refused = None;
        let polled: Result<(), RemoteError> = remote.poll(until, &mut |tag, outcome| {
            open[tag as usize % 2] -= 1;
            match outcome {
                Outcome::Written | Outcome::Read(_) => report.bytes += load.bytes as u64,
                // It is unknown whether it has left the host, so it doesn't count.
                Outcome::Failed(Status::Unknown | Status::Busy) => {}
                Outcome::Failed(status) => refused = Some(status),
                Outcome::Word(_) => {}
            }
        });
        polled.map_err(|error| failed(&error))?;
        if let Some(status) = refused {
            return Err(failed(&status));
        }
    }
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use p4rack_hosts::remote::{Abilities, Local};

    /// Memory that knows how many operations of each kind were under way, and which bytes they concerned.
    struct Watched {
        memory: Local,
        open: [usize; 2],
        most: [usize; 2],
        end: u64,
    }

    impl Remote for Watched {
        fn abilities(&self) -> &Abilities {
            self.memory.abilities()
        }

        fn submit(&mut self, tag: u64, operation: Operation<'_>) -> Result<(), Status> {
            let (kind, end) = match &operation {
                Operation::Write { at, bytes } => (0, at + bytes.len() as u64),
                Operation::Read { at, bytes } => (1, at + u64::from(*bytes)),
                _ => return Err(Status::BadOperation),
            };
            self.open[kind] += 1;
            self.most[kind] = self.most[kind].max(self.open[kind]);
            self.end = self.end.max(end);
            self.memory.submit(tag, operation)
        }

        fn poll(&mut self, until: Nanos, ended: &mut dyn FnMut(u64, Outcome<'_>)) -> Result<(), RemoteError> {
            let open = &mut self.open;
            self.memory.poll(until, &mut |tag, outcome| {
                open[usize::from(matches!(outcome, Outcome::Read(_)))] -= 1;
                ended(tag, outcome);
            })
        }
    }

    #[test]
    fn reads_and_writes_are_under_way_up_to_their_numbers() {
        let start = 512;
        for (writes, reads) in [(3, 3), (16, 0)] {
            let memory = Local::new(start + ROOM_BYTES);
            let mut watched = Watched { memory, open: [0; 2], most: [0; 2], end: 0 };
            let span = Span { start_ns: watched.now().0, duration_ns: 5_000_000 };
            let load = Load { writes, reads, bytes: 1_024 };
            let report = over(&mut watched, start, load, span).unwrap();
            assert_eq!((watched.most, watched.open), ([writes, reads], [0, 0]));
            assert_eq!(watched.end, start + ROOM_BYTES, "it uses all of the room, and nothing behind it");
            assert!(report.bytes > ROOM_BYTES, "{report:?}");
        }
    }
}
