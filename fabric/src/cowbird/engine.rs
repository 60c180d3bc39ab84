//! The engine: serves its instances in turn, and assigns outcomes to them.

use super::config::{Config, Counters};
use super::instance::{Instance, Step};
use super::set::{Set, State};
use crate::machine::Machine;
use crate::roce::{Outcome, Request};
use p4rack_wire::Nanos;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
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

/// A compute node's sets.
#[derive(Clone, Debug, Default)]
struct Owner {
    instances: BTreeSet<u32>,
    /// The instance that had the last turn.
    turn: u32,
    /// Further requests that it may have in this turn.
    left: usize,
    /// RDMA requests in flight, and their bytes.
    requests: usize,
    bytes: usize,
}

/// An RDMA request in flight.
#[derive(Clone, Copy, Debug)]
struct UnderWay {
    instance: u32,
    step: Step,
    owner: u32,
    bytes: usize,
}

/// An engine, driven as a [`Machine`] whose link is an adapter: requests go there, and outcomes come from there.
#[derive(Clone, Debug)]
pub struct Engine {
    config: Config,
    instances: BTreeMap<u32, Instance>,
    /// Number of the next instance. Numbers are never reused, because outcomes of removed instances may still arrive.
    next: u32,
    owners: BTreeMap<u32, Owner>,
    /// The owner that had the last turn.
    turn: u32,
    /// Each queue pair's pending requests, in the order in which their outcomes arrive.
    steps: BTreeMap<u32, VecDeque<UnderWay>>,
    counters: Counters,
}

impl Engine {
    /// An engine without instances.
    pub fn new(config: Config) -> Engine {
        Engine {
            config,
            instances: BTreeMap::new(),
            next: 0,
            owners: BTreeMap::new(),
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
        self.owners.entry(set.owner).or_default().instances.insert(number);
        self.instances.insert(number, Instance::new(set, &self.config, now));
        Ok(number)
    }

    /// Stops serving a set. Returns whether it was served.
    pub fn remove(&mut self, number: u32) -> bool {
        let Some(instance) = self.instances.remove(&number) else { return false };
        if let Some(owner) = self.owners.get_mut(&instance.owner()) {
            owner.instances.remove(&number);
            if owner.instances.is_empty() {
                self.owners.remove(&instance.owner());
            }
        }
        true
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
        for one in self.steps.remove(&qpn).into_iter().flatten() {
            self.ended(&one);
        }
        for instance in self.instances.values_mut().filter(|instance| instance.uses(qpn)) {
            instance.lose(&mut self.counters);
        }
    }

    /// Whether a queue pair's oldest request reads data of a write, which the engine passes on without looking at it.
    pub fn awaits_payload(&self, qpn: u32) -> bool {
        let oldest = self.steps.get(&qpn).and_then(VecDeque::front);
        oldest.is_some_and(|one| matches!(one.step, Step::Payload(_)))
    }

    /// Accounts for a request that has ended. Its owner may have been removed and added again.
    fn ended(&mut self, one: &UnderWay) {
        if let Some(owner) = self.owners.get_mut(&one.owner) {
            owner.requests = owner.requests.saturating_sub(1);
            owner.bytes = owner.bytes.saturating_sub(one.bytes);
        }
    }

    /// Whether an owner may have one more request in flight; a sole owner always may.
    fn may_ask(&self, owner: &Owner) -> bool {
        let Config { owner_requests_max, owner_bytes_max, .. } = self.config;
        self.owners.len() < 2 || (owner.requests < owner_requests_max && owner.bytes < owner_bytes_max)
    }

    /// Whether a queue pair has room for another request in flight.
    fn has_room(&self, qpn: u32) -> bool {
        self.steps.get(&qpn).is_none_or(|steps| steps.len() < self.config.requests_max)
    }
}

impl Machine for Engine {
    type Received<'a> = (u32, Outcome);
    type Sent = (u32, Request);
    type Buffer = ();

