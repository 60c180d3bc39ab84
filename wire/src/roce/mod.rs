//! RoCEv2, RDMA over UDP: headers of the reliable connection (InfiniBand Architecture 1.4, chapter 9 and annex A17).
//!
//! ```text
//!            ┌──────────┬──────┬─────┬─────┬───────────────────────────┬─────────────────┬──────┐
//!            │ Ethernet │ IPv4 │ UDP │ BTH │ extended headers          │ payload, padded │ iCRC │
//!            └──────────┴──────┴─────┴─────┴───────────────────────────┴─────────────────┴──────┘
//! SEND                                       [ImmDt at the end]          bytes
//! RDMA WRITE                                 RETH at the start, [ImmDt]  bytes
//! RDMA READ request                          RETH                        –
//! RDMA READ response                         AETH, except in the middle  bytes
//! CmpSwap, FetchAdd                          AtomicETH                   –
//! ACK, NAK                                   AETH                        –
//! atomic ACK                                 AETH, AtomicAckETH          –
//! ```
//!
//! A message longer than the MTU is cut into FIRST, MIDDLE and LAST; all but the last carry exactly the MTU. One that
//! fits is an ONLY. [`frame`] composes and takes apart whole frames, [`icrc`] is their checksum.

pub mod frame;
pub mod icrc;

use crate::ParseError;

/// UDP port of RoCEv2.
pub const UDP_PORT: u16 = 4791;
/// Partition that every queue pair is in: `Bth.partition`.
pub const DEFAULT_PARTITION: u16 = 0xffff;
/// Queue pair numbers have 24 bits.
pub const QPN_MAX: u32 = 0x00ff_ffff;
/// Bytes of the word that atomic operations work on.
pub const WORD_BYTES: u32 = 8;

/// Kind of a packet: `Bth.opcode`, of those of the reliable connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Opcode {
    /// Start of a SEND.
    SendFirst = 0,
    /// More of it.
    SendMiddle = 1,
    /// End of it.
    SendLast = 2,
    /// End of it, with immediate data.
    SendLastImmediate = 3,
    /// A whole SEND.
    SendOnly = 4,
    /// A whole SEND, with immediate data.
    SendOnlyImmediate = 5,
    /// Start of an RDMA WRITE.
    WriteFirst = 6,
    /// More of it.
    WriteMiddle = 7,
    /// End of it.
    WriteLast = 8,
    /// End of it, with immediate data.
    WriteLastImmediate = 9,
    /// A whole RDMA WRITE.
    WriteOnly = 10,
    /// A whole RDMA WRITE, with immediate data.
    WriteOnlyImmediate = 11,
    /// Requests an RDMA READ.
    ReadRequest = 12,
    /// Start of the read data.
    ReadResponseFirst = 13,
    /// More of it.
    ReadResponseMiddle = 14,
    /// End of it.
    ReadResponseLast = 15,
    /// All of the read data.
    ReadResponseOnly = 16,
    /// ACK or NAK.
    Acknowledge = 17,
    /// Old word of an atomic operation.
    AtomicAcknowledge = 18,
    /// Compares and swaps a word.
    CompareSwap = 19,
    /// Adds to a word.
    FetchAdd = 20,
}

impl Opcode {
    /// All, by number.
    pub const ALL: [Opcode; 21] = [
        Opcode::SendFirst,
        Opcode::SendMiddle,
        Opcode::SendLast,
        Opcode::SendLastImmediate,
        Opcode::SendOnly,
        Opcode::SendOnlyImmediate,
        Opcode::WriteFirst,
        Opcode::WriteMiddle,
        Opcode::WriteLast,
        Opcode::WriteLastImmediate,
        Opcode::WriteOnly,
        Opcode::WriteOnlyImmediate,
        Opcode::ReadRequest,
        Opcode::ReadResponseFirst,
        Opcode::ReadResponseMiddle,
        Opcode::ReadResponseLast,
        Opcode::ReadResponseOnly,
        Opcode::Acknowledge,
        Opcode::AtomicAcknowledge,
        Opcode::CompareSwap,
        Opcode::FetchAdd,
    ];

    /// The opcode with this number.
    #[inline]
    pub fn of(code: u8) -> Option<Opcode> {
        Opcode::ALL.get(usize::from(code)).copied()
    }

