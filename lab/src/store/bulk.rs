//! A host that writes to the store's server as fast as it can, beside the clients: what their operations have to bear.

use super::edm::Memory;
use super::tcp;
use crate::sys;
use crate::workload::Span;
use crate::workload::rpc::connect;
use p4rack_fabric::edm::host::compute::Request;
use p4rack_hosts::memory::{Client, Error, Operation, Remote};
use p4rack_wire::Nanos;
use serde::{Deserialize, Serialize};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::time::Duration;

/// Writes under way in EDM's memory; TCP has as much under way as its window allows.
pub const UNDER_WAY: usize = 16;
/// Slots behind the records that are written over and over.
pub const SLOTS: u32 = 64;
/// Bytes given to TCP at a time.
const PIECE_BYTES: usize = 64 << 10;
/// How long TCP may take for a piece before the span's end is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// What was written.
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
    fn write(&self, nth: u64) -> (u64, Request) {
        let address = self.start + nth % u64::from(SLOTS) * self.slot_bytes as u64;
        (address, Request::Write(vec![nth as u8; self.slot_bytes]))
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

/// Writes to a node's memory until the span is over.
pub fn over_edm(client: &mut Client, remote: Remote, place: Place, span: Span) -> Result<BulkReport, Error> {
    sys::sleep_until(span.start_ns);
    let (mut report, mut nth) = (BulkReport::default(), 0);
    while sys::monotonic_ns() < span.end_ns() || client.open_operations() > 0 {
        while client.open_operations() < UNDER_WAY && sys::monotonic_ns() < span.end_ns() {
            let (address, request) = place.write(nth);
            client.submit(Operation { remote, address, request })?;
            nth += 1;
        }
        match client.poll(Some(Nanos(sys::monotonic_ns()) + Nanos::from_millis(100)))? {
            Some((_, Ok(_))) => report.bytes += place.slot_bytes as u64,
            // Whether it has left the host, nothing says: it doesn't count.
            Some((_, Err(Error::Unknown | Error::Busy))) | None => {}
            Some((_, Err(error))) => return Err(error),
        }
    }
    Ok(report)
}

/// One of [`UNDER_WAY`] writers of a host in memory that does one operation at a time.
pub fn one_at_a_time(memory: &mut impl Memory, place: Place, span: Span) -> io::Result<BulkReport> {
    memory.sleep_until(span.start_ns);
    let (mut report, mut nth) = (BulkReport::default(), 0);
    while memory.now_ns() < span.end_ns() {
        let (address, request) = place.write(nth);
        match memory.perform(address, request) {
            Ok(_) => report.bytes += place.slot_bytes as u64,
            Err(Error::Unknown | Error::Busy) => {}
            Err(error) => return Err(io::Error::other(error.to_string())),
        }
        nth += 1;
    }
    Ok(report)
}
