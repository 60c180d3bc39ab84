//! Frames of scripted hosts. Receivers find a sender's tag, whatever headers programs have put in front of it.
//!
//! ```text
//!  UDP  Ethernet 14 | IPv4 20 | UDP 8 | tag 18 | pattern
//!                                       magic 2 | sum 2 | flow 2 | number 4 | time 6 | part 1 | last 1
//!  TCP  Ethernet 14 | IPv4 20 | TCP 20 | timestamps 12 | SACK 0 to 28 | pattern
//!                                        no-op 2, 8, 10, flow 2, magic 2, sum 4
//! ```
//!
//! TCP's sequence numbers are the stream's offsets modulo 2³²; connections are not set up. Simulated hosts have no clocks that
//! would need its timestamps, so the option names the flow.
//!
//! Magic and sums depend on the run's [`Salt`]: frames of another run, which a capture may hold, have no tag here.

use crate::transport::tcp::MSS;
use crate::transport::wire::{RANGES, Range};
use p4rack_wire::ethernet::Ethernet;
use p4rack_wire::ipv4::{DONT_FRAGMENT, Ipv4, UDP, Udp, fold, sum};
use p4rack_wire::{EtherType, MacAddr, Nanos};
use std::net::Ipv4Addr;

/// Bytes in front of a datagram's payload.
pub(super) const UDP_HEADERS: usize = NETWORK + Udp::BYTES;
/// Bytes of a tag, and of the shortest payload.
pub(super) const TAG_BYTES: usize = 18;
/// Payload bytes of a datagram at most.
pub(super) const DATAGRAM_MAX: usize = 1_472;
/// Bytes of Ethernet's and IPv4's headers.
const NETWORK: usize = Ethernet::BYTES + Ipv4::BYTES;
/// Protocol number of TCP.
const TCP: u8 = 6;
/// No-operation twice, then timestamps with their length.
const TIMESTAMPS: [u8; 4] = [1, 1, 8, 10];
/// Bytes of TCP's header with timestamps.
const TCP_BYTES: usize = 32;
/// Flags of TCP: PSH, ACK, ECE.
const PUSH: u8 = 0x08;
const ACK: u8 = 0x10;
const ECE: u8 = 0x40;
/// ECN-capable transport, and congestion experienced (RFC 3168).
const ECT: u8 = 2;
const CE: u8 = 3;
/// A tag is searched for up to here.
const SEARCHED: usize = 512;

/// Payload, of which every receiver knows each byte.
static PATTERN: [u8; DATAGRAM_MAX] = {
    let mut pattern = [0; DATAGRAM_MAX];
    let mut at = 0;
    while at < DATAGRAM_MAX {
        pattern[at] = (at * 31 + (at >> 8) * 7 + 1) as u8;
        at += 1;
    }
    pattern
};

/// Distinguishes a run's frames from those of other runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Salt {
    /// The first bytes of tags and of TCP's timestamps.
    magic: u16,
    /// Goes into their sums.
    key: u64,
}

impl Salt {
    /// That of a run with this hash.
    pub fn new(hash: u64) -> Salt {
        // Many frames have zeros.
        Salt { magic: (hash >> 48) as u16 | 1, key: hash }
    }
}

/// A datagram's tag, for its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tag {
    pub flow: u16,
    /// Of a frame; of a request and its answer.
    pub number: u32,
    /// When the message was created.
    pub time: Nanos,
    /// Number of the frame within its message, and that of the last one.
    pub part: u8,
    pub last: u8,
}

/// Fields of a TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub flow: u16,
    /// Offset of the first byte, and the next byte that the other end expects, modulo 2³².
    pub start: u32,
    pub next: u32,
    pub bytes: u16,
    /// Whether a message ends here.
    pub push: bool,
    /// Of data: whether a switch has marked it.
    pub marked: bool,
    /// Of acknowledgements: whether marks were seen.
    pub echo: bool,
    /// Of acknowledgements: SACK ranges, modulo 2³².
    pub ranges: [(u32, u32); RANGES],
    pub count: usize,
}

