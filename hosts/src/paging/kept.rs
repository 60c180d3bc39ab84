//! Descriptors of a mapping, which are closed in the end only if they are still its own. A program may close descriptors that it does not
//! know, as daemons do, and the kernel gives their numbers to the files that it opens next.

use std::fs;
use std::io;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Distinguishes an open file from a later one with the same descriptor number.
#[derive(PartialEq, Eq)]
struct Identity {
    device: libc::dev_t,
    inode: libc::ino_t,
    /// Some kinds of files share an inode, so what they watch counts too, as `/proc` shows it. Empty if that can't be read.
    watches: Vec<String>,
}

impl Identity {
    fn of(fd: BorrowedFd<'_>) -> io::Result<Identity> {
        let number = fd.as_raw_fd();
        let mut about = MaybeUninit::<libc::stat>::uninit();
        // SAFETY: the pointer is to room for the answer.
        if unsafe { libc::fstat(number, about.as_mut_ptr()) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has filled it.
        let about = unsafe { about.assume_init() };
        let text = fs::read_to_string(format!("/proc/self/fdinfo/{number}")).unwrap_or_default();
        let watches = text.lines().filter(|line| line.starts_with("tfd:") || line.starts_with("Pid:"));
        Ok(Identity {
            device: about.st_dev,
            inode: about.st_ino,
            watches: watches.map(str::to_owned).collect(),
        })
    }
}

/// A descriptor. Dropped, it is closed if its number still belongs to the same file, and left alone otherwise.
pub struct Kept {
    fd: ManuallyDrop<OwnedFd>,
    identity: Identity,
}

impl Kept {
    /// Keeps a descriptor that watches all that it ever will.
    pub fn new(fd: OwnedFd) -> io::Result<Kept> {
        let identity = Identity::of(fd.as_fd())?;
        Ok(Kept { fd: ManuallyDrop::new(fd), identity })
    }
}

impl AsFd for Kept {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl AsRawFd for Kept {
    fn as_raw_fd(&self) -> libc::c_int {
        self.fd.as_raw_fd()
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if Identity::of(self.as_fd()).is_ok_and(|now| now == self.identity) {
            // SAFETY: it is not used after this.
            unsafe { ManuallyDrop::drop(&mut self.fd) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use p4rack_netdev::wait::Waker;
    use std::os::fd::FromRawFd;

    fn epoll(watched: &Waker) -> OwnedFd {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 0 };
        // SAFETY: the new descriptor is this function's, and the kernel copies the event.
        unsafe {
            let fd = OwnedFd::from_raw_fd(libc::epoll_create1(libc::EPOLL_CLOEXEC));
            let watched = watched.as_fd().as_raw_fd();
            assert_eq!(libc::epoll_ctl(fd.as_raw_fd(), libc::EPOLL_CTL_ADD, watched, &mut event), 0);
            fd
        }
    }

    fn is_open(number: libc::c_int) -> bool {
        // SAFETY: it takes no pointers.
        unsafe { libc::fcntl(number, libc::F_GETFD) >= 0 }
    }

    #[test]
    fn only_the_same_file_is_closed() {
        let (one, two) = (Waker::new().unwrap(), Waker::new().unwrap());
        let kept = Kept::new(epoll(&one)).unwrap();
        let number = kept.as_raw_fd();
        drop(kept);
        assert!(!is_open(number), "its own");
        // In place of it a file of another kind, or one of its kind that watches something else.
        for other in [epoll(&two), tempfile::tempfile().unwrap().into()] {
            let kept = Kept::new(epoll(&one)).unwrap();
            let number = kept.as_raw_fd();
            // SAFETY: the number is replaced on purpose; the new file is closed below.
            assert_eq!(unsafe { libc::dup3(other.as_raw_fd(), number, libc::O_CLOEXEC) }, number);
            drop(kept);
            assert!(is_open(number), "the program's");
            // SAFETY: nothing else has this number.
            drop(unsafe { OwnedFd::from_raw_fd(number) });
        }
    }
}
