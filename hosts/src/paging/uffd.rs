//! Userfaultfd: the kernel's interface, as far as a mapping needs it, over `libc`.
//!
//! The crate `userfaultfd` has most of it, but generates its constants when it is built, with libclang, and lacks faults by signal and
//! poison.

use super::error::MappingError;
use super::kept::Kept;
use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::path::Path;

const DEVICE: &str = "/dev/userfaultfd";
const SYSCTL: &str = "/proc/sys/vm/unprivileged_userfaultfd";

const TYPE: u32 = 0xaa;
const API: u64 = 0xaa;
const NEW: libc::Ioctl = libc::_IO(TYPE, 0x00);
const HANDSHAKE: libc::Ioctl = libc::_IOWR::<[u64; 3]>(TYPE, 0x3f);
const REGISTER: libc::Ioctl = libc::_IOWR::<[u64; 4]>(TYPE, 0x00);
const UNREGISTER: libc::Ioctl = libc::_IOR::<[u64; 2]>(TYPE, 0x01);
const WAKE: libc::Ioctl = libc::_IOR::<[u64; 2]>(TYPE, 0x02);
const COPY: libc::Ioctl = libc::_IOWR::<[u64; 5]>(TYPE, 0x03);
const WRITEPROTECT: libc::Ioctl = libc::_IOWR::<[u64; 3]>(TYPE, 0x06);
const POISON: libc::Ioctl = libc::_IOWR::<[u64; 4]>(TYPE, 0x08);

const MODE_MISSING: u64 = 1;
const MODE_WRITEPROTECT: u64 = 1 << 1;
const COPY_PROTECTED: u64 = 1 << 1;
const USER_MODE_ONLY: libc::c_int = 1;

const FEATURE_WRITEPROTECT: u64 = 1;
const FEATURE_SIGBUS: u64 = 1 << 7;
const FEATURE_POISON: u64 = 1 << 14;

const EVENT_FAULT: u8 = 0x12;
const FAULT_WRITES: u64 = 1;

/// A fault that a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    pub address: u64,
    pub writes: bool,
}

/// A descriptor of userfaultfd.
pub struct Uffd {
    fd: Kept,
    can_poison: bool,
}

/// Ends a registration by any number of its descriptor, and closes that. Threads that wait go on.
pub fn unregister_and_close(number: libc::c_int, start: u64, bytes: u64) {
    let mut words = [start, bytes];
    // SAFETY: the request takes a struct of two words. Nothing can be done if either call fails. System calls, as another library may have
    // taken the place of `close`.
    unsafe {
        libc::ioctl(number, UNREGISTER, words.as_mut_ptr());
        libc::syscall(libc::SYS_close, number);
    }
}

/// Errors: the process may not serve faults by threads, or the kernel can't. The error says which privilege is missing
/// and how to get it.
pub fn check_privileges() -> Result<(), MappingError> {
    Uffd::open(false).map(drop)
}

fn system_call(flags: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: it takes no pointers.
    owned(unsafe { libc::syscall(libc::SYS_userfaultfd, flags) })
}

fn owned(returned: libc::c_long) -> io::Result<OwnedFd> {
    if returned < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just returned it.
    Ok(unsafe { OwnedFd::from_raw_fd(returned as libc::c_int) })
}

