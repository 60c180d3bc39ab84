//! Threads that wait for faults.

use super::kept::Kept;
use super::uffd::{Uffd, owned};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

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
