//! Parsing an emitted header gives it back; short input is refused; layouts are fixed.

use p4rack_wire::clio;
use p4rack_wire::clio::{AllocBody, FreeBody, Header as ClioHeader, ShareBody};
use p4rack_wire::edm;
use p4rack_wire::edm::{Control as EdmControl, Message as EdmMessage};
use p4rack_wire::ethernet::{Ethernet, Vlan, overhead};
use p4rack_wire::ipv4::{Ipv4, Udp};
use p4rack_wire::pl2::{Control, Kind, LANES_MAX, Management, Shim, VERSION, cell, vid_of};
use p4rack_wire::roce::{Aeth, AtomicAckEth, AtomicEth, Bth, ImmDt, Reth};
use p4rack_wire::{EtherType, HeaderDesc, MacAddr, Nanos, ParseError, render};
use proptest::prelude::*;
use std::net::Ipv4Addr;

macro_rules! round_trip {
    ($($test:ident: $header:ident { $($field:ident: $ty:ty = $bits:expr),* $(,)? };)*) => { $(
        proptest! {
            #[test]
            fn $test($($field in (any::<u64>().prop_map(|v| v & (u64::MAX >> (64 - $bits))))),*) {
                use p4rack_wire::header::FieldValue;
                let header = $header { $($field: <$ty as FieldValue>::from_bits($field)),* };
                // Bytes around the header must not change, and bytes under it must not matter.
                let mut bytes = [0x5a; $header::BYTES + 3];
                header.emit(&mut bytes[1..]);
                prop_assert_eq!((bytes[0], &bytes[$header::BYTES + 1..]), (0x5a, &[0x5a; 2][..]));
                prop_assert_eq!($header::parse(&bytes[1..]), Ok(header));
                let need = $header::BYTES;
                for have in 0..need {
                    prop_assert_eq!(
                        $header::parse(&bytes[..have]),
                        Err(ParseError::Truncated { need, have })
                    );
                }
            }
        }
    )* };
}

round_trip! {
    ethernet: Ethernet { dst: MacAddr = 48, src: MacAddr = 48, ether_type: EtherType = 16 };
    vlan: Vlan { pcp: u8 = 3, dei: bool = 1, vid: u16 = 12, ether_type: EtherType = 16 };
    control: Control {
        version: u8 = 4, kind: u8 = 4, demand: u8 = 8, cell: u8 = 8, unsolicited: u8 = 1, reserved: u8 = 7,
        id: u32 = 32, send_wait: u32 = 32, recv_wait: u32 = 32,
    };
    shim: Shim { version: u8 = 4, kind: u8 = 4, reserved: u8 = 8, ether_type: EtherType = 16, sequence: u32 = 32 };
    management: Management {
        version: u8 = 4, kind: u8 = 4, target: u8 = 8, index: u16 = 16, token: u32 = 32, value: u32 = 32,
        destination: u16 = 16, reserved: u16 = 16, cell: u32 = 32,
    };
    edm_control: EdmControl {
        version: u8 = 4, kind: u8 = 4, answer: u8 = 8, id: u16 = 16, offset: u32 = 32, bytes: u32 = 32, wait: u32 = 32,
    };
    edm_message: EdmMessage {
        version: u8 = 4, kind: u8 = 4, code: u8 = 8, id: u16 = 16, key: u32 = 32, address: u64 = 64, total: u32 = 32,
        offset: u32 = 32, bytes: u16 = 16, start: u16 = 16,
    };
    ipv4: Ipv4 {
        version: u8 = 4, ihl: u8 = 4, dscp: u8 = 6, ecn: u8 = 2, total_length: u16 = 16, identification: u16 = 16,
        flags: u8 = 3, fragment_offset: u16 = 13, ttl: u8 = 8, protocol: u8 = 8, checksum: u16 = 16,
        src: Ipv4Addr = 32, dst: Ipv4Addr = 32,
    };
    udp: Udp { src_port: u16 = 16, dst_port: u16 = 16, length: u16 = 16, checksum: u16 = 16 };
    roce_bth: Bth {
        opcode: u8 = 8, solicited: bool = 1, migrated: bool = 1, pad: u8 = 2, version: u8 = 4, partition: u16 = 16,
        fecn: bool = 1, becn: bool = 1, reserved: u8 = 6, qpn: u32 = 24, ack_request: bool = 1, reserved_low: u8 = 7,
        psn: u32 = 24,
    };
    roce_reth: Reth { address: u64 = 64, key: u32 = 32, bytes: u32 = 32 };
    roce_atomic: AtomicEth { address: u64 = 64, key: u32 = 32, swap_or_add: u64 = 64, compare: u64 = 64 };
    roce_aeth: Aeth { syndrome: u8 = 8, msn: u32 = 24 };
    roce_atomic_ack: AtomicAckEth { original: u64 = 64 };
    clio_header: ClioHeader {
        version: u8 = 4, kind: u8 = 4, code: u8 = 8, flags: u8 = 8, attempt: u8 = 8, index: u16 = 16, packets: u16 = 16,
        id: u64 = 64, address: u64 = 64, pid: u32 = 32, length: u32 = 32, token: u64 = 64, epoch: u16 = 16,
        reserved: u16 = 16, crc: u32 = 32,
    };
    clio_alloc: AllocBody { bytes: u64 = 64, page_size: u8 = 8, rights: u8 = 8, reserved: u16 = 16 };
    clio_free: FreeBody { bytes: u64 = 64 };
    clio_share: ShareBody { bytes: u64 = 64, pid: u32 = 32, epoch: u16 = 16, rights: u8 = 8, reserved: u8 = 8 };
    roce_immediate: ImmDt { data: u32 = 32 };
}

