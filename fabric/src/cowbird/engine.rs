//! The engine: serves its instances in turn, and assigns outcomes to them.

use super::config::{Config, Counters};
use super::instance::{Instance, Step};
use super::set::{Set, State};
use crate::roce::{Outcome, Request};
use p4rack_wire::Nanos;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::ops::Bound;

/// Regions of a set: an entry names one by 16 bits.
pub const REGIONS_MAX: usize = 1 << 16;

/// Why a set is not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetError {
    /// A size is invalid.
    Layout(&'static str),
    /// A ring is more than twice as long as the longest message, which has this many bytes.
    Ring(u32),
    /// The request ring has more entries than this limit.
    Entries(u64),
    /// The set, or a region, reaches beyond the last address.
    Address,
    /// It has more than [`REGIONS_MAX`] regions.
    Regions,
    /// The limit of instances is reached.
    Full,
}

impl fmt::Display for SetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SetError::Layout(why) => f.write_str(why),
            SetError::Ring(most) => {
                write!(
                    f,
                    "request_bytes and response_bytes are at most twice the longest message, {most} bytes"
                )
            }
            SetError::Entries(most) => write!(f, "this engine serves rings of at most {most} entries"),
            SetError::Address => write!(f, "a set or a region reaches beyond the last address"),
            SetError::Regions => write!(f, "a set has at most {REGIONS_MAX} regions"),
            SetError::Full => write!(f, "the engine serves as many sets as it may: end one first"),
        }
    }
}

impl std::error::Error for SetError {}

/// An engine. After each `handle_*` and at [`next_timeout`](Self::next_timeout), call
/// [`poll_request`](Self::poll_request) until it yields nothing.
#[derive(Clone, Debug)]
pub struct Engine {
    config: Config,
    instances: BTreeMap<u32, Instance>,
    /// Number of the next instance. Numbers are never reused, because outcomes of removed instances may still arrive.
    next: u32,
    /// The instance that had the last turn.
    turn: u32,
    /// Instance and purpose of each queue pair's pending requests, in the order in which their outcomes arrive.
    steps: BTreeMap<u32, VecDeque<(u32, Step)>>,
    counters: Counters,
}

impl Engine {
    /// An engine without instances.
    pub fn new(config: Config) -> Engine {
        Engine {
            config,
            instances: BTreeMap::new(),
            next: 0,
            turn: 0,
            steps: BTreeMap::new(),
            counters: Counters::default(),
        }
    }

    /// Its counters.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Starts to serve a set from the position in its red block. Returns the number of the instance.
    pub fn add(&mut self, set: Set, now: Nanos) -> Result<u32, SetError> {
        let layout = &set.layout;
        layout.check().map_err(SetError::Layout)?;
        if layout.request_bytes.max(layout.response_bytes) / 2 > self.config.message_bytes_max.into() {
            return Err(SetError::Ring(self.config.message_bytes_max));
        }
        if layout.entries > self.config.entries_max {
            return Err(SetError::Entries(self.config.entries_max));
        }
        if set.regions.len() > REGIONS_MAX {
            return Err(SetError::Regions);
        }
        let mut ranges =
            set.regions.iter().map(|pool| (pool.address, pool.bytes)).chain([(set.address, layout.bytes())]);
        if ranges.any(|(address, bytes)| address.checked_add(bytes).is_none()) {
            return Err(SetError::Address);
        }
        if self.instances.len() >= self.config.instances_max {
            return Err(SetError::Full);
        }
        let number = self.next;
        self.next += 1;
        self.instances.insert(number, Instance::new(set, &self.config, now));
        Ok(number)
    }

    /// Stops serving a set. Returns whether it was served.
    pub fn remove(&mut self, number: u32) -> bool {
        self.instances.remove(&number).is_some()
    }

    /// Number of instances.
    pub fn instances(&self) -> usize {
        self.instances.len()
    }

    /// State of an instance.
    pub fn state(&self, number: u32) -> Option<State> {
        self.instances.get(&number).map(Instance::state)
    }

