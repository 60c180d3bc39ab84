//! AF_PACKET with rings of slots in memory that kernel and process share (`TPACKET_V2`).
//!
//! ```text
//!  receiving   kernel fills ─ status USER ─▶ taken here ─ status KERNEL ─▶ kernel
//!  sending     filled here ─ SEND_REQUEST ─▶ kernel takes (SENDING) ─ AVAILABLE ─▶ here
//! ```
//!
//! The first word of a slot is its status and names the owner of the rest. Version 2 hands over single frames;
//! version 3 hands over blocks, and the last frames of a burst wait for a timer.

use super::extra::{Extra, TAG};
use super::{BATCH, BEYOND_MTU, Device, MAX_FRAME, Options, Stats, drops_since};
use crate::Error;
use crate::clock::WallOffset;
use crate::mapping::Mapping;
use crate::sys;
use p4rack_wire::Nanos;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

/// Size of a block of slots, a multiple of every page size.
const BLOCK: usize = 64 << 10;
/// Bytes before a frame in a slot: header, address, alignment. The kernel reports the exact position per
/// frame.
const BEFORE: usize = 96;
/// Offset at which the kernel expects a frame to send: behind the header, without an address.
const SEND_AT: usize = 32;
/// `struct virtio_net_hdr`, which precedes a frame to send.
const OFFLOADS: usize = 10;
/// Number of slots for sending.
const SEND_SLOTS: usize = 512;

/// A ring of slots and the position of the next one.
#[derive(Debug)]
struct Slots {
    memory: Mapping,
    slot_bytes: usize,
    /// Number of slots, a power of two.
    count: usize,
    at: usize,
}

impl Slots {
    /// Requests a ring (`PACKET_RX_RING`, `PACKET_TX_RING`) of at least `count` slots for the frames of an
    /// interface with the given MTU.
    fn open(fd: BorrowedFd<'_>, ring: libc::c_int, mtu: usize, count: usize) -> io::Result<Slots> {
        let longest = (mtu + BEYOND_MTU).min(MAX_FRAME);
        // A power of two, so that blocks have no remainder and slots are contiguous.
        let slot_bytes = (BEFORE + longest).next_power_of_two();
        let per_block = BLOCK / slot_bytes;
        let count = count.clamp(per_block, 1 << 16).next_power_of_two();
        let version = libc::tpacket_versions::TPACKET_V2 as libc::c_int;
        sys::set_option(fd, libc::SOL_PACKET, libc::PACKET_VERSION, &version)?;
        let request = libc::tpacket_req {
            tp_block_size: BLOCK as u32,
            tp_block_nr: (count / per_block) as u32,
            tp_frame_size: slot_bytes as u32,
            tp_frame_nr: count as u32,
        };
        sys::set_option(fd, libc::SOL_PACKET, ring, &request)?;
        Ok(Slots { memory: Mapping::of(fd, 0, count * slot_bytes)?, slot_bytes, count, at: 0 })
    }

    fn status(&self, at: usize) -> &AtomicU32 {
        self.memory.word((at & (self.count - 1)) * self.slot_bytes)
    }

    /// The next slot without its status, if the status says that it is ours.
    #[inline]
    fn next(&mut self, ours: impl FnOnce(u32) -> bool) -> Option<(u32, &mut [u8])> {
        // Acquire: makes visible the kernel's writes to the slot before the status.
        let status = self.status(self.at).load(Ordering::Acquire);
        if !ours(status) {
            return None;
        }
        // SAFETY: the status says that the kernel has handed the slot over, and it stays so until `pass_on`, which
        // needs `self` and so ends this borrow first. (Slots with frames to send are looked at again only outside
        // of the calls in which the kernel takes them.) The status itself is not part of it.
        let slot = unsafe { self.memory.part(self.at * self.slot_bytes + 4, self.slot_bytes - 4) };
        slot.map(|slot| (status, slot))
    }

