//! Every header parser takes any bytes, and the parsed header is written back bit for bit.
#![no_main]

use libfuzzer_sys::fuzz_target;
use p4rack_wire::ParseError;
use p4rack_wire::clio::{self, AllocBody, FreeBody, ShareBody};
use p4rack_wire::cowbird::{self, Entry, Green, Red, Tail};
use p4rack_wire::edm;
use p4rack_wire::ethernet::{Ethernet, Vlan};
use p4rack_wire::ipv4::{Ipv4, Udp};
use p4rack_wire::pl2::{Control, Kind, Management, Shim};
use p4rack_wire::roce::{Aeth, AtomicAckEth, AtomicEth, Bth, ImmDt, Reth, frame};

use clio::Header as ClioHeader;
use cowbird::Management as CowbirdManagement;
use edm::{Control as EdmControl, Message as EdmMessage};

macro_rules! back_and_forth {
    ($data:ident: $($header:ident),*) => { $(
        match $header::parse($data) {
            Ok(header) => {
                let mut bytes = [0xa5; $header::BYTES];
                header.emit(&mut bytes);
                assert_eq!(bytes, $data[..$header::BYTES]);
            }
            Err(error) => {
                assert_eq!(error, ParseError::Truncated { need: $header::BYTES, have: $data.len() });
                assert!($data.len() < $header::BYTES);
            }
        }
    )* };
}

fuzz_target!(|data: &[u8]| {
    back_and_forth!(data: Ethernet, Vlan, Control, Shim, Management, EdmControl, EdmMessage);
    back_and_forth!(data: Ipv4, Udp, Bth, Reth, AtomicEth, Aeth, AtomicAckEth, ImmDt);
    back_and_forth!(data: Entry, Green, Red, Tail, CowbirdManagement);
    back_and_forth!(data: ClioHeader, AllocBody, FreeBody, ShareBody);
    if let Ok(packet) = clio::packet::parse(data) {
        assert_eq!(packet.data.len() + ClioHeader::BYTES, data.len());
        let mut sealed = data.to_vec();
        clio::packet::seal(&mut sealed);
        assert!(clio::packet::parse_intact(&sealed).is_ok_and(|again| again.data == packet.data));
    }
    for verify in [false, true] {
        if let Ok(frame) = frame::parse(data, verify) {
            assert!(frame.packet.payload.len() + frame.packet.extension.bytes() < data.len());
        }
    }
    if let Ok(packet) = frame::packet(data) {
        let headers = Bth::BYTES + packet.extension.bytes() + usize::from(packet.bth.pad);
        assert_eq!(headers + packet.payload.len(), data.len());
    }
    if let Some(first) = data.first() {
        let known = Kind::ALL.iter().any(|(kind, _)| *kind as u8 == first & 0xf);
        assert_eq!(Kind::of(*first).is_ok(), first >> 4 == 1 && known);
        let known = edm::Kind::ALL.iter().any(|(kind, _)| *kind as u8 == first & 0xf);
        assert_eq!(edm::Kind::of(*first).is_ok(), first >> 4 == 1 && known);
    }
});