/// Content of a frame that a host receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameContent {
    /// A datagram, and whether its payload is as it was sent.
    Datagram(Tag, bool),
    /// A segment, and the same.
    Segment(Segment, bool),
    /// Something else.
    Other,
}

/// Headers from one host to another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Headers {
    /// Ethernet and IPv4, with a length and a checksum of 0.
    network: [u8; NETWORK],
    /// The sum of IPv4's words, and that of TCP's pseudo header.
    ip_sum: u64,
    pseudo_sum: u64,
    ports: (u16, u16),
    salt: Salt,
}

impl Headers {
    /// Headers of a run's frames with these MAC and IPv4 addresses and ports, each from and to.
    pub fn new(
        salt: Salt,
        macs: (MacAddr, MacAddr),
        ips: (Ipv4Addr, Ipv4Addr),
        ports: (u16, u16),
        (is_tcp, dscp): (bool, u8),
    ) -> Headers {
        let mut network = [0; NETWORK];
        Ethernet { dst: macs.1, src: macs.0, ether_type: EtherType::IPV4 }.emit(&mut network);
        let ip = &mut network[Ethernet::BYTES..];
        Ipv4 {
            version: 4,
            ihl: 5,
            dscp,
            ecn: 0,
            total_length: 0,
            identification: 0,
            flags: DONT_FRAGMENT,
            fragment_offset: 0,
            ttl: 64,
            protocol: if is_tcp { TCP } else { UDP },
            checksum: 0,
            src: ips.0,
            dst: ips.1,
        }
        .emit(ip);
        let (ip_sum, pseudo_sum) = (sum(ip), sum(&ip[12..20]) + u64::from(TCP));
        Headers { network, ip_sum, pseudo_sum, ports, salt }
    }

    /// UDP's or TCP's ports.
    #[inline]
    pub fn ports(&self) -> (u16, u16) {
        self.ports
    }

    /// The next hop.
    pub fn destination(&self) -> MacAddr {
        let mut to = [0; 6];
        to.copy_from_slice(&self.network[..6]);
        MacAddr(to)
    }

    /// Begins a frame whose IPv4 packet has this length.
    #[inline]
    fn begin(&self, length: usize, ecn: u8, frame: &mut Vec<u8>) {
        frame.clear();
        frame.extend_from_slice(&self.network);
        let length = length as u16;
        let check = fold(self.ip_sum + u64::from(length) + u64::from(ecn));
        frame[15] |= ecn;
        frame[16..18].copy_from_slice(&length.to_be_bytes());
        frame[24..26].copy_from_slice(&check.to_be_bytes());
    }

    /// Writes a datagram with this many bytes of payload, from [`TAG_BYTES`] to [`DATAGRAM_MAX`].
    #[inline]
    pub fn datagram(&self, tag: &Tag, bytes: usize, frame: &mut Vec<u8>) {
        let bytes = bytes.clamp(TAG_BYTES, DATAGRAM_MAX);
        self.udp(bytes, frame);
        let mut tagged = [0; TAG_BYTES];
        tag.emit(&self.salt, &mut tagged);
        frame.extend_from_slice(&tagged);
        frame.extend_from_slice(&PATTERN[..bytes - TAG_BYTES]);
    }

    /// Writes a datagram with this payload, without a tag.
    pub fn packet(&self, payload: &[u8], frame: &mut Vec<u8>) {
        self.udp(payload.len(), frame);
        frame.extend_from_slice(payload);
    }

    /// Begins a datagram with this many bytes of payload.
    #[inline]
    fn udp(&self, bytes: usize, frame: &mut Vec<u8>) {
        self.begin(Ipv4::BYTES + Udp::BYTES + bytes, 0, frame);
        let mut udp = [0; Udp::BYTES];
        udp[0..2].copy_from_slice(&self.ports.0.to_be_bytes());
        udp[2..4].copy_from_slice(&self.ports.1.to_be_bytes());
        udp[4..6].copy_from_slice(&((Udp::BYTES + bytes) as u16).to_be_bytes());
        frame.extend_from_slice(&udp);
    }

