//! Wireshark, with the generated dissectors, shows every field of every kind of frame, and marks malformed ones.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use p4rack_wire::clio;
use p4rack_wire::dissector::{Carrier, Dissector, Lanes, Message, Then, script};
use p4rack_wire::header::{read_bits, write_bits};
use p4rack_wire::ipv4::{self, Ipv4, Udp};
use p4rack_wire::pcap::Writer;
use p4rack_wire::{Nanos, SplitMix, edm, pl2};
use std::io::Write;
use std::process::Command;

fn dissectors() -> [Dissector; 3] {
    let lanes = Lanes { first: 100, cells: 8 };
    [pl2::dissector(0x88b5, lanes), edm::dissector(0x88b6), clio::dissector(clio::UDP_PORT)]
}

fn ethernet(ether_type: u16, rest: &[u8]) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2], &ether_type.to_be_bytes()[..], rest].concat()
}

/// A frame with this message of a protocol.
fn carried(dissector: &Dissector, message: &[u8]) -> Vec<u8> {
    let port = match dissector.carrier {
        Carrier::EtherType(ether_type) => return ethernet(ether_type, message),
        Carrier::Udp(port) => port,
    };
    let mut headers = [0; Ipv4::BYTES + Udp::BYTES];
    let length = (Udp::BYTES + message.len()) as u16;
    let total_length = Ipv4::BYTES as u16 + length;
    let (src, dst) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    let (identification, fragment_offset, checksum) = (0, 0, 0);
    let (flags, ttl, protocol) = (ipv4::DONT_FRAGMENT, 64, ipv4::UDP);
    let ip = Ipv4 {
        version: 4,
        ihl: 5,
        dscp: 0,
        ecn: 0,
        total_length,
        identification,
        flags,
        fragment_offset,
        ttl,
        protocol,
        checksum,
        src,
        dst,
    };
    ip.emit(&mut headers);
    let sum = ipv4::checksum(&headers[..Ipv4::BYTES]);
    Ipv4 { checksum: sum, ..ip }.emit(&mut headers);
    Udp { src_port: 50_000, dst_port: port, length, checksum: 0 }.emit(&mut headers[Ipv4::BYTES..]);
    ethernet(0x0800, &[&headers, message].concat())
}

/// Values of a message's fields, in order, such that a receiver would accept them.
fn values(dissector: &Dissector, message: &Message, random: &mut SplitMix) -> Vec<u64> {
    let fields = message.header.fields;
    let mut values: Vec<u64> = fields.iter().map(|f| random.next() & (u64::MAX >> (64 - f.bits))).collect();
    let mut set = |name: &str, value: u64| {
        values[fields.iter().position(|field| field.name == name).unwrap()] = value;
    };
    set("version", dissector.version.into());
    set("kind", message.kind.into());
    for (field, named) in message.values {
        set(field, named[random.next() as usize % named.len()].0.into());
    }
    for (parts, limit) in message.at_most {
        parts.iter().for_each(|part| set(part, random.next() % 100));
        set(limit, 200);
    }
    match message.then {
        Then::Padding => {}
        Then::Payload(field) => set(field, 0x0800),
        Then::Bytes(field) => set(field, random.next() % 100),
    }
    values
}

/// The message: its header, and as many bytes as it announces.
fn whole(message: &Message, values: &[u64]) -> Vec<u8> {
    let mut bytes = vec![0; message.header.bits() / 8];
    let (mut at, mut more) = (0, 0);
    for (field, value) in message.header.fields.iter().zip(values) {
        write_bits(&mut bytes, at, field.bits, *value);
        at += field.bits;
        if message.then == Then::Bytes(field.name) {
            more = *value as usize;
        }
    }
    bytes.resize(bytes.len() + more, 0xda);
    bytes
}

/// tshark's output for each frame, a column for each field. `None` if there is no tshark.
fn shown(frames: &[Vec<u8>], fields: &[String]) -> Option<Vec<Vec<String>>> {
    let mut capture = Writer::default();
    frames.iter().for_each(|frame| capture.add(Nanos::ZERO, frame));
    let folder = tempfile::tempdir().unwrap();
    let (dissectors_file, capture_file) = (folder.path().join("test.lua"), folder.path().join("test.pcap"));
    std::fs::write(&dissectors_file, script("test", &dissectors())).unwrap();
    std::fs::write(&capture_file, capture.bytes()).unwrap();
    let mut command = Command::new("tshark");
    command.args(["-T", "fields", "-X"]).arg(format!("lua_script:{}", dissectors_file.display()));
    command.arg("-r").arg(&capture_file).args(fields.iter().flat_map(|field| ["-e", field]));
    let Ok(output) = command.output() else {
        // Past the harness, which hides a passing test's output.
        let _ = writeln!(std::io::stderr(), "skipped: needs `tshark`, get it by `apt install tshark`");
        return None;
    };
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{errors}");
    assert!(!errors.contains("Lua"), "{errors}");
    let lines: Vec<_> = text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect();
    assert_eq!(lines.len(), frames.len(), "{errors}");
    Some(lines)
}

fn field_name(dissector: &Dissector, message: &Message, field: &str) -> String {
    match field {
        "version" | "kind" => format!("{}.{field}", dissector.name),
        _ => format!("{}.{}.{field}", dissector.name, message.header.name.to_lowercase()),
    }
}

