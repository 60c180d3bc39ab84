//! Datagrams of a UDP socket, many by one system call.

use crate::sys;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};
use std::os::fd::AsRawFd;

/// Datagrams that one call takes.
pub const BATCH: usize = 32;
/// Bytes of the longest sender's address.
const SENDER_BYTES: libc::socklen_t = size_of::<libc::sockaddr_in6>() as libc::socklen_t;

/// Room for a batch of datagrams, and the kernel's description of it.
#[derive(Debug)]
pub struct Datagrams {
    bytes: Vec<u8>,
    stride: usize,
    /// Where the kernel writes senders, in the order of the rooms.
    senders: Vec<libc::sockaddr_in6>,
    /// Places of the rooms, to which `messages` leads, as it does to `senders`. None of these vectors ever grows.
    _vectors: Vec<libc::iovec>,
    messages: Vec<libc::mmsghdr>,
}

// SAFETY: the pointers in it lead to its own vectors, which no other value has pointers to.
unsafe impl Send for Datagrams {}

impl Datagrams {
    /// Room for datagrams of at most `longest` bytes. A longer one is cut off behind the next byte, so its length shows that it is too long.
    pub fn new(longest: usize) -> Datagrams {
        let stride = longest + 1;
        let mut bytes = vec![0u8; BATCH * stride];
        // SAFETY: zeros are a value of these C structs (null pointers, zero lengths, no family).
        let (sender, message): (libc::sockaddr_in6, libc::mmsghdr) = unsafe { std::mem::zeroed() };
        let (mut senders, mut messages) = (vec![sender; BATCH], vec![message; BATCH]);
        let place = |room: &mut [u8]| libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: stride };
        let mut vectors: Vec<_> = bytes.chunks_exact_mut(stride).map(place).collect();
        for ((message, vector), sender) in messages.iter_mut().zip(&mut vectors).zip(&mut senders) {
            message.msg_hdr.msg_iov = vector;
            message.msg_hdr.msg_iovlen = 1;
            message.msg_hdr.msg_name = std::ptr::from_mut(sender).cast();
            message.msg_hdr.msg_namelen = SENDER_BYTES;
        }
        Datagrams { bytes, stride, senders, _vectors: vectors, messages }
    }

    /// Takes those that have come, at most a batch, with their senders, and does not wait. Returns how many. Errors: the socket's.
    pub fn receive(
        &mut self,
        socket: &UdpSocket,
        mut taken: impl FnMut(SocketAddr, &[u8]),
    ) -> io::Result<usize> {
        // SAFETY: all pointers in `messages` lead to `_vectors`, `senders` and the rooms, which are live, exclusive through `self`, distinct
        // for each message and of the lengths given; no time-out is passed.
        let returned = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                self.messages.as_mut_ptr(),
                BATCH as u32,
                libc::MSG_DONTWAIT,
                std::ptr::null_mut(),
            )
        };
        let count = match sys::check(returned) {
            Ok(count) => count as usize,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => 0,
            Err(error) => return Err(error),
        };
        let rooms = self.bytes.chunks_exact(self.stride);
        for ((message, sender), room) in self.messages[..count].iter_mut().zip(&self.senders).zip(rooms) {
            // The kernel has written the length of the address.
            message.msg_hdr.msg_namelen = SENDER_BYTES;
            // Of a UDP socket there is no other family.
            if let Some(sender) = address_of(sender) {
                taken(sender, &room[..(message.msg_len as usize).min(room.len())]);
            }
        }
        Ok(count)
    }
}

/// The address that the kernel has written, of IPv4 or IPv6.
fn address_of(sender: &libc::sockaddr_in6) -> Option<SocketAddr> {
    match i32::from(sender.sin6_family) {
        libc::AF_INET => {
            // SAFETY: an address of IPv4 is shorter and aligned alike, and all of `sender` is initialized.
            let sender = unsafe { &*std::ptr::from_ref(sender).cast::<libc::sockaddr_in>() };
            let ip = Ipv4Addr::from(sender.sin_addr.s_addr.to_ne_bytes());
            Some((ip, u16::from_be(sender.sin_port)).into())
        }
        libc::AF_INET6 => {
            let (ip, port) = (Ipv6Addr::from(sender.sin6_addr.s6_addr), u16::from_be(sender.sin6_port));
            Some(SocketAddrV6::new(ip, port, sender.sin6_flowinfo, sender.sin6_scope_id).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    fn all(socket: &UdpSocket, datagrams: &mut Datagrams) -> Vec<(SocketAddr, Vec<u8>)> {
        let mut found = Vec::new();
        while datagrams.receive(socket, |from, bytes| found.push((from, bytes.to_vec()))).unwrap() > 0 {}
        found
    }

    #[test]
    fn each_comes_with_its_sender_and_long_ones_are_cut_off() {
        let mut datagrams = Datagrams::new(10);
        for ip in [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()] {
            // A system without IPv6 has nothing to test.
            let Ok(socket) = UdpSocket::bind((ip, 0)) else { continue };
            let at = socket.local_addr().unwrap();
            assert_eq!(all(&socket, &mut datagrams), []);
            let senders = [(); 2].map(|()| UdpSocket::bind((ip, 0)).unwrap());
            let mut sent = Vec::new();
            for nth in 0..2 * BATCH as u8 + 1 {
                let (sender, bytes) = (&senders[usize::from(nth % 2)], vec![nth; usize::from(nth % 13)]);
                sender.send_to(&bytes, at).unwrap();
                sent.push((sender.local_addr().unwrap(), bytes[..bytes.len().min(11)].to_vec()));
            }
            assert_eq!(all(&socket, &mut datagrams), sent);
        }
    }
}
