//! Where a board's packets come from and go to: a UDP socket, or frames of an interface.
//!
//! ```text
//!   UDP socket ─────────────────────────────┐
//!                                           ├─▶ packets with their peer
//!   interface ─ ring ─ Ethernet, IPv4, UDP ─┘
//! ```
//!
//! On an interface the system keeps its address: it answers ARP and carries the set-up's TCP, as beside a Soft-RoCE adapter that shares an
//! interface. The board takes the datagrams for its address and port from a ring, and answers to the MAC address that a request came from.
//! It does not hear clients of its own machine: the system carries what goes to its own addresses over the loopback interface.

use super::error::BoardError;
use crate::frames::{FrameSocket, Vanished};
use p4rack_netdev::Links;
use p4rack_netdev::datagrams::{self, Datagrams};
use p4rack_netdev::packet::{self, Frames, Options};
use p4rack_netdev::sources;
use p4rack_wire::MacAddr;
use p4rack_wire::clio::Header;
use p4rack_wire::ipv4::{Ipv4, Udp};
use p4rack_wire::udp::{self, End};
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

/// Buffer of a UDP socket: what comes while the board waits for a processor. As much as a ring has.
const BUFFER_BYTES: usize = 8 << 20;

/// Where a board takes packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum At {
    /// A UDP socket at this address.
    Udp(SocketAddr),
    /// Frames with datagrams for this address, which the system has on an interface; `None`: the interface that has it. Needs the right to
    /// open raw sockets.
    Packet(SocketAddr, Option<String>),
}

/// A client's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its address.
    pub addr: SocketAddr,
    /// MAC address of the next hop; of a UDP socket, zeros.
    pub mac: MacAddr,
}

/// Where packets come from and go to.
#[derive(Debug)]
pub(super) enum Port {
    Udp { socket: UdpSocket, input: Datagrams },
    Packet(Box<Interface>),
}

/// An interface that the system uses, too.
#[derive(Debug)]
pub(super) struct Interface {
    link: FrameSocket,
    own: End,
    frame: Vec<u8>,
    /// Frames with a wrong checksum, or cut short.
    malformed: u64,
}

impl Port {
    /// Opens it for packets with this much data at most. Errors: the address can't be had, no interface has it, the interface is too
    /// narrow, or the process has no right to it.
    pub fn open(at: &At, data_bytes_max: u32) -> Result<Port, BoardError> {
        match at {
            At::Udp(addr) => {
                let socket =
                    UdpSocket::bind(addr).map_err(|error| BoardError::Bind { addr: *addr, error })?;
                socket.set_nonblocking(true)?;
                p4rack_netdev::set_buffers(socket.as_fd(), BUFFER_BYTES)?;
                let input = Datagrams::new(Header::BYTES + data_bytes_max as usize);
                Ok(Port::Udp { socket, input })
            }
            At::Packet(addr, interface) => {
                let SocketAddr::V4(addr) = *addr else {
                    return Err(no_interface(*addr, interface.as_deref()));
                };
                // Nothing in the system would choose one.
                if addr.port() == 0 {
                    let why = io::Error::new(ErrorKind::InvalidInput, "frames of an interface need a port");
                    let error = p4rack_netdev::Error::new(format!("taking packets at {addr}"), why);
                    return Err(error.help("give a port other than 0, or use --link udp").into());
                }
                let interface = Interface::open(addr, interface.as_deref(), data_bytes_max)?;
                Ok(Port::Packet(Box::new(interface)))
            }
        }
    }

    /// Its address.
    pub fn addr(&self) -> io::Result<SocketAddr> {
        match self {
            Port::Udp { socket, .. } => socket.local_addr(),
            Port::Packet(interface) => Ok(interface.own.addr.into()),
        }
    }

