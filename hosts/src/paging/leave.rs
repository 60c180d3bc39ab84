//! Threads that have pages leave: the reclaimer before room is short, or the thread that needs room.

use super::inner::{Batch, Inner, Locked};
use super::pages::{BATCH, Pages};
use p4rack_netdev::clock;
use p4rack_wire::Nanos;
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

/// Time between checks, by a thread without other work, that faults can still be answered.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// A measurement of the processor time that pages take to leave. The clock costs as much as a system call, so one of
/// [`Measured::OF`] leavings is measured, and counts for all of them.
struct Measured {
    began: Nanos,
    /// Time of the clock itself.
    clock: Nanos,
}

impl Measured {
    /// A prime: leavings that alternate in some way are all measured.
    const OF: u32 = 17;

    fn begin(locked: &mut Locked) -> Option<Measured> {
        locked.leavings = locked.leavings.wrapping_add(1);
        locked.leavings.is_multiple_of(Measured::OF).then(|| {
            let before = clock::thread_cpu();
            let began = clock::thread_cpu();
            Measured { began, clock: began - before }
        })
    }

    fn ns(self) -> u64 {
        let spent = clock::thread_cpu() - self.began;
        spent.saturating_sub(self.clock).0 * u64::from(Measured::OF)
    }
}

impl Inner {
    /// The reclaimer's thread, until [`Inner::close`]: has pages leave before faults need their room. While it rests, it checks that
    /// faults can still be answered.
    pub fn reclaim(&self) {
        let mut locked = self.lock();
        while !locked.is_closing {
            if locked.pages.is_short() {
                locked = self.make_room(locked);
                continue;
            }
            locked.reclaimer_rests = true;
            let waited = self.short.wait_timeout(locked, CHECK_INTERVAL);
            let (rested, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            locked = rested;
            locked.reclaimer_rests = false;
            if timeout.timed_out() && self.memory.is_held() && self.memory.check().is_err() {
                self.lose(&mut locked, "checked while no page moved");
            }
        }
    }

    /// Has pages leave, or waits for those that other threads have leave.
    pub fn make_room<'a>(&'a self, mut locked: MutexGuard<'a, Locked>) -> MutexGuard<'a, Locked> {
        let (mut measured, mut any) = (None, false);
        // Out of the shelf, then onto it.
        for next in [Pages::evict, Pages::shelve] {
            let Some(first) = next(&mut locked.pages) else { continue };
            if !any {
                (measured, any) = (Measured::begin(&mut locked), true);
            }
            let Some(second) = next(&mut locked.pages) else {
                locked = self.carry_out_one(locked, first);
                continue;
            };
            let mut batch: Batch = [None; BATCH];
            (batch[0], batch[1]) = (Some(first), Some(second));
            for place in &mut batch[2..] {
                *place = next(&mut locked.pages);
                if place.is_none() {
                    break;
                }
            }
            locked = self.carry_out(locked, &mut batch);
        }
        if let Some(measured) = measured {
            locked.pages.counters.leaving_cpu_ns += measured.ns();
        }
        if any || locked.is_closing || locked.pages.is_lost() { locked } else { self.wait(locked) }
    }
}
