//! Remote memory by any way, as `include/p4rack_memory.h` declares and explains it.

use super::status::Status;
use super::{certificates, needed, tell, text};
use crate::{Access, Memory, open};
use p4rack_codegen::{Rack, Scheme};
use p4rack_fabric::remote::Way;
use p4rack_hosts::remote::{Opcode, Operation, Outcome, Remote, Window};
use p4rack_wire::Nanos;
use std::collections::VecDeque;
use std::ffi::{c_char, c_void};

/// First tag of operations that a program submits. Those of blocking calls count from 0.
const SUBMITTED: u64 = 1 << 63;

/// A handle: another host's memory, and submitted operations.
#[derive(Debug)]
pub struct Handle {
    memory: Memory,
    submitted: Window<*mut CallerOperation>,
    /// Submitted operations that have ended and were not returned.
    ended: VecDeque<*mut CallerOperation>,
}

impl Handle {
    /// The memory for a blocking operation. Errors: submitted operations are in flight, whose ends would get lost.
    fn idle(&mut self) -> Result<&mut Memory, Status> {
        if self.submitted.is_empty() { Ok(&mut self.memory) } else { Err(Status::Busy) }
    }
}

/// The memory, the program's host and the way. Texts that may be null have defaults; see the header.
#[derive(Debug)]
#[repr(C)]
pub struct CallerAccess {
    /// Path of the rack's description.
    pub rack: *const c_char,
    /// Name of this host.
    pub host: *const c_char,
    /// Name of the host with the memory.
    pub at: *const c_char,
    /// Name of the way, or null.
    pub way: *const c_char,
    /// Interface to the rack, or null.
    pub interface: *const c_char,
    /// Scheme that runs, or null.
    pub scheme: *const c_char,
    /// Address of the memory's service, or null.
    pub memory: *const c_char,
    /// Address of an engine of Cowbird, or null.
    pub engine: *const c_char,
    /// Bytes to reserve in a pool, or 0.
    pub reserve_bytes: u64,
    /// Key of the region of a memory node of EDM.
    pub key: u32,
    /// Certificate authority of the servers, or null.
    pub ca: *const c_char,
    /// Our certificate, or null.
    pub cert: *const c_char,
    /// Its key, or null.
    pub cert_key: *const c_char,
    /// Name in the servers' certificates, or null.
    pub server_name: *const c_char,
}

/// Kinds of operations by number: reads, writes, then these.
const READ: u8 = 0;
const WRITE: u8 = 1;
const ATOMIC: u8 = 2;

/// An operation and its result. Pointers and lengths are the caller's.
#[derive(Debug)]
#[repr(C)]
pub struct CallerOperation {
    /// Offset of the first byte in the region.
    pub address: u64,
    /// Operand of an atomic operation.
    pub operand: u64,
    /// Expected word of CAS.
    pub expected: u64,
    /// Result: the previous word of an atomic operation.
    pub old: u64,
    /// Bytes to write, or the destination of a read.
    pub bytes: *mut c_void,
    /// Their number.
    pub length: u32,
    /// Kind of the operation.
    pub kind: u8,
    /// Result: its status.
    pub status: u8,
}

impl CallerOperation {
    /// The operation for a way.
    ///
    /// # Safety
    /// What a write's `bytes` point to can be read for `length` bytes, as long as the result is used.
    unsafe fn operation<'a>(&self) -> Result<Operation<'a>, Status> {
        if matches!(self.kind, READ | WRITE) && self.bytes.is_null() && self.length > 0 {
            return Err(Status::BadArgument);
        }
        Ok(match self.kind {
            READ => Operation::Read { at: self.address, bytes: self.length },
            WRITE if self.length == 0 => return Err(Status::BadLength),
            WRITE => {
                // SAFETY: the caller promises it, and it is no null pointer.
                let bytes = unsafe { std::slice::from_raw_parts(self.bytes.cast(), self.length as usize) };
                Operation::Write { at: self.address, bytes }
            }
            kind => {
                let opcode = *Opcode::ALL.get(usize::from(kind - ATOMIC)).ok_or(Status::BadArgument)?;
                let operands = match opcode {
                    Opcode::Cas => [self.expected, self.operand],
                    _ => [self.operand, 0],
                };
                Operation::Modify { at: self.address, opcode, operands }
            }
        })
    }

