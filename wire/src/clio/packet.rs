//! Packets behind UDP's header: composed in a buffer that is reused, and taken apart without a copy.

use super::{Header, Kind, VERSION};
use crate::ParseError;
use crate::ethernet::overhead;
use crate::ipv4::{Ipv4, Udp};
use std::fmt;
use std::ops::Range;

/// Position of the CRC: it covers all bytes before and behind it.
const CRC_AT: usize = Header::BYTES - 4;

/// Maximum data bytes of a packet on a network with this MTU (bytes of an IPv4 packet): a multiple of 8. With 1500 bytes 1424.
pub const fn data_bytes_max(mtu: u32) -> u32 {
    mtu.saturating_sub((Ipv4::BYTES + Udp::BYTES + Header::BYTES) as u32) & !7
}

/// Maximum data bytes of a packet in an Ethernet frame of normal size.
pub const DATA_BYTES_MAX: u32 = data_bytes_max(overhead::MTU as u32);

/// Bytes of a call's results that every board returns.
pub const RESULTS_BYTES_MAX: u32 = 1 << 17;

/// Bytes of a READ that every board answers.
pub const READ_BYTES_MAX: u32 = 1 << 16;

/// A packet taken apart. Its CRC is not checked: see [`is_intact`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Its header.
    pub header: Header,
    /// Kind of the packet.
    pub kind: Kind,
    /// Bytes behind the header: `header.length` bytes, none for kinds without data.
    pub data: &'a [u8],
}

/// Why a packet is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketError {
    /// It is cut short, or a field is invalid.
    Malformed(ParseError),
    /// It has another version of the format.
    Version(u8),
    /// It has more or fewer bytes of data than its header says.
    Length {
        /// Bytes that the header announces.
        announced: u32,
        /// Bytes behind the header.
        found: usize,
    },
    /// The CRC is wrong.
    Crc,
}

impl From<ParseError> for PacketError {
    fn from(error: ParseError) -> PacketError {
        PacketError::Malformed(error)
    }
}

impl fmt::Display for PacketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PacketError::Malformed(error) => error.fmt(f),
            PacketError::Version(version) => write!(f, "version {version} of the format, expected {VERSION}"),
            PacketError::Length { announced, found } => {
                write!(f, "the header announces {announced} bytes of data, {found} follow")
            }
            PacketError::Crc => write!(f, "the CRC is wrong"),
        }
    }
}

impl std::error::Error for PacketError {}

/// Takes a packet apart, from its header on. The CRC is not checked, so that boards can check the token first, which costs less.
/// Errors: cut short, another version, unknown kind, not as many bytes of data as announced, an index beyond the packets.
#[inline]
pub fn parse(bytes: &[u8]) -> Result<Packet<'_>, PacketError> {
    let header = Header::parse(bytes)?;
    if header.version != VERSION {
        return Err(PacketError::Version(header.version));
    }
    let invalid = |field, value: u64| ParseError::Invalid { field, value };
    let kind = Kind::of(header.kind).ok_or(invalid("kind", header.kind.into()))?;
    let data = &bytes[Header::BYTES..];
    let announced = if kind.has_data() { header.length } else { 0 };
    if data.len() as u64 != u64::from(announced) {
        return Err(PacketError::Length { announced, found: data.len() });
    }
    if header.index >= header.packets {
        return Err(invalid("index", header.index.into()).into());
    }
    Ok(Packet { header, kind, data })
}

/// Whether the CRC of a packet with a whole header is right.
#[inline]
pub fn is_intact(bytes: &[u8]) -> bool {
    bytes.len() >= Header::BYTES && bytes[CRC_AT..Header::BYTES] == crc(bytes).to_be_bytes()
}

/// Takes a packet apart and checks its CRC. Errors: those of [`parse`], and a wrong CRC.
pub fn parse_intact(bytes: &[u8]) -> Result<Packet<'_>, PacketError> {
    let packet = parse(bytes)?;
    if is_intact(bytes) { Ok(packet) } else { Err(PacketError::Crc) }
}

/// Starts a packet over `out`: writes the header and returns its `bytes` bytes of data, filled with zeros. The caller
/// fills them and calls [`seal`]. Version and CRC of `header` are ignored.
#[inline]
pub fn begin(header: &Header, bytes: usize, out: &mut Vec<u8>) -> Range<usize> {
    out.clear();
    out.resize(Header::BYTES + bytes, 0);
    Header { version: VERSION, crc: 0, ..*header }.emit(out);
    Header::BYTES..Header::BYTES + bytes
}

