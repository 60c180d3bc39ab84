//! Operations on remote memory, their outcomes, and the abilities of a way.

use p4rack_wire::edm::Opcode;
use std::fmt;

/// A piece of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Offset of the first byte.
    pub at: u64,
    /// Number of bytes.
    pub bytes: u32,
}

/// An operation on a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation<'a> {
    /// Reads bytes.
    Read {
        /// Offset of the first byte.
        at: u64,
        /// Number of bytes.
        bytes: u32,
    },
    /// Writes bytes.
    Write {
        /// Offset of the first byte.
        at: u64,
        /// The bytes.
        bytes: &'a [u8],
    },
    /// Reads pieces. The outcome has the bytes of all, in the order of the pieces.
    Gather {
        /// The pieces.
        pieces: &'a [Piece],
    },
    /// Writes pieces. Ends when all writes have ended.
    Scatter {
        /// The pieces.
        pieces: &'a [Piece],
        /// The bytes of all, in the order of the pieces.
        bytes: &'a [u8],
    },
    /// Changes a word of eight bytes in one step.
    Modify {
        /// Offset of the word, a multiple of 8.
        at: u64,
        /// The operation.
        opcode: Opcode,
        /// Operands; those that the opcode does not have are ignored.
        operands: [u64; 2],
    },
}

impl Operation<'_> {
    /// Replaces a word by `new` if it is `expected`.
    pub const fn cas(at: u64, expected: u64, new: u64) -> Operation<'static> {
        Operation::Modify { at, opcode: Opcode::Cas, operands: [expected, new] }
    }
}

/// Outcome of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome<'a> {
    /// The bytes of a read or gather, valid only during this call.
    Read(&'a [u8]),
    /// The write, or each piece of a scatter, has ended; [`Abilities::writes`] defines what that means.
    Written,
    /// The word before the atomic operation.
    Word(u64),
    /// It was refused, or its result is unknown.
    Failed(Status),
}

/// Why an operation failed. The numbers are those of the C interface, where 0 is success.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum Status {
    /// No answer: the operation may have been executed. See the [module](super).
    Unknown = 1,
    /// Some of its bytes are outside the region.
    OutOfBounds = 2,
    /// The region has another key.
    WrongKey = 3,
    /// The region does not permit it.
    NotPermitted = 4,
    /// Its length is 0, or over the way's maximum.
    BadLength = 5,
    /// The way has no such operation, or its word is not at a multiple of eight.
    BadOperation = 6,
    /// The memory's host is overloaded: retry later.
    Busy = 7,
    /// Too many operations are in flight: poll first.
    Full = 8,
    /// The rack has no such host.
    NoSuchNode = 9,
    /// The connection is lost: open the way again.
    Gone = 10,
}

impl Status {
    /// All statuses.
    pub const ALL: [Status; 10] = [
        Status::Unknown,
        Status::OutOfBounds,
        Status::WrongKey,
        Status::NotPermitted,
        Status::BadLength,
        Status::BadOperation,
        Status::Busy,
        Status::Full,
        Status::NoSuchNode,
        Status::Gone,
    ];

    /// The status with this number.
    pub fn of(number: u8) -> Option<Status> {
        Status::ALL.into_iter().find(|status| *status as i32 == i32::from(number))
    }

    /// Whether the same operation may succeed later.
    pub const fn is_passing(self) -> bool {
        matches!(self, Status::Unknown | Status::Busy | Status::Full)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Status::Unknown => "no answer in time: whether it was done is unknown",
            Status::OutOfBounds => "out of bounds: the bytes are not all in the region",
            Status::WrongKey => "the region has another key",
            Status::NotPermitted => "the region does not permit it",
            Status::BadLength => "it has no bytes, or more than this way takes",
            Status::BadOperation => "this way has no such operation, or its address is no multiple of eight",
            Status::Busy => "the memory's host has too much to answer already: ask again later",
            Status::Full => "too many operations are under way: collect some first",
            Status::NoSuchNode => "the rack has no such other host",
            Status::Gone => "the way to the memory is gone: open it anew",
        })
    }
}

impl std::error::Error for Status {}

/// Meaning of the end of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// It is in the memory.
    There,
    /// It has left. A program that needs more reads it back, or wraps the way in [`Certain`](super::Certain).
    Sent,
}

