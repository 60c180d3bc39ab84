//! Calls of offloads: by number, the pointer chase, the key-value store.

use super::{Handle, Reply, bytes, give, refusal, status};
use crate::c::Status;
use crate::clio::{CHASE, Chase, Kv, KvError, KvRefused, Operation, at_board, of_board};
use p4rack_wire::clio::packet::RESULTS_BYTES_MAX;
use std::ffi::c_void;

/// A pointer chase.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct CallerChase {
    /// Address of the first node.
    pub address: u64,
    /// Key to look for.
    pub key: u64,
    /// Where in a node its key is.
    pub key_offset: u16,
    /// Where the next node's address is.
    pub next_offset: u16,
    /// Where the value is.
    pub value_offset: u16,
    /// Bytes of the value.
    pub value_bytes: u16,
    /// Nodes to look at.
    pub depth: u16,
    /// 1: the value's place has its address.
    pub value_is_pointer: u16,
}

/// How a call of the store ended. After a socket has failed, the next call opens the store again.
fn of_store<T>(handle: &mut Handle, done: Result<T, KvError>) -> Result<T, Status> {
    if matches!(done, Err(KvError::Link(_))) {
        handle.kv = None;
    }
    done.map_err(|error| match error {
        KvError::Refused(KvRefused::Key(_) | KvRefused::Value(..)) => Status::BadLength,
        KvError::Refused(KvRefused::Full | KvRefused::NoPlace) | KvError::UnderWay => Status::Full,
        KvError::Refused(KvRefused::Library(refused)) => refusal(refused),
        KvError::Link(_) => Status::Gone,
        KvError::Unknown => Status::Unknown,
        KvError::Failed(said) => status(said),
    })
}

/// Calls an offload.
///
/// # Safety
/// The handle is open and used by no other thread, or null.
unsafe fn call(clio: *mut Handle, offload: u64, function: u8, arguments: &[u8]) -> Result<Vec<u8>, Status> {
    // SAFETY: the caller promises it.
    let handle = unsafe { clio.as_mut() }.ok_or(Status::BadArgument)?;
    let results_bytes_max = RESULTS_BYTES_MAX;
    let call = Operation::Call { offload, function, arguments, results_bytes_max, is_ordered: true };
    // SAFETY: the caller promised it of each place of an operation under way.
    match unsafe { handle.ask(call) }? {
        Reply::Bytes(results) => Ok(results),
        _ => Err(Status::Unknown),
    }
}

/// Calls an offload; see the header.
///
/// # Safety
/// The handle is open and used by no other thread, or null. `arguments` can be read for `argument_bytes` bytes, `results` written for
/// `length` bytes or is null, and `count` can be written or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4rack_clio_call(
    clio: *mut Handle,
    offload: u64,
    function: u8,
    arguments: *const c_void,
    argument_bytes: usize,
    results: *mut c_void,
    length: usize,
    count: *mut usize,
) -> Status {
    // SAFETY: the caller promises it.
    let Some(arguments) = (unsafe { bytes(arguments, argument_bytes) }) else { return Status::BadArgument };
    // SAFETY: the caller promises it.
    match unsafe { call(clio, offload, function, arguments) } {
        Ok(found) => {
            // SAFETY: the caller promises it.
            unsafe { give(&found, results, length, count) };
            Status::Ok
        }
        Err(status) => status,
    }
}

/// Follows pointers; see the header.
///
/// # Safety
/// The handle is open and used by no other thread, or null. `chase` is one or null, `node` can be written or is null, and `value` can be
/// written for `value_bytes` bytes or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4rack_clio_rchase(
    clio: *mut Handle,
    chase: *const CallerChase,
    node: *mut u64,
    value: *mut c_void,
) -> Status {
    // SAFETY: the caller promises it.
    let Some(chase) = (unsafe { chase.as_ref() }) else { return Status::BadArgument };
    let mut arguments = [0; Chase::BYTES];
    let (board, address) = of_board(chase.address);
    let asked = Chase {
        address,
        key: chase.key,
        key_offset: chase.key_offset,
        next_offset: chase.next_offset,
        value_offset: chase.value_offset,
        value_bytes: chase.value_bytes,
        depth: chase.depth,
        value_is_pointer: u8::from(chase.value_is_pointer != 0),
        reserved: 0,
    };
    asked.emit(&mut arguments);
    // SAFETY: the caller promises it.
    let found = unsafe { call(clio, at_board(board, CHASE), 0, &arguments) };
    let found = match &found {
        Ok(found) => found.split_first_chunk(),
        Err(status) => return *status,
    };
    let Some((at, found)) = found else { return Status::Unknown };
    // SAFETY: the caller promises it.
    unsafe {
        if !node.is_null() {
            node.write(at_board(board, u64::from_le_bytes(*at)));
        }
        give(found, value, chase.value_bytes.into(), std::ptr::null_mut());
    }
    Status::Ok
}