    /// Handles the outcome of a queue pair's oldest request.
    fn handle_link(&mut self, (qpn, outcome): (u32, Outcome), _received_at: Nanos, now: Nanos) {
        let Some(one) = self.steps.get_mut(&qpn).and_then(VecDeque::pop_front) else { return };
        self.ended(&one);
        if let Some(instance) = self.instances.get_mut(&one.instance) {
            instance.handle(one.step, outcome, now, &self.config, &mut self.counters);
        }
    }

    /// The next RDMA request and its queue pair; owners take turns, and so do the instances of each. Beside other owners, a turn of
    /// an instance is several requests long, so that one with many sets doesn't ring a queue pair for each request. The adapter has
    /// to accept it.
    fn poll_link(&mut self, now: Nanos, _out: &mut ()) -> Option<(u32, Request)> {
        let ready = |number: &u32| {
            let pair = self.instances.get(number)?.next_pair(now, &self.config);
            Some((*number, pair.filter(|qpn| self.has_room(*qpn))?))
        };
        let mut owners = in_turn(self.turn)
            .into_iter()
            .flat_map(|range| self.owners.range(range))
            .filter(|(_, owner)| self.may_ask(owner));
        let (owner, (number, qpn)) = owners.find_map(|(number, owner)| {
            let mut instances =
                in_turn(owner.turn).into_iter().flat_map(|range| owner.instances.range(range));
            let same = (owner.left > 0).then_some(&owner.turn);
            Some((*number, same.and_then(ready).or_else(|| instances.find_map(ready))?))
        })?;
        let turn_requests = if self.owners.len() < 2 { 1 } else { self.config.turn_requests };
        let instance = self.instances.get_mut(&number)?;
        let (step, request) = instance.take(now, &self.config, &mut self.counters)?;
        self.turn = owner;
        let under_way = UnderWay { instance: number, step, owner, bytes: request.length() };
        if let Some(owner) = self.owners.get_mut(&owner) {
            let goes_on = owner.left > 0 && owner.turn == number;
            (owner.turn, owner.left) = (number, if goes_on { owner.left } else { turn_requests.max(1) } - 1);
            owner.requests += 1;
            owner.bytes += under_way.bytes;
        }
        self.steps.entry(qpn).or_default().push_back(under_way);
        Some((qpn, request))
    }

    /// Time of the next probe.
    fn next_link(&self) -> Option<Nanos> {
        let of_owner =
            |instance: &Instance| self.owners.get(&instance.owner()).is_some_and(|one| self.may_ask(one));
        let instances = self.instances.values().filter(|instance| of_owner(instance));
        let due = instances.filter_map(|instance| instance.next_timeout(&self.config));
        // A queue pair without room waits for outcomes, and so does an owner.
        due.filter(|(_, qpn)| self.has_room(*qpn)).map(|(at, _)| at).min()
    }
}

/// Ranges of numbers after `last`, then of all others.
fn in_turn(last: u32) -> [(Bound<u32>, Bound<u32>); 2] {
    [(Bound::Excluded(last), Bound::Unbounded), (Bound::Unbounded, Bound::Included(last))]
}

#[cfg(test)]
mod tests {
    use super::super::set::Pool;
    use super::*;
    use crate::roce::Failure;
    use p4rack_wire::cowbird::Layout;

    #[test]
    fn a_set_that_the_engine_could_not_serve_is_refused() {
        let config = Config { message_bytes_max: 64, entries_max: 8, instances_max: 1, ..Config::default() };
        let mut engine = Engine::new(config);
        let layout = Layout { entries: 8, request_bytes: 128, response_bytes: 128 };
        let pool = Pool { qpn: 3, key: 4, address: 64, bytes: 64 };
        let good = Set { owner: 0, qpn: 2, key: 1, address: 0, layout, regions: vec![pool] };
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
        let last = Pool { bytes: u64::MAX - 64, ..pool };
        assert_eq!(refused(Set { regions: vec![last; REGIONS_MAX], ..good.clone() }), None);
        assert_eq!(refused(good), Some(SetError::Full));
        for (error, words) in [
            (SetError::Layout("a size"), "a size"),
            (SetError::Ring(64), "at most twice the longest message, 64 bytes"),
            (SetError::Entries(8), "at most 8 entries"),
            (SetError::Address, "beyond the last address"),
            (SetError::Regions, "at most 65536 regions"),
            (SetError::Full, "end one first"),
        ] {
            assert!(error.to_string().contains(words), "{error}");
        }
    }

