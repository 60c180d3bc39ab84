//! EDM as a P4 pipeline runs it: the generated program executes every frame, and the hosts are those of real packets.
//!
//! ```text
//! write   host ─NOTIFY─▶ switch ─GRANT: wait─▶ host … chunk ─▶ switch ─▶ memory node
//! read    host ─RREQ─▶ switch ─RREQ: wait─▶ memory node … chunk ─▶ switch ─▶ host
//! ```
//!
//! Links count picoseconds, as for the other schemes. The program's and the hosts' clocks count nanoseconds.

use super::latency::Modules;
use super::message::{Message, Operation, Shown, Times};
use crate::events::Agenda;
use crate::message::mac_of;
use crate::switch::{Model, P4, SwitchError};
use p4rack_codegen::rack::{Link, RESERVED_PERCENT, Rack, Station, Switch, Target, Topology};
use p4rack_codegen::scheme::edm::{Edm, Mode, NO_LOSS};
use p4rack_fabric::edm::host::{compute, memory};
use p4rack_wire::edm::{self, Kind};
use p4rack_wire::ethernet::overhead;
use p4rack_wire::{MacAddr, Nanos};
use std::net::Ipv4Addr;
use std::sync::Arc;

/// Addresses at which messages begin. A message's address tells which one it is.
const ADDRESSES: u32 = 1 << 18;
/// The key of all memory.
const KEY: u32 = 1;
/// The switch's shared buffer: large enough that a queue is seen rather than cut.
const BUFFER_BYTES: u64 = 64 << 20;

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

#[derive(Debug)]
struct Node {
    compute: compute::Node,
    memory: memory::Node,
    /// When its link is free.
    free_ps: u64,
    /// When it is asked next; other polls are out of date.
    poll_ps: u64,
    /// Messages by the machine's numbers.
    tokens: Vec<u32>,
}

/// A run.
pub struct Pipeline<'a> {
    params: &'a Params,
    messages: &'a [Message],
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
    /// Messages that were created, and those that ended in one way or another.
    created: u32,
    ended: u32,
    /// Bytes of each message that arrived.
    received: Vec<u32>,
    /// The read in each lane of each pair.
    reads: Vec<u32>,
    shown: Shown,
}

