//! Switches off interfaces' changes of frames: segmentation, merging, checksums, VLAN tags.

use crate::error::{Context, NEED_PRIVILEGE};
use crate::{Error, sys};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// The kernel's `struct ethtool_value`.
#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

/// Offloads: name, command to read, command to write (from the kernel's `ethtool.h`). Segmentation comes
/// first, because some drivers switch it off together with checksums.
const OFFLOADS: [(&str, u32, u32); 6] = [
    ("tcp-segmentation", 0x1e, 0x1f),
    ("generic-segmentation", 0x23, 0x24),
    ("generic-receive", 0x2b, 0x2c),
    ("tx-checksumming", 0x16, 0x17),
    ("rx-checksumming", 0x14, 0x15),
    ("scatter-gather", 0x18, 0x19),
];
const GET_FLAGS: u32 = 0x25;
const SET_FLAGS: u32 = 0x26;
/// Flags: merging on receive, and VLAN tags moved out of the frame on send and on receive.
const FLAGS: [(&str, u32); 3] = [("large-receive", 1 << 15), ("tx-vlan", 1 << 7), ("rx-vlan", 1 << 8)];

fn call(socket: BorrowedFd<'_>, interface: &str, command: u32, data: u32) -> io::Result<u32> {
    let mut value = Value { command, data };
    let mut request = sys::ifreq(interface)?;
    request.ifr_ifru.ifru_data = (&mut value as *mut Value).cast();
    // `value`, to which the request points, lives until the end of this function.
    sys::ioctl_ifreq(socket, libc::SIOCETHTOOL as libc::Ioctl, &mut request)?;
    Ok(value.data)
}

/// Switches off all offloads of an interface in the calling thread's network namespace. Returns the names of
/// those that the driver has fixed on. An offload that the driver does not know counts as off.
pub fn offloads_off(interface: &str) -> Result<Vec<&'static str>, Error> {
    let what = || format!("switching off the offloads of interface `{interface}`");
    let socket = sys::socket(libc::AF_INET, libc::SOCK_DGRAM, 0).context(what)?;
    let socket = socket.as_fd();
    let refused = |error: io::Error| {
        let fatal = [libc::ENODEV, libc::EPERM];
        error.raw_os_error().is_some_and(|code| fatal.contains(&code)).then_some(error)
    };
    for (_, get, set) in OFFLOADS {
        if call(socket, interface, get, 0).unwrap_or(0) != 0
            && let Some(error) = call(socket, interface, set, 0).err().and_then(refused)
        {
            return Err(Error::new(what(), error).help_if_denied(NEED_PRIVILEGE));
        }
    }
    let on = match call(socket, interface, GET_FLAGS, 0) {
        Ok(on) => on,
        Err(error) if error.raw_os_error() == Some(libc::ENODEV) => return Err(error).context(what),
        Err(_) => 0,
    };
    for (_, bit) in FLAGS.iter().filter(|(_, bit)| on & bit != 0) {
        let now = call(socket, interface, GET_FLAGS, 0).unwrap_or(0);
        if let Some(error) = call(socket, interface, SET_FLAGS, now & !bit).err().and_then(refused) {
            return Err(Error::new(what(), error).help_if_denied(NEED_PRIVILEGE));
        }
    }
    offloads_on(interface)
}

/// Names of the offloads that are on.
pub fn offloads_on(interface: &str) -> Result<Vec<&'static str>, Error> {
    let what = || format!("reading the offloads of interface `{interface}`");
    let socket = sys::socket(libc::AF_INET, libc::SOCK_DGRAM, 0).context(what)?;
    sys::interface_index(interface).context(what)?;
    let socket = socket.as_fd();
    let flags = call(socket, interface, GET_FLAGS, 0).unwrap_or(0);
    let single = OFFLOADS
        .into_iter()
        .filter(|(_, get, _)| call(socket, interface, *get, 0).unwrap_or(0) != 0)
        .map(|(name, ..)| name);
    Ok(single.chain(FLAGS.into_iter().filter(|(_, bit)| flags & bit != 0).map(|(name, _)| name)).collect())
}

/// The kernel's `struct ethtool_channels`: command, four maxima, then receive, send, other, combined.
#[repr(C)]
struct Channels {
    command: u32,
    numbers: [u32; 8],
}

/// Number of receive queues of an interface; 1 if the driver does not say.
pub fn receive_queues(interface: &str) -> u32 {
    const GET_CHANNELS: u32 = 0x3c;
    let mut channels = Channels { command: GET_CHANNELS, numbers: [0; 8] };
    let asked = sys::socket(libc::AF_INET, libc::SOCK_DGRAM, 0).and_then(|socket| {
        let mut request = sys::ifreq(interface)?;
        request.ifr_ifru.ifru_data = (&mut channels as *mut Channels).cast();
        // `channels`, to which the request points, lives until the end of this function.
        sys::ioctl_ifreq(socket.as_fd(), libc::SIOCETHTOOL as libc::Ioctl, &mut request)
    });
    let [.., receive, _, _, combined] = channels.numbers;
    if asked.is_ok() { (receive + combined).max(1) } else { 1 }
}
