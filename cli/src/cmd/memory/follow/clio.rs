//! Clio's operations: every packet names its process and operation, so no stream has to be put together.

use super::operation::{Operation, OperationKind, Seen, begin};
use p4rack_wire::clio::packet::{self, Packet};
use p4rack_wire::clio::{Kind, Status, flags};
use p4rack_wire::ethernet::{Ethernet, Vlan};
use p4rack_wire::ipv4::{self, Ipv4, Udp};
use p4rack_wire::{EtherType, MacAddr};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Facts about an operation beside its frames.
struct Known {
    nth: usize,
    /// Bytes of each packet that asks, by address.
    asked: BTreeMap<u64, u32>,
    /// Addresses of the answers, and how many there have to be.
    answered: BTreeSet<u64>,
    packets: usize,
}

/// The packet of a frame from or to a board's port, and the stations that it is from and for.
fn parse(frame: &[u8], udp_port: u16) -> Option<(MacAddr, MacAddr, Packet<'_>)> {
    let ethernet = Ethernet::parse(frame).ok()?;
    let (mut ether_type, mut ip) = (ethernet.ether_type, frame.get(Ethernet::BYTES..)?);
    if ether_type == EtherType::VLAN {
        ether_type = Vlan::parse(ip).ok()?.ether_type;
        ip = ip.get(Vlan::BYTES..)?;
    }
    let header =
        Ipv4::parse(ip).ok().filter(|ip| ether_type == EtherType::IPV4 && ip.protocol == ipv4::UDP)?;
    let datagram = ip.get(usize::from(header.ihl) * 4..usize::from(header.total_length))?;
    let udp = Udp::parse(datagram).ok().filter(|udp| [udp.src_port, udp.dst_port].contains(&udp_port))?;
    let bytes = datagram.get(Udp::BYTES..usize::from(udp.length))?;
    Some((ethernet.src, ethernet.dst, packet::parse(bytes).ok()?))
}