impl<'a> Pipeline<'a> {
    /// A rack with these messages, sorted by time. Errors: parameters that no program can have.
    pub fn new(params: &'a Params, messages: &'a [Message]) -> Result<Pipeline<'a>, String> {
        let rack = rack(params)?;
        let switch =
            P4::new(&rack, params.mode.scheme(), |_| {}).map_err(|error: SwitchError| error.to_string())?;
        let edm = rack.protocol::<Edm>().cloned().ok_or("the rack lost its protocol")?;
        let timeout = edm.expiry(&rack) + Nanos::from_millis(1);
        let longest = messages.iter().map(|message| message.bytes).max().unwrap_or(1);
        let addresses = (messages.len() as u32).next_power_of_two().min(ADDRESSES);
        let nodes = (0..params.nodes).map(|_| Node::new(params, timeout, (addresses + longest) as usize));
        let pairs = usize::from(params.nodes) * usize::from(params.nodes);
        Ok(Pipeline {
            params,
            messages,
            switch,
            switch_ps: u64::MAX,
            timeout,
            agenda: Agenda::default(),
            nodes: nodes.collect::<Result<_, _>>()?,
            frames: Vec::new(),
            free: Vec::new(),
            payload: Vec::new(),
            created: 0,
            ended: 0,
            received: vec![0; messages.len()],
            reads: vec![u32::MAX; pairs * edm.lanes() as usize],
            edm,
            shown: Shown { times: vec![Times::default(); messages.len()], ..Shown::default() },
        })
    }

    /// Runs until all messages have ended.
    pub fn run(mut self) -> Shown {
        if let Some(first) = self.messages.first() {
            self.agenda.add(first.at_ps, Event::Message(0));
            self.agenda.add(first.at_ps + self.timeout.0 * 1_000, Event::Timers);
        }
        let mut last_ps = 0;
        while let Some((now_ps, event)) = self.agenda.next() {
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
        self.shown.strays += self.shown.again
            + sum(|node| node.compute.counters().grants_unasked + node.compute.counters().answers_unasked)
            + sum(|node| node.compute.counters().malformed + node.memory.counters().malformed);
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
                if let Some(next) = self.messages.get(nth as usize + 1) {
                    self.agenda.add(next.at_ps.max(now_ps), Event::Message(nth + 1));
                }
                self.created += 1;
                self.agenda.add(now_ps + self.params.modules.request_ps, Event::Ask(nth));
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
                if (self.ended as usize) < self.messages.len() {
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
                self.ended += 1;
            }
        }
        self.plan(message.compute, now_ps);
    }

    /// The message that begins at an address, of this pair.
    fn message_at(&self, address: u64, (compute, memory): (u16, u16)) -> Option<usize> {
        let newest = u64::from(self.created.checked_sub(1)?);
        let nth = newest.checked_sub(newest.wrapping_sub(address) % u64::from(ADDRESSES))? as usize;
        let message = self.messages.get(nth)?;
        ((message.compute, message.memory) == (compute, memory)).then_some(nth)
    }

    fn lane(&self, (compute, memory): (u16, u16), id: u16) -> usize {
        let pair = usize::from(compute) * usize::from(self.params.nodes) + usize::from(memory);
        pair * self.edm.lanes() as usize + usize::from(id) % self.edm.lanes() as usize
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
        if let Some(to) = node.message(Nanos(now_ps / 1_000), &mut payload) {
            self.sent(nth, to, &payload, now_ps);
            let slot = self.slot();
            let frame = &mut self.frames[slot as usize];
            edm::emit_frame(mac_of(to.into()), mac_of(nth.into()), self.edm.ether_type, &payload, frame);
            let tail_ps = now_ps + self.wire_ps(slot);
            self.nodes[usize::from(nth)].free_ps = tail_ps;
            self.agenda.add(tail_ps + self.params.modules.link_ps, Event::AtSwitch(nth, slot));
        }
        self.payload = payload;
        self.plan(nth, now_ps);
    }

    /// Notes the times of what leaves a host.
    fn sent(&mut self, from: u16, to: u16, payload: &[u8], now_ps: u64) {
        let Ok(header) = edm::Message::parse(payload) else { return };
        match Kind::of(payload[0]) {
            Ok(Kind::Rreq) => {
                if let Some(nth) = self.message_at(header.address, (from, to)) {
                    let lane = self.lane((from, to), header.id);
                    self.reads[lane] = nth as u32;
                    self.shown.times[nth].asked_ps.get_or_insert(now_ps);
                }
            }
            Ok(Kind::Wreq) => {
                if let Some(nth) = self.message_at(header.address, (from, to)) {
                    self.shown.times[nth].sent_ps.get_or_insert(now_ps);
                }
            }
            Ok(Kind::Rres) => {
                let nth = self.reads[self.lane((to, from), header.id)];
                if let Some(times) = self.shown.times.get_mut(nth as usize) {
                    times.sent_ps.get_or_insert(now_ps);
                }
            }
            _ => {}
        }
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
            Some(Ok(Kind::Rreq)) => modules.request_in_ps + modules.grant_queue_ps + modules.data_out_ps,
            Some(Ok(Kind::Grant)) => modules.grant_in_ps + modules.grant_queue_ps + modules.data_out_ps,
            _ => modules.data_in_ps,
        };
        self.agenda.add(now_ps + more_ps, Event::AtHost(nth, slot));
    }

    fn at_host(&mut self, nth: u16, slot: u32, now_ps: u64) {
        let now = Nanos(now_ps / 1_000);
        let frame = std::mem::take(&mut self.frames[slot as usize]);
        let parsed = edm::parse_frame(&frame, self.edm.ether_type);
        let from = parsed.as_ref().and_then(|(ethernet, _)| node_of(ethernet.src));
        if let (Some((_, payload)), Some(from)) = (parsed, from) {
            let node = &mut self.nodes[usize::from(nth)];
            match Kind::of(payload[0]) {
                Ok(Kind::Grant) if !is_of_answer(payload) => node.compute.handle_message(from, payload, now),
                Ok(Kind::Rres) => node.compute.handle_message(from, payload, now),
                _ => node.memory.handle_message(from, payload, now),
            }
            self.received(nth, from, payload, now_ps);
            self.completed(nth, now_ps);
        } else {
            self.shown.strays += 1;
        }
        self.frames[slot as usize] = frame;
        self.free.push(slot);
        self.plan(nth, now_ps);
    }

    /// Notes the times of what a memory node has received.
    fn received(&mut self, nth: u16, from: u16, payload: &[u8], now_ps: u64) {
        let Ok(header) = edm::Message::parse(payload) else { return };
        let kind = Kind::of(payload[0]);
        if !matches!(kind, Ok(Kind::Rreq | Kind::Wreq)) {
            return;
        }
        let Some(message) = self.message_at(header.address, (from, nth)) else {
            self.shown.strays += 1;
            return;
        };
        if kind == Ok(Kind::Rreq) {
            self.shown.times[message].reached_ps = Some(now_ps);
            return;
        }
        self.received[message] += u32::from(header.bytes);
        if self.received[message] == self.messages[message].bytes {
            self.shown.times[message].done_ps = Some(now_ps);
            self.ended += 1;
        }
    }

    /// Notes the reads that a host has completed.
    fn completed(&mut self, nth: u16, now_ps: u64) {
        while let Some((token, outcome)) = self.nodes[usize::from(nth)].compute.poll_completion() {
            let message = self.nodes[usize::from(nth)].tokens[token as usize] as usize;
            match outcome {
                compute::Outcome::Answer(_) => {
                    self.shown.times[message].done_ps = Some(now_ps);
                    self.ended += 1;
                }
                // It is complete when the memory node has it.
                compute::Outcome::Sent => {}
                compute::Outcome::Refused(_) | compute::Outcome::Null => self.ended += 1,
            }
        }
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

impl Node {
    fn new(params: &Params, timeout: Nanos, bytes: usize) -> Result<Node, String> {
        let compute = compute::Config {
            active_per_pair: params.demands as u16,
            waiting_max: params.pending_max,
            chunk_bytes: params.chunk_bytes,
            window: params.window,
            timeout,
            ..compute::Config::default()
        };
        let memory = memory::Config {
            chunk_bytes: params.chunk_bytes as u16,
            window: params.window,
            answer_bytes_max: usize::MAX,
            ..memory::Config::default()
        };
        let rights = memory::Rights { read: true, write: true };
        let region = memory::Region { start: 0, bytes: vec![0; bytes], key: KEY, rights };
        Ok(Node {
            compute: compute::Node::new(compute, 1),
            memory: memory::Node::new(memory, vec![region])?,
            free_ps: 0,
            poll_ps: u64::MAX,
            tokens: Vec::new(),
        })
    }

    /// When one of its machines has something to send.
    fn next(&self) -> Option<Nanos> {
        let both = [self.compute.next_message(), self.memory.next_message()];
        both.into_iter().flatten().min()
    }

    /// The next message, of the machine whose turn comes first, and the node that it is for.
    fn message(&mut self, now: Nanos, out: &mut Vec<u8>) -> Option<u16> {
        let first = |at: Option<Nanos>| at.unwrap_or(Nanos::MAX);
        if first(self.memory.next_message()) < first(self.compute.next_message()) {
            self.memory.poll_message(now, out).or_else(|| self.compute.poll_message(now, out))
        } else {
            self.compute.poll_message(now, out).or_else(|| self.memory.poll_message(now, out))
        }
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

/// A rack whose hosts all have memory.
fn rack(params: &Params) -> Result<Rack, String> {
    let name = |nth: u16| format!("n{}", nth + 1);
    let station = |nth: u16| Station {
        name: name(nth),
        mac: mac_of(nth.into()),
        ip: Ipv4Addr::new(10, 0, ((nth + 1) >> 8) as u8, ((nth + 1) & 255) as u8),
        prefix: 16,
        foreign_percent: None,
    };
    let edm = Edm {
        chunk_bytes: params.chunk_bytes,
        window: params.window,
        demands: params.demands,
        message_bytes_max: 1 << 24,
        headroom_percent: params.headroom_percent,
        classes: params.classes,
        ahead: params.ahead,
        control_percent: 100,
        ..Edm::new(params.mode, (0..params.nodes).map(name).collect())
    };
    let topology = Topology {
        name: "memory".to_owned(),
        switches: vec![
            Switch::new(Target::Embedded, params.rate_bps).with_buffer(BUFFER_BYTES, RESERVED_PERCENT),
        ],
        hosts: (0..params.nodes).map(station).collect(),
        links: (0..params.nodes).map(|nth| Link::to_port(nth.into(), nth + 1)).collect(),
        protocols: vec![Arc::new(edm)],
        workload: None,
    };
    Rack::build(topology).map_err(|error| {
        let problems = error.errors.iter().map(|one| format!("{}; {}", one.message, one.help));
        problems.collect::<Vec<_>>().join("; ")
    })
}
