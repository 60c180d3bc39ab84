//! A run: what happens, one event after the other.

use super::client::{Client, Ends, History, Object, Why, objects, word};
use super::faulty::{Break, Fate, Faults};
use super::hostile::{HOSTILE, Hostile};
use super::plant::{Effect, Plant, Planted};
use super::rack::{BYTES, COMPUTES, FaultsRack, KEY, MEMORIES, NODES, RATE_BPS};
use super::writes::Writes;
use crate::events::Agenda;
use crate::message::{host_of, mac_of};
use crate::random::Random;
use crate::switch::{Model, P4};
use p4rack_fabric::edm::host::{compute, memory};
use p4rack_history::{Entry, Order, Outcome, Word};
use p4rack_wire::edm::{self, Kind};
use p4rack_wire::ethernet::overhead;
use p4rack_wire::{MacAddr, Nanos};
use std::collections::BTreeMap;

/// From one end of a link to the other.
const LINK_NS: u64 = 300;
/// Operations of a client at most.
const OPERATIONS_MAX: u64 = 160;
/// How long faults go on.
const FAULTS_NS: u64 = 400_000;
/// When a write comes a second time, if that is planted.
const AGAIN_NS: u64 = 30_000;

/// What came of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaultsOutcome {
    /// Operations that clients asked for.
    pub operations: u64,
    /// Those whose outcome nobody knows.
    pub unknown: u64,
    /// What happened, by name.
    pub counters: BTreeMap<&'static str, u64>,
    /// What must not be.
    pub problems: Vec<String>,
}

pub(super) enum Event {
    /// A client may ask for something.
    Issue(u16),
    /// A client asks for this.
    Ask(u16, (u16, u64, compute::Request), Why),
    /// A node may have something to send, or something that has waited too long.
    Poll(u16),
    AtSwitch(usize, u16, Vec<u8>),
    /// The hostile host sends something.
    Hostile,
    /// A switch may have something to send.
    Switch(usize),
    AtHost(u16, Vec<u8>),
    Break(Break),
    /// The faults are over; later, everybody tries all memory.
    Heal,
    Probe(Probe),
}

/// How far everybody is in trying all memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Probe {
    /// What was asked for before has to end first.
    Ends,
    /// So has what they ask for to see whether it is still the same memory.
    Greeted,
    /// Now they try.
    Begins,
    /// What they tried has to end.
    Tried,
    /// What they wrote has to be there.
    Written,
}

pub(super) struct Node {
    pub compute: compute::Node,
    pub incarnation: u64,
    /// How often it has started again.
    pub restarts: u64,
    pub memory: memory::Node,
    /// Number of the first session of its memory.
    pub first_session: u16,
    pub free_ns: u64,
    pub poll_ns: u64,
    pub is_silent: bool,
    pub is_dead: bool,
}

/// Counters of machines that are no more.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Gone {
    pub modifies: u64,
    pub copies: u64,
    pub stale: u64,
    pub refused: u64,
    pub again: u64,
    pub sessions_lost: u64,
}

impl Gone {
    pub fn add_memory(&mut self, counters: &memory::Counters) {
        self.modifies += counters.modifies;
        self.copies += counters.copies;
        self.stale += counters.stale;
        self.refused += counters.refused.iter().sum::<u64>();
    }
}

pub(super) struct World<'a> {
    pub rack: &'a FaultsRack,
    pub planted: Planted,
    pub faults: Faults,
    pub agenda: Agenda<Event>,
    pub nodes: Vec<Node>,
    pub clients: Vec<Client>,
    /// `None`: it is dead.
    pub switches: Vec<Option<P4>>,
    pub switch_ns: Vec<u64>,
    pub history: History,
    pub writes: Writes,
    pub hostile: Option<Hostile>,
    /// Numbers of those that start again.
    pub starts: Random,
    pub gone: Gone,
    /// Writes that wait for the next one, if that is planted.
    pub held: BTreeMap<u16, ((u16, u64, compute::Request), Why)>,
    /// Nothing more will be asked for.
    pub is_over: bool,
    pub ends: Ends,
    pub outcome: FaultsOutcome,
}

