//! State that threads share: local memory behind its lock, the way behind another, and how threads wait.
//!
//! ```text
//!  a thread waits ─┬─ the way is free ─▶ drives it for all: submits, polls ── then ─▶ wakes the others
//!                  └─ another drives ──▶ sleeps
//!  keeper: drives a moment each millisecond while something is under way, so that it ends although no thread waits
//! ```
//!
//! Threads reach local memory by [`Shared::look`] and [`Shared::change`] only, and these leave it by [`Shared::leave`]: it wakes the
//! threads that a change concerns, and has the requests leave. So no path forgets either, errors included. A thread sleeps until it is
//! woken, or until its patience ends. It looks a last time then; an access that this look serves was not woken, and counts as late.

use super::local::{Cause, Local};
use super::way::{Transport, lock};
use crate::remote::Remote;
use p4rack_netdev::clock;
use p4rack_wire::Nanos;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a thread that drives the way waits for ends before it looks for new requests.
const WAIT: Nanos = Nanos::from_micros(100);
/// How long an access waits for views of one block, or without any request under way.
pub(super) const PATIENCE: Nanos = Nanos::from_secs(20);
/// How often the keeper drives.
const KEEPER: Duration = Duration::from_millis(1);

/// See the [module](self). The way's lock comes before that of local memory.
pub(super) struct Shared {
    local: Mutex<Local>,
    changed: Condvar,
    /// Wakes the keeper.
    busy: Condvar,
    transport: Mutex<Transport>,
}

/// Result of a look at local memory.
pub(super) enum Look<T> {
    Done(T),
    /// Look again after a change.
    Waits(Cause),
}

/// How long a thread has waited without a request under way.
#[derive(Default)]
struct Patience {
    since: Option<(Cause, Nanos)>,
    /// Whether the last sleep ended without a change.
    has_timed_out: bool,
}

impl Patience {
    /// How long it may go on. Requests under way end, or remote memory is lost. `None`: it is over.
    ///
    /// The time for views of a block runs on if one closes and another has opened by the next look: overlapping views
    /// must not hold up an access forever.
    fn left(&mut self, cause: Cause, is_busy: bool) -> Option<Nanos> {
        if cause == Cause::Remote && is_busy {
            self.since = None;
            return Some(PATIENCE);
        }
        let now = clock::now();
        let since = self.since.filter(|(before, _)| *before == cause).map_or(now, |(_, since)| since);
        self.since = Some((cause, since));
        Some((since + PATIENCE).saturating_sub(now)).filter(|left| *left > Nanos::ZERO)
    }
}

/// Ends a thread's turn at the way, even if the way panics.
struct Driving<'a> {
    shared: &'a Shared,
    is_over: bool,
}

impl Drop for Driving<'_> {
    fn drop(&mut self) {
        let mut local = self.shared.lock();
        if !self.is_over {
            local.lose("the thread that used the way has panicked".to_owned());
        }
        local.is_driven = false;
        // Whether or not something has changed: another thread drives next.
        local.residency.take_changed();
        self.shared.wake(&local);
        if local.keeper_rests && local.is_busy() {
            self.shared.busy.notify_one();
        }
    }
}

impl Shared {
    pub fn new(local: Local, transport: Transport) -> Shared {
        let (changed, busy) = (Condvar::new(), Condvar::new());
        Shared { local: Mutex::new(local), changed, busy, transport: Mutex::new(transport) }
    }

    /// The way.
    pub fn into_way(self) -> Box<dyn Remote> {
        self.transport.into_inner().unwrap_or_else(PoisonError::into_inner).into_remote()
    }

    #[inline]
    fn lock(&self) -> MutexGuard<'_, Local> {
        lock(&self.local)
    }

    /// Looks at local memory until there is an answer, and waits for a change in between. Errors: the cause, after too long a wait.
    #[inline]
    pub fn look<T>(&self, mut look: impl FnMut(&mut Local) -> Look<T>) -> Result<T, Cause> {
        let mut local = self.lock();
        let mut patience = Patience::default();
        loop {
            match look(&mut local) {
                Look::Done(done) => {
                    local.late += u64::from(patience.has_timed_out);
                    self.leave(local);
                    return Ok(done);
                }
                Look::Waits(cause) => local = self.wait(local, cause, &mut patience)?,
            }
        }
    }

    /// Changes local memory, or reads it.
    #[inline]
    pub fn change<T>(&self, change: impl FnOnce(&mut Local) -> T) -> T {
        let mut local = self.lock();
        let done = change(&mut local);
        self.leave(local);
        done
    }

    /// Wakes the threads that a change concerns, and has the requests leave that it caused, unless another thread drives the way.
    #[inline]
    fn leave(&self, mut local: MutexGuard<'_, Local>) {
        if local.residency.take_changed() {
            self.wake(&local);
        }
        if local.residency.has_requests() && !local.is_driven {
            drop(self.drive(local, Nanos::ZERO));
        }
    }

    /// Waits for a change: drives the way, if no other thread does and something is to be done, or sleeps.
    #[cold]
    fn wait<'a>(
        &'a self,
        mut local: MutexGuard<'a, Local>,
        cause: Cause,
        patience: &mut Patience,
    ) -> Result<MutexGuard<'a, Local>, Cause> {
        patience.has_timed_out = false;
        if local.residency.take_changed() {
            // The last look has changed something, so the next one may go on.
            self.wake(&local);
            return Ok(local);
        }
        let Some(left) = patience.left(cause, local.is_busy()) else {
            self.leave(local);
            return Err(cause);
        };
        if local.is_busy() && !local.is_driven {
            return Ok(self.drive(local, WAIT));
        }
        local.sleepers += 1;
        let slept = self.changed.wait_timeout(local, Duration::from_nanos(left.0));
        let (mut local, timeout) = slept.unwrap_or_else(PoisonError::into_inner);
        local.sleepers -= 1;
        patience.has_timed_out = timeout.timed_out();
        Ok(local)
    }

    #[cold]
    fn drive<'a>(&'a self, mut local: MutexGuard<'a, Local>, wait: Nanos) -> MutexGuard<'a, Local> {
        local.is_driven = true;
        drop(local);
        let mut driving = Driving { shared: self, is_over: false };
        let mut transport = self.transport.lock().unwrap_or_else(PoisonError::into_inner);
        transport.drive(&self.local, wait);
        drop(transport);
        driving.is_over = true;
        drop(driving);
        self.lock()
    }

    fn wake(&self, local: &Local) {
        if local.sleepers > 0 {
            self.changed.notify_all();
        }
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
}