/// Changes the store.
///
/// # Safety
/// The handle is open and used by no other thread, or null. `key` and `value` can be read for their lengths.
unsafe fn change<T>(
    clio: *mut Handle,
    (key, key_bytes): (*const c_void, usize),
    (value, value_bytes): (*const c_void, usize),
    change: impl FnOnce(&mut Kv, &[u8], &[u8]) -> Result<T, KvError>,
) -> Result<T, Status> {
    // SAFETY: the caller promises it of each.
    let (handle, key, value) = unsafe { (clio.as_mut(), bytes(key, key_bytes), bytes(value, value_bytes)) };
    let ((handle, key), value) = handle.zip(key).zip(value).ok_or(Status::BadArgument)?;
    let done = change(handle.store()?, key, value);
    of_store(handle, done)
}

/// Creates or changes a key; see the header.
///
/// # Safety
/// The handle is open and used by no other thread, or null. `key` and `value` can be read for their lengths.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4rack_clio_kv_put(
    clio: *mut Handle,
    key: *const c_void,
    key_bytes: usize,
    value: *const c_void,
    value_bytes: usize,
) -> Status {
    // SAFETY: the caller promises it.
    let done = unsafe { change(clio, (key, key_bytes), (value, value_bytes), Kv::put) };
    done.err().unwrap_or(Status::Ok)
}

/// Creates a key; see the header.
///
/// # Safety
/// The handle is open and used by no other thread, or null. `key` and `value` can be read for their lengths.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4rack_clio_kv_create(
    clio: *mut Handle,
    key: *const c_void,
    key_bytes: usize,
    value: *const c_void,
    value_bytes: usize,
) -> Status {
    // SAFETY: the caller promises it.
    match unsafe { change(clio, (key, key_bytes), (value, value_bytes), Kv::create) } {
        Ok(true) => Status::Ok,
        Ok(false) => Status::NotPermitted,
        Err(status) => status,
    }
}

/// Changes the value of a key; see the header.
///
/// # Safety
/// The handle is open and used by no other thread, or null. `key` and `value` can be read for their lengths.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4rack_clio_kv_update(
    clio: *mut Handle,
    key: *const c_void,
    key_bytes: usize,
    value: *const c_void,
    value_bytes: usize,
) -> Status {
    // SAFETY: the caller promises it.
    match unsafe { change(clio, (key, key_bytes), (value, value_bytes), Kv::update) } {
        Ok(true) => Status::Ok,
        Ok(false) => Status::OutOfBounds,
        Err(status) => status,
    }
}

/// The value of a key; see the header.
///
/// # Safety
/// The handle is open and used by no other thread, or null. `key` can be read for `key_bytes` bytes, `value` written for `length` bytes or
/// is null, and `count` can be written or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4rack_clio_kv_get(
    clio: *mut Handle,
    key: *const c_void,
    key_bytes: usize,
    value: *mut c_void,
    length: usize,
    count: *mut usize,
) -> Status {
    let get = || {
        // SAFETY: the caller promises it of both.
        let (handle, key) = unsafe { (clio.as_mut(), bytes(key, key_bytes)) };
        let (handle, key) = handle.zip(key).ok_or(Status::BadArgument)?;
        let done = handle.store()?.get(key);
        let found = of_store(handle, done)?.ok_or(Status::OutOfBounds)?;
        // SAFETY: the caller promises it.
        unsafe { give(&found, value, length, count) };
        Ok(())
    };
    get().err().unwrap_or(Status::Ok)
}

/// Removes a key; see the header.
///
/// # Safety
/// The handle is open and used by no other thread, or null. `key` can be read for `key_bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4rack_clio_kv_delete(
    clio: *mut Handle,
    key: *const c_void,
    key_bytes: usize,
) -> Status {
    let delete = || {
        // SAFETY: the caller promises it of both.
        let (handle, key) = unsafe { (clio.as_mut(), bytes(key, key_bytes)) };
        let (handle, key) = handle.zip(key).ok_or(Status::BadArgument)?;
        let done = handle.store()?.delete(key);
        let was_there = of_store(handle, done)?;
        if was_there { Ok(()) } else { Err(Status::OutOfBounds) }
    };
    delete().err().unwrap_or(Status::Ok)
}
