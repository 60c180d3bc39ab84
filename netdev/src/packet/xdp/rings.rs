//! The rings of an AF_XDP socket: one side writes descriptors and a producer index, the other a consumer
//! index.

use crate::mapping::Mapping;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU32, Ordering};

/// Descriptor of a frame: address in the shared memory, and length (with options above it, which are 0).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Desc {
    pub(super) address: u64,
    pub(super) length: u32,
}

/// A ring, seen from this side. Indices increase forever; their low bits are positions.
#[derive(Debug)]
struct Ring {
    memory: Mapping,
    offsets: libc::xdp_ring_offset,
    mask: u32,
    /// Our own index: the entries that we have written or read, whether published to the kernel or not.
    own: u32,
    /// The kernel's index when last read.
    theirs: u32,
}

impl Ring {
    fn map(
        fd: BorrowedFd<'_>,
        page_offset: u64,
        offsets: libc::xdp_ring_offset,
        count: u32,
        entry_bytes: usize,
    ) -> io::Result<Ring> {
        let length = offsets.desc as usize + count as usize * entry_bytes;
        let memory = Mapping::of(fd, page_offset as libc::off_t, length)?;
        Ok(Ring { memory, offsets, mask: count - 1, own: 0, theirs: 0 })
    }

    fn producer(&self) -> &AtomicU32 {
        self.memory.word(self.offsets.producer as usize)
    }

    fn consumer(&self) -> &AtomicU32 {
        self.memory.word(self.offsets.consumer as usize)
    }

    fn place(&self, index: u32, entry_bytes: usize) -> usize {
        self.offsets.desc as usize + (index & self.mask) as usize * entry_bytes
    }
}

const DESC_BYTES: usize = 16;
const ADDRESS_BYTES: usize = 8;

/// A ring that this side produces to: free buffers for the kernel, or frames to send.
#[derive(Debug)]
pub(super) struct ToKernel(Ring);

/// A ring that this side consumes from: frames received, or frames sent.
#[derive(Debug)]
pub(super) struct FromKernel(Ring);

impl ToKernel {
    /// The ring for free buffers (`XDP_UMEM_FILL_RING`), already published.
    pub(super) fn fill(fd: BorrowedFd<'_>, at: libc::xdp_ring_offset, count: u32) -> io::Result<ToKernel> {
        Ring::map(fd, libc::XDP_UMEM_PGOFF_FILL_RING, at, count, ADDRESS_BYTES).map(ToKernel)
    }

    /// The ring for frames to send (`XDP_TX_RING`).
    pub(super) fn send(fd: BorrowedFd<'_>, at: libc::xdp_ring_offset, count: u32) -> io::Result<ToKernel> {
        Ring::map(fd, libc::XDP_PGOFF_TX_RING as u64, at, count, DESC_BYTES).map(ToKernel)
    }

    /// Number of entries that the kernel has not taken yet.
    pub(super) fn left(&mut self) -> u32 {
        self.0.theirs = self.0.consumer().load(Ordering::Acquire);
        self.0.own.wrapping_sub(self.0.theirs)
    }

    /// Adds an address. The caller never has more frames than the ring has positions.
    #[inline]
    pub(super) fn put_address(&mut self, address: u64) {
        let place = self.0.place(self.0.own, ADDRESS_BYTES);
        self.0.memory.double(place).store(address, Ordering::Relaxed);
        self.0.own = self.0.own.wrapping_add(1);
    }

    /// Adds a descriptor if there is room.
    #[inline]
    pub(super) fn put(&mut self, desc: Desc) -> bool {
        if self.0.own.wrapping_sub(self.0.theirs) > self.0.mask && self.left() > self.0.mask {
            return false;
        }
        self.write(self.0.own, desc, 0);
        self.0.own = self.0.own.wrapping_add(1);
        true
    }

    fn write(&self, index: u32, desc: Desc, options: u32) {
        let place = self.0.place(index, DESC_BYTES);
        self.0.memory.double(place).store(desc.address, Ordering::Relaxed);
        self.0.memory.word(place + 8).store(desc.length, Ordering::Relaxed);
        self.0.memory.word(place + 12).store(options, Ordering::Relaxed);
    }

    /// Invalidates the entries that the kernel has not taken, so that it skips them, and calls `taken_back`
    /// for each.
    pub(super) fn withdraw(&mut self, mut taken_back: impl FnMut(u64)) {
        for back in (1..=self.left()).rev() {
            let index = self.0.own.wrapping_sub(back);
            let place = self.0.place(index, DESC_BYTES);
            let address = self.0.memory.double(place).load(Ordering::Relaxed);
            if address != u64::MAX {
                // An undefined option. Not all of them: one says that the next descriptor belongs to the same
                // frame.
                self.write(index, Desc { address: u64::MAX, length: 0 }, 1 << 31);
                taken_back(address);
            }
        }
    }

    /// Publishes the added entries to the kernel.
    #[inline]
    pub(super) fn publish(&self) {
        // Release: everything that the index covers, frames included, is written before.
        self.0.producer().store(self.0.own, Ordering::Release);
    }

    /// Whether the kernel only looks when it is called.
    pub(super) fn needs_wakeup(&self) -> bool {
        let flags = self.0.memory.word(self.0.offsets.flags as usize).load(Ordering::Acquire);
        flags & libc::XDP_RING_NEED_WAKEUP != 0
    }
}

impl FromKernel {
    /// The ring of frames received (`XDP_RX_RING`).
    pub(super) fn received(
        fd: BorrowedFd<'_>,
        at: libc::xdp_ring_offset,
        count: u32,
    ) -> io::Result<FromKernel> {
        Ring::map(fd, libc::XDP_PGOFF_RX_RING as u64, at, count, DESC_BYTES).map(FromKernel)
    }

    /// The ring of frames sent (`XDP_UMEM_COMPLETION_RING`).
    pub(super) fn sent(fd: BorrowedFd<'_>, at: libc::xdp_ring_offset, count: u32) -> io::Result<FromKernel> {
        Ring::map(fd, libc::XDP_UMEM_PGOFF_COMPLETION_RING, at, count, ADDRESS_BYTES).map(FromKernel)
    }

    /// Whether there is anything to take.
    #[inline]
    fn any(&mut self) -> bool {
        if self.0.own == self.0.theirs {
            // Acquire: everything that the index covers, frames included, is visible.
            self.0.theirs = self.0.producer().load(Ordering::Acquire);
        }
        self.0.own != self.0.theirs
    }

    /// Takes the next address.
    #[inline]
    pub(super) fn take_address(&mut self) -> Option<u64> {
        self.any().then(|| {
            let place = self.0.place(self.0.own, ADDRESS_BYTES);
            self.0.own = self.0.own.wrapping_add(1);
            self.0.memory.double(place).load(Ordering::Relaxed)
        })
    }

    /// Takes the next descriptor.
    #[inline]
    pub(super) fn take(&mut self) -> Option<Desc> {
        self.any().then(|| {
            let place = self.0.place(self.0.own, DESC_BYTES);
            self.0.own = self.0.own.wrapping_add(1);
            let address = self.0.memory.double(place).load(Ordering::Relaxed);
            Desc { address, length: self.0.memory.word(place + 8).load(Ordering::Relaxed) }
        })
    }

    /// Returns the positions of taken entries to the kernel.
    #[inline]
    pub(super) fn release(&self) {
        self.0.consumer().store(self.0.own, Ordering::Release);
    }
}