    /// Stores the outcome.
    ///
    /// # Safety
    /// What a read's `bytes` point to can be written for `length` bytes.
    unsafe fn finish(&mut self, outcome: Outcome<'_>) {
        self.status = match outcome {
            // SAFETY: the caller promises it; the two don't overlap, because the answer is the way's own.
            Outcome::Read(bytes) if bytes.len() == self.length as usize => unsafe {
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.bytes.cast(), bytes.len());
                Status::Ok
            },
            Outcome::Read(_) => Status::Unknown,
            Outcome::Written => Status::Ok,
            Outcome::Word(old) => {
                self.old = old;
                Status::Ok
            }
            Outcome::Failed(status) => status.into(),
        } as u8;
    }
}

/// The rack that a caller names, under the scheme that runs, and the memory in it.
///
/// # Safety
/// `access` is one or null; its texts end with a zero or are null, and outlive the result.
pub(super) unsafe fn described<'a>(access: *const CallerAccess) -> Result<(Rack, Access<'a>), String> {
    // SAFETY: the caller promises it.
    let access = unsafe { access.as_ref() }.ok_or("access is NULL")?;
    // SAFETY: the caller promises it of each.
    let (path, host, at) =
        unsafe { (needed(access.rack, "rack")?, needed(access.host, "host")?, needed(access.at, "at")?) };
    // SAFETY: the caller promises it of each.
    let optional = |pointer| unsafe { text(pointer) }.transpose();
    let way = optional(access.way)?.map(str::parse::<Way>).transpose()?;
    let scheme = optional(access.scheme)?.map(str::parse::<Scheme>).transpose()?;
    let rack = Rack::load(path).map_err(|error| error.to_string())?;
    let scheme = match (scheme, way) {
        (Some(scheme), _) => scheme,
        (None, Some(way)) if rack.scheme().way() != Some(way) => rack.by(way).scheme,
        (None, _) => rack.scheme(),
    };
    let rack = rack.under(scheme).map_err(|error| error.to_string())?;
    // SAFETY: the caller promises it of each.
    let tls =
        unsafe { certificates(access.ca, access.cert, ("cert_key", access.cert_key), access.server_name)? };
    let access = Access {
        host,
        at,
        way,
        interface: optional(access.interface)?,
        key: access.key,
        memory: optional(access.memory)?,
        engine: optional(access.engine)?,
        reserve_bytes: access.reserve_bytes,
        tls,
    };
    Ok((rack, access))
}

/// Opens another host's memory; see the header.
///
/// # Safety
/// `access` is one or null; its texts end with a zero or are null. `error` can be written for `error_length` bytes or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4rack_memory_open(
    access: *const CallerAccess,
    error: *mut c_char,
    error_length: usize,
) -> *mut Handle {
    let opened = || -> Result<Handle, String> {
        // SAFETY: the caller promises it.
        let (rack, access) = unsafe { described(access) }?;
        let memory = open(&rack, &access).map_err(|error| error.to_string())?;
        Ok(Handle { memory, submitted: Window::default(), ended: VecDeque::new() })
    };
    match opened() {
        Ok(memory) => Box::into_raw(Box::new(memory)),
        Err(why) => {
            // SAFETY: the caller promises it.
            unsafe { tell(&why, error, error_length) };
            std::ptr::null_mut()
        }
    }
}

/// Ends a handle; see the header.
///
/// # Safety
/// It is null, or of [`p4rack_memory_open`] and not ended yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4rack_memory_close(memory: *mut Handle) {
    if !memory.is_null() {
        // SAFETY: the caller promises it.
        drop(unsafe { Box::from_raw(memory) });
    }
}

