//! EDM's messages on Ethernet (paper §2.3, §3.1.4; the field layout is p4rack's).
//!
//! Everything EDM adds travels under one EtherType and starts with a version and a kind:
//!
//! ```text
//! NOTIFY, GRANT:            Ethernet | 802.1Q (PCP 7) | Control | padding
//! RREQ:                     Ethernet | 802.1Q (PCP 7) | Message
//! RMWREQ:                   Ethernet | 802.1Q (PCP 7) | Message | operands
//! WREQ, RRES (one chunk):   Ethernet | 802.1Q (PCP 5) | Message | bytes
//! management:               Ethernet | Management, CPU port only
//! ```
//!
//! A read or atomic request is the demand for its answer, and on its way to the memory node the grant for its first bytes. The
//! size in a header counts, not the frame's: short frames are padded.
//!
//! Grants of a switch that keeps clocks say how long to wait before the granted bytes are sent, counted from the grant's
//! arrival. The first one covers a window of chunks; each frame of a message that passes the switch brings about the grant of
//! the chunk behind its window. All frames of a message but its last carry a full chunk.
//!
//! The low bits of an id are the message's **lane**: a pair has few, for writes and for requests each, and a lane has one
//! message at a time.
//!
//! Messages belong to a **session** of their pair, in which ids count from 0. A compute node asks for one by an RREQ with code
//! [`OPEN`] before all else; the memory node chooses it, and drops messages of other sessions. So neither a compute node nor a
//! memory node that starts again takes messages for its predecessor.

use crate::dissector::{Carrier, Dissector, Message as Frame, Then};
use crate::ethernet::{Ethernet, Vlan, overhead};
use crate::{EtherType, MacAddr, ParseError};

/// Version of the formats in this module.
pub const VERSION: u8 = 1;
/// 802.1Q priority of notifications, grants and requests: the top class.
pub const PCP_CONTROL: u8 = 7;
/// 802.1Q priority of data.
pub const PCP_DATA: u8 = 5;
/// The wait in a request whose answer is not granted with it: grants of the whole answer follow.
pub const GRANTED_LATER: u32 = u32::MAX;
/// Bytes of a word that atomic operations work on.
pub const WORD_BYTES: u32 = 8;
/// `Message.code` of an RREQ that opens a session instead of reading: its address is the start of the compute node that asks, a
/// number that no other start has; its own session, `start`, is 0.
pub const OPEN: u8 = 1;
/// Bytes of the answer to it: the number of that start, then the session, as big-endian words of eight bytes.
pub const SESSION_BYTES: u32 = 16;

/// Kind of an EDM message: the low four bits of its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Demand for a write, host to switch.
    Notify = 1,
    /// Permission to send a chunk, switch to host.
    Grant = 2,
    /// Read request.
    Rreq = 3,
    /// Chunk of a write.
    Wreq = 4,
    /// Atomic read, modify, write of a word.
    Rmwreq = 5,
    /// Chunk of an answer. One of no bytes is the NULL response.
    Rres = 6,
    /// Read one scheduler register, controller to switch.
    MgmtRead = 8,
    /// Write one scheduler register.
    MgmtWrite = 9,
    /// Reset one scheduler register: the link is free, the lane holds nothing.
    MgmtReset = 10,
    /// Answer to any of them, switch to controller.
    MgmtReply = 11,
}

