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
use std::sync::{OnceLock, PoisonError, RwLock};

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
const FEATURE_MOVED: u64 = 1 << 2;
const FEATURE_UNMAPPED: u64 = 1 << 6;
const FEATURE_SIGBUS: u64 = 1 << 7;
const FEATURE_POISON: u64 = 1 << 14;

const EVENT_FAULT: u8 = 0x12;
const EVENT_MOVED: u8 = 0x14;
const EVENT_UNMAPPED: u8 = 0x16;
const FAULT_WRITES: u64 = 1;
const FAULT_PROTECTED: u64 = 1 << 1;

/// A fault that a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    pub address: u64,
    pub writes: bool,
    /// Whether the page is absent; otherwise it is protected.
    pub is_absent: bool,
}

/// News of the range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    Fault(Fault),
    /// The program has changed the range: [`Uffd::changed`] says how.
    Changed,
}

/// A descriptor of userfaultfd.
pub struct Uffd {
    fd: Kept,
    can_poison: bool,
    /// Start and bytes of the registered range.
    range: OnceLock<(u64, u64)>,
    /// What the program has done to it: moved a part, or unmapped one. A move reports both, in this order.
    moved: OnceLock<String>,
    unmapped: OnceLock<String>,
    /// Held while a message is read and noted: the program's thread may go on in between.
    reading: RwLock<()>,
    /// Whether moves are noted late, so that another thread reads what follows first.
    #[cfg(test)]
    pauses: std::sync::atomic::AtomicBool,
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

pub(super) fn owned(returned: libc::c_long) -> io::Result<OwnedFd> {
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
        let asked = Uffd::of(open()?, false);
        let mut api = [API, 0, 0];
        asked.call(HANDSHAKE, &mut api).map_err(|error| unsupported(error.to_string()))?;
        let wanted = FEATURE_WRITEPROTECT
            | FEATURE_MOVED
            | FEATURE_UNMAPPED
            | if by_signal { FEATURE_SIGBUS } else { 0 };
        if api[1] & wanted != wanted {
            return Err(unsupported(format!("it has the features {:#x}, without {wanted:#x}", api[1])));
        }
        let poison = api[1] & FEATURE_POISON;
        let uffd = Uffd::of(open()?, poison != 0);
        let mut api = [API, wanted | poison, 0];
        uffd.call(HANDSHAKE, &mut api).map_err(|error| unsupported(error.to_string()))?;
        Ok(uffd)
    }

    fn of(fd: Kept, can_poison: bool) -> Uffd {
        let (moved, unmapped) = (OnceLock::new(), OnceLock::new());
        Uffd {
            fd,
            can_poison,
            range: OnceLock::new(),
            moved,
            unmapped,
            reading: RwLock::new(()),
            #[cfg(test)]
            pauses: false.into(),
        }
    }

    /// What the program has done to the range without the mapping: unmapped or moved a part of it. For a short time a move may count as
    /// unmapped: [`Uffd::check_changed`] waits for that.
    pub fn changed(&self) -> Option<&str> {
        self.moved.get().or_else(|| self.unmapped.get()).map(String::as_str)
    }

    /// Whether [`Uffd::poison`] may be called.
    pub fn can_poison(&self) -> bool {
        self.can_poison
    }