    /// Writes a segment; `markable`: switches may mark it.
    pub fn segment(&self, segment: &Segment, markable: bool, frame: &mut Vec<u8>) {
        let count = segment.count.min(RANGES);
        let options = if count == 0 { 0 } else { 4 + 8 * count };
        let bytes = usize::from(segment.bytes.min(MSS));
        let header = TCP_BYTES + options;
        self.begin(Ipv4::BYTES + header + bytes, if markable { ECT } else { 0 }, frame);
        let mut tcp = [0; 60];
        let mut put = |at: usize, word: u32| tcp[at..at + 4].copy_from_slice(&word.to_be_bytes());
        put(0, u32::from(self.ports.0) << 16 | u32::from(self.ports.1));
        put(4, segment.start);
        put(8, segment.next);
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        let flags = ACK | flag(segment.push, PUSH) | flag(segment.echo, ECE);
        put(12, (header as u32 / 4) << 28 | u32::from(flags) << 16 | 0xffff);
        put(20, u32::from_be_bytes(TIMESTAMPS));
        let name = u32::from(segment.flow) << 16 | u32::from(self.salt.magic);
        put(24, name);
        put(28, mixed(u64::from(name) ^ self.salt.key));
        if count > 0 {
            put(TCP_BYTES, u32::from_be_bytes([1, 1, 5, options as u8 - 2]));
            for (nth, (from, to)) in segment.ranges[..count].iter().enumerate() {
                put(TCP_BYTES + 4 + 8 * nth, *from);
                put(TCP_BYTES + 8 + 8 * nth, *to);
            }
        }
        let payload = &PATTERN[..bytes];
        let check = fold(self.pseudo_sum + (header + bytes) as u64 + sum(&tcp[..header]) + sum(payload));
        tcp[16..18].copy_from_slice(&check.to_be_bytes());
        frame.extend_from_slice(&tcp[..header]);
        frame.extend_from_slice(payload);
        if frame.len() < 60 {
            frame.resize(60, 0);
        }
    }
}

