//! IPv4 without options (RFC 791) and UDP (RFC 768).

use crate::header::FieldValue;
use std::net::Ipv4Addr;

/// Protocol number of UDP.
pub const UDP: u8 = 17;
/// Bit of [`Ipv4::flags`]: don't fragment.
pub const DONT_FRAGMENT: u8 = 0b010;
/// Bit of [`Ipv4::flags`]: more fragments follow.
pub const MORE_FRAGMENTS: u8 = 0b001;

impl FieldValue for Ipv4Addr {
    #[inline]
    fn from_bits(bits: u64) -> Self {
        Ipv4Addr::from(bits as u32)
    }
    #[inline]
    fn to_bits(self) -> u64 {
        u64::from(u32::from(self))
    }
}

crate::header! {
    /// IPv4 header without options.
    Ipv4 = "ipv4_t" {
        /// 4
        version / "version": u8 = 4;
        /// length of the header in words of 4 bytes; 5 without options
        ihl / "ihl": u8 = 4;
        /// differentiated services code point
        dscp / "dscp": u8 = 6;
        /// explicit congestion notification
        ecn / "ecn": u8 = 2;
        /// bytes of the packet, this header included
        total_length / "totalLen": u16 = 16;
        /// which packet a fragment belongs to
        identification / "identification": u16 = 16;
        /// don't fragment, more fragments
        flags / "flags": u8 = 3;
        /// place of a fragment in units of 8 bytes
        fragment_offset / "fragOffset": u16 = 13;
        /// routers that the packet may still pass
        ttl / "ttl": u8 = 8;
        /// what follows
        protocol / "protocol": u8 = 8;
        /// ones' complement sum of the header
        checksum / "hdrChecksum": u16 = 16;
        /// source
        src / "srcAddr": Ipv4Addr = 32;
        /// destination
        dst / "dstAddr": Ipv4Addr = 32;
    }
}

crate::header! {
    /// UDP header.
    Udp = "udp_t" {
        /// source port
        src_port / "srcPort": u16 = 16;
        /// destination port
        dst_port / "dstPort": u16 = 16;
        /// bytes of header and payload
        length / "length": u16 = 16;
        /// 0 if the sender computed none
        checksum / "checksum": u16 = 16;
    }
}

/// The sum of a piece's 16-bit words, to be added to those of others and folded. An odd last byte counts as followed by a zero.
#[inline]
pub fn sum(bytes: &[u8]) -> u64 {
    let words = bytes.chunks_exact(2);
    let odd = words.remainder().first().map_or(0, |last| u64::from(*last) << 8);
    words.map(|word| u64::from(u16::from_be_bytes([word[0], word[1]]))).sum::<u64>() + odd
}

/// The Internet checksum (RFC 1071) of words with this sum: the ones' complement of the sum with its carries.
#[inline]
pub fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// The Internet checksum of bytes. Over a header with a right checksum it is 0; for a new one, its own field counts as 0.
#[inline]
pub fn checksum(bytes: &[u8]) -> u16 {
    fold(sum(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 1071, section 3.
    #[test]
    fn the_checksum_is_the_standards() {
        assert_eq!(checksum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
        assert_eq!(checksum(&[0x00, 0x01, 0xf2]), checksum(&[0x00, 0x01, 0xf2, 0x00]));
    }
}