    /// Passes the next slot to the kernel with a status, and advances.
    #[inline]
    fn pass_on(&mut self, status: u32) {
        // Release: makes everything written to the slot visible to the kernel first.
        self.status(self.at).store(status, Ordering::Release);
        self.at = (self.at + 1) & (self.count - 1);
    }
}

fn u16_at(slot: &[u8], at: usize) -> u16 {
    // Offsets in the kernel's header include the status, which the slot lacks.
    slot.get(at - 4..at - 2).and_then(|bytes| bytes.try_into().ok()).map_or(0, u16::from_ne_bytes)
}

fn u32_at(slot: &[u8], at: usize) -> u32 {
    slot.get(at - 4..at).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_ne_bytes)
}

#[derive(Debug)]
pub(super) struct Receiver {
    slots: Slots,
    fd: OwnedFd,
    stats: Stats,
}

impl Receiver {
    /// Opens the ring in the size of the requested receive buffer, which it also returns.
    pub(super) fn open(
        device: &Device<'_>,
        mtu: usize,
        options: &Options,
    ) -> Result<(Receiver, usize), Error> {
        let (fd, _) = device.socket(options)?;
        let longest = (mtu + BEYOND_MTU).min(MAX_FRAME);
        let count = options.receive_buffer_bytes / (BEFORE + longest).next_power_of_two();
        let opened = Slots::open(fd.as_fd(), libc::PACKET_RX_RING, mtu, count);
        let slots = device.try_to("setting up the ring for receiving on", opened)?;
        let protocol = device.choose(&fd, options.frames)?;
        device.bind(&fd, protocol)?;
        let bytes = slots.memory.len();
        Ok((Receiver { slots, fd, stats: Stats::default() }, bytes))
    }

