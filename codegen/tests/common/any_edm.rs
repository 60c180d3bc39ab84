//! Frames to a switch that speaks EDM, of any sort, good or bad.

use super::edm::{message, notification};
use super::random::Random;
use super::*;
use p4rack_codegen::scheme::edm::Edm;
use p4rack_wire::edm::{self, Control, Kind, Management, Target, VERSION};

/// Bytes of a chunk.
pub const CHUNK: u64 = 256;

/// Cuts the bytes behind a grant: they are a rest of the frame that became the grant, and targets keep more or less of
/// it.
pub fn unpad(rack: &Rack, frame: &mut Vec<u8>) {
    let ether_type = rack.protocol::<Edm>().unwrap().ether_type;
    let is_grant = |payload: &[u8]| Kind::of(payload[0]) == Ok(Kind::Grant);
    let grant = edm::parse_frame(frame, ether_type).filter(|(_, payload)| is_grant(payload));
    if let Some(after) = grant.map(|(_, payload)| payload.len().saturating_sub(Control::BYTES)) {
        frame.truncate(frame.len() - after);
    }
}

/// A frame of any sort, good or bad, and its port: of one of the rack's first four hosts.
pub fn frame(rack: &Rack, random: &mut Random) -> (u16, Vec<u8>) {
    let port = |n: u64| rack.hosts[n as usize].port;
    let (from, to) = (port(random.below(4)), port(random.below(4)));
    let way = (from, to);
    let ether_type = rack.protocol::<Edm>().unwrap().ether_type;
    let packet_out = |egress_port: u16, frame: Vec<u8>| {
        (rack.switch.cpu_port, egress_port.to_be_bytes().into_iter().chain(frame).collect())
    };
    match random.below(32) {
        0..=23 => {
            let bytes = message_of(random);
            (from, carried(rack, way, &bytes, random.below(16) == 0))
        }
        24 => (from, plain(mac(rack, from), mac(rack, to), EtherType::IPV4, &[3; 1200])),
        25 => match random.below(3) {
            0 => (from, plain(mac(rack, from), MacAddr::BROADCAST, EtherType::ARP, &[])),
            1 => (from, plain(mac(rack, from), MacAddr([2, 9, 9, 9, 9, 9]), EtherType::IPV6, &[])),
            _ => (from, carried(rack, (to, from), &notification(0, 64), false)),
        },
        26 => {
            // To a group, or to an unknown address.
            let mut frame = carried(rack, way, &message_of(random), false);
            let to = [MacAddr::BROADCAST, MacAddr([2, 9, 9, 9, 9, 9])][random.below(2) as usize];
            frame[..6].copy_from_slice(&to.0);
            (from, frame)
        }
        27 => {
            // Of any kind and version, or cut short.
            let mut frame = carried(rack, way, &message_of(random), false);
            match random.below(2) {
                0 => frame[18] = (random.below(3) << 4 | random.below(16)) as u8,
                _ => frame.truncate(random.below(50) as usize),
            }
            (from, frame)
        }
        28 => {
            let egress_port = [0, port(0), port(2), 600][random.below(4) as usize];
            let inner = match random.below(2) {
                0 => plain(mac(rack, from), mac(rack, to), EtherType::IPV4, &[]),
                _ => carried(rack, way, &demand(random), false),
            };
            packet_out(egress_port, inner)
        }
        what => {
            let kinds = [Kind::MgmtRead, Kind::MgmtRead, Kind::MgmtWrite, Kind::MgmtReset];
            let target = [Target::Source as u8, Target::Destination as u8, Target::Rights as u8, 7];
            let targets = if random.below(9) == 0 { 4 } else { 3 };
            let target = target[random.below(targets) as usize];
            let index = match random.below(9) {
                0 => random.below(1 << 12),
                _ if target == Target::Rights as u8 => {
                    random.below(rack.protocol::<Edm>().unwrap().cell_count(rack))
                }
                // The controller's own link, or a host's.
                _ => match random.below(5) {
                    0 => 0,
                    n => u64::from(port(n - 1)),
                },
            };
            let asked = Management {
                version: VERSION,
                kind: kinds[random.below(4) as usize] as u8,
                target,
                token: 99,
                index: index as u32,
                value: random.below(2_000) as u32,
            };
            let mut bytes = vec![0; Management::BYTES];
            asked.emit(&mut bytes);
            let frame = plain(mac(rack, from), mac(rack, to), ether_type, &bytes);
            if what == 29 && random.below(4) == 0 { (from, frame) } else { packet_out(0, frame) }
        }
    }
}

/// A demand, or a part of a message.
fn message_of(random: &mut Random) -> Vec<u8> {
    if random.below(2) == 0 {
        return demand(random);
    }
    if random.below(8) == 0 {
        // The NULL response.
        return message(Kind::Rres, random.below(8) as u16, 0, 0, 0);
    }
    let kind = if random.below(2) == 0 { Kind::Wreq } else { Kind::Rres };
    let offset = match random.below(8) {
        0 => random.below(1 << 32),
        1 => random.below(3_000),
        _ => CHUNK * random.below(8),
    } as u32;
    let bytes = if random.below(3) == 0 { random.below(600) } else { CHUNK } as u16;
    message(kind, random.below(8) as u16, total(random), offset, bytes)
}

fn demand(random: &mut Random) -> Vec<u8> {
    let (id, total) = (random.below(8) as u16, total(random));
    match random.below(6) {
        0..=2 => notification(id, total),
        3..=4 => message(Kind::Rreq, id, total, random.below(4_000) as u32, 0),
        _ => message(Kind::Rmwreq, id, 7 + random.below(2) as u32, 0, 8),
    }
}

/// Bytes of a message: good ones, none, too many.
fn total(random: &mut Random) -> u32 {
    let bytes = match random.below(16) {
        0 => 0,
        1 => [1 << 20, (1 << 20) + 1, 1 << 31, u64::from(u32::MAX)][random.below(4) as usize],
        2..=6 => 1 + random.below(CHUNK),
        7 => CHUNK * (1 + random.below(8)),
        _ => 1 + random.below(3_000),
    };
    bytes as u32
}

/// In a frame with a tag, or without one.
fn carried(rack: &Rack, (from, to): (u16, u16), bytes: &[u8], bare: bool) -> Vec<u8> {
    let ether_type = rack.protocol::<Edm>().unwrap().ether_type;
    let (from, to) = (mac(rack, from), mac(rack, to));
    match bare {
        true => plain(from, to, ether_type, bytes),
        false => tagged(from, to, Vlan { pcp: edm::PCP_DATA, dei: false, vid: 0, ether_type }, bytes),
    }
}
