//! A service, memory nodes and compute nodes in virtual time, over a network that loses, copies, delays and reorders, while all of them
//! crash. After each event the world checks its invariants.

use super::super::plant::Plant;
use super::store::Store;
use super::*;
use crate::common::SplitMix;
use std::collections::{BTreeMap, BTreeSet};

/// Time between two acts of a compute node.
const TICK: Nanos = Nanos::from_millis(1);
const DELAY_NS: u64 = 100_000;
const JITTER_NS: u64 = 900_000;
/// Delay of a late message.
const LATE_NS: u64 = 20_000_000;
const LEASE: Nanos = Nanos::from_millis(60);
const UNITS: u64 = 8;

/// Rates of faults in thousandths: of messages, and of crashes per tick.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    pub lost: u64,
    pub copied: u64,
    pub late: u64,
    pub node_crashes: u64,
    pub holder_crashes: u64,
    pub service_crashes: u64,
    /// Memory nodes that are to go offline, and those that come back.
    pub leaves: u64,
}

#[derive(Clone, Debug)]
enum Mail {
    Request(u64, Request),
    Reply(u64, Reply),
    Command { from: u64, to: u16, command: Command },
    Answer { from: u16, to: u64, answer: Answer },
    Write { node: u16, access: Access, nth: u64, stamp: u64 },
    Look { node: u16, access: Access, stamp: u64 },
    Tick,
}

struct MemoryNode<S> {
    /// `None` while it is down, until that time.
    up: Option<(Node, S)>,
    instance: u64,
    back_at: Nanos,
}

struct Holder {
    session: Session,
    is_alive: bool,
    back_at: Nanos,
    is_open: bool,
    lent: BTreeMap<Extent, (Lent, Nanos)>,
    number: u64,
    under_way: Option<(Ask, Nanos)>,
    /// The extent that is to move to the next one that is reserved.
    moves: Option<Extent>,
    renew_at: Nanos,
    /// The newest renewal: its number, and when it was sent.
    renewal: (u64, Nanos),
    /// The first extent, by number of the request.
    replies: BTreeMap<u64, Extent>,
}

/// Counts of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    pub lent: u64,
    pub returned: u64,
    pub fenced: u64,
    pub refused_writes: u64,
    pub found: u64,
    pub leases_ended: u64,
    pub late: u64,
    pub superseded: u64,
    pub moved: u64,
}

/// `S` is the memory of all nodes.
pub struct World<S> {
    now: Nanos,
    random: SplitMix,
    faults: Faults,
    plant: Option<Plant>,
    /// The last one is asked; the others think that they are the service.
    services: Vec<(u64, Balloon)>,
    starts: u64,
    service_back_at: Option<Nanos>,
    nodes: Vec<MemoryNode<S>>,
    holders: Vec<Holder>,
    /// By service and node: the last epoch's number when the node began to leave.
    leaving: BTreeMap<(u64, u16), u64>,
    callers: BTreeMap<u64, (usize, Session, Ask)>,
    caller: u64,
    mail: BTreeMap<(Nanos, u64), Mail>,
    posted: u64,
    seen: Seen,
    problem: Option<String>,
}

/// The stamp of an extent's owner.
fn stamp(extent: &Extent) -> u64 {
    let Epoch { term, number } = extent.epoch;
    term.number << 48 | term.service << 24 | number
}

/// Where a key reaches bytes of a node that the service takes for free.
fn unknown(service: &Balloon, number: u16, store: &impl Store) -> Option<u64> {
    let free = service.free_of(number);
    let is_free = |start: u64, end: u64| free.iter().any(|(from, bytes)| *from < end && start < from + bytes);
    store.reached().into_iter().find(|(start, end)| is_free(*start, *end)).map(|(start, _)| start)
}

fn config() -> Config {
    let ms = Nanos::from_millis;
    Config {
        lease: LEASE,
        retry: ms(3),
        probe: ms(6),
        grants_max: 3,
        grace: ms(30),
        numbers_max: 8,
        quotas: [(0, Quota { reserved_bytes: 4 * UNIT, limit_bytes: 12 * UNIT })].into(),
        ..Config::new(3)
    }
}

