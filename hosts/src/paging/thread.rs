//! Threads that serve faults. One of them reads messages; before it waits for others or for the region, the next one takes over.

use super::inner::Inner;
use super::uffd::{Fault, MESSAGES};
use p4rack_netdev::wait::{Poller, Waker};
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Faults that were read and not served; the thread that holds its lock reads.
#[derive(Default)]
pub(super) struct Queue {
    faults: [Fault; MESSAGES],
    next: usize,
    count: usize,
}

/// A thread, until `end` wakes. Errors: the kernel refuses to be waited for.
pub(super) fn serve(inner: &Inner, queue: &Mutex<Queue>, end: &Waker) -> io::Result<()> {
    let mut poller = Poller::new();
    poller.add(inner.memory.uffd())?;
    let ends = poller.add(end)?;
    let mut reads: Option<MutexGuard<'_, Queue>> = None;
    loop {
        let mut queue = reads.take().unwrap_or_else(|| queue.lock().unwrap_or_else(PoisonError::into_inner));
        while queue.next == queue.count {
            let Queue { faults, next, count } = &mut *queue;
            (*next, *count) = (0, inner.memory.uffd().faults(faults)?);
            if *count == 0 {
                poller.wait(None)?;
                if poller.ready(ends) {
                    return Ok(());
                }
            }
        }
        let fault = queue.faults[queue.next];
        queue.next += 1;
        reads = Some(queue);
        let Some(page) = inner.memory.page_at(fault.address) else { continue };
        let answered = match inner.serve(page, fault.writes, || drop(reads.take())) {
            Ok(true) => inner.memory.wake(page),
            Ok(false) => Ok(()),
            // The reason was given.
            Err(_) => inner.memory.deny(page),
        };
        if let Err(error) = answered {
            inner.lose(&mut inner.lock(), &format!("answering a fault: {error}"));
        }
    }
}
