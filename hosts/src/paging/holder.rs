//! Keeps userfaultfd open, whatever descriptors the program closes. Without its last descriptor the kernel would no longer watch the range,
//! and fill absent pages with zeros. In the end it ends the watch by its own descriptor, as the program's may be another file by then.

use super::error::MappingError;
use super::uffd::unregister_and_close;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// A thread whose table of descriptors is its own, and has this one alone.
pub struct Holder {
    /// Dropped, it ends the thread.
    end: Sender<()>,
    thread: JoinHandle<()>,
}

impl Holder {
    /// Of a range by its start and bytes. Start it with signals blocked.
    pub fn new(held: BorrowedFd<'_>, (start, bytes): (u64, u64)) -> Result<Holder, MappingError> {
        let failed = |source| MappingError::System { what: "keeping userfaultfd open", source };
        let (held, (end, ends), (answer, answers)) = (held.as_raw_fd(), channel(), channel());
        let hold = move || {
            let is_alone = close_others(held);
            let holds = is_alone.is_ok();
            if answer.send(is_alone).is_ok() && holds {
                wait(&ends);
                unregister_and_close(held, start, bytes);
            }
        };
        let thread = std::thread::Builder::new().name("far-holder".to_owned());
        let thread = thread.spawn(hold).map_err(failed)?;
        let answered = answers.recv().unwrap_or_else(|_| Err(io::Error::other("its thread has ended")));
        answered.map_err(failed)?;
        Ok(Holder { end, thread })
    }

    /// Ends the watch and closes the descriptor, and waits until both have happened.
    pub fn close(self) {
        drop(self.end);
        // A thread that has panicked has ended too.
        let _ = self.thread.join();
    }
}

/// Until the sender is dropped.
fn wait(ends: &Receiver<()>) {
    while ends.recv().is_ok() {}
}

/// Gives this thread a table of descriptors of its own, with one of them.
fn close_others(held: i32) -> io::Result<()> {
    let held = held as libc::c_uint;
    let ranges = [held.checked_sub(1).map(|last| (0, last)), Some((held + 1, libc::c_uint::MAX))];
    for (first, last) in ranges.into_iter().flatten() {
        // SAFETY: it takes no pointers, and the descriptors are closed in a copy of the table that nothing else uses.
        let closed = unsafe { libc::syscall(libc::SYS_close_range, first, last, libc::CLOSE_RANGE_UNSHARE) };
        if closed != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}
