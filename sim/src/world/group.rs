//! Some hosts, which one worker looks after at a time.

use super::Node;
use super::mail::{Outbox, ToHost, ToSwitch, Told, fetch};
use super::plan::Plan;
use crate::agenda::{HostEvent, Origin};
use crate::frames::Frames;
use crate::latency::{add_up, histogram};
use crate::message::{FlowId, Head};
use crate::record::Recorder;
use crate::schedule::Dues;
use crate::scheme::Seen;
use crate::traffic::TrafficStats;
use hdrhistogram::Histogram;
use p4rack_wire::Nanos;
use std::sync::Arc;

/// Hosts that follow each other.
#[derive(Debug)]
pub(crate) struct Group {
    pub plan: Arc<Plan>,
    /// The first one's number in the rack.
    pub first: usize,
    pub nodes: Vec<Node>,
    pub now: Nanos,
    /// Up to when all its hosts have run, and in which window of time.
    until: Nanos,
    pub window: u64,
    pub measuring: bool,
    /// When each host has something to do, or somewhat earlier.
    pub dues: Dues,
    /// What is to be handed to the switch, and what was handed over from there.
    pub outbox: Outbox<ToSwitch>,
    pub inbox: Vec<ToHost>,
    pub frames: Frames,
    pub counts: Counts,
    pub recorder: Option<Box<Recorder>>,
    /// With `rounds`: messages of rounds that are whole now.
    pub rounds: Vec<RoundPart>,
    /// With a planted fault: what was held back, until it is given.
    pub(super) held: Option<Option<Head>>,
    /// Frames of transports' own.
    pub(super) told: u64,
}

/// What hosts count together. Sums: who counted what does not matter.
#[derive(Debug)]
pub(crate) struct Counts {
    /// By traffic.
    pub traffic: Vec<TrafficStats>,
    pub seen: Seen,
    /// Where hosts may be hostile: latency of messages that no attack concerns.
    pub others: Option<Histogram<u64>>,
    /// Messages made; and those that are whole or known to be lost.
    pub messages_made: u64,
    pub messages_ended: u64,
    pub frames_given: u64,
    pub frames_delivered: u64,
    pub frames_to_dead: u64,
    pub out_of_order: u64,
    /// Frames that were handed over when their time had passed.
    pub late_frames: u64,
}

impl Counts {
    pub fn new(plan: &Plan) -> Counts {
        Counts {
            traffic: plan.traffic.iter().map(|traffic| traffic.stats()).collect(),
            seen: Seen::new(),
            others: plan.watched.as_ref().map(|_| histogram()),
            messages_made: 0,
            messages_ended: 0,
            frames_given: 0,
            frames_delivered: 0,
            frames_to_dead: 0,
            out_of_order: 0,
            late_frames: 0,
        }
    }

    /// Adds what was counted elsewhere.
    pub fn add(&mut self, other: &Counts) {
        self.traffic.iter_mut().zip(&other.traffic).for_each(|(own, other)| own.add(other));
        self.seen.add(&other.seen);
        if let (Some(own), Some(other)) = (&mut self.others, &other.others) {
            add_up(own, other);
        }
        self.messages_made += other.messages_made;
        self.messages_ended += other.messages_ended;
        self.frames_given += other.frames_given;
        self.frames_delivered += other.frames_delivered;
        self.frames_to_dead += other.frames_to_dead;
        self.out_of_order += other.out_of_order;
        self.late_frames += other.late_frames;
    }
}

/// A message of a round is whole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RoundPart {
    pub traffic: usize,
    /// When its thread has it.
    pub done: Nanos,
    pub size: u32,
    pub measured: bool,
}

