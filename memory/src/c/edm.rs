//! EDM's memory, as `include/p4rack_memory.h` declares and explains it.

use super::{needed, tell, text};
use p4rack_codegen::{Rack, Scheme};
use p4rack_hosts::memory::{Client, Error, Operation, Remote};
use p4rack_wire::edm::Opcode;
use std::ffi::{CStr, c_char, c_void};

/// Default interface to the switch.
const INTERFACE: &str = "eth0";

/// A compute node and the rack that it is in.
#[derive(Debug)]
pub struct Memory {
    client: Client,
    rack: Rack,
}

/// How an operation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum Status {
    /// Well.
    Ok = 0,
    /// Without an answer in time.
    Unknown,
    /// Its bytes are not all in a region.
    OutOfBounds,
    /// The region has another key.
    WrongKey,
    /// The key does not permit it.
    NotPermitted,
    /// It asks for nothing or too much.
    BadLength,
    /// There is no such operation, or its word is not aligned.
    BadOperation,
    /// The node has too much to answer already.
    Busy,
    /// Too many operations wait.
    Full,
    /// There is no such node.
    NoSuchNode,
    /// The link failed.
    Link,
    /// A null pointer, or no such kind of operation.
    BadArgument,
}

/// All statuses with their texts, by number.
const STATUSES: [(Status, &CStr); 12] = [
    (Status::Ok, c"done"),
    (Status::Unknown, c"no answer in time: whether it was done is unknown"),
    (Status::OutOfBounds, c"the bytes are not all in a region of the node"),
    (Status::WrongKey, c"the region has another key"),
    (Status::NotPermitted, c"the region's key does not permit it"),
    (Status::BadLength, c"it asks for no bytes, or for more than a message may have"),
    (Status::BadOperation, c"no such operation, or its address is no multiple of eight"),
    (Status::Busy, c"the node has too much to answer already: ask again later"),
    (Status::Full, c"too many operations at once"),
    (Status::NoSuchNode, c"the rack has no such other node"),
    (Status::Link, c"the link failed"),
    (Status::BadArgument, c"a null pointer, or no such kind of operation"),
];

impl From<Error> for Status {
    fn from(error: Error) -> Status {
        match error {
            Error::Unknown => Status::Unknown,
            Error::OutOfBounds => Status::OutOfBounds,
            Error::WrongKey => Status::WrongKey,
            Error::NotPermitted => Status::NotPermitted,
            Error::BadLength => Status::BadLength,
            Error::BadOperation => Status::BadOperation,
            Error::Busy => Status::Busy,
            Error::Full => Status::Full,
            Error::NoSuchNode(_) => Status::NoSuchNode,
            Error::Port(_) => Status::Link,
        }
    }
}

/// What an operation does, by number: reads, writes, then these.
const READ: u8 = 0;
const WRITE: u8 = 1;
const CAS: u8 = 2;
const ATOMIC: [Opcode; 8] = [
    Opcode::Cas,
    Opcode::FetchAdd,
    Opcode::Swap,
    Opcode::And,
    Opcode::Or,
    Opcode::Xor,
    Opcode::Min,
    Opcode::Max,
];

/// An operation and its result. Pointers and lengths are the caller's.
#[derive(Debug)]
#[repr(C)]
pub struct CallerOperation {
    /// Address of the first byte.
    pub address: u64,
    /// Operand of an atomic operation.
    pub operand: u64,
    /// Expected word of CAS.
    pub expected: u64,
    /// Result: the word before an atomic operation.
    pub old: u64,
    /// Bytes to write, or where bytes go that were read.
    pub bytes: *mut c_void,
    /// Their number.
    pub length: u32,
    /// Key of the region.
    pub key: u32,
    /// Number of the host with the memory.
    pub node: u16,
    /// What to do.
    pub kind: u8,
    /// Result: how it ended.
    pub status: u8,
}

