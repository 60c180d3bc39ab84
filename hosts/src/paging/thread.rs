//! Threads that serve faults, and learn when the program changes the range.

use super::idle::Idle;
use super::inner::Inner;
use super::uffd::Message;
use std::io;

/// A thread, until the end that `idle` waits for. Errors: the kernel refuses to be asked for faults.
pub(super) fn serve(inner: &Inner, idle: Idle) -> io::Result<()> {
    let uffd = inner.memory.uffd();
    loop {
        let Some(message) = uffd.message()? else {
            if idle.ends()? {
                return Ok(());
            }
            continue;
        };
        let Message::Fault(fault) = message else {
            inner.lose(&mut inner.lock(), uffd.changed().unwrap_or_default());
            continue;
        };
        let answered = match inner.memory.page_at(fault.address) {
            None => inner.memory.refuse(fault.address),
            Some(page) => match inner.serve(page, fault.writes, fault.is_absent) {
                Ok(true) => inner.memory.wake(page),
                Ok(false) => Ok(()),
                // The reason was given.
                Err(_) => inner.memory.deny(page),
            },
        };
        if let Err(error) = answered {
            inner.lose(&mut inner.lock(), &format!("answering a fault: {error}"));
        }
    }
}
