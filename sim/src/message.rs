//! Messages, and the frames that they are split into.
//!
//! An application's frame begins, after its Ethernet header, with the facts that the receiver
//! needs. A message's content does not matter, so these fields take no extra room:
//!
//! ```text
//! Ethernet (EtherType 0x88B6) | flow 4 | message 4 | sequence 4 | bytes 2 | rest
//! ```

use p4rack_wire::ethernet::Ethernet;
use p4rack_wire::{EtherType, MacAddr, Nanos};

/// Largest payload of a frame.
pub const MTU: u32 = 1_500;
/// Smallest payload of a frame.
const PAYLOAD_MIN: usize = 46;
/// IEEE's second local experimental EtherType.
const ETHER_TYPE: EtherType = EtherType(0x88b6);
/// Bytes of the fields above.
const FIELDS: usize = 14;
/// Ethernet header and the fields above.
const HEAD: usize = Ethernet::BYTES + FIELDS;

/// Tag of a message: created in the measured time, so it counts.
pub const MEASURED: u32 = 1;
/// Tag, with `ycsb`: it asks to write a record.
pub const WRITES: u32 = 2;

/// Number of a message within its flow, so that it depends on nothing else.
pub type MessageId = u32;
/// Number of a flow.
pub type FlowId = u32;

/// Address of a host, counted from 0.
pub fn mac_of(host: usize) -> MacAddr {
    MacAddr([2, 0, 0, 0, ((host + 1) >> 8) as u8, (host + 1) as u8])
}

/// The host of an address made by [`mac_of`].
#[inline]
pub fn host_of(mac: &[u8]) -> Option<usize> {
    match mac {
        [2, 0, 0, 0, high, low, ..] => (usize::from(*high) << 8 | usize::from(*low)).checked_sub(1),
        _ => None,
    }
}

/// A receiver's facts about a message on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Message {
    /// Bytes.
    pub size: u32,
    /// Bytes delivered.
    pub received: u32,
    /// A value for its traffic.
    pub tag: u32,
    /// When the sending thread created it.
    pub created: Nanos,
}

/// A sender's facts about a message. It does not know how much has arrived.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing {
    /// Its number.
    pub message: MessageId,
    /// Bytes.
    pub size: u32,
    /// Bytes not yet split into frames, if no transport does that.
    pub unsent: u32,
}

/// The fields of an application's frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Its flow.
    pub flow: FlowId,
    /// Its message.
    pub message: MessageId,
    /// Number of the frame within its flow.
    pub sequence: u32,
    /// Bytes of the message in it.
    pub bytes: u16,
}

impl Head {
    /// Writes the frame to the start of `out`, a buffer of full length; returns the frame.
    pub fn emit<'o>(&self, src: usize, dst: usize, out: &'o mut [u8; 1_514]) -> &'o [u8] {
        Ethernet { dst: mac_of(dst), src: mac_of(src), ether_type: ETHER_TYPE }.emit(out);
        let fields = &mut out[Ethernet::BYTES..HEAD];
        fields[..4].copy_from_slice(&self.flow.to_be_bytes());
        fields[4..8].copy_from_slice(&self.message.to_be_bytes());
        fields[8..12].copy_from_slice(&self.sequence.to_be_bytes());
        fields[12..].copy_from_slice(&self.bytes.to_be_bytes());
        &out[..Ethernet::BYTES + usize::from(self.bytes).max(PAYLOAD_MIN).min(MTU as usize)]
    }

    /// Parses what follows an EtherType.
    #[inline]
    pub fn parse(ether_type: EtherType, rest: &[u8]) -> Option<Head> {
        if ether_type != ETHER_TYPE {
            return None;
        }
        Head::fields(rest)
    }

    #[inline]
    fn fields(rest: &[u8]) -> Option<Head> {
        let fields: &[u8; FIELDS] = rest.first_chunk()?;
        let word =
            |at: usize| u32::from_be_bytes([fields[at], fields[at + 1], fields[at + 2], fields[at + 3]]);
        let bytes = u16::from_be_bytes([fields[12], fields[13]]);
        Some(Head { flow: word(0), message: word(4), sequence: word(8), bytes })
    }

    /// Parses a frame as it is on the wire; skips tags and shim.
    pub fn on_wire(frame: &[u8], shim: bool) -> Option<Head> {
        let ether_type = EtherType(u16::from_be_bytes(*frame.get(12..)?.first_chunk()?));
        let skip = match (ether_type, shim) {
            (ETHER_TYPE, _) => 0,
            (EtherType::VLAN, false) => 4,
            (EtherType::VLAN, true) => 4 + p4rack_wire::pl2::Shim::BYTES,
            _ => return None,
        };
        Head::fields(frame.get(Ethernet::BYTES + skip..)?)
    }
}

/// EtherType and remaining bytes of an application's frame.
#[cfg(test)]
pub(crate) fn split(frame: &[u8]) -> (EtherType, &[u8]) {
    (EtherType(u16::from_be_bytes([frame[12], frame[13]])), &frame[14..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_survive_the_wire() {
        let mut buffer = [0; 1_514];
        for (bytes, len) in [(1, 60), (46, 60), (47, 61), (1_500, 1_514)] {
            let head = Head { flow: 70_000, message: 3, sequence: u32::MAX, bytes };
            let frame = head.emit(4, 299, &mut buffer);
            assert_eq!(frame.len(), len);
            let (ether_type, rest) = split(frame);
            assert_eq!(Head::parse(ether_type, rest), Some(head));
            assert_eq!(Head::on_wire(frame, true), Some(head));
            assert_eq!((host_of(frame), host_of(&frame[6..])), (Some(299), Some(4)));
        }
        assert_eq!(Head::parse(EtherType::IPV4, &[0; 46]), None);
        assert_eq!(Head::on_wire(&[0; 20], true), None);
        let frame = Head { flow: 1, message: 2, sequence: 3, bytes: 4 }.emit(0, 1, &mut buffer);
        assert_eq!(Head::parse(ETHER_TYPE, &frame[14..27]), None);
    }
}
