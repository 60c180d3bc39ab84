//! RoCEv2 frames: a composed frame is parsed back into its parts, and other bytes are refused
//! without a panic.

use p4rack_wire::ipv4;
use p4rack_wire::roce::frame::{self, Extension, FrameError, Path};
use p4rack_wire::roce::{
    Aeth, AtomicAckEth, AtomicEth, Bth, ImmDt, Mtu, Nak, Opcode, Reth, Syndrome, psn, rnr_wait_ns,
};
use p4rack_wire::{EtherType, MacAddr, ParseError};
use proptest::prelude::*;
use std::net::Ipv4Addr;

const PATH: Path = Path {
    src_mac: MacAddr([2, 0, 0, 0, 0, 1]),
    dst_mac: MacAddr([2, 0, 0, 0, 0, 2]),
    src_ip: Ipv4Addr::new(10, 0, 0, 1),
    dst_ip: Ipv4Addr::new(10, 0, 0, 2),
    src_port: 0xc000,
    dscp: 26,
};

/// The extended headers of an opcode, with these numbers in them.
fn extension(opcode: Opcode, number: u64) -> Extension {
    let low = number as u32;
    let reth = Reth { address: number, key: low, bytes: low };
    let (aeth, data) = (Aeth { syndrome: 0x1f, msn: low & psn::MAX }, ImmDt { data: low });
    match opcode as u8 {
        6 | 10 | 12 => Extension::Rdma(reth, None),
        11 => Extension::Rdma(reth, Some(data)),
        3 | 5 | 9 => Extension::Immediate(data),
        13 | 15 | 16 | 17 => Extension::Ack(aeth),
        18 => Extension::AtomicAck(aeth, AtomicAckEth { original: number }),
        19 | 20 => {
            Extension::Atomic(AtomicEth { address: number, key: low, swap_or_add: number, compare: !number })
        }
        _ => Extension::None,
    }
}

fn compose(opcode: Opcode, number: u64, payload: &[u8]) -> (Bth, Vec<u8>) {
    let mut bth = Bth::new(opcode, (number >> 40) as u32, number as u32 & psn::MAX);
    let mut out = vec![0xa5; 7];
    frame::compose(&PATH, bth, &extension(opcode, number), payload, &mut out);
    bth.pad = (payload.len().wrapping_neg() % 4) as u8;
    (bth, out)
}

proptest! {
    #[test]
    fn frames_come_back_as_they_were_composed(
        opcode in 0..21u8, number: u64, payload in prop::collection::vec(any::<u8>(), 0..4_097), tag: bool, behind in 0..20usize,
    ) {
        let opcode = Opcode::of(opcode).unwrap();
        let payload = if opcode.has_payload() { payload } else { Vec::new() };
        let (bth, mut bytes) = compose(opcode, number, &payload);
        prop_assert!(bytes.len() <= frame::BYTES_MAX);
        if tag {
            // PL2's tag does not disturb.
            bytes.splice(12..12, [0x81, 0, 0xa0, 2]);
        }
        bytes.resize(bytes.len() + behind, 0x77);
        let frame = frame::parse(&bytes, true).unwrap();
        prop_assert_eq!(frame.packet.bth, bth);
        prop_assert_eq!(frame.packet.opcode, opcode);
        prop_assert_eq!(frame.packet.extension, extension(opcode, number));
        prop_assert_eq!(frame.packet.payload, &payload[..]);
        prop_assert_eq!((frame.ipv4.src, frame.ipv4.dst, frame.ipv4.dscp), (PATH.src_ip, PATH.dst_ip, PATH.dscp));
    }

    #[test]
    fn frames_cut_short_are_refused(opcode in 0..21u8, number: u64, length in 0..70usize) {
        let opcode = Opcode::of(opcode).unwrap();
        let payload = vec![1; if opcode.has_payload() { length } else { 0 }];
        let (_, bytes) = compose(opcode, number, &payload);
        for have in 0..bytes.len() {
            let error = frame::parse(&bytes[..have], true).unwrap_err();
            let truncated = matches!(error, FrameError::Malformed(ParseError::Truncated { .. }));
            prop_assert!(truncated, "{}", error);
        }
    }

    /// Headers of any content: with the iCRC off, nothing else checks them first.
    #[test]
    fn any_bytes_are_taken_apart_or_refused(mut bytes in prop::collection::vec(any::<u8>(), 0..120), real in 0..4u8) {
        let headers = [0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0xc0, 0, 0x12, 0xb7, 0, 0, 0, 0];
        if real > 0 && bytes.len() > 42 {
            bytes[12..14].copy_from_slice(&EtherType::IPV4.0.to_be_bytes());
            bytes[14..42].copy_from_slice(&headers);
            let length = bytes.len() as u16 - 14;
            bytes[16..18].copy_from_slice(&length.to_be_bytes());
            bytes[38..40].copy_from_slice(&(length - 20).to_be_bytes());
            let checksum = ipv4::checksum(&bytes[14..34]);
            bytes[24..26].copy_from_slice(&checksum.to_be_bytes());
            bytes[42] %= 24;
            if real > 1 && bytes.len() > 43 {
                bytes[43] &= 0xf0;
            }
        }
        if let Ok(frame) = frame::parse(&bytes, false) {
            prop_assert!(frame.packet.payload.len() + frame.packet.extension.bytes() < bytes.len());
            prop_assert_eq!(frame.packet.opcode as u8, frame.packet.bth.opcode);
        }
    }

    #[test]
    fn sequence_numbers_go_round(psn in 0..=psn::MAX, ahead in 1..=psn::MAX / 2) {
        let later = psn::add(psn, ahead);
        prop_assert_eq!(psn::distance(psn, later), ahead);
        prop_assert!(psn::is_before(psn, later) && !psn::is_before(later, psn) && !psn::is_before(psn, psn));
    }
}