/// A descriptor that serves the kernel's accesses too: by the device, or by the system call.
fn open_privileged(
    device: &Path,
    sysctl: &Path,
    system_call: impl Fn(libc::c_int) -> io::Result<OwnedFd>,
) -> Result<OwnedFd, MappingError> {
    let flags = libc::O_CLOEXEC | libc::O_NONBLOCK;
    let by_device = OpenOptions::new().read(true).write(true).open(device).and_then(|device| {
        // SAFETY: it takes no pointers.
        owned(unsafe { libc::ioctl(device.as_raw_fd(), NEW, flags) }.into())
    });
    let device_error = match by_device {
        Ok(fd) => return Ok(fd),
        Err(error) => error,
    };
    system_call(flags).map_err(|error| {
        if error.raw_os_error() == Some(libc::ENOSYS) {
            return unsupported("the kernel has none".to_owned());
        }
        let setting = std::fs::read_to_string(sysctl).unwrap_or_else(|error| format!("unreadable: {error}"));
        let why = format!(
            "{}: {device_error}; system call: {error}; vm.unprivileged_userfaultfd is {}, and the process has no CAP_SYS_PTRACE",
            device.display(),
            setting.trim(),
        );
        let help = "run it as root, or give the user the device (`sudo setfacl -m u:$USER:rw /dev/userfaultfd`), or allow it to all (`sudo sysctl vm.unprivileged_userfaultfd=1`)";
        MappingError::Userfaultfd { what: "opening it", why, help }
    })
}

fn unsupported(why: String) -> MappingError {
    let help = "use Linux 5.11 or later with CONFIG_USERFAULTFD";
    MappingError::Userfaultfd { what: "asking the kernel for it", why, help }
}

impl Uffd {
    /// Faults arrive as messages, or as SIGBUS in the thread that faults.
    pub fn open(by_signal: bool) -> Result<Uffd, MappingError> {
        let open = || {
            let fd = match by_signal {
                true => {
                    let flags = libc::O_CLOEXEC | libc::O_NONBLOCK | USER_MODE_ONLY;
                    system_call(flags).map_err(|error| unsupported(error.to_string()))
                }
                false => open_privileged(Path::new(DEVICE), Path::new(SYSCTL), system_call),
            };
            Kept::new(fd?)
                .map_err(|source| MappingError::System { what: "asking for a file's inode", source })
        };
        // A descriptor has one handshake. This one asks for the available features; enabling them needs another
        // descriptor.
        let asked = Uffd { fd: open()?, can_poison: false };
        let mut api = [API, 0, 0];
        asked.call(HANDSHAKE, &mut api).map_err(|error| unsupported(error.to_string()))?;
        let wanted = FEATURE_WRITEPROTECT | if by_signal { FEATURE_SIGBUS } else { 0 };
        if api[1] & wanted != wanted {
            return Err(unsupported(format!("it has the features {:#x}, without {wanted:#x}", api[1])));
        }
        let poison = api[1] & FEATURE_POISON;
        let uffd = Uffd { fd: open()?, can_poison: poison != 0 };
        let mut api = [API, wanted | poison, 0];
        uffd.call(HANDSHAKE, &mut api).map_err(|error| unsupported(error.to_string()))?;
        Ok(uffd)
    }

    /// Whether [`Uffd::poison`] may be called.
    pub fn can_poison(&self) -> bool {
        self.can_poison
    }

    /// An ioctl that takes a struct of 64-bit words; repeated while the address space changes.
    fn call<const N: usize>(&self, request: libc::Ioctl, words: &mut [u64; N]) -> io::Result<()> {
        loop {
            // SAFETY: all requests of this module take a struct of as many words as their constants say, which the type of `words`
            // repeats. Their effect on the process's memory is the caller's concern, and only `copy` writes any.
            if unsafe { libc::ioctl(self.fd.as_raw_fd(), request, words.as_mut_ptr()) } == 0 {
                return Ok(());
            }
            let error = io::Error::last_os_error();
            if error.raw_os_error() != Some(libc::EAGAIN) {
                return Err(error);
            }
        }
    }

    /// Absent pages of a range fault from now on, and protected ones when they are written.
    pub fn register(&self, start: u64, bytes: u64) -> io::Result<()> {
        self.call(REGISTER, &mut [start, bytes, MODE_MISSING | MODE_WRITEPROTECT, 0])
    }

    /// Wakes the threads that wait for a range.
    pub fn wake(&self, start: u64, bytes: u64) -> io::Result<()> {
        self.call(WAKE, &mut [start, bytes])
    }

    /// Protects a range, or ends its protection and wakes the threads that wait for it.
    pub fn protect(&self, start: u64, bytes: u64, protects: bool) -> io::Result<()> {
        self.call(WRITEPROTECT, &mut [start, bytes, protects.into()])
    }

