//! What threads share: local memory behind its lock, the way behind another, and how they wait.
//!
//! ```text
//!  a thread waits ─┬─ the way is free ─▶ drives it for all: submits, polls ── then ─▶ wakes the others
//!                  └─ another drives ──▶ sleeps
//!  keeper: drives a moment each millisecond while something is under way, so that it ends although no thread waits
//! ```

use super::local::Local;
use super::way::{Transport, lock};
use p4rack_wire::Nanos;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a thread that drives the way waits for ends before it looks for new requests.
const WAIT: Nanos = Nanos::from_micros(100);
/// How long a thread sleeps at most before it looks again.
const SLEEP: Duration = Duration::from_millis(100);
/// How often the keeper drives.
const KEEPER: Duration = Duration::from_millis(1);

/// See the [module](self). The way's lock comes before that of local memory.
pub(super) struct Shared {
    local: Mutex<Local>,
    changed: Condvar,
    /// What the keeper waits for.
    busy: Condvar,
    transport: Mutex<Transport>,
}

impl Shared {
    pub fn new(local: Local, transport: Transport) -> Shared {
        let (changed, busy) = (Condvar::new(), Condvar::new());
        Shared { local: Mutex::new(local), changed, busy, transport: Mutex::new(transport) }
    }

    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, Local> {
        lock(&self.local)
    }

    /// The keeper's thread, until [`Shared::close`].
    pub fn keep(&self) {
        let mut local = self.lock();
        while !local.is_closing {
            if !local.is_busy() {
                local.keeper_rests = true;
                local = self.busy.wait(local).unwrap_or_else(PoisonError::into_inner);
                local.keeper_rests = false;
                continue;
            }
            let slept = self.busy.wait_timeout(local, KEEPER);
            local = slept.unwrap_or_else(PoisonError::into_inner).0;
            if local.is_busy() && !local.is_driven {
                local = self.drive(local, Nanos::ZERO);
            }
        }
    }

    /// Ends the keeper.
    pub fn close(&self) {
        self.lock().is_closing = true;
        self.busy.notify_one();
    }

    /// Behind an access: has requests leave that it caused, unless another thread drives the way.
    pub fn after(&self, local: MutexGuard<'_, Local>) {
        if local.residency.has_requests() && !local.is_driven {
            drop(self.drive(local, Nanos::ZERO));
        }
    }

    /// Waits for a change: drives the way, if no other thread does and something is to be done, or sleeps.
    pub fn wait<'a>(&'a self, mut local: MutexGuard<'a, Local>) -> MutexGuard<'a, Local> {
        if local.is_busy() && !local.is_driven {
            return self.drive(local, WAIT);
        }
        local.sleepers += 1;
        let slept = self.changed.wait_timeout(local, SLEEP);
        let (mut local, _) = slept.unwrap_or_else(PoisonError::into_inner);
        local.sleepers -= 1;
        local
    }

    #[cold]
    fn drive<'a>(&'a self, mut local: MutexGuard<'a, Local>, wait: Nanos) -> MutexGuard<'a, Local> {
        local.is_driven = true;
        drop(local);
        let mut transport = self.transport.lock().unwrap_or_else(PoisonError::into_inner);
        transport.drive(&self.local, wait);
        drop(transport);
        let mut local = lock(&self.local);
        local.is_driven = false;
        self.wake(&local);
        if local.keeper_rests && local.is_busy() {
            self.busy.notify_one();
        }
        local
    }

    pub fn wake(&self, local: &Local) {
        if local.sleepers > 0 {
            self.changed.notify_all();
        }
    }
}
