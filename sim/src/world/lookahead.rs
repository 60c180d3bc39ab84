//! Who is next: hosts and switch in turn, each as far ahead as the other can't reach it.
//!
//! ```text
//!          ├──────── hosts, one after the other ────────┤├── down ──…
//!   ───────┴────────────────────────────────────────────┴──────────▶ virtual time
//!                    ├─ up ─┤├────────── switch ──────────┤
//! ```
//!
//! What a host does at some time comes to the switch at least `up` later, what the switch does comes to a host at
//! least `down` later, and hosts meet at the switch alone: Chandy and Misra's lookahead (CACM 24(4), 1981). So a host runs
//! alone for about a microsecond, and so does the switch; the code of either stays in the processor's cache
//! meanwhile, and nobody looks for the next one after each frame. What happens is the same as if all took every
//! nanosecond together, and that is also done where one microsecond can't be given away: rounds begin
//! everywhere at once, and what is recorded is recorded in the order of time.

use super::{Node, World};
use crate::experiment::{Arrivals, Experiment};
use p4rack_wire::Nanos;

/// The least time from one side to the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lookahead {
    up: Nanos,
    down: Nanos,
}

impl Lookahead {
    pub fn new(
        experiment: &Experiment,
        nodes: &[Node],
        pause_delay: Nanos,
        controller_delay: Option<Nanos>,
    ) -> Lookahead {
        let spec = &experiment.spec;
        let up = nodes.iter().map(|node| node.up.least_delay()).min();
        let down = nodes.iter().map(|node| node.down.least_delay()).min();
        let mut look = Lookahead { up: up.unwrap_or_default(), down: down.unwrap_or_default() };
        if spec.rack.pfc_bytes.is_some() {
            look.down = look.down.min(pause_delay);
        }
        if let Some(delay) = controller_delay {
            look.up = look.up.min(delay);
        }
        if spec.traffic.iter().any(|traffic| traffic.arrivals == Arrivals::Rounds) {
            look = Lookahead::NONE;
        }
        look
    }

    const NONE: Lookahead = Lookahead { up: Nanos::ZERO, down: Nanos::ZERO };
}

impl World {
    /// Runs until nothing happens any more up to `end`.
    pub fn run_until(&mut self, end: Nanos) {
        let after = Nanos(end.0.saturating_add(1));
        let look = if self.recorder.is_some() { Lookahead::NONE } else { self.lookahead };
        loop {
            let (hosts, switch) = (self.hosts_due.first(), self.switch_due());
            let next = hosts.min(switch);
            if next.min(self.agenda.due()) > end {
                break;
            }
            if self.agenda.due() <= next {
                self.now = self.agenda.due();
                self.happen();
                continue;
            }
            // At least this one nanosecond.
            let least = Nanos(next.0 + 1);
            let limit = after.min(self.agenda.due());
            let first_at_switch = switch.min(hosts.saturating_add(look.up));
            self.run_hosts(first_at_switch.saturating_add(look.down).max(least).min(limit));
            let limit = after.min(self.agenda.due());
            let first_at_host = self.hosts_due.first().min(self.switch_due().saturating_add(look.down));
            self.run_switch(first_at_host.saturating_add(look.up).max(least).min(limit));
        }
        self.now = end;
    }

    /// When the switch or a link towards it has something to do.
    fn switch_due(&self) -> Nanos {
        self.model_due.min(self.inlets.first_due())
    }

    /// All that happens at hosts before `until`. None of them can reach another meanwhile.
    fn run_hosts(&mut self, until: Nanos) {
        if self.hosts_due.first() >= until {
            return;
        }
        let mut first = Nanos::MAX;
        for host in 0..self.nodes.len() {
            let mut due = self.hosts_due.of(host);
            if due < until {
                due = self.run_host(host, until);
                self.hosts_due.set(host, due);
            }
            first = first.min(due);
        }
        self.hosts_due.begin_with(first);
    }

    /// All that happens at a host before `until`; when it goes on.
    fn run_host(&mut self, host: usize, until: Nanos) -> Nanos {
        loop {
            let Node { host: one, down, .. } = &mut self.nodes[host];
            let (agenda, link, machine) = (one.agenda.due(), down.due(), one.machine_due);
            let due = agenda.min(link).min(machine);
            if due >= until {
                return due;
            }
            self.now = due.max(one.now);
            one.now = self.now;
            if agenda == due {
                self.happen_at(host);
            } else if link == due {
                self.enter_host(host);
            } else {
                self.wake(host);
            }
        }
    }

    /// All that happens at the switch before `until`.
    fn run_switch(&mut self, until: Nanos) {
        loop {
            let (inlet, due) = self.inlets.first();
            if due.min(self.model_due) >= until {
                return;
            }
            // What leaves goes before what comes at the same time.
            if due < self.model_due {
                self.at_switch(due);
                self.enter_by(inlet);
            } else {
                self.at_switch(self.model_due);
                self.leave_switch();
            }
        }
    }

    fn at_switch(&mut self, due: Nanos) {
        self.switch_now = self.switch_now.max(due);
        self.now = self.switch_now;
    }
}
