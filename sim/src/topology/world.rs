//! The network in virtual time, on one worker or several.
//!
//! ```text
//!  worker 0   plan ┊ groups of nodes ──┊ plan ┊ …      a window ends before a frame that leaves a node in it can
//!  worker 1        ┊ other groups ─────┊      ┊ …      reach another one: the shortest time over any link
//!               it begins     all groups have run
//! ```
//!
//! A window waits for its groups, not for the workers: the others do the work of one that has no processor.
//!
//! Within a window each node runs alone, one after the other, so the order of nodes and their division among workers change
//! nothing (Chandy and Misra's lookahead, CACM 24(4), 1981). At a node, events of the same time are ordered by the rule of
//! [`Schedule`](crate::schedule::Schedule), which knows no order of arrival.

use super::counts::Counts;
use super::group::{Group, Node};
use super::host::HostNode;
use super::plan::{Plan, Planted};
use super::switch::SwitchNode;
use super::wires::Outlet;
use crate::check::Digest;
use crate::crew::Crew;
use crate::frames::Frames;
use crate::link::{FarEnd, LinkStats};
use p4rack_wire::Nanos;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

/// Groups of nodes per worker. Workers that finish early take over groups of others.
pub(super) const GROUPS_EACH: usize = 4;

/// Hops of frames that go round in loops, after which a run ends: such frames may multiply.
const LOOP_HOPS_MAX: u64 = 200_000;

/// Number behind that of the last window.
const OVER: u64 = u64::MAX;

/// The event loop of a network; see the [module](self).
#[derive(Debug)]
pub(super) struct TopologyWorld {
    pub plan: Arc<Plan>,
    pub groups: Vec<Group>,
    /// The shortest time from sending a frame to its handling at the other end of a link.
    look: Nanos,
    /// Time windows so far.
    pub windows: u64,
    pub now: Nanos,
    /// Whether it has ended early, because too many frames went round in loops.
    pub ended: bool,
}

