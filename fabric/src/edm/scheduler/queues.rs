//! The demand notification queues: one per destination, in order of priority (§3.1.2).
//!
//! Messages of a pair stay in order, so of each pair only the oldest message competes. A queue therefore holds the
//! oldest message of each source, sorted, and each pair has a list of those that follow.

use super::ports::Ports;
use super::{Demand, Policy, Refusal};

/// The smaller one goes first. No two are equal, because each message has its own number.
pub(super) type Priority = (u32, u64);

/// Position of a message in the slab; `NONE` for the end of a list.
type At = u32;
const NONE: At = At::MAX;

/// A demand and its remaining bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    pub demand: Demand,
    pub remaining_bytes: u32,
    /// Number of the message, in order of arrival.
    number: u64,
    next: At,
}

/// The messages of one (source, destination) pair, oldest first.
#[derive(Clone, Copy, Debug)]
struct Pair {
    first: At,
    last: At,
}

/// All queues.
#[derive(Clone, Debug)]
pub(super) struct Queues {
    policy: Policy,
    count: usize,
    pairs: Vec<Pair>,
    /// By pair: ids of its explicit and its implicit demands.
    active: Vec<[Vec<u8>; 2]>,
    messages: Vec<Message>,
    free: At,
    numbered: u64,
    /// By destination: the oldest message of each source, the best first.
    heads: Vec<Vec<(Priority, u16)>>,
    /// By source: destinations for which it has messages.
    wanted: Vec<Ports>,
    /// By destination: messages in its queue, of all sources.
    lengths: Vec<u32>,
}

impl Queues {
    pub fn new(ports: usize, policy: Policy) -> Queues {
        Queues {
            policy,
            count: ports,
            pairs: vec![Pair { first: NONE, last: NONE }; ports * ports],
            active: vec![Default::default(); ports * ports],
            messages: Vec::new(),
            free: NONE,
            numbered: 0,
            heads: vec![Vec::new(); ports],
            wanted: vec![Ports::none(ports); ports],
            lengths: vec![0; ports],
        }
    }

    fn pair(&self, demand: &Demand) -> usize {
        usize::from(demand.destination) * self.count + usize::from(demand.source)
    }

    /// Number of messages that wait for a destination.
    pub fn length(&self, destination: usize) -> u32 {
        self.lengths[destination]
    }

    /// Destinations for which a source has messages.
    pub fn wanted_of(&self, source: usize) -> &Ports {
        &self.wanted[source]
    }

    /// Counts a demand for its pair, unless the pair has `limit` of this kind or one with the same id.
    pub fn admit(&mut self, demand: &Demand, limit: u8) -> Result<(), Refusal> {
        let pair = self.pair(demand);
        let kind = usize::from(demand.kind.is_implicit());
        let active = &mut self.active[pair][kind];
        if active.len() >= usize::from(limit) {
            return Err(Refusal::OverLimit);
        }
        if active.contains(&demand.id) {
            return Err(Refusal::IdInUse);
        }
        active.push(demand.id);
        self.lengths[usize::from(demand.destination)] += 1;
        Ok(())
    }

    /// Adds a demand that was admitted.
    pub fn enter(&mut self, demand: Demand) {
        let pair = self.pair(&demand);
        let message = Message { remaining_bytes: demand.bytes, number: self.numbered, next: NONE, demand };
        self.numbered += 1;
        let at = if self.free == NONE {
            self.messages.push(message);
            (self.messages.len() - 1) as At
        } else {
            let at = self.free;
            self.free = self.messages[at as usize].next;
            self.messages[at as usize] = message;
            at
        };
        match self.pairs[pair].last {
            NONE => {
                self.pairs[pair].first = at;
                self.compete(at);
            }
            last => self.messages[last as usize].next = at,
        }
        self.pairs[pair].last = at;
    }

    fn priority(&self, message: &Message) -> Priority {
        match self.policy {
            Policy::Fcfs => (0, message.number),
            Policy::Srpt => (message.remaining_bytes, message.number),
        }
    }

    /// Enters the oldest message of a pair into its destination's queue.
    fn compete(&mut self, at: At) {
        let message = self.messages[at as usize];
        let priority = self.priority(&message);
        let heads = &mut self.heads[usize::from(message.demand.destination)];
        let position = heads.partition_point(|head| head.0 < priority);
        heads.insert(position, (priority, message.demand.source));
        self.wanted[usize::from(message.demand.source)].add(message.demand.destination.into());
    }

    /// The best message for a destination whose source is in `free`: its priority and its source.
    pub fn best(&self, destination: usize, free: &Ports) -> Option<(Priority, u16)> {
        self.heads[destination].iter().find(|(_, source)| free.has(usize::from(*source))).copied()
    }

    /// Takes up to `chunk_bytes` of the oldest message of a pair. Returns the message as it was, and the bytes.
    pub fn take(&mut self, source: u16, destination: u16, chunk_bytes: u32) -> (Message, u32) {
        let pair = usize::from(destination) * self.count + usize::from(source);
        let at = self.pairs[pair].first;
        let message = self.messages[at as usize];
        let bytes = chunk_bytes.min(message.remaining_bytes);
        let left = message.remaining_bytes - bytes;
        self.messages[at as usize].remaining_bytes = left;
        if left > 0 && self.policy == Policy::Fcfs {
            return (message, bytes);
        }
        self.leave(&message);
        if left > 0 {
            self.compete(at);
        } else {
            self.drop_first(pair);
        }
        (message, bytes)
    }

    /// Takes a message out of its destination's queue.
    fn leave(&mut self, message: &Message) {
        let priority = self.priority(message);
        let heads = &mut self.heads[usize::from(message.demand.destination)];
        let position = heads.partition_point(|head| head.0 < priority);
        heads.remove(position);
        self.wanted[usize::from(message.demand.source)].remove(message.demand.destination.into());
    }

    /// Removes the oldest message of a pair; the next one competes in its place.
    fn drop_first(&mut self, pair: usize) {
        let at = self.pairs[pair].first;
        let message = self.messages[at as usize];
        self.pairs[pair].first = message.next;
        self.retire(pair, &message.demand);
        match message.next {
            NONE => self.pairs[pair].last = NONE,
            next => self.compete(next),
        }
        self.messages[at as usize].next = self.free;
        self.free = at;
    }

    fn retire(&mut self, pair: usize, demand: &Demand) {
        self.active[pair][usize::from(demand.kind.is_implicit())].retain(|id| *id != demand.id);
        self.lengths[usize::from(demand.destination)] -= 1;
    }

    /// Removes a demand that was admitted but has not entered.
    pub fn withdraw(&mut self, demand: &Demand) {
        self.retire(self.pair(demand), demand);
    }

    /// Removes everything that a port sends or receives. Returns the number of messages.
    pub fn forget(&mut self, port: usize) -> u64 {
        let mut forgotten = 0;
        for other in 0..self.count {
            for pair in [port * self.count + other, other * self.count + port] {
                while self.pairs[pair].first != NONE {
                    let first = self.messages[self.pairs[pair].first as usize];
                    self.leave(&first);
                    self.drop_first(pair);
                    forgotten += 1;
                }
            }
        }
        forgotten
    }
}
