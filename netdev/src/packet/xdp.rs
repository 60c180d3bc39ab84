//! AF_XDP: frames are taken from an interface before the kernel's own network code sees them.
//!
//! ```text
//!  receiving   free frames ─ fill ring ─▶ kernel copies into them ─ receive ring ─▶ here
//!  sending     here ─ send ring ─▶ kernel copies from them ─ completion ring ─▶ free frames
//! ```
//!
//! The frames of both directions are in one piece of shared memory, in halves that are never exchanged.
//!
//! Two facts that other sockets receive are missing here. Whether a checksum was left to the hardware is seen from
//! the checksum: a kernel that leaves it writes the pseudo header's sum there. Whether the sender's interface took
//! the 802.1Q tag out of the frame cannot be seen: such a tag is lost, unless the sending interface has its
//! `tx-vlan` offload off.

mod program;
mod rings;

use super::ring::is_too_long;
use super::{BATCH, BEYOND_MTU, Device, Options, Stats};
use crate::mapping::Mapping;
use crate::{Error, Links, checksum, clock, ethtool, sys};
use p4rack_wire::Nanos;
use rings::{Desc, FromKernel, ToKernel};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// Bytes that the kernel reserves at the start of a frame's buffer.
const HEADROOM: usize = 256;
/// Maximum buffer of a frame: a page.
const MAX_ROOM: usize = 4096;
/// Maximum MTU that fits.
pub const MAX_MTU: usize = MAX_ROOM - HEADROOM - BEYOND_MTU;
/// Number of frames that may wait to be received.
const RECEIVE: std::ops::RangeInclusive<usize> = 64..=4096;
/// Number of frames that may wait to be sent.
const SEND: u32 = 2048;

/// Keeps the socket alive; shared by both halves.
#[derive(Debug)]
struct Socket {
    /// Dropped first: the program has to go before the socket to which it redirects.
    _link: OwnedFd,
    _promiscuous: Option<OwnedFd>,
    fd: OwnedFd,
    memory: Mapping,
    room: usize,
}

impl Socket {
    /// The bytes of a frame.
    ///
    /// # Safety
    /// The kernel must have handed the frame over. Only the half that the frame belongs to may call this, for one
    /// frame at a time.
    #[allow(clippy::mut_from_ref)]
    unsafe fn frame(&self, address: u64, length: usize) -> Option<&mut [u8]> {
        // SAFETY: by the caller's promise.
        unsafe { self.memory.part(usize::try_from(address).ok()?, length) }
    }
}

/// Opens a socket on queue 0 of an interface and redirects its frames there. The third result is the size of
/// the receive buffer.
pub(crate) fn open(device: &Device<'_>, options: &Options) -> Result<(Receiver, Sender, usize), Error> {
    let instead = |why: String| {
        let source = io::Error::new(io::ErrorKind::Unsupported, why);
        Error::new(format!("opening an AF_XDP socket on interface `{}`", device.name), source)
    };
    let mtu = Links::open()?.get(device.name)?.mtu as usize;
    if mtu > MAX_MTU {
        return Err(instead(format!("its MTU is {mtu}, and frames beyond {MAX_MTU} do not fit"))
            .help("choose --io ring or --io packet, or a smaller MTU: `ip link set … mtu …`"));
    }
    let queues = ethtool::receive_queues(device.name);
    if queues > 1 {
        let set = format!("`ethtool -L {} combined 1`, or choose --io ring or --io packet", device.name);
        return Err(instead(format!("it has {queues} receive queues, and one is read")).help(set));
    }
    let refused = |error: Error| match error.source.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => {
            error.help("AF_XDP needs root outside of user namespaces; choose --io ring or --io packet")
        }
        Some(libc::EBUSY | libc::EEXIST) => {
            error.help("another XDP program is there: `ip link` shows it; or choose --io ring or --io packet")
        }
        _ => error.help("choose --io ring or --io packet"),
    };
    let opened = set_up(device, mtu, options);
    let (receiver, sender) = device
        .try_to("opening an AF_XDP socket on", opened)
        .map_err(|error| refused(Error { help: None, ..error }))?;
    let bytes = receiver.frames * receiver.socket.room;
    Ok((receiver, sender, bytes))
}

