//! Threads that serve faults.

use super::inner::Inner;
use super::uffd::Idle;
use std::io;

/// A thread, until the end that `idle` waits for. Errors: the kernel refuses to be asked for faults.
pub(super) fn serve(inner: &Inner, idle: Idle) -> io::Result<()> {
    let uffd = inner.memory.uffd();
    loop {
        let Some(fault) = uffd.fault()? else {
            if idle.ends()? {
                return Ok(());
            }
            continue;
        };
        let Some(page) = inner.memory.page_at(fault.address) else { continue };
        let answered = match inner.serve(page, fault.writes) {
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
