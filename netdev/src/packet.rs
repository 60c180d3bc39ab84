//! Raw frames of one interface: an AF_PACKET socket, read and written in batches.
//!
//! What the kernel does to a frame on its way to such a socket is undone here: an 802.1Q tag that it
//! moved aside comes back into the frame with all its bits, a checksum left to the hardware is
//! computed. What is written to an interface is never read back.

use crate::clock::{self, WallOffset};
use crate::error::{Context, NEED_PRIVILEGE};
use crate::{Error, checksum, sys};
use p4rack_wire::Nanos;
use serde::Serialize;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Frames read or written with one system call, at most.
pub const BATCH: usize = 32;
/// Longest frame that is taken, without FCS: a jumbo frame.
pub const MAX_FRAME: usize = 9_216;

const TAG: usize = 4;
/// Room before each frame for a tag that comes back.
const STRIDE: usize = (TAG + MAX_FRAME).next_multiple_of(64);
/// Control bytes a frame, in words: auxiliary data (16 + 20) and a time stamp (16 + 16), aligned.
const CONTROL_WORDS: usize = 16;

/// What happened on a socket so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Stats {
    /// Frames handed out.
    pub received: u64,
    /// Frames that the kernel dropped because the receive buffer was full.
    pub kernel_drops: u64,
    /// Frames dropped because they were longer than [`MAX_FRAME`] (an unsegmented frame of a sender
    /// that left segmentation to the hardware).
    pub too_long: u64,
    /// Frames whose TCP or UDP checksum had to be computed.
    pub checksums_finished: u64,
    /// Frames given to the kernel.
    pub sent: u64,
    /// Frames that the kernel refused because its queue was full.
    pub send_full: u64,
    /// Frames that the kernel refused otherwise (interface down, longer than the MTU).
    pub send_refused: u64,
}

/// How a socket is opened.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Receive buffer asked for.
    pub receive_buffer_bytes: usize,
    /// Take frames for all MAC addresses.
    pub promiscuous: bool,
    /// Give frames to the driver at once instead of the interface's queueing discipline.
    pub bypass_qdisc: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { receive_buffer_bytes: 8 << 20, promiscuous: true, bypass_qdisc: true }
    }
}

/// An AF_PACKET socket bound to one interface of the network namespace it was opened in.
#[derive(Debug)]
pub struct PacketSocket {
    fd: OwnedFd,
    name: String,
    receive_buffer_bytes: usize,
    frames: Box<[u8]>,
    control: Box<[[u64; CONTROL_WORDS]]>,
    to_send: Vec<Vec<u8>>,
    waiting: usize,
    stats: Stats,
    /// Holds the name under which other p4rack processes see that this interface is taken.
    _claim: UnixDatagram,
}