fn set_up(device: &Device<'_>, mtu: usize, options: &Options) -> io::Result<(Receiver, Sender)> {
    let room = (HEADROOM + mtu + BEYOND_MTU).next_power_of_two().max(2048);
    let receive = (options.receive_buffer_bytes / room).clamp(*RECEIVE.start(), *RECEIVE.end());
    let receive = 1usize << receive.ilog2();
    let fd = sys::socket(libc::AF_XDP, libc::SOCK_RAW, 0)?;
    let memory = Mapping::fresh((receive + SEND as usize) * room)?;
    let area = libc::xdp_umem_reg {
        addr: memory.address(),
        len: memory.len() as u64,
        chunk_size: room as u32,
        headroom: 0,
        flags: 0,
        tx_metadata_len: 0,
    };
    sys::set_option(fd.as_fd(), libc::SOL_XDP, libc::XDP_UMEM_REG, &area)?;
    for (ring, count) in [
        (libc::XDP_UMEM_FILL_RING, receive as libc::c_int),
        (libc::XDP_RX_RING, receive as libc::c_int),
        (libc::XDP_TX_RING, SEND as libc::c_int),
        (libc::XDP_UMEM_COMPLETION_RING, SEND as libc::c_int),
    ] {
        sys::set_option(fd.as_fd(), libc::SOL_XDP, ring, &count)?;
    }
    let at: libc::xdp_mmap_offsets = sys::get_option(fd.as_fd(), libc::SOL_XDP, libc::XDP_MMAP_OFFSETS)?;
    let mut fill = ToKernel::fill(fd.as_fd(), at.fr, receive as u32)?;
    let received = FromKernel::received(fd.as_fd(), at.rx, receive as u32)?;
    let send = ToKernel::send(fd.as_fd(), at.tx, SEND)?;
    let sent = FromKernel::sent(fd.as_fd(), at.cr, SEND)?;
    (0..receive).for_each(|frame| fill.put_address((frame * room) as u64));
    fill.publish();
    sys::set_buffers(fd.as_fd(), options.receive_buffer_bytes)?;
    let address = libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        sxdp_flags: libc::XDP_USE_NEED_WAKEUP,
        sxdp_ifindex: device.index as u32,
        sxdp_queue_id: 0,
        sxdp_shared_umem_fd: 0,
    };
    sys::bind(fd.as_fd(), &address)?;
    // A packet socket that receives nothing keeps the interface in promiscuous mode.
    let promiscuous = match device.socket(&Options { receive_buffer_bytes: 0, ..*options }) {
        Ok((fd, _)) => options.promiscuous.then_some(fd),
        Err(error) => return Err(error.source),
    };
    let link = program::attach(device.index, fd.as_fd())?;
    let socket = Arc::new(Socket { _link: link, _promiscuous: promiscuous, fd, memory, room });
    let free = (receive..receive + SEND as usize).map(|frame| (frame * room) as u64).collect();
    let stats = Stats::default();
    let receiver = Receiver { socket: socket.clone(), fill, received, frames: receive, stats };
    Ok((receiver, Sender { socket, send, sent, free, longest: mtu + 14, waiting: 0, stats }))
}

/// The receiving half.
#[derive(Debug)]
pub(crate) struct Receiver {
    socket: Arc<Socket>,
    fill: ToKernel,
    received: FromKernel,
    frames: usize,
    stats: Stats,
}

impl Receiver {
    pub(crate) fn receive(&mut self, mut frame: impl FnMut(&[u8], Nanos)) -> io::Result<usize> {
        let mut count = 0;
        let mut at = None;
        while count < BATCH
            && let Some(Desc { address, length }) = self.received.take()
        {
            count += 1;
            // SAFETY: the receive ring handed the frame over; it goes back to the kernel with `publish` below, when
            // this borrow has ended. Frames of this half are the kernel's to choose: from the fill ring alone.
            if let Some(bytes) = unsafe { self.socket.frame(address, length as usize) } {
                self.stats.checksums_finished += u64::from(checksum::finish_if_left(bytes));
                self.stats.received += 1;
                frame(bytes, *at.get_or_insert_with(clock::now));
            }
            self.fill.put_address(address & !(self.socket.room as u64 - 1));
        }
        if count > 0 {
            self.received.release();
            self.fill.publish();
        }
        Ok(count)
    }

