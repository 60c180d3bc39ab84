//! Clio's packets on UDP (paper §3.1, §4.4 and §4.5; the field layout is p4rack's).
//!
//! ```text
//!            ┌──────────┬──────┬─────┬──────────────┬──────┐
//!            │ Ethernet │ IPv4 │ UDP │ Header, 48 B │ data │      every packet has the whole header
//!            └──────────┴──────┴─────┴──────────────┴──────┘
//!
//!   0               1               2               3               4               5               6               7
//!  ├───────┬───────┼───────────────┼───────────────┼───────────────┼───────────────────────────────┼───────────────────────────────┤
//!  │version│ kind  │     code      │     flags     │    attempt    │             index             │            packets            │  0
//!  ├───────┴───────┴───────────────┴───────────────┴───────────────┴───────────────────────────────┴───────────────────────────────┤
//!  │                                                              id                                                               │  8
//!  ├───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────┤
//!  │                                                            address                                                            │ 16
//!  ├───────────────────────────────────────────────────────────────┬───────────────────────────────────────────────────────────────┤
//!  │                              pid                              │                            length                             │ 24
//!  ├───────────────────────────────────────────────────────────────┴───────────────────────────────────────────────────────────────┤
//!  │                                                             token                                                             │ 32
//!  ├───────────────────────────────┬───────────────────────────────┬───────────────────────────────────────────────────────────────┤
//!  │             epoch             │           reserved            │                              crc                              │ 40
//!  └───────────────────────────────┴───────────────────────────────┴───────────────────────────────────────────────────────────────┘
//! ```
//!
//! There are no connections. A compute node (CN) sends requests to a memory node (MN, the *board*); the answer repeats the request's
//! `id` and `attempt`, and is its acknowledgement.
//!
//! | kind | path | code | data of the request | data of the answer |
//! |---|---|---|---|---|
//! | [`Read`](Kind::Read) | fast | 0 | none; `length` is the number of bytes to read | these bytes, in one or more packets |
//! | [`Write`](Kind::Write) | fast | 0 | the bytes | none; one answer per packet |
//! | [`Atomic`](Kind::Atomic) | fast | [`Atomic`] | operands, 8 bytes each | the old word |
//! | [`Fence`](Kind::Fence) | fast | 0 | none | none |
//! | [`Manage`](Kind::Manage) | slow | [`Manage`] | [`AllocBody`], [`FreeBody`], [`ShareBody`] | none; `address` of what was allocated |
//! | [`Call`](Kind::Call) | extend | the offload's function; `address` is the offload's number | arguments | results; `address` is where in them a packet begins |
//!
//! - **Packets are independent.** A write that is longer than a packet is split; every part has an `index`, its own `address` and
//!   `length`, and is executed when it arrives, in any order. A packet is atomic, a longer write is not. The parts of a long answer have
//!   an `index` and the `address` of their first byte.
//! - **Retries.** A retry repeats the request with the same `id` and a higher `attempt`. So the pair of both is the paper's new id of a
//!   retry, and `id` alone the id of the request that failed, in fewer bytes. Boards remember executed writes, atomic operations and
//!   calls of the slow path by (`pid`, `id`, `index`): whichever attempt comes first is executed, all others get its result, marked
//!   [`REPEATED`](flags::REPEATED). Ids are unique among all operations of a process, on all its compute nodes.
//! - **Rights.** `token` proves that the sender was given `pid` and `epoch` by the board. Boards drop packets without a valid one, and
//!   answer nothing. Answers repeat it, so only a party that has seen the request can forge them.
//! - **Integrity.** `crc` is CRC-32C (RFC 3720) over the header up to `crc`, and all data. A board answers a packet with a
//!   wrong one, but a valid token, by a [`Nack`](Kind::Nack).
//!
//! Words that atomic operations work on have 8 bytes, are aligned to 8 and little-endian, as on x86-64. So are operands
//! and old words in packets. [`address`] describes addresses and pages, [`packet`] composes packets and takes them
//! apart.

pub mod address;
pub mod packet;

pub use address::{PAGE_SIZES, PageSize};
pub use packet::{Packet, PacketError};

use crate::ParseError;
use crate::dissector::{Carrier, Dissector, Message, Then};

/// Version of the formats in this module.
pub const VERSION: u8 = 1;
/// UDP port of boards, unless configured otherwise.
pub const UDP_PORT: u16 = 1234;
/// Bytes of a word that atomic operations work on.
pub const WORD_BYTES: u32 = 8;

