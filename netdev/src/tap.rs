//! A TAP interface: frames that the system's network stack sends through it are read here.

use crate::error::{Context, NEED_PRIVILEGE};
use crate::{Error, sys};
use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

const DEVICE: &str = "/dev/net/tun";

/// A TAP interface, removed when dropped.
#[derive(Debug)]
pub struct Tap {
    fd: OwnedFd,
    name: String,
}

impl Tap {
    /// Creates interface `name` in the calling thread's network namespace, without offloads: every frame is
    /// complete and no longer than the MTU.
    pub fn create(name: &str) -> Result<Tap, Error> {
        let what = || format!("creating TAP interface `{name}`");
        let mut request = sys::ifreq(name).context(what)?;
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(DEVICE)
            .context(|| format!("opening {DEVICE} for TAP interface `{name}`"))
            .map_err(explain)?;
        let fd = OwnedFd::from(file);
        request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_TUN_EXCL) as libc::c_short;
        sys::ioctl_ifreq(fd.as_fd(), libc::TUNSETIFF, &mut request).context(what).map_err(
            |error| match error.source.raw_os_error() {
                Some(libc::EBUSY) => {
                    error.help("an interface of this name exists: choose another with --tap")
                }
                _ => error.help_if_denied(NEED_PRIVILEGE),
            },
        )?;
        Ok(Tap { fd, name: name.to_owned() })
    }

    /// Name of the interface.
    pub fn interface(&self) -> &str {
        &self.name
    }

    /// Reads the next frame that the system sends. Returns its length, or `None` if none is waiting.
    pub fn receive(&self, into: &mut [u8]) -> io::Result<Option<usize>> {
        sys::read(self.fd.as_fd(), into)
    }

    /// Passes a frame to the system as received. Errors: interface down, frame shorter than a header.
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        sys::write(self.fd.as_fd(), frame).map(drop)
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn explain(error: Error) -> Error {
    match error.source.raw_os_error() {
        Some(libc::ENOENT) => error.help(format!(
            "as root: `mkdir -p /dev/net && mknod -m 666 {DEVICE} c 10 200` \
             (in a container: start it with `--device {DEVICE}`)"
        )),
        Some(libc::ENODEV | libc::ENXIO) => {
            error.help("the kernel has no TUN/TAP driver: as root, `modprobe tun`")
        }
        _ => error.help_if_denied(&format!(
            "the device file must be writable: as root, `chmod 666 {DEVICE}` (an interface can still \
             only be created with CAP_NET_ADMIN, in a user namespace for example)"
        )),
    }
}
