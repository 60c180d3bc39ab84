//! Parallel iterative matching with priorities (§3.1.2).

use super::ports::Ports;
use super::queues::{Priority, Queues};
use super::{Config, Counters, Demand, Grant};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Cycles from a demand's arrival until it takes part in an iteration, for insertion into an ordered list.
pub(super) const INSERT_CYCLES: u64 = 2;
/// Cycles of an iteration: destinations request, sources choose, ports are marked.
pub(super) const ITERATION_CYCLES: u64 = 3;
/// Cycles of an iteration after which its grants leave, while the third marks ports as busy.
pub(super) const GRANT_CYCLES: u64 = 2;

/// State of the ports, and grants.
#[derive(Clone, Debug)]
pub(super) struct Matching {
    pub queues: Queues,
    free_sources: Ports,
    free_destinations: Ports,
    /// Free destinations that may have a free source. All others have none, so an iteration skips them.
    hopeful: Ports,
    /// When ports become free: time, source, destination.
    releases: BinaryHeap<Reverse<(u64, u16, u16)>>,
    /// No iteration starts before this.
    pub iterate_from_ps: u64,
    /// By port: end times of its outgoing and incoming data, relative to grants.
    passed_ps: Vec<(u64, u64)>,
    /// Best request of an iteration by source: priority and destination.
    requests: Vec<Option<(Priority, u16)>>,
    requested: Vec<u16>,
    /// Grants that have not left yet, by time.
    pub granted: VecDeque<Grant>,
}

impl Matching {
    pub fn new(config: &Config) -> Matching {
        let ports = usize::from(config.ports);
        Matching {
            queues: Queues::new(ports, config.policy),
            free_sources: Ports::all(ports),
            free_destinations: Ports::all(ports),
            hopeful: Ports::none(ports),
            releases: BinaryHeap::new(),
            iterate_from_ps: 0,
            passed_ps: vec![(0, 0); ports],
            requests: vec![None; ports],
            requested: Vec::with_capacity(ports),
            granted: VecDeque::new(),
        }
    }

    /// A demand has reached its queue.
    pub fn enter(&mut self, demand: Demand, at_ps: u64, config: &Config) {
        self.queues.enter(demand);
        let (source, destination) = (usize::from(demand.source), usize::from(demand.destination));
        if config.room_for_short {
            let asks = if demand.kind.is_implicit() { destination } else { source };
            put_off(&mut self.passed_ps[asks].0, demand.kind.ask_blocks() * config.block_ps, at_ps);
        }
        if self.free_sources.has(source) && self.free_destinations.has(destination) {
            self.hopeful.add(destination);
        }
    }

    /// The earliest time at which there may be something to match.
    pub fn next_ready_ps(&self) -> Option<u64> {
        match self.hopeful.is_empty() {
            false => Some(0),
            true => self.releases.peek().map(|Reverse((at_ps, ..))| *at_ps),
        }
    }

    /// One iteration, which starts at `at_ps`.
    pub fn iterate(&mut self, at_ps: u64, config: &Config, counters: &mut Counters) {
        while let Some(Reverse((free_ps, source, destination))) = self.releases.peek().copied() {
            if free_ps > at_ps {
                break;
            }
            self.releases.pop();
            self.release(source.into(), destination.into());
        }
        self.ask(counters);
        if self.requested.is_empty() {
            return;
        }
        counters.iterations += 1;
        self.iterate_from_ps = at_ps + ITERATION_CYCLES * config.cycle_ps;
        for nth in 0..self.requested.len() {
            let source = self.requested[nth];
            if let Some((_, destination)) = self.requests[usize::from(source)].take() {
                let grant = self.grant(source, destination, at_ps, config);
                counters.grants += 1;
                counters.granted_bytes += u64::from(grant.bytes);
                let position = self.granted.partition_point(|other| other.at_ps <= grant.at_ps);
                self.granted.insert(position, grant);
            }
        }
        self.requested.clear();
    }

    fn release(&mut self, source: usize, destination: usize) {
        self.free_sources.add(source);
        self.free_destinations.add(destination);
        self.hopeful.add(destination);
        self.hopeful.add_common(self.queues.wanted_of(source), &self.free_destinations);
    }

    /// Each destination requests its best message; each source keeps the best request.
    fn ask(&mut self, counters: &mut Counters) {
        let Matching { queues, free_sources, hopeful, requests, requested, .. } = self;
        hopeful.retain(|destination| {
            let Some((priority, source)) = queues.best(destination, free_sources) else { return false };
            let request = &mut requests[usize::from(source)];
            match request {
                None => requested.push(source),
                Some(_) => counters.conflicts += 1,
            }
            if request.is_none_or(|(best, _)| priority < best) {
                *request = Some((priority, destination as u16));
            }
            true
        });
    }

    /// Matches two ports. The grant leaves when it is known, or once both ports' chunks have passed.
    fn grant(&mut self, source: u16, destination: u16, at_ps: u64, config: &Config) -> Grant {
        let (message, bytes) = self.queues.take(source, destination, config.chunk_bytes);
        let (demand, offset) = (message.demand, message.demand.bytes - message.remaining_bytes);
        let busy_ps = config.framing.blocks(demand.kind.chunk(bytes, offset == 0)) * config.block_ps;
        let (from, to) = (usize::from(source), usize::from(destination));
        self.free_sources.remove(from);
        self.free_destinations.remove(to);
        self.hopeful.remove(to);
        let passed_ps = self.passed_ps[from].0.max(self.passed_ps[to].1);
        let known_ps = at_ps + GRANT_CYCLES * config.cycle_ps;
        let at_ps = known_ps.max(passed_ps);
        (self.passed_ps[from].0, self.passed_ps[to].1) = (at_ps + busy_ps, at_ps + busy_ps);
        if config.room_for_short {
            let request = offset == 0 && demand.kind.is_implicit();
            let blocks = if request { demand.kind.ask_blocks() } else { 1 };
            put_off(&mut self.passed_ps[from].1, blocks * config.block_ps, at_ps);
        }
        // Ports are marked two cycles before the grant leaves, so that the next grant leaves l/B after it.
        let ahead_ps = GRANT_CYCLES * config.cycle_ps + config.lookahead_ps;
        let free_ps = (at_ps + busy_ps).saturating_sub(ahead_ps);
        self.releases.push(Reverse((free_ps, source, destination)));
        Grant { at_ps, demand, offset, bytes, busy_ps }
    }

    /// Discards the messages of a port, and its grants that have not left.
    pub fn forget(&mut self, port: usize) -> u64 {
        self.granted.retain(|grant| usize::from(grant.demand.source) != port);
        self.queues.forget(port)
    }
}

/// Extends the time of data on a link, if there is any.
fn put_off(passed_ps: &mut u64, by_ps: u64, now_ps: u64) {
    if *passed_ps > now_ps {
        *passed_ps += by_ps;
    }
}
