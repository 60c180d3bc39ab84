//! The invariant CRC at the end of a RoCEv2 packet (InfiniBand Architecture 1.4, annex A17.3.3).
//!
//! It is Ethernet's CRC-32 over what no router changes. What routers change counts as ones:
//!
//! ```text
//! 8 bytes of ones | IPv4: TOS, TTL, checksum = ones | UDP: checksum = ones | BTH: byte 4 = ones | all that follows
//! ```
//!
//! The eight bytes stand for InfiniBand's local route header. On the wire the CRC's lowest byte comes first.

/// Bytes of the CRC.
pub const BYTES: usize = 4;
/// IPv4, UDP and base transport header: the part in which some bytes count as ones.
const MASKED: usize = 20 + 8 + 12;
/// These bytes: TOS, TTL, IPv4's checksum, UDP's checksum, and the congestion bits of the base transport header.
const ONES: [usize; 7] = [1, 8, 10, 11, 26, 27, 32];

/// Eight tables, so that eight bytes pass in one step.
static TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = (crc >> 1) ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut nth = 1;
    while nth < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[nth - 1][byte];
            tables[nth][byte] = (before >> 8) ^ tables[0][(before & 0xff) as usize];
            byte += 1;
        }
        nth += 1;
    }
    tables
}

/// Carries a CRC register on over `bytes`.
fn update(mut crc: u32, bytes: &[u8]) -> u32 {
    let mut eights = bytes.chunks_exact(8);
    for eight in &mut eights {
        let low = crc ^ u32::from_le_bytes([eight[0], eight[1], eight[2], eight[3]]);
        let at = |nth: usize, word: u32, shift: u32| TABLES[nth][(word >> shift & 0xff) as usize];
        let high = u32::from_le_bytes([eight[4], eight[5], eight[6], eight[7]]);
        crc = at(7, low, 0) ^ at(6, low, 8) ^ at(5, low, 16) ^ at(4, low, 24);
        crc ^= at(3, high, 0) ^ at(2, high, 8) ^ at(1, high, 16) ^ at(0, high, 24);
    }
    for byte in eights.remainder() {
        crc = (crc >> 8) ^ TABLES[0][(crc as u8 ^ byte) as usize];
    }
    crc
}

/// The CRC of a packet from its IPv4 header (without options) up to the CRC itself, as its bytes stand on the wire.
/// `None` if the packet is shorter than its headers.
pub fn icrc(packet: &[u8]) -> Option<[u8; BYTES]> {
    let (head, tail) = packet.split_first_chunk::<MASKED>()?;
    let mut head = *head;
    for at in ONES {
        head[at] = 0xff;
    }
    let crc = update(update(update(!0, &[0xff; 8]), &head), tail);
    Some((!crc).to_le_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_crc_is_ethernets() {
        assert_eq!(!update(!0, b"123456789"), 0xcbf4_3926, "the catalogue's check value of CRC-32");
    }

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
        #[test]
        fn eight_bytes_a_step_are_eight_steps(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let slow = bytes.iter().fold(!0, |crc, byte| update(crc, &[*byte]));
            prop_assert_eq!(update(!0, &bytes), slow);
        }

        /// Routers may change what counts as ones; any other flipped bit is seen.
        #[test]
        fn flipped_bits_are_seen(mut packet in prop::collection::vec(any::<u8>(), MASKED..90), at: prop::sample::Index, bit in 0..8) {
            let (at, before) = (at.index(packet.len()), icrc(&packet));
            packet[at] ^= 1u8 << bit;
            prop_assert_eq!(icrc(&packet) == before, ONES.contains(&at));
        }
    }
}
