//! Threads that serve faults.

use super::inner::Inner;
use super::uffd::{Fault, Idle};
use p4rack_netdev::clock;
use p4rack_wire::Nanos;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

/// The right to look for faults without sleeping, of one thread at a time: two would take each other's time.
#[derive(Debug, Default)]
pub(super) struct Spinning(AtomicBool);

impl Spinning {
    /// Looks for a fault for a while, unless another thread does. `None`: none came.
    fn look(&self, inner: &Inner, spin: Nanos) -> io::Result<Option<Fault>> {
        if spin == Nanos::ZERO || self.0.swap(true, Ordering::Acquire) {
            return Ok(None);
        }
        let (uffd, until) = (inner.memory.uffd(), clock::now() + spin);
        let mut found = uffd.fault();
        while matches!(found, Ok(None)) && clock::now() < until {
            std::hint::spin_loop();
            found = uffd.fault();
        }
        self.0.store(false, Ordering::Release);
        found
    }
}

/// A thread, until the end that `idle` waits for. After a fault it looks for the next one for `spin` before it sleeps. Errors: the kernel
/// refuses to be asked for faults.
pub(super) fn serve(inner: &Inner, idle: Idle, spinning: &Spinning, spin: Nanos) -> io::Result<()> {
    let uffd = inner.memory.uffd();
    let mut has_served = false;
    loop {
        let found = match uffd.fault()? {
            None if std::mem::take(&mut has_served) => spinning.look(inner, spin)?,
            found => found,
        };
        let Some(fault) = found else {
            if idle.ends()? {
                return Ok(());
            }
            continue;
        };
        has_served = true;
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
