//! UDP datagrams over IPv4 in whole Ethernet frames, with both checksums (RFC 768, RFC 791).

use crate::ethernet::Ethernet;
use crate::ipv4::{self, Ipv4, Udp};
use crate::{EtherType, MacAddr, ParseError};
use std::fmt;
use std::net::SocketAddrV4;

const IP_AT: usize = Ethernet::BYTES;
const UDP_AT: usize = IP_AT + Ipv4::BYTES;
/// Bytes of a frame before the data of a datagram.
pub const HEADERS_BYTES: usize = UDP_AT + Udp::BYTES;
/// Maximum bytes of a datagram's data.
pub const DATA_BYTES_MAX: usize = u16::MAX as usize - Ipv4::BYTES - Udp::BYTES;

/// An end of a datagram: where it comes from, or goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// MAC address, of the next hop if the end is behind a router.
    pub mac: MacAddr,
    /// Address and port.
    pub addr: SocketAddrV4,
}

/// A datagram of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// Source.
    pub src: End,
    /// Destination.
    pub dst: End,
    /// Its data.
    pub data: &'a [u8],
}

/// Why a frame has no datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatagramError {
    /// It is of another protocol, or tagged.
    NotUdp,
    /// It is IPv4 with options, or a fragment.
    Unsupported,
    /// A header is cut short or makes no sense.
    Malformed(ParseError),
    /// A checksum is wrong.
    Checksum,
}

impl From<ParseError> for DatagramError {
    fn from(error: ParseError) -> DatagramError {
        DatagramError::Malformed(error)
    }
}

impl fmt::Display for DatagramError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DatagramError::NotUdp => write!(f, "not a frame of UDP over IPv4"),
            DatagramError::Unsupported => write!(f, "IPv4 with options, or a fragment"),
            DatagramError::Malformed(error) => error.fmt(f),
            DatagramError::Checksum => write!(f, "a checksum is wrong"),
        }
    }
}

impl std::error::Error for DatagramError {}

/// The checksum over UDP's header and data, with the addresses of IPv4's header. Over a datagram with a right checksum it is 0.
fn checksum(ip: &Ipv4, datagram: &[u8]) -> u16 {
    let addresses = ipv4::sum(&ip.src.octets()) + ipv4::sum(&ip.dst.octets());
    let pseudo = addresses + u64::from(ipv4::UDP) + datagram.len() as u64;
    ipv4::fold(pseudo + ipv4::sum(datagram))
}

/// Composes a frame over `out`. Of more than [`DATA_BYTES_MAX`] bytes of data, the rest is left out.
pub fn compose(src: &End, dst: &End, data: &[u8], out: &mut Vec<u8>) {
    let data = &data[..data.len().min(DATA_BYTES_MAX)];
    out.clear();
    out.resize(HEADERS_BYTES, 0);
    out.extend_from_slice(data);
    Ethernet { dst: dst.mac, src: src.mac, ether_type: EtherType::IPV4 }.emit(out);
    let length = (Udp::BYTES + data.len()) as u16;
    let ip = Ipv4 {
        version: 4,
        ihl: 5,
        dscp: 0,
        ecn: 0,
        total_length: Ipv4::BYTES as u16 + length,
        identification: 0,
        flags: ipv4::DONT_FRAGMENT,
        fragment_offset: 0,
        ttl: 64,
        protocol: ipv4::UDP,
        checksum: 0,
        src: *src.addr.ip(),
        dst: *dst.addr.ip(),
    };
    ip.emit(&mut out[IP_AT..]);
    let sum = ipv4::checksum(&out[IP_AT..UDP_AT]);
    out[IP_AT + 10..IP_AT + 12].copy_from_slice(&sum.to_be_bytes());
    let udp = Udp { src_port: src.addr.port(), dst_port: dst.addr.port(), length, checksum: 0 };
    udp.emit(&mut out[UDP_AT..]);
    // 0 stands for none, and all ones for 0.
    let sum = checksum(&ip, &out[UDP_AT..]);
    let sum = if sum == 0 { u16::MAX } else { sum };
    out[UDP_AT + 6..UDP_AT + 8].copy_from_slice(&sum.to_be_bytes());
}

