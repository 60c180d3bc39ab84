//! Operations on remote memory, and how they fail.

use super::EdmPortError;
use p4rack_fabric::edm::host::compute::{Outcome, Refused, Request};
use p4rack_wire::edm::{Opcode, Status};
use std::sync::Arc;

/// Memory that a node offers under a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remote {
    /// Number of the node: its position among the rack's.
    pub node: u16,
    /// Key of the region.
    pub key: u32,
}

/// Why an operation failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// The NULL response: no answer in time, or a write was never granted.
    #[error("no answer in time (NULL response): whether it was done is unknown")]
    Unknown,
    /// Its bytes are not all in a region.
    #[error("out of bounds: the bytes are not all in a region of the node")]
    OutOfBounds,
    /// The region has another key.
    #[error("the region has another key")]
    WrongKey,
    /// The key does not permit it.
    #[error("the region's key does not permit it")]
    NotPermitted,
    /// It is empty, or larger than a message may be.
    #[error("it asks for no bytes, or for more than a message may have")]
    BadLength,
    /// The node knows no such operation, or its word is not aligned.
    #[error("no such operation, or its address is no multiple of eight")]
    BadOperation,
    /// The node has too many bytes to answer already.
    #[error("the node has too much to answer already: ask again later")]
    Busy,
    /// Too many operations of this client wait.
    #[error("too many operations wait: collect some first")]
    Full,
    /// There is no such node.
    #[error("the rack has no other node {0}")]
    NoSuchNode(u16),
    /// The link failed.
    #[error(transparent)]
    Port(Arc<EdmPortError>),
}

impl From<EdmPortError> for Error {
    fn from(error: EdmPortError) -> Error {
        Error::Port(Arc::new(error))
    }
}

impl From<Refused> for Error {
    fn from(refused: Refused) -> Error {
        match refused {
            Refused::BadLength => Error::BadLength,
            Refused::Full => Error::Full,
        }
    }
}

/// The result of an operation that ended.
pub fn result(outcome: Outcome) -> Result<Vec<u8>, Error> {
    Err(match outcome {
        Outcome::Answer(bytes) => return Ok(bytes),
        Outcome::Sent => return Ok(Vec::new()),
        // No NULL response reports success. Requests of no session end as unknown, and writes are refused without one.
        Outcome::Null | Outcome::Refused(Status::Done | Status::NoSession | Status::Incomplete) => {
            Error::Unknown
        }
        Outcome::Refused(Status::NoSuchAddress) => Error::OutOfBounds,
        Outcome::Refused(Status::WrongKey) => Error::WrongKey,
        Outcome::Refused(Status::NotPermitted) => Error::NotPermitted,
        Outcome::Refused(Status::BadLength) => Error::BadLength,
        Outcome::Refused(Status::BadOperation) => Error::BadOperation,
        Outcome::Refused(Status::Busy) => Error::Busy,
    })
}

/// The word that an atomic operation answered.
pub(super) fn word(bytes: &[u8]) -> Result<u64, Error> {
    // The node has checked that the answer has the requested size.
    bytes.try_into().map(u64::from_be_bytes).map_err(|_| Error::Unknown)
}

/// An operation on remote memory. Words are big-endian, at multiples of eight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Whose memory.
    pub remote: Remote,
    /// Address of the first byte.
    pub address: u64,
    /// The operation.
    pub request: Request,
}

impl Operation {
    /// Reads bytes.
    pub fn read(remote: Remote, address: u64, bytes: u32) -> Operation {
        Operation { remote, address, request: Request::Read(bytes) }
    }

    /// Writes bytes.
    pub fn write(remote: Remote, address: u64, bytes: Vec<u8>) -> Operation {
        Operation { remote, address, request: Request::Write(bytes) }
    }

    /// Puts `new` in place of `expected`, if that is the word. The answer is the old word, as for all atomic operations.
    pub fn cas(remote: Remote, address: u64, expected: u64, new: u64) -> Operation {
        Operation { remote, address, request: Request::Modify(Opcode::Cas, [expected, new]) }
    }

    /// Any other atomic operation.
    pub fn modify(remote: Remote, address: u64, opcode: Opcode, operand: u64) -> Operation {
        Operation { remote, address, request: Request::Modify(opcode, [operand, 0]) }
    }
}

/// Defines the operations by name: once for a caller that waits, once for tasks. `$run` makes a result of an operation.
macro_rules! operations {
    ($own:ty: [$($async:tt)?] ($self:ident: $receiver:ty) |$operation:ident| $run:expr) => {
        impl $own {
            /// Reads `bytes` bytes.
            pub $($async)? fn read($self: $receiver, remote: Remote, address: u64, bytes: u32) -> Result<Vec<u8>, Error> {
                let $operation = Operation::read(remote, address, bytes);
                $run
            }

            /// Writes bytes. Done means sent: see the module.
            pub $($async)? fn write($self: $receiver, remote: Remote, address: u64, bytes: Vec<u8>) -> Result<(), Error> {
                let $operation = Operation::write(remote, address, bytes);
                $run.map(drop)
            }

            /// Puts `new` in place of `expected`, if that is the word. Returns the old word.
            pub $($async)? fn cas($self: $receiver, remote: Remote, address: u64, expected: u64, new: u64) -> Result<u64, Error> {
                let $operation = Operation::cas(remote, address, expected, new);
                $run.and_then(|old| word(&old))
            }

            /// Does any other atomic operation. Returns the old word.
            pub $($async)? fn modify($self: $receiver, remote: Remote, address: u64, opcode: Opcode, operand: u64) -> Result<u64, Error> {
                let $operation = Operation::modify(remote, address, opcode, operand);
                $run.and_then(|old| word(&old))
            }

            /// Adds to a word, modulo 2^64. Returns the old word.
            pub $($async)? fn fetch_add($self: $receiver, remote: Remote, address: u64, more: u64) -> Result<u64, Error> {
                let $operation = Operation::modify(remote, address, Opcode::FetchAdd, more);
                $run.and_then(|old| word(&old))
            }

            /// Replaces a word. Returns the old word.
            pub $($async)? fn swap($self: $receiver, remote: Remote, address: u64, new: u64) -> Result<u64, Error> {
                let $operation = Operation::modify(remote, address, Opcode::Swap, new);
                $run.and_then(|old| word(&old))
            }
        }
    };
}
pub(super) use operations;