impl<S: Store> World<S> {
    pub fn new(seed: u64, faults: Faults, plant: Option<Plant>) -> World<S> {
        let mut random = SplitMix(seed);
        let mut nodes = Vec::new();
        for number in 0..3 {
            let mut node = MemoryNode { up: None, instance: 1_000 * number, back_at: Nanos::ZERO };
            node.start(&mut random, plant);
            nodes.push(node);
        }
        let holder = |holder| Holder {
            session: Session { holder, instance: 1 },
            is_alive: true,
            back_at: Nanos::ZERO,
            is_open: false,
            lent: BTreeMap::new(),
            number: 0,
            under_way: None,
            moves: None,
            renew_at: Nanos::ZERO,
            renewal: (0, Nanos::ZERO),
            replies: BTreeMap::new(),
        };
        let mut world = World {
            now: Nanos::ZERO,
            random,
            faults,
            plant,
            services: Vec::new(),
            starts: 0,
            service_back_at: None,
            nodes,
            holders: (0..3).map(holder).collect(),
            leaving: BTreeMap::new(),
            callers: BTreeMap::new(),
            caller: 0,
            mail: BTreeMap::new(),
            posted: 0,
            seen: Seen::default(),
            problem: None,
        };
        world.start_service();
        world.mail.insert((TICK, 0), Mail::Tick);
        world
    }

    fn start_service(&mut self) {
        self.starts += 1;
        // Sometimes its clock is behind: it starts with the number of the service before, or a smaller one.
        let number = match self.below(8) {
            0 => 10 * (self.starts - 1),
            1 => (10 * self.starts).saturating_sub(15),
            _ => 10 * self.starts,
        };
        // Which of two services with the same number comes first is open.
        let service = match self.plant {
            Some(Plant::SameIdentity) => 0,
            _ => self.below(1 << 8) << 8 | self.starts,
        };
        let term = Term { number: number.max(1), service };
        let mut service = Balloon::new(config(), term, self.now).unwrap();
        service.plant = self.plant;
        self.services.push((self.starts, service));
    }

    fn chance(&mut self, of: u64) -> bool {
        self.random.next() % 1_000 < of
    }

    fn below(&mut self, end: u64) -> u64 {
        self.random.next() % end
    }

    fn post(&mut self, mail: Mail) {
        if self.chance(self.faults.lost) {
            return;
        }
        let copies = 1 + u64::from(self.chance(self.faults.copied));
        for _ in 0..copies {
            let late = if self.chance(self.faults.late) { self.below(LATE_NS) } else { 0 };
            let at = self.now + Nanos(DELAY_NS + self.below(JITTER_NS) + late);
            self.posted += 1;
            self.mail.insert((at, self.posted), mail.clone());
        }
    }

    fn send(&mut self, nth: usize, ask: Ask) -> u64 {
        self.caller += 1;
        let session = self.holders[nth].session;
        self.callers.insert(self.caller, (nth, session, ask.clone()));
        self.post(Mail::Request(self.caller, Request { session, ask }));
        self.caller
    }

    /// Runs for a time. The error is a violated invariant.
    pub fn run(&mut self, time: Nanos) -> Result<(), String> {
        let end = self.now + time;
        loop {
            let mail = self.mail.keys().next().map(|key| key.0);
            let calls = self.services.iter().filter_map(|(_, service)| service.next_call(Nanos::ZERO));
            let next = calls.chain(mail).min().unwrap_or(end);
            if next > end {
                self.now = end;
                return Ok(());
            }
            self.now = self.now.max(next);
            while let Some(entry) = self.mail.first_entry().filter(|entry| entry.key().0 <= self.now) {
                let mail = entry.remove();
                self.deliver(mail);
            }
            self.turn();
            self.look();
            self.look_for_grants();
            if let Some(problem) = self.problem.take() {
                return Err(format!("at {}: {problem}", self.now));
            }
        }
    }