#[test]
fn golden_frame() {
    let (_, bytes) = compose(Opcode::WriteOnly, 0x0000_1100_0000_0102, &[1, 2, 3]);
    let ip = [0x45, 0x68, 0, 64, 0, 0, 0x40, 0, 64, 17, 0x26, 0x43, 10, 0, 0, 1, 10, 0, 0, 2];
    assert_eq!(bytes[12..14], [8, 0]);
    assert_eq!(bytes[14..34], ip);
    assert_eq!(bytes[34..42], [0xc0, 0, 0x12, 0xb7, 0, 44, 0, 0]);
    assert_eq!(bytes[42..54], [10, 0x50, 0xff, 0xff, 0, 0, 0, 0x11, 0, 0, 1, 2]);
    assert_eq!(bytes[54..70], [0, 0, 0x11, 0, 0, 0, 1, 2, 0, 0, 1, 2, 0, 0, 1, 2]);
    assert_eq!(bytes[70..74], [1, 2, 3, 0], "padded to four bytes");
    assert_eq!(bytes.len(), 78);
}

#[test]
fn frames_of_others_are_told_apart() {
    let (_, good) = compose(Opcode::Acknowledge, 9, &[]);
    let refused = |at: usize, byte: u8, fix: bool| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        if fix {
            bytes[24..26].fill(0);
            let checksum = ipv4::checksum(&bytes[14..34]);
            bytes[24..26].copy_from_slice(&checksum.to_be_bytes());
        }
        frame::parse(&bytes, true).unwrap_err()
    };
    let invalid = |field, value| FrameError::Malformed(ParseError::Invalid { field, value });
    assert_eq!(refused(13, 6, false), FrameError::NotRoce, "ARP");
    assert_eq!(refused(23, 6, true), FrameError::NotRoce, "TCP");
    assert_eq!(refused(37, 0xb8, false), FrameError::NotRoce, "another port");
    assert_eq!(refused(14, 0x46, true), FrameError::Unsupported, "options");
    assert_eq!(refused(20, 0x20, true), FrameError::Unsupported, "a fragment");
    assert_eq!(refused(30, 11, false), FrameError::Checksum);
    assert_eq!(refused(39, 1, false), invalid("length", 1));
    assert_eq!(refused(50, 1, false), FrameError::Icrc);
    let mut bytes = good.clone();
    bytes[42] = 21;
    assert_eq!(frame::parse(&bytes, false), Err(invalid("opcode", 21)));
    bytes[42] = Opcode::SendOnly as u8;
    bytes[43] = 0x31;
    assert_eq!(frame::parse(&bytes, false), Err(invalid("version", 1)));
    bytes[43] = 0x30;
    assert_eq!(frame::parse(&bytes, false).unwrap().packet.payload.len(), 1, "its AETH, without three bytes");
    // Routers may lower the TTL and mark congestion.
    for (at, byte) in [(22, 63), (15, 0x6b)] {
        let mut bytes = good.clone();
        (bytes[at], bytes[24], bytes[25]) = (byte, 0, 0);
        let checksum = ipv4::checksum(&bytes[14..34]);
        bytes[24..26].copy_from_slice(&checksum.to_be_bytes());
        assert!(frame::parse(&bytes, true).is_ok());
    }
}

#[test]
fn every_code_is_known_or_refused() {
    for code in 0..=u8::MAX {
        assert_eq!(Opcode::of(code).map(|opcode| opcode as u8), (code < 21).then_some(code));
        match Syndrome::of(code) {
            Ok(Syndrome::Ack) => assert!(code < 0x20),
            Ok(syndrome) => assert_eq!(syndrome.code(), code),
            Err(error) => {
                assert!(matches!(code, 0x40..=0x5f | 0x64..));
                assert_eq!(error, ParseError::Invalid { field: "syndrome", value: code.into() });
            }
        }
    }
    assert_eq!(Nak::ALL.map(|nak| nak as u8), [0, 1, 2, 3]);
    assert_eq!([0, 1, 14, 31].map(rnr_wait_ns), [655_360_000, 10_000, 1_280_000, 491_520_000]);
}

#[test]
fn packets_of_messages() {
    assert_eq!([0, 1, 256, 257, 512].map(|bytes| Mtu::B256.packets(bytes)), [1, 1, 1, 2, 2]);
    assert_eq!(Mtu::ALL.map(Mtu::bytes), [256, 512, 1_024, 2_048, 4_096]);
    assert_eq!(Mtu::B256.packets(u32::MAX), 1 << 24);
}