fn malformed() -> Vec<String> {
    let reasons = ["short", "version", "kind", "value", "length"];
    let of = |name| reasons.map(|reason| format!("{name}.malformed.{reason}"));
    ["pl2", "edm", "clio"].into_iter().flat_map(of).chain(["_ws.malformed".to_owned()]).collect()
}

#[test]
fn every_field_is_shown() {
    let mut random = SplitMix(7);
    for dissector in dissectors() {
        for message in &dissector.messages {
            let asked: Vec<_> = (0..20).map(|_| values(&dissector, message, &mut random)).collect();
            let frames: Vec<_> =
                asked.iter().map(|values| carried(&dissector, &whole(message, values))).collect();
            let fields = message.header.fields.iter().map(|f| field_name(&dissector, message, f.name));
            // A mistake in the script would show as an expert's remark, too.
            let empty = || malformed().into_iter().chain(["_ws.expert".to_owned()]);
            let fields: Vec<String> = fields.chain(empty()).collect();
            let Some(lines) = shown(&frames, &fields) else { return };
            for (values, line) in asked.iter().zip(lines) {
                let wanted = values.iter().map(u64::to_string);
                let wanted: Vec<String> = wanted.chain(empty().map(|_| String::new())).collect();
                assert_eq!(line, wanted, "{} {}", dissector.name, message.name);
            }
        }
    }
}

#[test]
fn what_a_receiver_would_not_accept_is_marked() {
    let mut random = SplitMix(11);
    let (mut frames, mut reasons) = (Vec::new(), Vec::new());
    for dissector in dissectors() {
        let mut add = |bytes: Vec<u8>, reason: &str| {
            frames.push(carried(&dissector, &bytes));
            reasons.push(format!("{}.malformed.{reason}", dissector.name));
        };
        for message in &dissector.messages {
            let message_whole = whole(message, &values(&dissector, message, &mut random));
            for length in 1..message_whole.len() {
                add(message_whole[..length].to_vec(), "short");
            }
            for version in (0..16).filter(|version| *version != dissector.version) {
                let mut other = message_whole.clone();
                other[0] = version << 4 | message.kind;
                add(other, "version");
            }
            for (field, named) in message.values {
                let mut values = values(&dissector, message, &mut random);
                let at = message.header.fields.iter().position(|f| f.name == *field).unwrap();
                values[at] =
                    (0..256).find(|value| named.iter().all(|(name, _)| u64::from(*name) != *value)).unwrap();
                add(whole(message, &values), "value");
            }
            for (parts, limit) in message.at_most {
                let mut values = values(&dissector, message, &mut random);
                let at = |name: &str| message.header.fields.iter().position(|f| f.name == name).unwrap();
                values[at(limit)] = parts.iter().map(|part| values[at(part)]).sum::<u64>().max(1) - 1;
                values[at(parts[0])] += 1;
                add(whole(message, &values), "length");
            }
        }
        for kind in (0..16).filter(|kind| dissector.messages.iter().all(|message| message.kind != *kind)) {
            add(vec![dissector.version << 4 | kind; 64], "kind");
        }
    }
    let fields = malformed();
    let Some(lines) = shown(&frames, &fields) else { return };
    for ((bytes, reason), line) in frames.iter().zip(&reasons).zip(&lines) {
        let marked: Vec<&String> =
            fields.iter().zip(line).filter(|(_, shown)| !shown.is_empty()).map(|(field, _)| field).collect();
        assert_eq!(marked, [reason, "_ws.malformed"], "{bytes:02x?}");
    }
}

#[test]
fn data_frames_name_their_lane() {
    let tag = |vid: u16, dei: u16| {
        ethernet(0x8100, &[&(5 << 13 | dei << 12 | vid).to_be_bytes()[..], &[8, 0, 0x45]].concat())
    };
    let frames = [tag(100, 0), tag(103, 1), tag(107, 0), tag(99, 0), tag(108, 1), ethernet(0x0800, &[0x45])];
    let fields = ["cell", "lane", "half", "unsolicited"].map(|field| format!("pl2.lane.{field}"));
    let Some(lines) = shown(&frames, &fields) else { return };
    let wanted =
        [["0", "0", "0", "0"], ["3", "1", "1", "1"], ["7", "3", "1", "0"], [""; 4], [""; 4], [""; 4]];
    assert_eq!(lines, wanted.map(|line| line.map(str::to_owned).to_vec()));
}

#[test]
fn a_shim_s_payload_is_dissected() {
    let shim = pl2::Shim {
        version: pl2::VERSION,
        kind: pl2::Kind::Data as u8,
        reserved: 0,
        ether_type: p4rack_wire::EtherType(0x0806),
        sequence: 5,
    };
    let mut bytes = vec![0; pl2::Shim::BYTES];
    shim.emit(&mut bytes);
    assert_eq!(read_bits(&bytes, 32, 32), 5);
    bytes.extend([0, 1, 8, 0, 6, 4, 0, 2]);
    bytes.extend([0; 20]);
    let fields = ["pl2.shim.sequence", "arp.opcode"].map(str::to_owned);
    let Some(lines) = shown(&[ethernet(0x88b5, &bytes)], &fields) else { return };
    assert_eq!(lines, [["5", "2"]]);
}