    /// Runs the services' due work.
    fn turn(&mut self) {
        let mut sent = Vec::new();
        for (id, service) in &mut self.services {
            service.handle_timeout(self.now);
            while let Some(one) = service.poll_link(self.now, &mut ()) {
                sent.push((*id, one));
            }
        }
        for (from, one) in sent {
            match one {
                Sent::Reply(caller, reply) => self.post(Mail::Reply(caller, reply)),
                Sent::Command(to, command) => self.post(Mail::Command { from, to, command }),
            }
        }
    }

    fn deliver(&mut self, mail: Mail) {
        match mail {
            Mail::Request(caller, request) => self.request(caller, request),
            Mail::Reply(caller, reply) => self.reply(caller, reply),
            Mail::Command { from, to, command } => {
                if let Some((node, store)) = &mut self.nodes[usize::from(to)].up {
                    let answer = node.handle(&command, store);
                    self.problem = self.problem.take().or(store.problem());
                    self.post(Mail::Answer { from: to, to: from, answer });
                }
            }
            Mail::Answer { from, to, answer } => {
                if let Some((_, service)) = self.services.iter_mut().find(|(id, _)| *id == to) {
                    service.handle_link(Received::Answer(from, answer), self.now, self.now);
                }
            }
            Mail::Write { node, access, nth, stamp } => {
                let up = self.nodes[usize::from(node)].up.as_mut();
                let wrote = up.map(|(_, store)| store.write(&access, nth, stamp));
                self.seen.refused_writes += u64::from(wrote == Some(false));
            }
            Mail::Look { node, access, stamp } => {
                let up = self.nodes[usize::from(node)].up.as_ref();
                let words = up.and_then(|(_, store)| store.read(&access));
                if let Some(words) = words.filter(|of| of.iter().any(|word| *word != 0 && *word != stamp)) {
                    self.problem = Some(format!("the owner {stamp:#x} reads {words:x?}"));
                }
            }
            Mail::Tick => self.tick(),
        }
    }

    fn request(&mut self, caller: u64, request: Request) {
        let now = self.now;
        let Some((_, service)) = self.services.last_mut().filter(|_| self.service_back_at.is_none()) else {
            return;
        };
        service.handle_timeout(now);
        let left = |service: &Balloon| {
            let of = |facts: &HolderFacts| facts.session.holder == request.session.holder;
            service.holders().into_iter().find(of).map(|facts| (facts.session.instance, facts.left))
        };
        let before = left(service);
        service.handle_link(Received::Request(caller, request.clone()), now, now);
        if let (Some((instance, before)), Some((after_instance, after))) = (before, left(service))
            && instance != request.session.instance
            && instance == after_instance
            && after > before
        {
            self.problem = Some("words of a dead session have renewed the present one".to_owned());
        }
    }