/// Half of a product's bits, for sums.
fn mixed(value: u64) -> u32 {
    (value.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
}

impl Tag {
    #[inline]
    fn emit(&self, salt: &Salt, out: &mut [u8]) {
        out[0..2].copy_from_slice(&salt.magic.to_be_bytes());
        out[4..6].copy_from_slice(&self.flow.to_be_bytes());
        out[6..10].copy_from_slice(&self.number.to_be_bytes());
        out[10..16].copy_from_slice(&self.time.0.to_be_bytes()[2..]);
        (out[16], out[17]) = (self.part, self.last);
        let sum = Tag::sum(salt, out);
        out[2..4].copy_from_slice(&sum.to_be_bytes());
    }

    /// The sum of a tag's fields, of which there are enough bytes.
    #[inline]
    fn sum(salt: &Salt, tag: &[u8]) -> u16 {
        let word = |at: usize| u64::from_be_bytes(tag[at..at + 8].try_into().unwrap_or_default());
        mixed(word(4) ^ word(10).rotate_left(29) ^ salt.key) as u16
    }

    #[inline]
    fn parse(salt: &Salt, frame: &[u8], at: usize) -> Option<Tag> {
        let tag = frame.get(at..at + TAG_BYTES)?;
        if tag[0..2] != salt.magic.to_be_bytes() || tag[2..4] != Tag::sum(salt, tag).to_be_bytes() {
            return None;
        }
        let word = |at: usize| u64::from_be_bytes(tag[at..at + 8].try_into().unwrap_or_default());
        Some(Tag {
            flow: (word(4) >> 48) as u16,
            number: (word(4) >> 16) as u32,
            time: Nanos(word(8) & 0xffff_ffff_ffff),
            part: tag[16],
            last: tag[17],
        })
    }
}

/// Whether these bytes are the beginning of the payload.
#[inline]
fn is_pattern(bytes: &[u8]) -> bool {
    PATTERN.get(..bytes.len()) == Some(bytes)
}

/// Parses a frame of a run with this salt.
#[inline]
pub(super) fn find(salt: &Salt, frame: &[u8]) -> FrameContent {
    let is_plain = frame.get(12..15) == Some(&[8, 0, 0x45][..]);
    let length =
        frame.get(16..18).map_or(0, |length| usize::from(u16::from_be_bytes([length[0], length[1]])));
    match frame.get(23) {
        Some(&UDP) if is_plain => {
            if let Some(tag) = Tag::parse(salt, frame, UDP_HEADERS) {
                let is_whole = frame.len() == Ethernet::BYTES + length;
                return FrameContent::Datagram(
                    tag,
                    is_whole && is_pattern(&frame[UDP_HEADERS + TAG_BYTES..]),
                );
            }
        }
        Some(&TCP) if is_plain => {
            if let Some(found) = segment(salt, frame, NETWORK, Ethernet::BYTES) {
                return found;
            }
        }
        _ => {}
    }
    search(salt, frame)
}

/// The same for a frame with other headers.
#[cold]
fn search(salt: &Salt, frame: &[u8]) -> FrameContent {
    for at in Ethernet::BYTES..frame.len().min(SEARCHED) {
        if let Some(tag) = Tag::parse(salt, frame, at) {
            return FrameContent::Datagram(tag, is_pattern(&frame[at + TAG_BYTES..]));
        }
        if frame.get(at..at + 4) != Some(&TIMESTAMPS[..]) || at < NETWORK + 20 {
            continue;
        }
        // IPv4 has up to 40 bytes of options.
        let tcp = at - 20;
        let network = (5..=15).filter_map(|words: usize| Some((words, tcp.checked_sub(4 * words)?)));
        for (_, ip) in network.filter(|(words, ip)| frame.get(*ip) == Some(&(0x40 | *words as u8))) {
            if let Some(found) = segment(salt, frame, tcp, ip) {
                return found;
            }
        }
    }
    FrameContent::Other
}

/// The segment whose headers begin at `tcp` and `ip`.
fn segment(salt: &Salt, frame: &[u8], tcp: usize, ip: usize) -> Option<FrameContent> {
    let header = frame.get(tcp..tcp + TCP_BYTES)?;
    let word = |at: usize| -> Option<u32> {
        Some(u32::from_be_bytes(frame.get(tcp + at..tcp + at + 4)?.try_into().ok()?))
    };
    let name = word(24)?;
    let sum = mixed(u64::from(name) ^ salt.key);
    if header[20..24] != TIMESTAMPS || name as u16 != salt.magic || word(28)? != sum {
        return None;
    }
    let length = usize::from(header[12] >> 4) * 4;
    let total = usize::from(u16::from_be_bytes([*frame.get(ip + 2)?, *frame.get(ip + 3)?]));
    let payload = frame.get(tcp + length..ip + total)?;
    let count = length.saturating_sub(TCP_BYTES + 4) / 8;
    let mut found = Segment {
        flow: (name >> 16) as u16,
        start: word(4)?,
        next: word(8)?,
        bytes: payload.len() as u16,
        push: header[13] & PUSH != 0,
        marked: frame.get(ip + 1)? & 3 == CE,
        echo: header[13] & ECE != 0,
        ranges: [(0, 0); RANGES],
        count: count.min(RANGES),
    };
    for nth in 0..found.count {
        let at = TCP_BYTES + 4 + 8 * nth;
        found.ranges[nth] = (word(at)?, word(at + 4)?);
    }
    Some(FrameContent::Segment(found, is_pattern(payload)))
}

/// The offset next to `near` that a number modulo 2³² stands for; `None` if it is before the beginning of the stream, as a number
/// that a program has changed may be.
pub(super) fn offset(number: u32, near: u64) -> Option<u64> {
    near.checked_add_signed(i64::from(number.wrapping_sub(near as u32) as i32))
}

/// The SACK ranges of a segment that are within the stream, near an offset.
pub(super) fn ranges(segment: &Segment, near: u64) -> impl Iterator<Item = Range> {
    let listed = segment.ranges.into_iter().take(segment.count);
    listed.filter_map(move |(from, to)| offset(from, near).zip(offset(to, near)))
}

#[cfg(test)]
#[path = "frame_tests.rs"]
mod tests;
