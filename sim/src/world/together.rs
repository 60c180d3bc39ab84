//! Several workers simulate one rack.
//!
//! ```text
//!  worker 0   plan        ┊ switch ── some hosts ──┊ plan        ┊ switch …
//!  worker 1               ┊ other hosts ───────────┊             ┊ …
//!                         meet                     meet
//! ```
//!
//! Hosts and switch run at the same time. What they send reaches the other side only after the window (see
//! [`super::lookahead`]), so it is handed over between two windows. A worker runs one group of hosts after the other,
//! its own first. Which worker runs which group changes nothing: groups share nothing, and their mail is read in the
//! order of groups.

use super::group::Group;
use super::lookahead::Lookahead;
use super::plan::Plan;
use super::rack::{Order, Rack};
use super::switch::Tor;
use super::{FrameWorld, Planted};
use crate::crew::Crew;
use crate::frames::Frames;
use p4rack_wire::Nanos;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// Groups of hosts per worker. Workers that finish early take over groups of others.
pub(super) const GROUPS_EACH: usize = 4;

/// How far hosts and switch may run.
struct Window {
    /// Number of the window, from 1; 0: the work is done.
    number: AtomicU64,
    hosts: AtomicU64,
    switch: AtomicU64,
}

/// Work of one worker between two windows.
struct Lead<'w> {
    plan: &'w Plan,
    rack: &'w mut Rack,
    look: Lookahead,
    end: Nanos,
    /// Number of windows so far.
    windows: u64,
    /// Surplus buffers.
    spare: Frames,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic of the lock's holder ends the run anyway.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl FrameWorld {
    /// Runs all events up to `end`.
    pub(super) fn run_together(&mut self, end: Nanos, crew: &dyn Crew) {
        let FrameWorld { plan, rack, groups, tor, lookahead, windows, .. } = self;
        let groups: Vec<Mutex<&mut Group>> = groups.iter_mut().map(Mutex::new).collect();
        let tor = Mutex::new(tor);
        let lead = Mutex::new(Lead {
            plan,
            rack,
            look: *lookahead,
            end,
            windows: *windows,
            spare: Frames::default(),
        });
        let window =
            Window { number: AtomicU64::new(0), hosts: AtomicU64::new(0), switch: AtomicU64::new(0) };
        crew.work(&|worker| {
            let mut lead = (worker == 0).then(|| lock(&lead));
            let order = order_of(worker, crew.size(), groups.len());
            loop {
                if let Some(lead) = &mut lead {
                    let next = lead.next(&groups, &mut lock(&tor));
                    let (hosts, switch) = next.unwrap_or_default();
                    window.number.store(next.map_or(0, |_| lead.windows), Ordering::Relaxed);
                    window.hosts.store(hosts.0, Ordering::Relaxed);
                    window.switch.store(switch.0, Ordering::Relaxed);
                }
                // From here on, all workers see earlier writes.
                crew.meet();
                let number = window.number.load(Ordering::Relaxed);
                if number == 0 {
                    break;
                }
                if worker == 0 {
                    let tor = &mut lock(&tor);
                    tor.fetch_mail();
                    tor.take_mail();
                    tor.run(Nanos(window.switch.load(Ordering::Relaxed)));
                }
                for at in &order {
                    // Another worker is running it, or has.
                    let mut group = match groups[*at].try_lock() {
                        Ok(group) => group,
                        Err(TryLockError::WouldBlock) => continue,
                        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                    };
                    if group.window != number {
                        group.window = number;
                        group.fetch_mail();
                        group.take_mail();
                        group.run(Nanos(window.hosts.load(Ordering::Relaxed)));
                    }
                }
                crew.meet();
            }
        });
        *windows = lead.into_inner().unwrap_or_else(PoisonError::into_inner).windows;
        self.now = end;
    }
}

/// Order in which a worker tries groups: its own, then those of the others from the end.
fn order_of(worker: usize, workers: usize, groups: usize) -> Vec<usize> {
    let of = |worker: usize| worker * groups / workers..(worker + 1) * groups / workers;
    let others = (1..workers).flat_map(|nth| of((worker + nth) % workers).rev());
    of(worker).chain(others).collect()
}

impl Lead<'_> {
    /// Hands over mail and returns how far hosts and switch may run; `None`: everything up to the end has happened.
    fn next(&mut self, groups: &[Mutex<&mut Group>], tor: &mut Tor) -> Option<(Nanos, Nanos)> {
        let after = Nanos(self.end.0.saturating_add(1));
        let (mut hosts, mut switch) = (Nanos::MAX, tor.due());
        for (at, group) in groups.iter().enumerate() {
            let group = &mut lock(group);
            let missed = Planted::Race.is(self.plan.planted) && at == 1 && self.windows % 50 == 1;
            if !missed {
                switch = switch.min(group.outbox.hand_over(&mut tor.inboxes[at]));
            }
            hosts = hosts.min(tor.outboxes[at].hand_over(&mut group.inbox)).min(group.inlets.dues.first());
            if group.frames.is_uneven() {
                group.frames.share(&mut self.spare);
            }
        }
        if tor.frames.is_uneven() {
            tor.frames.share(&mut self.spare);
        }
        // Events that are due now concern all groups and the switch.
        while self.rack.agenda.due() <= hosts.min(switch).min(self.end) {
            hosts = hosts.min(self.happen(groups, tor));
        }
        let (next, agenda) = (hosts.min(switch), self.rack.agenda.due());
        if next.min(agenda) > self.end {
            self.deliver(groups, tor);
            return None;
        }
        let (least, limit) = (Nanos(next.0 + 1), after.min(self.rack.sudden()));
        let hosts = hosts.min(agenda);
        // Both run equally far, so that all windows have about the same work.
        let far = |from: Nanos| from.saturating_add(self.look.mean());
        let until = self.look.of_hosts(hosts, switch).min(far(hosts)).max(least).min(limit);
        let switch_until = self.look.of_switch(hosts, switch).min(far(switch)).max(least).min(limit);
        while self.rack.agenda.due() < until {
            self.happen(groups, tor);
        }
        self.windows += 1;
        Some((until, switch_until))
    }

    /// Runs the rack's next event, at a time that no host and no switch has reached yet; returns that time.
    fn happen(&mut self, groups: &[Mutex<&mut Group>], tor: &mut Tor) -> Nanos {
        let (plan, now) = (self.plan, self.rack.agenda.due());
        self.rack.happen(plan, now, &mut |order| match order {
            Order::Host(host, nth, event) => {
                let group = usize::from(plan.group_of[usize::from(host)]);
                lock(&groups[group]).order(host, now, nth, event);
            }
            Order::Warm => {
                groups.iter().for_each(|group| lock(group).measuring = true);
                tor.warm(now);
            }
        });
        now
    }

    /// Delivers all mail at the end.
    fn deliver(&mut self, groups: &[Mutex<&mut Group>], tor: &mut Tor) {
        tor.take_mail();
        for (at, group) in groups.iter().enumerate() {
            let group = &mut lock(group);
            group.take_mail();
            tor.outboxes[at].hand_over(&mut group.inbox);
            group.take_mail();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_worker_looks_at_each_group_its_own_first() {
        assert_eq!(order_of(0, 2, 8), [0, 1, 2, 3, 7, 6, 5, 4]);
        assert_eq!(order_of(1, 2, 8), [4, 5, 6, 7, 3, 2, 1, 0]);
        assert_eq!(order_of(0, 3, 2), [0, 1]);
    }
}