impl Kind {
    /// All kinds with the names of their P4 constants.
    pub const ALL: [(Kind, &'static str); 10] = [
        (Kind::Notify, "EDM_NOTIFY"),
        (Kind::Grant, "EDM_GRANT"),
        (Kind::Rreq, "EDM_RREQ"),
        (Kind::Wreq, "EDM_WREQ"),
        (Kind::Rmwreq, "EDM_RMWREQ"),
        (Kind::Rres, "EDM_RRES"),
        (Kind::MgmtRead, "EDM_MGMT_READ"),
        (Kind::MgmtWrite, "EDM_MGMT_WRITE"),
        (Kind::MgmtReset, "EDM_MGMT_RESET"),
        (Kind::MgmtReply, "EDM_MGMT_REPLY"),
    ];

    /// Kind of the message whose bytes after the EtherType start with `first_byte`.
    #[inline]
    pub fn of(first_byte: u8) -> Result<Kind, ParseError> {
        if first_byte >> 4 != VERSION {
            return Err(ParseError::Invalid { field: "version", value: u64::from(first_byte >> 4) });
        }
        let code = first_byte & 0xf;
        let kind = Kind::ALL.iter().find(|(kind, _)| *kind as u8 == code);
        kind.map(|(kind, _)| *kind).ok_or(ParseError::Invalid { field: "kind", value: u64::from(code) })
    }
}

/// Writes a message as a frame over `out`: its tag has the priority of its kind. Padded, without FCS.
pub fn emit_frame(dst: MacAddr, src: MacAddr, ether_type: EtherType, message: &[u8], out: &mut Vec<u8>) {
    let is_data =
        message.first().is_some_and(|first| matches!(Kind::of(*first), Ok(Kind::Wreq | Kind::Rres)));
    let pcp = if is_data { PCP_DATA } else { PCP_CONTROL };
    out.clear();
    out.resize(Ethernet::BYTES + Vlan::BYTES, 0);
    Ethernet { dst, src, ether_type: EtherType::VLAN }.emit(out);
    Vlan { pcp, dei: false, vid: 0, ether_type }.emit(&mut out[Ethernet::BYTES..]);
    out.extend_from_slice(message);
    let length = out.len().max(overhead::MIN_FRAME as usize);
    out.resize(length, 0);
}

/// The Ethernet header of a frame of this EtherType, and the bytes behind the type, with a tag or without: a byte or
/// more. `None` if it is another frame, or too short.
pub fn parse_frame(frame: &[u8], ether_type: EtherType) -> Option<(Ethernet, &[u8])> {
    let ethernet = Ethernet::parse(frame).ok()?;
    let rest = &frame[Ethernet::BYTES..];
    if ethernet.ether_type == ether_type {
        return (!rest.is_empty()).then_some((ethernet, rest));
    }
    let tag = Vlan::parse(rest).ok().filter(|tag| tag.ether_type == ether_type);
    let message = &rest[Vlan::BYTES.min(rest.len())..];
    tag.filter(|_| ethernet.ether_type == EtherType::VLAN && !message.is_empty()).map(|_| (ethernet, message))
}

/// Operation of an RMWREQ on a word, as 64-bit big-endian number without sign: `Message.code`. The answer is the old
/// word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Opcode {
    /// The second operand, if it was the first.
    Cas = 1,
    /// The sum, modulo 2^64.
    FetchAdd = 2,
    /// The operand.
    Swap = 3,
    /// Bits of both.
    And = 4,
    /// Bits of either.
    Or = 5,
    /// Bits of one.
    Xor = 6,
    /// The smaller.
    Min = 7,
    /// The larger.
    Max = 8,
}

impl Opcode {
    /// All.
    pub const ALL: [Opcode; 8] = [
        Opcode::Cas,
        Opcode::FetchAdd,
        Opcode::Swap,
        Opcode::And,
        Opcode::Or,
        Opcode::Xor,
        Opcode::Min,
        Opcode::Max,
    ];

    /// The operation with this number.
    pub fn of(code: u8) -> Option<Opcode> {
        Opcode::ALL.into_iter().find(|opcode| *opcode as u8 == code)
    }

    /// Operands that follow the header, of eight bytes each.
    pub const fn operands(self) -> usize {
        if matches!(self, Opcode::Cas) { 2 } else { 1 }
    }

    /// The new word. `operands` are as many as [`operands`](Self::operands); more are ignored.
    pub const fn apply(self, old: u64, operands: [u64; 2]) -> u64 {
        let one = operands[0];
        match self {
            Opcode::Cas if old == one => operands[1],
            Opcode::Cas => old,
            Opcode::FetchAdd => old.wrapping_add(one),
            Opcode::Swap => one,
            Opcode::And => old & one,
            Opcode::Or => old | one,
            Opcode::Xor => old ^ one,
            Opcode::Min if old < one => old,
            Opcode::Max if old > one => old,
            Opcode::Min | Opcode::Max => one,
        }
    }
}

