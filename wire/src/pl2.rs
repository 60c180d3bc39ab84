//! PL2's own headers (paper §4; the field layout is p4rack's).
//!
//! Everything PL2 adds travels under one EtherType and starts with a version and a kind:
//!
//! ```text
//! RSV, GRT:   Ethernet | 802.1Q (PCP 7) | Control | padding to 64 bytes with FCS
//! data:       Ethernet | 802.1Q (PL2 VID + cell, DEI = unsolicited) | [Shim] | payload
//! management: Ethernet | Management, CPU port only
//! ```
//!
//! An RSV's Ethernet destination is the host the burst is for; the GRT comes back with the two
//! addresses exchanged, so its source is the destination that it grants.
//!
//! A (source, destination) pair has few reservations at a time, each in a **cell** of its own: cell
//! `2 * lane + half`. A lane holds one reservation that has not begun; its halves alternate, so that the
//! frames of the burst that has begun and the reservation that follows don't meet in one cell. An RSV
//! names its cell, data frames do by their VLAN: PL2's first VLAN plus the cell.
//!
//! Order at a register (counter mode): give back the slots that the cell still holds; reply the rest; add `demand`.
//! Every RSV that is admitted is answered, also one with demand 0.

use crate::dissector::{Carrier, Dissector, Lanes, Message, Then};
use crate::{EtherType, HeaderDesc, ParseError};

/// Version of the formats in this module.
pub const VERSION: u8 = 1;
/// 802.1Q priority of control frames: the top class.
pub const PCP_CONTROL: u8 = 7;
/// 802.1Q priority of scheduled data.
pub const PCP_SCHEDULED: u8 = 5;
/// Value of both waits in a grant that grants nothing; the sender has to request again. Either the lane's
/// reservation has not begun yet, or the switch's calendars (a variant of clock mode) have no free time for the
/// slots.
pub const NOT_NOW: u32 = u32::MAX;
/// Maximum lanes of a (source, destination) pair: a cell has to fit a byte, and each needs a VLAN.
pub const LANES_MAX: u8 = 64;
/// The cell for a half (0 or 1) of a lane: `Control.cell`.
#[inline]
pub const fn cell(lane: u8, half: u8) -> u8 {
    2 * lane + half
}

/// The VLAN of a data frame of the reservation in `cell`; `first` is PL2's first VLAN.
#[inline]
pub const fn vid_of(first: u16, cell: u8) -> u16 {
    first + cell as u16
}

/// Maximum slots that one RSV can request.
pub const DEMAND_MAX: u8 = u8::MAX;

/// Kind of a PL2 frame: the low four bits of its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Reserve slots, host to switch. With demand 0 it only gives slots back.
    Rsv = 1,
    /// Grant, switch to host.
    Grt = 2,
    /// Copy of a grant to the destination.
    Notify = 3,
    /// Shim before a data frame's payload, host to host.
    Data = 4,
    /// Read one scheduler register, controller to switch.
    MgmtRead = 8,
    /// Write one scheduler register.
    MgmtWrite = 9,
    /// Reset one scheduler register to free.
    MgmtReset = 10,
    /// Answer to any of them, switch to controller.
    MgmtReply = 11,
    /// Take back the slots of one cell: a dead source's. The reply says how much, in slots (counter) or bytes
    /// (clock).
    MgmtForget = 12,
}

impl Kind {
    /// All kinds with the names of their P4 constants.
    pub const ALL: [(Kind, &'static str); 9] = [
        (Kind::Rsv, "PL2_RSV"),
        (Kind::Grt, "PL2_GRT"),
        (Kind::Notify, "PL2_NOTIFY"),
        (Kind::Data, "PL2_DATA"),
        (Kind::MgmtRead, "PL2_MGMT_READ"),
        (Kind::MgmtWrite, "PL2_MGMT_WRITE"),
        (Kind::MgmtReset, "PL2_MGMT_RESET"),
        (Kind::MgmtReply, "PL2_MGMT_REPLY"),
        (Kind::MgmtForget, "PL2_MGMT_FORGET"),
    ];

    /// Kind of the PL2 frame whose bytes after the EtherType start with `first_byte`.
    #[inline]
    pub fn of(first_byte: u8) -> Result<Kind, ParseError> {
        if first_byte >> 4 != VERSION {
            return Err(ParseError::Invalid { field: "version", value: u64::from(first_byte >> 4) });
        }
        let code = first_byte & 0xf;
        Kind::of_code(code).ok_or(ParseError::Invalid { field: "kind", value: u64::from(code) })
    }

    /// The kind with this number.
    #[inline]
    pub fn of_code(code: u8) -> Option<Kind> {
        const KINDS: [Option<Kind>; 16] = {
            let (mut kinds, mut at) = ([None; 16], 0);
            while at < Kind::ALL.len() {
                let kind = Kind::ALL[at].0;
                kinds[kind as usize] = Some(kind);
                at += 1;
            }
            kinds
        };
        *KINDS.get(usize::from(code))?
    }
}

/// Which reservation register of a port: `Management.target`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Side {
    /// Reservations of the port as a source (`inReservation`).
    In = 0,
    /// Reservations of the port as a destination (`outReservation`).
    Out = 1,
}

