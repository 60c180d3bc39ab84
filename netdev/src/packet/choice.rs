//! Selects the frames of an interface that a socket receives, and whether other programs may have them too.

use crate::error::Context;
use crate::filter::{BYTE, HALF, IF_ANY, IF_EQUAL, RETURN, WORD, step};
use crate::{Error, sys};
use p4rack_wire::EtherType;
use std::io;
use std::net::{SocketAddrV4, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Which frames of an interface a socket receives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Frames {
    /// All. The socket takes the interface: no other one may.
    #[default]
    All,
    /// All but those with this EtherType, tagged or not, which other sockets of this machine take. Takes the interface too.
    Except(EtherType),
    /// Those with this EtherType, tagged or not; the kernel keeps the tag. Takes only these.
    Only(EtherType),
    /// Those with a whole UDP datagram for this address, without a tag, over IPv4 without options. Takes only these. The system
    /// has the address and the interface, and does not answer these datagrams.
    Datagrams(SocketAddrV4),
}

/// Marks an interface, or some of its frames, as taken until the descriptor is closed.
pub(super) fn claim(interface: &str, frames: Frames) -> Result<OwnedFd, Error> {
    let (claimed, help) = match frames {
        Frames::All | Frames::Except(_) => (
            by_name(format!("p4rack/interface/{interface}")),
            "another p4rack switch or host agent uses this interface: end it, or name another",
        ),
        Frames::Only(ether_type) => (
            by_name(format!("p4rack/interface/{interface}/{ether_type}")),
            "another program on this host already receives these frames: end it first",
        ),
        Frames::Datagrams(to) => {
            (unread(to), "another program on this host already receives these datagrams: end it first")
        }
    };
    claimed.context(|| format!("taking interface `{interface}`")).map_err(|error| match error.source.kind() {
        io::ErrorKind::AddrInUse => error.help(help),
        _ => error,
    })
}

/// Abstract socket names belong to the network namespace and disappear with the process.
fn by_name(name: String) -> io::Result<OwnedFd> {
    let address = SocketAddr::from_abstract_name(name)?;
    UnixDatagram::bind_addr(&address).map(OwnedFd::from)
}

/// A socket for these datagrams, so that the system does not report their port as unreachable. It drops all of them.
fn unread(to: SocketAddrV4) -> io::Result<OwnedFd> {
    let socket = UdpSocket::bind(to)?;
    sys::attach_filter(socket.as_fd(), &[step(RETURN, 0, 0)])?;
    Ok(OwnedFd::from(socket))
}

/// A filter that drops frames with an EtherType. The kernel removes a tag before it runs the filter.
pub(super) fn except(ether_type: EtherType) -> [libc::sock_filter; 4] {
    let protocol = (libc::SKF_AD_OFF + libc::SKF_AD_PROTOCOL) as u32;
    [
        step(WORD, 0, protocol),
        step(IF_EQUAL, 1, ether_type.0.into()),
        step(RETURN, 0, 0),
        step(RETURN, 0, u32::MAX),
    ]
}

/// A filter that passes such datagrams, of frames of IPv4.
pub(super) fn datagrams(to: SocketAddrV4) -> [libc::sock_filter; 12] {
    /// More fragments follow, or this is not the first one.
    const FRAGMENT: u32 = 0x3fff;
    [
        // Version, and header length in words.
        step(BYTE, 0, 14),
        step(IF_EQUAL, 9, 0x45),
        step(BYTE, 0, 23),
        step(IF_EQUAL, 7, libc::IPPROTO_UDP as u32),
        step(WORD, 0, 30),
        step(IF_EQUAL, 5, to.ip().to_bits()),
        step(HALF, 0, 20),
        libc::sock_filter { jt: 3, ..step(IF_ANY, 0, FRAGMENT) },
        step(HALF, 0, 36),
        step(IF_EQUAL, 1, to.port().into()),
        step(RETURN, 0, u32::MAX),
        step(RETURN, 0, 0),
    ]
}
