//! Metadata that the kernel passes with a frame, and how it is put back into the frame.

use super::Stats;
use crate::checksum;

/// Bytes of an 802.1Q tag: reserved before each frame.
pub(crate) const TAG: usize = 4;
/// Control data per frame, in words: auxiliary data (16 + 20) and a timestamp (16 + 16), aligned.
pub(super) const CONTROL_WORDS: usize = 16;

/// Metadata of a frame.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Extra {
    pub(super) tag: Option<[u8; TAG]>,
    pub(super) checksum_missing: bool,
    pub(super) wall_ns: Option<u64>,
}

impl Extra {
    /// Interprets status bits and tag fields, which are the same in control messages and in rings.
    #[inline]
    pub(super) fn from_status(status: u32, tci: u16, tpid: u16) -> Extra {
        let tpid = if status & libc::TP_STATUS_VLAN_TPID_VALID == 0 { 0x8100 } else { tpid };
        let ([t0, t1], [c0, c1]) = (tpid.to_be_bytes(), tci.to_be_bytes());
        Extra {
            tag: (status & libc::TP_STATUS_VLAN_VALID != 0).then_some([t0, t1, c0, c1]),
            checksum_missing: status & libc::TP_STATUS_CSUMNOTREADY != 0,
            wall_ns: None,
        }
    }

    /// The frame in `room`, which starts with [`TAG`] spare bytes: with its tag and its checksum.
    #[inline]
    pub(super) fn complete<'r>(&self, room: &'r mut [u8], stats: &mut Stats) -> &'r [u8] {
        let bytes = match self.tag {
            Some(tag) if room.len() >= TAG + 12 => {
                room.copy_within(TAG..TAG + 12, 0);
                room[12..16].copy_from_slice(&tag);
                room
            }
            _ => room.get_mut(TAG..).unwrap_or_default(),
        };
        if self.checksum_missing && checksum::finish(bytes) {
            stats.checksums_finished += 1;
        }
        stats.received += 1;
        bytes
    }

    /// Reads control messages. Each has a header of length (one word), level and type, then data.
    pub(super) fn parse(words: &[u64; CONTROL_WORDS], bytes: usize) -> Extra {
        let mut extra = Extra::default();
        let mut left = &words[..bytes.div_ceil(8).min(CONTROL_WORDS)];
        while let [length, level_type, data @ ..] = left {
            let level_type = level_type.to_ne_bytes();
            let half = |at: usize| i32::from_ne_bytes([0, 1, 2, 3].map(|i| level_type[at + i]));
            match (half(0), half(4)) {
                (libc::SOL_PACKET, libc::PACKET_AUXDATA) => {
                    extra = Extra { wall_ns: extra.wall_ns, ..Extra::auxiliary(data) };
                }
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                    if let [seconds, nanos, ..] = data {
                        extra.wall_ns = Some(seconds.wrapping_mul(1_000_000_000).wrapping_add(*nanos));
                    }
                }
                _ => {}
            }
            let words = (*length as usize).div_ceil(8).max(2);
            left = left.get(words..).unwrap_or(&[]);
        }
        extra
    }

    /// `struct tpacket_auxdata`: status, len, snaplen (32 bits each), mac, net, tci, tpid (16 each).
    fn auxiliary(data: &[u64]) -> Extra {
        let [first, _, third, ..] = data else { return Extra::default() };
        // Words: status+len, snaplen+mac+net, tci+tpid.
        let [s0, s1, s2, s3, ..] = first.to_ne_bytes();
        let [c0, c1, t0, t1, ..] = third.to_ne_bytes();
        let half = |bytes| u16::from_ne_bytes(bytes);
        Extra::from_status(u32::from_ne_bytes([s0, s1, s2, s3]), half([c0, c1]), half([t0, t1]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(level: i32, kind: i32, data: &[u8]) -> Vec<u8> {
        let mut bytes = (16 + data.len() as u64).to_ne_bytes().to_vec();
        bytes.extend(level.to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(data);
        bytes.resize(bytes.len().div_ceil(8) * 8, 0);
        bytes
    }

    fn parse(bytes: &[u8]) -> Extra {
        let mut words = [0; CONTROL_WORDS];
        for (word, chunk) in words.iter_mut().zip(bytes.chunks(8)) {
            *word = u64::from_ne_bytes(chunk.try_into().unwrap());
        }
        Extra::parse(&words, bytes.len())
    }

    fn auxiliary(status: u32, tci: u16, tpid: u16) -> Vec<u8> {
        let mut data = status.to_ne_bytes().to_vec();
        data.extend([0; 12]);
        data.extend(tci.to_ne_bytes());
        data.extend(tpid.to_ne_bytes());
        message(libc::SOL_PACKET, libc::PACKET_AUXDATA, &data)
    }

    #[test]
    fn tag_and_time_stamp_are_found_in_either_order() {
        let status = libc::TP_STATUS_VLAN_VALID | libc::TP_STATUS_VLAN_TPID_VALID;
        let tag = auxiliary(status, 0xb005, 0x88a8);
        let mut stamp = 7u64.to_ne_bytes().to_vec();
        stamp.extend(9u64.to_ne_bytes());
        let stamp = message(libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS, &stamp);
        let expected =
            Extra { tag: Some([0x88, 0xa8, 0xb0, 5]), checksum_missing: false, wall_ns: Some(7_000_000_009) };
        assert_eq!(parse(&[tag.clone(), stamp.clone()].concat()), expected);
        assert_eq!(parse(&[stamp, tag].concat()), expected);
    }

    #[test]
    fn a_tag_without_tpid_is_a_customer_tag_and_no_tag_is_none() {
        assert_eq!(parse(&auxiliary(libc::TP_STATUS_VLAN_VALID, 1, 0)).tag, Some([0x81, 0, 0, 1]));
        let extra = parse(&auxiliary(libc::TP_STATUS_CSUMNOTREADY, 1, 0x8100));
        assert_eq!((extra.tag, extra.checksum_missing), (None, true));
    }

    #[test]
    fn odd_control_bytes_do_no_harm() {
        assert_eq!(parse(&[]), Extra::default());
        assert_eq!(parse(&[0; 128]), Extra::default());
        assert_eq!(parse(&[0xff; 128]), Extra::default());
        assert_eq!(parse(&auxiliary(!0, 1, 1)[..24]), Extra::default());
    }
}
