//! Transports' fields, which follow an application frame's own:
//!
//! ```text
//! flow 4 | message 4 | sequence 4 | bytes 2 | ECN 1 | kind 1 | number 8 | number 8 | count 1 | count × (from 8, to 8)
//! ```
//!
//! Offsets are of 64 bits, so none of TCP's wrapping is modelled. Like the message's fields above they take
//! no room of their own; padding is added for the size of the real headers.

use crate::message::{FlowId, Head, MessageId};
use p4rack_wire::EtherType;
use p4rack_wire::ethernet::Ethernet;

/// Offset of the fields in an untagged frame.
const START: usize = Ethernet::BYTES + 14;
/// The sender supports marks (ECT).
const ECT: u8 = 1;
/// A switch has marked the frame (CE).
const CE: u8 = 2;
/// Maximum ranges in a frame, as many as TCP's options hold besides timestamps.
pub const RANGES: usize = 3;

/// A range of a stream or message: from, to.
pub type Range = (u64, u64);

/// Kind of a transport's frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PduKind {
    /// Bytes of a message. TCP: `a` is their offset in the stream, `b` is 1 at the end of a message. RDS: `a`
    /// is their offset in the message, `b` its key and size.
    Data = 0,
    /// TCP: `a` is the next byte expected, `b` whether marks were seen; the ranges are SACK's.
    Ack = 1,
    /// RDS: bytes of message `b` up to `a` may be sent.
    Grant = 2,
    /// RDS: the ranges of message `b` are missing.
    Resend = 3,
    /// RDS: all of message `b` has arrived.
    Done = 4,
}

/// The transport's header of a frame (protocol data unit).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pdu {
    /// Kind of the frame.
    pub kind: PduKind,
    /// Flow of the frame.
    pub flow: FlowId,
    /// The message whose bytes it carries, for the simulator.
    pub message: MessageId,
    /// Bytes of the message in it.
    pub bytes: u16,
    /// Whether switches may mark it.
    pub markable: bool,
    /// Whether a switch has marked it.
    pub marked: bool,
    /// Meaning depends on the kind, see [`PduKind`].
    pub a: u64,
    /// Meaning depends on the kind, see [`PduKind`].
    pub b: u64,
    /// Ranges, see [`PduKind`].
    pub ranges: [Range; RANGES],
    /// Number of valid ranges.
    pub count: usize,
}

impl Pdu {
    /// A header without ranges.
    pub fn new(kind: PduKind, flow: FlowId, a: u64, b: u64) -> Pdu {
        Pdu {
            kind,
            flow,
            message: MessageId::MAX,
            bytes: 0,
            markable: false,
            marked: false,
            a,
            b,
            ranges: [(0, 0); RANGES],
            count: 0,
        }
    }

    /// Writes the frame over the start of `out` and returns it. `header_bytes` are the bytes of payload that
    /// the real protocol's headers take.
    pub fn emit<'o>(
        &self,
        src: usize,
        dst: usize,
        header_bytes: usize,
        out: &'o mut [u8; 1_514],
    ) -> &'o [u8] {
        let head = Head { flow: self.flow, message: self.message, sequence: 0, bytes: self.bytes };
        let least = head.emit(src, dst, out).len();
        let ranges = &self.ranges[..self.count.min(RANGES)];
        let numbers = [self.a, self.b].into_iter();
        out[START] = if self.markable { ECT } else { 0 };
        out[START + 1] = self.kind as u8;
        let mut at = START + 2;
        for number in numbers {
            out[at..at + 8].copy_from_slice(&number.to_be_bytes());
            at += 8;
        }
        out[at] = ranges.len() as u8;
        at += 1;
        for number in ranges.iter().flat_map(|(from, to)| [*from, *to]) {
            out[at..at + 8].copy_from_slice(&number.to_be_bytes());
            at += 8;
        }
        let data = Ethernet::BYTES + header_bytes + usize::from(self.bytes);
        &out[..data.max(least).max(at).min(1_514)]
    }

    /// Parses what follows an EtherType.
    pub fn parse(ether_type: EtherType, frame: &[u8]) -> Option<Pdu> {
        const START: usize = self::START - Ethernet::BYTES;
        let head = Head::parse(ether_type, frame)?;
        let number = |at: usize| {
            let bytes: [u8; 8] = frame.get(at..at + 8)?.try_into().ok()?;
            Some(u64::from_be_bytes(bytes))
        };
        let ecn = *frame.get(START)?;
        let kind = match frame.get(START + 1)? {
            0 => PduKind::Data,
            1 => PduKind::Ack,
            2 => PduKind::Grant,
            3 => PduKind::Resend,
            4 => PduKind::Done,
            _ => return None,
        };
        let mut read = Pdu::new(kind, head.flow, number(START + 2)?, number(START + 10)?);
        (read.message, read.bytes) = (head.message, head.bytes);
        (read.markable, read.marked) = (ecn & ECT != 0, ecn & CE != 0);
        read.count = usize::from(*frame.get(START + 18)?).min(RANGES);
        for nth in 0..read.count {
            let at = START + 19 + 16 * nth;
            read.ranges[nth] = (number(at)?, number(at + 8)?);
        }
        Some(read)
    }
}

/// Marks a frame if its sender supports that. `frame` has no tags.
pub fn mark(frame: &mut [u8]) {
    if Head::on_wire(frame, false).is_some()
        && let Some(ecn) = frame.get_mut(START)
        && *ecn & ECT != 0
    {
        *ecn |= CE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::split;

    fn parse(frame: &[u8]) -> Option<Pdu> {
        let (ether_type, rest) = split(frame);
        Pdu::parse(ether_type, rest)
    }

    #[test]
    fn frames_survive_the_wire_and_only_markable_ones_are_marked() {
        let mut buffer = [0; 1_514];
        let mut frame = Pdu::new(PduKind::Ack, 7, u64::MAX, 1);
        (frame.ranges, frame.count) = ([(1, 2), (3, 4), (5, 6)], 3);
        let bytes = frame.emit(1, 2, 52, &mut buffer).to_vec();
        assert_eq!(parse(&bytes), Some(frame));
        let mut data = Pdu { kind: PduKind::Data, bytes: 1_448, markable: true, ..frame };
        data.count = 0;
        data.ranges = [(0, 0); RANGES];
        let mut bytes = data.emit(1, 2, 52, &mut buffer).to_vec();
        assert_eq!(bytes.len(), 1_514);
        mark(&mut bytes);
        assert_eq!(parse(&bytes), Some(Pdu { marked: true, ..data }));
        let mut bytes = frame.emit(1, 2, 52, &mut buffer).to_vec();
        mark(&mut bytes);
        assert_eq!(parse(&bytes), Some(frame));
        assert_eq!(parse(&bytes[..40]), None);
    }
}