/// Executes several operations at the same time; see the header.
///
/// # Safety
/// The handle is open and used by no other thread, or null. `operations` are `count`, and what their `bytes` point to can be read
/// (writes) or written (reads) for their `length`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4rack_memory_batch(
    memory: *mut Handle,
    operations: *mut CallerOperation,
    count: usize,
) -> Status {
    // SAFETY: the caller promises it.
    let Some(handle) = (unsafe { memory.as_mut() }) else { return Status::BadArgument };
    let memory = match handle.idle() {
        Ok(memory) => memory,
        Err(status) => return status,
    };
    if count == 0 {
        return Status::Ok;
    }
    if operations.is_null() {
        return Status::BadArgument;
    }
    // SAFETY: the caller promises it.
    let operations = unsafe { std::slice::from_raw_parts_mut(operations, count) };
    // The valid ones, with their positions.
    let (mut sound, mut places) = (Vec::with_capacity(count), Vec::with_capacity(count));
    for (place, one) in operations.iter_mut().enumerate() {
        // SAFETY: the caller promises it of each.
        match unsafe { one.operation() } {
            Ok(operation) => {
                one.status = Status::Unknown as u8;
                sound.push(operation);
                places.push(place);
            }
            Err(status) => one.status = status as u8,
        }
    }
    let done = memory.batch(sound, |nth, outcome| {
        if let Some(one) = places.get(nth).and_then(|place| operations.get_mut(*place)) {
            // SAFETY: the caller promises it of each.
            unsafe { one.finish(outcome) };
        }
    });
    if done.is_err() {
        return Status::Gone;
    }
    let failed = operations.iter().find(|one| one.status != Status::Ok as u8);
    failed.map_or(Status::Ok, |one| Status::of(one.status))
}

/// Executes one operation.
///
/// # Safety
/// As [`p4rack_memory_batch`].
unsafe fn one(memory: *mut Handle, mut operation: CallerOperation, old: *mut u64) -> Status {
    // SAFETY: the caller promises it; the operation is this function's own.
    let status = unsafe { p4rack_memory_batch(memory, &raw mut operation, 1) };
    if status == Status::Ok && !old.is_null() {
        // SAFETY: the caller promises that it is a word or null.
        unsafe { old.write(operation.old) };
    }
    status
}

/// An operation without operands and bytes.
fn empty(address: u64, kind: u8) -> CallerOperation {
    let (operand, expected, old, length, status) = (0, 0, 0, 0, 0);
    CallerOperation { address, operand, expected, old, bytes: std::ptr::null_mut(), length, kind, status }
}

/// Reads bytes, of any length; see the header.
///
/// # Safety
/// The handle is open and used by no other thread, or null; `bytes` can be written for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4rack_memory_read(
    memory: *mut Handle,
    address: u64,
    bytes: *mut c_void,
    length: usize,
) -> Status {
    // SAFETY: the caller promises it.
    let Some(handle) = (unsafe { memory.as_mut() }) else { return Status::BadArgument };
    if bytes.is_null() {
        return Status::BadArgument;
    }
    // SAFETY: the caller promises it.
    let into = unsafe { std::slice::from_raw_parts_mut(bytes.cast(), length) };
    Status::after(handle.idle().map(|memory| memory.read(address, into)))
}

/// Writes bytes, of any length; see the header.
///
/// # Safety
/// The handle is open and used by no other thread, or null; `bytes` can be read for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4rack_memory_write(
    memory: *mut Handle,
    address: u64,
    bytes: *const c_void,
    length: usize,
) -> Status {
    // SAFETY: the caller promises it.
    let Some(handle) = (unsafe { memory.as_mut() }) else { return Status::BadArgument };
    if bytes.is_null() {
        return Status::BadArgument;
    }
    // SAFETY: the caller promises it.
    let bytes = unsafe { std::slice::from_raw_parts(bytes.cast(), length) };
    Status::after(handle.idle().map(|memory| memory.write(address, bytes)))
}