/// Ends a packet that [`begin`] started: fills in the CRC.
#[inline]
pub fn seal(out: &mut [u8]) {
    if out.len() >= Header::BYTES {
        let crc = crc(out).to_be_bytes();
        out[CRC_AT..Header::BYTES].copy_from_slice(&crc);
    }
}

/// Composes a packet over `out`, with its CRC. `header.length` has to be the length of `data` if the kind has data.
pub fn compose(header: &Header, data: &[u8], out: &mut Vec<u8>) {
    let place = begin(header, data.len(), out);
    out[place].copy_from_slice(data);
    seal(out);
}

fn crc(bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&bytes[..CRC_AT]), &bytes[Header::BYTES..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header(kind: Kind, length: u32) -> Header {
        Header {
            version: VERSION,
            kind: kind as u8,
            code: 0,
            flags: 0,
            attempt: 1,
            index: 0,
            packets: 1,
            id: 7,
            address: 0x1000,
            pid: 3,
            length,
            token: 9,
            epoch: 2,
            reserved: 0,
            crc: 0,
        }
    }

    /// The check value of RFC 3720 (appendix B.4: 32 bytes of zeros), and that the CRC's own bytes don't count.
    #[test]
    fn the_crc_is_the_standards() {
        assert_eq!(crc32c::crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c::crc32c(b"123456789"), 0xe306_9283);
        let mut bytes = vec![0x55; Header::BYTES + 4];
        let without = [&bytes[..CRC_AT], &bytes[Header::BYTES..]].concat();
        assert_eq!(crc(&bytes), crc32c::crc32c(&without));
        bytes[CRC_AT] ^= 1;
        assert_eq!(crc(&bytes), crc32c::crc32c(&without));
    }

    #[test]
    fn errors_say_what_is_wrong() {
        let mut out = Vec::new();
        compose(&header(Kind::Write, 4), &[1, 2, 3, 4], &mut out);
        assert_eq!(parse_intact(&out).map(|packet| packet.data.to_vec()), Ok(vec![1, 2, 3, 4]));
        let changed = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = out.clone();
            change(&mut bytes);
            parse_intact(&bytes).map(|_| ()).unwrap_err()
        };
        let cut = ParseError::Truncated { need: Header::BYTES, have: 10 };
        assert_eq!(changed(&|bytes| bytes.truncate(10)), PacketError::Malformed(cut));
        assert_eq!(changed(&|bytes| bytes[0] = 0x22), PacketError::Version(2));
        let invalid = |field, value| PacketError::Malformed(ParseError::Invalid { field, value });
        assert_eq!(changed(&|bytes| bytes[0] = 0x17), invalid("kind", 7));
        assert_eq!(changed(&|bytes| bytes.push(0)), PacketError::Length { announced: 4, found: 5 });
        assert_eq!(changed(&|bytes| bytes[0] = 0x11), PacketError::Length { announced: 0, found: 4 });
        assert_eq!(changed(&|bytes| bytes[5] = 1), invalid("index", 1));
        assert_eq!(changed(&|bytes| bytes[50] ^= 1), PacketError::Crc);
    }

    #[test]
    fn a_full_packet_fills_a_frame() {
        assert_eq!((DATA_BYTES_MAX, data_bytes_max(9_000), data_bytes_max(70)), (1_424, 8_920, 0));
        assert!(DATA_BYTES_MAX as usize + Header::BYTES + Ipv4::BYTES + Udp::BYTES <= overhead::MTU as usize);
    }

    proptest! {
        #[test]
        fn any_flipped_bit_is_noticed(data in prop::collection::vec(any::<u8>(), 0..80), at: prop::sample::Index, bit in 0..8) {
            let mut out = Vec::new();
            compose(&header(Kind::Write, data.len() as u32), &data, &mut out);
            prop_assert!(is_intact(&out));
            let at = at.index(out.len());
            out[at] ^= 1u8 << bit;
            prop_assert!(parse_intact(&out).is_err());
        }

        #[test]
        fn any_bytes_are_taken(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
            let _ = (parse(&bytes), is_intact(&bytes));
        }
    }
}