/// Takes a frame apart. What lies behind the IPv4 packet is ignored: Ethernet pads short frames.
pub fn parse(frame: &[u8]) -> Result<Datagram<'_>, DatagramError> {
    let ethernet = Ethernet::parse(frame)?;
    if ethernet.ether_type != EtherType::IPV4 {
        return Err(DatagramError::NotUdp);
    }
    let bytes = &frame[IP_AT..];
    let ip = Ipv4::parse(bytes)?;
    if ip.version != 4 || ip.protocol != ipv4::UDP {
        return Err(DatagramError::NotUdp);
    }
    if ip.ihl != 5 || ip.fragment_offset != 0 || ip.flags & ipv4::MORE_FRAGMENTS != 0 {
        return Err(DatagramError::Unsupported);
    }
    if ipv4::checksum(&bytes[..Ipv4::BYTES]) != 0 {
        return Err(DatagramError::Checksum);
    }
    let (need, have) = (usize::from(ip.total_length), bytes.len());
    let bytes = bytes.get(Ipv4::BYTES..need).ok_or(ParseError::Truncated { need, have })?;
    let udp = Udp::parse(bytes)?;
    let need = usize::from(udp.length);
    let datagram = bytes.get(..need).ok_or(ParseError::Truncated { need, have: bytes.len() })?;
    let data = datagram
        .get(Udp::BYTES..)
        .ok_or(ParseError::Invalid { field: "length", value: udp.length.into() })?;
    if udp.checksum != 0 && checksum(&ip, datagram) != 0 {
        return Err(DatagramError::Checksum);
    }
    Ok(Datagram {
        src: End { mac: ethernet.src, addr: SocketAddrV4::new(ip.src, udp.src_port) },
        dst: End { mac: ethernet.dst, addr: SocketAddrV4::new(ip.dst, udp.dst_port) },
        data,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn end(nth: u8) -> End {
        let ip = Ipv4Addr::new(10, 0, 0, nth);
        End { mac: MacAddr([2, 0, 0, 0, 0, nth]), addr: SocketAddrV4::new(ip, 1_000 + u16::from(nth)) }
    }

    #[test]
    fn a_composed_datagram_is_taken_apart_and_no_wrong_byte_passes() {
        let mut frame = Vec::new();
        for data in [&b""[..], b"odd", b"even", &[0; 1_400]] {
            compose(&end(1), &end(2), data, &mut frame);
            let found = Datagram { src: end(1), dst: end(2), data };
            assert_eq!(parse(&frame), Ok(found));
            // Padding of a short frame.
            let mut padded = frame.clone();
            padded.resize(frame.len().max(60), 0xff);
            assert_eq!(parse(&padded), Ok(found));
            for at in IP_AT..frame.len() {
                let mut wrong = frame.clone();
                wrong[at] ^= 0x10;
                assert!(parse(&wrong).is_err(), "{at} of {}", data.len());
                assert!(parse(&frame[..at]).is_err(), "{at} of {}", data.len());
            }
        }
        frame[UDP_AT + 6..UDP_AT + 8].fill(0);
        assert!(parse(&frame).is_ok(), "a sender may compute no checksum");
    }

    /// Two bytes of data from port 41103 to port 9876, summed by hand.
    #[test]
    fn the_checksum_covers_addresses_ports_length_and_data() {
        let ip = Ipv4 {
            version: 4,
            ihl: 5,
            dscp: 0,
            ecn: 0,
            total_length: 30,
            identification: 0,
            flags: 0,
            fragment_offset: 0,
            ttl: 64,
            protocol: ipv4::UDP,
            checksum: 0,
            src: Ipv4Addr::new(152, 1, 51, 27),
            dst: Ipv4Addr::new(152, 14, 94, 75),
        };
        let bytes = [0xa0, 0x8f, 0x26, 0x94, 0x00, 0x0a, 0x00, 0x00, 0x62, 0x62];
        assert_eq!(checksum(&ip, &bytes), 0x14de);
    }
}
