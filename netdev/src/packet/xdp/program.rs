//! The program that redirects each frame of an interface to the AF_XDP socket of the frame's queue.

use crate::sys;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

// Commands, types and flags of bpf(2), from the kernel's `bpf.h` and `if_link.h`.
const MAP_CREATE: libc::c_long = 0;
const MAP_UPDATE_ELEM: libc::c_long = 2;
const PROG_LOAD: libc::c_long = 5;
const LINK_CREATE: libc::c_long = 28;
const MAP_TYPE_XSKMAP: u32 = 17;
const PROG_TYPE_XDP: u32 = 6;
const ATTACH_XDP: u32 = 37;
const MODE_GENERIC: u32 = 1 << 1;
const MODE_DRIVER: u32 = 1 << 2;

/// The part of `union bpf_attr` that these commands use; the rest is zero and preserves the size.
#[repr(C, align(8))]
struct Attributes {
    words: [u32; 32],
}

impl Attributes {
    fn new(words: &[u32]) -> Attributes {
        let mut all = [0; 32];
        all[..words.len()].copy_from_slice(words);
        Attributes { words: all }
    }

    /// Stores an address at a word.
    fn pointer<T>(mut self, at: usize, to: *const T) -> Attributes {
        let address = to as u64;
        let bytes = address.to_ne_bytes();
        for (half, word) in bytes.chunks_exact(4).zip(&mut self.words[at..at + 2]) {
            *word = u32::from_ne_bytes([half[0], half[1], half[2], half[3]]);
        }
        self
    }
}

/// Calls bpf(2). Addresses in the attributes must point to live memory of the lengths that the command reads.
fn bpf(command: libc::c_long, attributes: &Attributes) -> io::Result<RawFd> {
    // SAFETY: pointer and length describe `attributes`; all commands used here only read it and the data it
    // points to, which the callers below keep alive.
    let returned = unsafe {
        libc::syscall(libc::SYS_bpf, command, attributes as *const Attributes, size_of::<Attributes>())
    };
    sys::check(returned as libc::c_int)
}

/// An instruction: operation, destination and source register, offset, value.
const fn instruction(code: u8, to: u8, from: u8, offset: i16, value: i32) -> u64 {
    let (offset, value) = (offset as u16 as u64, value as u32 as u64);
    code as u64 | ((to | from << 4) as u64) << 8 | offset << 16 | value << 32
}

/// `bpf_redirect_map(&sockets, ctx->rx_queue_index, XDP_PASS)`: frames without a socket pass on to the
/// system.
fn program(sockets: &OwnedFd) -> [u64; 6] {
    const QUEUE: i16 = 16;
    const PSEUDO_MAP: u8 = 1;
    const REDIRECT_MAP: i32 = 51;
    const PASS: i32 = 2;
    [
        instruction(0x61, 2, 1, QUEUE, 0), // r2 = *(u32 *)(r1 + 16)
        instruction(0x18, 1, PSEUDO_MAP, 0, sockets.as_raw_fd()), // r1 = sockets
        instruction(0, 0, 0, 0, 0),        // (upper half of it)
        instruction(0xb7, 3, 0, 0, PASS),  // r3 = XDP_PASS
        instruction(0x85, 0, 0, 0, REDIRECT_MAP), // r0 = bpf_redirect_map(r1, r2, r3)
        instruction(0x95, 0, 0, 0, 0),     // return r0
    ]
}

/// Redirects the frames of an interface's queue 0 to `socket` until the result is dropped or the process
/// ends.
pub(super) fn attach(index: i32, socket: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let (key_bytes, value_bytes, entries) = (4, 4, 1);
    let sockets = Attributes::new(&[MAP_TYPE_XSKMAP, key_bytes, value_bytes, entries]);
    let sockets = sys::owned(bpf(MAP_CREATE, &sockets)?)?;
    let program = program(&sockets);
    let license = c"Apache-2.0";
    let mut load = Attributes::new(&[PROG_TYPE_XDP, program.len() as u32])
        .pointer(2, program.as_ptr())
        .pointer(4, license.as_ptr());
    // `expected_attach_type`.
    load.words[17] = ATTACH_XDP;
    let program = sys::owned(bpf(PROG_LOAD, &load)?)?;
    let (queue, socket) = (0u32, socket.as_raw_fd());
    let entry = Attributes::new(&[sockets.as_raw_fd() as u32]).pointer(2, &queue).pointer(4, &socket);
    bpf(MAP_UPDATE_ELEM, &entry)?;
    let link = |mode| {
        let words = [program.as_raw_fd() as u32, index as u32, ATTACH_XDP, mode];
        sys::owned(bpf(LINK_CREATE, &Attributes::new(&words))?)
    };
    link(MODE_DRIVER).or_else(|refused| match refused.raw_os_error() {
        // Another program is attached, or privileges are missing: the other mode would fail too.
        Some(libc::EBUSY | libc::EEXIST | libc::EPERM) => Err(refused),
        _ => link(MODE_GENERIC),
    })
}