    fn reply(&mut self, caller: u64, reply: Reply) {
        let Some((nth, session, ask)) = self.callers.get(&caller).cloned() else { return };
        let now = self.now;
        let is_calm =
            self.faults.lost == 0 && self.faults.holder_crashes == 0 && self.faults.node_crashes == 0;
        let holder = &mut self.holders[nth];
        if holder.session != session || !holder.is_alive {
            return;
        }
        let is_awaited = holder.under_way.as_ref().is_some_and(|(awaited, _)| *awaited == ask);
        match reply {
            Reply::Opened(_) => holder.is_open = true,
            Reply::Reserved(lent) => {
                let first = *holder.replies.entry(lent.number).or_insert(lent.extent);
                // A later service may grant again an extent that was lost before it started.
                if first != lent.extent && first.epoch.term == lent.extent.epoch.term {
                    self.problem = Some(format!("a repeated request got {:?} and {first:?}", lent.extent));
                } else if is_awaited {
                    holder.under_way = None;
                    let (node, access) = (lent.extent.place.node, lent.access.clone());
                    let stamp = stamp(&lent.extent);
                    holder.lent.insert(lent.extent, (lent, now));
                    // Its data is in the new one, and the old one goes back.
                    if let Some(old) = holder.moves.take()
                        && holder.lent.remove(&old).is_some()
                    {
                        holder.under_way = Some((Ask::Return(old), now));
                        self.seen.moved += 1;
                        self.send(nth, Ask::Offline(old));
                    }
                    self.post(Mail::Look { node, access, stamp });
                }
            }
            Reply::Renewed(_, list) if caller == holder.renewal.0 => {
                let sent_at = holder.renewal.1;
                let held: BTreeSet<Extent> = list.iter().map(|lent| lent.extent).collect();
                let before = holder.lent.len();
                holder.lent.retain(|extent, (_, since)| held.contains(extent) || *since >= sent_at);
                for lent in list.iter() {
                    if let Some((known, _)) = holder.lent.get_mut(&lent.extent) {
                        known.leaves = lent.leaves;
                    }
                }
                if is_calm && holder.lent.len() < before {
                    self.problem = Some("an extent is gone that was not returned".to_owned());
                }
                let is_reserving = matches!(holder.under_way, Some((Ask::Reserve { .. }, _)));
                let is_returning = matches!(holder.under_way, Some((Ask::Return(_), _)));
                let strays = list.iter().map(|lent| lent.extent);
                let strays: Vec<_> = strays.filter(|extent| !holder.lent.contains_key(extent)).collect();
                if !is_reserving && !is_returning {
                    for extent in strays {
                        self.send(nth, Ask::Offline(extent));
                        self.send(nth, Ask::Return(extent));
                    }
                }
            }
            Reply::Done if is_awaited => holder.under_way = None,
            Reply::Refused(Refusal::NoSession | Refusal::OldInstance) => self.begin_anew(nth),
            Reply::Refused(Refusal::Starting | Refusal::Repeated | Refusal::Superseded) => {}
            Reply::Refused(Refusal::Online) if is_awaited => {
                // Only a service that has restarted does not know that it is offline.
                if let Ask::Return(extent) = ask {
                    self.send(nth, Ask::Offline(extent));
                }
            }
            Reply::Refused(_) if is_awaited => (holder.under_way, holder.moves) = (None, None),
            _ => {}
        }
    }

    /// The compute node starts another session, and knows nothing of the last.
    fn begin_anew(&mut self, nth: usize) {
        let holder = &mut self.holders[nth];
        holder.session.instance += 1;
        holder.is_open = false;
        holder.lent.clear();
        holder.under_way = None;
        holder.moves = None;
        holder.number = 0;
        holder.replies.clear();
        holder.renew_at = Nanos::ZERO;
    }

    fn tick(&mut self) {
        self.posted += 1;
        self.mail.insert((self.now + TICK, self.posted), Mail::Tick);
        self.crash();
        self.leave();
        for nth in 0..self.holders.len() {
            if self.holders[nth].is_alive {
                self.act(nth);
            } else if self.holders[nth].back_at <= self.now {
                self.holders[nth].is_alive = true;
                self.begin_anew(nth);
            }
        }
    }

    fn crash(&mut self) {
        for nth in 0..self.nodes.len() {
            let is_down = self.nodes[nth].up.is_none();
            if is_down && self.nodes[nth].back_at <= self.now {
                let (random, plant) = (&mut self.random, self.plant);
                self.nodes[nth].start(random, plant);
            } else if !is_down && self.chance(self.faults.node_crashes) {
                self.nodes[nth].up = None;
                self.nodes[nth].back_at = self.now + Nanos(self.below(60_000_000));
            }
            if self.holders[nth].is_alive && self.chance(self.faults.holder_crashes) {
                self.holders[nth].is_alive = false;
                self.holders[nth].back_at = self.now + Nanos(self.below(120_000_000));
            }
        }
        let crashes = self.chance(self.faults.service_crashes);
        match self.service_back_at {
            Some(at) if at <= self.now => {
                self.service_back_at = None;
                self.start_service();
            }
            None if crashes => {
                self.service_back_at = Some(self.now + Nanos(self.below(20_000_000)));
                // Half of them only seem to be gone.
                if self.chance(500) {
                    self.services.clear();
                }
            }
            _ => {}
        }
        let ended = |service: &Balloon| service.end().is_some();
        self.seen.superseded += self.services.iter().filter(|(_, service)| ended(service)).count() as u64;
        let present = if self.service_back_at.is_none() { self.services.last().map(|of| of.0) } else { None };
        self.services.retain(|(id, service)| !ended(service) || Some(*id) == present);
        if self.services.last().is_some_and(|(_, service)| ended(service)) && self.service_back_at.is_none() {
            self.service_back_at = Some(self.now);
        }
    }