impl Group {
    pub fn new(plan: Arc<Plan>, first: usize, nodes: Vec<Node>) -> Group {
        let mut group = Group {
            first,
            now: Nanos::ZERO,
            until: Nanos::ZERO,
            window: 0,
            measuring: false,
            dues: Dues::new(nodes.len()),
            nodes,
            outbox: Outbox::new(),
            inbox: Vec::new(),
            frames: Frames::default(),
            counts: Counts::new(&plan),
            recorder: None,
            rounds: Vec::new(),
            held: None,
            told: 0,
            plan,
        };
        for at in 0..group.nodes.len() {
            let one = &mut group.nodes[at].host;
            if one.hostile.is_some() {
                one.machine_due = Nanos::ZERO;
                group.dues.hasten(at, Nanos::ZERO);
            }
            if one.dies != Nanos::MAX {
                one.agenda.push(one.dies, HostEvent::Die);
                group.dues.hasten(at, one.dies);
            }
        }
        group
    }

    /// Fetches what another processor has handed over.
    pub fn fetch_mail(&self) {
        fetch(self.inbox.iter().filter_map(|mail| match mail {
            ToHost::Frame(_, frame, _) => Some(&frame.frame),
            _ => None,
        }));
    }

    /// Takes what was handed over.
    pub fn take_mail(&mut self) {
        let mut inbox = std::mem::take(&mut self.inbox);
        for mail in inbox.drain(..) {
            match mail {
                ToHost::Frame(host, frame, joins) => {
                    self.counts.late_frames += u64::from(frame.due < self.until);
                    let at = usize::from(host) - self.first;
                    let down = &mut self.nodes[at].down;
                    down.put(frame, joins);
                    self.dues.hasten(at, down.due());
                }
                ToHost::Tell(flow, told) => self.tell_receiver(flow, told),
                ToHost::Event { host, at, origin, nth, event } => {
                    let place = usize::from(host) - self.first;
                    self.nodes[place].host.agenda.push_foreign(at, origin, nth, event);
                    self.dues.hasten(place, at);
                }
            }
        }
        self.inbox = inbox;
    }

    /// The rack's `nth` order: what a host has to do then.
    pub fn order(&mut self, host: u16, at: Nanos, nth: u64, event: HostEvent) {
        let place = usize::from(host) - self.first;
        self.nodes[place].host.agenda.push_foreign(at, Origin::Rack, nth, event);
        self.dues.hasten(place, at);
    }

    fn tell_receiver(&mut self, flow: FlowId, told: Told) {
        let ends = &self.plan.flows[flow as usize];
        let inflow = &mut self.nodes[usize::from(ends.dst) - self.first].inflows[ends.into as usize];
        match told {
            Told::Message(id, message) => inflow.open.push_back((id, message)),
            Told::Begins(id, now) => {
                if let Some(message) = inflow.message(id) {
                    message.created = now;
                }
            }
        }
    }

    /// All that happens at the hosts before `until`. None of them can reach another meanwhile.
    pub fn run(&mut self, until: Nanos) {
        self.until = until.max(self.until);
        if self.dues.first() >= until {
            return;
        }
        let mut first = Nanos::MAX;
        for at in 0..self.nodes.len() {
            let mut due = self.dues.of(at);
            if due < until {
                due = self.run_host(at, until);
                self.dues.set(at, due);
            }
            first = first.min(due);
        }
        self.dues.begin_with(first);
    }

    /// All that happens at a host before `until`; when it goes on.
    fn run_host(&mut self, at: usize, until: Nanos) -> Nanos {
        loop {
            let Node { host: one, down, .. } = &mut self.nodes[at];
            let (agenda, link, machine) = (one.agenda.due(), down.due(), one.machine_due);
            let due = agenda.min(link).min(machine);
            if due >= until {
                return due;
            }
            self.now = due.max(one.now);
            one.now = self.now;
            if agenda == due {
                self.happen_at(at);
            } else if link == due {
                self.enter_host(at);
            } else {
                self.wake(at);
            }
        }
    }

    /// Whether what happens now counts: the warm-up is over, and sources have not ended.
    #[inline]
    pub(super) fn measures(&self) -> bool {
        self.measuring && self.now < self.plan.sources_end
    }
}
