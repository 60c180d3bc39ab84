//! Frames of an interface that may go down and come back, or vanish.

use p4rack_netdev::packet::{BATCH, Io, Options};
use p4rack_netdev::{Error, Links, PacketSocket};

/// The interface is no longer there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("interface `{0}` vanished: the other end was removed, or its namespace ended")]
pub(crate) struct Vanished(pub String);

/// A socket for frames, and how often reading it failed.
#[derive(Debug)]
pub(crate) struct FrameSocket {
    pub socket: PacketSocket,
    links: Links,
    /// Errors while the link was down.
    pub read_errors: u64,
}

impl FrameSocket {
    /// Opens an interface of the calling thread's namespace, which is that of `links`. Its frames are in memory shared with the kernel,
    /// or, where the kernel gives none, read by a system call each, which costs more and is said in the log.
    pub fn open(links: Links, interface: &str, options: &Options) -> Result<FrameSocket, Error> {
        let with = |io| Options { io, ..*options };
        let socket = PacketSocket::open(interface, &with(Io::Ring)).or_else(|error| {
            let socket = PacketSocket::open(interface, &with(Io::Packet))?;
            tracing::warn!(interface, %error, "no ring of frames: each frame takes a system call");
            Ok(socket)
        })?;
        Ok(FrameSocket::of(links, socket))
    }

    /// Of a socket that is open.
    pub fn of(links: Links, socket: PacketSocket) -> FrameSocket {
        FrameSocket { socket, links, read_errors: 0 }
    }

    /// Takes a batch of frames. Returns whether there may be more. A link that is down comes back, and has none. Errors: it vanished.
    pub fn receive(&mut self, mut taken: impl FnMut(&[u8])) -> Result<bool, Vanished> {
        match self.socket.receive(|frame, _| taken(frame)) {
            Ok(count) => Ok(count == BATCH),
            Err(_) if self.links.exists(self.socket.interface()) => {
                self.read_errors += 1;
                Ok(false)
            }
            Err(_) => Err(Vanished(self.socket.interface().to_owned())),
        }
    }
}
