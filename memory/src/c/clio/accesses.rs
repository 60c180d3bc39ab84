//! Reads, writes, locks and fences, and their ends.

use super::{ASYNC, CallerEvent, Handle, Place, Reply, after, done, event, give};
use crate::c::Status;
use crate::clio::Operation;
use std::ffi::c_void;
use std::time::Duration;

/// First and longest pause between two tries to take a lock.
const PAUSES_US: [u64; 2] = [20, 1_000];

/// Reads bytes; see the header.
///
/// # Safety
/// The handle is open and used by no other thread, or null. `bytes` can be written for `length` bytes, of an asynchronous read until it
/// has been polled.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4rack_clio_rread(
    clio: *mut Handle,
    address: u64,
    bytes: *mut c_void,
    length: usize,
    mode: u32,
) -> CallerEvent {
    let read = || {
        // SAFETY: the caller promises it.
        let handle = unsafe { clio.as_mut() }.filter(|_| !bytes.is_null()).ok_or(Status::BadArgument)?;
        let operation =
            Operation::Read { address, bytes: u32::try_from(length).map_err(|_| Status::BadLength)? };
        if mode == ASYNC {
            let number = handle.submit(operation)?;
            handle.places.insert(number, Place::Bytes(bytes.cast(), length));
            return Ok(number);
        }
        // SAFETY: the caller promised it of each place of an operation under way, and promises it of this one.
        match unsafe { handle.ask(operation) }? {
            Reply::Bytes(found) if found.len() == length => {
                // SAFETY: the caller promises it.
                unsafe { give(&found, bytes, length, std::ptr::null_mut()) };
                Ok(0)
            }
            _ => Err(Status::Unknown),
        }
    };
    event(read, mode)
}

/// Writes bytes; see the header.
///
/// # Safety
/// The handle is open and used by no other thread, or null. `bytes` can be read for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4rack_clio_rwrite(
    clio: *mut Handle,
    address: u64,
    bytes: *const c_void,
    length: usize,
    mode: u32,
) -> CallerEvent {
    let write = || {
        // SAFETY: the caller promises it of both.
        let (handle, bytes) = unsafe { (clio.as_mut(), super::bytes(bytes, length)) };
        let (handle, bytes) = handle.zip(bytes).ok_or(Status::BadArgument)?;
        let operation = Operation::Write { address, bytes };
        if mode == ASYNC {
            return handle.submit(operation);
        }
        // SAFETY: the caller promised it of each place of an operation under way.
        unsafe { handle.ask(operation) }.map(|_| 0)
    };
    event(write, mode)
}

/// Waits for operations; see the header.
///
/// # Safety
/// The handle is open and used by no other thread, or null. `events` are `count`, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4rack_clio_rpoll(
    clio: *mut Handle,
    events: *mut CallerEvent,
    count: usize,
) -> Status {
    // SAFETY: the caller promises it.
    let Some(handle) = (unsafe { clio.as_mut() }) else { return Status::BadArgument };
    if count == 0 {
        return Status::Ok;
    }
    if events.is_null() {
        return Status::BadArgument;
    }
    // SAFETY: the caller promises it.
    let events = unsafe { std::slice::from_raw_parts_mut(events, count) };
    let mut first = Status::Ok;
    for event in events {
        while event.number != 0 {
            if let Some(how) = handle.ended.remove(&event.number) {
                *event = CallerEvent { number: 0, status: how };
                break;
            }
            if handle.session.under_way() == 0 {
                // It was polled before, or is another handle's.
                *event = CallerEvent { number: 0, status: Status::BadArgument };
                break;
            }
            // SAFETY: the caller promised it of each place of an operation under way.
            if let Err(gone) = unsafe { handle.poll(|_, _| false) } {
                return gone;
            }
        }
        if first == Status::Ok {
            first = event.status;
        }
    }
    first
}

/// Waits for all operations; see the header.
///
/// # Safety
/// The handle is open and used by no other thread, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4rack_clio_rrelease(clio: *mut Handle) -> Status {
    // SAFETY: the caller promises it.
    let Some(handle) = (unsafe { clio.as_mut() }) else { return Status::BadArgument };
    // SAFETY: the caller promised it of each place of an operation under way.
    let released = unsafe { handle.ask(Operation::Release) };
    // An allocation that goes on at another board is under way again, although its first board has released it.
    while released.is_ok() && handle.session.under_way() > 0 {
        // SAFETY: the same.
        if let Err(status) = unsafe { handle.poll(|_, _| false) } {
            return status;
        }
    }
    after(released)
}

/// Takes a lock; see the header.
///
/// # Safety
/// The handle is open and used by no other thread, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4rack_clio_rlock(clio: *mut Handle, lock: u64) -> Status {
    // SAFETY: the caller promises it.
    let Some(handle) = (unsafe { clio.as_mut() }) else { return Status::BadArgument };
    let [mut pause_us, longest_us] = PAUSES_US;
    loop {
        // SAFETY: the caller promised it of each place of an operation under way.
        match unsafe { handle.ask(Operation::Lock { address: lock }) } {
            Ok(Reply::Held) => std::thread::sleep(Duration::from_micros(pause_us)),
            done => return after(done),
        }
        pause_us = (2 * pause_us).min(longest_us);
    }
}

/// Releases a lock; see the header.
///
/// # Safety
/// The handle is open and used by no other thread, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4rack_clio_runlock(clio: *mut Handle, lock: u64) -> Status {
    // SAFETY: the caller promises it.
    unsafe { done(clio, Operation::Unlock { address: lock }) }
}

/// Orders requests at the board; see the header.
///
/// # Safety
/// The handle is open and used by no other thread, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4rack_clio_rfence(clio: *mut Handle) -> Status {
    // SAFETY: the caller promises it.
    unsafe { fence(clio, false) }
}

/// Orders requests of all processes at the board; see the header.
///
/// # Safety
/// The handle is open and used by no other thread, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4rack_clio_rfence_all(clio: *mut Handle) -> Status {
    // SAFETY: the caller promises it.
    unsafe { fence(clio, true) }
}

/// Orders requests at all boards.
///
/// # Safety
/// The handle is open and used by no other thread, or null.
unsafe fn fence(clio: *mut Handle, all: bool) -> Status {
    // SAFETY: the caller promises it.
    let Some(handle) = (unsafe { clio.as_mut() }) else { return Status::BadArgument };
    // SAFETY: the caller promised it of each place of an operation under way.
    unsafe { handle.fence(all) }.err().unwrap_or(Status::Ok)
}