    /// An ioctl that takes a struct of 64-bit words.
    fn ioctl<const N: usize>(&self, request: libc::Ioctl, words: &mut [u64; N]) -> io::Result<()> {
        // SAFETY: all requests of this module take a struct of as many words as their constants say, which the type of `words`
        // repeats. Their effect on the process's memory is the caller's concern, and only `copy` writes any.
        match unsafe { libc::ioctl(self.fd.as_raw_fd(), request, words.as_mut_ptr()) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// The same, repeated while the address space changes. Errors: the kernel's; what the program has done to the range, if the pages are
    /// not there for that.
    fn call<const N: usize>(&self, request: libc::Ioctl, words: &mut [u64; N]) -> io::Result<()> {
        loop {
            let Err(error) = self.ioctl(request, words) else { return Ok(()) };
            match error.raw_os_error() {
                Some(libc::EAGAIN) => self.take_changes(),
                Some(libc::ENOENT) => return Err(self.check_changed().err().unwrap_or(error)),
                _ => return Err(error),
            }
        }
    }

    /// Waits until what other threads have read is noted.
    fn wait_for_notes(&self) {
        drop(self.reading.write().unwrap_or_else(PoisonError::into_inner));
    }

    /// Errors: the program has changed the range.
    pub fn check_changed(&self) -> io::Result<()> {
        self.wait_for_notes();
        self.changed().map_or(Ok(()), |changed| Err(io::Error::other(changed)))
    }

    /// The kernel refuses all operations until its news of the change is read, and all threads that read may be here.
    fn take_changes(&self) {
        let mut has_read = false;
        while let Ok(Some(_)) = self.message() {
            has_read = true;
        }
        // Faults that were read here come again.
        if let Some((start, bytes)) = self.range.get().filter(|_| has_read) {
            let _ = self.wake(*start, *bytes);
        }
    }

    /// Absent pages of a range fault from now on, and protected ones when they are written.
    pub fn register(&self, start: u64, bytes: u64) -> io::Result<()> {
        let _ = self.range.set((start, bytes));
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

    /// The next message that has arrived. The program's thread that has changed the range goes on once the message is read.
    pub fn message(&self) -> io::Result<Option<Message>> {
        let reading = self.reading.read().unwrap_or_else(PoisonError::into_inner);
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
        let [event, one, two, three] = message;
        Ok(match event.to_ne_bytes()[0] {
            EVENT_FAULT => Some(Message::Fault(Fault {
                address: two,
                writes: one & FAULT_WRITES != 0,
                is_absent: one & FAULT_PROTECTED == 0,
            })),
            EVENT_UNMAPPED => {
                let what = format!("the program has unmapped {one:#x} to {two:#x}, a part of it");
                let _ = self.unmapped.set(what);
                // Of a move, another thread may have read the first message and not noted it yet.
                drop(reading);
                self.wait_for_notes();
                Some(Message::Changed)
            }
            EVENT_MOVED => {
                self.deny_moved(two, three);
                let what = format!("the program has moved {three} bytes of it from {one:#x} to {two:#x}");
                let _ = self.moved.set(what);
                Some(Message::Changed)
            }
            _ => None,
        })
    }

    /// Faults on pages that were moved come here too, and have no answer. Accesses end in a signal instead, those that wait as well.
    fn deny_moved(&self, start: u64, bytes: u64) {
        #[cfg(test)]
        if self.pauses.load(std::sync::atomic::Ordering::Relaxed) {
            std::thread::sleep(std::time::Duration::from_millis(200));
        }
        // SAFETY: the pages were the mapping's, and the program has been told that it may not move them.
        unsafe { libc::mprotect(start as *mut libc::c_void, bytes as usize, libc::PROT_NONE) };
        let _ = self.ioctl(WAKE, &mut [start, bytes]);
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
    use std::sync::atomic::{AtomicBool, Ordering};

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

    /// The kernel reports a move, and then that the pages are no longer where they were. Two threads read that, and the first is late.
    #[test]
    fn a_move_is_no_unmapping_whichever_thread_notes_its_part_first() {
        const BYTES: usize = 64 << 12;
        let uffd = Uffd::open(true).unwrap();
        uffd.pauses.store(true, Ordering::Relaxed);
        let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping at an address that the kernel chooses.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), BYTES, access, flags, -1, 0) };
        assert_ne!(start, libc::MAP_FAILED);
        uffd.register(start as u64, BYTES as u64).unwrap();
        let has_moved = AtomicBool::new(false);
        // Until both messages are read: the call returns after that.
        let first_change = || {
            while !has_moved.load(Ordering::Relaxed) {
                if let Ok(Some(Message::Changed)) = uffd.message() {
                    return uffd.changed().map(str::to_owned);
                }
                std::thread::yield_now();
            }
            None
        };
        let moved = std::thread::scope(|scope| {
            let readers = [scope.spawn(first_change), scope.spawn(first_change)];
            // SAFETY: nothing refers to the pages.
            let moved = unsafe { libc::mremap(start, BYTES, 2 * BYTES, libc::MREMAP_MAYMOVE) };
            has_moved.store(true, Ordering::Relaxed);
            assert_ne!(moved, libc::MAP_FAILED);
            let seen = readers.map(|reader| reader.join().unwrap());
            for what in seen.iter().flatten() {
                assert!(what.starts_with("the program has moved "), "{what}");
            }
            assert!(seen.iter().flatten().count() > 0);
            moved as u64
        });
        // Else the kernel would report that the pages go, too.
        drop(uffd);
        // SAFETY: as above.
        unsafe { libc::munmap(moved as *mut libc::c_void, 2 * BYTES) };
    }
}
