//! The invariant CRC at the end of a RoCEv2 packet (InfiniBand Architecture 1.4, annex A17.3.3).
//!
//! It is Ethernet's CRC-32 over the bytes that no router changes. Fields that routers change count as ones:
//!
//! ```text
//! 8 bytes of ones | IPv4: TOS, TTL, checksum = ones | UDP: checksum = ones | BTH: byte 4 = ones | all that follows
//! ```
//!
//! The eight bytes replace InfiniBand's local route header. On the wire the CRC's lowest byte comes first.

/// Bytes of the CRC.
pub const BYTES: usize = 4;
/// IPv4, UDP and base transport header: the part in which some bytes count as ones.
const MASKED: usize = 20 + 8 + 12;
/// These bytes: TOS, TTL, IPv4's checksum, UDP's checksum, and the congestion bits of the base transport header.
const ONES: [usize; 7] = [1, 8, 10, 11, 26, 27, 32];

/// The CRC of a packet from its IPv4 header (without options) up to the CRC itself, in its byte order on the wire.
/// `None` if the packet is shorter than its headers.
pub fn icrc(packet: &[u8]) -> Option<[u8; BYTES]> {
    let (head, tail) = packet.split_first_chunk::<MASKED>()?;
    let mut head = *head;
    for at in ONES {
        head[at] = 0xff;
    }
    let mut crc = crc32fast::Hasher::new();
    [&[0xff; 8], &head[..], tail].iter().for_each(|part| crc.update(part));
    Some(crc.finalize().to_le_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A congestion notification that a ConnectX-4 Lx sent, as Scapy's tests have it.
    #[test]
    fn a_real_adapters_packet_has_this_crc() {
        let mut packet = [0; 60];
        packet[..32].copy_from_slice(&[
            0x45, 0xc2, 0x00, 0x3c, 0x71, 0x8c, 0x40, 0x00, 0x40, 0x11, 0x91, 0x61, 10, 0, 17, 1, 10, 0, 18,
            1, 0x00, 0x00, 0x12, 0xb7, 0x00, 0x28, 0x00, 0x00, 0x81, 0x00, 0xff, 0xff,
        ]);
        packet[32..36].copy_from_slice(&[0x40, 0x00, 0x01, 0x18]);
        assert_eq!(icrc(&packet[..56]), Some([0x82, 0xfd, 0x00, 0x2a]));
    }

    proptest! {
        /// Routers may change the fields that count as ones; any other flipped bit is seen.
        #[test]
        fn flipped_bits_are_seen(mut packet in prop::collection::vec(any::<u8>(), MASKED..90), at: prop::sample::Index, bit in 0..8) {
            let (at, before) = (at.index(packet.len()), icrc(&packet));
            packet[at] ^= 1u8 << bit;
            prop_assert_eq!(icrc(&packet) == before, ONES.contains(&at));
        }
    }
}