    pub(super) fn receive(&mut self, mut frame: impl FnMut(&[u8], Nanos)) -> io::Result<usize> {
        let Receiver { slots, fd, stats } = self;
        let mut offset = None;
        for count in 0..BATCH {
            let Some((status, slot)) = slots.next(|status| status & libc::TP_STATUS_USER != 0) else {
                if count == 0 {
                    // The socket stays readable until its error is fetched.
                    sys::take_error(fd.as_fd())?;
                }
                return Ok(count);
            };
            // `struct tpacket2_hdr`.
            let (length, held) = (u32_at(slot, 4) as usize, u32_at(slot, 8) as usize);
            let start = usize::from(u16_at(slot, 12)).saturating_sub(4 + TAG);
            let wall_ns = u64::from(u32_at(slot, 16)) * 1_000_000_000 + u64::from(u32_at(slot, 20));
            let extra = Extra::from_status(status, u16_at(slot, 24), u16_at(slot, 26));
            match slot.get_mut(start..start + TAG + held) {
                Some(room) if held == length => {
                    let at = offset.get_or_insert_with(WallOffset::measure).monotonic(wall_ns);
                    frame(extra.complete(room, stats), at);
                }
                _ => stats.too_long += 1,
            }
            slots.pass_on(libc::TP_STATUS_KERNEL);
        }
        Ok(BATCH)
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

/// Status of a slot that the kernel has not taken.
const NOT_TAKEN: u32 = libc::TP_STATUS_SEND_REQUEST | libc::TP_STATUS_WRONG_FORMAT;

#[derive(Debug)]
pub(super) struct Sender {
    slots: Slots,
    fd: OwnedFd,
    /// Maximum frame without a tag.
    longest: usize,
    /// Slots before the next one that the kernel was not asked to send yet.
    waiting: usize,
    stats: Stats,
}

impl Sender {
    pub(super) fn open(device: &Device<'_>, mtu: usize, options: &Options) -> Result<Sender, Error> {
        let (fd, _) = device.socket(&Options { promiscuous: false, ..*options })?;
        let opened = (|| {
            // `copy_thresh`: copy the whole frame immediately. Otherwise the kernel lends out pages of the
            // ring, and copies them when the frame leaves for another namespace.
            let on: libc::c_int = 1;
            sys::set_option(fd.as_fd(), libc::SOL_PACKET, libc::PACKET_VNET_HDR, &on)?;
            Slots::open(fd.as_fd(), libc::PACKET_TX_RING, mtu, SEND_SLOTS)
        })();
        let slots = device.try_to("setting up the ring for sending on", opened)?;
        device.bind(&fd, 0)?;
        let longest = (mtu + 14).min(MAX_FRAME);
        Ok(Sender { slots, fd, longest, waiting: 0, stats: Stats::default() })
    }

    pub(super) fn send(&mut self, frame: &mut Vec<u8>) {
        if is_too_long(frame, self.longest) {
            self.stats.send_refused += 1;
        } else {
            if self.waiting == BATCH {
                self.flush();
            }
            match self.slots.next(|status| status == libc::TP_STATUS_AVAILABLE) {
                Some((_, slot)) => {
                    fill(slot, frame);
                    self.slots.pass_on(libc::TP_STATUS_SEND_REQUEST);
                    self.waiting += 1;
                }
                None => self.stats.send_full += 1,
            }
        }
        frame.clear();
    }

    pub(super) fn flush(&mut self) {
        while self.waiting > 0 {
            let result = sys::send_nothing(self.fd.as_fd());
            // The kernel proceeds from slot to slot and stops at the first one that it rejects.
            let first = self.slots.at + self.slots.count - self.waiting;
            let status = |i: usize| self.slots.status(first + i).load(Ordering::Acquire);
            let taken = (0..self.waiting).take_while(|i| status(*i) & NOT_TAKEN == 0).count();
            self.waiting -= taken;
            self.stats.sent += taken as u64;
            match result {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if self.waiting > 0 => {
                    self.stats.refused(&error);
                    self.leave_out_first();
                }
                _ if taken == 0 => {
                    self.stats.send_refused += 1;
                    self.leave_out_first();
                }
                _ => {}
            }
        }
    }

    /// Removes the first waiting frame from the ring. Later ones move up, because the kernel stays at its
    /// slot.
    fn leave_out_first(&mut self) {
        let (end, mask) = (self.slots.at, self.slots.count - 1);
        let mut moved = Vec::new();
        self.slots.at = (end + self.slots.count - self.waiting) & mask;
        for _ in 1..self.waiting {
            let to = self.slots.at;
            self.slots.at = (to + 1) & mask;
            if let Some((_, slot)) = self.slots.next(|_| true) {
                moved.clear();
                moved.extend_from_slice(slot);
            }
            self.slots.at = to;
            if let Some((_, slot)) = self.slots.next(|_| true) {
                slot.copy_from_slice(&moved);
            }
            self.slots.pass_on(libc::TP_STATUS_SEND_REQUEST);
        }
        self.slots.status(self.slots.at).store(libc::TP_STATUS_AVAILABLE, Ordering::Release);
        self.waiting -= 1;
    }

    pub(super) fn stats(&self) -> Stats {
        self.stats
    }
}

/// Whether a frame is too long for an interface that accepts `longest` bytes without tag.
pub(crate) fn is_too_long(frame: &[u8], longest: usize) -> bool {
    frame.len() > longest && (frame.len() > longest + TAG || frame.get(12..14) != Some(&[0x81, 0]))
}

/// Writes a frame to a slot (without its status). It fits, because slots have room for the longest frame with
/// two tags.
fn fill(slot: &mut [u8], frame: &[u8]) {
    let length = OFFLOADS + frame.len();
    slot[..4].copy_from_slice(&(length as u32).to_ne_bytes());
    let room = &mut slot[SEND_AT - 4..][..length];
    room[..OFFLOADS].fill(0);
    // `hdr_len`: this much is copied.
    room[2..4].copy_from_slice(&(frame.len() as u16).to_ne_bytes());
    room[OFFLOADS..].copy_from_slice(frame);
}