    /// Puts bytes in place of an absent page of a registered range, in one step, and wakes the threads that wait for it.
    pub fn copy(&self, to: u64, from: &[u8], protects: bool) -> io::Result<()> {
        let mode = if protects { COPY_PROTECTED } else { 0 };
        self.call(COPY, &mut [to, from.as_ptr() as u64, from.len() as u64, mode, 0])
    }

    /// Makes accesses to an absent page end in SIGBUS, and wakes the threads that wait for it.
    pub fn poison(&self, start: u64, bytes: u64) -> io::Result<()> {
        self.call(POISON, &mut [start, bytes, 0, 0])
    }

    /// The next fault that has arrived.
    pub fn fault(&self) -> io::Result<Option<Fault>> {
        let mut message = [0u64; 4];
        // SAFETY: pointer and length describe `message`.
        let read =
            unsafe { libc::read(self.fd.as_raw_fd(), message.as_mut_ptr().cast(), size_of_val(&message)) };
        if read < 0 {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(None),
                _ => Err(error),
            };
        }
        let [event, flags, address, _] = message;
        let is_fault = event.to_ne_bytes()[0] == EVENT_FAULT;
        Ok(is_fault.then_some(Fault { address, writes: flags & FAULT_WRITES != 0 }))
    }
}

/// A thread without a fault to serve. A fault wakes one of them.
pub struct Idle(Kept);

impl Idle {
    /// Numbers of the events to wait for.
    const FAULT: u64 = 0;
    const END: u64 = 1;

    /// Waits for faults, and for the end.
    pub fn new(uffd: &Uffd, end: &impl AsFd) -> io::Result<Idle> {
        // SAFETY: it takes no pointers.
        let epoll = owned(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) }.into())?;
        watch(&epoll, uffd.as_fd(), libc::EPOLLIN | libc::EPOLLEXCLUSIVE, Idle::FAULT)?;
        watch(&epoll, end.as_fd(), libc::EPOLLIN, Idle::END)?;
        Kept::new(epoll).map(Idle)
    }

    /// Waits. Returns whether the end has come.
    pub fn ends(&self) -> io::Result<bool> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 2];
        // SAFETY: pointer and length describe `events`.
        let count = unsafe { libc::epoll_wait(self.0.as_raw_fd(), events.as_mut_ptr(), 2, -1) };
        match usize::try_from(count) {
            Ok(count) => Ok(events.iter().take(count).any(|event| { event.u64 } == Idle::END)),
            Err(_) => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => Ok(false),
                error => Err(error),
            },
        }
    }
}

fn watch(epoll: &OwnedFd, fd: BorrowedFd<'_>, events: libc::c_int, number: u64) -> io::Result<()> {
    let mut event = libc::epoll_event { events: events as u32, u64: number };
    // SAFETY: the pointer is to `event`, which the kernel copies.
    match unsafe { libc::epoll_ctl(epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, fd.as_raw_fd(), &mut event) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

impl AsFd for Uffd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named_with_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let sysctl = folder.path().join("unprivileged_userfaultfd");
        std::fs::write(&sysctl, "0\n").unwrap();
        let refused = |code| {
            let refuses = move |_| Err(io::Error::from_raw_os_error(code));
            open_privileged(&folder.path().join("absent"), &sysctl, refuses).unwrap_err().to_string()
        };
        let why = refused(libc::EPERM);
        for part in [
            "absent: No such file",
            "system call: Operation not permitted",
            "vm.unprivileged_userfaultfd is 0, and the process has no CAP_SYS_PTRACE",
            "setfacl -m u:$USER:rw /dev/userfaultfd",
            "sysctl vm.unprivileged_userfaultfd=1",
        ] {
            assert!(why.contains(part), "{why}");
        }
        let why = refused(libc::ENOSYS);
        assert!(why.contains("the kernel has none; use Linux 5.11 or later"), "{why}");
    }
}