/// Bits of [`Header::flags`].
pub mod flags {
    /// Fences: requests of all processes wait, not only those of the sender's process.
    pub const ALL: u8 = 0x01;
    /// Answers: an earlier attempt or copy was executed; this is its result.
    pub const REPEATED: u8 = 0x02;
}

/// Kind of a packet: the low four bits of its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Reads bytes of one page.
    Read = 1,
    /// Writes bytes of one page.
    Write = 2,
    /// Modifies a word.
    Atomic = 3,
    /// Completes when all earlier requests of the process have completed; later ones wait for it.
    Fence = 4,
    /// Changes address spaces.
    Manage = 5,
    /// Calls an offload.
    Call = 6,
    /// Board to CN: the result of a request, or a part of it. `code` is a [`Status`].
    Answer = 8,
    /// Board to CN: the packet with this id came damaged.
    Nack = 9,
}

impl Kind {
    /// All, with their names in counters and captures.
    pub const ALL: [(Kind, &'static str); 8] = [
        (Kind::Read, "READ"),
        (Kind::Write, "WRITE"),
        (Kind::Atomic, "ATOMIC"),
        (Kind::Fence, "FENCE"),
        (Kind::Manage, "MANAGE"),
        (Kind::Call, "CALL"),
        (Kind::Answer, "ANSWER"),
        (Kind::Nack, "NACK"),
    ];

    /// The kind with this number.
    #[inline]
    pub fn of(code: u8) -> Option<Kind> {
        Kind::ALL.into_iter().map(|(kind, _)| kind).find(|kind| *kind as u8 == code)
    }

    /// Whether compute nodes send it.
    #[inline]
    pub const fn is_request(self) -> bool {
        (self as u8) < Kind::Answer as u8
    }

    /// Whether data follow the header, and `length` is their size. For [`Read`](Kind::Read) `length` is the answer's.
    #[inline]
    pub const fn has_data(self) -> bool {
        !matches!(self, Kind::Read | Kind::Fence | Kind::Nack)
    }
}

/// Operation of an atomic request on a word: `Header.code`. The answer is the old word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Atomic {
    /// Writes the second operand, if the word is the first.
    CompareSwap = 1,
    /// Adds the operand, modulo 2^64.
    FetchAdd = 2,
    /// Writes the operand.
    Swap = 3,
    /// Writes the sender's [`lock_word`], if the word is 0 or that lock word. The operand is the number of the thread.
    Lock = 4,
    /// Writes 0, if the word is the sender's [`lock_word`]; else the status is [`NotOwner`](Status::NotOwner). The operand is the number
    /// of the thread.
    Unlock = 5,
}

impl Atomic {
    /// All, with their names.
    pub const ALL: [(Atomic, &'static str); 5] = [
        (Atomic::CompareSwap, "compare and swap"),
        (Atomic::FetchAdd, "fetch and add"),
        (Atomic::Swap, "swap"),
        (Atomic::Lock, "lock"),
        (Atomic::Unlock, "unlock"),
    ];

    /// The operation with this number.
    #[inline]
    pub fn of(code: u8) -> Option<Atomic> {
        Atomic::ALL.into_iter().map(|(atomic, _)| atomic).find(|atomic| *atomic as u8 == code)
    }

    /// Bytes of its operands, the data of the request.
    #[inline]
    pub const fn operand_bytes(self) -> u32 {
        if matches!(self, Atomic::CompareSwap) { 2 * WORD_BYTES } else { WORD_BYTES }
    }
}

/// The word in a lock that is held: PID, thread and epoch of its owner. It is never 0, because no PID is.
#[inline]
pub const fn lock_word(pid: u32, thread: u16, epoch: u16) -> u64 {
    (pid as u64) << 32 | (thread as u64) << 16 | epoch as u64
}

/// The thread in a [`lock_word`].
#[inline]
pub const fn lock_thread(word: u64) -> u16 {
    (word >> 16) as u16
}

/// A call of the slow path: `Header.code`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Manage {
    /// Allocates a range of addresses, see [`AllocBody`].
    Alloc = 1,
    /// Frees a range, from `Header.address` on, see [`FreeBody`].
    Free = 2,
    /// Maps a range, from `Header.address` on, into another process as well, see [`ShareBody`].
    Share = 3,
}

