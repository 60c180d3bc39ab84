//! Thin safe wrappers around system calls that several modules need.

use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// Converts the C convention (-1 and errno) to a `Result`.
pub(crate) fn check(returned: libc::c_int) -> io::Result<libc::c_int> {
    if returned < 0 { Err(io::Error::last_os_error()) } else { Ok(returned) }
}

/// Takes ownership of the descriptor that a system call just returned.
pub(crate) fn owned(returned: RawFd) -> io::Result<OwnedFd> {
    let fd = check(returned)?;
    // SAFETY: the kernel handed out `fd` a moment ago and it has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Opens a socket with close-on-exec.
pub(crate) fn socket(domain: i32, kind: i32, protocol: i32) -> io::Result<OwnedFd> {
    // SAFETY: `socket` takes no pointers.
    owned(unsafe { libc::socket(domain, kind | libc::SOCK_CLOEXEC, protocol) })
}

/// A type whose every bit pattern is a value, so that the kernel may read or fill it.
///
/// # Safety
/// Implement it only for integers and `repr(C)` structs of such, without references. Padding may
/// be present: the kernel alone looks at it.
pub(crate) unsafe trait Plain: Copy {}

// SAFETY: all of them are C integers, or structs of them.
unsafe impl Plain for libc::c_int {}
// SAFETY: as above.
unsafe impl Plain for libc::packet_mreq {}
// SAFETY: as above.
unsafe impl Plain for libc::tpacket_stats {}
// SAFETY: as above.
unsafe impl Plain for libc::sockaddr_ll {}
// SAFETY: as above.
unsafe impl Plain for libc::sockaddr_nl {}
// SAFETY: as above.
unsafe impl Plain for libc::tpacket_req {}
// SAFETY: as above.
unsafe impl Plain for libc::sockaddr_xdp {}
// SAFETY: as above.
unsafe impl Plain for libc::xdp_umem_reg {}
// SAFETY: as above.
unsafe impl Plain for libc::xdp_mmap_offsets {}
// SAFETY: as above.
unsafe impl Plain for libc::xdp_statistics {}

/// Sets a socket option.
pub(crate) fn set_option<T: Plain>(fd: BorrowedFd<'_>, level: i32, name: i32, value: &T) -> io::Result<()> {
    // SAFETY: pointer and length describe `value`, which outlives the call; the kernel only reads.
    check(unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            name,
            (value as *const T).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    })
    .map(drop)
}

/// Attaches a classic BPF program that says how many bytes of a frame to deliver.
pub(crate) fn attach_filter(fd: BorrowedFd<'_>, program: &[libc::sock_filter]) -> io::Result<()> {
    // The kernel only reads the instructions.
    let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_ptr().cast_mut() };
    // SAFETY: pointer and length describe `program`, whose pointer and length describe instructions; both outlive the call.
    check(unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const program).cast(),
            size_of::<libc::sock_fprog>() as libc::socklen_t,
        )
    })
    .map(drop)
}

/// Reads a socket option. Fails if the kernel's answer is shorter than `T`.
pub(crate) fn get_option<T: Plain>(fd: BorrowedFd<'_>, level: i32, name: i32) -> io::Result<T> {
    let mut value = MaybeUninit::<T>::zeroed();
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: pointer and length describe `value`; the kernel writes at most `length` bytes.
    check(unsafe { libc::getsockopt(fd.as_raw_fd(), level, name, value.as_mut_ptr().cast(), &mut length) })?;
    if (length as usize) < size_of::<T>() {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
    }
    // SAFETY: `T: Plain` means that zeroes and all bytes that the kernel wrote are a value.
    Ok(unsafe { value.assume_init() })
}

/// Binds a socket to an address of its family.
pub(crate) fn bind<T: Plain>(fd: BorrowedFd<'_>, address: &T) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: pointer and length describe `address`, which outlives the call; the kernel only reads.
    check(unsafe { libc::bind(fd.as_raw_fd(), (address as *const T).cast(), length) }).map(drop)
}

/// Gives a netlink socket a number; newer kernels send nothing to one without.
pub(crate) fn bind_netlink(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: it consists of integers.
    let mut any: libc::sockaddr_nl = unsafe { std::mem::zeroed() };
    any.nl_family = libc::AF_NETLINK as libc::sa_family_t;
    bind(fd, &any)
}

