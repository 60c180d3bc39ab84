//! Cowbird's rings, which a compute node and an offload engine share (paper §4.2, Table 3, Figure 4; the layout is
//! p4rack's).
//!
//! A *set* belongs to one thread of a compute node. It is memory under one key, of words of eight bytes:
//!
//! ```text
//!   0  ┌─────────────────────────────────────────────┐
//!      │ green block: the thread's counters          │  read by the engine with one RDMA READ
//!  64  ├─────────────────────────────────────────────┤
//!      │ red block: the engine's counters            │  written by the engine with one RDMA WRITE
//! 128  ├─────────────────────────────────────────────┤
//!      │ request ring: 2^n entries of 32 bytes       │  written by the thread
//!      ├─────────────────────────────────────────────┤
//!      │ request data: the data of writes            │  written by the thread
//!      ├─────────────────────────────────────────────┤
//!      │ response data: the data of reads            │  written by the engine
//!      └─────────────────────────────────────────────┘
//! ```
//!
//! Each block is a cache line of its own, so that neither side takes the other's. Numbers are in network order: a P4
//! parser reads them as they are. Positions count entries or bytes since the set was made and never go round; their
//! place in a ring is the remainder.
//!
//! Table 3 is the entry. Here it also holds the request's id, so that an engine that takes over knows the completed
//! requests, and so that an overwritten entry is noticed. The id comes first and is written last: a reader that reads
//! upwards and finds the expected id has the whole entry, without knowing the tail.

use crate::ParseError;

/// Bytes of a word: everything in a set is aligned to it.
pub const WORD_BYTES: u64 = 8;
/// Bytes of either block, a cache line.
pub const BLOCK_BYTES: u64 = 64;
/// Where the green block begins.
pub const GREEN_AT: u64 = 0;
/// Where the red block begins.
pub const RED_AT: u64 = BLOCK_BYTES;
/// Where the request ring begins.
pub const ENTRIES_AT: u64 = 2 * BLOCK_BYTES;

/// Operation of an entry: `Entry.rw_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Kind {
    /// Read remote memory.
    Read = 1,
    /// Write remote memory.
    Write = 2,
}

impl Kind {
    /// The kind with this code. 0 is an entry that has not been filled.
    #[inline]
    pub fn of(code: u16) -> Result<Kind, ParseError> {
        match code {
            1 => Ok(Kind::Read),
            2 => Ok(Kind::Write),
            _ => Err(ParseError::Invalid { field: "rw_type", value: code.into() }),
        }
    }
}

crate::header! {
    /// Request of a compute node's thread.
    Entry = "cowbird_entry_t" {
        /// type, region and number of the request; first, as a reader that sees it also sees the rest of the entry
        request_id / "requestId": u64 = 64;
        /// 1: read, 2: write
        rw_type / "rwType": u16 = 16;
        /// remote memory that it is about
        region_id / "regionId": u16 = 16;
        /// bytes to be moved
        length / "length": u32 = 32;
        /// where from: offset in the region for a read, in the set for a write
        req_addr / "reqAddr": u64 = 64;
        /// where to: offset in the set for a read, in the region for a write
        resp_addr / "respAddr": u64 = 64;
    }
}

crate::header! {
    /// Green block: progress of the thread, for the engine.
    Green = "cowbird_green_t" {
        /// entries written; first, as a reader that sees it also sees what was written before
        request_tail / "requestTail": u64 = 64;
        /// bytes of request data written
        request_data_tail / "requestDataTail": u64 = 64;
        /// bytes of response data that reads have reserved
        response_data_reserved / "responseDataReserved": u64 = 64;
        /// bytes of response data that the thread no longer needs
        response_data_head / "responseDataHead": u64 = 64;
    }
}

crate::header! {
    /// Red block: progress of the engine, for the thread.
    Red = "cowbird_red_t" {
        /// entries whose requests are done, up to the first that is not
        request_head / "requestHead": u64 = 64;
        /// bytes of request data that are no longer needed
        request_data_head / "requestDataHead": u64 = 64;
        /// bytes of response data that have arrived
        response_data_tail / "responseDataTail": u64 = 64;
        /// writes done
        write_progress / "writeProgress": u64 = 64;
        /// reads done
        read_progress / "readProgress": u64 = 64;
        /// 0, or why the engine serves the set no more
        refusal / "refusal": u64 = 64;
    }
}

