//! A group of hosts, simulated by one worker at a time.

use super::HostEnd;
use super::mail::{Inlets, Notice, Outbox, ToHost, ToSwitch, fetch};
use super::plan::Plan;
use super::switch::Tor;
use crate::agenda::{HostEvent, Origin};
use crate::frames::Frames;
use crate::message::{FlowId, Head};
use crate::record::Recorder;
use crate::schedule::{Dues, Hasten as _};
use crate::scheme::HostCounts;
use crate::traffic::TrafficStats;
use p4rack_wire::{Histogram, Nanos};
use std::sync::Arc;

/// Hosts with consecutive numbers.
#[derive(Debug)]
pub(crate) struct Group {
    pub plan: Arc<Plan>,
    /// Number of the first one in the rack.
    pub first: usize,
    pub nodes: Vec<HostEnd>,
    pub now: Nanos,
    /// The last time window in which its hosts have run.
    pub window: u64,
    pub measuring: bool,
    /// Links from the switch; their dues say when each host has something to do, or somewhat earlier.
    pub inlets: Inlets<Dues>,
    /// Mail for the switch, and mail from it.
    pub outbox: Outbox<ToSwitch>,
    pub inbox: Vec<ToHost>,
    pub frames: Frames,
    pub counts: Counts,
    pub recorder: Option<Box<Recorder>>,
    /// With `rounds`: messages of rounds that are now complete.
    pub rounds: Vec<RoundPart>,
    /// With a planted fault: the frame held back, until it is delivered.
    pub(super) held: Option<Option<Head>>,
    /// Frames that transports sent on their own account, such as acknowledgements.
    pub(super) transport_frames: u64,
}

/// Counters shared by the hosts of a group. Only sums, so it does not matter which host counted.
#[derive(Debug)]
pub(crate) struct Counts {
    /// Per traffic.
    pub traffic: Vec<TrafficStats>,
    pub scheme: HostCounts,
    /// If hosts may be hostile: latency of the messages that are not part of an attack.
    pub others: Option<Histogram>,
    /// Messages created, and messages that are complete or known to be lost.
    pub messages_made: u64,
    pub messages_ended: u64,
    pub frames_given: u64,
    pub frames_delivered: u64,
    pub frames_to_dead: u64,
    pub out_of_order: u64,
}

impl Counts {
    pub fn new(plan: &Plan) -> Counts {
        Counts {
            traffic: plan.traffic.iter().map(|traffic| traffic.stats()).collect(),
            scheme: HostCounts::new(),
            others: plan.watched.as_ref().map(|_| Histogram::new()),
            messages_made: 0,
            messages_ended: 0,
            frames_given: 0,
            frames_delivered: 0,
            frames_to_dead: 0,
            out_of_order: 0,
        }
    }

    /// Adds another group's counters.
    pub fn add(&mut self, other: &Counts) {
        self.traffic.iter_mut().zip(&other.traffic).for_each(|(own, other)| own.add(other));
        self.scheme.add(&other.scheme);
        if let (Some(own), Some(other)) = (&mut self.others, &other.others) {
            own.add(other);
        }
        self.messages_made += other.messages_made;
        self.messages_ended += other.messages_ended;
        self.frames_given += other.frames_given;
        self.frames_delivered += other.frames_delivered;
        self.frames_to_dead += other.frames_to_dead;
        self.out_of_order += other.out_of_order;
    }
}

/// A message of a round that is complete.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RoundPart {
    pub traffic: usize,
    /// When the receiving thread has it.
    pub done: Nanos,
    pub size: u32,
    pub measured: bool,
}

