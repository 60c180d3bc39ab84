//! Signals as a descriptor, so that an event loop handles them between packets.

use crate::error::Context;
use crate::{Error, sys};
use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// A signal that the daemons handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGTERM or SIGINT: end gracefully.
    End,
    /// SIGUSR1: write statistics.
    Report,
}

/// Receives SIGTERM, SIGINT and SIGUSR1 in place of their default actions.
#[derive(Debug)]
pub struct Signals(OwnedFd);

impl Signals {
    /// Takes over the signals. Call this before any other thread starts: threads inherit the mask.
    pub fn take() -> Result<Signals, Error> {
        let mut set = MaybeUninit::<libc::sigset_t>::zeroed();
        // SAFETY: `set` is live and exclusive; `sigemptyset` initialises it before the others read it.
        let set = unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGUSR1] {
                libc::sigaddset(set.as_mut_ptr(), signal);
            }
            set.assume_init()
        };
        let what = || "taking over SIGTERM, SIGINT and SIGUSR1".to_owned();
        // SAFETY: `set` is initialised and outlives the call; the old mask is not asked for.
        let refused = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()) };
        if refused != 0 {
            return Err(io::Error::from_raw_os_error(refused)).context(what);
        }
        // SAFETY: `set` is initialised and outlives the call.
        let fd = unsafe { libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
        sys::owned(fd).map(Signals).context(what)
    }

    /// The next pending signal, if any.
    pub fn next(&self) -> Option<Signal> {
        let mut info = [0u8; size_of::<libc::signalfd_siginfo>()];
        match sys::read(self.0.as_fd(), &mut info) {
            // `ssi_signo` is the struct's first field.
            Ok(Some(_))
                if u32::from_ne_bytes([info[0], info[1], info[2], info[3]]) == libc::SIGUSR1 as u32 =>
            {
                Some(Signal::Report)
            }
            Ok(Some(_)) => Some(Signal::End),
            _ => None,
        }
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
