//! Failures of nodes and switches, and the counters of switches until then.

use super::account::account;
use super::client::{Object, objects};
use super::faulty::Break;
use super::rack::{BYTES, RESTART_SESSIONS};
use super::world::{FaultsWorld, hub};
use crate::switch::Model;
use p4rack_history::{Entry, Outcome, Word};
use p4rack_wire::Nanos;

impl FaultsWorld<'_> {
    pub(super) fn account(&mut self, switch: usize, now_ns: u64) {
        let Some(hub) = &self.switches[switch] else { return };
        let account = account(&hub.model, now_ns);
        self.outcome.problems.extend(account.problems.iter().map(|what| format!("switch {switch}: {what}")));
        self.count("switch_drops", account.drops);
        self.count("switch_frames", account.came);
        self.count("second_passes", account.passes);
    }

    /// No counter includes frames between two passes, so a failing switch first lets them leave, and they are discarded.
    fn let_out(&mut self, switch: usize, now_ns: u64) {
        let mut now_ns = now_ns;
        let Some(hub) = self.switches[switch].as_mut().filter(|_| self.rack.pass_delay > Nanos::ZERO) else {
            return;
        };
        while hub.model.due() < Nanos::MAX {
            now_ns = now_ns.max(hub.model.due().0);
            while let Some((_, frame)) = hub.poll(now_ns, &mut self.frames) {
                self.frames.release(frame);
            }
        }
    }

    /// Restarts a memory node. Its session numbers continue at a later number.
    fn restart_memory(&mut self, nth: u16, keeps: bool, now_ns: u64) {
        let more = RESTART_SESSIONS + self.starts.below(30_000) as u16;
        let node = &mut self.nodes[usize::from(nth)];
        let bytes = if keeps { node.bytes().to_vec() } else { vec![0; BYTES] };
        node.first_session = node.first_session.wrapping_add(more);
        match self.rack.memory(bytes, node.first_session) {
            Ok(memory) => {
                let before = node.machines.memory.replace(memory);
                before.iter().for_each(|before| self.gone.add_memory(before.counters()));
            }
            Err(problem) => self.outcome.problems.push(problem),
        }
        if !keeps {
            let entry = Entry { asked: now_ns, outcome: Outcome::Known(now_ns), act: Word::Write(0) };
            objects().for_each(|address| _ = self.history.add(Object { node: nth, address }, entry));
        }
        self.count(if keeps { "memory_restarts" } else { "memories_emptied" }, 1);
    }

    pub(super) fn break_down(&mut self, what: Break, now_ns: u64) {
        match what {
            Break::Silent { node, for_ever } => {
                let node = &mut self.nodes[usize::from(node)];
                (node.is_silent, node.is_dead) = (true, node.is_dead || for_ever);
                self.count("nodes_silent", 1);
            }
            Break::SwitchRestarts(switch) | Break::SwitchDies(switch) => {
                if self.switches[switch].is_none() {
                    return;
                }
                self.let_out(switch, now_ns);
                self.account(switch, now_ns);
                let restarts = matches!(what, Break::SwitchRestarts(_));
                let fresh = if restarts { hub(self.rack).map(Some) } else { Ok(None) };
                self.switches[switch] = fresh.unwrap_or_else(|problem| {
                    self.outcome.problems.push(problem);
                    None
                });
                self.count(if restarts { "switch_restarts" } else { "switches_dead" }, 1);
            }
            Break::ComputeRestarts(nth) => {
                self.completed(nth, now_ns);
                self.clients[usize::from(nth)].forget(&mut self.history, &mut self.ends);
                // The next number is near the last one, or random.
                let far = if self.starts.chance(0.5) { self.starts.next() } else { 1 };
                let node = &mut self.nodes[usize::from(nth)];
                self.gone.sessions_lost += node.machines.compute.counters().sessions_lost;
                self.gone.again += node.machines.compute.counters().again;
                node.incarnation = node.incarnation.wrapping_add(far);
                node.restarts += 1;
                node.machines.compute = self.rack.compute(node.incarnation);
                self.count("compute_restarts", 1);
            }
            Break::MemoryRestarts { node: nth, keeps } => self.restart_memory(nth, keeps, now_ns),
        }
    }
}