#[test]
fn descriptions_fill_whole_bytes_and_have_unique_names() {
    let all: [(HeaderDesc, usize); 19] = [
        (Ethernet::DESC, Ethernet::BYTES),
        (Vlan::DESC, Vlan::BYTES),
        (Control::DESC, Control::BYTES),
        (Shim::DESC, Shim::BYTES),
        (Management::DESC, Management::BYTES),
        (EdmControl::DESC, EdmControl::BYTES),
        (EdmMessage::DESC, EdmMessage::BYTES),
        (Ipv4::DESC, Ipv4::BYTES),
        (Udp::DESC, Udp::BYTES),
        (Bth::DESC, Bth::BYTES),
        (Reth::DESC, Reth::BYTES),
        (AtomicEth::DESC, AtomicEth::BYTES),
        (Aeth::DESC, Aeth::BYTES),
        (AtomicAckEth::DESC, AtomicAckEth::BYTES),
        (ImmDt::DESC, ImmDt::BYTES),
        (ClioHeader::DESC, ClioHeader::BYTES),
        (AllocBody::DESC, AllocBody::BYTES),
        (FreeBody::DESC, FreeBody::BYTES),
        (ShareBody::DESC, ShareBody::BYTES),
    ];
    for (desc, bytes) in all {
        assert_eq!(desc.bits(), bytes * 8, "{}", desc.name);
        let mut names: Vec<_> = desc.fields.iter().map(|field| field.p4_name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), desc.fields.len(), "{}", desc.name);
    }
}

/// The layouts, byte by byte: other implementations depend on them.
#[test]
fn golden_bytes() {
    let mut bytes = [0; 16];
    Control {
        version: VERSION,
        kind: Kind::Grt as u8,
        demand: 4,
        cell: 1,
        unsolicited: 1,
        reserved: 0,
        id: 0x0102_0304,
        send_wait: 5,
        recv_wait: 0x8000_0000,
    }
    .emit(&mut bytes);
    assert_eq!(bytes, [0x12, 4, 1, 0x80, 1, 2, 3, 4, 0, 0, 0, 5, 0x80, 0, 0, 0]);

    let mut bytes = [0; 4];
    Vlan { pcp: 5, dei: true, vid: 2, ether_type: EtherType::IPV4 }.emit(&mut bytes);
    assert_eq!(bytes, [0xb0, 2, 8, 0]);

    let mut bytes = [0; 8];
    let kind = Kind::Data as u8;
    Shim { version: VERSION, kind, reserved: 0, ether_type: EtherType::IPV6, sequence: 9 }.emit(&mut bytes);
    assert_eq!(bytes, [0x14, 0, 0x86, 0xdd, 0, 0, 0, 9]);

    let mut bytes = [0; 16];
    let kind = edm::Kind::Grant as u8;
    EdmControl { version: edm::VERSION, kind, answer: 1, id: 0x0203, offset: 256, bytes: 64, wait: 7 }
        .emit(&mut bytes);
    assert_eq!(bytes, [0x12, 1, 2, 3, 0, 0, 1, 0, 0, 0, 0, 64, 0, 0, 0, 7]);

    let mut bytes = [0; 32];
    EdmMessage {
        version: edm::VERSION,
        kind: edm::Kind::Rmwreq as u8,
        code: edm::Opcode::Cas as u8,
        id: 7,
        key: 0x0a0b_0c0d,
        address: 0x1000,
        total: 8,
        offset: 0,
        bytes: 16,
        start: 9,
    }
    .emit(&mut bytes);
    assert_eq!(bytes[..16], [0x15, 1, 0, 7, 10, 11, 12, 13, 0, 0, 0, 0, 0, 0, 0x10, 0]);
    assert_eq!(bytes[16..], [0, 0, 0, 8, 0, 0, 0, 0, 0, 16, 0, 9, 0, 0, 0, 0]);
}