    /// Forgets a removed queue pair, which produces no more outcomes. Instances that used it are lost.
    pub fn forget_pair(&mut self, qpn: u32) {
        self.steps.remove(&qpn);
        for instance in self.instances.values_mut().filter(|instance| instance.uses(qpn)) {
            instance.lose(&mut self.counters);
        }
    }

    /// The next RDMA request and its queue pair; instances take turns. The adapter has to accept it.
    pub fn poll_request(&mut self, now: Nanos) -> Option<(u32, Request)> {
        let (behind, before) =
            ((Bound::Excluded(self.turn), Bound::Unbounded), (Bound::Unbounded, Bound::Included(self.turn)));
        let numbers = [behind, before].into_iter().flat_map(|range| self.instances.range(range));
        let ready =
            |instance: &Instance| instance.next_pair(now, &self.config).filter(|qpn| self.has_room(*qpn));
        let (number, qpn) =
            numbers.into_iter().find_map(|(number, instance)| Some((*number, ready(instance)?)))?;
        let instance = self.instances.get_mut(&number)?;
        let (step, request) = instance.take(now, &self.config, &mut self.counters)?;
        self.turn = number;
        self.steps.entry(qpn).or_default().push_back((number, step));
        Some((qpn, request))
    }

    /// Handles the outcome of a queue pair's oldest request.
    pub fn handle_outcome(&mut self, qpn: u32, outcome: Outcome, now: Nanos) {
        let step = self.steps.get_mut(&qpn).and_then(VecDeque::pop_front);
        if let Some((number, step)) = step
            && let Some(instance) = self.instances.get_mut(&number)
        {
            instance.handle(step, outcome, now, &self.config, &mut self.counters);
        }
    }

    /// Time of the next probe, to call [`poll_request`](Self::poll_request) if nothing else happens before.
    pub fn next_timeout(&self) -> Option<Nanos> {
        let due = self.instances.values().filter_map(|instance| instance.next_timeout(&self.config));
        // A queue pair without room waits for outcomes.
        due.filter(|(_, qpn)| self.has_room(*qpn)).map(|(at, _)| at).min()
    }

    /// Whether a queue pair has room for another request in flight.
    fn has_room(&self, qpn: u32) -> bool {
        self.steps.get(&qpn).is_none_or(|steps| steps.len() < self.config.requests_max)
    }
}

#[cfg(test)]
mod tests {
    use super::super::set::Pool;
    use super::*;
    use p4rack_wire::cowbird::Layout;

    #[test]
    fn a_set_that_the_engine_could_not_serve_is_refused() {
        let config = Config { message_bytes_max: 64, entries_max: 8, instances_max: 1, ..Config::default() };
        let mut engine = Engine::new(config);
        let layout = Layout { entries: 8, request_bytes: 128, response_bytes: 128 };
        let pool = Pool { qpn: 3, key: 4, address: 64, bytes: 64 };
        let good = Set { qpn: 2, key: 1, address: 0, layout, regions: vec![pool] };
        let mut refused = |set: Set| engine.add(set, Nanos::ZERO).err();
        let of = |layout: Layout| Set { layout, ..good.clone() };
        assert!(matches!(refused(of(Layout { entries: 3, ..layout })), Some(SetError::Layout(_))));
        assert_eq!(refused(of(Layout { entries: 16, ..layout })), Some(SetError::Entries(8)));
        assert_eq!(refused(of(Layout { request_bytes: 256, ..layout })), Some(SetError::Ring(64)));
        assert_eq!(refused(of(Layout { response_bytes: 256, ..layout })), Some(SetError::Ring(64)));
        assert_eq!(refused(Set { address: u64::MAX - 99, ..good.clone() }), Some(SetError::Address));
        let far = Pool { bytes: u64::MAX - 63, ..pool };
        assert_eq!(refused(Set { regions: vec![far], ..good.clone() }), Some(SetError::Address));
        let many = vec![pool; REGIONS_MAX + 1];
        assert_eq!(refused(Set { regions: many, ..good.clone() }), Some(SetError::Regions));
        assert_eq!(refused(good.clone()), None);
        assert_eq!(refused(good), Some(SetError::Full));
    }
}
