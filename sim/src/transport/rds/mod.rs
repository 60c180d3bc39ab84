//! A receiver-driven scheme, RDS of PL2's §6.1, similar to Homa: the first 61 KiB of a message are sent
//! immediately, the rest as the receiver permits. The receiver assigns its link's time, four frames at a
//! time, to the waiting messages in turn. Gaps are reported when seen; a millisecond of silence counts as
//! loss at both ends. There are no priorities, as in the paper.

mod receiver;
mod sender;
#[cfg(test)]
mod tests;

use crate::message::{FlowId, MessageId};
use crate::transport::wire::{RANGES, Range};
use p4rack_wire::Nanos;
pub use receiver::Receiver;
pub use sender::Sender;

/// Parameters of both ends.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Bytes sent without a grant; also the maximum granted and not received.
    pub blind_bytes: u64,
    /// Number of messages, oldest first, to which grants go in turn; 0 is all.
    pub active: usize,
    /// Silence that counts as loss.
    pub timeout: Nanos,
    /// Wire time of a full frame on the receiver's link.
    pub frame_time: Nanos,
}

/// A part of a message to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The message, for the simulator.
    pub message: MessageId,
    /// Number of the message within the flow.
    pub key: u32,
    /// Size of the message.
    pub size: u32,
    /// Offset in the message.
    pub offset: u64,
    /// Number of bytes.
    pub bytes: u16,
    /// Whether it was sent before.
    pub again: bool,
}

/// A message of the receiver to a flow's sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Permits bytes up to `to`.
    Grant { flow: FlowId, key: u32, to: u64 },
    /// Reports missing ranges.
    Resend { flow: FlowId, key: u32, ranges: [Range; RANGES], count: usize },
    /// Reports a complete message.
    Done { flow: FlowId, key: u32 },
}
