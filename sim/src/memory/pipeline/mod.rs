//! EDM as a P4 pipeline runs it: the generated program executes every frame, and the hosts are those of real packets.
//!
//! ```text
//! write   host ─NOTIFY─▶ switch ─GRANT: wait─▶ host … chunk ─▶ switch ─▶ memory node
//! read    host ─RREQ─▶ switch ─RREQ: wait─▶ memory node … chunk ─▶ switch ─▶ host
//! ```
//!
//! Links count picoseconds, as for the other schemes. The program's and the hosts' clocks count nanoseconds.

mod hostile;
mod node;
mod rack;
mod times;

use super::latency::Modules;
use super::message::{Message, Operation, Shown, Times};
use super::workload::Arrivals;
use crate::events::Agenda;
use crate::message::mac_of;
use crate::switch::{Model, P4, SwitchError};
use node::Node;
use p4rack_codegen::scheme::edm::{Edm, Mode, NO_LOSS};
use p4rack_fabric::edm::host::compute;
use p4rack_fabric::hostile::edm::Attack;
use p4rack_switch::Config;
use p4rack_wire::edm::{self, Kind};
use p4rack_wire::ethernet::overhead;
use p4rack_wire::{MacAddr, Nanos};
use rack::rack;

/// Addresses at which messages begin. A message's address tells which one it is.
const ADDRESSES: u32 = 1 << 18;
/// The key of all memory.
const KEY: u32 = 1;

/// Parameters.
#[derive(Clone, Debug)]
pub struct Params {
    /// The mode.
    pub mode: Mode,
    /// Nodes, each with one port.
    pub nodes: u16,
    /// A link's rate.
    pub rate_bps: u64,
    /// What hosts, links and the pipeline take.
    pub modules: Modules,
    /// An access to memory: what is read is fetched when its request has come, and what has come is stored. What is written is
    /// fetched meanwhile.
    pub memory_ps: u64,
    /// Bytes of a message in a frame.
    pub chunk_bytes: u32,
    /// Chunks that are granted at once.
    pub window: u32,
    /// X.
    pub demands: u32,
    /// What a grant takes of a clock beyond its frames' time, in percent.
    pub headroom_percent: u32,
    /// Rings of a destination's demands that wait (`matched`).
    pub classes: u32,
    /// Windows granted ahead before demands wait (`matched`).
    pub ahead: u32,
    /// Whether links are shared between messages.
    pub shares: bool,
    /// Nodes that run an attack: number, attack, victim.
    pub attackers: Vec<(u16, Attack, u16)>,
    /// What a frame takes that is resubmitted or recirculated until its next pass begins.
    pub pass_ns: u64,
    /// Messages that wait in a host for one other host at most; more are refused.
    pub pending_max: usize,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// A message is there.
    Message(u32),
    /// Its host's machine has it.
    Ask(u32),
    /// A host may have something to send.
    Poll(u16),
    /// A frame is at the switch whole, from this host.
    AtSwitch(u16, u32),
    /// The switch has something to send.
    Switch,
    /// A frame is at this host whole.
    Arrived(u16, u32),
    /// It went through the host's modules: its time of arrival, in ns, is that of now.
    AtHost(u16, u32),
    /// Hosts look at their timers.
    Timers,
}

/// A run.
pub struct Pipeline<'a> {
    params: &'a Params,
    messages: &'a [Message],
    arrivals: Arrivals<'a>,
    edm: Edm,
    switch: P4,
    /// When the switch is asked next.
    switch_ps: u64,
    timeout: Nanos,
    agenda: Agenda<Event>,
    nodes: Vec<Node>,
    frames: Vec<Vec<u8>>,
    free: Vec<u32>,
    payload: Vec<u8>,
    /// Messages up to the last one that was created.
    created: u32,
    /// Which messages have ended, and how many have not.
    ended: Vec<bool>,
    left: usize,
    /// Bytes of each message that arrived.
    received: Vec<u32>,
    /// The read in each lane of each pair.
    reads: Vec<u32>,
    shown: Shown,
}