/// Operations of boards at this port, of all frames, which are in order of time, in the order in which they begin.
pub fn operations(seen: &[Seen<'_>], udp_port: u16) -> Vec<Operation> {
    let (mut all, mut known) = (Vec::new(), HashMap::new());
    for seen in seen {
        let Some((from, to, packet)) = parse(seen.frame, udp_port) else { continue };
        let header = &packet.header;
        // Boards give away the same PIDs and numbers of clients, and one that has restarted begins again. Their tokens
        // differ.
        let key = (header.token, header.pid, header.id);
        if packet.kind.is_request() {
            let one = known.entry(key).or_insert_with(|| Known {
                nth: begin(&mut all, from, to, header.id as u32),
                asked: BTreeMap::new(),
                answered: BTreeSet::new(),
                packets: header.packets.into(),
            });
            // A retry requests the missing parts, the first attempt all.
            if header.attempt == 0 {
                let bytes = if packet.kind == Kind::Atomic { 8 } else { header.length };
                one.asked.insert(header.address, bytes);
            }
            let operation = &mut all[one.nth];
            request(operation, seen, &packet);
            operation.address = one.asked.keys().next().copied();
            let asked = one.asked.values();
            operation.bytes = Some(asked.fold(0, |sum, bytes| sum.saturating_add(*bytes)));
        } else if let Some(one) = known.get_mut(&key) {
            answer(&mut all[one.nth], one, seen, &packet);
        }
    }
    all
}

fn request(operation: &mut Operation, seen: &Seen<'_>, packet: &Packet<'_>) {
    let header = &packet.header;
    operation.what = match packet.kind {
        Kind::Read => Some(OperationKind::Read),
        Kind::Write => Some(OperationKind::Write),
        Kind::Atomic => Some(OperationKind::Modify),
        _ => None,
    };
    let again = if header.attempt > 0 { format!(", attempt {}", header.attempt + 1) } else { String::new() };
    operation.add(
        seen,
        name(packet.kind),
        format!("{} bytes at {:#x}{again}", header.length, header.address),
        false,
    );
}

fn answer(operation: &mut Operation, known: &mut Known, seen: &Seen<'_>, packet: &Packet<'_>) {
    let header = &packet.header;
    let status = Status::of(header.code);
    if packet.kind == Kind::Nack {
        return operation.add(seen, "NACK", "the packet came damaged".to_owned(), false);
    }
    operation.status = Some(header.code);
    let says = match status {
        Some(Status::Done) => {
            known.answered.insert(header.address);
            let again = if header.flags & flags::REPEATED != 0 { ", of an earlier attempt" } else { "" };
            format!("{} bytes at {:#x}{again}", header.length, header.address)
        }
        status => status.map_or("unknown status", Status::name).replace('_', " "),
    };
    let is_refused = status.is_some_and(|status| status != Status::Done && !status.is_temporary());
    if is_refused {
        operation.refused = Some(says.clone());
    }
    let is_last = is_refused || known.answered.len() >= known.packets;
    operation.add(seen, "ANSWER", says, is_last);
}

fn name(kind: Kind) -> &'static str {
    Kind::ALL.into_iter().find(|(one, _)| *one == kind).map_or("", |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use p4rack_wire::Nanos;
    use p4rack_wire::clio::{Header, UDP_PORT};

    const CLIENT: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);

    /// The board whose tokens are this number.
    fn board(token: u64) -> MacAddr {
        MacAddr([2, 0, 0, 0, 1, token as u8])
    }

    fn frame(header: &Header, data: &[u8]) -> Vec<u8> {
        let (mut bytes, is_request) = (Vec::new(), header.kind < Kind::Answer as u8);
        packet::compose(header, data, &mut bytes);
        let board = board(header.token);
        let (src, dst) = if is_request { (CLIENT, board) } else { (board, CLIENT) };
        let (src_port, dst_port) = if is_request { (40_000, UDP_PORT) } else { (UDP_PORT, 40_000) };
        let mut out = vec![0; Ethernet::BYTES + Ipv4::BYTES + Udp::BYTES];
        Ethernet { dst, src, ether_type: EtherType::IPV4 }.emit(&mut out);
        let ip = |last| std::net::Ipv4Addr::new(10, 0, 0, last);
        let ip = Ipv4 {
            version: 4,
            ihl: 5,
            dscp: 0,
            ecn: 0,
            total_length: (Ipv4::BYTES + Udp::BYTES + bytes.len()) as u16,
            identification: 0,
            flags: 0,
            fragment_offset: 0,
            ttl: 64,
            protocol: ipv4::UDP,
            checksum: 0,
            src: ip(1),
            dst: ip(2),
        };
        ip.emit(&mut out[Ethernet::BYTES..]);
        let length = (Udp::BYTES + bytes.len()) as u16;
        let udp = Udp { src_port, dst_port, length, checksum: 0 };
        udp.emit(&mut out[Ethernet::BYTES + Ipv4::BYTES..]);
        out.extend_from_slice(&bytes);
        out
    }

    /// The first of two packets of a write.
    fn write(token: u64) -> Header {
        Header {
            version: 0,
            kind: Kind::Write as u8,
            code: 0,
            flags: 0,
            attempt: 0,
            index: 0,
            packets: 2,
            id: 77,
            address: 0x1000,
            pid: 3,
            length: 4,
            token,
            epoch: 1,
            reserved: 0,
            crc: 0,
        }
    }

    /// Each board's first client has the same process and ids of operations.
    #[test]
    fn operations_of_two_boards_with_one_id_are_two() {
        let requests = [1, 2].map(|token| Header { packets: 1, ..write(token) });
        let answers = requests.map(|header| Header { kind: Kind::Answer as u8, length: 0, ..header });
        let frames = [
            frame(&requests[0], &[1; 4]),
            frame(&requests[1], &[2; 4]),
            frame(&answers[1], &[]),
            frame(&answers[0], &[]),
        ];
        let seen = (0..).zip(&frames).map(|(nth, frame)| Seen { time: Nanos(nth), at: "h2_out", frame });
        let found = operations(&seen.collect::<Vec<_>>(), UDP_PORT);
        let boards: Vec<_> = found.iter().map(|one| (one.to, one.events.len(), one.complete)).collect();
        assert_eq!(boards, [(board(1), 2, true), (board(2), 2, true)]);
    }

    #[test]
    fn a_write_is_complete_when_each_packet_is_answered() {
        let header = write(1);
        let second = Header { index: 1, address: 0x1004, ..header };
        let answer = |header: Header| Header { kind: Kind::Answer as u8, length: 0, ..header };
        let frames = [
            frame(&header, &[1; 4]),
            frame(&second, &[2; 4]),
            frame(&answer(header), &[]),
            frame(&Header { attempt: 1, ..second }, &[2; 4]),
            frame(&answer(Header { flags: flags::REPEATED, ..second }), &[]),
        ];
        let seen = |count: usize| {
            let seen = |(nth, frame): (u64, &'static [u8])| Seen { time: Nanos(nth), at: "h2_out", frame };
            let frames = frames[..count].iter().map(|frame| &*Vec::leak(frame.clone()));
            operations(&(0..).zip(frames).map(seen).collect::<Vec<_>>(), UDP_PORT)
        };
        let (four, five) = (seen(4), seen(5));
        assert_eq!((four.len(), four[0].complete, five[0].complete), (1, false, true));
        let whole = &five[0];
        assert_eq!((whole.from, whole.to, whole.what), (CLIENT, board(1), Some(OperationKind::Write)));
        assert_eq!((whole.address, whole.bytes, whole.events.len()), (Some(0x1000), Some(8), 5));
        assert!(
            whole.events[3].says.contains("attempt 2") && whole.events[4].says.contains("earlier attempt")
        );
        let refused = [frame(&header, &[1; 4]), frame(&Header { code: 1, ..answer(header) }, &[])];
        let seen = |frame: &'static [u8]| Seen { time: Nanos(0), at: "h2_out", frame };
        let refused = operations(&refused.map(|frame| seen(Vec::leak(frame))), UDP_PORT);
        assert_eq!(refused[0].refused.as_deref(), Some("no such address"));
    }
}