impl FaultsRack {
    /// Runs a seed, with a bug if one is to be planted. The same seed gives the same outcome.
    pub fn run(&self, seed: u64, plant: Option<Plant>) -> FaultsOutcome {
        match World::new(self, seed, plant) {
            Ok(world) => world.run(),
            Err(problem) => FaultsOutcome { problems: vec![problem], ..FaultsOutcome::default() },
        }
    }
}

impl<'a> World<'a> {
    fn new(rack: &'a FaultsRack, seed: u64, plant: Option<Plant>) -> Result<World<'a>, String> {
        let switches = 1 + usize::from(seed.is_multiple_of(3));
        let mut starts = Random::stream(seed, 3);
        let mut node = |_| {
            let (incarnation, first_session) = (starts.next(), starts.next() as u16);
            Ok(Node {
                compute: rack.compute(incarnation),
                incarnation,
                restarts: 0,
                memory: rack.memory(vec![0; BYTES], first_session)?,
                first_session,
                free_ns: 0,
                poll_ns: u64::MAX,
                is_silent: false,
                is_dead: false,
            })
        };
        let nodes = (0..NODES).map(&mut node).collect::<Result<_, String>>()?;
        Ok(World {
            rack,
            planted: Planted::new(plant),
            faults: Faults::new(seed, FAULTS_NS, switches),
            agenda: Agenda::default(),
            nodes,
            clients: (0..COMPUTES).map(|own| Client::new(seed, own)).collect(),
            switches: (0..switches).map(|_| rack.switch().map(Some)).collect::<Result<_, _>>()?,
            switch_ns: vec![u64::MAX; switches],
            history: History::default(),
            writes: Writes::default(),
            hostile: Hostile::new(seed),
            starts,
            gone: Gone::default(),
            held: BTreeMap::new(),
            is_over: false,
            ends: Ends::default(),
            outcome: FaultsOutcome::default(),
        })
    }

    pub(super) fn count(&mut self, name: &'static str, more: u64) {
        *self.outcome.counters.entry(name).or_default() += more;
    }

    fn run(mut self) -> FaultsOutcome {
        for own in 0..COMPUTES {
            let pause_ns = self.clients[usize::from(own)].pause_ns();
            self.agenda.add(pause_ns, Event::Issue(own));
        }
        for (at_ns, what) in self.faults.breaks.clone() {
            self.agenda.add(at_ns, Event::Break(what));
        }
        self.agenda.add(FAULTS_NS, Event::Heal);
        if self.hostile.is_some() {
            self.agenda.add(0, Event::Hostile);
        }
        // An operation may wait for as many timeouts as it has retries, behind those before it.
        let limit_ns = FAULTS_NS + self.rack.timeout.0 * OPERATIONS_MAX * 8;
        let mut now_ns = 0;
        while let Some((at_ns, event)) = self.agenda.next() {
            if at_ns > limit_ns {
                self.outcome.problems.push("it never comes to an end".into());
                break;
            }
            now_ns = at_ns;
            self.handle(event, now_ns);
        }
        self.finish(now_ns)
    }

    fn finish(mut self, now_ns: u64) -> FaultsOutcome {
        for (own, client) in self.clients.iter().enumerate() {
            if client.open() > 0 || client.left > 0 {
                let what = format!(
                    "node {own}: {} operations under way, {} not asked for",
                    client.open(),
                    client.left
                );
                self.outcome.problems.push(what);
            }
        }
        for switch in 0..self.switches.len() {
            self.account(switch, now_ns);
        }
        // What is there in the end.
        for nth in MEMORIES {
            for address in objects() {
                let object = Object { node: nth, address };
                if self.history.knows(&object) {
                    let memory = &self.nodes[usize::from(nth)].memory.regions()[0].bytes;
                    let act = Word::Read(word(&memory[address as usize..]));
                    let entry = Entry { asked: now_ns + 1, outcome: Outcome::Known(now_ns + 2), act };
                    self.history.add(object, entry);
                }
            }
        }
        for nth in MEMORIES {
            self.gone.add_memory(self.nodes[usize::from(nth)].memory.counters());
        }
        let done = self.gone.modifies;
        let Ends { answered, sent, unknown, refused, modified } = self.ends;
        if modified.missing(done) + modified.invented(done) > 0 {
            let what = format!("{done} atomic operations were done, of {modified:?}");
            self.outcome.problems.push(what);
        }
        self.outcome.problems.extend(self.history.problems(&0, Order::Any));
        self.outcome.operations = answered + sent + unknown + refused;
        self.outcome.unknown = unknown;
        for (name, more) in [("answered", answered), ("writes_sent", sent), ("refused", refused)] {
            self.count(name, more);
        }
        let sum = |of: fn(&compute::Counters) -> u64| -> u64 {
            self.nodes.iter().map(|node| of(node.compute.counters())).sum()
        };
        let again = self.gone.again + sum(|counters| counters.again);
        let lost = self.gone.sessions_lost + sum(|counters| counters.sessions_lost);
        let Gone { copies, stale, refused, .. } = self.gone;
        for (name, more) in [
            ("copies_dropped", copies),
            ("stale", stale),
            ("refused_to_hostile", refused),
            ("asked_again", again),
            ("sessions_lost", lost),
        ] {
            self.count(name, more);
        }
        self.outcome
    }

    fn handle(&mut self, event: Event, now_ns: u64) {
        match event {
            Event::Issue(own) => self.issue(own, now_ns),
            Event::Ask(own, asked, why) => self.ask(own, asked, why, now_ns),
            Event::Poll(nth) if self.nodes[usize::from(nth)].poll_ns == now_ns => self.poll(nth, now_ns),
            Event::Poll(_) => {}
            Event::AtSwitch(switch, from, frame) => {
                let Some(model) = &mut self.switches[switch] else {
                    return self.count("lost_with_switch", 1);
                };
                model.take(from + 1, &frame, Nanos(now_ns));
                self.transmit(switch, now_ns);
            }
            Event::Hostile => self.be_hostile(now_ns),
            Event::Switch(switch) if self.switch_ns[switch] == now_ns => {
                self.switch_ns[switch] = u64::MAX;
                self.transmit(switch, now_ns);
            }
            Event::Switch(_) => {}
            Event::AtHost(nth, frame) => self.at_host(nth, &frame, now_ns),
            Event::Break(what) => self.break_down(what, now_ns),
            Event::Heal => {
                for node in &mut self.nodes {
                    node.is_silent = node.is_dead;
                }
                (0..NODES).for_each(|nth| self.plan(nth, now_ns));
                self.agenda.add(now_ns, Event::Probe(Probe::Ends));
            }
            Event::Probe(stage) => self.probe(stage, now_ns),
        }
    }

    fn issue(&mut self, own: u16, now_ns: u64) {
        let client = &mut self.clients[usize::from(own)];
        let pause_ns = client.pause_ns();
        if client.left > 0 && client.open() < client.open_max {
            client.left -= 1;
            let asked = client.next();
            self.ask(own, asked, Why::Work, now_ns);
        }
        if self.clients[usize::from(own)].left > 0 {
            self.agenda.add(now_ns + 1 + pause_ns, Event::Issue(own));
        }
    }

    pub(super) fn ask(&mut self, own: u16, asked: (u16, u64, compute::Request), why: Why, now_ns: u64) {
        if self.planted.swaps() && matches!(asked.2, compute::Request::Write(_)) {
            match self.held.remove(&own) {
                None => _ = self.held.insert(own, (asked, why)),
                Some((before, why_before)) => {
                    self.ask_now(own, asked, why, now_ns);
                    self.ask_now(own, before, why_before, now_ns);
                }
            }
            return;
        }
        self.ask_now(own, asked, why, now_ns);
    }

    fn ask_now(&mut self, own: u16, asked: (u16, u64, compute::Request), why: Why, now_ns: u64) {
        let (node, address, request) = asked.clone();
        let machine = &mut self.nodes[usize::from(own)].compute;
        match machine.handle_request(node, KEY, address, request, Nanos(now_ns)) {
            Ok(token) => {
                self.clients[usize::from(own)].asked(token, asked, why, now_ns);
            }
            Err(refused) => {
                self.outcome.problems.push(format!("node {own} refuses a request: {refused:?}"));
            }
        }
        self.plan(own, now_ns);
    }

    /// Asks a node when it has something to send or to give up.
    pub(super) fn plan(&mut self, nth: u16, now_ns: u64) {
        let node = &mut self.nodes[usize::from(nth)];
        let messages = [node.compute.next_message(), node.memory.next_message()];
        let message = messages.into_iter().flatten().min().map(|at| at.0.max(node.free_ns));
        let timer = node.compute.next_timeout().map(|at| at.0);
        let Some(at_ns) = [message, timer].into_iter().flatten().min() else { return };
        let at_ns = at_ns.max(now_ns);
        if at_ns < node.poll_ns || node.poll_ns < now_ns {
            node.poll_ns = at_ns;
            self.agenda.add(at_ns, Event::Poll(nth));
        }
    }

    fn poll(&mut self, nth: u16, now_ns: u64) {
        let (now, mut payload) = (Nanos(now_ns), Vec::new());
        let node = &mut self.nodes[usize::from(nth)];
        node.poll_ns = u64::MAX;
        node.compute.handle_timeout(now);
        let to = if node.free_ns > now_ns {
            None
        } else {
            node.memory
                .poll_message(now, &mut payload)
                .or_else(|| node.compute.poll_message(now, &mut payload))
        };
        if let Some(to) = to {
            let restarts = node.restarts;
            if let Err(problem) = self.writes.left((nth, restarts, to), &payload, now_ns, &mut self.history) {
                self.outcome.problems.push(problem);
            }
            if let Some(hostile) = &mut self.hostile {
                hostile.hear(nth, to, &payload);
            }
            let mut frame = Vec::new();
            edm::emit_frame(
                mac_of(to.into()),
                mac_of(nth.into()),
                self.rack.edm.ether_type,
                &payload,
                &mut frame,
            );
            let tail_ns = now_ns + overhead::wire_bytes(frame.len() as u64) * 8_000_000_000 / RATE_BPS;
            self.nodes[usize::from(nth)].free_ns = tail_ns;
            for switch in 0..self.switches.len() {
                self.cross(frame.clone(), tail_ns, |frame| Event::AtSwitch(switch, nth, frame), nth);
            }
        }
        self.completed(nth, now_ns);
        self.plan(nth, now_ns);
    }

    /// Carries a frame over a link of this node.
    fn cross(&mut self, frame: Vec<u8>, now_ns: u64, arrival: impl Fn(Vec<u8>) -> Event, node: u16) {
        self.count("crossings", 1);
        if self.nodes[usize::from(node)].is_silent {
            return self.count("lost_in_silence", 1);
        }
        let kind = self.kind_of(&frame);
        if self.planted.loses(kind, now_ns >= FAULTS_NS) {
            return;
        }
        match self.faults.fate(kind, now_ns) {
            Fate::Lost => self.count("lost", 1),
            // A receiver sees that by the frame's checksum.
            Fate::Damaged => self.count("damaged", 1),
            Fate::Arrives { late_ns } => {
                self.count("late", u64::from(late_ns > 0));
                self.agenda.add(now_ns + LINK_NS + late_ns, arrival(frame));
            }
            Fate::Twice { late_ns } => {
                self.count("twice", 1);
                self.agenda.add(now_ns + LINK_NS, arrival(frame.clone()));
                self.agenda.add(now_ns + LINK_NS + late_ns, arrival(frame));
            }
        }
    }

    fn kind_of(&self, frame: &[u8]) -> Option<Kind> {
        let (_, payload) = edm::parse_frame(frame, self.rack.edm.ether_type)?;
        Kind::of(payload[0]).ok()
    }

    fn transmit(&mut self, switch: usize, now_ns: u64) {
        let mut frame = Vec::new();
        loop {
            let Some(model) = &mut self.switches[switch] else { return };
            let Some(port) = model.poll_transmit(Nanos(now_ns), &mut frame) else { break };
            let (to, frame) = (port - 1, std::mem::take(&mut frame));
            let tail_ns = now_ns + overhead::wire_bytes(frame.len() as u64) * 8_000_000_000 / RATE_BPS;
            self.cross(frame, tail_ns, |frame| Event::AtHost(to, frame), to);
        }
        let due = self.switches[switch].as_ref().map_or(Nanos::MAX, Model::due);
        if due < Nanos::MAX {
            let at_ns = due.0.max(now_ns);
            if at_ns < self.switch_ns[switch] || self.switch_ns[switch] < now_ns {
                self.switch_ns[switch] = at_ns;
                self.agenda.add(at_ns, Event::Switch(switch));
            }
        }
    }

    fn at_host(&mut self, nth: u16, frame: &[u8], now_ns: u64) {
        let parsed = edm::parse_frame(frame, self.rack.edm.ether_type);
        let from = parsed.as_ref().and_then(|(ethernet, _)| node_of(ethernet.src));
        let (Some((_, payload)), Some(from)) = (parsed, from) else {
            return self.outcome.problems.push(format!("node {nth} gets a frame that is not EDM's"));
        };
        if self.nodes[usize::from(nth)].is_silent {
            return self.count("lost_in_silence", 1);
        }
        let mut payload = payload.to_vec();
        let kind = Kind::of(payload[0]).ok();
        let (restarts, first) =
            (self.nodes[usize::from(from)].restarts, self.nodes[usize::from(nth)].first_session);
        if from != HOSTILE {
            self.writes.arrived((nth, first, restarts), &payload, now_ns, &mut self.history);
        }
        let (now, node, mut behind) = (Nanos(now_ns), &mut self.nodes[usize::from(nth)], None);
        match self.planted.arrives((from, nth), kind, &mut payload) {
            Effect::None => {}
            Effect::Lost => return,
            Effect::Before(other) => node.memory.handle_message(from, &other, now),
            Effect::After(other) => behind = Some(other),
            Effect::Later(other) => {
                let (to, from) = (mac_of(nth.into()), mac_of(from.into()));
                let mut frame = Vec::new();
                edm::emit_frame(to, from, self.rack.edm.ether_type, &other, &mut frame);
                self.agenda.add(now_ns + AGAIN_NS, Event::AtHost(nth, frame));
            }
        }
        let is_of_answer = || edm::Control::parse(&payload).is_ok_and(|grant| grant.answer != 0);
        match kind {
            Some(Kind::Grant) if !is_of_answer() => node.compute.handle_message(from, &payload, now),
            Some(Kind::Rres) => node.compute.handle_message(from, &payload, now),
            _ => node.memory.handle_message(from, &payload, now),
        }
        behind.into_iter().for_each(|other| node.memory.handle_message(from, &other, now));
        self.completed(nth, now_ns);
        self.plan(nth, now_ns);
    }

    /// The hostile host sends a frame. Where passes take time it stops with the faults: `calendar` refuses demands that come while
    /// others are between their passes.
    fn be_hostile(&mut self, now_ns: u64) {
        let faults_are_over = now_ns >= FAULTS_NS;
        let stops = self.is_over || faults_are_over && self.rack.pass_delay > Nanos::ZERO;
        let Some(hostile) = self.hostile.as_mut().filter(|_| !stops) else { return };
        let (frame, pause_ns) = (hostile.frame(self.rack.edm.ether_type), hostile.pause_ns());
        let tail_ns = now_ns + overhead::wire_bytes(frame.len() as u64) * 8_000_000_000 / RATE_BPS;
        for switch in 0..self.switches.len() {
            self.cross(frame.clone(), tail_ns, |frame| Event::AtSwitch(switch, HOSTILE, frame), HOSTILE);
        }
        self.count("hostile_frames", 1);
        self.agenda.add(tail_ns + pause_ns, Event::Hostile);
    }

    pub(super) fn completed(&mut self, nth: u16, now_ns: u64) {
        while let Some((token, outcome)) = self.nodes[usize::from(nth)].compute.poll_completion() {
            let client = &mut self.clients[usize::from(nth)];
            if let Err(problem) = client.ended(token, outcome, now_ns, &mut self.history, &mut self.ends) {
                self.outcome.problems.push(problem);
            }
        }
    }
}

/// The node with this address.
fn node_of(mac: MacAddr) -> Option<u16> {
    u16::try_from(host_of(&mac.0)?).ok()
}