crate::header! {
    /// First field of the green block, read alone: what the engine in a switch probes.
    Tail = "cowbird_tail_t" {
        /// entries written
        request_tail / "requestTail": u64 = 64;
    }
}

crate::header! {
    /// Where an instance of the engine in a switch begins, and how far it is; behind a base transport header.
    Management = "cowbird_management_t" {
        /// number of the instance
        instance / "instance": u32 = 32;
        /// 0: its reads, 1: its writes
        side / "side": u8 = 8;
        /// 0
        reserved / "reserved": u32 = 24;
        /// requests of this kind that are done
        done / "done": u64 = 64;
        /// position in their ring behind the last of these
        end / "end": u64 = 64;
        /// entries that are done, as the thread knows
        head / "head": u64 = 64;
    }
}

/// Opcodes of the base transport header that only the engine in a switch uses, of those that the standard leaves to makers.
pub mod opcode {
    /// The switch's packet generator requests a turn.
    pub const TICK: u8 = 0xc0;
    /// The controller reads an instance's progress.
    pub const READ: u8 = 0xc1;
    /// The controller says where an instance begins.
    pub const SET: u8 = 0xc2;
    /// Answer to the controller.
    pub const REPLY: u8 = 0xc3;
}

/// Purpose of a packet of the engine in a switch. Each instance has a queue pair for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Phase {
    /// READ of the green block's first word.
    Probe = 1,
    /// READ of an entry.
    Entry = 2,
    /// READ of a write's data, from the compute node.
    Payload = 3,
    /// WRITE of a read's data, to the compute node.
    Response = 4,
    /// WRITE of the red block.
    Red = 5,
    /// READ from the pool.
    PoolRead = 6,
    /// WRITE to the pool.
    PoolWrite = 7,
}

impl Phase {
    /// All, with their names in P4.
    pub const ALL: [(Phase, &'static str); 7] = [
        (Phase::Probe, "PROBE"),
        (Phase::Entry, "ENTRY"),
        (Phase::Payload, "PAYLOAD"),
        (Phase::Response, "RESPONSE"),
        (Phase::Red, "RED"),
        (Phase::PoolRead, "POOL_READ"),
        (Phase::PoolWrite, "POOL_WRITE"),
    ];

    /// Those of the queue pairs to the compute node, in the order of their numbers.
    pub const COMPUTE: [Phase; 5] = [Phase::Probe, Phase::Entry, Phase::Payload, Phase::Response, Phase::Red];

    /// Those of the queue pairs to the pool, in the order of their numbers.
    pub const POOL: [Phase; 2] = [Phase::PoolRead, Phase::PoolWrite];
}

/// A request's id. Ids of a type count up by one in each set, so that all checks are comparisons of integers.
///
/// ```text
///  63    62        47 46                                     0
/// ┌─────┬────────────┬────────────────────────────────────────┐
/// │write│ region     │ number, from 1, modulo 2^47            │
/// └─────┴────────────┴────────────────────────────────────────┘
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RequestId(pub u64);

impl RequestId {
    const NUMBER_BITS: u32 = 47;
    const NUMBER_MASK: u64 = (1 << RequestId::NUMBER_BITS) - 1;

    /// The id of the `number`-th request of a kind.
    #[inline]
    pub const fn new(kind: Kind, region: u16, number: u64) -> RequestId {
        let write = matches!(kind, Kind::Write) as u64;
        RequestId(write << 63 | (region as u64) << RequestId::NUMBER_BITS | number & RequestId::NUMBER_MASK)
    }

    /// The requested operation.
    #[inline]
    pub const fn kind(self) -> Kind {
        if self.0 >> 63 == 1 { Kind::Write } else { Kind::Read }
    }

    /// The region.
    #[inline]
    pub const fn region(self) -> u16 {
        (self.0 >> RequestId::NUMBER_BITS) as u16
    }

    /// Number among the requests of its kind, modulo 2^47.
    #[inline]
    pub const fn number(self) -> u64 {
        self.0 & RequestId::NUMBER_MASK
    }

    /// Whether it is done when `progress` requests of its kind are. Right as long as the two are fewer than 2^46 apart.
    #[inline]
    pub const fn is_done(self, progress: u64) -> bool {
        progress.wrapping_sub(self.number()) & RequestId::NUMBER_MASK < 1 << (RequestId::NUMBER_BITS - 1)
    }
}

/// Sizes of a set's rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Entries of the request ring: a power of two.
    pub entries: u64,
    /// Bytes of request data: a power of two.
    pub request_bytes: u64,
    /// Bytes of response data: a power of two.
    pub response_bytes: u64,
}