    /// Takes a batch of packets. Returns whether there may be more. Errors: the socket failed, or the interface is gone.
    pub fn receive(&mut self, mut taken: impl FnMut(Peer, &[u8])) -> io::Result<bool> {
        let (socket, input) = match self {
            Port::Udp { socket, input } => (socket, input),
            Port::Packet(interface) => return interface.receive(taken),
        };
        match input.receive(socket, |addr, packet| taken(Peer { addr, mac: MacAddr::default() }, packet)) {
            Ok(count) => Ok(count == datagrams::BATCH),
            // An earlier answer found nothing at the client's port.
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Refuses the packets of these hosts from now on, with port 0 those of all ports, and takes those of all others. A ring of frames
    /// has no room for others to protect, and takes all.
    pub fn refuse(&self, hosts: &[SocketAddr]) {
        if let Port::Udp { socket, .. } = self {
            // Packets that are taken all the same are lost in their host's queue.
            _ = sources::refuse(socket, hosts);
        }
    }

    /// Sends a packet, at [`flush`](Self::flush) at the latest. Returns whether it was accepted.
    pub fn send(&mut self, to: Peer, packet: &[u8]) -> bool {
        match self {
            Port::Udp { socket, .. } => socket.send_to(packet, to.addr).is_ok(),
            Port::Packet(interface) => interface.send(to, packet),
        }
    }

    /// Sends what was not sent yet.
    pub fn flush(&mut self) {
        if let Port::Packet(interface) = self {
            interface.link.socket.flush();
        }
    }

    /// Counters of an interface; none of a UDP socket.
    pub fn counts(&mut self) -> Vec<(&'static str, u64)> {
        let Port::Packet(interface) = self else { return Vec::new() };
        let packet::Stats { kernel_drops, too_long, send_full, send_refused, .. } =
            interface.link.socket.stats();
        let (malformed, read_errors) = (interface.malformed, interface.link.read_errors);
        vec![
            ("kernel_drops", kernel_drops),
            ("too_long", too_long),
            ("send_full", send_full),
            ("send_refused", send_refused),
            ("malformed", malformed),
            ("read_errors", read_errors),
        ]
    }
}

/// No interface, or not the one that is named, has the address.
fn no_interface(addr: SocketAddr, named: Option<&str>) -> BoardError {
    let (why, help) = match named {
        Some(name) => (
            format!("interface `{name}` does not have this IPv4 address, or carries no frames"),
            "give the board an address of the interface, leave --interface away, or use --link udp",
        ),
        None => (
            format!("no interface that carries frames has the address {}", addr.ip()),
            "give the board an IPv4 address of this machine other than a loopback one, or use --link udp",
        ),
    };
    let why = io::Error::new(ErrorKind::AddrNotAvailable, why);
    p4rack_netdev::Error::new(format!("taking packets at {addr}"), why).help(help).into()
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Port::Udp { socket, .. } => socket.as_fd(),
            Port::Packet(interface) => interface.link.socket.as_fd(),
        }
    }
}

impl Interface {
    fn open(addr: SocketAddrV4, named: Option<&str>, data_bytes_max: u32) -> Result<Interface, BoardError> {
        let mut links = Links::open()?;
        let own = links.addresses()?;
        let has_it = |name: &str| own.iter().any(|(at, ip)| at == name && ip == addr.ip());
        let found = match named {
            Some(named) => {
                // First: an interface that is absent is another error.
                links.get(named)?;
                Some(named.to_owned()).filter(|name| has_it(name))
            }
            None => links.all()?.into_iter().map(|(name, _)| name).find(|name| has_it(name)),
        };
        let name =
            found.filter(|_| !addr.ip().is_loopback()).ok_or_else(|| no_interface(addr.into(), named))?;
        let info = links.get(&name)?;
        let needs = data_bytes_max + (Ipv4::BYTES + Udp::BYTES + Header::BYTES) as u32;
        if info.mtu < needs {
            return Err(BoardError::TooNarrow { interface: name, has: info.mtu, needs });
        }
        let options = Options { frames: Frames::Datagrams(addr), promiscuous: false, ..Options::default() };
        let link = FrameSocket::open(links, &name, &options)?;
        Ok(Interface { link, own: End { mac: info.mac, addr }, frame: Vec::new(), malformed: 0 })
    }

    fn receive(&mut self, mut taken: impl FnMut(Peer, &[u8])) -> io::Result<bool> {
        let Interface { link, own, malformed, .. } = self;
        let received = link.receive(|frame| match udp::parse(frame) {
            Ok(found) if found.dst.addr == own.addr => {
                taken(Peer { addr: found.src.addr.into(), mac: found.src.mac }, found.data);
            }
            _ => *malformed += 1,
        });
        received.map_err(|vanished: Vanished| io::Error::new(ErrorKind::NotFound, vanished))
    }

    fn send(&mut self, to: Peer, packet: &[u8]) -> bool {
        // Frames bring no other addresses.
        let SocketAddr::V4(addr) = to.addr else { return false };
        udp::compose(&self.own, &End { mac: to.mac, addr }, packet, &mut self.frame);
        self.link.socket.send(&mut self.frame);
        true
    }
}
