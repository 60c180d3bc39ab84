//! A run: the agenda of events, and the outcome.

use super::client::{Client, Ends, History, Object, Why, objects, word};
use super::faulty::{Break, Faults};
use super::hostile::{HOSTILE, Hostile};
use super::plant::{Plant, Planted};
use super::rack::{BYTES, COMPUTES, FaultsRack, KEY, MEMORIES, NODES, RATE_BPS};
use super::writes::Writes;
use crate::frames::{Frame, Frames};
use crate::kernel::{Agenda, Clock, Hub, Uplink};
use crate::memory::host::EdmHost;
use crate::random::Random;
use p4rack_fabric::edm::host::{compute, memory};
use p4rack_history::{Entry, Order, Outcome, Word};
use p4rack_wire::Nanos;
use std::collections::BTreeMap;

const CLOCK: Clock = Clock::NANOSECONDS;
/// Maximum operations of a client.
const OPERATIONS_MAX: u64 = 160;
/// Duration of the faults.
pub(super) const FAULTS_NS: u64 = 400_000;

/// Outcome of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaultsOutcome {
    /// Operations of all clients.
    pub operations: u64,
    /// Of these, operations with unknown outcome.
    pub unknown: u64,
    /// Counts of faults and other events, by name.
    pub counters: BTreeMap<&'static str, u64>,
    /// Violated properties.
    pub problems: Vec<String>,
}

pub(super) enum Event {
    /// A client may start an operation.
    Issue(u16),
    /// A client starts this operation.
    Ask(u16, (u16, u64, compute::Request), Why),
    /// A node may have a frame to send, or a timeout.
    Poll(u16),
    AtSwitch(usize, u16, Frame),
    /// The hostile host sends a frame.
    Hostile,
    /// A switch may have a frame to send.
    Switch(usize),
    AtHost(u16, Frame),
    Break(Break),
    /// The faults end. After recovery, every node probes every region.
    Heal,
    Probe(Probe),
}

/// Progress of the probes after recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Probe {
    /// Waits for the operations before, then reads from all nodes, which reveals restarts.
    Ends,
    /// Waits for these reads, and for unused lanes to expire.
    Greeted,
    /// Issues the probes.
    Begins,
    /// Waits for the probes.
    Tried,
    /// Issues reads that check the written values.
    Written,
}

/// A host: its machines for both roles, which may fall silent, die and start again.
pub(super) struct FaultyHost {
    pub machines: EdmHost,
    pub uplink: Uplink,
    pub incarnation: u64,
    /// Number of restarts.
    pub restarts: u64,
    /// Number of the first session of its memory.
    pub first_session: u16,
    pub is_silent: bool,
    pub is_dead: bool,
}

impl FaultyHost {
    /// Contents of its memory.
    pub fn bytes(&self) -> &[u8] {
        self.machines.memory.as_ref().map_or(&[], |memory| &memory.regions()[0].bytes)
    }
}

/// Counters of machines before their restarts.
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

/// A run.
pub(super) struct FaultsWorld<'a> {
    pub rack: &'a FaultsRack,
    pub planted: Planted,
    pub faults: Faults,
    pub agenda: Agenda<Event>,
    pub nodes: Vec<FaultyHost>,
    pub clients: Vec<Client>,
    /// `None`: the switch is dead.
    pub switches: Vec<Option<Hub>>,
    pub frames: Frames,
    pub payload: Vec<u8>,
    pub history: History,
    pub writes: Writes,
    pub hostile: Option<Hostile>,
    /// Random numbers for restarted nodes.
    pub starts: Random,
    pub gone: Gone,
    /// Writes held back until the next one, if that bug is planted.
    pub held: BTreeMap<u16, ((u16, u64, compute::Request), Why)>,
    /// Whether clients start no more operations.
    pub is_over: bool,
    pub ends: Ends,
    pub outcome: FaultsOutcome,
}

impl FaultsRack {
    /// Runs a seed, with a planted bug if one is given. The same seed gives the same outcome.
    pub fn run(&self, seed: u64, plant: Option<Plant>) -> FaultsOutcome {
        match FaultsWorld::new(self, seed, plant) {
            Ok(world) => world.run(),
            Err(problem) => FaultsOutcome { problems: vec![problem], ..FaultsOutcome::default() },
        }
    }
}