impl Manage {
    /// All, with their names.
    pub const ALL: [(Manage, &'static str); 3] =
        [(Manage::Alloc, "alloc"), (Manage::Free, "free"), (Manage::Share, "share")];

    /// The call with this number.
    #[inline]
    pub fn of(code: u8) -> Option<Manage> {
        Manage::ALL.into_iter().map(|(manage, _)| manage).find(|manage| *manage as u8 == code)
    }
}

/// How a request ended: `Header.code` of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Status {
    /// It was executed.
    Done = 0,
    /// Not executed: an address is not allocated.
    NoSuchAddress = 1,
    /// Not executed: the range doesn't permit it, or the process to share with takes no shared pages.
    NotPermitted = 2,
    /// Not executed: no bytes, too many, not all of them in one page, or a wrong number of operands.
    BadLength = 3,
    /// Not executed: no such operation or page size, or a word or range that is not aligned.
    BadRequest = 4,
    /// Not executed: a queue of the board is full, or it remembers too many operations. Try again later.
    Busy = 5,
    /// Not executed: it would be the first access to its page, and no free page is ready yet. Try again soon.
    NoPageYet = 6,
    /// Not executed: the process is at its limit, or the one to share with, or all pages are taken.
    NoMemory = 7,
    /// Not executed: no range of addresses is left whose entries find room in the page table.
    NoAddressSpace = 8,
    /// Not executed: the range is being freed, or another call works on a part of it. Try again later.
    Closing = 9,
    /// The word is not the sender's lock word.
    NotOwner = 10,
    /// Not executed: there is no process with this PID and epoch to share with.
    NoSuchProcess = 11,
    /// Not executed: the board has no such offload or function.
    NoSuchOffload = 12,
    /// The offload found nothing.
    NotFound = 13,
    /// The offload was stopped: it used up a call's budget.
    OffloadFailed = 14,
    /// The object that the offload should create exists already.
    Exists = 15,
}

impl Status {
    /// All by number, with their names in counters.
    pub const ALL: [(Status, &'static str); 16] = [
        (Status::Done, "done"),
        (Status::NoSuchAddress, "no_such_address"),
        (Status::NotPermitted, "not_permitted"),
        (Status::BadLength, "bad_length"),
        (Status::BadRequest, "bad_request"),
        (Status::Busy, "busy"),
        (Status::NoPageYet, "no_page_yet"),
        (Status::NoMemory, "no_memory"),
        (Status::NoAddressSpace, "no_address_space"),
        (Status::Closing, "closing"),
        (Status::NotOwner, "not_owner"),
        (Status::NoSuchProcess, "no_such_process"),
        (Status::NoSuchOffload, "no_such_offload"),
        (Status::NotFound, "not_found"),
        (Status::OffloadFailed, "offload_failed"),
        (Status::Exists, "exists"),
    ];

    /// The status with this number.
    #[inline]
    pub fn of(code: u8) -> Option<Status> {
        Status::ALL.get(usize::from(code)).map(|(status, _)| *status)
    }

    /// Its name in counters.
    pub const fn name(self) -> &'static str {
        Status::ALL[self as usize].1
    }

    /// Whether a later attempt may succeed without any change by the process.
    #[inline]
    pub const fn is_temporary(self) -> bool {
        matches!(self, Status::Busy | Status::NoPageYet)
    }
}

/// Rights to a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rights {
    /// Reads.
    pub read: bool,
    /// Writes; together with reads also atomic operations.
    pub write: bool,
}

impl Rights {
    /// Reads, writes and atomic operations.
    pub const ALL: Rights = Rights { read: true, write: true };

    /// Their bits in a body: 1 for reads, 2 for writes.
    #[inline]
    pub const fn code(self) -> u8 {
        self.read as u8 | (self.write as u8) << 1
    }

    /// The rights with these bits. Errors: none of them, or unknown bits.
    #[inline]
    pub const fn of(code: u8) -> Result<Rights, ParseError> {
        match code {
            1..=3 => Ok(Rights { read: code & 1 != 0, write: code & 2 != 0 }),
            _ => Err(ParseError::Invalid { field: "rights", value: code as u64 }),
        }
    }

    /// Whether `other` has no right that these don't have.
    #[inline]
    pub const fn include(self, other: Rights) -> bool {
        self.code() & other.code() == other.code()
    }
}