impl Group {
    pub fn new(plan: Arc<Plan>, first: usize, nodes: Vec<HostEnd>) -> Group {
        let mut group = Group {
            first,
            now: Nanos::ZERO,
            window: 0,
            measuring: false,
            inlets: Inlets::new(nodes.len(), Dues::new(nodes.len())),
            nodes,
            outbox: Outbox::new(),
            inbox: Vec::new(),
            frames: Frames::default(),
            counts: Counts::new(&plan),
            recorder: None,
            rounds: Vec::new(),
            held: None,
            transport_frames: 0,
            plan,
        };
        for at in 0..group.nodes.len() {
            let one = &mut group.nodes[at].host;
            if one.hostile.is_some() {
                one.machine_due = Nanos::ZERO;
                group.inlets.dues.hasten(at, Nanos::ZERO);
            }
            if one.dies != Nanos::MAX {
                one.agenda.push(one.dies, HostEvent::Die);
                group.inlets.dues.hasten(at, one.dies);
            }
        }
        group
    }

    /// Prefetches mail that another processor has written.
    pub fn fetch_mail(&self) {
        fetch(self.inbox.iter().filter_map(|mail| match mail {
            ToHost::Frame(_, frame, _) => Some(&frame.frame),
            _ => None,
        }));
    }

    /// Processes the mail in the inbox.
    pub fn take_mail(&mut self) {
        let mut inbox = std::mem::take(&mut self.inbox);
        for mail in inbox.drain(..) {
            match mail {
                ToHost::Frame(host, frame, joins) => {
                    self.inlets.put(usize::from(host) - self.first, frame, joins);
                }
                ToHost::Notice(flow, notice) => self.notify_receiver(flow, notice),
                ToHost::Event { host, at, origin, nth, event } => {
                    let place = usize::from(host) - self.first;
                    self.nodes[place].host.agenda.push_foreign(at, origin, nth, event);
                    self.inlets.dues.hasten(place, at);
                }
            }
        }
        self.inbox = inbox;
    }

    /// Processes its own mail when it has all hosts: mail for hosts stays here, the rest goes to the switch.
    pub fn keep_mail(&mut self, tor: &mut Tor) {
        let mut mail = std::mem::take(&mut self.outbox.mail);
        for mail in mail.drain(..) {
            match mail {
                ToSwitch::Frame(host, frame, joins) => tor.inlets.put(host.into(), frame, joins),
                ToSwitch::Notice(flow, notice) => self.notify_receiver(flow, notice),
                ToSwitch::Silent { sender, destination, now } => tor.silent(sender, destination, now),
            }
        }
        self.outbox.mail = mail;
    }

    /// The rack's `nth` order: an event for a host's agenda.
    pub fn order(&mut self, host: u16, at: Nanos, nth: u64, event: HostEvent) {
        let place = usize::from(host) - self.first;
        self.nodes[place].host.agenda.push_foreign(at, Origin::Rack, nth, event);
        self.inlets.dues.hasten(place, at);
    }

    fn notify_receiver(&mut self, flow: FlowId, notice: Notice) {
        let ends = &self.plan.flows[flow as usize];
        let inflow = &mut self.nodes[usize::from(ends.dst) - self.first].inflows[ends.into as usize];
        match notice {
            Notice::Message(id, message) => inflow.open.push_back((id, message)),
            Notice::Begins(id, now) => {
                if let Some(message) = inflow.message(id) {
                    message.created = now;
                }
            }
        }
    }

    /// Runs the hosts up to `until`, before which none of them can affect another.
    pub fn run(&mut self, until: Nanos) {
        self.inlets.until = until.max(self.inlets.until);
        if self.inlets.dues.first() >= until {
            return;
        }
        let mut first = Nanos::MAX;
        for at in 0..self.nodes.len() {
            let mut due = self.inlets.dues.of(at);
            if due < until {
                due = self.run_host(at, until);
                self.inlets.dues.set(at, due);
            }
            first = first.min(due);
        }
        self.inlets.dues.begin_with(first);
    }

    /// Runs a host up to `until`; returns when it has something to do next.
    fn run_host(&mut self, at: usize, until: Nanos) -> Nanos {
        loop {
            let one = &mut self.nodes[at].host;
            let (agenda, link, machine) = (one.agenda.due(), self.inlets.ends[at].due(), one.machine_due);
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

    /// Whether the measured time is running: after the warm-up, before the sources end.
    #[inline]
    pub(super) fn measures(&self) -> bool {
        self.measuring && self.now < self.plan.sources_end
    }
}