impl CallerOperation {
    /// The same for a client.
    ///
    /// # Safety
    /// What a write's `bytes` point to can be read for `length` bytes.
    unsafe fn operation(&self) -> Result<Operation, Status> {
        let remote = Remote { node: self.node, key: self.key };
        if matches!(self.kind, READ | WRITE) && self.bytes.is_null() && self.length > 0 {
            return Err(Status::BadArgument);
        }
        Ok(match self.kind {
            READ => Operation::read(remote, self.address, self.length),
            WRITE if self.length == 0 => return Err(Status::BadLength),
            WRITE => {
                // SAFETY: the caller promises it, and it is no null pointer.
                let bytes = unsafe { std::slice::from_raw_parts(self.bytes.cast(), self.length as usize) };
                Operation::write(remote, self.address, bytes.to_vec())
            }
            CAS => Operation::cas(remote, self.address, self.expected, self.operand),
            kind => {
                let opcode = ATOMIC.get(usize::from(kind - CAS)).ok_or(Status::BadArgument)?;
                Operation::modify(remote, self.address, *opcode, self.operand)
            }
        })
    }

    /// Takes a result.
    ///
    /// # Safety
    /// What a read's `bytes` point to can be written for `length` bytes.
    unsafe fn finish(&mut self, done: Result<Vec<u8>, Status>) {
        self.status = match done {
            Err(status) => status as u8,
            Ok(bytes) => {
                match self.kind {
                    // SAFETY: the caller promises it; the node has checked that the answer has the length asked for, and the
                    // two don't overlap because the answer is this function's own.
                    READ if bytes.len() == self.length as usize => unsafe {
                        std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.bytes.cast(), bytes.len());
                    },
                    READ | WRITE => {}
                    _ => self.old = bytes.try_into().map_or(0, u64::from_be_bytes),
                }
                Status::Ok as u8
            }
        };
    }
}

/// Opens the link of a host; see the header.
///
/// # Safety
/// Texts end with a zero or are null. `error` can be written for `error_length` bytes or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4rack_memory_open(
    rack: *const c_char,
    host: *const c_char,
    interface: *const c_char,
    scheme: *const c_char,
    error: *mut c_char,
    error_length: usize,
) -> *mut Memory {
    // SAFETY: the caller promises it.
    let (path, name) = unsafe { (needed(rack, "rack"), needed(host, "host")) };
    // SAFETY: the caller promises it.
    let [interface, scheme] = [interface, scheme].map(|pointer| unsafe { text(pointer) });
    let opened = || -> Result<Memory, String> {
        let (path, name) = (path?, name?);
        let interface = interface.transpose()?.unwrap_or(INTERFACE);
        let scheme = scheme.transpose()?.map(str::parse::<Scheme>).transpose()?;
        let rack = Rack::load(path).map_err(|error| error.to_string())?;
        let scheme = scheme.unwrap_or_else(|| rack.scheme());
        let rack = rack.under(scheme).map_err(|error| error.to_string())?;
        let number = crate::node(&rack, name).map_err(|error| error.to_string())?;
        let config = crate::client(&rack, &rack.hosts[usize::from(number)], interface);
        let client = Client::open(config.map_err(|error| error.to_string())?);
        Ok(Memory { client: client.map_err(|error| error.to_string())?, rack })
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
pub unsafe extern "C" fn p4rack_memory_close(memory: *mut Memory) {
    if !memory.is_null() {
        // SAFETY: the caller promises it.
        drop(unsafe { Box::from_raw(memory) });
    }
}

/// Number of a host that has memory, or -1; see the header.
///
/// # Safety
/// The handle is open or null, the text ends with a zero or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4rack_memory_node(memory: *const Memory, host: *const c_char) -> i32 {
    // SAFETY: the caller promises both.
    let (memory, host) = unsafe { (memory.as_ref(), text(host)) };
    match (memory, host) {
        (Some(memory), Some(Ok(host))) => crate::memory_node(&memory.rack, host).map_or(-1, i32::from),
        _ => -1,
    }
}

/// Does several operations at the same time; see the header.
///
/// # Safety
/// The handle is open and nobody else's meanwhile, or null. `operations` are `count`, and what their `bytes` point to can be read
/// (writes) or written (reads) for their `length`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4rack_memory_batch(
    memory: *mut Memory,
    operations: *mut CallerOperation,
    count: usize,
) -> Status {
    // SAFETY: the caller promises it.
    let Some(memory) = (unsafe { memory.as_mut() }) else { return Status::BadArgument };
    if count == 0 {
        return Status::Ok;
    }
    if operations.is_null() {
        return Status::BadArgument;
    }
    // SAFETY: the caller promises it.
    let operations = unsafe { std::slice::from_raw_parts_mut(operations, count) };
    // SAFETY: the caller promises it of each.
    let asked: Vec<_> = operations.iter().map(|one| unsafe { one.operation() }).collect();
    let sound = asked.iter().flatten().cloned();
    let mut done = memory.client.batch(sound).into_iter();
    for (one, asked) in operations.iter_mut().zip(&asked) {
        let result = match asked {
            Err(status) => Err(*status),
            Ok(_) => done.next().map_or(Err(Status::Unknown), |done| done.map_err(Status::from)),
        };
        // SAFETY: the caller promises it of each.
        unsafe { one.finish(result) };
    }
    let failed = operations.iter().find(|one| one.status != Status::Ok as u8);
    failed.map_or(Status::Ok, |one| STATUSES[usize::from(one.status)].0)
}