/// How a request went: `Message.code` of an RRES.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Status {
    /// It was done.
    Done = 0,
    /// Its bytes are not all in a region.
    NoSuchAddress = 1,
    /// The region has another key.
    WrongKey = 2,
    /// The key does not permit it.
    NotPermitted = 3,
    /// It requests no bytes, or more than a message may have.
    BadLength = 4,
    /// No such operation, or its word is not aligned.
    BadOperation = 5,
    /// The node has too many bytes to answer already.
    Busy = 6,
    /// The message is of no session that the node knows: one of the two has started again.
    NoSession = 7,
    /// Bytes of a write were missing for too long.
    Incomplete = 8,
}

impl Status {
    /// All.
    pub const ALL: [Status; 9] = [
        Status::Done,
        Status::NoSuchAddress,
        Status::WrongKey,
        Status::NotPermitted,
        Status::BadLength,
        Status::BadOperation,
        Status::Busy,
        Status::NoSession,
        Status::Incomplete,
    ];

    /// Its name in counters.
    pub const fn name(self) -> &'static str {
        match self {
            Status::Done => "done",
            Status::NoSuchAddress => "no_such_address",
            Status::WrongKey => "wrong_key",
            Status::NotPermitted => "not_permitted",
            Status::BadLength => "bad_length",
            Status::BadOperation => "bad_operation",
            Status::Busy => "busy",
            Status::NoSession => "no_session",
            Status::Incomplete => "incomplete",
        }
    }

    /// The status with this number.
    pub fn of(code: u8) -> Option<Status> {
        Status::ALL.into_iter().find(|status| *status as u8 == code)
    }
}

/// Which registers of the switch: `Management.target`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Target {
    /// When a link is free as a source, by port.
    Source = 0,
    /// When it is free as a destination, by port.
    Destination = 1,
    /// Bytes that are granted and not sent, by lane.
    Rights = 2,
}

crate::header! {
    /// NOTIFY and GRANT.
    Control = "edm_control_t" {
        /// 1
        version / "version": u8 = 4;
        /// NOTIFY or GRANT
        kind / "kind": u8 = 4;
        /// GRANT: 1 for a chunk of an answer, 0 for one of a write
        answer / "answer": u8 = 8;
        /// message of this pair, chosen by the host that asks
        id / "id": u16 = 16;
        /// NOTIFY: zero; GRANT: where in the message the chunk starts
        offset / "offset": u32 = 32;
        /// NOTIFY: bytes of the message; GRANT: bytes that may be sent
        bytes / "bytes": u32 = 32;
        /// NOTIFY: zero; GRANT: time units of the switch from its arrival until they may leave
        wait / "wait": u32 = 32;
    }
}

crate::header! {
    /// RREQ, WREQ, RMWREQ and RRES.
    Message = "edm_message_t" {
        /// 1
        version / "version": u8 = 4;
        /// RREQ, WREQ, RMWREQ or RRES
        kind / "kind": u8 = 4;
        /// RREQ: 1 to open a session; RMWREQ: operation; RRES: status; else zero
        code / "code": u8 = 8;
        /// message of this pair, chosen by the host that asks
        id / "id": u16 = 16;
        /// proves the right to the region; RRES: writes of the session that were refused
        key / "key": u32 = 32;
        /// address of the message's first byte; RRES: status of the last write that was refused
        address / "address": u64 = 64;
        /// bytes of the message: read, written or answered
        total / "total": u32 = 32;
        /// where in the message this chunk starts; requests: zero, set by the switch to the wait (all ones: later)
        offset / "offset": u32 = 32;
        /// bytes of this chunk, which follow; RREQ: zero, set by the switch to the bytes it grants (zero: a window)
        bytes / "bytes": u16 = 16;
        /// session of both nodes, chosen by the memory node: ids count from 0 in each; RRES: the request's
        start / "start": u16 = 16;
    }
}