    /// Whether a responder sends it.
    #[inline]
    pub const fn is_response(self) -> bool {
        matches!(self as u8, 13..=18)
    }

    /// Whether it may begin a message: FIRST, ONLY, and messages of one packet.
    #[inline]
    pub const fn is_first(self) -> bool {
        !matches!(self as u8, 1..=3 | 7..=9 | 14 | 15)
    }

    /// Whether it ends a message: LAST, ONLY, and messages of one packet.
    #[inline]
    pub const fn is_last(self) -> bool {
        !matches!(self as u8, 0 | 1 | 6 | 7 | 13 | 14)
    }

    /// Whether immediate data follows.
    #[inline]
    pub const fn has_immediate(self) -> bool {
        matches!(self as u8, 3 | 5 | 9 | 11)
    }

    /// Whether payload may follow.
    #[inline]
    pub const fn has_payload(self) -> bool {
        matches!(self as u8, 0..=11 | 13..=16)
    }
}

/// Bytes that one packet can carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u16)]
pub enum Mtu {
    /// 256 bytes.
    B256 = 256,
    /// 512 bytes.
    B512 = 512,
    /// 1024 bytes.
    B1024 = 1_024,
    /// 2048 bytes.
    B2048 = 2_048,
    /// 4096 bytes.
    B4096 = 4_096,
}

impl Mtu {
    /// All, the smallest first.
    pub const ALL: [Mtu; 5] = [Mtu::B256, Mtu::B512, Mtu::B1024, Mtu::B2048, Mtu::B4096];

    /// Its bytes.
    #[inline]
    pub const fn bytes(self) -> u32 {
        self as u32
    }

    /// Packets of a message. One without bytes has one, too.
    #[inline]
    pub const fn packets(self, bytes: u32) -> u32 {
        let packets = bytes.div_ceil(self.bytes());
        if packets == 0 { 1 } else { packets }
    }
}

/// Why a request was not done: the low five bits of a NAK's syndrome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Nak {
    /// Packets before it are missing.
    Sequence = 0,
    /// It makes no sense, or is longer than allowed.
    InvalidRequest = 1,
    /// The key does not permit it.
    RemoteAccess = 2,
    /// The responder failed.
    RemoteOperational = 3,
}

impl Nak {
    /// All, by number.
    pub const ALL: [Nak; 4] = [Nak::Sequence, Nak::InvalidRequest, Nak::RemoteAccess, Nak::RemoteOperational];
}

/// Meaning of an acknowledgement: `Aeth.syndrome`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syndrome {
    /// Done. Sent with the code for "no end-to-end credits"; received with any.
    Ack,
    /// Receiver not ready: no buffer was posted for a SEND. Ask again after [`rnr_wait_ns`] of this code.
    ReceiverNotReady(u8),
    /// Not done.
    Nak(Nak),
}

impl Syndrome {
    /// Its bits.
    #[inline]
    pub const fn code(self) -> u8 {
        match self {
            Syndrome::Ack => 0x1f,
            Syndrome::ReceiverNotReady(timer) => 0x20 | timer & 0x1f,
            Syndrome::Nak(nak) => 0x60 | nak as u8,
        }
    }

    /// The syndrome with these bits. Errors: reserved ones, or a NAK that reliable connections don't have.
    #[inline]
    pub fn of(code: u8) -> Result<Syndrome, ParseError> {
        match code >> 5 {
            0 => Ok(Syndrome::Ack),
            1 => Ok(Syndrome::ReceiverNotReady(code & 0x1f)),
            3 if usize::from(code & 0x1f) < Nak::ALL.len() => {
                Ok(Syndrome::Nak(Nak::ALL[usize::from(code & 0x1f)]))
            }
            _ => Err(ParseError::Invalid { field: "syndrome", value: code.into() }),
        }
    }
}

/// How long a requester waits after an RNR NAK with this code (table 46 of the standard), in nanoseconds. Codes have
/// five bits; higher ones are ignored.
pub const fn rnr_wait_ns(code: u8) -> u64 {
    const HUNDREDTHS_MS: [u64; 32] = [
        65_536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1_024, 1_536,
        2_048, 3_072, 4_096, 6_144, 8_192, 12_288, 16_384, 24_576, 32_768, 49_152,
    ];
    HUNDREDTHS_MS[(code & 0x1f) as usize] * 10_000
}