crate::header! {
    /// RSV and GRT. A GRT is the RSV with kind and both replies filled in.
    Control = "pl2_control_t" {
        /// 1
        version / "version": u8 = 4;
        /// RSV, GRT or NOTIFY
        kind / "kind": u8 = 4;
        /// slots asked for, 1 to K; 0 gives back what the cell still holds (counter mode)
        demand / "demand": u8 = 8;
        /// where the switch keeps this reservation, among the pair's: 2 × lane + half
        cell / "cell": u8 = 8;
        /// 1: its burst follows immediately, unsolicited; it has its slots only if the waits are longer than t
        unsolicited / "unsolicited": u8 = 1;
        /// zero on sending, ignored on receipt
        reserved / "reserved": u8 = 7;
        /// chosen by the host, returned in the GRT
        id / "id": u32 = 32;
        /// source port's reservation before this one: slots (counter) or time units from now (clock)
        send_wait / "sendWait": u32 = 32;
        /// destination port's reservation before this one, same unit
        recv_wait / "recvWait": u32 = 32;
    }
}

crate::header! {
    /// Sequence number a (source, destination) pair, so that the receiving agent removes duplicates
    /// and counts losses. The payload's own EtherType moves here.
    Shim = "pl2_shim_t" {
        /// 1
        version / "version": u8 = 4;
        /// DATA
        kind / "kind": u8 = 4;
        /// zero on sending, ignored on receipt
        reserved / "reserved": u8 = 8;
        /// what follows
        ether_type / "etherType": EtherType = 16;
        /// counts frames of this pair, from a random start, modulo 2^32
        sequence / "sequence": u32 = 32;
    }
}

crate::header! {
    /// Reads or writes one scheduler register from the CPU port.
    Management = "pl2_management_t" {
        /// 1
        version / "version": u8 = 4;
        /// MGMT_READ, MGMT_WRITE, MGMT_RESET, MGMT_FORGET or MGMT_REPLY
        kind / "kind": u8 = 4;
        /// 0 in-reservations, 1 out-reservations
        target / "target": u8 = 8;
        /// where the port's reservations are kept; with MGMT_FORGET the source's
        index / "index": u16 = 16;
        /// chosen by the controller, returned in the reply
        token / "token": u32 = 32;
        /// slots (counter) or time units from now (clock); in a reply, what was there before
        value / "value": u32 = 32;
        /// MGMT_FORGET: where the destination's reservations are kept
        destination / "destination": u16 = 16;
        /// zero on sending, ignored on receipt
        reserved / "reserved": u16 = 16;
        /// MGMT_FORGET: number of the cell among all pairs'
        cell / "cell": u32 = 32;
    }
}

/// How Wireshark shows PL2's frames under this EtherType, and the data frames in these VLANs.
pub fn dissector(ether_type: u16, lanes: Lanes) -> Dissector {
    let message = |kind: Kind, name, header: HeaderDesc, then, summary| Message {
        kind: kind as u8,
        name,
        header,
        then,
        values: &[],
        at_most: &[],
        summary,
    };
    let control = |kind, name, summary| message(kind, name, Control::DESC, Then::Padding, summary);
    let management = |kind, name, summary| Message {
        values: &[("target", &[(Side::In as u8, "in"), (Side::Out as u8, "out")])],
        ..message(kind, name, Management::DESC, Then::Padding, summary)
    };
    const WAITS: &[&str] = &["cell", "id", "demand", "send_wait", "recv_wait"];
    const REGISTER: &[&str] = &["token", "target", "index", "value"];
    Dissector {
        name: "pl2",
        title: "PL2",
        carrier: Carrier::EtherType(ether_type),
        version: VERSION,
        messages: vec![
            control(Kind::Rsv, "RSV", &["cell", "id", "demand"]),
            control(Kind::Grt, "GRT", WAITS),
            control(Kind::Notify, "NOTIFY", WAITS),
            message(Kind::Data, "DATA", Shim::DESC, Then::Payload("ether_type"), &["sequence"]),
            management(Kind::MgmtRead, "MGMT_READ", &["token", "target", "index"]),
            management(Kind::MgmtWrite, "MGMT_WRITE", REGISTER),
            management(Kind::MgmtReset, "MGMT_RESET", &["token", "target", "index"]),
            management(Kind::MgmtReply, "MGMT_REPLY", REGISTER),
            management(Kind::MgmtForget, "MGMT_FORGET", &["token", "index", "destination", "cell"]),
        ],
        lanes: Some(lanes),
    }
}
