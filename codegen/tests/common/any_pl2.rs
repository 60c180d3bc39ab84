//! Frames to a switch that speaks PL2, of any sort, good or bad.

use super::random::Random;
use super::*;
use p4rack_wire::pl2::{Kind, VERSION};

/// Payload of a frame that takes a slot: 1500 bytes and the shim.
const FULL: usize = 1_508;

/// Where a controller's frame has a cell's number, behind its own header and Ethernet's.
const CELL: std::ops::Range<usize> = 32..36;

fn forgets(frame: &[u8]) -> bool {
    frame.get(16) == Some(&(VERSION << 4 | Kind::MgmtForget as u8))
}

/// The frame with the number that the cell has in a program: it comes with places of hosts and cell, a byte each.
pub fn numbered(built: &Built, frame: &[u8]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    if built.scheme != Scheme::L2
        && forgets(&frame)
        && let (Some(cell), Some(pl2)) = (frame.get_mut(CELL), built.rack.protocol::<Pl2>())
    {
        let [source, destination] = [cell[1], cell[2]].map(usize::from);
        let number = pl2.cell_number(&built.rack, source, destination, cell[3]);
        cell.copy_from_slice(&number.to_be_bytes());
    }
    frame
}

/// Converts the controller's reply to `frame` into frames, without the number of the cell.
pub fn in_frames(rig: &Rig, frame: &[u8], reply: &mut [u8]) {
    const VALUE: std::ops::Range<usize> = 24..28;
    let built = &rig.built;
    let forgets = forgets(frame);
    if forgets && let Some(cell) = reply.get_mut(CELL) {
        cell.fill(0);
    }
    if !forgets || built.counts_frames() {
        return;
    }
    if let Some(value) = reply.get_mut(VALUE) {
        let bytes = u32::from_be_bytes(value.try_into().unwrap());
        let full = built.pl2().frame_wire_bytes() as u32;
        assert_eq!(bytes % full, 0);
        value.copy_from_slice(&(bytes / full).to_be_bytes());
    }
}

/// The frame, without a request to send unsolicited if it is an RSV from one pipe to another: such a burst has slots.
pub fn with_slots(built: &Built, (port, mut frame): (u16, Vec<u8>)) -> (u16, Vec<u8>) {
    let rack = &built.rack;
    let header = if port == rack.switch.cpu_port { 2 } else { 0 };
    let to = frame.get(header..header + 6).and_then(|to| rack.hosts.iter().find(|host| host.mac.0 == *to));
    if to.is_some_and(|to| to.port / 128 != port / 128)
        && frame.get(header + 12..header + 14) == Some(&[0x81, 0])
        && frame.get(header + 18) == Some(&(VERSION << 4 | Kind::Rsv as u8))
        && let Some(flags) = frame.get_mut(header + 21)
    {
        *flags &= 0x7f;
    }
    (port, frame)
}

/// A frame of any sort, good or bad, and its port.
pub fn frame(built: &Built, random: &mut Random) -> (u16, Vec<u8>) {
    let rack = &built.rack;
    // Mostly few pairs, so that they meet their own reservations.
    let mut port = || {
        let ports = if random.below(4) == 0 { 4 } else { 2 };
        rack.hosts[random.below(ports) as usize].port
    };
    let (from, to) = (port(), port());
    let full = |from, to, cell, unsolicited| data(rack, from, to, cell, unsolicited, FULL);
    let cpu_port = rack.switch.cpu_port;
    let packet_out = |egress_port: u16, frame: Vec<u8>| {
        (cpu_port, egress_port.to_be_bytes().into_iter().chain(frame).collect())
    };
    let request = |random: &mut Random| Control {
        unsolicited: random.below(2) as u8,
        ..request(random.below(7) as u8, random.below(5) as u8)
    };
    match random.below(32) {
        0..=9 => {
            let what = request(random);
            (from, control(rack, from, mac(rack, to), what))
        }
        10..=19 => (from, full(from, to, random.below(5) as u8, random.below(3) == 0)),
        20 => (from, plain(mac(rack, from), mac(rack, to), EtherType::IPV4, &[3; 1200])),
        21 => (from, plain(mac(rack, from), MacAddr::BROADCAST, EtherType::ARP, &[])),
        22 => (from, plain(mac(rack, from), MacAddr([2, 9, 9, 9, 9, 9]), EtherType::IPV6, &[])),
        23 => (from, full(to, from, 0, false)),
        24 => {
            // A shim's kind would make it a short frame that claims slots.
            let kind = [1, 2, 3, 5, 9, 15][random.below(6) as usize];
            let what = Control { version: random.below(3) as u8, kind, ..request(random) };
            let dst =
                [mac(rack, to), MacAddr::BROADCAST, MacAddr([2, 9, 9, 9, 9, 9])][random.below(3) as usize];
            (from, control(rack, from, dst, what))
        }
        25 => {
            let mut frame = rsv(rack, from, to, 1, 0);
            frame.truncate(random.below(40) as usize);
            (from, frame)
        }
        26 if random.below(2) == 0 => {
            // To a group, or with a shim.
            let mut frame = full(from, to, 0, false);
            match random.below(2) {
                0 => frame[..6].copy_from_slice(&MacAddr::BROADCAST.0),
                _ => {
                    frame[16..18].copy_from_slice(&0x88b5u16.to_be_bytes());
                    frame[18] = 0x14;
                }
            }
            (from, frame)
        }
        26 => {
            let mut frame = management(rack, Kind::MgmtWrite as u8, 0, 1, 1);
            frame[6..12].copy_from_slice(&mac(rack, from).0);
            (from, frame)
        }
        27 => {
            let egress_port = [0, 1, 3, 600][random.below(4) as usize];
            let what = request(random);
            match random.below(3) {
                0 => packet_out(egress_port, plain(mac(rack, from), MacAddr::BROADCAST, EtherType::ARP, &[])),
                1 => packet_out(egress_port, plain(mac(rack, from), mac(rack, to), EtherType::IPV4, &[])),
                _ => packet_out(egress_port, control(rack, from, mac(rack, to), what)),
            }
        }
        28..=29 => {
            let forget = p4rack_wire::pl2::Management {
                kind: Kind::MgmtForget as u8,
                index: from,
                destination: if random.below(9) == 0 { 999 } else { to },
                cell: rack.protocol::<Pl2>().map_or(0, |pl2| {
                    let [from, to] = [from, to].map(|port| position_of(rack, port) as u8);
                    u32::from_be_bytes([0, from, to, random.below(u64::from(pl2.cells_a_pair())) as u8])
                }),
                ..MANAGEMENT
            };
            packet_out(0, addressed(management_frame(rack, forget), rack, to, random))
        }
        _ => {
            let kind =
                [Kind::MgmtRead, Kind::MgmtRead, Kind::MgmtWrite, Kind::MgmtReset][random.below(4) as usize];
            let targets = if random.below(9) == 0 { 3 } else { 2 };
            let target = [Side::In as u8, Side::Out as u8, 2][random.below(targets) as usize];
            let index = if random.below(9) == 0 { random.below(1024) as u16 } else { from };
            let value = random.below(18) as u32;
            packet_out(0, addressed(management(rack, kind as u8, target, index, value), rack, to, random))
        }
    }
}

/// The frame, as often to a host's address as not: the controller's request is in the frame alone.
fn addressed(mut frame: Vec<u8>, rack: &Rack, to: u16, random: &mut Random) -> Vec<u8> {
    if random.below(2) == 0 {
        frame[..6].copy_from_slice(&mac(rack, to).0);
    }
    frame
}
