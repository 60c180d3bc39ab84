//! Reads captures back, without code shared with their writer.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::path::Path;

/// Frames of a capture file (little-endian, nanoseconds), in order.
pub fn frames(path: &Path) -> Vec<Vec<u8>> {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    assert_eq!(word(0), 0xa1b2_3c4d, "{} is no capture", path.display());
    let mut frames = Vec::new();
    let mut at = 24;
    while at + 16 <= bytes.len() {
        let length = word(at + 8) as usize;
        assert_eq!(length as u32, word(at + 12), "frames are captured whole");
        frames.push(bytes[at + 16..at + 16 + length].to_vec());
        at += 16 + length;
    }
    assert_eq!(at, bytes.len(), "{} ends in the middle of a frame", path.display());
    frames
}

/// An IPv4 packet and the VLAN it travelled in.
pub struct Packet<'a> {
    pub vid: Option<u16>,
    pub ip: &'a [u8],
}

/// Finds the IPv4 packet of a frame under its 802.1Q tag and PL2's shim of 8 bytes, whose second half word is
/// the payload's EtherType.
pub fn ipv4(frame: &[u8]) -> Option<Packet<'_>> {
    let half = |at: usize| frame.get(at..at + 2).map(|b| u16::from_be_bytes([b[0], b[1]]));
    let (mut at, mut vid) = (12, None);
    if half(at)? == 0x8100 {
        vid = Some(half(14)? & 0xfff);
        at = 16;
    }
    let mut ether_type = half(at)?;
    at += 2;
    // Version 1, kind 4: data.
    if ether_type == 0x88b5 && frame.get(at) == Some(&0x14) {
        ether_type = half(at + 2)?;
        at += 8;
    }
    (ether_type == 0x0800).then_some(())?;
    let length = usize::from(half(at + 2)?);
    Some(Packet { vid, ip: frame.get(at..at + length)? })
}

/// A TCP connection's direction: addresses and ports.
pub type Flow = ([u8; 4], u16, [u8; 4], u16);

/// A direction's byte stream put together from its segments, and the VLANs that carried them.
#[derive(Default)]
pub struct Stream {
    start: Option<u32>,
    segments: BTreeMap<u32, Vec<u8>>,
    pub vids: std::collections::BTreeSet<Option<u16>>,
}

impl Stream {
    /// The bytes without a gap from the start.
    pub fn bytes(&self) -> Vec<u8> {
        let mut stream = Vec::new();
        for (&offset, segment) in &self.segments {
            let offset = offset as usize;
            if offset > stream.len() {
                break;
            }
            let new = segment.get(stream.len() - offset..).unwrap_or_default();
            stream.extend_from_slice(new);
        }
        stream
    }
}

/// All TCP streams of a capture.
pub fn tcp_streams(frames: &[Vec<u8>]) -> BTreeMap<Flow, Stream> {
    let mut streams: BTreeMap<Flow, Stream> = BTreeMap::new();
    for frame in frames {
        let Some(Packet { vid, ip }) = ipv4(frame) else { continue };
        if ip[9] != 6 {
            continue;
        }
        let address = |at: usize| [ip[at], ip[at + 1], ip[at + 2], ip[at + 3]];
        let tcp = &ip[usize::from(ip[0] & 15) * 4..];
        let half = |at: usize| u16::from_be_bytes([tcp[at], tcp[at + 1]]);
        let sequence = u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]);
        let stream = streams.entry((address(12), half(0), address(16), half(2))).or_default();
        if tcp[13] & 2 != 0 {
            stream.start = Some(sequence.wrapping_add(1));
            continue;
        }
        let payload = &tcp[usize::from(tcp[12] >> 4) * 4..];
        if !payload.is_empty() {
            stream.vids.insert(vid);
            let offset =
                sequence.wrapping_sub(stream.start.expect("the capture began before the connection"));
            stream.segments.insert(offset, payload.to_vec());
        }
    }
    streams
}

/// gRPC messages of one direction of an HTTP/2 connection, by stream and in order.
pub fn grpc_messages(bytes: &[u8]) -> Vec<Vec<u8>> {
    const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let mut left = bytes.strip_prefix(PREFACE).expect("an HTTP/2 client begins with the preface");
    let mut data: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
    while let [a, b, c, kind, flags, s0, s1, s2, s3, rest @ ..] = left {
        let length = u32::from_be_bytes([0, *a, *b, *c]) as usize;
        let Some(payload) = rest.get(..length) else { break };
        if *kind == 0 {
            assert_eq!(flags & 8, 0, "padded data");
            data.entry(u32::from_be_bytes([*s0, *s1, *s2, *s3])).or_default().extend_from_slice(payload);
        }
        left = &rest[length..];
    }
    let mut messages = Vec::new();
    for stream in data.values() {
        let mut left = &stream[..];
        while let [compressed, a, b, c, d, rest @ ..] = left {
            assert_eq!(*compressed, 0, "compressed message");
            let length = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
            let Some(message) = rest.get(..length) else { break };
            messages.push(message.to_vec());
            left = &rest[length..];
        }
    }
    messages
}