crate::header! {
    /// Header of every packet.
    Header = "clio_t" {
        /// 1
        version / "version": u8 = 4;
        /// READ, WRITE, ATOMIC, FENCE, MANAGE, CALL, ANSWER or NACK
        kind / "kind": u8 = 4;
        /// ATOMIC, MANAGE: operation; CALL: function; ANSWER: status; else zero
        code / "code": u8 = 8;
        /// FENCE: 1 for all processes; ANSWER: 2 if it repeats an earlier result
        flags / "flags": u8 = 8;
        /// how often the request was sent before; ANSWER, NACK: the request's
        attempt / "attempt": u8 = 8;
        /// which packet of the request or answer
        index / "index": u16 = 16;
        /// packets of the request or answer
        packets / "packets": u16 = 16;
        /// operation of the process; ANSWER, NACK: the request's
        id / "requestId": u64 = 64;
        /// of the packet's first byte; ANSWER of alloc and share: the range's
        address / "virtualAddress": u64 = 64;
        /// process, never 0
        pid / "pid": u32 = 32;
        /// bytes of data that follow; READ: bytes to read
        length / "length": u32 = 32;
        /// proves the right to the process; ANSWER, NACK: the request's
        token / "token": u64 = 64;
        /// which of the processes that had this PID
        epoch / "epoch": u16 = 16;
        /// zero on sending, ignored on receipt
        reserved / "reserved": u16 = 16;
        /// CRC-32C of the header before this field and of the data
        crc / "crc": u32 = 32;
    }
}

crate::header! {
    /// Data of an alloc.
    AllocBody = "clio_alloc_t" {
        /// bytes to allocate, rounded up to whole pages
        bytes / "bytes": u64 = 64;
        /// class of the page size
        page_size / "pageSize": u8 = 8;
        /// 1 for reads, 2 for writes
        rights / "rights": u8 = 8;
        /// zero on sending, ignored on receipt
        reserved / "reserved": u16 = 16;
    }
}

crate::header! {
    /// Data of a free.
    FreeBody = "clio_free_t" {
        /// bytes to free, rounded up to whole pages; the range may be a part of what was allocated
        bytes / "bytes": u64 = 64;
    }
}

crate::header! {
    /// Data of a share.
    ShareBody = "clio_share_t" {
        /// bytes to share, rounded up to whole pages
        bytes / "bytes": u64 = 64;
        /// process that gets the range
        pid / "pid": u32 = 32;
        /// its epoch
        epoch / "epoch": u16 = 16;
        /// its rights: 1 for reads, 2 for writes; none that the sender doesn't have
        rights / "rights": u8 = 8;
        /// zero on sending, ignored on receipt
        reserved / "reserved": u8 = 8;
    }
}

/// Numbers and names of the values of an enum.
macro_rules! numbered {
    ($of:ty) => {{
        let mut names = [(0, ""); <$of>::ALL.len()];
        let mut nth = 0;
        while nth < names.len() {
            names[nth] = (<$of>::ALL[nth].0 as u8, <$of>::ALL[nth].1);
            nth += 1;
        }
        names
    }};
}

/// How Wireshark shows packets on this UDP port.
pub fn dissector(udp_port: u16) -> Dissector {
    const NONE: &[(&str, &[(u8, &str)])] = &[("code", &[(0, "none")])];
    let messages = Kind::ALL.map(|(kind, name)| Message {
        kind: kind as u8,
        name,
        header: Header::DESC,
        then: if kind.has_data() { Then::Bytes("length") } else { Then::Padding },
        values: match kind {
            Kind::Atomic => &[("code", ATOMICS)],
            Kind::Manage => &[("code", CALLS)],
            Kind::Answer => &[("code", STATUSES)],
            Kind::Call => &[],
            Kind::Read | Kind::Write | Kind::Fence | Kind::Nack => NONE,
        },
        at_most: &[],
        summary: &["pid", "code", "attempt", "index", "packets", "length"],
    });
    Dissector {
        name: "clio",
        title: "Clio",
        carrier: Carrier::Udp(udp_port),
        version: VERSION,
        messages: messages.into(),
        lanes: None,
    }
}

const ATOMICS: &[(u8, &str)] = &numbered!(Atomic);
const CALLS: &[(u8, &str)] = &numbered!(Manage);
const STATUSES: &[(u8, &str)] = &numbered!(Status);