    /// Runs a compute node for a tick.
    fn act(&mut self, nth: usize) {
        let now = self.now;
        if !self.holders[nth].is_open {
            self.send(nth, Ask::Open);
            return;
        }
        if self.holders[nth].renew_at <= now {
            let caller = self.send(nth, Ask::Renew);
            self.holders[nth].renewal = (caller, now);
            self.holders[nth].renew_at = now + Nanos::from_millis(8);
        }
        match self.holders[nth].under_way.clone() {
            Some((ask, again_at)) if again_at <= now => {
                self.holders[nth].under_way = Some((ask.clone(), now + Nanos::from_millis(5)));
                self.send(nth, ask);
            }
            Some(_) => {}
            None => self.choose(nth),
        }
        // It writes to extents that it believes to hold.
        let count = self.holders[nth].lent.len() as u64;
        if count > 0 {
            let (at, nth_unit) = (self.below(count), self.below(UNITS));
            if let Some((extent, (lent, _))) = self.holders[nth].lent.iter().nth(at as usize) {
                let (node, access, stamp) = (extent.place.node, lent.access.clone(), stamp(extent));
                self.post(Mail::Write { node, access: access.clone(), nth: nth_unit, stamp });
                self.post(Mail::Look { node, access, stamp });
            }
        }
    }

    fn choose(&mut self, nth: usize) {
        let (dice, power) = (self.below(10), self.below(3));
        let count = self.holders[nth].lent.len() as u64;
        let at = self.below(count.max(1)) as usize;
        let holder = &mut self.holders[nth];
        if let Some((extent, _)) = holder.lent.iter().find(|(_, (lent, _))| lent.leaves)
            && dice < 7
        {
            holder.moves = Some(*extent);
            holder.number += 1;
            let ask = Ask::Reserve { number: holder.number, bytes: extent.bytes };
            holder.under_way = Some((ask, self.now));
            return;
        }
        let some = holder.lent.keys().nth(at).copied();
        let ask = match (dice, some) {
            (0..4, _) => {
                holder.number += 1;
                Ask::Reserve { number: holder.number, bytes: UNIT << power }
            }
            (4, Some(extent)) => Ask::Online(extent),
            (5..7, Some(extent)) => Ask::Offline(extent),
            (7..9, Some(extent)) => {
                // Its data is away: it uses it no more, whatever becomes of the request.
                holder.lent.remove(&extent);
                self.send(nth, Ask::Offline(extent));
                Ask::Return(extent)
            }
            _ => return,
        };
        self.holders[nth].under_way = Some((ask, self.now));
    }

    /// Sometimes an operator has a memory node go offline, or come back.
    fn leave(&mut self) {
        if self.faults.leaves == 0 || !self.chance(self.faults.leaves) {
            return;
        }
        let (node, leaves) = (self.below(self.nodes.len() as u64) as u16, self.below(2) == 0);
        let Some((id, service)) = self.services.last_mut() else { return };
        service.set_leaving(node, leaves);
        if leaves {
            self.leaving.entry((*id, node)).or_insert(service.number());
        } else {
            self.leaving.remove(&(*id, node));
        }
    }

