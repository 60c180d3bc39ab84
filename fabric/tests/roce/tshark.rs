//! Wireshark's dissector reads every kind of frame that the adapters send.

use crate::roce::network::{Faults, KEY, Network, QPN, READ_ONLY, READ_ONLY_START, START, connection};
use p4rack_fabric::Machine as _;
use p4rack_fabric::roce::{Config, Request};
use p4rack_wire::Nanos;
use p4rack_wire::pcap::Writer;
use p4rack_wire::roce::frame::{self, Extension};
use p4rack_wire::roce::{Aeth, Bth, Mtu, Nak, Opcode, Syndrome};
use std::io::Write;
use std::process::{Command, Stdio};

/// Frames of both nodes, of all kinds.
fn frames() -> Vec<Vec<u8>> {
    let network = || {
        let config = Config { mtu: Mtu::B256, message_bytes_max: 4_096, ..Config::default() };
        let mut network = Network::new(config, Faults::default(), 1);
        network.record = Some(Vec::new());
        network
    };
    let mut frames = Vec::new();
    let mut one = network();
    for length in [0, 1, 2, 3, 4, 256, 300, 700] {
        for immediate in [None, Some(0xabcd_ef01)] {
            let bytes = vec![0x5a; length];
            one.adapters[1].handle_receive(QPN, 4_096).unwrap();
            one.ask(Request::Send { bytes: bytes.clone(), immediate });
            if immediate.is_some() {
                one.adapters[1].handle_receive(QPN, 4_096).unwrap();
            }
            one.ask(Request::Write { key: KEY, address: START + 64, bytes, immediate });
        }
        one.ask(Request::Read { key: READ_ONLY, address: READ_ONLY_START, bytes: length as u32 });
    }
    one.ask(Request::CompareSwap { key: KEY, address: START, compare: 0, swap: 1 });
    one.ask(Request::FetchAdd { key: KEY, address: START, add: 2 });
    one.settle();
    // No receive is posted; then a packet is lost before the next one.
    one.ask(Request::Send { bytes: vec![1], immediate: None });
    one.step();
    one.adapters[1].handle_receive(QPN, 16).unwrap();
    one.settle();
    let mut lost = Vec::new();
    one.ask(Request::Write { key: KEY, address: START, bytes: vec![1; 300], immediate: None });
    assert!(one.adapters[0].poll_link(one.now, &mut lost).is_some());
    one.settle();
    frames.extend(one.record.unwrap());
    // Without a key's permission, and a message that is too long for its receive.
    for request in [
        Request::Write { key: READ_ONLY, address: READ_ONLY_START, bytes: vec![1], immediate: None },
        Request::Send { bytes: vec![1; 17], immediate: None },
    ] {
        let mut refused = network();
        refused.adapters[1].handle_receive(QPN, 16).unwrap();
        refused.ask(request);
        refused.settle();
        frames.extend(refused.record.unwrap());
    }
    // Regions don't fail, so this one is composed here.
    let mut failed = Vec::new();
    let aeth = Aeth { syndrome: Syndrome::Nak(Nak::RemoteOperational).code(), msn: 0 };
    let bth = Bth::new(Opcode::Acknowledge, QPN, 7);
    frame::compose(&connection(1).path, bth, &Extension::Ack(aeth), &[], &mut failed);
    frames.push(failed);
    frames
}

fn capture(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut capture = Writer::default();
    frames.iter().zip(0..).for_each(|(frame, nth)| capture.add(Nanos(1_000 * nth), frame));
    capture.bytes().to_vec()
}

/// The iCRC bit by bit, as in the standard's text.
fn icrc(frame: &[u8]) -> u32 {
    let mut packet = frame[14..frame.len() - 4].to_vec();
    for at in [1, 8, 10, 11, 26, 27, 32] {
        packet[at] = 0xff;
    }
    let mut crc = u32::MAX;
    for byte in [0xff; 8].iter().chain(&packet) {
        for bit in 0..8 {
            let carry = (crc ^ u32::from(byte >> bit)) & 1;
            crc = (crc >> 1) ^ (carry * 0xedb8_8320);
        }
    }
    (!crc).swap_bytes()
}

#[test]
fn every_kind_of_frame_is_dissected() {
    let frames = frames();
    let (mut opcodes, mut syndromes) = (Vec::new(), Vec::new());
    for frame in &frames {
        let packet = frame::parse(frame, true).unwrap().packet;
        opcodes.push(packet.opcode);
        if let Extension::Ack(aeth) = packet.extension {
            syndromes.push(Syndrome::of(aeth.syndrome).unwrap());
        }
    }
    for opcode in Opcode::ALL {
        assert!(opcodes.contains(&opcode), "{opcode:?} was not sent");
    }
    for nak in Nak::ALL {
        assert!(syndromes.contains(&Syndrome::Nak(nak)), "{nak:?} was not sent");
    }
    assert!(syndromes.contains(&Syndrome::ReceiverNotReady(14)));

    let fields = [
        "infiniband.bth.opcode",
        "infiniband.bth.psn",
        "infiniband.invariant.crc",
        "_ws.malformed",
        "_ws.expert",
    ];
    let mut tshark = Command::new("tshark");
    // That dissector takes the payload of any SEND for its own.
    tshark
        .args(["-r", "-", "--disable-protocol", "rpcordma", "-T", "fields"])
        .args(fields.iter().flat_map(|field| ["-e", field]));
    let started = tshark.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let Ok(mut tshark) = started else {
        let _ = writeln!(std::io::stderr(), "skipped: needs `tshark`, get it by `apt install tshark`");
        return;
    };
    tshark.stdin.take().unwrap().write_all(&capture(&frames)).unwrap();
    let output = tshark.wait_with_output().unwrap();
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{errors}");
    assert_eq!(text.lines().count(), frames.len(), "{text}\n{errors}");
    for (frame, line) in frames.iter().zip(text.lines()) {
        let bth = frame::parse(frame, true).unwrap().packet.bth;
        let wanted = [bth.opcode.to_string(), bth.psn.to_string(), format!("0x{:08x}", icrc(frame))];
        let shown: Vec<&str> = line.split('\t').collect();
        assert_eq!(shown, [&wanted[0], &wanted[1], &wanted[2], "", ""], "{line}");
    }
}