crate::header! {
    /// Reads or writes one scheduler register from the CPU port.
    Management = "edm_management_t" {
        /// 1
        version / "version": u8 = 4;
        /// MGMT_READ, MGMT_WRITE, MGMT_RESET or MGMT_REPLY
        kind / "kind": u8 = 4;
        /// 0 source, 1 destination, 2 rights
        target / "target": u8 = 8;
        /// chosen by the controller, returned in the reply
        token / "token": u16 = 16;
        /// the port, or the number of the lane among all pairs'
        index / "index": u32 = 32;
        /// time units from now, or bytes; in a reply, what was there before
        value / "value": u32 = 32;
    }
}

/// How Wireshark shows EDM's frames under this EtherType.
pub fn dissector(ether_type: u16) -> Dissector {
    const PARTS: &[(&[&str], &str)] = &[(&["offset", "bytes"], "total")];
    let control = |kind: Kind, name| Frame {
        kind: kind as u8,
        name,
        header: Control::DESC,
        then: Then::Padding,
        values: &[("answer", &[(0, "of a write"), (1, "of an answer")])],
        at_most: &[],
        summary: &["id", "answer", "offset", "bytes", "wait"],
    };
    let message = |kind: Kind, name, then| Frame {
        kind: kind as u8,
        name,
        header: Message::DESC,
        then,
        values: &[("code", &[(0, "none")])],
        at_most: &[],
        summary: &["id", "offset", "bytes", "total"],
    };
    let management = |kind: Kind, name| Frame {
        kind: kind as u8,
        name,
        header: Management::DESC,
        then: Then::Padding,
        values: &[("target", TARGETS)],
        at_most: &[],
        summary: &["token", "target", "index", "value"],
    };
    let data = Then::Bytes("bytes");
    Dissector {
        name: "edm",
        title: "EDM",
        carrier: Carrier::EtherType(ether_type),
        version: VERSION,
        messages: vec![
            control(Kind::Notify, "NOTIFY"),
            control(Kind::Grant, "GRANT"),
            Frame { values: &[("code", READS)], ..message(Kind::Rreq, "RREQ", Then::Padding) },
            Frame { at_most: PARTS, ..message(Kind::Wreq, "WREQ", data) },
            Frame { values: &[("code", OPCODES)], ..message(Kind::Rmwreq, "RMWREQ", data) },
            Frame { at_most: PARTS, values: &[("code", STATUSES)], ..message(Kind::Rres, "RRES", data) },
            management(Kind::MgmtRead, "MGMT_READ"),
            management(Kind::MgmtWrite, "MGMT_WRITE"),
            management(Kind::MgmtReset, "MGMT_RESET"),
            management(Kind::MgmtReply, "MGMT_REPLY"),
        ],
        lanes: None,
    }
}

const READS: &[(u8, &str)] = &[(0, "read"), (OPEN, "open a session")];

const OPCODES: &[(u8, &str)] = &[
    (Opcode::Cas as u8, "compare and swap"),
    (Opcode::FetchAdd as u8, "fetch and add"),
    (Opcode::Swap as u8, "swap"),
    (Opcode::And as u8, "and"),
    (Opcode::Or as u8, "or"),
    (Opcode::Xor as u8, "xor"),
    (Opcode::Min as u8, "min"),
    (Opcode::Max as u8, "max"),
];

const STATUSES: &[(u8, &str)] = &[
    (Status::Done as u8, "done"),
    (Status::NoSuchAddress as u8, "no such address"),
    (Status::WrongKey as u8, "wrong key"),
    (Status::NotPermitted as u8, "not permitted"),
    (Status::BadLength as u8, "bad length"),
    (Status::BadOperation as u8, "bad operation"),
    (Status::Busy as u8, "busy"),
    (Status::NoSession as u8, "no session"),
    (Status::Incomplete as u8, "incomplete"),
];

const TARGETS: &[(u8, &str)] = &[
    (Target::Source as u8, "source"),
    (Target::Destination as u8, "destination"),
    (Target::Rights as u8, "rights"),
];
