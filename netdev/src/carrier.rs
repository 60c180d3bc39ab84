//! Notifications of the kernel about interfaces whose carrier changes.

use crate::error::Context;
use crate::netlink::messages;
use crate::{Error, sys};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Maximum bytes of messages per read.
const NEWS: usize = 32 << 10;
/// Netlink group for changes of interfaces.
const RTNLGRP_LINK: libc::c_int = 1;

/// Carrier changes of interfaces in the network namespace in which this was opened.
#[derive(Debug)]
pub struct CarrierNews {
    fd: OwnedFd,
}

impl CarrierNews {
    /// Starts listening.
    pub fn open() -> Result<CarrierNews, Error> {
        let what = || "listening for changes of interfaces".to_owned();
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK;
        let fd = sys::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE).context(what)?;
        // Binding ends memberships.
        sys::bind_netlink(fd.as_fd()).context(what)?;
        let joined =
            sys::set_option(fd.as_fd(), libc::SOL_NETLINK, libc::NETLINK_ADD_MEMBERSHIP, &RTNLGRP_LINK);
        joined.context(what)?;
        Ok(CarrierNews { fd })
    }

    /// Reads pending notifications without blocking. Calls `changed` with an interface's index and whether it
    /// can now carry frames. An error means that notifications were lost; check the interfaces then.
    pub fn read(&self, mut changed: impl FnMut(i32, bool)) -> io::Result<()> {
        let mut buffer = vec![0; NEWS];
        while let Some(length) = sys::read(self.fd.as_fd(), &mut buffer)? {
            for (kind, body) in messages(&buffer[..length]) {
                let (Some(index), Some(flags)) = (word(body, 4), word(body, 8)) else { continue };
                match kind {
                    libc::RTM_NEWLINK => changed(index as i32, carries(flags)),
                    libc::RTM_DELLINK => changed(index as i32, false),
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

impl AsFd for CarrierNews {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Whether an interface with these flags can carry frames.
pub(crate) fn carries(flags: u32) -> bool {
    let needed = (libc::IFF_UP | libc::IFF_RUNNING) as u32;
    flags & needed == needed
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}