impl Layout {
    /// Largest size of each ring.
    pub const BYTES_MAX: u64 = 1 << 32;

    /// Errors: which size is no power of two, or out of range.
    pub fn check(&self) -> Result<(), &'static str> {
        let fits =
            |size: u64, least: u64, most: u64| size.is_power_of_two() && (least..=most).contains(&size);
        match () {
            () if !fits(self.entries, 2, 1 << 20) => Err("entries has to be a power of two from 2 to 2^20"),
            () if !fits(self.request_bytes, 16, Layout::BYTES_MAX) => {
                Err("request_bytes has to be a power of two from 16 to 2^32")
            }
            () if !fits(self.response_bytes, 16, Layout::BYTES_MAX) => {
                Err("response_bytes has to be a power of two from 16 to 2^32")
            }
            () => Ok(()),
        }
    }

    /// Offset of the entry at a position, in bytes from the set's start.
    #[inline]
    pub const fn entry_at(&self, position: u64) -> u64 {
        ENTRIES_AT + (position & (self.entries - 1)) * Entry::BYTES as u64
    }

    /// Where request data begins.
    #[inline]
    pub const fn request_data_at(&self) -> u64 {
        ENTRIES_AT + self.entries * Entry::BYTES as u64
    }

    /// Where response data begins.
    #[inline]
    pub const fn response_data_at(&self) -> u64 {
        self.request_data_at() + self.request_bytes
    }

    /// Bytes of the whole set.
    #[inline]
    pub const fn bytes(&self) -> u64 {
        self.response_data_at() + self.response_bytes
    }
}

/// Place of `length` bytes in a ring of `size` bytes whose next byte is at position `tail`: the position of the first
/// one, and the tail behind them. Nothing straddles the ring's end, so that one RDMA operation moves it; the rest there
/// is skipped. `length` is at most half of the ring, so there is always a place once enough has left.
#[inline]
pub const fn place(tail: u64, length: u64, size: u64) -> (u64, u64) {
    let padded = length.next_multiple_of(WORD_BYTES);
    let left = size - (tail & (size - 1));
    let start = if padded > left { tail + left } else { tail };
    (start, start + padded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn blocks_fit_cache_lines_and_entries_stand_aligned() {
        assert!(Green::BYTES as u64 <= BLOCK_BYTES && Red::BYTES as u64 <= BLOCK_BYTES);
        assert_eq!(Entry::BYTES, 32);
        let layout = Layout { entries: 4, request_bytes: 16, response_bytes: 32 };
        assert_eq!((layout.entry_at(5), layout.request_data_at()), (ENTRIES_AT + 32, ENTRIES_AT + 128));
        assert_eq!((layout.response_data_at(), layout.bytes()), (ENTRIES_AT + 144, ENTRIES_AT + 176));
        assert_eq!(layout.check(), Ok(()));
        assert!(Layout { entries: 3, ..layout }.check().unwrap_err().contains("entries"));
        assert!(Layout { request_bytes: 8, ..layout }.check().unwrap_err().contains("request_bytes"));
        assert!(Layout { response_bytes: 0, ..layout }.check().unwrap_err().contains("response_bytes"));
    }

    proptest! {
        #[test]
        fn ids_hold_what_they_are_made_of(write: bool, region: u16, number in 0..1u64 << 47) {
            let kind = if write { Kind::Write } else { Kind::Read };
            let id = RequestId::new(kind, region, number);
            prop_assert_eq!((id.kind(), id.region(), id.number()), (kind, region, number));
        }

        /// Also when the numbers go round.
        #[test]
        fn progress_decides_what_is_done(number: u64, ahead in 0..1u64 << 20) {
            let number = number >> 1;
            let id = RequestId::new(Kind::Read, 3, number);
            prop_assert!(id.is_done(number + ahead));
            prop_assert!(!id.is_done(number.wrapping_sub(ahead + 1)));
        }

        #[test]
        fn places_are_whole_and_in_order(lengths in prop::collection::vec(1..=32u64, 1..50)) {
            let mut tail = 0;
            for length in lengths {
                let (start, end) = place(tail, length, 64);
                prop_assert!(start >= tail && end - tail < 64 + 32 && end - start >= length);
                prop_assert_eq!(start / 64, (end - 1) / 64, "straddles the end");
                prop_assert!(start.is_multiple_of(8) && end.is_multiple_of(8));
                tail = end;
            }
        }
    }
}
