//! Work on hosts: threads, the spare host's cores, and their adapters' completions.

use super::{CLOCK, CowbirdWorld, Event};
use crate::cowbird::nic::Cause;
use crate::cowbird::rack::{COMPUTE, COMPUTE_QPN, POOL, POOL_QPN, SINK, SPOT};
use p4rack_fabric::Machine as _;
use p4rack_fabric::roce::Completion;

impl CowbirdWorld<'_> {
    pub(super) fn step(&mut self, nth: u16, now_ps: u64) {
        let home = self.home(nth.into());
        let thread = &mut self.threads[usize::from(nth)];
        let Some(step) = thread.step(now_ps, &mut self.nics[home].adapter, &self.plan) else {
            self.ended += 1;
            return;
        };
        self.agenda.add(now_ps + step.took_ps, Event::Thread(nth));
        if step.rung {
            self.send(home, now_ps, now_ps + step.took_ps, Cause::Doorbell);
        }
    }

    /// Ends a core's round, and begins the next one.
    pub(super) fn core(&mut self, nth: u16, now_ps: u64) {
        let core = &mut self.cores[usize::from(nth)];
        let nic = &mut self.nics[SPOT];
        let posted = !core.posts.is_empty();
        for (qpn, request) in core.posts.drain(..) {
            self.refused += u64::from(nic.adapter.handle_request(qpn, request).is_err());
        }
        let is_rings = |qpn: u32| (COMPUTE_QPN..POOL_QPN).contains(&qpn);
        match core.round(now_ps, &self.experiment.spec.spot, is_rings) {
            Some(took_ps) => self.agenda.add(now_ps + took_ps, Event::Core(nth)),
            None => {
                let due = core.engine.next_link().map_or(u64::MAX, |at| CLOCK.ticks(at));
                let wake_ps = due.max(now_ps + 1_000);
                if due < u64::MAX && (wake_ps < core.wake_ps || core.wake_ps <= now_ps) {
                    core.wake_ps = wake_ps;
                    self.agenda.add(wake_ps, Event::Wake(nth));
                }
            }
        }
        if posted {
            self.send(SPOT, now_ps, now_ps, Cause::Doorbell);
        }
    }

    /// Delivers the completions of a host's adapter.
    pub(super) fn complete(&mut self, host: usize, now_ps: u64) {
        while let Some((qpn, completion)) = self.nics[host].adapter.poll_completion() {
            if !self.programs.is_empty() && ![POOL, SPOT].contains(&host) {
                self.completed(qpn, completion, now_ps);
                continue;
            }
            match (host, completion) {
                (COMPUTE, completion) if !self.io.is_empty() => {
                    let io = qpn.checked_sub(POOL_QPN).and_then(|nth| self.io.get_mut(nth as usize));
                    if let Some(io) = io {
                        io.complete(completion);
                    }
                }
                (COMPUTE | SINK, completion) => {
                    let thread = qpn.checked_sub(POOL_QPN).and_then(|nth| self.threads.get_mut(nth as usize));
                    if let Some(thread) = thread {
                        thread.complete(completion);
                    }
                }
                (SPOT, Completion::Request(_, outcome)) => {
                    let first = if qpn < POOL_QPN { COMPUTE_QPN } else { POOL_QPN };
                    let thread = (qpn - first) as usize % self.sets.max(1);
                    let nth = thread % self.cores.len().max(1);
                    let Some(core) = self.cores.get_mut(nth) else { continue };
                    if core.complete(qpn, outcome) {
                        self.agenda.add(now_ps, Event::Core(nth as u16));
                    }
                }
                (_, Completion::Receive(received)) => {
                    let nth = qpn.saturating_sub(POOL_QPN) as usize % self.servers.len().max(1);
                    let Some(server) = self.servers.get_mut(nth) else { continue };
                    if server.ask(qpn, received.bytes) {
                        self.agenda.add(now_ps, Event::Server(nth as u16));
                    }
                }
                // An answer was sent.
                _ => {}
            }
        }
    }
}
