//! Planted mistakes, which the checks have to find. Those inside of a board are planted by the board's own tests.

use p4rack_wire::clio::packet::{self, Packet};
use p4rack_wire::clio::{Header, Kind};

/// A mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClioPlant {
    /// A retry has a new id, which doesn't say which request it repeats.
    RetryIsNew,
    /// The packets of a write have one index.
    NoPacketIndex,
    /// Damaged packets have the right CRC.
    DamageAccepted,
    /// Requests don't wait for those that they depend on.
    MissedDependency,
    /// Boards forget executed requests before retries come.
    ForgetsEarly,
    /// A client that starts again uses ids that boards remember.
    ReusedEarly,
    /// Frames keep their last owner's bytes.
    NotZeroed,
    /// Boards take no notice of processes that end.
    DeadOwner,
    /// Leases of locks last much longer than they should.
    LongLease,
    /// A board restarts with the secret that it had.
    SameSecret,
    /// The store confirms a change that it has not made.
    StoreForgets,
}

impl ClioPlant {
    /// All.
    pub const ALL: [ClioPlant; 11] = [
        ClioPlant::RetryIsNew,
        ClioPlant::NoPacketIndex,
        ClioPlant::DamageAccepted,
        ClioPlant::MissedDependency,
        ClioPlant::ForgetsEarly,
        ClioPlant::ReusedEarly,
        ClioPlant::NotZeroed,
        ClioPlant::DeadOwner,
        ClioPlant::LongLease,
        ClioPlant::SameSecret,
        ClioPlant::StoreForgets,
    ];
}

/// Bits of an id for the attempt, among those that count the requests of a slot.
const ATTEMPT_SHIFT: u32 = 30;

/// Changes a packet on its way according to the planted mistake.
pub(super) fn tamper(plant: Option<ClioPlant>, bytes: &mut Vec<u8>, to_board: bool) {
    match plant {
        Some(ClioPlant::RetryIsNew) => change(bytes, |packet| {
            let other = u64::from(packet.header.attempt) << ATTEMPT_SHIFT;
            let id = packet.header.id;
            Header {
                id: if to_board { id.wrapping_add(other) } else { id.wrapping_sub(other) },
                ..packet.header
            }
        }),
        // The client finds the packet, so that this mistake alone is planted.
        Some(ClioPlant::NoPacketIndex) => change(bytes, |packet| match (to_board, packet.kind) {
            (true, Kind::Write) => Header { index: 0, reserved: packet.header.index, ..packet.header },
            (false, Kind::Answer) if packet.header.reserved > 0 => {
                Header { index: packet.header.reserved, reserved: 0, ..packet.header }
            }
            _ => packet.header,
        }),
        _ => {}
    }
}

fn change(bytes: &mut Vec<u8>, with: impl Fn(&Packet<'_>) -> Header) {
    let copy = bytes.clone();
    if let Ok(packet) = packet::parse(&copy) {
        packet::compose(&with(&packet), packet.data, bytes);
    }
}

/// Damages a packet's data, and recomputes its CRC. Returns whether it has any.
pub(super) fn damage_unseen(bytes: &mut Vec<u8>, bit: u64) -> bool {
    let copy = bytes.clone();
    let Some(packet) = packet::parse(&copy).ok().filter(|packet| !packet.data.is_empty()) else {
        return false;
    };
    let mut data = packet.data.to_vec();
    let bit = bit as usize % (8 * data.len());
    data[bit / 8] ^= 1 << (bit % 8);
    packet::compose(&packet.header, &data, bytes);
    true
}
