//! Operations on a server of bytes: requests and answers in the streams of TCP's connections.
//!
//! Streams are put together from the segments of all captures, from a connection's first one on. Then each segment belongs to the
//! requests or answers whose bytes it carries.

use super::operation::{Operation, OperationKind, Seen, begin};
use p4rack_hosts::remote::Status;
use p4rack_hosts::remote::tcp::{HELLO_BYTES, Kind, MAGIC, answer, request};
use p4rack_wire::ethernet::{Ethernet, Vlan};
use p4rack_wire::ipv4::Ipv4;
use p4rack_wire::{EtherType, MacAddr};
use std::collections::{BTreeMap, HashMap};
use std::net::Ipv4Addr;
use std::ops::Range;

const TCP: u8 = 6;
const HEADER_BYTES: usize = 20;
const SYN: u8 = 2;

/// One direction of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Flow {
    from: (Ipv4Addr, u16),
    to: (Ipv4Addr, u16),
}

impl Flow {
    fn back(self) -> Flow {
        Flow { from: self.to, to: self.from }
    }
}

/// A segment of TCP.
struct Segment<'a> {
    macs: (MacAddr, MacAddr),
    flow: Flow,
    sequence: u32,
    begins: bool,
    data: &'a [u8],
}

fn segment(frame: &[u8]) -> Option<Segment<'_>> {
    let ethernet = Ethernet::parse(frame).ok()?;
    let (mut ether_type, mut ip) = (ethernet.ether_type, frame.get(Ethernet::BYTES..)?);
    if ether_type == EtherType::VLAN {
        ether_type = Vlan::parse(ip).ok()?.ether_type;
        ip = ip.get(Vlan::BYTES..)?;
    }
    let header = Ipv4::parse(ip).ok().filter(|ip| ether_type == EtherType::IPV4 && ip.protocol == TCP)?;
    let tcp = ip.get(usize::from(header.ihl) * 4..usize::from(header.total_length))?;
    let fixed: &[u8; HEADER_BYTES] = tcp.first_chunk()?;
    let port = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
    Some(Segment {
        macs: (ethernet.src, ethernet.dst),
        flow: Flow { from: (header.src, port(0)), to: (header.dst, port(2)) },
        sequence: u32::from_be_bytes([fixed[4], fixed[5], fixed[6], fixed[7]]),
        begins: fixed[13] & SYN != 0,
        data: tcp.get(usize::from(fixed[12] >> 4) * 4..)?,
    })
}

/// The bytes of one direction, as far as no segment is missing.
#[derive(Default)]
struct Stream {
    /// Sequence number of the first byte.
    first: u32,
    bytes: Vec<u8>,
    /// Segments behind a gap, by place.
    behind: BTreeMap<usize, Vec<u8>>,
    /// Requests or answers: their bytes, and the operations' positions.
    parts: Vec<(Range<usize>, usize)>,
}

impl Stream {
    fn place(&self, segment: &Segment<'_>) -> usize {
        segment.sequence.wrapping_sub(self.first) as usize
    }

    fn add(&mut self, segment: &Segment<'_>) {
        let place = self.place(segment);
        if !segment.data.is_empty() && place < 1 << 31 && place + segment.data.len() > self.bytes.len() {
            self.behind.entry(place).or_insert_with(|| segment.data.to_vec());
        }
        while let Some(entry) = self.behind.first_entry().filter(|entry| *entry.key() <= self.bytes.len()) {
            let (place, data) = entry.remove_entry();
            self.bytes.extend_from_slice(data.get(self.bytes.len() - place..).unwrap_or_default());
        }
    }

    /// Requests or answers of which a segment has bytes.
    fn of(&self, place: usize, bytes: usize) -> impl Iterator<Item = &(Range<usize>, usize)> {
        let first = self.parts.partition_point(|(range, _)| range.end <= place);
        self.parts[first..].iter().take_while(move |(range, _)| range.start < place + bytes)
    }
}

