//! AF_PACKET with system calls: `recvmmsg` and `sendmmsg`.

use super::extra::{CONTROL_WORDS, Extra, TAG};
use super::{BATCH, MAX_FRAME, Stats, drops_since};
use crate::clock::{self, WallOffset};
use crate::sys;
use p4rack_wire::Nanos;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Room per frame. A restored tag is put before it.
const STRIDE: usize = (TAG + MAX_FRAME).next_multiple_of(64);

#[derive(Debug)]
pub(super) struct Receiver {
    fd: OwnedFd,
    frames: Box<[u8]>,
    control: Box<[[u64; CONTROL_WORDS]]>,
    stats: Stats,
}

impl Receiver {
    pub(super) fn new(fd: OwnedFd) -> Receiver {
        Receiver {
            fd,
            frames: vec![0; STRIDE * BATCH].into_boxed_slice(),
            control: vec![[0; CONTROL_WORDS]; BATCH].into_boxed_slice(),
            stats: Stats::default(),
        }
    }

    pub(super) fn receive(&mut self, mut frame: impl FnMut(&[u8], Nanos)) -> io::Result<usize> {
        let arrived = receive_batch(self.fd.as_fd(), &mut self.frames, &mut self.control)?;
        if arrived.count == 0 {
            return Ok(0);
        }
        let offset = WallOffset::measure();
        for (i, (length, control_bytes)) in arrived.lengths[..arrived.count].iter().enumerate() {
            let length = *length as usize;
            if length > MAX_FRAME {
                self.stats.too_long += 1;
                continue;
            }
            let extra = Extra::parse(&self.control[i], *control_bytes);
            let bytes = extra.complete(&mut self.frames[i * STRIDE..][..TAG + length], &mut self.stats);
            let at = extra.wall_ns.map_or_else(clock::now, |ns| offset.monotonic(ns));
            frame(bytes, at);
        }
        Ok(arrived.count)
    }

    pub(super) fn stats(&mut self) -> Stats {
        self.stats.kernel_drops += drops_since(self.fd.as_fd());
        self.stats
    }
}

impl AsFd for Receiver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[derive(Debug)]
pub(super) struct Sender {
    fd: OwnedFd,
    to_send: Vec<Vec<u8>>,
    waiting: usize,
    stats: Stats,
}

impl Sender {
    pub(super) fn new(fd: OwnedFd) -> Sender {
        let to_send = (0..BATCH).map(|_| Vec::with_capacity(2048)).collect();
        Sender { fd, to_send, waiting: 0, stats: Stats::default() }
    }

    pub(super) fn send(&mut self, frame: &mut Vec<u8>) {
        std::mem::swap(&mut self.to_send[self.waiting], frame);
        frame.clear();
        self.waiting += 1;
        if self.waiting == self.to_send.len() {
            self.flush();
        }
    }

    pub(super) fn flush(&mut self) {
        let mut from = 0;
        while from < self.waiting {
            match send_batch(self.fd.as_fd(), &self.to_send[from..self.waiting]) {
                Ok(sent) => {
                    self.stats.sent += sent as u64;
                    from += sent;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.stats.refused(&error);
                    from += 1;
                }
            }
        }
        self.waiting = 0;
    }

    pub(super) fn stats(&self) -> Stats {
        self.stats
    }
}

/// Lengths (frame, control) of the messages that one `recvmmsg` returned.
struct Arrived {
    count: usize,
    lengths: [(u32, usize); BATCH],
}

fn receive_batch(
    fd: BorrowedFd<'_>,
    frames: &mut [u8],
    control: &mut [[u64; CONTROL_WORDS]],
) -> io::Result<Arrived> {
    debug_assert!(frames.len() >= STRIDE * BATCH && control.len() >= BATCH);
    // SAFETY: zeroes are a value of these C structs (null pointers, zero lengths).
    let (mut vectors, mut messages): ([libc::iovec; BATCH], [libc::mmsghdr; BATCH]) =
        unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
    let buffers = frames.chunks_exact_mut(STRIDE).zip(control.iter_mut());
    for ((message, vector), (frame, control)) in messages.iter_mut().zip(&mut vectors).zip(buffers) {
        let frame = &mut frame[TAG..TAG + MAX_FRAME];
        *vector = libc::iovec { iov_base: frame.as_mut_ptr().cast(), iov_len: frame.len() };
        message.msg_hdr.msg_iov = vector;
        message.msg_hdr.msg_iovlen = 1;
        message.msg_hdr.msg_control = control.as_mut_ptr().cast();
        message.msg_hdr.msg_controllen = size_of::<[u64; CONTROL_WORDS]>() as _;
    }
    // MSG_TRUNC: the length returned is the frame's own even where it did not fit.
    // SAFETY: all pointers in `messages` lead to `vectors`, `frames` and `control`, which are live,
    // exclusive, distinct for each message and of the lengths given; no time-out is passed.
    let returned = unsafe {
        libc::recvmmsg(
            fd.as_raw_fd(),
            messages.as_mut_ptr(),
            BATCH as u32,
            libc::MSG_DONTWAIT | libc::MSG_TRUNC,
            std::ptr::null_mut(),
        )
    };
    let count = match sys::check(returned) {
        Ok(count) => count as usize,
        Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => 0,
        Err(error) => return Err(error),
    };
    Ok(Arrived { count, lengths: messages.map(|m| (m.msg_len, m.msg_hdr.msg_controllen)) })
}

fn send_batch(fd: BorrowedFd<'_>, frames: &[Vec<u8>]) -> io::Result<usize> {
    // SAFETY: zeroes are a value of these C structs (null pointers, zero lengths).
    let (mut vectors, mut messages): ([libc::iovec; BATCH], [libc::mmsghdr; BATCH]) =
        unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
    let count = frames.len().min(BATCH);
    for ((message, vector), frame) in messages.iter_mut().zip(&mut vectors).zip(frames) {
        *vector = libc::iovec { iov_base: frame.as_ptr().cast_mut().cast(), iov_len: frame.len() };
        message.msg_hdr.msg_iov = vector;
        message.msg_hdr.msg_iovlen = 1;
    }
    // SAFETY: the first `count` messages lead to `vectors` and `frames`, which outlive the call and
    // which the kernel only reads.
    let returned =
        unsafe { libc::sendmmsg(fd.as_raw_fd(), messages.as_mut_ptr(), count as u32, libc::MSG_DONTWAIT) };
    sys::check(returned).map(|sent| sent as usize)
}
