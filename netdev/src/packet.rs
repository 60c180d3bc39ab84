//! Raw frames of one interface, read and written in batches, through one of three kinds of I/O.
//!
//! This module undoes the kernel's changes of a frame on its way to such a socket: it puts an 802.1Q tag that
//! was moved out back into the frame, with all its bits, and computes a checksum that was left to the
//! hardware. Frames written to an interface are not read back.

mod choice;
mod extra;
mod messages;
mod ring;
mod xdp;

use crate::error::{Context, NEED_PRIVILEGE};
use crate::link::VethEnd;
use crate::{Error, Links, NetNs, sys};
pub use choice::Frames;
use p4rack_wire::Nanos;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io;
use std::ops::Add;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::str::FromStr;

/// Maximum frames per read or write.
pub const BATCH: usize = 32;
/// Maximum frame length, without FCS: a jumbo frame.
pub const MAX_FRAME: usize = 9_216;
/// Bytes of a frame beyond its interface's MTU: the Ethernet header and two tags.
const BEYOND_MTU: usize = 14 + 2 * 4;

/// Kind of I/O through which frames are exchanged with the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Io {
    /// AF_PACKET with one system call per batch, which copies each frame. Works on every interface.
    #[default]
    Packet,
    /// AF_PACKET with memory shared with the kernel. Works on every interface; the MTU at the time of opening
    /// limits the frame length.
    Ring,
    /// AF_XDP: takes frames before the kernel's network stack sees them. Requires kernel support, privileges
    /// outside of user namespaces, a single receive queue, and an MTU that fits a page.
    Xdp,
}

impl Io {
    /// All kinds.
    pub const ALL: [Io; 3] = [Io::Packet, Io::Ring, Io::Xdp];

    /// The name that [`Io::from_str`] takes.
    pub fn name(self) -> &'static str {
        match self {
            Io::Packet => "packet",
            Io::Ring => "ring",
            Io::Xdp => "xdp",
        }
    }
}

impl fmt::Display for Io {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Io {
    type Err = String;
    fn from_str(text: &str) -> Result<Io, String> {
        let found = Io::ALL.into_iter().find(|io| io.name() == text);
        found.ok_or_else(|| format!("`{text}` is not packet, ring or xdp"))
    }
}

/// Counters of a socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stats {
    /// Frames delivered to the caller.
    pub received: u64,
    /// Frames dropped by the kernel because the receive buffer was full.
    pub kernel_drops: u64,
    /// Frames dropped because they were longer than [`MAX_FRAME`] or a slot of the ring (unsegmented frames
    /// of a sender that left segmentation to the hardware).
    pub too_long: u64,
    /// Frames whose TCP or UDP checksum had to be computed.
    pub checksums_finished: u64,
    /// Frames handed to the kernel.
    pub sent: u64,
    /// Frames rejected by the kernel because its queue was full.
    pub send_full: u64,
    /// Frames rejected by the kernel for other reasons (interface down, frame longer than the MTU).
    pub send_refused: u64,
}

impl Add for Stats {
    type Output = Stats;
    fn add(self, other: Stats) -> Stats {
        Stats {
            received: self.received + other.received,
            kernel_drops: self.kernel_drops + other.kernel_drops,
            too_long: self.too_long + other.too_long,
            checksums_finished: self.checksums_finished + other.checksums_finished,
            sent: self.sent + other.sent,
            send_full: self.send_full + other.send_full,
            send_refused: self.send_refused + other.send_refused,
        }
    }
}

impl Stats {
    /// Counts a frame that the kernel rejected.
    fn refused(&mut self, error: &io::Error) {
        match error.raw_os_error() {
            Some(libc::ENOBUFS | libc::EAGAIN) => self.send_full += 1,
            _ => self.send_refused += 1,
        }
    }
}

/// Options of a socket.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Kind of I/O.
    pub io: Io,
    /// Requested size of the receive buffer.
    pub receive_buffer_bytes: usize,
    /// Whether to receive frames for all MAC addresses.
    pub promiscuous: bool,
    /// Whether to pass frames directly to the driver instead of the queueing discipline. AF_XDP always does.
    pub bypass_qdisc: bool,
    /// Which frames to receive. AF_XDP takes all.
    pub frames: Frames,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            io: Io::Packet,
            receive_buffer_bytes: 8 << 20,
            promiscuous: true,
            bypass_qdisc: true,
            frames: Frames::All,
        }
    }
}

/// The receiving half of a socket.
#[derive(Debug)]
pub struct Receiver {
    kind: Receiving,
    name: String,
    receive_buffer_bytes: usize,
    /// Shows other processes that these frames are taken.
    _claim: OwnedFd,
}

#[derive(Debug)]
enum Receiving {
    Packet(messages::Receiver),
    Ring(ring::Receiver),
    Xdp(xdp::Receiver),
}

impl Receiver {
    /// Name of the interface.
    pub fn interface(&self) -> &str {
        &self.name
    }

