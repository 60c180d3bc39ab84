//! Parameters of an adapter, and of a connection between two ends.

use p4rack_wire::Nanos;
use p4rack_wire::roce::frame::Path;
use p4rack_wire::roce::{Mtu, QPN_MAX, psn};
use std::fmt;

/// Parameters of an adapter. All its queue pairs share them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Maximum payload bytes of a packet. Both ends need the same.
    pub mtu: Mtu,
    /// Maximum bytes of a message sent, received, read or written.
    pub message_bytes_max: u32,
    /// Queue pairs.
    pub pairs_max: usize,
    /// Maximum requests of a queue pair that wait, are in flight, or whose completion was not fetched.
    pub requests_max: usize,
    /// Maximum requests of a queue pair in flight: sent and not acknowledged.
    pub in_flight_max: usize,
    /// As requester, maximum READs and atomic operations in flight; as responder, results of atomic operations kept for
    /// repeated requests. Both ends need the same.
    pub reads_max: usize,
    /// Packets ahead of the oldest that is not acknowledged. A READ counts as many packets as its answer has, but may
    /// exceed the window with these.
    pub window_packets: u32,
    /// Posted receives of a queue pair, including those whose completion was not fetched.
    pub receives_max: usize,
    /// Least time without progress after which a requester restarts from the oldest unacknowledged packet. It waits twice as
    /// long as recent responses took if that is longer, and after each restart twice as long, up to 16 times this.
    pub timeout: Nanos,
    /// Number of such restarts without progress before it gives up; NAKs for a gap count too.
    pub retries_max: u8,
    /// Number of retries without progress when the receiver is not ready; 7 and more: unlimited.
    pub rnr_retries_max: u8,
    /// Code of the wait that a receiver without buffers requests; see [`rnr_wait_ns`](p4rack_wire::roce::rnr_wait_ns).
    pub rnr_timer: u8,
    /// Whether the iCRC of sent frames is computed; otherwise it is 0.
    pub icrc_sent: bool,
    /// Whether frames with a wrong iCRC are dropped. A P4 switch that rewrites packets can't compute it.
    pub icrc_verified: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            mtu: Mtu::B1024,
            message_bytes_max: 1 << 24,
            pairs_max: 1_024,
            requests_max: 1_024,
            in_flight_max: 64,
            reads_max: 16,
            window_packets: 256,
            receives_max: 256,
            timeout: Nanos::from_millis(1),
            retries_max: 7,
            rnr_retries_max: 7,
            rnr_timer: 14,
            icrc_sent: true,
            icrc_verified: true,
        }
    }
}

/// An invalid parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadConfig {
    /// Name of the parameter.
    pub field: &'static str,
    /// Its valid values.
    pub expected: &'static str,
}

impl fmt::Display for BadConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} has to be {}", self.field, self.expected)
    }
}

impl std::error::Error for BadConfig {}

impl Config {
    /// Errors: a limit of zero, or too many packets in flight for sequence numbers to be unambiguous.
    pub fn check(&self) -> Result<(), BadConfig> {
        let bad = |field, expected| Err(BadConfig { field, expected });
        let limits = [
            ("message_bytes_max", self.message_bytes_max as usize),
            ("pairs_max", self.pairs_max),
            ("requests_max", self.requests_max),
            ("in_flight_max", self.in_flight_max),
            ("reads_max", self.reads_max),
            ("window_packets", self.window_packets as usize),
            ("receives_max", self.receives_max),
        ];
        if let Some((field, _)) = limits.iter().find(|(_, limit)| *limit == 0) {
            return bad(field, "at least 1");
        }
        if self.timeout == Nanos::ZERO {
            return bad("timeout", "longer than 0");
        }
        if self.message_bytes_max > 1 << 31 {
            return bad("message_bytes_max", "at most 2^31, as the standard has it");
        }
        let packets = u64::from(self.mtu.packets(self.message_bytes_max)) * self.in_flight_max as u64;
        if packets + u64::from(self.window_packets) > u64::from(psn::MAX / 2) {
            return bad(
                "in_flight_max",
                "so low that as many messages of message_bytes_max have fewer than 2^23 packets",
            );
        }
        Ok(())
    }
}

/// One end's view of a connection, as the set-up agrees on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connection {
    /// Addresses.
    pub path: Path,
    /// The peer's queue pair.
    pub peer_qpn: u32,
    /// Sequence number of the first packet that this end sends.
    pub send_psn: u32,
    /// Sequence number of the first packet that the peer sends.
    pub receive_psn: u32,
    /// Protection domain: which regions of memory the peer may access with their keys.
    pub domain: u32,
}

impl Connection {
    /// Errors: a number of more than 24 bits.
    pub fn check(&self) -> Result<(), BadConfig> {
        let numbers =
            [("peer_qpn", self.peer_qpn), ("send_psn", self.send_psn), ("receive_psn", self.receive_psn)];
        match numbers.iter().find(|(_, number)| *number > QPN_MAX) {
            Some((field, _)) => Err(BadConfig { field, expected: "at most 2^24 − 1" }),
            None => Ok(()),
        }
    }
}