impl PacketSocket {
    /// Opens a socket on `interface` of the calling thread's network namespace.
    pub fn open(interface: &str, options: &Options) -> Result<PacketSocket, Error> {
        let what = |doing: &str| format!("{doing} interface `{interface}`");
        let index = sys::interface_index(interface)
            .context(|| what("looking for"))
            .map_err(|error| error.help("`ip link` lists the interfaces there are"))?;
        let claim = claim(interface)?;
        // Protocol 0 receives nothing until the socket is bound: no frame of another interface slips in.
        let fd = sys::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_NONBLOCK, 0)
            .context(|| what("opening a raw socket on"))
            .map_err(|error| error.help_if_denied(NEED_PRIVILEGE))?;
        let receive_buffer_bytes =
            configure(&fd, index, options).context(|| what("setting up the raw socket on"))?;
        let address = libc::sockaddr_ll {
            sll_family: libc::AF_PACKET as u16,
            sll_protocol: (libc::ETH_P_ALL as u16).to_be(),
            sll_ifindex: index,
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 0,
            sll_addr: [0; 8],
        };
        sys::bind_packet(fd.as_fd(), &address).context(|| what("binding to"))?;
        Ok(PacketSocket {
            fd,
            name: interface.to_owned(),
            receive_buffer_bytes,
            frames: vec![0; STRIDE * BATCH].into_boxed_slice(),
            control: vec![[0; CONTROL_WORDS]; BATCH].into_boxed_slice(),
            to_send: (0..BATCH).map(|_| Vec::with_capacity(2048)).collect(),
            waiting: 0,
            stats: Stats::default(),
            _claim: claim,
        })
    }

    /// The interface's name.
    pub fn interface(&self) -> &str {
        &self.name
    }

    /// Receive buffer that the kernel granted, in its own accounting.
    pub fn receive_buffer_bytes(&self) -> usize {
        self.receive_buffer_bytes
    }

    /// Reads what has arrived, one batch at most, and calls `frame` with each frame and its time of
    /// arrival. Returns how many; fewer than [`BATCH`] means that nothing more waits.
    ///
    /// Errors: the interface went down or vanished.
    pub fn receive(&mut self, mut frame: impl FnMut(&[u8], Nanos)) -> io::Result<usize> {
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
            let room = &mut self.frames[i * STRIDE..][..TAG + length];
            let extra = Extra::parse(&self.control[i], *control_bytes);
            let bytes = match extra.tag {
                Some(tag) if length >= 12 => {
                    room.copy_within(TAG..TAG + 12, 0);
                    room[12..16].copy_from_slice(&tag);
                    &mut room[..]
                }
                _ => &mut room[TAG..],
            };
            if extra.checksum_missing && checksum::finish(bytes) {
                self.stats.checksums_finished += 1;
            }
            self.stats.received += 1;
            let at = extra.wall_ns.map_or_else(clock::now, |ns| offset.monotonic(ns));
            frame(bytes, at);
        }
        Ok(arrived.count)
    }

    /// Puts a frame into the next batch, leaving an older buffer in `frame`. A full batch is sent.
    pub fn send(&mut self, frame: &mut Vec<u8>) {
        std::mem::swap(&mut self.to_send[self.waiting], frame);
        frame.clear();
        self.waiting += 1;
        if self.waiting == self.to_send.len() {
            self.flush();
        }
    }

    /// Gives the batch to the kernel. A frame that it refuses is dropped and counted.
    pub fn flush(&mut self) {
        let mut from = 0;
        while from < self.waiting {
            match send_batch(self.fd.as_fd(), &self.to_send[from..self.waiting]) {
                Ok(sent) => {
                    self.stats.sent += sent as u64;
                    from += sent;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    match error.raw_os_error() {
                        Some(libc::ENOBUFS | libc::EAGAIN) => self.stats.send_full += 1,
                        _ => self.stats.send_refused += 1,
                    }
                    from += 1;
                }
            }
        }
        self.waiting = 0;
    }

    /// Counters, with the kernel's added.
    pub fn stats(&mut self) -> Stats {
        // Reading sets the kernel's counter to zero.
        if let Ok(kernel) =
            sys::get_option::<libc::tpacket_stats>(self.fd.as_fd(), libc::SOL_PACKET, libc::PACKET_STATISTICS)
        {
            self.stats.kernel_drops += u64::from(kernel.tp_drops);
        }
        self.stats
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Whether the kernel has AF_XDP sockets and gives them to this process.
pub fn xdp_is_there() -> bool {
    sys::socket(libc::AF_XDP, libc::SOCK_RAW, 0).is_ok()
}

/// Marks an interface as taken, in its network namespace, until the socket is dropped: abstract
/// socket names belong to the namespace and vanish with the process.
fn claim(interface: &str) -> Result<UnixDatagram, Error> {
    SocketAddr::from_abstract_name(format!("p4rack/interface/{interface}"))
        .and_then(|address| UnixDatagram::bind_addr(&address))
        .context(|| format!("taking interface `{interface}`"))
        .map_err(|error| match error.source.kind() {
            io::ErrorKind::AddrInUse => {
                error.help("another p4rack switch or host agent uses this interface: end it, or name another")
            }
            _ => error,
        })
}

/// Sets all options; returns the receive buffer granted.
fn configure(fd: &OwnedFd, index: i32, options: &Options) -> io::Result<usize> {
    let fd = fd.as_fd();
    let on: libc::c_int = 1;
    sys::set_option(fd, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &on)?;
    sys::set_option(fd, libc::SOL_PACKET, libc::PACKET_AUXDATA, &on)?;
    sys::set_option(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &on)?;
    if options.bypass_qdisc {
        sys::set_option(fd, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &on)?;
    }
    if options.promiscuous {
        let membership = libc::packet_mreq {
            mr_ifindex: index,
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        sys::set_option(fd, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &membership)?;
    }
    let bytes = options.receive_buffer_bytes.min(libc::c_int::MAX as usize / 2) as libc::c_int;
    for (force, plain) in [(libc::SO_RCVBUFFORCE, libc::SO_RCVBUF), (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF)] {
        // Only root of the first user namespace may exceed the limit; everybody else gets the limit.
        if sys::set_option(fd, libc::SOL_SOCKET, force, &bytes).is_err() {
            sys::set_option(fd, libc::SOL_SOCKET, plain, &bytes)?;
        }
    }
    sys::get_option::<libc::c_int>(fd, libc::SOL_SOCKET, libc::SO_RCVBUF).map(|bytes| bytes as usize)
}

/// What came with a frame beside its bytes.
#[derive(Debug, Default, PartialEq, Eq)]
struct Extra {
    tag: Option<[u8; TAG]>,
    checksum_missing: bool,
    wall_ns: Option<u64>,
}

impl Extra {
    /// Reads the control messages: each a header of length (word), level and type, then data.
    fn parse(words: &[u64; CONTROL_WORDS], bytes: usize) -> Extra {
        let mut extra = Extra::default();
        let mut left = &words[..bytes.div_ceil(8).min(CONTROL_WORDS)];
        while let [length, level_type, data @ ..] = left {
            let level_type = level_type.to_ne_bytes();
            let half = |at: usize| i32::from_ne_bytes([0, 1, 2, 3].map(|i| level_type[at + i]));
            match (half(0), half(4)) {
                (libc::SOL_PACKET, libc::PACKET_AUXDATA) => extra.auxiliary(data),
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                    if let [seconds, nanos, ..] = data {
                        extra.wall_ns = Some(seconds.wrapping_mul(1_000_000_000).wrapping_add(*nanos));
                    }
                }
                _ => {}
            }
            let words = (*length as usize).div_ceil(8).max(2);
            left = left.get(words..).unwrap_or(&[]);
        }
        extra
    }

    /// `struct tpacket_auxdata`: status, len, snaplen (32 bits each), mac, net, tci, tpid (16 each).
    fn auxiliary(&mut self, data: &[u64]) {
        let [first, _, third, ..] = data else { return };
        let first = first.to_ne_bytes();
        let third = third.to_ne_bytes();
        let status = u32::from_ne_bytes([first[0], first[1], first[2], first[3]]);
        // Words: status+len, snaplen+mac+net, tci+tpid.
        let tci = u16::from_ne_bytes([third[0], third[1]]).to_be_bytes();
        let tpid = match status & libc::TP_STATUS_VLAN_TPID_VALID {
            0 => 0x8100u16,
            _ => u16::from_ne_bytes([third[2], third[3]]),
        }
        .to_be_bytes();
        if status & libc::TP_STATUS_VLAN_VALID != 0 {
            self.tag = Some([tpid[0], tpid[1], tci[0], tci[1]]);
        }
        self.checksum_missing = status & libc::TP_STATUS_CSUMNOTREADY != 0;
    }
}

/// Lengths (frame, control) of what one `recvmmsg` brought.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn message(level: i32, kind: i32, data: &[u8]) -> Vec<u8> {
        let mut bytes = (16 + data.len() as u64).to_ne_bytes().to_vec();
        bytes.extend(level.to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(data);
        bytes.resize(bytes.len().div_ceil(8) * 8, 0);
        bytes
    }

    fn parse(bytes: &[u8]) -> Extra {
        let mut words = [0; CONTROL_WORDS];
        for (word, chunk) in words.iter_mut().zip(bytes.chunks(8)) {
            *word = u64::from_ne_bytes(chunk.try_into().unwrap());
        }
        Extra::parse(&words, bytes.len())
    }

    fn auxiliary(status: u32, tci: u16, tpid: u16) -> Vec<u8> {
        let mut data = status.to_ne_bytes().to_vec();
        data.extend([0; 12]);
        data.extend(tci.to_ne_bytes());
        data.extend(tpid.to_ne_bytes());
        message(libc::SOL_PACKET, libc::PACKET_AUXDATA, &data)
    }

    #[test]
    fn tag_and_time_stamp_are_found_in_either_order() {
        let status = libc::TP_STATUS_VLAN_VALID | libc::TP_STATUS_VLAN_TPID_VALID;
        let tag = auxiliary(status, 0xb005, 0x88a8);
        let mut stamp = 7u64.to_ne_bytes().to_vec();
        stamp.extend(9u64.to_ne_bytes());
        let stamp = message(libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS, &stamp);
        let expected =
            Extra { tag: Some([0x88, 0xa8, 0xb0, 5]), checksum_missing: false, wall_ns: Some(7_000_000_009) };
        assert_eq!(parse(&[tag.clone(), stamp.clone()].concat()), expected);
        assert_eq!(parse(&[stamp, tag].concat()), expected);
    }

    #[test]
    fn a_tag_without_tpid_is_a_customer_tag_and_no_tag_is_none() {
        assert_eq!(parse(&auxiliary(libc::TP_STATUS_VLAN_VALID, 1, 0)).tag, Some([0x81, 0, 0, 1]));
        let extra = parse(&auxiliary(libc::TP_STATUS_CSUMNOTREADY, 1, 0x8100));
        assert_eq!((extra.tag, extra.checksum_missing), (None, true));
    }

    #[test]
    fn odd_control_bytes_do_no_harm() {
        assert_eq!(parse(&[]), Extra::default());
        assert_eq!(parse(&[0; 128]), Extra::default());
        assert_eq!(parse(&[0xff; 128]), Extra::default());
        assert_eq!(parse(&auxiliary(!0, 1, 1)[..24]), Extra::default());
    }
}