    /// Kind of I/O.
    pub fn io(&self) -> Io {
        match &self.kind {
            Receiving::Packet(_) => Io::Packet,
            Receiving::Ring(_) => Io::Ring,
            Receiving::Xdp(_) => Io::Xdp,
        }
    }

    /// Size of the receive buffer that the kernel granted, in its own accounting.
    pub fn receive_buffer_bytes(&self) -> usize {
        self.receive_buffer_bytes
    }

    /// Reads the next batch and calls `frame` with each frame and its time of arrival. Returns the number of
    /// frames; fewer than [`BATCH`] means that no more are waiting.
    ///
    /// Errors: the interface is down or gone.
    pub fn receive(&mut self, frame: impl FnMut(&[u8], Nanos)) -> io::Result<usize> {
        match &mut self.kind {
            Receiving::Packet(half) => half.receive(frame),
            Receiving::Ring(half) => half.receive(frame),
            Receiving::Xdp(half) => half.receive(frame),
        }
    }

    /// Counters of this half, including the kernel's.
    pub fn stats(&mut self) -> Stats {
        match &mut self.kind {
            Receiving::Packet(half) => half.stats(),
            Receiving::Ring(half) => half.stats(),
            Receiving::Xdp(half) => half.stats(),
        }
    }
}

impl AsFd for Receiver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.kind {
            Receiving::Packet(half) => half.as_fd(),
            Receiving::Ring(half) => half.as_fd(),
            Receiving::Xdp(half) => half.as_fd(),
        }
    }
}

/// The sending half of a socket.
#[derive(Debug)]
pub struct Sender(Sending);

#[derive(Debug)]
enum Sending {
    Packet(messages::Sender),
    Ring(ring::Sender),
    Xdp(xdp::Sender),
}

impl Sender {
    /// Adds a frame to the batch and leaves `frame` empty, possibly with another buffer. Sends a full batch.
    pub fn send(&mut self, frame: &mut Vec<u8>) {
        match &mut self.0 {
            Sending::Packet(half) => half.send(frame),
            Sending::Ring(half) => half.send(frame),
            Sending::Xdp(half) => half.send(frame),
        }
    }

    /// Passes the batch to the kernel. Frames that it rejects are dropped and counted.
    pub fn flush(&mut self) {
        match &mut self.0 {
            Sending::Packet(half) => half.flush(),
            Sending::Ring(half) => half.flush(),
            Sending::Xdp(half) => half.flush(),
        }
    }

    /// Counters of this half.
    pub fn stats(&self) -> Stats {
        match &self.0 {
            Sending::Packet(half) => half.stats(),
            Sending::Ring(half) => half.stats(),
            Sending::Xdp(half) => half.stats(),
        }
    }
}

/// Both halves: raw frames of an interface in the network namespace in which it was opened.
#[derive(Debug)]
pub struct PacketSocket {
    receiver: Receiver,
    sender: Sender,
}

impl PacketSocket {
    /// Opens a socket on `interface` of the calling thread's network namespace.
    pub fn open(interface: &str, options: &Options) -> Result<PacketSocket, Error> {
        let what = |doing: &str| format!("{doing} interface `{interface}`");
        let index = sys::interface_index(interface)
            .context(|| what("looking for"))
            .map_err(|error| error.help("`ip link` lists the interfaces there are"))?;
        let claim = choice::claim(interface, options.frames)?;
        let device = Device { name: interface, index };
        let (receiving, sending, receive_buffer_bytes) = match options.io {
            Io::Packet => {
                let (fd, granted) = device.socket(options)?;
                let protocol = device.choose(&fd, options.frames)?;
                device.bind(&fd, protocol)?;
                let second = fd.try_clone().context(|| what("setting up the raw socket on"))?;
                let (receiver, sender) = (messages::Receiver::new(fd), messages::Sender::new(second));
                (Receiving::Packet(receiver), Sending::Packet(sender), granted)
            }
            Io::Xdp if options.frames != Frames::All => {
                let why = format!("{} I/O takes all frames", options.io);
                return device
                    .try_to("choosing frames of", Err(io::Error::new(io::ErrorKind::Unsupported, why)));
            }
            Io::Ring => {
                let mtu = Links::open()?.get(interface)?.mtu as usize;
                let (receiver, granted) = ring::Receiver::open(&device, mtu, options)?;
                (
                    Receiving::Ring(receiver),
                    Sending::Ring(ring::Sender::open(&device, mtu, options)?),
                    granted,
                )
            }
            Io::Xdp => {
                let (receiver, sender, granted) = xdp::open(&device, options)?;
                (Receiving::Xdp(receiver), Sending::Xdp(sender), granted)
            }
        };
        let name = interface.to_owned();
        let receiver = Receiver { kind: receiving, name, receive_buffer_bytes, _claim: claim };
        Ok(PacketSocket { receiver, sender: Sender(sending) })
    }

