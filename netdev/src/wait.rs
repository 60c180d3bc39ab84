//! Waits for descriptors, with deadlines in nanoseconds.

use crate::clock;
use crate::sys;
use p4rack_wire::Nanos;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// A set of descriptors that one thread waits for. It holds duplicates, so none can be closed under it, and a
/// device that lives with its descriptor (a TAP) stays until the set is dropped.
#[derive(Debug, Default)]
pub struct Poller {
    fds: Vec<OwnedFd>,
    polled: Vec<libc::pollfd>,
}

impl Poller {
    /// An empty set.
    pub fn new() -> Poller {
        Poller::default()
    }

    /// Adds `fd`, to wait for input on it. Returns its number for [`Poller::ready`].
    pub fn add(&mut self, fd: impl AsFd) -> io::Result<usize> {
        let fd = fd.as_fd().try_clone_to_owned()?;
        self.polled.push(libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 });
        self.fds.push(fd);
        Ok(self.fds.len() - 1)
    }

    /// Waits until a descriptor has input or `until` has passed. `None` waits forever; a time in the past
    /// only polls.
    pub fn wait(&mut self, until: Option<Nanos>) -> io::Result<()> {
        let timeout = until.map(|until| {
            let left = until.saturating_sub(clock::now()).0.min(3_600_000_000_000);
            libc::timespec { tv_sec: (left / 1_000_000_000) as i64, tv_nsec: (left % 1_000_000_000) as i64 }
        });
        let pointer = timeout.as_ref().map_or(std::ptr::null(), |t| t as *const libc::timespec);
        // SAFETY: pointer and count describe `polled`, live and exclusive; the descriptors in it are
        // kept open by `fds`; `pointer` is null or points to `timeout`, which outlives the call.
        let returned = unsafe {
            libc::ppoll(
                self.polled.as_mut_ptr(),
                self.polled.len() as libc::nfds_t,
                pointer,
                std::ptr::null(),
            )
        };
        match sys::check(returned) {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                self.polled.iter_mut().for_each(|p| p.revents = 0);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Whether the last [`Poller::wait`] found input, an error or a hang-up on a descriptor.
    pub fn ready(&self, number: usize) -> bool {
        self.polled.get(number).is_some_and(|p| p.revents != 0)
    }
}

/// A descriptor that another thread can make readable: an eventfd.
#[derive(Debug)]
pub struct Waker(OwnedFd);

impl Waker {
    /// Creates a waker that is not readable.
    pub fn new() -> io::Result<Waker> {
        // SAFETY: `eventfd` takes no pointers.
        sys::owned(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) }).map(Waker)
    }

    /// A second handle on the same descriptor, for the thread that wakes.
    pub fn try_clone(&self) -> io::Result<Waker> {
        self.0.try_clone().map(Waker)
    }

    /// Makes it readable. Several calls before the other side looks count as one.
    pub fn wake(&self) {
        // The counter can only be full if it is readable anyway.
        let _ = sys::write(self.0.as_fd(), &1u64.to_ne_bytes());
    }

    /// Makes it unreadable.
    pub fn clear(&self) {
        let _ = sys::read(self.0.as_fd(), &mut [0; 8]);
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_never_left_early() {
        let mut poller = Poller::new();
        for us in [0, 50, 300, 2000] {
            let until = clock::now() + Nanos::from_micros(us);
            poller.wait(Some(until)).unwrap();
            assert!(clock::now() >= until, "woke before {us} µs were over");
        }
    }

    #[test]
    fn a_wake_ends_the_wait_and_clear_makes_it_quiet() {
        let waker = Waker::new().unwrap();
        let mut poller = Poller::new();
        let number = poller.add(&waker).unwrap();
        let other = waker.try_clone().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(move || other.wake());
            poller.wait(None).unwrap();
        });
        assert!(poller.ready(number));
        waker.clear();
        poller.wait(Some(clock::now())).unwrap();
        assert!(!poller.ready(number));
    }
}