/// Operations of all frames, which are in order of time, by connection.
pub fn operations(seen: &[Seen<'_>]) -> Vec<Operation> {
    let segments = || seen.iter().filter_map(|seen| Some((seen, segment(seen.frame)?)));
    let mut streams: HashMap<Flow, Stream> = HashMap::new();
    let mut order = Vec::new();
    for (_, segment) in segments() {
        if segment.begins && !streams.contains_key(&segment.flow) {
            // Both ends say the same word first. The client's segment is the first one.
            if !streams.contains_key(&segment.flow.back()) {
                order.push((segment.flow, segment.macs));
            }
            let first = segment.sequence.wrapping_add(1);
            streams.insert(segment.flow, Stream { first, ..Stream::default() });
        }
        if let Some(stream) = streams.get_mut(&segment.flow).filter(|_| !segment.begins) {
            stream.add(&segment);
        }
    }
    let mut all = Vec::new();
    for (flow, (from, to)) in order {
        let answers = streams.get(&flow.back()).map(|stream| stream.bytes.clone()).unwrap_or_default();
        if !answers.starts_with(&MAGIC) {
            continue;
        }
        let asked = streams.get_mut(&flow).filter(|asked| asked.bytes.starts_with(&MAGIC));
        let (Some(asked), first) = (asked, all.len()) else { continue };
        asked.parts = requests(&mut all, &asked.bytes, (from, to));
        let parts = answered(&mut all[first..], &answers, first);
        if let Some(stream) = streams.get_mut(&flow.back()) {
            stream.parts = parts;
        }
    }
    for (seen, segment) in segments() {
        let Some(stream) = streams.get(&segment.flow) else { continue };
        let place = stream.place(&segment);
        for (range, nth) in stream.of(place, segment.data.len()) {
            let operation: &mut Operation = &mut all[*nth];
            let is_answer = operation.from == segment.macs.1;
            let (start, end) = (place.max(range.start), (place + segment.data.len()).min(range.end));
            let (start, end) = (start - range.start, end - range.start);
            let (kind, length) = (if is_answer { "ANSWER" } else { "REQUEST" }, range.len());
            operation.add(
                seen,
                kind,
                format!("bytes {start} to {end} of {length}"),
                is_answer && end == length,
            );
        }
    }
    all.sort_by_key(|one| one.events.first().map_or(u64::MAX, |event| event.time_ns));
    for (one, number) in all.iter_mut().zip(1..) {
        one.number = number;
    }
    all
}

/// Adds the operations that a client asks for. Returns where their requests are.
fn requests(
    all: &mut Vec<Operation>,
    stream: &[u8],
    (from, to): (MacAddr, MacAddr),
) -> Vec<(Range<usize>, usize)> {
    let (mut parts, mut at) = (Vec::new(), MAGIC.len());
    while let Some(one) = stream.get(at..).and_then(request) {
        let nth = begin(all, from, to, parts.len() as u32);
        all[nth].what = Some(match one.kind {
            Kind::Read => OperationKind::Read,
            Kind::Write => OperationKind::Write,
            Kind::Modify => OperationKind::Modify,
            Kind::Gather => OperationKind::Gather,
            Kind::Scatter => OperationKind::Scatter,
        });
        (all[nth].address, all[nth].bytes) = (one.address, one.bytes);
        parts.push((at..at + one.length, nth));
        at += one.length;
    }
    parts
}

/// Says how operations ended, the first of which has this position. Returns where their answers are.
fn answered(all: &mut [Operation], stream: &[u8], first: usize) -> Vec<(Range<usize>, usize)> {
    let (mut parts, mut at) = (Vec::new(), HELLO_BYTES);
    for (operation, nth) in all.iter_mut().zip(first..) {
        let Some((status, length)) = stream.get(at..).and_then(answer) else { break };
        operation.status = Some(status);
        if status != 0 {
            let why = Status::of(status).map_or_else(|| format!("status {status}"), |why| why.to_string());
            operation.refused = Some(why);
        }
        parts.push((at..at + length, nth));
        at += length;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use p4rack_wire::Nanos;

    const CLIENT: u8 = 1;
    const SERVER: u8 = 2;

    /// A segment from one host to the other.
    fn frame(from: u8, sequence: u32, flags: u8, data: &[u8]) -> Vec<u8> {
        let to = CLIENT + SERVER - from;
        let mut frame = vec![2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from, 8, 0];
        let total = (20 + HEADER_BYTES + data.len()) as u16;
        frame.extend([0x45, 0]);
        frame.extend(total.to_be_bytes());
        frame.extend([0, 0, 0x40, 0, 64, TCP, 0, 0, 10, 0, 0, from, 10, 0, 0, to]);
        let ports = if from == CLIENT { [40_000u16, 7_004] } else { [7_004, 40_000] };
        ports.iter().for_each(|port| frame.extend(port.to_be_bytes()));
        frame.extend(sequence.to_be_bytes());
        frame.extend([0; 4]);
        frame.extend([0x50, flags, 1, 0, 0, 0, 0, 0]);
        frame.extend(data);
        frame
    }

    #[test]
    fn requests_and_answers_are_found_in_streams() {
        let hello = [&MAGIC[..], &64u64.to_be_bytes()].concat();
        let request = |what: u8, bytes: u32, at: u64, data: &[u8]| {
            [&[what, 0, 0, 0][..], &bytes.to_be_bytes(), &at.to_be_bytes(), data].concat()
        };
        let answer = |status: u8, data: &[u8]| {
            [&[status, 0, 0, 0][..], &(data.len() as u32).to_be_bytes(), data].concat()
        };
        let asks = [MAGIC.to_vec(), request(1, 4, 8, b"four"), request(0, 4, 8, &[]), request(0, 4, 62, &[])]
            .concat();
        let says = [hello, answer(0, &[]), answer(0, b"four"), answer(2, &[])].concat();
        let (client, server) = (u32::MAX - 5, 77);
        let (early, late) = asks.split_at(38);
        let at = |sequence: u32, place: usize| sequence.wrapping_add(1 + place as u32);
        let frames = [
            ("h1_in", frame(CLIENT, client, SYN, &[])),
            ("h1_out", frame(SERVER, server, SYN | 16, &[])),
            // Out of order, and one of them twice: on both links.
            ("h1_in", frame(CLIENT, at(client, 38), 16, late)),
            ("h1_in", frame(CLIENT, at(client, 0), 16, early)),
            ("h2_out", frame(CLIENT, at(client, 0), 16, early)),
            ("h1_out", frame(SERVER, at(server, 0), 16, &says)),
        ];
        let seen = frames.iter().zip(0..).map(|((at, frame), time)| Seen { time: Nanos(time), at, frame });
        let all = operations(&seen.collect::<Vec<_>>());
        let shapes: Vec<_> = all
            .iter()
            .map(|one| {
                let kinds: Vec<_> = one.events.iter().map(|event| event.kind).collect();
                (one.what, one.address, one.bytes, one.complete, one.refused.is_some(), kinds.join(" "))
            })
            .collect();
        let of = |what, address, refused, kinds: &str| {
            (Some(what), Some(address), Some(4), true, refused, kinds.to_owned())
        };
        assert_eq!(
            shapes,
            [
                of(OperationKind::Read, 8, false, "REQUEST REQUEST REQUEST ANSWER"),
                of(OperationKind::Read, 62, true, "REQUEST ANSWER"),
                of(OperationKind::Write, 8, false, "REQUEST REQUEST ANSWER"),
            ]
        );
        assert_eq!(all[0].events[1].says, "bytes 0 to 10 of 16");
        assert!(all[1].refused.as_ref().is_some_and(|why| why.contains("out of bounds")));
    }
}