    /// Splits the socket, for callers that send while receiving.
    pub fn split(self) -> (Receiver, Sender) {
        (self.receiver, self.sender)
    }

    /// Name of the interface.
    pub fn interface(&self) -> &str {
        self.receiver.interface()
    }

    /// See [`Receiver::receive_buffer_bytes`].
    pub fn receive_buffer_bytes(&self) -> usize {
        self.receiver.receive_buffer_bytes()
    }

    /// See [`Receiver::receive`].
    pub fn receive(&mut self, frame: impl FnMut(&[u8], Nanos)) -> io::Result<usize> {
        self.receiver.receive(frame)
    }

    /// See [`Sender::send`].
    pub fn send(&mut self, frame: &mut Vec<u8>) {
        self.sender.send(frame);
    }

    /// See [`Sender::flush`].
    pub fn flush(&mut self) {
        self.sender.flush();
    }

    /// Counters of both halves.
    pub fn stats(&mut self) -> Stats {
        self.receiver.stats() + self.sender.stats()
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.receiver.as_fd()
    }
}

/// Whether a kind of I/O is available. Tries it on a veth pair in a namespace of its own.
pub fn probe(io: Io) -> Result<(), Error> {
    let ns = NetNs::create()?;
    let end = |name| VethEnd { name, ns: &ns, mac: None };
    Links::add_veth(end("probe1"), end("probe2"))?;
    let options = Options { io, receive_buffer_bytes: 64 << 10, ..Options::default() };
    ns.run(|| PacketSocket::open("probe1", &options))?.map(drop)
}

/// An interface on which sockets are being opened.
pub(crate) struct Device<'a> {
    pub(crate) name: &'a str,
    pub(crate) index: i32,
}

impl Device<'_> {
    /// Adds the attempted operation to an error.
    pub(crate) fn try_to<T>(&self, doing: &str, result: io::Result<T>) -> Result<T, Error> {
        result
            .context(|| format!("{doing} interface `{}`", self.name))
            .map_err(|error| error.help_if_denied(NEED_PRIVILEGE))
    }

    /// A raw socket with all options set, and the size of its receive buffer. It receives nothing before it
    /// is bound, so no frame of another interface slips in.
    pub(crate) fn socket(&self, options: &Options) -> Result<(OwnedFd, usize), Error> {
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK;
        let fd = self.try_to("opening a raw socket on", sys::socket(libc::AF_PACKET, kind, 0))?;
        let set = configure(&fd, self.index, options);
        Ok((fd, self.try_to("setting up the raw socket on", set)?))
    }

    /// Has a socket receive only these frames. Returns the protocol to bind it with.
    pub(crate) fn choose(&self, fd: &OwnedFd, frames: Frames) -> Result<i32, Error> {
        let filter = |program: &[libc::sock_filter]| {
            self.try_to("filtering frames of", sys::attach_filter(fd.as_fd(), program))
        };
        match frames {
            Frames::All => Ok(libc::ETH_P_ALL),
            Frames::Except(ether_type) => filter(&choice::except(ether_type)).map(|()| libc::ETH_P_ALL),
            Frames::Only(ether_type) => Ok(ether_type.0.into()),
            Frames::Datagrams(to) => filter(&choice::datagrams(to)).map(|()| libc::ETH_P_IP),
        }
    }

    /// Binds a socket to the interface: with `ETH_P_ALL` to receive, with 0 to only send.
    pub(crate) fn bind(&self, fd: &OwnedFd, protocol: i32) -> Result<(), Error> {
        let address = libc::sockaddr_ll {
            sll_family: libc::AF_PACKET as u16,
            sll_protocol: (protocol as u16).to_be(),
            sll_ifindex: self.index,
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 0,
            sll_addr: [0; 8],
        };
        self.try_to("binding to", sys::bind(fd.as_fd(), &address))
    }
}

/// Sets all options. Returns the size of the receive buffer granted.
fn configure(fd: &OwnedFd, index: i32, options: &Options) -> io::Result<usize> {
    let fd = fd.as_fd();
    let on: libc::c_int = 1;
    sys::set_option(fd, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &on)?;
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
    if options.io == Io::Packet {
        sys::set_option(fd, libc::SOL_PACKET, libc::PACKET_AUXDATA, &on)?;
        sys::set_option(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &on)?;
    }
    sys::set_buffers(fd, options.receive_buffer_bytes)?;
    sys::get_option::<libc::c_int>(fd, libc::SOL_SOCKET, libc::SO_RCVBUF).map(|bytes| bytes as usize)
}

/// The kernel's count of drops since the last call, which resets it.
fn drops_since(fd: BorrowedFd<'_>) -> u64 {
    let kernel = sys::get_option::<libc::tpacket_stats>(fd, libc::SOL_PACKET, libc::PACKET_STATISTICS);
    kernel.map_or(0, |kernel| u64::from(kernel.tp_drops))
}
