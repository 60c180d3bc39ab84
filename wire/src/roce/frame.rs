//! Whole frames: composed in a buffer that is reused, and taken apart without a copy.

use super::icrc::{self, icrc};
use super::{Aeth, AtomicAckEth, AtomicEth, Bth, ImmDt, Opcode, Reth, UDP_PORT};
use crate::ethernet::{Ethernet, Vlan};
use crate::ipv4::{self, Ipv4, Udp};
use crate::{EtherType, MacAddr, ParseError};
use std::fmt;
use std::net::Ipv4Addr;
use std::ops::Range;

/// Bytes of the longest frame, with the largest MTU, one 802.1Q tag and the longest extended headers.
pub const BYTES_MAX: usize = HEADERS_BYTES + Vlan::BYTES + AtomicEth::BYTES + 4_096 + icrc::BYTES;
const IP_AT: usize = Ethernet::BYTES;
/// Where the base transport header of an untagged frame begins.
pub const BTH_AT: usize = IP_AT + Ipv4::BYTES + Udp::BYTES;
/// Ethernet, IPv4, UDP and BTH.
const HEADERS_BYTES: usize = BTH_AT + Bth::BYTES;

/// Addresses of a connection, as its own end sends them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// Our MAC address.
    pub src_mac: MacAddr,
    /// The next hop's MAC address.
    pub dst_mac: MacAddr,
    /// Our IP address.
    pub src_ip: Ipv4Addr,
    /// The peer's IP address.
    pub dst_ip: Ipv4Addr,
    /// Our UDP port: any, it spreads connections over links. The peer's is always [`UDP_PORT`].
    pub src_port: u16,
    /// Differentiated services code point, 0 to 63.
    pub dscp: u8,
}

/// Extended headers, as the opcode has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extension {
    /// None: parts of a SEND or WRITE, middle of read data.
    None,
    /// READ requests and starts of WRITEs.
    Rdma(Reth, Option<ImmDt>),
    /// Ends of SENDs and WRITEs with immediate data.
    Immediate(ImmDt),
    /// CmpSwap, FetchAdd.
    Atomic(AtomicEth),
    /// ACK, NAK, start and end of read data.
    Ack(Aeth),
    /// Answers of atomic operations.
    AtomicAck(Aeth, AtomicAckEth),
}

impl Extension {
    /// Bytes on the wire.
    pub const fn bytes(&self) -> usize {
        match self {
            Extension::None => 0,
            Extension::Rdma(_, None) => Reth::BYTES,
            Extension::Rdma(_, Some(_)) => Reth::BYTES + ImmDt::BYTES,
            Extension::Immediate(_) => ImmDt::BYTES,
            Extension::Atomic(_) => AtomicEth::BYTES,
            Extension::Ack(_) => Aeth::BYTES,
            Extension::AtomicAck(..) => Aeth::BYTES + AtomicAckEth::BYTES,
        }
    }

    fn parse(opcode: Opcode, bytes: &[u8]) -> Result<Extension, ParseError> {
        let behind = |header: usize| bytes.get(header..).unwrap_or(&[]);
        Ok(match opcode {
            Opcode::SendFirst
            | Opcode::SendMiddle
            | Opcode::SendLast
            | Opcode::SendOnly
            | Opcode::WriteMiddle
            | Opcode::WriteLast
            | Opcode::ReadResponseMiddle => Extension::None,
            Opcode::SendLastImmediate | Opcode::SendOnlyImmediate | Opcode::WriteLastImmediate => {
                Extension::Immediate(ImmDt::parse(bytes)?)
            }
            Opcode::WriteFirst | Opcode::WriteOnly | Opcode::ReadRequest => {
                Extension::Rdma(Reth::parse(bytes)?, None)
            }
            Opcode::WriteOnlyImmediate => {
                Extension::Rdma(Reth::parse(bytes)?, Some(ImmDt::parse(behind(Reth::BYTES))?))
            }
            Opcode::CompareSwap | Opcode::FetchAdd => Extension::Atomic(AtomicEth::parse(bytes)?),
            Opcode::Acknowledge
            | Opcode::ReadResponseFirst
            | Opcode::ReadResponseLast
            | Opcode::ReadResponseOnly => Extension::Ack(Aeth::parse(bytes)?),
            Opcode::AtomicAcknowledge => {
                Extension::AtomicAck(Aeth::parse(bytes)?, AtomicAckEth::parse(behind(Aeth::BYTES))?)
            }
        })
    }

