//! A core of the spare host. It runs an engine's machine in rounds: it takes completions, then posts the requests that follow from
//! them. These leave at the end of the round.

use super::costs::SpotSpec;
use super::nic::ps;
use p4rack_fabric::Machine as _;
use p4rack_fabric::cowbird::{Config, Engine};
use p4rack_fabric::roce::{Outcome, Request};
use p4rack_wire::Nanos;
use p4rack_wire::cowbird::Entry;
use std::collections::VecDeque;

/// Maximum completions taken, and requests posted, in a round.
const ROUND: usize = 256;

#[derive(Debug)]
pub(super) struct Core {
    pub engine: Engine,
    inbox: VecDeque<(u32, Outcome)>,
    /// Requests that the current round posts at its end.
    pub posts: Vec<(u32, Request)>,
    /// Whether a round runs or is about to begin.
    pub busy: bool,
    /// When it checks its timers, unless something wakes it earlier.
    pub wake_ps: u64,
    /// Queue pairs that the round posts to.
    rung: Vec<u32>,
    /// Time in rounds.
    pub busy_ps: u64,
}

impl Core {
    pub fn new(spec: &SpotSpec, rate_bps: u64, entries_max: u64, message_bytes_max: u32) -> Core {
        let config = Config {
            batch_reads: spec.batch_reads.into(),
            guess_entries: spec.guess_entries.into(),
            probes_max: spec.probes.into(),
            probe_min: Nanos(spec.probe_ns.into()),
            probe_max: Nanos(spec.probe_max_ns.max(spec.probe_ns).into()),
            entries_max,
            message_bytes_max,
            ..Config::default()
        };
        Core {
            engine: Engine::new(config.on_link(rate_bps)),
            inbox: VecDeque::new(),
            posts: Vec::new(),
            busy: false,
            wake_ps: u64::MAX,
            rung: Vec::new(),
            busy_ps: 0,
        }
    }

    /// Takes a completion of its requests. Returns whether it has to be woken.
    pub fn complete(&mut self, qpn: u32, outcome: Outcome) -> bool {
        self.inbox.push_back((qpn, outcome));
        !std::mem::replace(&mut self.busy, true)
    }

    /// Runs a round. Returns its duration, or `None` if there is nothing to do. `is_rings`: whether a queue pair leads to the
    /// compute node.
    pub fn round(&mut self, now_ps: u64, spec: &SpotSpec, is_rings: impl Fn(u32) -> bool) -> Option<u64> {
        let now = Nanos(now_ps / 1_000);
        let (mut outcomes, mut entries) = (0, 0);
        while outcomes < ROUND
            && let Some((qpn, outcome)) = self.inbox.pop_front()
        {
            outcomes += 1;
            if let Outcome::Read(bytes) = &outcome
                && is_rings(qpn)
                && !self.engine.awaits_payload(qpn)
            {
                entries += bytes.len() / Entry::BYTES;
            }
            self.engine.handle_link((qpn, outcome), now, now);
        }
        self.rung.clear();
        while self.posts.len() < ROUND
            && let Some((qpn, request)) = self.engine.poll_link(now, &mut ())
        {
            if !self.rung.contains(&qpn) {
                self.rung.push(qpn);
            }
            self.posts.push((qpn, request));
        }
        if outcomes == 0 && self.posts.is_empty() {
            self.busy = false;
            return None;
        }
        let took_ps = outcomes as u64 * ps(spec.outcome_ns)
            + entries as u64 * ps(spec.entry_ns)
            + self.posts.len() as u64 * ps(spec.request_ns)
            + self.rung.len() as u64 * ps(spec.doorbell_ns);
        self.busy = true;
        self.busy_ps += took_ps;
        Some(took_ps)
    }
}