    pub(crate) fn stats(&mut self) -> Stats {
        let kernel =
            sys::get_option::<libc::xdp_statistics>(self.as_fd(), libc::SOL_XDP, libc::XDP_STATISTICS);
        if let Ok(kernel) = kernel {
            // Drops: frames that found no free buffer, and frames that were too long.
            self.stats.kernel_drops = kernel.rx_ring_full + kernel.rx_fill_ring_empty_descs;
            self.stats.too_long = kernel.rx_dropped.saturating_sub(kernel.rx_fill_ring_empty_descs);
        }
        self.stats
    }
}

impl AsFd for Receiver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.fd.as_fd()
    }
}

/// The sending half.
#[derive(Debug)]
pub(crate) struct Sender {
    socket: Arc<Socket>,
    send: ToKernel,
    sent: FromKernel,
    free: Vec<u64>,
    /// Maximum frame without a tag; the kernel does not check it.
    longest: usize,
    /// Frames added since the last flush.
    waiting: usize,
    stats: Stats,
}

impl Sender {
    pub(crate) fn send(&mut self, frame: &mut Vec<u8>) {
        if is_too_long(frame, self.longest) {
            self.stats.send_refused += 1;
        } else {
            if self.waiting == BATCH {
                self.flush();
            }
            self.put(frame);
        }
        frame.clear();
    }

    fn put(&mut self, frame: &[u8]) {
        if self.free.is_empty() {
            self.reap();
        }
        let Some(address) = self.free.pop() else {
            self.stats.send_full += 1;
            return;
        };
        // SAFETY: free frames of this half belong to neither the kernel nor a caller: they are not yet sent, or
        // completed.
        if let Some(room) = unsafe { self.socket.frame(address, frame.len()) } {
            room.copy_from_slice(frame);
        }
        if self.send.put(Desc { address, length: frame.len() as u32 }) {
            self.waiting += 1;
            self.stats.sent += 1;
        } else {
            self.free.push(address);
            self.stats.send_full += 1;
        }
    }

    /// Reclaims the buffers of frames that were sent.
    fn reap(&mut self) {
        while let Some(address) = self.sent.take_address() {
            self.free.push(address);
        }
        self.sent.release();
    }

    pub(crate) fn flush(&mut self) {
        if self.waiting == 0 {
            return;
        }
        self.waiting = 0;
        self.send.publish();
        let mut left = self.send.left();
        // Consecutive calls without visible progress.
        let mut in_vain = 0;
        while left > 0 && self.send.needs_wakeup() {
            let result = sys::send_nothing(self.socket.fd.as_fd());
            let before = std::mem::replace(&mut left, self.send.left());
            in_vain = if left == before { in_vain + 1 } else { 0 };
            match result.err().and_then(|error| error.raw_os_error()) {
                // With each call, the kernel skips one of the withdrawn frames.
                None if in_vain <= left => {}
                Some(libc::EBUSY) if left < before => {
                    // One frame met a full queue; the kernel continues with the next.
                    self.stats.sent -= 1;
                    self.stats.send_full += 1;
                }
                Some(libc::EAGAIN | libc::EINTR | libc::ENOBUFS) if left < before => {}
                // Frames that wait for room in the socket's buffer go with the next batch.
                None | Some(libc::EAGAIN | libc::EINTR | libc::ENOBUFS | libc::EBUSY) => break,
                Some(_) => {
                    let Sender { send, free, stats, .. } = self;
                    send.withdraw(|address| {
                        free.push(address);
                        stats.sent -= 1;
                        stats.send_refused += 1;
                    });
                    break;
                }
            }
        }
        self.reap();
    }

    pub(crate) fn stats(&self) -> Stats {
        self.stats
    }
}