    /// Memory nodes that leave lend nothing new.
    fn look_for_grants(&mut self) {
        for (id, service) in self.services.iter().filter(|(_, service)| service.end().is_none()) {
            let is_new = |facts: &ExtentFacts| {
                let Epoch { term, number } = facts.extent.epoch;
                let since = self.leaving.get(&(*id, facts.extent.place.node));
                matches!(facts.state, State::Granting | State::Lent)
                    && term == service.term()
                    && since.is_some_and(|since| number > *since)
            };
            if let Some(facts) = service.extents().find(is_new) {
                self.problem = Some(format!("{facts:?} is new, and its node leaves"));
            }
        }
    }

    /// All extents of a memory node go elsewhere while it leaves.
    pub fn empty(&mut self, node: u16) -> Result<(), String> {
        self.faults = Faults { leaves: 0, ..self.faults };
        for (_, service) in &mut self.services {
            for other in 0..3 {
                service.set_leaving(other, other == node);
            }
        }
        self.leaving.clear();
        for _ in 0..100 {
            self.run(Nanos::from_millis(20))?;
            let service = self.services.last().map(|(_, service)| service);
            if service.is_some_and(|service| service.extents().all(|facts| facts.extent.place.node != node)) {
                return Ok(());
            }
        }
        Err(format!("node {node} does not become empty"))
    }

    /// Looks for keys that a service does not know of, at the nodes that follow it and whose reports it has.
    fn look(&mut self) {
        for (_, service) in self.services.iter().filter(|(_, service)| service.end().is_none()) {
            for (number, node) in self.nodes.iter().enumerate() {
                let MemoryNode { up: Some((node, store)), instance, .. } = node else { continue };
                if node.term() == service.term()
                    && service.joined(number as u16) == Some(*instance)
                    && let Some(start) = unknown(service, number as u16, store)
                {
                    let problem =
                        format!("node {number}: {start:#x} is free, and its former owner has a key");
                    self.problem = Some(problem);
                }
            }
        }
    }

    /// Everything works from now on but the compute nodes, which are all dead. The error lists what has not recovered.
    pub fn rest(&mut self) -> Result<(), String> {
        self.faults = Faults::default();
        for holder in &mut self.holders {
            (holder.is_alive, holder.back_at) = (false, Nanos::MAX);
        }
        // Nodes and service come back, it waits for reports, the last lease ends, and the longest pause of retries passes.
        let bound = Nanos::from_millis(60 + 20 + 30 + 20) + LEASE + Nanos::from_millis(2 * 16 * 3 + 30);
        self.run(bound)?;
        let Some((_, service)) = self.services.last() else { return Err("there is no service".to_owned()) };
        if let Some(left) = service.extents().next() {
            return Err(format!("{left:?} has not come back"));
        }
        for (number, node) in self.nodes.iter().enumerate() {
            let facts = service.nodes()[number];
            let whole = facts.memory.map(|of| (of.free_bytes, of.longest_bytes, of.ranges));
            if whole != Some((UNITS * UNIT, UNITS * UNIT, 1)) {
                return Err(format!("{facts:?}: not everything is free"));
            }
            let Some((node, store)) = &node.up else { return Err("a node is down".to_owned()) };
            if node.counts() != [0, 0] || !store.is_clean() {
                return Err(format!("node {number} is not as it was: {node:?}, {store:?}"));
            }
        }
        Ok(())
    }

    /// Counts of events. The counts are those of the last service.
    pub fn seen(&self) -> Seen {
        let of = self.services.last().map(|(_, service)| service.counters().clone()).unwrap_or_default();
        Seen {
            lent: of.lent,
            returned: of.returned,
            fenced: of.fenced,
            found: of.found,
            leases_ended: of.leases_ended,
            late: of.late,
            ..self.seen
        }
    }
}

impl<S: Store> MemoryNode<S> {
    fn start(&mut self, random: &mut SplitMix, plant: Option<Plant>) {
        self.instance += 1;
        let mut node = Node::new(self.instance, UNITS * UNIT, 64);
        node.plant = plant;
        self.up = Some((node, S::new(UNITS, (random.next() % 3) as u32, self.instance)));
    }
}
