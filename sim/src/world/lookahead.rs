//! Chooses whether hosts or switch run next, and how far ahead the other side can't affect them.
//!
//! ```text
//!          ├──────── hosts, one after the other ────────┤├── down ──…
//!   ───────┴────────────────────────────────────────────┴──────────▶ virtual time
//!                    ├─ up ─┤├────────── switch ──────────┤
//! ```
//!
//! What a host does reaches the switch at least `up` later, what the switch does reaches a host at least `down` later,
//! and hosts meet only at the switch: Chandy and Misra's lookahead (CACM 24(4), 1981). So a host runs alone for about a
//! microsecond, and so does the switch. So the code of each stays in the processor's cache, and there is no search for
//! the next event after each frame. The result is the same as if all parts stepped through time together. They do so
//! where there is no lookahead: rounds begin on all hosts at the same time, and recordings have to be in order of time.

use super::node::Lane;
use super::rack::Order;
use super::{FrameWorld, HostEnd};
use crate::experiment::{Arrivals, Experiment};
use p4rack_wire::Nanos;

/// Minimum time from one side to the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lookahead {
    up: Nanos,
    down: Nanos,
}

impl Lookahead {
    /// Lookahead of an experiment's links, with these delays of pauses and of the controller.
    pub fn new(
        experiment: &Experiment,
        nodes: &[HostEnd],
        lanes: &[Lane],
        pause_delay: Nanos,
        controller_delay: Option<Nanos>,
    ) -> Lookahead {
        let spec = &experiment.spec;
        if Lookahead::is_none(experiment) {
            return Lookahead::NONE;
        }
        let up = nodes.iter().map(|node| node.up.least_delay()).min();
        let down = lanes.iter().map(|lane| lane.down.least_delay()).min();
        let mut look = Lookahead { up: up.unwrap_or_default(), down: down.unwrap_or_default() };
        if spec.rack.pfc_bytes.is_some() {
            look.down = look.down.min(pause_delay);
        }
        if let Some(delay) = controller_delay {
            look.up = look.up.min(delay);
        }
        look
    }

    /// Whether an experiment's hosts have to step through time together.
    pub fn is_none(experiment: &Experiment) -> bool {
        experiment.spec.traffic.iter().any(|traffic| traffic.arrivals == Arrivals::Rounds)
    }

    const NONE: Lookahead = Lookahead { up: Nanos::ZERO, down: Nanos::ZERO };

    /// The mean of both.
    pub fn mean(self) -> Nanos {
        Nanos((self.up.0 + self.down.0) / 2)
    }

    /// How far hosts can run, given when hosts and switch have something to do first.
    pub fn of_hosts(self, hosts: Nanos, switch: Nanos) -> Nanos {
        switch.min(hosts.saturating_add(self.up)).saturating_add(self.down)
    }

    /// The same for the switch.
    pub fn of_switch(self, hosts: Nanos, switch: Nanos) -> Nanos {
        hosts.min(switch.saturating_add(self.down)).saturating_add(self.up)
    }
}

impl FrameWorld {
    /// Runs all events up to `end`: hosts and switch in turn.
    pub(super) fn run_alone(&mut self, end: Nanos) {
        let after = Nanos(end.0.saturating_add(1));
        let look = if self.recorder.is_some() { Lookahead::NONE } else { self.lookahead };
        loop {
            let (hosts, switch, agenda) = (self.hosts_due(), self.tor.due(), self.rack.agenda.due());
            let next = hosts.min(switch);
            if next.min(agenda) > end {
                break;
            }
            if agenda <= next {
                self.happen(agenda);
                continue;
            }
            // At least this nanosecond.
            let least = Nanos(next.0 + 1);
            let limit = after.min(self.rack.sudden());
            let until = look.of_hosts(hosts.min(agenda), switch).max(least).min(limit);
            while self.rack.agenda.due() < until {
                self.happen(self.rack.agenda.due());
            }
            self.run_hosts(until);
            // Rounds may have ended.
            let limit = after.min(self.rack.sudden());
            let hosts = self.hosts_due().min(self.rack.agenda.due());
            self.run_switch(look.of_switch(hosts, self.tor.due()).max(least).min(limit));
        }
        self.now = end;
    }

    fn hosts_due(&self) -> Nanos {
        self.groups.iter().map(|group| group.inlets.dues.first()).min().unwrap_or(Nanos::MAX)
    }

    /// Runs the rack's events at a time that neither hosts nor switch have reached.
    fn happen(&mut self, now: Nanos) {
        let FrameWorld { plan, rack, groups, tor, .. } = self;
        rack.happen(plan, now, &mut |order| match order {
            Order::Host(host, nth, event) => {
                groups[usize::from(plan.group_of[usize::from(host)])].order(host, now, nth, event);
            }
            Order::Warm => {
                groups.iter_mut().for_each(|group| group.measuring = true);
                tor.warm(now);
            }
        });
    }

    fn run_hosts(&mut self, until: Nanos) {
        let FrameWorld { plan, rack, groups, tor, recorder, .. } = self;
        // All hosts are in one group.
        let group = &mut groups[0];
        std::mem::swap(&mut group.recorder, recorder);
        group.outbox.borrow_inlets(&mut tor.inlets);
        group.run(until);
        group.outbox.return_inlets(&mut tor.inlets);
        std::mem::swap(&mut group.recorder, recorder);
        group.keep_mail(tor);
        for part in group.rounds.drain(..) {
            rack.take_part(plan, part, &mut group.counts.traffic);
        }
    }

    fn run_switch(&mut self, until: Nanos) {
        let FrameWorld { groups, tor, recorder, .. } = self;
        let group = &mut groups[0];
        std::mem::swap(&mut tor.recorder, recorder);
        tor.outboxes[0].borrow_inlets(&mut group.inlets);
        tor.run(until);
        tor.outboxes[0].return_inlets(&mut group.inlets);
        std::mem::swap(&mut tor.recorder, recorder);
        if !tor.outboxes[0].mail.is_empty() {
            tor.outboxes[0].hand_over(&mut group.inbox);
            group.take_mail();
        }
        if tor.frames.is_uneven() {
            tor.frames.share(&mut group.frames);
        }
    }
}
