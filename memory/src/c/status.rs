//! Statuses of operations, for all C interfaces.

use p4rack_hosts::remote::{self, RemoteError};
use std::ffi::CStr;

/// Status of an operation, or of its submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum Status {
    /// The operation completed, or was accepted.
    Ok = 0,
    /// No answer in time.
    Unknown,
    /// Some of its bytes are outside the region.
    OutOfBounds,
    /// The region has another key.
    WrongKey,
    /// The region does not permit it.
    NotPermitted,
    /// Its length is 0 or too large.
    BadLength,
    /// There is no such operation, or its word is not aligned.
    BadOperation,
    /// The memory's host is overloaded, or submitted operations are in flight.
    Busy,
    /// Too many operations are in flight.
    Full,
    /// There is no such host.
    NoSuchNode,
    /// The connection is lost.
    Gone,
    /// A null pointer, or an undefined number.
    BadArgument,
}

/// All statuses with their texts, by number.
const STATUSES: [(Status, &CStr); 12] = [
    (Status::Ok, c"done"),
    (Status::Unknown, c"no answer in time: whether it was done is unknown"),
    (Status::OutOfBounds, c"the bytes are not all in a region of the node, or nothing was found"),
    (Status::WrongKey, c"the region has another key"),
    (Status::NotPermitted, c"the region does not permit it"),
    (Status::BadLength, c"it asks for no bytes, or for more than the way takes"),
    (
        Status::BadOperation,
        c"there is no such operation or offload, it failed, or its address is no multiple of eight",
    ),
    (Status::Busy, c"the memory's host has too much to answer, or submitted operations are under way"),
    (Status::Full, c"too many operations are under way: poll first; or the memory or the store is full"),
    (Status::NoSuchNode, c"the rack has no such other host"),
    (Status::Gone, c"the way to the memory is gone: open it anew"),
    (Status::BadArgument, c"a null pointer, or a number that means nothing"),
];

impl Status {
    /// The status with this number.
    pub(super) fn of(number: u8) -> Status {
        STATUSES.get(usize::from(number)).map_or(Status::Unknown, |(status, _)| *status)
    }

    /// Its text.
    pub(super) fn text(number: u32) -> &'static CStr {
        STATUSES.get(number as usize).map_or(c"no such status", |(_, text)| text)
    }

    /// The status of a blocking operation's result.
    pub(super) fn after(done: Result<Result<(), RemoteError>, Status>) -> Status {
        match done {
            Ok(Ok(())) => Status::Ok,
            Ok(Err(RemoteError::Failed(status))) => status.into(),
            Ok(Err(_)) => Status::Gone,
            Err(status) => status,
        }
    }
}

impl From<remote::Status> for Status {
    fn from(status: remote::Status) -> Status {
        Status::of(status as u8)
    }
}