    fn emit(&self, bytes: &mut [u8]) {
        match self {
            Extension::None => {}
            Extension::Rdma(reth, immediate) => {
                reth.emit(bytes);
                if let Some(immediate) = immediate {
                    immediate.emit(&mut bytes[Reth::BYTES..]);
                }
            }
            Extension::Immediate(immediate) => immediate.emit(bytes),
            Extension::Atomic(atomic) => atomic.emit(bytes),
            Extension::Ack(aeth) => aeth.emit(bytes),
            Extension::AtomicAck(aeth, answer) => {
                aeth.emit(bytes);
                answer.emit(&mut bytes[Aeth::BYTES..]);
            }
        }
    }
}

/// A packet behind UDP's header, without its iCRC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Base transport header.
    pub bth: Bth,
    /// Its opcode.
    pub opcode: Opcode,
    /// Extended headers.
    pub extension: Extension,
    /// Payload without padding.
    pub payload: &'a [u8],
}

/// A frame taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Ethernet header.
    pub ethernet: Ethernet,
    /// IPv4 header.
    pub ipv4: Ipv4,
    /// The packet in it.
    pub packet: Packet<'a>,
}

/// Why a frame is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameError {
    /// It is of another protocol.
    NotRoce,
    /// It is IPv4 with options, or a fragment.
    Unsupported,
    /// A header is cut short or makes no sense.
    Malformed(ParseError),
    /// IPv4's checksum is wrong.
    Checksum,
    /// The iCRC is wrong.
    Icrc,
}

impl From<ParseError> for FrameError {
    fn from(error: ParseError) -> FrameError {
        FrameError::Malformed(error)
    }
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FrameError::NotRoce => write!(f, "not a frame of RoCEv2"),
            FrameError::Unsupported => write!(f, "IPv4 with options, or a fragment"),
            FrameError::Malformed(error) => error.fmt(f),
            FrameError::Checksum => write!(f, "IPv4's checksum is wrong"),
            FrameError::Icrc => write!(f, "the iCRC is wrong"),
        }
    }
}

impl std::error::Error for FrameError {}

/// Starts a frame over `out`: writes all headers and returns the payload of `bytes` bytes, filled with zeros. The
/// caller fills it and then calls [`seal`]. `bytes` is at most the largest MTU.
pub fn begin(
    path: &Path,
    mut bth: Bth,
    extension: &Extension,
    bytes: usize,
    out: &mut Vec<u8>,
) -> Range<usize> {
    let pad = bytes.wrapping_neg() % 4;
    let payload_at = HEADERS_BYTES + extension.bytes();
    let end = payload_at + bytes + pad + icrc::BYTES;
    out.clear();
    out.resize(end, 0);
    Ethernet { dst: path.dst_mac, src: path.src_mac, ether_type: EtherType::IPV4 }.emit(out);
    let ip_bytes = end - IP_AT;
    let ip = &mut out[IP_AT..];
    Ipv4 {
        version: 4,
        ihl: 5,
        dscp: path.dscp,
        ecn: 0,
        total_length: ip_bytes as u16,
        identification: 0,
        flags: ipv4::DONT_FRAGMENT,
        fragment_offset: 0,
        ttl: 64,
        protocol: ipv4::UDP,
        checksum: 0,
        src: path.src_ip,
        dst: path.dst_ip,
    }
    .emit(ip);
    let checksum = ipv4::checksum(&ip[..Ipv4::BYTES]);
    ip[10..12].copy_from_slice(&checksum.to_be_bytes());
    let length = (ip_bytes - Ipv4::BYTES) as u16;
    Udp { src_port: path.src_port, dst_port: UDP_PORT, length, checksum: 0 }.emit(&mut ip[Ipv4::BYTES..]);
    bth.pad = pad as u8;
    bth.emit(&mut ip[Ipv4::BYTES + Udp::BYTES..]);
    extension.emit(&mut out[HEADERS_BYTES..]);
    payload_at..payload_at + bytes
}

