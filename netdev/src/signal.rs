//! Signals as a descriptor, so that an event loop handles them between packets.

use crate::error::Context;
use crate::{Error, sys};
use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// A signal that the daemons handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGTERM or SIGINT: end gracefully.
    End,
    /// SIGUSR1: write statistics.
    Report,
}

/// Blocks signals in this thread. Returns a descriptor from which they are read, and the mask before.
fn blocked(signals: &[libc::c_int], flags: libc::c_int) -> io::Result<(OwnedFd, libc::sigset_t)> {
    let mut set = MaybeUninit::<libc::sigset_t>::zeroed();
    let mut before = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: `set` is live and exclusive; `sigemptyset` initialises it before the others read it. All zeros is a valid set.
    let (set, refused) = unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in signals {
            libc::sigaddset(set.as_mut_ptr(), *signal);
        }
        let set = set.assume_init();
        (set, libc::pthread_sigmask(libc::SIG_BLOCK, &set, before.as_mut_ptr()))
    };
    if refused != 0 {
        return Err(io::Error::from_raw_os_error(refused));
    }
    // SAFETY: `set` is initialised and outlives the call.
    let descriptor = sys::owned(unsafe { libc::signalfd(-1, &set, libc::SFD_CLOEXEC | flags) })?;
    // SAFETY: the successful call wrote it.
    Ok((descriptor, unsafe { before.assume_init() }))
}

/// Receives SIGTERM, SIGINT and SIGUSR1 in place of their default actions.
#[derive(Debug)]
pub struct Signals(OwnedFd);

impl Signals {
    /// Takes over the signals. Call this before any other thread starts: threads inherit the mask.
    pub fn take() -> Result<Signals, Error> {
        let taken = blocked(&[libc::SIGTERM, libc::SIGINT, libc::SIGUSR1], libc::SFD_NONBLOCK);
        let (descriptor, _) = taken.context(|| "taking over SIGTERM, SIGINT and SIGUSR1".to_owned())?;
        Ok(Signals(descriptor))
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

/// Signals that a command passes on to the program that it runs.
const RELAYED: [libc::c_int; 6] =
    [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGUSR1, libc::SIGUSR2];

/// A signal to a command that runs a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relayed {
    /// A child has ended or stopped.
    Child,
    /// A signal for the program, by its number.
    Signal(i32),
}

/// Receives SIGCHLD and the signals that end or instruct a program in place of their default actions.
pub struct Relay {
    descriptor: OwnedFd,
    /// The mask before.
    before: libc::sigset_t,
}

impl Relay {
    /// Takes over the signals. Call this before any other thread starts: threads inherit the mask, and so do programs: see
    /// [`restore_in`](Self::restore_in).
    pub fn take() -> Result<Relay, Error> {
        let all: Vec<_> = RELAYED.into_iter().chain([libc::SIGCHLD]).collect();
        let (descriptor, before) =
            blocked(&all, 0).context(|| "taking over a program's signals".to_owned())?;
        Ok(Relay { descriptor, before })
    }

    /// Gives a program the mask that this process had before.
    pub fn restore_in(&self, program: &mut Command) {
        let before = self.before;
        let restore = move || {
            // SAFETY: the mask is initialised and outlives the call, which is safe between fork and exec.
            match unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut()) } {
                0 => Ok(()),
                refused => Err(io::Error::from_raw_os_error(refused)),
            }
        };
        // SAFETY: the closure neither allocates nor locks.
        unsafe { program.pre_exec(restore) };
    }

    /// Waits for a signal. Signals of the terminal are left out: they reach the program too, as a process of the same
    /// group.
    pub fn wait(&self) -> Result<Relayed, Error> {
        loop {
            let mut info = [0u8; size_of::<libc::signalfd_siginfo>()];
            let read = sys::read(self.descriptor.as_fd(), &mut info)
                .context(|| "waiting for a signal".to_owned())?;
            if read.is_none() {
                continue;
            }
            // `ssi_signo` is the struct's first field, `ssi_code` the third.
            let [number, code] =
                [0, 8].map(|at| i32::from_ne_bytes([info[at], info[at + 1], info[at + 2], info[at + 3]]));
            match number {
                libc::SIGCHLD => return Ok(Relayed::Child),
                _ if code == libc::SI_KERNEL => {}
                _ => return Ok(Relayed::Signal(number)),
            }
        }
    }
}
