//! The service that lends extents.

mod extents;
mod facts;
mod holders;
mod nodes;

pub use extents::State;
pub use facts::{ExtentFacts, HolderFacts, MemoryFacts, NodeFacts};

use super::{Answer, Command, Config, Counters, Epoch, Order, Place, Refusal, Reply, Request, Term};
use crate::common::ConfigError;
use crate::machine::Machine;
use extents::Record;
use holders::Holder;
use nodes::MemoryNode;
use p4rack_wire::Nanos;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A command is sent again after twice the time, that many times; then the time stays.
const BACKOFF: u32 = 4;

/// Inputs of the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// From a compute node. The number is the driver's, for the reply.
    Request(u64, Request),
    /// From the memory node with this number.
    Answer(u16, Answer),
}

/// Outputs of the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sent {
    /// To the request with this number.
    Reply(u64, Reply),
    /// To the memory node with this number.
    Command(u16, Command),
}

/// Why a service has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Another service, with this larger term, has joined a node.
    Superseded(Term),
    /// Two numbers are the same memory node.
    SameNode(u16, u16),
}

impl End {
    fn refusal(self) -> Refusal {
        match self {
            End::Superseded(_) => Refusal::Superseded,
            End::SameNode(..) => Refusal::SameNode,
        }
    }
}

/// Whether the service serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// It waits for nodes, until this time.
    Starting(Nanos),
    Serving,
    Ended(End),
}

/// The service. Its link brings requests and answers, and takes replies and commands.
#[derive(Clone, Debug)]
pub struct Balloon {
    config: Config,
    term: Term,
    /// Of the last epoch.
    number: u64,
    phase: Phase,
    now: Nanos,
    nodes: Vec<MemoryNode>,
    /// When to join or probe which node: each has one entry.
    calls: BTreeSet<(Nanos, u16)>,
    records: BTreeMap<Place, Record>,
    /// When to send the command of which extent.
    due: BTreeSet<(Nanos, Place)>,
    holders: BTreeMap<u32, Holder>,
    /// When which session ends.
    leases: BTreeSet<(Nanos, u32)>,
    /// Compute nodes without a session, which are remembered for their last instance.
    former: BTreeSet<u32>,
    /// Bytes that are kept for compute nodes which don't hold them.
    promised_bytes: u64,
    replies: VecDeque<(u64, Reply)>,
    counters: Counters,
    #[cfg(test)]
    pub(super) plant: Option<super::plant::Plant>,
}

impl Balloon {
    /// A service that starts at `now`. Its term should be larger than those of the services before it; if a node knows a larger one, the
    /// service takes one beyond. Errors: the configuration is invalid.
    pub fn new(config: Config, term: Term, now: Nanos) -> Result<Balloon, ConfigError> {
        config.check()?;
        let quotas = config.quotas.values().map(|quota| quota.reserved_bytes);
        Ok(Balloon {
            term,
            number: 0,
            phase: Phase::Starting(now.saturating_add(config.grace)),
            now,
            nodes: vec![MemoryNode::default(); config.nodes.into()],
            calls: (0..config.nodes).map(|node| (now, node)).collect(),
            records: BTreeMap::new(),
            due: BTreeSet::new(),
            holders: BTreeMap::new(),
            leases: BTreeSet::new(),
            former: BTreeSet::new(),
            promised_bytes: quotas.fold(0, u64::saturating_add),
            replies: VecDeque::new(),
            counters: Counters::default(),
            config,
            #[cfg(test)]
            plant: None,
        })
    }

    /// Its counters.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Its parameters.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Whether it serves: all nodes have joined, or the time to wait for them is over.
    pub fn is_serving(&self) -> bool {
        self.phase == Phase::Serving
    }

    /// Why it has ended; `None` while it starts or serves. One that has ended refuses all requests and sends no commands.
    pub fn end(&self) -> Option<End> {
        match self.phase {
            Phase::Ended(end) => Some(end),
            Phase::Starting(_) | Phase::Serving => None,
        }
    }

    /// Its term.
    pub fn term(&self) -> Term {
        self.term
    }

    /// The instance of a node whose report is known.
    #[cfg(test)]
    pub(super) fn joined(&self, node: u16) -> Option<u64> {
        self.nodes[usize::from(node)].joined
    }

    /// Of the last epoch.
    #[cfg(test)]
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Free ranges of a node: start and bytes.
    #[cfg(test)]
    pub(super) fn free_of(&self, node: u16) -> Vec<(u64, u64)> {
        self.nodes[usize::from(node)].free.iter().collect()
    }

    fn next_epoch(&mut self) -> Epoch {
        self.number += 1;
        Epoch { term: self.term, number: self.number }
    }

    fn reply(&mut self, caller: u64, reply: Reply) {
        self.counters.refused += u64::from(matches!(reply, Reply::Refused(_)));
        self.replies.push_back((caller, reply));
    }

    fn refuse(&mut self, caller: u64, refusal: Refusal) {
        self.reply(caller, Reply::Refused(refusal));
    }