/// Packet sequence numbers: 24 bits that go round.
pub mod psn {
    /// The largest.
    pub const MAX: u32 = 0x00ff_ffff;

    /// `psn` and `count` more.
    #[inline]
    pub const fn add(psn: u32, count: u32) -> u32 {
        psn.wrapping_add(count) & MAX
    }

    /// How far `to` is ahead of `from`, going upwards: 0 to [`MAX`].
    #[inline]
    pub const fn distance(from: u32, to: u32) -> u32 {
        to.wrapping_sub(from) & MAX
    }

    /// Whether `one` is before `other`: at most half way round behind it.
    #[inline]
    pub const fn is_before(one: u32, other: u32) -> bool {
        let ahead = distance(one, other);
        ahead != 0 && ahead <= MAX / 2
    }
}

crate::header! {
    /// Base transport header: every packet has one.
    Bth = "roce_bth_t" {
        /// what the packet is
        opcode / "opcode": u8 = 8;
        /// the receiver's application asks to be woken up
        solicited / "solicited": bool = 1;
        /// path migration state; true on sending, ignored on receipt
        migrated / "migrated": bool = 1;
        /// bytes that fill the payload up to a multiple of 4
        pad / "pad": u8 = 2;
        /// version of the transport: 0
        version / "version": u8 = 4;
        /// partition key
        partition / "partition": u16 = 16;
        /// forward congestion notification
        fecn / "fecn": bool = 1;
        /// backward congestion notification
        becn / "becn": bool = 1;
        /// zero on sending, ignored on receipt, not part of the iCRC
        reserved / "reserved": u8 = 6;
        /// queue pair that the packet is for
        qpn / "destQp": u32 = 24;
        /// the requester asks for an acknowledgement
        ack_request / "ackReq": bool = 1;
        /// zero on sending, ignored on receipt
        reserved_low / "reservedLow": u8 = 7;
        /// packet sequence number
        psn / "psn": u32 = 24;
    }
}

impl Bth {
    /// A header as reliable connections send it. The padding is filled in when the frame is composed.
    #[inline]
    pub const fn new(opcode: Opcode, qpn: u32, psn: u32) -> Bth {
        Bth {
            opcode: opcode as u8,
            solicited: false,
            migrated: true,
            pad: 0,
            version: 0,
            partition: DEFAULT_PARTITION,
            fecn: false,
            becn: false,
            reserved: 0,
            qpn,
            ack_request: false,
            reserved_low: 0,
            psn,
        }
    }
}

crate::header! {
    /// RDMA extended transport header: which memory.
    Reth = "roce_reth_t" {
        /// address of the message's first byte
        address / "virtualAddress": u64 = 64;
        /// proves the right to the region
        key / "rKey": u32 = 32;
        /// bytes of the message
        bytes / "dmaLength": u32 = 32;
    }
}

crate::header! {
    /// Extended transport header of atomic operations.
    AtomicEth = "roce_atomic_eth_t" {
        /// address of the word
        address / "virtualAddress": u64 = 64;
        /// proves the right to the region
        key / "rKey": u32 = 32;
        /// CmpSwap: the new word; FetchAdd: what to add
        swap_or_add / "swapOrAdd": u64 = 64;
        /// CmpSwap: the word that is expected; FetchAdd: ignored
        compare / "compare": u64 = 64;
    }
}

crate::header! {
    /// Acknowledgement header.
    Aeth = "roce_aeth_t" {
        /// ACK, RNR NAK or NAK
        syndrome / "syndrome": u8 = 8;
        /// messages that the responder has completed, modulo 2^24
        msn / "msn": u32 = 24;
    }
}

crate::header! {
    /// Answer of atomic operations.
    AtomicAckEth = "roce_atomic_ack_eth_t" {
        /// the word before the operation
        original / "original": u64 = 64;
    }
}

crate::header! {
    /// Immediate data: 32 bits that come out with the completion of a receive.
    ImmDt = "roce_imm_dt_t" {
        /// opaque
        data / "data": u32 = 32;
    }
}