/// One operation.
///
/// # Safety
/// As [`p4rack_memory_batch`].
unsafe fn one(memory: *mut Memory, mut operation: CallerOperation, old: *mut u64) -> Status {
    // SAFETY: the caller promises it; the operation is this function's own.
    let status = unsafe { p4rack_memory_batch(memory, &raw mut operation, 1) };
    if status == Status::Ok && !old.is_null() {
        // SAFETY: the caller promises that it is a word or null.
        unsafe { old.write(operation.old) };
    }
    status
}

/// An operation without operands and bytes.
fn empty(node: u16, key: u32, address: u64, kind: u8) -> CallerOperation {
    let (operand, expected, old, length, status) = (0, 0, 0, 0, 0);
    CallerOperation {
        address,
        operand,
        expected,
        old,
        bytes: std::ptr::null_mut(),
        length,
        key,
        node,
        kind,
        status,
    }
}

/// Reads bytes; see the header.
///
/// # Safety
/// The handle is open and nobody else's meanwhile, or null; `bytes` can be written for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4rack_memory_read(
    memory: *mut Memory,
    node: u16,
    key: u32,
    address: u64,
    bytes: *mut c_void,
    length: u32,
) -> Status {
    let operation = CallerOperation { bytes, length, ..empty(node, key, address, READ) };
    // SAFETY: the caller promises it.
    unsafe { one(memory, operation, std::ptr::null_mut()) }
}

/// Writes bytes; see the header.
///
/// # Safety
/// The handle is open and nobody else's meanwhile, or null; `bytes` can be read for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4rack_memory_write(
    memory: *mut Memory,
    node: u16,
    key: u32,
    address: u64,
    bytes: *const c_void,
    length: u32,
) -> Status {
    let operation = CallerOperation { bytes: bytes.cast_mut(), length, ..empty(node, key, address, WRITE) };
    // SAFETY: the caller promises it; a write's bytes are only read.
    unsafe { one(memory, operation, std::ptr::null_mut()) }
}

/// Puts a word in place of another; see the header.
///
/// # Safety
/// The handle is open and nobody else's meanwhile, or null; `old` is a word or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4rack_memory_cas(
    memory: *mut Memory,
    node: u16,
    key: u32,
    address: u64,
    expected: u64,
    desired: u64,
    old: *mut u64,
) -> Status {
    let operation = CallerOperation { operand: desired, expected, ..empty(node, key, address, CAS) };
    // SAFETY: the caller promises it.
    unsafe { one(memory, operation, old) }
}

/// Does any other atomic operation; see the header.
///
/// # Safety
/// The handle is open and nobody else's meanwhile, or null; `old` is a word or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4rack_memory_modify(
    memory: *mut Memory,
    node: u16,
    key: u32,
    address: u64,
    kind: u32,
    operand: u64,
    old: *mut u64,
) -> Status {
    let kind = match u8::try_from(kind) {
        Ok(kind) if kind > CAS => kind,
        _ => return Status::BadArgument,
    };
    // SAFETY: the caller promises it.
    unsafe { one(memory, CallerOperation { operand, ..empty(node, key, address, kind) }, old) }
}

/// A status in words; see the header.
#[unsafe(no_mangle)]
pub extern "C" fn p4rack_memory_status_text(status: u32) -> *const c_char {
    let text = STATUSES.get(status as usize).map_or(c"no such status", |(_, text)| text);
    text.as_ptr()
}
