//! TCP between two hosts, one direction a connection.
//!
//! Modelled: SACK and its loss recovery (RFC 6675), lost retransmissions by time (as RACK, RFC 8985), tail loss
//! probes, retransmission timeouts with back-off (RFC 6298, Linux's floor), Cubic (RFC 9438) with
//! fast convergence and its Reno-friendly region, DCTCP (RFC 8257), an acknowledgement for every second frame
//! and at once for the last of a message, for gaps and for changes of the mark. Not modelled: set-up and
//! tear-down, Nagle, HyStart, PRR, pacing, D-SACK, changing receive windows, offloads' large segments.

mod congestion;
mod receiver;
mod sender;
#[cfg(test)]
mod tests;

pub use congestion::Control;
pub use receiver::Receiver;
pub use sender::{Config, Segment, Sender};

/// Most bytes of a segment: 1500 less the headers.
pub const MSS: u16 = 1_448;
/// IPv4's and TCP's headers with timestamps.
pub const HEADER_BYTES: usize = 52;