impl<'a> Pipeline<'a> {
    /// A rack with these messages, sorted by time, or of which each node has `in_flight` under way. Errors: parameters that no
    /// program can have.
    pub fn new(
        params: &'a Params,
        messages: &'a [Message],
        in_flight: Option<u32>,
    ) -> Result<Pipeline<'a>, String> {
        let rack = rack(params)?;
        let delay = |config: &mut Config| config.pass_delay = Nanos(params.pass_ns);
        let switch =
            P4::new(&rack, params.mode.scheme(), delay).map_err(|error: SwitchError| error.to_string())?;
        let edm = rack.protocol::<Edm>().cloned().ok_or("the rack lost its protocol")?;
        let timeout = edm.expiry(&rack) + Nanos::from_millis(1);
        let longest = messages.iter().map(|message| message.bytes).max().unwrap_or(1);
        let addresses = (messages.len() as u32).next_power_of_two().min(ADDRESSES);
        let nodes = (0..params.nodes).map(|_| Node::new(params, timeout, (addresses + longest) as usize));
        let pairs = usize::from(params.nodes) * usize::from(params.nodes);
        let (arrivals, first) = Arrivals::new(messages, in_flight);
        let mut agenda = Agenda::default();
        let start_ps = first.first().map(|(at_ps, _)| *at_ps);
        first.into_iter().for_each(|(at_ps, nth)| agenda.add(at_ps, Event::Message(nth)));
        start_ps.into_iter().for_each(|at_ps| agenda.add(at_ps + timeout.0 * 1_000, Event::Timers));
        let mut pipeline = Pipeline {
            params,
            messages,
            arrivals,
            switch,
            switch_ps: u64::MAX,
            timeout,
            agenda,
            nodes: nodes.collect::<Result<_, _>>()?,
            frames: Vec::new(),
            free: Vec::new(),
            payload: Vec::new(),
            created: 0,
            ended: vec![false; messages.len()],
            left: messages.len(),
            received: vec![0; messages.len()],
            reads: vec![u32::MAX; pairs * edm.lanes() as usize],
            edm,
            shown: Shown {
                times: vec![Times::default(); messages.len()],
                sent_ps: vec![0; params.nodes.into()],
                ..Shown::default()
            },
        };
        pipeline.add_attackers();
        Ok(pipeline)
    }

    /// Runs until nothing is under way any more.
    pub fn run(mut self) -> Shown {
        let mut last_ps = 0;
        while let Some((now_ps, event)) = self.agenda.next() {
            // Attackers never end.
            if self.left == 0 && !self.params.attackers.is_empty() {
                break;
            }
            last_ps = now_ps;
            self.handle(event, now_ps);
        }
        self.finish(Nanos(last_ps / 1_000));
        self.shown
    }

    fn finish(&mut self, now: Nanos) {
        let stats = self.switch.stats(now);
        let counted = self.switch.counted();
        let queues = stats.ports.iter().map(|port| port.queue_max_bytes);
        self.shown.queue_max_bytes = queues.max().unwrap_or(0);
        let no_loss = counted.drops.iter().filter(|(reason, _)| NO_LOSS.contains(reason));
        let no_loss: u64 = no_loss.map(|(_, count)| count).sum();
        self.shown.dropped = stats.drops.iter().map(|(_, count)| count).sum::<u64>() - no_loss;
        let sum = |of: fn(&Node) -> u64| self.nodes.iter().map(of).sum::<u64>();
        self.shown.again = sum(|node| node.compute.counters().again);
        // What a host sends again has another address, and is taken for another message.
        let strays = self.shown.again
            + sum(|node| node.compute.counters().grants_unasked + node.compute.counters().answers_unasked)
            + sum(|node| node.compute.counters().malformed + node.memory.counters().malformed);
        // What attackers send is strange, and makes others' messages late.
        self.shown.strays += if self.params.attackers.is_empty() { strays } else { 0 };
        self.shown.counters = vec![
            ("frames", stats.ports.iter().map(|port| port.rx_frames).sum()),
            ("grants_of_chunks", stats.clones - stats.recirculations),
            ("second_passes", stats.resubmits + stats.recirculations),
            ("timeouts", sum(|node| node.compute.counters().timeouts)),
        ];
        self.shown.counters.extend(counted.drops.into_iter().chain(counted.demoted));
    }

    fn handle(&mut self, event: Event, now_ps: u64) {
        match event {
            Event::Message(nth) => {
                if let Some((at_ps, next)) = self.arrivals.after_start(nth, now_ps) {
                    self.agenda.add(at_ps, Event::Message(next));
                }
                self.created = self.created.max(nth + 1);
                self.shown.times[nth as usize].begun_ps = Some(now_ps);
                match self.messages[nth as usize].is_local() {
                    true => self.stored(nth, now_ps),
                    false => self.agenda.add(now_ps + self.params.modules.request_ps, Event::Ask(nth)),
                }
            }
            Event::Ask(nth) => self.ask(nth, now_ps),
            Event::Poll(node) if self.nodes[usize::from(node)].poll_ps == now_ps => self.poll(node, now_ps),
            Event::Poll(_) => {}
            Event::AtSwitch(node, slot) => {
                self.switch.take(node + 1, &self.frames[slot as usize], Nanos(now_ps / 1_000));
                self.free.push(slot);
                self.transmit(now_ps);
            }
            Event::Switch if self.switch_ps == now_ps => {
                self.switch_ps = u64::MAX;
                self.transmit(now_ps);
            }
            Event::Switch => {}
            Event::Arrived(node, slot) => self.arrived(node, slot, now_ps),
            Event::AtHost(node, slot) => self.at_host(node, slot, now_ps),
            Event::Timers => {
                for node in 0..self.params.nodes {
                    self.nodes[usize::from(node)].compute.handle_timeout(Nanos(now_ps / 1_000));
                    self.completed(node, now_ps);
                    self.plan(node, now_ps);
                }
                let waits = |node: &Node| node.compute.next_timeout().is_some();
                if !self.agenda.is_empty() || self.nodes.iter().any(waits) {
                    self.agenda.add(now_ps + self.timeout.0 * 1_000, Event::Timers);
                }
            }
        }
    }

    fn ask(&mut self, nth: u32, now_ps: u64) {
        let message = self.messages[nth as usize];
        let request = match message.operation {
            Operation::Read => compute::Request::Read(message.bytes),
            Operation::Write => compute::Request::Write(vec![0; message.bytes as usize]),
        };
        let (address, now) = (u64::from(nth % ADDRESSES), Nanos(now_ps / 1_000));
        let node = &mut self.nodes[usize::from(message.compute)];
        match node.compute.handle_request(message.memory, KEY, address, request, now) {
            Ok(_) => node.tokens.push(nth),
            Err(_) => {
                self.shown.refused += 1;
                self.ended(nth, now_ps);
            }
        }
        self.plan(message.compute, now_ps);
    }

    /// Asks a host when it has something to send, and its link is free.
    fn plan(&mut self, nth: u16, now_ps: u64) {
        let node = &mut self.nodes[usize::from(nth)];
        let Some(next) = node.next() else { return };
        let at_ps = (next.0.saturating_mul(1_000)).max(node.free_ps).max(now_ps);
        if at_ps < node.poll_ps || node.poll_ps < now_ps {
            node.poll_ps = at_ps;
            self.agenda.add(at_ps, Event::Poll(nth));
        }
    }

    fn poll(&mut self, nth: u16, now_ps: u64) {
        let mut payload = std::mem::take(&mut self.payload);
        let node = &mut self.nodes[usize::from(nth)];
        node.poll_ps = u64::MAX;
        if node.hostile.is_some() {
            self.attack(nth, now_ps);
        } else if let Some(to) = node.message(Nanos(now_ps / 1_000), &mut payload) {
            self.sent(nth, to, &payload, now_ps);
            let slot = self.slot();
            let frame = &mut self.frames[slot as usize];
            edm::emit_frame(mac_of(to.into()), mac_of(nth.into()), self.edm.ether_type, &payload, frame);
            let wire_ps = self.wire_ps(slot);
            self.shown.sent_ps[usize::from(nth)] += wire_ps;
            let tail_ps = now_ps + wire_ps;
            self.nodes[usize::from(nth)].free_ps = tail_ps;
            self.agenda.add(tail_ps + self.params.modules.link_ps, Event::AtSwitch(nth, slot));
        }
        self.payload = payload;
        self.plan(nth, now_ps);
    }

    /// Sends what the switch has, and asks again when it has more.
    fn transmit(&mut self, now_ps: u64) {
        let now = Nanos(now_ps / 1_000);
        loop {
            let slot = self.slot();
            let Some(port) = self.switch.poll_transmit(now, &mut self.frames[slot as usize]) else {
                self.free.push(slot);
                break;
            };
            let modules = &self.params.modules;
            let at_ps = now_ps + modules.forward_ps + self.wire_ps(slot) + modules.link_ps;
            self.agenda.add(at_ps, Event::Arrived(port - 1, slot));
        }
        let due = self.switch.due();
        if due < Nanos::MAX {
            let at_ps = (due.0 * 1_000).max(now_ps);
            if at_ps < self.switch_ps || self.switch_ps < now_ps {
                self.switch_ps = at_ps;
                self.agenda.add(at_ps, Event::Switch);
            }
        }
    }

    fn arrived(&mut self, nth: u16, slot: u32, now_ps: u64) {
        let modules = &self.params.modules;
        let frame = &self.frames[slot as usize];
        let kind = edm::parse_frame(frame, self.edm.ether_type).map(|(_, payload)| Kind::of(payload[0]));
        let more_ps = match kind {
            Some(Ok(Kind::Rreq)) => {
                modules.request_in_ps + modules.grant_queue_ps + modules.data_out_ps + self.params.memory_ps
            }
            Some(Ok(Kind::Grant)) => modules.grant_in_ps + modules.grant_queue_ps + modules.data_out_ps,
            _ => modules.data_in_ps,
        };
        self.agenda.add(now_ps + more_ps, Event::AtHost(nth, slot));
    }

    fn at_host(&mut self, nth: u16, slot: u32, now_ps: u64) {
        let now = Nanos(now_ps / 1_000);
        let frame = std::mem::take(&mut self.frames[slot as usize]);
        let parsed = edm::parse_frame(&frame, self.edm.ether_type);
        if let Some(hostile) = &mut self.nodes[usize::from(nth)].hostile {
            hostile.handle_link(&frame, now);
            self.frames[slot as usize] = frame;
            self.free.push(slot);
            return self.plan(nth, now_ps);
        }
        let from = parsed.as_ref().and_then(|(ethernet, _)| node_of(ethernet.src));
        if let (Some((_, payload)), Some(from)) = (parsed, from) {
            let node = &mut self.nodes[usize::from(nth)];
            match Kind::of(payload[0]) {
                Ok(Kind::Grant) if !is_of_answer(payload) => node.compute.handle_message(from, payload, now),
                Ok(Kind::Rres) => node.compute.handle_message(from, payload, now),
                _ => node.memory.handle_message(from, payload, now),
            }
            if self.nodes[usize::from(from)].hostile.is_none() {
                self.received(nth, from, payload, now_ps);
            }
            self.completed(nth, now_ps);
        } else if self.params.attackers.is_empty() {
            self.shown.strays += 1;
        }
        self.frames[slot as usize] = frame;
        self.free.push(slot);
        self.plan(nth, now_ps);
    }

    /// What the frame in this slot takes on a link.
    fn wire_ps(&self, slot: u32) -> u64 {
        let bytes = overhead::wire_bytes(self.frames[slot as usize].len() as u64);
        (u128::from(bytes) * 8_000_000_000_000 / u128::from(self.params.rate_bps)) as u64
    }

    fn slot(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.frames.push(Vec::new());
            self.frames.len() as u32 - 1
        })
    }
}

/// The node with this address.
fn node_of(mac: MacAddr) -> Option<u16> {
    u16::try_from(crate::message::host_of(&mac.0)?).ok()
}

/// Whether a grant is for the memory node's answer.
fn is_of_answer(payload: &[u8]) -> bool {
    edm::Control::parse(payload).is_ok_and(|grant| grant.answer != 0)
}
