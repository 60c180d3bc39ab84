//! Clio's interface for C, as `include/p4rack_clio.h` declares and explains it.
//!
//! **Safety.** A handle is *open* from the call that returns it to the one that closes it. Its caller also promises, of each asynchronous
//! operation, that the place of the result (the buffer of a read, the address of an allocation) can be written until the operation was
//! polled. Every function that waits writes such places, so this is part of “the handle is open” in their contracts.

mod accesses;
mod calls;
mod open;
mod ranges;

pub use calls::CallerChase;
pub use open::CallerOptions;

use super::status::Status;
use crate::clio::{
    ClioError, Kv, KvShape, Operation, Outcome, Patience, Refused, Session, Status as Said, VALUE_BYTES_MAX,
};
use p4rack_hosts::roce::setup::Server;
use p4rack_netdev::clock;
use p4rack_wire::Nanos;
use std::collections::HashMap;
use std::ffi::c_void;

/// Maximum operations that are under way, or have ended and were not polled.
const ENDED_MAX: usize = 4_096;
/// Time after which a call that waits looks again.
const TURN: Nanos = Nanos::from_secs(1);
/// Modes of reads and writes.
const SYNC: u32 = 0;
const ASYNC: u32 = 1;

/// A client of a process, or of one on each of several boards, and its operations.
pub struct Handle {
    /// The board with the store, the first one.
    server: Server,
    patience: Patience,
    session: Session,
    kv: Option<Kv>,
    /// Number of the next operation. 0 is none.
    next: u64,
    /// Where results go, by number of the operation under way.
    places: HashMap<u64, Place>,
    /// How operations ended that have not been polled.
    ended: HashMap<u64, Status>,
}

/// Where the result of an operation goes: the caller's memory.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// Destination of a read, and its length in bytes.
    Bytes(*mut u8, usize),
    /// The address of an allocation.
    Address(*mut u64),
}

/// An operation, and how it ended.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct CallerEvent {
    /// Its number; 0: it has ended.
    pub number: u64,
    /// How it ended, or whether it was accepted.
    pub status: Status,
}

/// Result of a blocking operation.
enum Reply {
    Done,
    Bytes(Vec<u8>),
    Address(u64),
    Held,
}

fn status(said: Said) -> Status {
    match said {
        Said::Done => Status::Ok,
        Said::NoSuchAddress | Said::Closing | Said::NotFound => Status::OutOfBounds,
        Said::NotPermitted | Said::NotOwner => Status::NotPermitted,
        Said::BadLength => Status::BadLength,
        Said::Busy | Said::NoPageYet => Status::Busy,
        Said::NoMemory | Said::NoAddressSpace => Status::Full,
        _ => Status::BadOperation,
    }
}

fn refusal(refused: Refused) -> Status {
    match refused {
        Refused::Full => Status::Full,
        Refused::BadLength => Status::BadLength,
        Refused::BadAddress | Refused::NoSuchEnd => Status::OutOfBounds,
        Refused::Unaligned => Status::BadOperation,
    }
}