/// Clio's header, in all its languages.
#[test]
fn clio_has_its_layout() {
    let mut bytes = [0; ClioHeader::BYTES];
    ClioHeader {
        version: clio::VERSION,
        kind: clio::Kind::Atomic as u8,
        code: clio::Atomic::FetchAdd as u8,
        flags: 0,
        attempt: 2,
        index: 0,
        packets: 1,
        id: 0x0102_0304_0506_0708,
        address: clio::PageSize::M4.address_of(1),
        pid: 3,
        length: 8,
        token: 0x1112_1314_1516_1718,
        epoch: 5,
        reserved: 0,
        crc: 0x2122_2324,
    }
    .emit(&mut bytes);
    assert_eq!(bytes[..16], [0x13, 2, 0, 2, 0, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(bytes[16..32], [0, 0, 0x30, 0, 0, 0x40, 0, 0, 0, 0, 0, 3, 0, 0, 0, 8]);
    assert_eq!(
        bytes[32..],
        [0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0, 5, 0, 0, 0x21, 0x22, 0x23, 0x24]
    );
    let (p4, scapy) = (render::p4_header(&ClioHeader::DESC), render::scapy_layer(&ClioHeader::DESC));
    assert!(p4.contains("header clio_t {\n") && p4.contains("    bit<64> virtualAddress; // of the"), "{p4}");
    assert!(scapy.contains("LongField(\"id\", 0),") && scapy.contains("IntField(\"crc\", 0),"), "{scapy}");
}

#[test]
fn clio_kinds_operations_and_statuses_have_their_numbers() {
    for code in 0..=u8::MAX {
        assert!(clio::Kind::of(code).is_none_or(|kind| kind as u8 == code));
        assert!(clio::Atomic::of(code).is_none_or(|atomic| atomic as u8 == code));
        assert!(clio::Manage::of(code).is_none_or(|manage| manage as u8 == code));
        assert!(clio::Status::of(code).is_none_or(|status| status as u8 == code));
        assert!(clio::Rights::of(code).is_ok_and(|rights| rights.code() == code) == (1..=3).contains(&code));
    }
    let mut statuses = clio::Status::ALL.iter().enumerate();
    assert!(statuses.all(|(nth, (status, name))| *status as usize == nth && status.name() == *name));
    assert!(clio::Kind::ALL.iter().all(|(kind, _)| clio::Kind::of(*kind as u8) == Some(*kind)));
    assert_eq!(clio::lock_word(1, 2, 3), 0x0000_0001_0002_0003);
}

#[test]
fn edm_kinds_operations_and_statuses_have_their_numbers() {
    for first in 0..=u8::MAX {
        let known = edm::Kind::ALL.iter().find(|(kind, _)| edm::VERSION << 4 | *kind as u8 == first);
        assert_eq!(edm::Kind::of(first).ok(), known.map(|(kind, _)| *kind));
        let numbered = |opcode: edm::Opcode| opcode as u8 == first;
        assert_eq!(edm::Opcode::of(first), edm::Opcode::ALL.into_iter().find(|opcode| numbered(*opcode)));
        assert_eq!(edm::Status::of(first).is_some(), usize::from(first) < edm::Status::ALL.len());
    }
}

proptest! {
    #[test]
    fn edm_operations_are_what_they_say(old: u64, one: u64, two: u64) {
        use edm::Opcode::{And, Cas, FetchAdd, Max, Min, Or, Swap, Xor};
        let new = |opcode: edm::Opcode| opcode.apply(old, [one, two]);
        prop_assert_eq!([new(Swap), new(FetchAdd)], [one, old.wrapping_add(one)]);
        prop_assert_eq!([new(And), new(Or), new(Xor)], [old & one, old | one, old ^ one]);
        prop_assert_eq!([new(Min), new(Max)], [old.min(one), old.max(one)]);
        prop_assert_eq!([Cas.apply(one, [one, two]), new(Cas)], [two, if old == one { two } else { old }]);
    }
}

#[test]
fn cells_and_their_vlans() {
    assert_eq!([cell(0, 0), cell(0, 1), cell(1, 0), cell(LANES_MAX - 1, 1)], [0, 1, 2, 127]);
    assert_eq!([vid_of(100, 0), vid_of(100, cell(2, 1))], [100, 105]);
}

#[test]
fn a_field_takes_only_its_own_bits() {
    let mut bytes = [0; 4];
    Vlan { pcp: 0xff, dei: false, vid: 0xffff, ether_type: EtherType(0) }.emit(&mut bytes);
    assert_eq!(bytes, [0xef, 0xff, 0, 0]);
}

#[test]
fn kinds_and_versions() {
    for (kind, name) in Kind::ALL {
        assert_eq!(Kind::of(VERSION << 4 | kind as u8), Ok(kind), "{name}");
    }
    assert_eq!(Kind::of(0x21), Err(ParseError::Invalid { field: "version", value: 2 }));
    assert_eq!(Kind::of(0x15), Err(ParseError::Invalid { field: "kind", value: 5 }));
}

#[test]
fn mac_addresses_as_text() {
    let mac: MacAddr = "02:00:00:00:0a:Ff".parse().unwrap();
    assert_eq!(mac.to_string(), "02:00:00:00:0a:ff");
    for bad in [
        "",
        "02:00:00:00:00",
        "02:00:00:00:00:01:02",
        "2:0:0:0:0:1",
        "02:00:00:00:00:0g",
        "é:00:00:00:00:00",
        "+2:00:00:00:00:01",
    ] {
        let error = bad.parse::<MacAddr>().unwrap_err();
        assert!(error.contains("02:00:00:00:00:01"), "{error}");
    }
    assert!(MacAddr::BROADCAST.is_group() && !mac.is_group());
}

#[test]
fn times_on_the_wire() {
    assert_eq!(overhead::wire_bytes(14), 84, "padded to the shortest frame");
    assert_eq!(overhead::wire_bytes(1518), 1542, "a full tagged frame");
    assert_eq!(Nanos::on_wire(1542, 100_000_000_000), Nanos(124), "123.36 ns, rounded up");
    assert_eq!(Nanos::on_wire(1542, 0), Nanos(0));
    assert_eq!(Nanos(5).saturating_sub(Nanos(7)), Nanos::ZERO);
    assert_eq!(Nanos::MAX.saturating_add(Nanos(1)), Nanos::MAX);
}

proptest! {
    /// A message in a frame comes back, with its padding; no other EtherType is taken for it, nothing panics.
    #[test]
    fn messages_of_edm_go_into_frames_and_back(
        message in prop::collection::vec(any::<u8>(), 1..200), cut in 0usize..220, ether_type in 0x600u16..
    ) {
        let (dst, src) = (MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]));
        let mut frame = vec![9; 7];
        edm::emit_frame(dst, src, EtherType::EDM_DEFAULT, &message, &mut frame);
        prop_assert!(frame.len() >= 60);
        let (ethernet, back) = edm::parse_frame(&frame, EtherType::EDM_DEFAULT).unwrap();
        prop_assert_eq!((ethernet.dst, ethernet.src), (dst, src));
        prop_assert_eq!(&back[..message.len()], &message[..]);
        prop_assert!(back[message.len()..].iter().all(|byte| *byte == 0));
        let other = EtherType(ether_type);
        prop_assume!(other != EtherType::EDM_DEFAULT && other != EtherType::VLAN);
        prop_assert!(edm::parse_frame(&frame, other).is_none());
        if let Some((_, back)) = edm::parse_frame(&frame[..cut.min(frame.len())], EtherType::EDM_DEFAULT) {
            prop_assert!(!back.is_empty());
        }
    }
}