/// Compares and swaps a word; see the header.
///
/// # Safety
/// The handle is open and used by no other thread, or null; `old` is a word or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4rack_memory_cas(
    memory: *mut Handle,
    address: u64,
    expected: u64,
    desired: u64,
    old: *mut u64,
) -> Status {
    let operation = CallerOperation { operand: desired, expected, ..empty(address, ATOMIC) };
    // SAFETY: the caller promises it.
    unsafe { one(memory, operation, old) }
}

/// Executes any other atomic operation; see the header.
///
/// # Safety
/// The handle is open and used by no other thread, or null; `old` is a word or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4rack_memory_modify(
    memory: *mut Handle,
    address: u64,
    kind: u32,
    operand: u64,
    old: *mut u64,
) -> Status {
    let kind = match u8::try_from(kind) {
        Ok(kind) if kind > ATOMIC => kind,
        _ => return Status::BadArgument,
    };
    // SAFETY: the caller promises it.
    unsafe { one(memory, CallerOperation { operand, ..empty(address, kind) }, old) }
}

/// Submits an operation, which has to stay until [`p4rack_memory_poll`] returns it; see the header.
///
/// # Safety
/// The handle is open and used by no other thread, or null; `operation` is one or null, and stays. What its `bytes` point to can be
/// read (a write's, until this returns) or written (a read's, until it is returned) for its `length`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4rack_memory_submit(
    memory: *mut Handle,
    operation: *mut CallerOperation,
) -> Status {
    // SAFETY: the caller promises it of both.
    let (memory, one) = unsafe { (memory.as_mut(), operation.as_ref()) };
    let Some((handle, one)) = memory.zip(one) else { return Status::BadArgument };
    // SAFETY: the caller promises it.
    let sound = match unsafe { one.operation() } {
        Ok(sound) => sound,
        Err(status) => return status,
    };
    match handle.memory.remote().submit(SUBMITTED | handle.submitted.next(), sound) {
        Ok(()) => {
            handle.submitted.push(operation);
            Status::Ok
        }
        Err(status) => status.into(),
    }
}

/// Returns operations that have ended; see the header.
///
/// # Safety
/// The handle is open and used by no other thread, or null; `ended` can be written for `most` pointers and `count` is a number, or
/// they are null; operations that were submitted and not returned still exist.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4rack_memory_poll(
    memory: *mut Handle,
    timeout_us: u64,
    ended: *mut *mut CallerOperation,
    most: usize,
    count: *mut usize,
) -> Status {
    // SAFETY: the caller promises it of both.
    let (memory, count) = unsafe { (memory.as_mut(), count.as_mut()) };
    let Some((handle, count)) = memory.zip(count) else { return Status::BadArgument };
    if ended.is_null() && most > 0 {
        return Status::BadArgument;
    }
    *count = 0;
    let Handle { memory, submitted, ended: all } = handle;
    if all.is_empty() && !submitted.is_empty() {
        let remote = memory.remote();
        let until = remote.now() + Nanos(timeout_us.saturating_mul(1_000));
        let polled = remote.poll(until, &mut |tag, outcome| {
            // Any other tag belongs to an abandoned operation.
            let one = tag.checked_sub(SUBMITTED).and_then(|number| submitted.take(number));
            if let Some(one) = one {
                // SAFETY: the caller that submitted it promised that it stays, and what a read's `bytes` point to.
                unsafe { (*one).finish(outcome) };
                all.push_back(one);
            }
        });
        if polled.is_err() {
            return Status::Gone;
        }
    }
    for one in all.drain(..most.min(all.len())) {
        // SAFETY: the caller promises room for `most`, and `count` stays below that.
        unsafe { ended.add(*count).write(one) };
        *count += 1;
    }
    Status::Ok
}

/// A status in words; see the header.
#[unsafe(no_mangle)]
pub extern "C" fn p4rack_memory_status_text(status: u32) -> *const c_char {
    Status::text(status).as_ptr()
}
