//! Just enough of rtnetlink to build requests, wait for the response and read attributes.

use crate::sys;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// Maximum response read.
const ANSWER: usize = 32 << 10;
const HEADER: usize = 16;

/// A request under construction: netlink header, fixed part, attributes.
#[derive(Debug)]
pub(crate) struct Request {
    bytes: Vec<u8>,
}

impl Request {
    /// A request of a type (`RTM_…`) with flags beyond "request" and "acknowledge", and its fixed part.
    pub(crate) fn new(kind: u16, flags: i32, fixed: &[u8]) -> Request {
        let flags = (flags | libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16;
        let mut bytes = vec![0; HEADER];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
        bytes.extend(fixed);
        Request { bytes }
    }

    /// Adds an attribute.
    pub(crate) fn attribute(mut self, kind: u16, value: &[u8]) -> Request {
        self.push(kind, value);
        self
    }

    /// Adds a name, zero-terminated.
    pub(crate) fn text(self, kind: u16, value: &str) -> Request {
        let mut bytes = value.as_bytes().to_vec();
        bytes.push(0);
        self.attribute(kind, &bytes)
    }

    /// Adds an attribute whose value `inside` adds.
    pub(crate) fn nest(self, kind: u16, inside: impl FnOnce(Request) -> Request) -> Request {
        self.nest_with(kind, &[], inside)
    }

    /// Like [`Request::nest`], with bytes before the inner attributes.
    pub(crate) fn nest_with(
        mut self,
        kind: u16,
        fixed: &[u8],
        inside: impl FnOnce(Request) -> Request,
    ) -> Request {
        let start = self.bytes.len();
        self.push(kind, fixed);
        let mut whole = inside(self);
        let length = (whole.bytes.len() - start) as u16;
        whole.bytes[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        whole
    }

    fn push(&mut self, kind: u16, value: &[u8]) {
        self.bytes.extend((4 + value.len() as u16).to_ne_bytes());
        self.bytes.extend(kind.to_ne_bytes());
        self.bytes.extend(value);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

/// A netlink socket of the network namespace in which it was opened.
#[derive(Debug)]
pub(crate) struct Netlink {
    fd: OwnedFd,
    sequence: u32,
}

impl Netlink {
    pub(crate) fn open() -> io::Result<Netlink> {
        let fd = sys::socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE)?;
        let on: libc::c_int = 1;
        // The kernel then adds a message to an error and does not repeat the request. Both are optional.
        for option in [libc::NETLINK_EXT_ACK, libc::NETLINK_CAP_ACK] {
            let _ = sys::set_option(fd.as_fd(), libc::SOL_NETLINK, option, &on);
        }
        Ok(Netlink { fd, sequence: 0 })
    }

    /// Sends a request and waits for its acknowledgement. Returns the fixed part and attributes of the last
    /// message before it, if any.
    pub(crate) fn call(&mut self, request: Request) -> io::Result<Option<Vec<u8>>> {
        let mut answer = None;
        self.ask(request, |body| answer = Some(body.to_vec()))?;
        Ok(answer)
    }

    /// Asks for a list. Returns the fixed part and attributes of each of its messages.
    pub(crate) fn list(&mut self, request: Request) -> io::Result<Vec<Vec<u8>>> {
        let mut list = Vec::new();
        self.ask(request, |body| list.push(body.to_vec()))?;
        Ok(list)
    }

    /// Sends a request and hands over its answers, until it is acknowledged or the list has ended.
    fn ask(&mut self, mut request: Request, mut answer: impl FnMut(&[u8])) -> io::Result<()> {
        self.sequence += 1;
        let length = request.bytes.len() as u32;
        request.bytes[..4].copy_from_slice(&length.to_ne_bytes());
        request.bytes[8..12].copy_from_slice(&self.sequence.to_ne_bytes());
        sys::write(self.fd.as_fd(), &request.bytes)?;
        let mut buffer = vec![0; ANSWER];
        loop {
            let read = self.receive(&mut buffer)?;
            let mut left = &buffer[..read];
            while let Some((kind, sequence, body, rest)) = message(left) {
                left = rest;
                if sequence != self.sequence {
                    continue;
                }
                match i32::from(kind) {
                    libc::NLMSG_DONE => return Ok(()),
                    libc::NLMSG_ERROR => {
                        return match i32_at(body, 0).unwrap_or(-libc::EPROTO) {
                            0 => Ok(()),
                            code => Err(refusal(-code, body)),
                        };
                    }
                    _ => answer(body),
                }
            }
        }
    }

    fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            // SAFETY: pointer and length describe `buffer`, live and exclusive.
            let got = unsafe { libc::recv(self.fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
            match sys::check(got as libc::c_int) {
                Ok(got) => return Ok(got as usize),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// `struct ifinfomsg`: family, padding, type, index, flags, which flags change.
pub(crate) fn ifinfo(index: i32, flags: u32, change: u32) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[4..8].copy_from_slice(&index.to_ne_bytes());
    bytes[8..12].copy_from_slice(&flags.to_ne_bytes());
    bytes[12..].copy_from_slice(&change.to_ne_bytes());
    bytes
}

fn i32_at(bytes: &[u8], at: usize) -> Option<i32> {
    Some(i32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// Splits off the first message: type, sequence number, body, rest.
fn message(bytes: &[u8]) -> Option<(u16, u32, &[u8], &[u8])> {
    let length = i32_at(bytes, 0)? as usize;
    let kind = u16::from_ne_bytes(bytes.get(4..6)?.try_into().ok()?);
    let sequence = i32_at(bytes, 8)? as u32;
    let body = bytes.get(HEADER..length)?;
    Some((kind, sequence, body, bytes.get(length.next_multiple_of(4)..).unwrap_or(&[])))
}

/// The messages in `bytes`: type and body.
pub(crate) fn messages(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let (kind, _, body, rest) = message(bytes)?;
        bytes = rest;
        Some((kind, body))
    })
}

/// The attributes in `bytes`: kind and value.
pub(crate) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?));
        let kind = u16::from_ne_bytes(bytes.get(2..4)?.try_into().ok()?);
        let value = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or(&[]);
        Some((kind & 0x3fff, value))
    })
}

/// The error in an acknowledgement, with the kernel's message if there is one: attributes follow the code (4
/// bytes) and the header of the request.
fn refusal(code: i32, body: &[u8]) -> io::Error {
    const MESSAGE: u16 = 1;
    let error = io::Error::from_raw_os_error(code);
    let said = attributes(body.get(4 + HEADER..).unwrap_or(&[]))
        .find(|(kind, _)| *kind == MESSAGE)
        .and_then(|(_, text)| std::str::from_utf8(text).ok())
        .map(|text| text.trim_end_matches('\0').to_owned());
    match said {
        // An error with text loses its code, which callers check; these are the codes they check.
        Some(said) if !matches!(code, libc::EEXIST | libc::EPERM | libc::ENODEV) => {
            io::Error::new(error.kind(), format!("{error}: {said}"))
        }
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_and_nests_are_padded_and_measured() {
        let request = Request::new(16, 0, &[9; 16])
            .text(3, "eth0")
            .nest(18, |r| r.text(1, "veth").nest_with(2, &[7; 4], |r| r.attribute(4, &[1])));
        let body = &request.bytes[HEADER..];
        assert_eq!(&body[..16], &[9; 16]);
        let outer: Vec<_> = attributes(&body[16..]).collect();
        assert_eq!(outer[0], (3, &b"eth0\0"[..]));
        let inner: Vec<_> = attributes(outer[1].1).collect();
        assert_eq!(inner[0], (1, &b"veth\0"[..]));
        assert_eq!(&inner[1].1[..4], &[7; 4]);
        assert_eq!(attributes(&inner[1].1[4..]).next(), Some((4, &[1][..])));
    }

    #[test]
    fn cut_messages_end_the_reading() {
        assert!(message(&[]).is_none());
        assert!(message(&[255; 15]).is_none());
        assert!(message(&[200, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]).is_none());
        assert_eq!(attributes(&[3, 0, 1, 0]).count(), 0);
        assert_eq!(attributes(&[9, 0, 1, 0, 0]).count(), 0);
    }
}
