//! How operations end, for all C interfaces.

use p4rack_hosts::remote::{self, RemoteError};
use std::ffi::CStr;

/// How an operation ended, or whether it was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum Status {
    /// It was done.
    Ok = 0,
    /// No answer in time.
    Unknown,
    /// Its bytes are not all in the region.
    OutOfBounds,
    /// The region has another key.
    WrongKey,
    /// The region does not permit it.
    NotPermitted,
    /// It asks for nothing or too much.
    BadLength,
    /// There is no such operation, or its word is not aligned.
    BadOperation,
    /// The memory's host has too much to answer, or operations that were submitted are under way.
    Busy,
    /// Too many operations are under way.
    Full,
    /// There is no such host.
    NoSuchNode,
    /// The way is gone.
    Gone,
    /// A null pointer, or a number that means nothing.
    BadArgument,
}

/// All statuses with their texts, by number.
const STATUSES: [(Status, &CStr); 12] = [
    (Status::Ok, c"done"),
    (Status::Unknown, c"no answer in time: whether it was done is unknown"),
    (Status::OutOfBounds, c"the bytes are not all in a region of the node"),
    (Status::WrongKey, c"the region has another key"),
    (Status::NotPermitted, c"the region does not permit it"),
    (Status::BadLength, c"it asks for no bytes, or for more than the way takes"),
    (Status::BadOperation, c"this way has no such operation, or its address is no multiple of eight"),
    (Status::Busy, c"the memory's host has too much to answer, or submitted operations are under way"),
    (Status::Full, c"too many operations are under way: poll first"),
    (Status::NoSuchNode, c"the rack has no such other host"),
    (Status::Gone, c"the way to the memory is gone: open it anew"),
    (Status::BadArgument, c"a null pointer, or a number that means nothing"),
];

impl Status {
    /// The status with this number.
    pub(super) fn of(number: u8) -> Status {
        STATUSES.get(usize::from(number)).map_or(Status::Unknown, |(status, _)| *status)
    }

    /// In words.
    pub(super) fn text(number: u32) -> &'static CStr {
        STATUSES.get(number as usize).map_or(c"no such status", |(_, text)| text)
    }

    /// What a blocking operation came to.
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
