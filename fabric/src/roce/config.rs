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
    /// long as recent responses took if that is longer, up to 64 times this, and after each restart twice as long, up to 16 times this.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Each parameter at its last good value, and one further.
    #[test]
    fn parameters_are_accepted_up_to_their_limits() {
        let good = Config::default();
        let short = Config { message_bytes_max: 1_024, ..good.clone() };
        // Sequence numbers tell apart half of their range.
        let in_flight_max = (psn::MAX / 2 - short.window_packets) as usize;
        for (config, field) in [
            (good.clone(), None),
            (Config { message_bytes_max: 0, ..good.clone() }, Some("message_bytes_max")),
            (Config { pairs_max: 0, ..good.clone() }, Some("pairs_max")),
            (Config { requests_max: 0, ..good.clone() }, Some("requests_max")),
            (Config { in_flight_max: 0, ..good.clone() }, Some("in_flight_max")),
            (Config { reads_max: 0, ..good.clone() }, Some("reads_max")),
            (Config { window_packets: 0, ..good.clone() }, Some("window_packets")),
            (Config { receives_max: 0, ..good.clone() }, Some("receives_max")),
            (Config { timeout: Nanos::ZERO, ..good.clone() }, Some("timeout")),
            (Config { message_bytes_max: 1 << 31, in_flight_max: 1, ..good.clone() }, None),
            (
                Config { message_bytes_max: (1 << 31) + 1, in_flight_max: 1, ..good.clone() },
                Some("message_bytes_max"),
            ),
            (Config { in_flight_max, ..short.clone() }, None),
            (Config { in_flight_max: in_flight_max + 1, ..short.clone() }, Some("in_flight_max")),
        ] {
            let told = config.check().err();
            assert_eq!(told.map(|error| error.field), field, "{config:?}");
            assert!(
                told.is_none_or(|error| error.to_string().starts_with(&format!("{} has to be", error.field)))
            );
        }
    }

    #[test]
    fn connections_have_numbers_of_24_bits() {
        let mac = |last| p4rack_wire::MacAddr([2, 0, 0, 0, 0, last]);
        let path = Path {
            src_mac: mac(1),
            dst_mac: mac(2),
            src_ip: [10, 0, 0, 1].into(),
            dst_ip: [10, 0, 0, 2].into(),
            src_port: 0xc000,
            dscp: 0,
        };
        let good =
            Connection { path, peer_qpn: QPN_MAX, send_psn: QPN_MAX, receive_psn: QPN_MAX, domain: u32::MAX };
        let field = |connection: Connection| connection.check().err().map(|error| error.field);
        assert_eq!(field(good), None);
        assert_eq!(field(Connection { peer_qpn: QPN_MAX + 1, ..good }), Some("peer_qpn"));
        assert_eq!(field(Connection { send_psn: QPN_MAX + 1, ..good }), Some("send_psn"));
        assert_eq!(field(Connection { receive_psn: QPN_MAX + 1, ..good }), Some("receive_psn"));
    }
}