/// Operations that take effect in the order of submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// All.
    Program,
    /// Reads among each other, writes among each other, and reads after writes before them; a write may pass a read.
    ReadsAfterWrites,
    /// Writes of the same bytes.
    SameBytes,
    /// Operations on the same bytes, unless both read: a read after a write, a write after a read or a write.
    Dependent,
    /// None: wait for the end of an operation that a later one must not pass.
    None,
}

/// Byte order of words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordOrder {
    /// The highest byte first.
    BigEndian,
    /// The lowest byte first.
    LittleEndian,
}

impl WordOrder {
    /// A word's bytes.
    pub const fn bytes(self, word: u64) -> [u8; 8] {
        match self {
            WordOrder::BigEndian => word.to_be_bytes(),
            WordOrder::LittleEndian => word.to_le_bytes(),
        }
    }

    /// The word of these bytes.
    pub const fn word(self, bytes: [u8; 8]) -> u64 {
        match self {
            WordOrder::BigEndian => u64::from_be_bytes(bytes),
            WordOrder::LittleEndian => u64::from_le_bytes(bytes),
        }
    }
}

/// Abilities of a way with its region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Abilities {
    /// Bytes of the region.
    pub region_bytes: u64,
    /// Maximum bytes of a read.
    pub read_bytes_max: u32,
    /// Maximum bytes of a write.
    pub write_bytes_max: u32,
    /// Bytes of a write that become visible in one step, if they begin where a write begins.
    pub whole_bytes: u32,
    /// Bytes between the edges of the region that divide a write: it becomes visible in one step before and one behind such an edge.
    /// [`u64::MAX`]: there are none.
    pub edge_bytes: u64,
    /// Maximum pieces of a gather or scatter; 0: the way has neither, and needs [`Pieces`](super::Pieces) around it.
    pub pieces_max: usize,
    /// Maximum operations in flight.
    pub under_way_max: usize,
    /// Supported atomic operations.
    pub atomics: &'static [Opcode],
    /// Byte order of the words of atomic operations.
    pub words: WordOrder,
    /// Meaning of the end of a write.
    pub writes: Written,
    /// Order in which operations take effect.
    pub order: Order,
}

impl Abilities {
    /// Checks that this way takes an operation: a supported kind, a valid length, bytes within the region.
    pub fn check(&self, operation: &Operation<'_>) -> Result<(), Status> {
        match *operation {
            Operation::Read { at, bytes } => self.check_bytes(at, bytes.into(), self.read_bytes_max),
            Operation::Write { at, bytes } => self.check_bytes(at, bytes.len() as u64, self.write_bytes_max),
            Operation::Gather { pieces } => self.check_pieces(pieces, self.read_bytes_max).map(drop),
            Operation::Scatter { pieces, bytes } => {
                match self.check_pieces(pieces, self.write_bytes_max)? == bytes.len() as u64 {
                    true => Ok(()),
                    false => Err(Status::BadLength),
                }
            }
            Operation::Modify { at, opcode, .. } => {
                if !at.is_multiple_of(8) || !self.atomics.contains(&opcode) {
                    return Err(Status::BadOperation);
                }
                self.check_bytes(at, 8, 8)
            }
        }
    }

    fn check_bytes(&self, at: u64, bytes: u64, most: u32) -> Result<(), Status> {
        if bytes == 0 || bytes > most.into() {
            return Err(Status::BadLength);
        }
        match at.checked_add(bytes) {
            Some(end) if end <= self.region_bytes => Ok(()),
            _ => Err(Status::OutOfBounds),
        }
    }

    /// Checks each piece, and returns the bytes of all.
    fn check_pieces(&self, pieces: &[Piece], most: u32) -> Result<u64, Status> {
        if self.pieces_max == 0 {
            return Err(Status::BadOperation);
        }
        if pieces.is_empty() || pieces.len() > self.pieces_max {
            return Err(Status::BadLength);
        }
        let checked = pieces.iter().map(|piece| {
            self.check_bytes(piece.at, piece.bytes.into(), most).map(|()| u64::from(piece.bytes))
        });
        checked.sum()
    }
}

