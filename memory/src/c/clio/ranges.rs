//! Allocating, freeing and sharing ranges.

use super::{ASYNC, CallerEvent, Handle, Place, Reply, done, event};
use crate::c::Status;
use crate::clio::{Operation, Rights};

/// Gives the caller a status.
///
/// # Safety
/// `status` can be written or is null.
unsafe fn give(how: Option<Status>, status: *mut Status) {
    if !status.is_null() {
        // SAFETY: the caller promises it.
        unsafe { status.write(how.unwrap_or(Status::Ok)) };
    }
}

/// Rights by their bits.
fn rights(bits: u32) -> Result<Rights, Status> {
    u8::try_from(bits).ok().and_then(|bits| Rights::of(bits).ok()).ok_or(Status::BadArgument)
}

/// An operation that waits and returns an address.
///
/// # Safety
/// The handle is open and used by no other thread.
unsafe fn address_of(handle: &mut Handle, operation: Operation<'_>) -> Result<u64, Status> {
    // SAFETY: the caller promised it of each place of an operation under way.
    match unsafe { handle.ask(operation) }? {
        Reply::Address(address) => Ok(address),
        _ => Err(Status::Unknown),
    }
}

/// The process of a handle; see the header.
///
/// # Safety
/// The handle is open and used by no other thread, or null. `epoch` can be written or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4rack_clio_process(clio: *const Handle, epoch: *mut u16) -> u32 {
    // SAFETY: the caller promises it.
    unsafe { p4rack_clio_process_at(clio, 0, epoch) }
}

/// The process of a handle on a board; see the header.
///
/// # Safety
/// As [`p4rack_clio_process`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4rack_clio_process_at(clio: *const Handle, board: u16, epoch: *mut u16) -> u32 {
    // SAFETY: the caller promises it.
    let Some(handle) = (unsafe { clio.as_ref() }) else { return 0 };
    let Some(credentials) = handle.session.credentials_at(board) else { return 0 };
    if !epoch.is_null() {
        // SAFETY: the caller promises it.
        unsafe { epoch.write(credentials.epoch) };
    }
    credentials.pid
}

/// The range that the process has from its beginning; see the header.
///
/// # Safety
/// The handle is open and used by no other thread, or null. `bytes` can be written or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4rack_clio_start(clio: *const Handle, bytes: *mut u64) -> u64 {
    // SAFETY: the caller promises it.
    unsafe { p4rack_clio_start_at(clio, 0, bytes) }
}

/// Number of a handle's boards; see the header.
///
/// # Safety
/// The handle is open and used by no other thread, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4rack_clio_boards(clio: *const Handle) -> u16 {
    // SAFETY: the caller promises it.
    unsafe { clio.as_ref() }.map_or(0, |handle| handle.session.boards())
}

/// The range of the process on a board; see the header.
///
/// # Safety
/// As [`p4rack_clio_start`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4rack_clio_start_at(clio: *const Handle, board: u16, bytes: *mut u64) -> u64 {
    // SAFETY: the caller promises it.
    let Some(handle) = (unsafe { clio.as_ref() }) else { return 0 };
    let Some(range) = handle.session.ranges().nth(board.into()) else { return 0 };
    if !bytes.is_null() {
        // SAFETY: the caller promises it.
        unsafe { bytes.write(range.1) };
    }
    range.0
}

/// Allocates bytes; see the header.
///
/// # Safety
/// The handle is open and used by no other thread, or null. `status` can be written or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4rack_clio_ralloc(clio: *mut Handle, bytes: u64, status: *mut Status) -> u64 {
    let allocated = || {
        // SAFETY: the caller promises it.
        let handle = unsafe { clio.as_mut() }.ok_or(Status::BadArgument)?;
        // The session chooses the board, and with it the size.
        let page_size = handle.session.page_size();
        // SAFETY: the caller promises it.
        unsafe { address_of(handle, Operation::Alloc { bytes, page_size, rights: Rights::ALL }) }
    };
    let allocated = allocated();
    // SAFETY: the caller promises it.
    unsafe { give(allocated.err(), status) };
    // No page has address 0: ranges begin at page 1.
    allocated.unwrap_or(0)
}

/// Allocates bytes with rights, and waits for it or not; see the header.
///
/// # Safety
/// The handle is open and used by no other thread, or null. `address` can be written, by an asynchronous call until it has been polled.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4rack_clio_ralloc_with(
    clio: *mut Handle,
    bytes: u64,
    rights_bits: u32,
    address: *mut u64,
    mode: u32,
) -> CallerEvent {
    let alloc = || {
        // SAFETY: the caller promises it.
        let handle = unsafe { clio.as_mut() }.filter(|_| !address.is_null()).ok_or(Status::BadArgument)?;
        // SAFETY: the caller promises it, and it is no null pointer.
        unsafe { address.write(0) };
        let (page_size, rights) = (handle.session.page_size(), rights(rights_bits)?);
        let operation = Operation::Alloc { bytes, page_size, rights };
        if mode == ASYNC {
            let number = handle.submit(operation)?;
            handle.places.insert(number, Place::Address(address));
            return Ok(number);
        }
        // SAFETY: the caller promises it of both.
        unsafe { address.write(address_of(handle, operation)?) };
        Ok(0)
    };
    event(alloc, mode)
}

/// Frees pages; see the header.
///
/// # Safety
/// The handle is open and used by no other thread, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4rack_clio_rfree(clio: *mut Handle, address: u64, bytes: u64) -> Status {
    // SAFETY: the caller promises it.
    unsafe { done(clio, Operation::Free { address, bytes }) }
}

/// Frees pages, and waits for it or not; see the header.
///
/// # Safety
/// The handle is open and used by no other thread, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4rack_clio_rfree_with(
    clio: *mut Handle,
    address: u64,
    bytes: u64,
    mode: u32,
) -> CallerEvent {
    let free = || {
        // SAFETY: the caller promises it.
        let handle = unsafe { clio.as_mut() }.ok_or(Status::BadArgument)?;
        let operation = Operation::Free { address, bytes };
        if mode == ASYNC {
            return handle.submit(operation);
        }
        // SAFETY: the caller promised it of each place of an operation under way.
        unsafe { handle.ask(operation) }.map(|_| 0)
    };
    event(free, mode)
}

/// Shares pages with another process; see the header.
///
/// # Safety
/// The handle is open and used by no other thread, or null. `status` can be written or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4rack_clio_rshare(
    clio: *mut Handle,
    address: u64,
    bytes: u64,
    pid: u32,
    epoch: u16,
    rights_bits: u32,
    status: *mut Status,
) -> u64 {
    let shared = || {
        // SAFETY: the caller promises it.
        let handle = unsafe { clio.as_mut() }.ok_or(Status::BadArgument)?;
        let operation = Operation::Share { address, bytes, with: (pid, epoch), rights: rights(rights_bits)? };
        // SAFETY: the caller promises it.
        unsafe { address_of(handle, operation) }
    };
    let shared = shared();
    // SAFETY: the caller promises it.
    unsafe { give(shared.err(), status) };
    shared.unwrap_or(0)
}