    /// One that has many sets with much to do rings few queue pairs, beside another owner; with the engine for itself it goes round.
    #[test]
    fn a_turn_beside_others_is_several_requests_of_one_set() {
        let layout = Layout { entries: 8, request_bytes: 128, response_bytes: 128 };
        let set = |owner, nth| Set { owner, qpn: 2 + nth, key: nth, address: 0, layout, regions: Vec::new() };
        let asked = |owners: u32| {
            let config = Config { guess_entries: 0, probes_max: 8, turn_requests: 4, ..Config::default() };
            let mut engine = Engine::new(Config { probe_min: Nanos::ZERO, probe_max: Nanos::ZERO, ..config });
            for nth in 0..4 {
                engine.add(set(0, nth), Nanos::ZERO).unwrap();
            }
            for owner in 1..owners {
                engine.add(set(owner, 3 + owner), Nanos::ZERO).unwrap();
            }
            // Once it has recovered, each set may have eight probes in flight.
            let serves = |engine: &Engine, nth| engine.state(nth) == Some(State::Serving);
            while !(0..3 + owners).all(|nth| serves(&engine, nth)) {
                let Some((qpn, request)) = engine.poll_link(Nanos::ZERO, &mut ()) else { break };
                let bytes = vec![0; request.length()];
                engine.handle_link((qpn, Outcome::Read(bytes)), Nanos::ZERO, Nanos::ZERO);
            }
            let polled = std::iter::from_fn(|| engine.poll_link(Nanos::ZERO, &mut ())).map(|(qpn, _)| qpn);
            let of_first: Vec<u32> = polled.filter(|qpn| *qpn < 6).take(12).collect();
            of_first.windows(2).filter(|pair| pair[0] != pair[1]).count()
        };
        assert_eq!(asked(1), 11, "one request each");
        assert!((2..=3).contains(&asked(2)), "{}", asked(2));
    }

    #[test]
    fn owners_take_turns_however_many_sets_they_have() {
        let mut engine = Engine::new(Config { owner_requests_max: 6, ..Config::default() });
        let layout = Layout { entries: 8, request_bytes: 128, response_bytes: 128 };
        for nth in 0..10 {
            let owner = u32::from(nth == 9);
            let set = Set { owner, qpn: 2 + nth, key: nth, address: 0, layout, regions: Vec::new() };
            engine.add(set, Nanos::ZERO).unwrap();
        }
        // Each set recovers first. The owner of nine may have six requests under way.
        let mut asked = Vec::new();
        while let Some((qpn, _)) = engine.poll_link(Nanos::ZERO, &mut ()) {
            asked.push(u32::from(qpn == 11));
        }
        assert_eq!(asked, [1, 0, 0, 0, 0, 0, 0]);
        // A failed request makes room; sets without a turn so far come first.
        engine.handle_link((3, Outcome::Failed(Failure::RetriesExceeded)), Nanos::ZERO, Nanos::ZERO);
        assert_eq!(engine.poll_link(Nanos::ZERO, &mut ()).map(|(qpn, _)| qpn), Some(9));
        // With the engine for itself it has no limit.
        assert!(engine.remove(9));
        engine.forget_pair(11);
        let left: Vec<u32> =
            std::iter::from_fn(|| engine.poll_link(Nanos::ZERO, &mut ())).map(|(qpn, _)| qpn).collect();
        assert_eq!(left, [10, 2]);
    }
}