/// Work of one worker between two windows.
struct Lead<'w> {
    plan: &'w Plan,
    look: Nanos,
    end: Nanos,
    windows: u64,
    /// When the last window ended, and whether it was the last one of the run.
    now: Nanos,
    ended: bool,
    /// Surplus buffers.
    spare: Frames,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic of the lock's holder ends the run anyway.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl TopologyWorld {
    /// A world of these groups.
    pub fn new(plan: Arc<Plan>, groups: Vec<Group>) -> TopologyWorld {
        let mut world =
            TopologyWorld { plan, groups, look: Nanos::MAX, windows: 0, now: Nanos::ZERO, ended: false };
        let least = world.outlets().map(|outlet| outlet.link.least_delay()).min();
        world.look = least.unwrap_or_default().max(Nanos(1));
        world
    }

    /// Runs all events before `end`.
    pub fn run_until(&mut self, end: Nanos, crew: &dyn Crew) {
        if self.ended {
            return;
        }
        match self.groups.len() {
            1 => self.run_alone(end),
            _ => self.run_together(end, crew),
        }
        if !self.ended {
            self.now = end;
        }
    }

    fn run_alone(&mut self, end: Nanos) {
        let group = &mut self.groups[0];
        while !self.ended {
            let next = group.wires.due();
            if next >= end {
                break;
            }
            self.windows += 1;
            self.now = next.saturating_add(self.look).min(end);
            group.run(self.now);
            self.ended = group.wires.loop_hops > LOOP_HOPS_MAX;
        }
    }

    fn run_together(&mut self, end: Nanos, crew: &dyn Crew) {
        let TopologyWorld { plan, groups, look, windows, now, ended } = self;
        let groups: Vec<Mutex<&mut Group>> = groups.iter_mut().map(Mutex::new).collect();
        let spare = Frames::default();
        let lead = Lead { plan, look: *look, end, windows: *windows, now: *now, ended: false, spare };
        let lead = Mutex::new(lead);
        // Number of the window, its end, and the groups that have run in it.
        let before = *windows;
        let (number, until) = (AtomicU64::new(before), AtomicU64::new(0));
        let ran = AtomicUsize::new(groups.len());
        crew.work(&|worker| {
            let mut lead = (worker == 0).then(|| lock(&lead));
            let order = order_of(worker, crew.size(), groups.len());
            let mut window = before;
            loop {
                match &mut lead {
                    Some(lead) => {
                        crew.wait(&|| ran.load(Ordering::Acquire) == groups.len());
                        let next = lead.next(&groups);
                        ran.store(0, Ordering::Relaxed);
                        until.store(next.unwrap_or_default().0, Ordering::Relaxed);
                        number.store(next.map_or(OVER, |_| lead.windows), Ordering::Release);
                    }
                    None => crew.wait(&|| number.load(Ordering::Acquire) != window),
                }
                window = number.load(Ordering::Acquire);
                if window == OVER {
                    break;
                }
                // If this window is over, the number is a later one's, and no group is left to run in this one.
                let until = Nanos(until.load(Ordering::Relaxed));
                for at in &order {
                    // Another worker is running it, or has. If it only looks, it comes back in this window.
                    let mut group = match groups[*at].try_lock() {
                        Ok(group) => group,
                        Err(TryLockError::WouldBlock) => continue,
                        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                    };
                    if group.window < window {
                        group.window = window;
                        group.take_mail();
                        group.run(until);
                        ran.fetch_add(1, Ordering::Release);
                    }
                }
            }
        });
        let lead = lead.into_inner().unwrap_or_else(PoisonError::into_inner);
        (*windows, *now, *ended) = (lead.windows, lead.now, lead.ended);
    }

    fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.groups.iter().flat_map(|group| &group.nodes)
    }

    /// All switches, in the topology's order.
    pub fn switches(&self) -> Vec<&SwitchNode> {
        let mut all: Vec<&SwitchNode> = Vec::new();
        all.extend(self.nodes().filter_map(|node| match node {
            Node::Switch(switch) => Some(&**switch),
            Node::Host(_) => None,
        }));
        all.sort_by_key(|switch| switch.index);
        all
    }

    /// All hosts, in the topology's order.
    pub fn hosts(&self) -> Vec<&HostNode> {
        let mut all: Vec<&HostNode> = Vec::new();
        all.extend(self.nodes().filter_map(|node| match node {
            Node::Host(host) => Some(&**host),
            Node::Switch(_) => None,
        }));
        all.sort_by_key(|host| host.index);
        all
    }

    /// All directions of links, in no order.
    fn outlets(&self) -> impl Iterator<Item = &Outlet> {
        self.nodes().flat_map(|node| match node {
            Node::Switch(switch) => &switch.outlets[..],
            Node::Host(host) => std::slice::from_ref(&host.outlet),
        })
    }

    /// The far end of a link.
    fn far_end(&self, outlet: &Outlet) -> &FarEnd {
        let inlets = &self.groups[usize::from(outlet.to.group)].wires.inlets;
        &inlets[usize::from(outlet.to.node)].ends[usize::from(outlet.to.inlet)]
    }

    /// Statistics of a link, and the frames on it.
    pub fn link(&self, outlet: &Outlet) -> (LinkStats, u64) {
        let far = self.far_end(outlet);
        let mail = self.groups.iter().flat_map(|group| &group.inboxes[..]).map(Vec::len).sum::<usize>();
        debug_assert_eq!(mail, 0, "all mail has been read at the end");
        (LinkStats { delivered: far.delivered, ..outlet.link.stats }, far.in_flight() as u64)
    }

    /// Frames that have arrived at each switch, in the topology's order, and at all hosts.
    pub fn delivered(&self) -> (Vec<u64>, u64) {
        let (mut switches, mut hosts) = (vec![0; self.switches().len()], 0);
        for group in &self.groups {
            for (node, inlets) in group.nodes.iter().zip(&group.wires.inlets) {
                let delivered: u64 = inlets.ends.iter().map(|end| end.delivered).sum();
                match node {
                    Node::Switch(switch) => switches[switch.index] = delivered,
                    Node::Host(_) => hosts += delivered,
                }
            }
        }
        (switches, hosts)
    }

    /// Frames that came after their time.
    pub fn late_frames(&self) -> u64 {
        let inlets = self.groups.iter().flat_map(|group| &group.wires.inlets);
        inlets.map(|inlets| inlets.late_frames).sum()
    }

    /// Sum of all groups' counters.
    pub fn counts(&self) -> Counts {
        let mut sum = Counts::new(&self.plan);
        self.groups.iter().for_each(|group| sum.add(&group.counts));
        sum
    }

    /// Checksum of everything that happened.
    pub fn digest(&self) -> u64 {
        let mut all = Digest::new();
        self.switches().iter().for_each(|switch| all.add(switch.digest.0));
        self.hosts().iter().for_each(|host| all.add(host.digest.0));
        all.0
    }
}

/// Order in which a worker tries groups: its own, then those of the others from the end.
fn order_of(worker: usize, workers: usize, groups: usize) -> Vec<usize> {
    let of = |worker: usize| worker * groups / workers..(worker + 1) * groups / workers;
    let others = (1..workers).flat_map(|nth| of((worker + nth) % workers).rev());
    of(worker).chain(others).collect()
}

impl Lead<'_> {
    /// Hands over mail and returns how far nodes may run; `None`: everything before the end has happened.
    fn next(&mut self, groups: &[Mutex<&mut Group>]) -> Option<Nanos> {
        let mut all: Vec<MutexGuard<'_, &mut Group>> = groups.iter().map(lock).collect();
        let mut next = Nanos::MAX;
        let missed = Planted::Race.is(self.plan.planted) && self.windows % 50 == 1;
        for from in 0..all.len() {
            next = next.min(all[from].wires.due());
            for to in 0..all.len() {
                let outbox = &mut all[from].wires.outboxes[to];
                if outbox.mail.is_empty() || missed {
                    continue;
                }
                next = next.min(std::mem::replace(&mut outbox.due, Nanos::MAX));
                let mail = std::mem::take(&mut outbox.mail);
                // Its empty list comes back.
                let read = std::mem::replace(&mut all[to].inboxes[from], mail);
                all[from].wires.outboxes[to].mail = read;
            }
            let frames = &mut all[from].wires.frames;
            if frames.is_uneven() {
                frames.share(&mut self.spare);
            }
        }
        self.ended = all.iter().map(|group| group.wires.loop_hops).sum::<u64>() > LOOP_HOPS_MAX;
        if next >= self.end || self.ended {
            // Frames under way are where they belong.
            all.iter_mut().for_each(|group| group.take_mail());
            return None;
        }
        self.windows += 1;
        self.now = next.saturating_add(self.look).min(self.end);
        Some(self.now)
    }
}
