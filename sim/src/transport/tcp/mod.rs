//! TCP between two hosts, one direction per connection.
//!
//! Modelled: SACK and its loss recovery (RFC 6675), detection of lost retransmissions by time (as RACK, RFC
//! 8985), tail loss probes, retransmission timeouts with back-off (RFC 6298, Linux's floor), Cubic (RFC 9438)
//! with fast convergence, its Reno-friendly region and HyStart as in Linux, DCTCP (RFC 8257), and an acknowledgement
//! for every second frame, or immediately for the last of a message, for gaps and for changes of the mark. Not
//! modelled: connection setup and teardown, Nagle, PRR, pacing, D-SACK, changing receive windows, segmentation
//! offloads.

mod congestion;
mod receiver;
mod sender;
#[cfg(test)]
mod tests;

pub use congestion::Control;
pub use receiver::Receiver;
pub use sender::{Config, Segment, Sender};

/// Maximum bytes of a segment: 1500 without the headers.
pub const MSS: u16 = 1_448;
/// Bytes of the IPv4 and TCP headers with timestamps.
pub const HEADER_BYTES: usize = 52;