impl Handle {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Waits until something has ended.
    ///
    /// # Safety
    /// The handle is open: the places of operations under way can be written.
    unsafe fn poll(&mut self, mut own: impl FnMut(u64, Outcome<'_>) -> bool) -> Result<(), Status> {
        let Handle { session, places, ended, .. } = self;
        let polled = session.poll(clock::now() + TURN, &mut |number, outcome| {
            if own(number, outcome) {
                return;
            }
            let place = places.remove(&number);
            let how = match (outcome, place) {
                (Outcome::Read(bytes), Some(Place::Bytes(into, length))) if bytes.len() == length => {
                    // SAFETY: the caller promises it; the bytes are the client library's own.
                    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), into, length) };
                    Status::Ok
                }
                (Outcome::Address(address), Some(Place::Address(into))) => {
                    // SAFETY: the caller promises it.
                    unsafe { into.write(address) };
                    Status::Ok
                }
                (Outcome::Done, _) => Status::Ok,
                (Outcome::Refused(said), _) => status(said),
                _ => Status::Unknown,
            };
            ended.insert(number, how);
        });
        polled.map_err(|_| Status::Gone)
    }

    /// Executes an operation and waits for its end. Others may be under way.
    ///
    /// # Safety
    /// As [`poll`](Self::poll).
    unsafe fn ask(&mut self, operation: Operation<'_>) -> Result<Reply, Status> {
        let number = self.number();
        self.session.submit(number, operation).map_err(refusal)?;
        // SAFETY: the caller promises it.
        unsafe { self.wait_for(number) }
    }

    /// Has each board execute later requests after earlier ones. Errors: the first board's that has one.
    ///
    /// # Safety
    /// As [`poll`](Self::poll).
    unsafe fn fence(&mut self, all: bool) -> Result<(), Status> {
        let mut first = Ok(());
        for board in 0..self.session.boards() {
            let number = self.number();
            let submitted = self.session.submit_to(board, number, Operation::Fence { all }).map_err(refusal);
            // SAFETY: the caller promises it.
            let fenced = submitted.and_then(|()| unsafe { self.wait_for(number) });
            first = first.and(fenced.map(drop));
        }
        first
    }

    /// Waits for the end of an operation.
    ///
    /// # Safety
    /// As [`poll`](Self::poll).
    unsafe fn wait_for(&mut self, number: u64) -> Result<Reply, Status> {
        let mut reply = None;
        // The client library ends every operation.
        while reply.is_none() {
            let take = |ended: u64, outcome: Outcome<'_>| {
                if ended != number {
                    return false;
                }
                reply = Some(match outcome {
                    Outcome::Done => Ok(Reply::Done),
                    Outcome::Read(bytes) | Outcome::Results(bytes) => Ok(Reply::Bytes(bytes.to_vec())),
                    Outcome::Address(address) => Ok(Reply::Address(address)),
                    Outcome::Held(_) => Ok(Reply::Held),
                    Outcome::Word(_) | Outcome::Unknown => Err(Status::Unknown),
                    Outcome::Refused(said) => Err(status(said)),
                });
                true
            };
            // SAFETY: the caller promises it.
            unsafe { self.poll(take) }?;
        }
        reply.unwrap_or(Err(Status::Unknown))
    }

    /// Submits an operation whose end is polled later.
    fn submit(&mut self, operation: Operation<'_>) -> Result<u64, Status> {
        if self.ended.len() + self.session.under_way() >= ENDED_MAX {
            return Err(Status::Full);
        }
        let number = self.number();
        self.session.submit(number, operation).map_err(refusal)?;
        Ok(number)
    }

    /// The client of the store, which is opened when it is first used.
    fn store(&mut self) -> Result<&mut Kv, Status> {
        if self.kv.is_none() {
            let shape = KvShape {
                value_bytes_max: VALUE_BYTES_MAX,
                written_bytes_max: VALUE_BYTES_MAX,
                under_way_max: 1,
            };
            let opened = Kv::open(&self.server, shape, self.patience);
            self.kv = Some(opened.map_err(|error| match error {
                // The board answers, and has no room for another client.
                ClioError::Setup(_) => Status::Full,
                _ => Status::Gone,
            })?);
        }
        self.kv.as_mut().ok_or(Status::Gone)
    }
}

fn after(done: Result<Reply, Status>) -> Status {
    done.err().unwrap_or(Status::Ok)
}

/// Bytes of the caller; `None` if they are null and there are some.
///
/// # Safety
/// They can be read for `length` bytes, and outlive the call.
unsafe fn bytes<'a>(pointer: *const c_void, length: usize) -> Option<&'a [u8]> {
    if length == 0 {
        return Some(&[]);
    }
    // SAFETY: the caller promises it, and it is no null pointer.
    (!pointer.is_null()).then(|| unsafe { std::slice::from_raw_parts(pointer.cast(), length) })
}

/// Copies bytes to the caller, as many as fit, and stores their full number.
///
/// # Safety
/// `into` can be written for `length` bytes or is null, and `count` can be written or is null.
unsafe fn give(found: &[u8], into: *mut c_void, length: usize, count: *mut usize) {
    // SAFETY: the caller promises it.
    unsafe {
        if !into.is_null() {
            std::ptr::copy_nonoverlapping(found.as_ptr(), into.cast(), found.len().min(length));
        }
        if !count.is_null() {
            count.write(found.len());
        }
    }
}

/// An operation that waits and returns nothing.
///
/// # Safety
/// The handle is open and used by no other thread, or null.
unsafe fn done(clio: *mut Handle, operation: Operation<'_>) -> Status {
    // SAFETY: the caller promises it.
    let Some(handle) = (unsafe { clio.as_mut() }) else { return Status::BadArgument };
    // SAFETY: the caller promised it of each place of an operation under way.
    after(unsafe { handle.ask(operation) })
}

/// An operation in a mode, as its caller sees it.
fn event(operation: impl FnOnce() -> Result<u64, Status>, mode: u32) -> CallerEvent {
    let done = if matches!(mode, SYNC | ASYNC) { operation() } else { Err(Status::BadArgument) };
    CallerEvent { number: done.unwrap_or(0), status: done.err().unwrap_or(Status::Ok) }
}