/// Maximum load of a program, and the bytes that it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Bytes of the region; 0: all that the other end offers.
    pub region_bytes: u64,
    /// Reads in flight.
    pub reads: UnderWay,
    /// Writes in flight.
    pub writes: UnderWay,
}

/// Maximum operations of a kind in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnderWay {
    /// Number of operations.
    pub count: u64,
    /// Bytes of all together.
    pub bytes: u64,
    /// Bytes of the longest operation.
    pub longest_bytes: u32,
}

impl UnderWay {
    /// `count` operations of the same length.
    pub const fn of(count: u64, bytes: u32) -> UnderWay {
        UnderWay { count, bytes: count * bytes as u64, longest_bytes: bytes }
    }

    /// Bytes of a ring with room for all: data that does not fit before its end starts at its beginning, and a request takes at
    /// most half of it.
    pub fn ring_bytes(&self) -> u64 {
        let longest = u64::from(self.longest_bytes);
        (self.bytes + longest).max(2 * longest).max(1_024).next_power_of_two()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_has_room_for_all_that_is_under_way() {
        for (under_way, bytes) in [
            (UnderWay::default(), 1_024),
            (UnderWay::of(100, 8), 1_024),
            (UnderWay::of(1, 4_096), 8_192),
            (UnderWay::of(100, 512), 65_536),
            (UnderWay { count: 101, bytes: 100 * 256 + 8_192, longest_bytes: 8_192 }, 65_536),
        ] {
            assert_eq!(under_way.ring_bytes(), bytes, "{under_way:?}");
        }
    }

    const ONE: Piece = Piece { at: 0, bytes: 8 };

    #[test]
    fn what_a_way_does_not_take_is_refused_for_a_reason() {
        let abilities = Abilities {
            region_bytes: 64,
            read_bytes_max: 16,
            write_bytes_max: 8,
            whole_bytes: 8,
            edge_bytes: u64::MAX,
            pieces_max: 2,
            under_way_max: 1,
            atomics: &[Opcode::Cas],
            words: WordOrder::BigEndian,
            writes: Written::There,
            order: Order::Program,
        };
        let add = Operation::Modify { at: 0, opcode: Opcode::FetchAdd, operands: [1, 0] };
        for (operation, expected) in [
            (Operation::Read { at: 48, bytes: 16 }, Ok(())),
            (Operation::Read { at: 49, bytes: 16 }, Err(Status::OutOfBounds)),
            (Operation::Read { at: u64::MAX, bytes: 16 }, Err(Status::OutOfBounds)),
            (Operation::Read { at: 0, bytes: 0 }, Err(Status::BadLength)),
            (Operation::Read { at: 0, bytes: 17 }, Err(Status::BadLength)),
            (Operation::Write { at: 0, bytes: &[0; 9] }, Err(Status::BadLength)),
            (Operation::cas(56, 0, 1), Ok(())),
            (Operation::cas(60, 0, 1), Err(Status::BadOperation)),
            (Operation::cas(64, 0, 1), Err(Status::OutOfBounds)),
            (add, Err(Status::BadOperation)),
            (Operation::Gather { pieces: &[ONE, ONE] }, Ok(())),
            (Operation::Gather { pieces: &[] }, Err(Status::BadLength)),
            (Operation::Gather { pieces: &[ONE; 3] }, Err(Status::BadLength)),
            (Operation::Gather { pieces: &[ONE, Piece { at: 60, bytes: 5 }] }, Err(Status::OutOfBounds)),
            (Operation::Gather { pieces: &[ONE, Piece { at: 60, bytes: 0 }] }, Err(Status::BadLength)),
            (Operation::Scatter { pieces: &[ONE, ONE], bytes: &[0; 16] }, Ok(())),
            (Operation::Scatter { pieces: &[ONE, ONE], bytes: &[0; 15] }, Err(Status::BadLength)),
            (
                Operation::Scatter { pieces: &[Piece { at: 0, bytes: 9 }], bytes: &[0; 9] },
                Err(Status::BadLength),
            ),
        ] {
            assert_eq!(abilities.check(&operation), expected, "{operation:?}");
        }
        let without = Abilities { pieces_max: 0, ..abilities };
        assert_eq!(without.check(&Operation::Gather { pieces: &[ONE] }), Err(Status::BadOperation));
    }
}