/// Ends a frame that [`begin`] started: fills in the iCRC. Without this call it is 0.
pub fn seal(out: &mut [u8]) {
    let end = out.len().saturating_sub(icrc::BYTES);
    if let Some(crc) = out.get(IP_AT..end).and_then(icrc) {
        out[end..].copy_from_slice(&crc);
    }
}

/// Composes a frame over `out`, with its iCRC.
pub fn compose(path: &Path, bth: Bth, extension: &Extension, payload: &[u8], out: &mut Vec<u8>) {
    let place = begin(path, bth, extension, payload.len(), out);
    out[place].copy_from_slice(payload);
    seal(out);
}

/// Takes a frame apart, with or without an 802.1Q tag. Bytes behind the IPv4 packet are ignored: Ethernet pads short
/// frames. With `verify` the iCRC has to be right. UDP's checksum is ignored, because the iCRC covers more.
pub fn parse(frame: &[u8], verify: bool) -> Result<Frame<'_>, FrameError> {
    let ethernet = Ethernet::parse(frame)?;
    let mut ip = &frame[Ethernet::BYTES..];
    let mut ether_type = ethernet.ether_type;
    if ether_type == EtherType::VLAN {
        ether_type = Vlan::parse(ip)?.ether_type;
        ip = &ip[Vlan::BYTES..];
    }
    if ether_type != EtherType::IPV4 {
        return Err(FrameError::NotRoce);
    }
    let ipv4 = Ipv4::parse(ip)?;
    if ipv4.version != 4 || ipv4.protocol != ipv4::UDP {
        return Err(FrameError::NotRoce);
    }
    if ipv4.ihl != 5 || ipv4.fragment_offset != 0 || ipv4.flags & ipv4::MORE_FRAGMENTS != 0 {
        return Err(FrameError::Unsupported);
    }
    if ipv4::checksum(&ip[..Ipv4::BYTES]) != 0 {
        return Err(FrameError::Checksum);
    }
    let (need, have) = (usize::from(ipv4.total_length), ip.len());
    let ip = ip.get(..need).ok_or(ParseError::Truncated { need, have })?;
    let udp_bytes = ip.get(Ipv4::BYTES..).unwrap_or(&[]);
    let udp = Udp::parse(udp_bytes)?;
    if udp.dst_port != UDP_PORT {
        return Err(FrameError::NotRoce);
    }
    if usize::from(udp.length) != udp_bytes.len() {
        return Err(ParseError::Invalid { field: "length", value: udp.length.into() }.into());
    }
    let (need, have) = (Udp::BYTES + Bth::BYTES + icrc::BYTES, udp_bytes.len());
    if have < need {
        return Err(ParseError::Truncated { need, have }.into());
    }
    let (covered, crc) = ip.split_at(ip.len() - icrc::BYTES);
    if verify && icrc(covered).is_none_or(|right| crc != right) {
        return Err(FrameError::Icrc);
    }
    Ok(Frame { ethernet, ipv4, packet: packet(&covered[Ipv4::BYTES + Udp::BYTES..])? })
}

/// Takes a packet apart from its base transport header on, without iCRC.
pub fn packet(bytes: &[u8]) -> Result<Packet<'_>, ParseError> {
    let bth = Bth::parse(bytes)?;
    let invalid = |field, value: u8| ParseError::Invalid { field, value: value.into() };
    let opcode = Opcode::of(bth.opcode).ok_or(invalid("opcode", bth.opcode))?;
    if bth.version != 0 {
        return Err(invalid("version", bth.version));
    }
    let bytes = &bytes[Bth::BYTES..];
    let extension = Extension::parse(opcode, bytes)?;
    let padded = &bytes[extension.bytes()..];
    let length = padded.len().checked_sub(bth.pad.into()).ok_or(invalid("pad", bth.pad))?;
    if !opcode.has_payload() && length != 0 {
        return Err(ParseError::Invalid { field: "payload", value: length as u64 });
    }
    Ok(Packet { bth, opcode, extension, payload: &padded[..length] })
}