impl<'a> FaultsWorld<'a> {
    fn new(rack: &'a FaultsRack, seed: u64, plant: Option<Plant>) -> Result<FaultsWorld<'a>, String> {
        let switches = 1 + usize::from(seed.is_multiple_of(3));
        let mut starts = Random::stream(seed, 3);
        let mut node = |_| {
            let (incarnation, first_session) = (starts.next(), starts.next() as u16);
            Ok(FaultyHost {
                machines: EdmHost {
                    compute: rack.compute(incarnation),
                    memory: Some(rack.memory(vec![0; BYTES], first_session)?),
                },
                uplink: Uplink::new(RATE_BPS, CLOCK),
                incarnation,
                restarts: 0,
                first_session,
                is_silent: false,
                is_dead: false,
            })
        };
        let nodes = (0..NODES).map(&mut node).collect::<Result<_, String>>()?;
        Ok(FaultsWorld {
            rack,
            planted: Planted::new(plant),
            faults: Faults::new(seed, FAULTS_NS, switches),
            agenda: Agenda::default(),
            nodes,
            clients: (0..COMPUTES).map(|own| Client::new(seed, own)).collect(),
            switches: (0..switches).map(|_| hub(rack).map(Some)).collect::<Result<_, _>>()?,
            frames: Frames::default(),
            payload: Vec::new(),
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
        // An operation may last for all its retries, after the operations before it.
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
        // The final contents.
        for nth in MEMORIES {
            for address in objects() {
                let object = Object { node: nth, address };
                if self.history.knows(&object) {
                    let act = Word::Read(word(&self.nodes[usize::from(nth)].bytes()[address as usize..]));
                    let entry = Entry { asked: now_ns + 1, outcome: Outcome::Known(now_ns + 2), act };
                    self.history.add(object, entry);
                }
            }
        }
        for nth in MEMORIES {
            let memory = self.nodes[usize::from(nth)].machines.memory.as_ref();
            memory.into_iter().for_each(|memory| self.gone.add_memory(memory.counters()));
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
            self.nodes.iter().map(|node| of(node.machines.compute.counters())).sum()
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
            Event::Poll(nth) if self.nodes[usize::from(nth)].uplink.is_due(now_ns) => {
                self.poll(nth, now_ns);
            }
            Event::Poll(_) => {}
            Event::AtSwitch(switch, from, frame) => {
                match &mut self.switches[switch] {
                    Some(hub) => hub.take(from + 1, &frame, now_ns),
                    None => self.count("lost_with_switch", 1),
                }
                self.frames.release(frame);
                self.transmit(switch, now_ns);
            }
            Event::Hostile => self.be_hostile(now_ns),
            Event::Switch(switch) => {
                if self.switches[switch].as_mut().is_some_and(|hub| hub.is_due(now_ns)) {
                    self.transmit(switch, now_ns);
                }
            }
            Event::AtHost(nth, frame) => {
                self.at_host(nth, &frame, now_ns);
                self.frames.release(frame);
            }
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
        let machine = &mut self.nodes[usize::from(own)].machines.compute;
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

    /// The hostile host sends a frame. If passes take time, it stops with the faults: `calendar` refuses demands that arrive while
    /// others are between their passes.
    fn be_hostile(&mut self, now_ns: u64) {
        let faults_are_over = now_ns >= FAULTS_NS;
        let stops = self.is_over || faults_are_over && self.rack.pass_delay > Nanos::ZERO;
        let Some(hostile) = self.hostile.as_mut().filter(|_| !stops) else { return };
        let (frame, pause_ns) = (hostile.frame(self.rack.edm.ether_type), hostile.pause_ns());
        let tail_ns = now_ns + CLOCK.on_wire(frame.len(), RATE_BPS);
        self.send_to_switches(HOSTILE, Box::new(frame.into()), tail_ns);
        self.count("hostile_frames", 1);
        self.agenda.add(tail_ns + pause_ns, Event::Hostile);
    }

    pub(super) fn completed(&mut self, nth: u16, now_ns: u64) {
        while let Some((token, outcome)) = self.nodes[usize::from(nth)].machines.compute.poll_completion() {
            let client = &mut self.clients[usize::from(nth)];
            if let Err(problem) = client.ended(token, outcome, now_ns, &mut self.history, &mut self.ends) {
                self.outcome.problems.push(problem);
            }
        }
    }
}

/// A switch of the rack. Errors: its program can't be generated.
pub(super) fn hub(rack: &FaultsRack) -> Result<Hub, String> {
    Ok(Hub::new(rack.switch()?, CLOCK))
}