/// Requests large buffers for a socket, in both directions. Without root of the initial user namespace it gets what the system's limit
/// (`net.core.rmem_max`, `wmem_max`) permits.
pub fn set_buffers(fd: BorrowedFd<'_>, bytes: usize) -> io::Result<()> {
    let bytes = bytes.min(libc::c_int::MAX as usize / 2) as libc::c_int;
    for (force, plain) in [(libc::SO_RCVBUFFORCE, libc::SO_RCVBUF), (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF)] {
        // Only root of the initial user namespace may exceed the limit; others get the limit.
        if set_option(fd, libc::SOL_SOCKET, force, &bytes).is_err() {
            set_option(fd, libc::SOL_SOCKET, plain, &bytes)?;
        }
    }
    Ok(())
}

/// Fetches and clears the pending error of a socket.
pub(crate) fn take_error(fd: BorrowedFd<'_>) -> io::Result<()> {
    match get_option::<libc::c_int>(fd, libc::SOL_SOCKET, libc::SO_ERROR)? {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(code)),
    }
}

/// Makes a socket send the waiting frames of its ring.
pub(crate) fn send_nothing(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: no bytes and no address are passed.
    let sent =
        unsafe { libc::sendto(fd.as_raw_fd(), std::ptr::null(), 0, libc::MSG_DONTWAIT, std::ptr::null(), 0) };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Runs an ioctl whose argument is an `ifreq`.
pub(crate) fn ioctl_ifreq(
    fd: BorrowedFd<'_>,
    request: libc::Ioctl,
    ifreq: &mut libc::ifreq,
) -> io::Result<()> {
    // SAFETY: `ifreq` is a live, exclusive struct of the type that all requests used in this crate
    // expect; where the request follows `ifr_data`, the caller keeps that memory alive.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), request, ifreq as *mut libc::ifreq) }).map(drop)
}

/// An `ifreq` with only the interface name. Errors: a name that the kernel cannot represent.
pub(crate) fn ifreq(name: &str) -> io::Result<libc::ifreq> {
    check_name(name)?;
    // SAFETY: `ifreq` is a C struct of integers, arrays, pointers: zeroes are a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    Ok(request)
}

/// Whether the kernel can represent an interface name.
pub(crate) fn check_name(name: &str) -> io::Result<()> {
    let fits = !name.is_empty()
        && name.len() < libc::IFNAMSIZ
        && !name.bytes().any(|b| b == 0 || b == b'/' || b.is_ascii_whitespace());
    if fits {
        return Ok(());
    }
    let why = "an interface name has 1 to 15 characters, no blanks and no slash";
    Err(io::Error::new(io::ErrorKind::InvalidInput, why))
}

/// Index of an interface in the calling thread's network namespace.
pub(crate) fn interface_index(name: &str) -> io::Result<i32> {
    check_name(name)?;
    let mut text = [0 as libc::c_char; libc::IFNAMSIZ];
    for (to, from) in text.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    // SAFETY: `check_name` left room for the terminating zero.
    match unsafe { libc::if_nametoindex(text.as_ptr()) } {
        0 => Err(io::Error::last_os_error()),
        index => Ok(index as i32),
    }
}

/// `read` without blocking: `None` if nothing is available.
pub(crate) fn read(fd: BorrowedFd<'_>, into: &mut [u8]) -> io::Result<Option<usize>> {
    // SAFETY: pointer and length describe `into`, which is live and exclusive.
    let returned = unsafe { libc::read(fd.as_raw_fd(), into.as_mut_ptr().cast(), into.len()) };
    if returned >= 0 {
        return Ok(Some(returned as usize));
    }
    let error = io::Error::last_os_error();
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(None),
        _ => Err(error),
    }
}

/// A single `write`.
pub(crate) fn write(fd: BorrowedFd<'_>, from: &[u8]) -> io::Result<usize> {
    // SAFETY: pointer and length describe `from`, which outlives the call; the kernel only reads.
    let returned = unsafe { libc::write(fd.as_raw_fd(), from.as_ptr().cast(), from.len()) };
    if returned >= 0 { Ok(returned as usize) } else { Err(io::Error::last_os_error()) }
}
