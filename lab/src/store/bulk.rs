//! Bulk load: a host writes to the store's server as fast as it can while clients use the store.

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
/// Slots behind the records that are written over and over.
pub const SLOTS: u32 = 64;
/// Bytes given to TCP at a time.
const PIECE_BYTES: usize = 64 << 10;
/// Time limit of a TCP write between two checks for the end of the span.
const LOOK: Duration = Duration::from_millis(100);

/// Amount written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BulkReport {
    /// Bytes of data that left the host.
    pub bytes: u64,
}

/// The slots that are written over.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Address of the first one.
    pub start: u64,
    /// Bytes of each.
    pub slot_bytes: usize,
}

impl Place {
    fn at(&self, nth: u64) -> u64 {
        self.start + nth % u64::from(SLOTS) * self.slot_bytes as u64
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

/// Writes to remote memory until the span is over, with `depth` writes in flight.
pub fn over(remote: &mut dyn Remote, place: Place, span: Span, depth: usize) -> io::Result<BulkReport> {
    let failed = |error: &dyn std::fmt::Display| io::Error::other(error.to_string());
    while remote.now().0 < span.start_ns {
        remote.poll(Nanos(span.start_ns), &mut |_, _| {}).map_err(|error| failed(&error))?;
    }
    let (mut report, mut nth, mut open) = (BulkReport::default(), 0, 0);
    let mut bytes = vec![0; place.slot_bytes];
    while remote.now().0 < span.end_ns() || open > 0 {
        while open < depth && remote.now().0 < span.end_ns() {
            bytes.fill(nth as u8);
            let write = Operation::Write { at: place.at(nth), bytes: &bytes };
            remote.submit(nth, write).map_err(|status| failed(&status))?;
            (nth, open) = (nth + 1, open + 1);
        }
        let until = remote.now() + Nanos::from_millis(100);
        let mut refused = None;
        let polled: Result<(), RemoteError> = remote.poll(until, &mut |_, outcome| {
            open -= 1;
            match outcome {
                Outcome::Written => report.bytes += place.slot_bytes as u64,
                // It is unknown whether it has left the host, so it doesn't count.
                Outcome::Failed(Status::Unknown | Status::Busy) => {}
                Outcome::Failed(status) => refused = Some(status),
                Outcome::Read(_) | Outcome::Word(_) => {}
            }
        });
        polled.map_err(|error| failed(&error))?;
        if let Some(status) = refused {
            return Err(failed(&status));
        }
    }
    Ok(report)
}
