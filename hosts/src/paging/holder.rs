//! Keeps userfaultfd open, whatever descriptors the program closes. Without its last descriptor the kernel would no longer watch the range,
//! and fill absent pages with zeros. It ends the watch, and wakes the threads that serve faults, by descriptors of its own: the program's
//! may be other files by then.

use super::error::MappingError;
use super::uffd::unregister_and_close;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// An order to the thread.
enum Order {
    /// Makes the eventfd readable.
    Wake,
    /// Ends the watch, and drops the sender after that.
    EndWatch(Sender<()>),
}

/// A thread whose table of descriptors is its own, and has two: userfaultfd, and an eventfd that wakes the threads that serve faults.
pub struct Holder {
    /// `None` from the end on.
    orders: Option<Sender<Order>>,
    thread: Option<JoinHandle<()>>,
}

/// The thread's state.
struct Held {
    watched: bool,
    uffd: libc::c_int,
    end: libc::c_int,
    /// Start and bytes.
    range: (u64, u64),
}

impl Holder {
    /// Of a range by its start and bytes; `end` is an eventfd. Start it with signals blocked.
    pub fn new(uffd: BorrowedFd<'_>, end: BorrowedFd<'_>, range: (u64, u64)) -> Result<Holder, MappingError> {
        let failed = |source| MappingError::System { what: "keeping userfaultfd open", source };
        let held = Held { watched: true, uffd: uffd.as_raw_fd(), end: end.as_raw_fd(), range };
        let ((orders, ordered), (answer, answers)) = (channel(), channel());
        let hold = move || {
            let is_alone = close_others(held.uffd, held.end);
            let holds = is_alone.is_ok();
            if answer.send(is_alone).is_ok() && holds {
                held.serve(&ordered);
            }
        };
        let thread = std::thread::Builder::new().name("far-holder".to_owned());
        let thread = thread.spawn(hold).map_err(failed)?;
        let answered = answers.recv().unwrap_or_else(|_| Err(io::Error::other("its thread has ended")));
        answered.map_err(failed)?;
        Ok(Holder { orders: Some(orders), thread: Some(thread) })
    }

    /// Makes the eventfd readable, for ever.
    pub fn wake(&self) {
        self.order(Order::Wake);
    }

    /// Ends the watch, and waits until that has happened.
    pub fn end_watch(&self) {
        let (done, ended) = channel();
        self.order(Order::EndWatch(done));
        // An error by design: nothing is sent.
        let _ = ended.recv();
    }

    /// A thread that has panicked does nothing more.
    fn order(&self, order: Order) {
        let _ = self.orders.as_ref().map(|orders| orders.send(order));
    }
}

impl Drop for Holder {
    /// Ends the watch too.
    fn drop(&mut self) {
        self.orders = None;
        // A thread that has panicked has ended too.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Held {
    /// Until the holder is dropped.
    fn serve(mut self, orders: &Receiver<Order>) {
        for order in orders {
            match order {
                Order::Wake => self.wake(),
                Order::EndWatch(_done) => self.end_watch(),
            }
        }
        self.end_watch();
    }

    fn wake(&self) {
        let one = 1u64.to_ne_bytes();
        // SAFETY: pointer and length describe `one`. A counter that is full is readable anyway.
        unsafe { libc::write(self.end, one.as_ptr().cast(), one.len()) };
    }

    fn end_watch(&mut self) {
        if std::mem::take(&mut self.watched) {
            unregister_and_close(self.uffd, self.range.0, self.range.1);
        }
    }
}

/// Gives this thread a table of descriptors of its own, with two of them.
fn close_others(one: libc::c_int, other: libc::c_int) -> io::Result<()> {
    let (low, high) = (one.min(other) as libc::c_uint, one.max(other) as libc::c_uint);
    let others =
        [(0, low.checked_sub(1)), (low + 1, high.checked_sub(1)), (high + 1, Some(libc::c_uint::MAX))];
    let ranges = others.into_iter().filter_map(|(first, last)| Some((first, last?)));
    for (first, last) in ranges.filter(|(first, last)| first <= last) {
        // SAFETY: it takes no pointers, and the descriptors are closed in a copy of the table that nothing else uses.
        let closed = unsafe { libc::syscall(libc::SYS_close_range, first, last, libc::CLOSE_RANGE_UNSHARE) };
        if closed != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}