    /// Ends the service. Lent extents stay lent.
    fn stop(&mut self, end: End) {
        self.phase = Phase::Ended(end);
        self.calls.clear();
        self.due.clear();
        self.leases.clear();
        let waiting: Vec<u64> = self.records.values().filter_map(|record| record.caller).collect();
        self.records.clear();
        self.holders.clear();
        self.former.clear();
        for caller in waiting {
            self.refuse(caller, end.refusal());
        }
    }

    /// The next command for an extent that is due. Those for nodes that have not joined are put off. Grants that were due often enough are
    /// given up, which may add a reply.
    fn poll_extents(&mut self) -> Option<Sent> {
        while let Some((at, place)) = self.due.first().copied()
            && at <= self.now
        {
            self.due.remove(&(at, place));
            let Some(record) = self.records.get_mut(&place) else { continue };
            let wait_ns = self.config.retry.0.saturating_mul(1 << record.tries.min(BACKOFF));
            let later = self.now.saturating_add(Nanos(wait_ns));
            self.due.insert((later, place));
            record.due = Some(later);
            if self.give_up(place) {
                match self.poll_reply() {
                    Some(reply) => return Some(reply),
                    None => continue,
                }
            }
            if let Some(record) = self.records.get_mut(&place) {
                record.tries = record.tries.saturating_add(1);
            }
            let instance = self.nodes[usize::from(place.node)].instance;
            let Some(record) = self.records.get_mut(&place) else { continue };
            if let (Some(order), Some(instance)) = (record.order(place), instance) {
                self.counters.retries += u64::from(record.sent > 0);
                record.sent = record.sent.saturating_add(1);
                self.counters.commands += 1;
                return Some(Sent::Command(place.node, Command { term: self.term, instance, order }));
            }
        }
        None
    }

    fn poll_reply(&mut self) -> Option<Sent> {
        self.replies.pop_front().map(|(caller, reply)| Sent::Reply(caller, reply))
    }

    /// The next node to join or to probe.
    fn poll_nodes(&mut self) -> Option<Sent> {
        let now = self.now;
        let (at, number) = self.calls.first().copied().filter(|(at, _)| *at <= now)?;
        self.calls.remove(&(at, number));
        let node = &mut self.nodes[usize::from(number)];
        let is_settled = node.instance.is_some() || node.same_as.is_some();
        let wait = if is_settled { self.config.probe } else { self.config.retry };
        self.calls.insert((now.saturating_add(wait), number));
        node.unanswered = node.unanswered.saturating_add(1);
        let order = match node.instance {
            Some(_) => Order::Probe,
            None => {
                node.nonce += 1;
                Order::Join { nonce: node.nonce, node: number }
            }
        };
        self.counters.commands += 1;
        let instance = node.instance.unwrap_or(0);
        Some(Sent::Command(number, Command { term: self.term, instance, order }))
    }
}

impl Machine for Balloon {
    type Received<'a> = Received;
    type Sent = Sent;
    type Buffer = ();

    fn handle_link(&mut self, received: Received, _received_at: Nanos, now: Nanos) {
        self.handle_timeout(now);
        match received {
            Received::Request(caller, request) => {
                self.counters.requests += 1;
                if self.replies.len() >= self.config.replies_max {
                    self.counters.overflows += 1;
                    return;
                }
                match self.phase {
                    Phase::Starting(_) => self.refuse(caller, Refusal::Starting),
                    Phase::Ended(end) => self.refuse(caller, end.refusal()),
                    Phase::Serving => self.serve(caller, request),
                }
            }
            Received::Answer(node, answer) => {
                self.counters.answers += 1;
                if self.end().is_none() && usize::from(node) < self.nodes.len() {
                    self.handle_answer(node, answer);
                }
            }
        }
    }

    fn handle_timeout(&mut self, now: Nanos) {
        self.now = self.now.max(now);
        if let Phase::Starting(until) = self.phase
            && until <= self.now
        {
            self.begin();
        }
        while let Some((at, holder)) = self.leases.first().copied()
            && at <= self.now
        {
            self.counters.leases_ended += 1;
            self.end_session(holder);
        }
    }

    fn poll_link(&mut self, now: Nanos, _out: &mut ()) -> Option<Sent> {
        self.now = self.now.max(now);
        self.poll_reply().or_else(|| self.poll_extents()).or_else(|| self.poll_nodes())
    }

    fn next_link(&self) -> Option<Nanos> {
        (!self.replies.is_empty()).then_some(self.now)
    }

    fn next_timeout(&self) -> Option<Nanos> {
        let start = match self.phase {
            Phase::Starting(until) => Some(until),
            Phase::Serving | Phase::Ended(_) => None,
        };
        let firsts = [self.calls.first().map(|first| first.0), self.due.first().map(|first| first.0)];
        let lease = self.leases.first().map(|first| first.0);
        firsts.into_iter().flatten().chain(start).chain(lease).min()
    }
}
