//! Mistakes that are planted in a client, or between it and the board, and have to be found.

use crate::clio_lib::board::Moods;
use crate::clio_lib::faults::all;
use crate::clio_lib::work::Setting;
use crate::clio_lib::world::Faults;
use p4rack_wire::clio::packet::{self, Packet};
use p4rack_wire::clio::{Header, Kind};

/// Changes the header of a packet, and its CRC with it.
fn change(bytes: &mut Vec<u8>, with: impl Fn(&Packet<'_>) -> Header) {
    let copy = bytes.clone();
    let Ok(packet) = packet::parse(&copy) else { return };
    packet::compose(&with(&packet), packet.data, bytes);
}

/// Bits of an id for the attempt, of those that count the requests of a slot.
const SHIFT: u32 = 30;

/// A retry is a new request for the board: its id does not say which one it repeats.
fn forgets_the_failed_request(bytes: &mut Vec<u8>, to_board: bool) {
    change(bytes, |packet| {
        let header = packet.header;
        let other = u64::from(header.attempt) << SHIFT;
        Header { id: if to_board { header.id + other } else { header.id - other }, ..header }
    });
}

/// The board can't tell the packets of a write apart.
fn has_no_packet_index(bytes: &mut Vec<u8>, to_board: bool) {
    // The client finds the packet by its address, so that this mistake alone is planted.
    change(bytes, |packet| {
        let header = packet.header;
        match (to_board, packet.kind) {
            (true, Kind::Write) => Header { index: 0, reserved: header.index, ..header },
            (false, Kind::Answer) if header.reserved > 0 => {
                Header { index: header.reserved, reserved: 0, ..header }
            }
            _ => header,
        }
    });
}

#[test]
fn planted_mistakes_are_found() {
    let setting = Setting {
        faults: Faults { lost: 60, copied: 40, damaged: 0, delayed: 60 },
        moods: Moods::default(),
        ..Setting::default()
    };
    assert!(all(&setting).is_ok());
    for (name, found, planted) in [
        (
            "a retry without the id of the failed request",
            "no order explains",
            Setting { tamper: Some(forgets_the_failed_request), ..setting },
        ),
        (
            "an id without the packet's index",
            "no order explains",
            Setting { tamper: Some(has_no_packet_index), ..setting },
        ),
        ("a missed dependency", "has overtaken", Setting { forgets_threads: true, ..setting }),
    ] {
        let problem = all(&planted).map(|seen| format!("{seen:?}")).expect_err(name);
        assert!(problem.contains(found), "{name}: {problem}");
    }
}
