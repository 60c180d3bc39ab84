//! EDM as a P4 pipeline runs it: the generated program executes every frame, and the hosts are the machines of real nodes.
//!
//! ```text
//! write   host ─NOTIFY─▶ switch ─GRANT: wait─▶ host … chunk ─▶ switch ─▶ memory node
//! read    host ─RREQ─▶ switch ─RREQ: wait─▶ memory node … chunk ─▶ switch ─▶ host
//! ```
//!
//! Links count picoseconds, as for the other schemes. The program's and the hosts' clocks count nanoseconds.

mod hostile;
mod node;
mod params;
mod programs;
mod rack;
mod times;

use super::latency::Modules;
use super::message::{Message, Operation, Shown};
use super::messages::Messages;
use crate::frames::{Frame, Frames};
use crate::kernel::{Agenda, Clock, Direction, Hub, Wires};
use crate::message::mac_of;
use crate::random::Random;
use crate::switch::{Model, P4, SwitchError};
use node::PipelineHost;
use p4rack_codegen::scheme::edm::{Edm, NO_LOSS};
use p4rack_fabric::Machine as _;
use p4rack_fabric::edm::host::compute;
use p4rack_fabric::hostile::edm::LONG_BYTES;
use p4rack_switch::Config;
use p4rack_wire::edm::{self, Kind};
use p4rack_wire::{MacAddr, Nanos};
pub use params::Params;
pub(crate) use programs::EdmPrograms;
use rack::rack;

/// Addresses at which messages begin. The address identifies the message.
const ADDRESSES: u32 = 1 << 18;
/// Stream of the random numbers of links.
const LINKS: u64 = 1 << 32;
/// How often a host repeats a lost request.
const AGAIN_MAX: u8 = 16;
/// The key of all memory.
const KEY: u32 = 1;
const CLOCK: Clock = Clock::PICOSECONDS;

#[derive(Debug)]
enum Event {
    /// A message arrives at its host.
    Message(u32),
    /// The host's machine takes the message.
    Ask(u32),
    /// A host may have a frame to send.
    Poll(u16),
    /// The last bit of a frame from this host is at the switch.
    AtSwitch(u16, Frame),
    /// The switch has a frame to send.
    Switch,
    /// The last bit of a frame is at this host.
    Arrived(u16, Frame),
    /// The frame has passed the host's modules. Its arrival time in ns is the time of this event.
    AtHost(u16, Frame),
    /// Hosts look at their timers.
    Timers,
    /// Its host checks whether a write that has left arrived.
    Look(u32),
}

/// A run.
pub struct Pipeline<'a> {
    params: &'a Params,
    messages: Messages<'a>,
    edm: Edm,
    hub: Hub,
    timeout: Nanos,
    agenda: Agenda<Event>,
    nodes: Vec<PipelineHost>,
    frames: Frames,
    payload: Vec<u8>,
    wires: Wires,
    /// How often each message was asked for again; empty: links lose nothing.
    again: Vec<u8>,
    /// Messages created so far.
    created: u32,
    /// Ended messages, and the number of open ones.
    ended: Vec<bool>,
    left: usize,
    /// The read in each lane of each pair.
    reads: Vec<u32>,
}

impl<'a> Pipeline<'a> {
    /// A rack with these messages, sorted by time, or with `in_flight` of them open per node. Errors: no program has these
    /// parameters.
    pub fn new(
        params: &'a Params,
        messages: &'a [Message],
        in_flight: Option<u32>,
    ) -> Result<Pipeline<'a>, String> {
        let rack = rack(params)?;
        let delay = |config: &mut Config| config.pass_delay = Nanos(params.pass_ns);
        let switch = P4::on(&rack, params.mode.scheme(), params.arch, delay)
            .map_err(|error: SwitchError| error.to_string())?;
        let edm = rack.protocol::<Edm>().cloned().ok_or("the rack lost its protocol")?;
        let timeout = edm.expiry(&rack) + Nanos::from_millis(1);
        let of_attackers = if params.attackers.is_empty() { 1 } else { LONG_BYTES };
        let longest = messages.iter().map(|message| message.bytes).fold(of_attackers, u32::max);
        let addresses = (messages.len() as u32).next_power_of_two().min(ADDRESSES);
        let nodes =
            (0..params.nodes).map(|_| PipelineHost::new(params, timeout, (addresses + longest) as usize));
        let pairs = usize::from(params.nodes) * usize::from(params.nodes);
        let (ended, left) = (vec![false; messages.len()], messages.len());
        let again = if params.link.has_faults() { vec![0; messages.len()] } else { Vec::new() };
        let names: Vec<String> = (0..params.nodes).map(|node| node.to_string()).collect();
        let jitter = (&params.link, params.dma_ns.as_deref());
        let wires =
            Wires::new(CLOCK, params.modules.link_ps, jitter, &names, Random::stream(params.seed, LINKS))?;
        let (messages, first) = Messages::new(messages, in_flight, params.nodes.into(), params.memory_ps);
        let mut agenda = Agenda::default();
        let start_ps = first.first().map(|(at_ps, _)| *at_ps);
        first.into_iter().for_each(|(at_ps, nth)| agenda.add(at_ps, Event::Message(nth)));
        start_ps.into_iter().for_each(|at_ps| agenda.add(at_ps + timeout.0 * 1_000, Event::Timers));
        let mut pipeline = Pipeline {
            params,
            messages,
            hub: Hub::new(switch, CLOCK),
            timeout,
            agenda,
            nodes: nodes.collect::<Result<_, _>>()?,
            frames: Frames::default(),
            payload: Vec::new(),
            wires,
            again,
            created: 0,
            ended,
            left,
            reads: vec![u32::MAX; pairs * edm.lanes() as usize],
            edm,
        };
        pipeline.add_attackers();
        Ok(pipeline)
    }

    /// Runs until no message is open.
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
        self.finish(CLOCK.nanos(last_ps));
        self.messages.shown
    }

    fn finish(&mut self, now: Nanos) {
        let stats = self.hub.model.stats(now);
        let counted = self.hub.model.counted();
        let queues = stats.ports.iter().map(|port| port.queue_max_bytes);
        self.messages.shown.queue_max_bytes = queues.max().unwrap_or(0);
        let no_loss = counted.drops.iter().filter(|(reason, _)| NO_LOSS.contains(reason));
        let no_loss: u64 = no_loss.map(|(_, count)| count).sum();
        self.messages.shown.dropped = stats.drops.iter().map(|(_, count)| count).sum::<u64>() - no_loss;
        let sum = |of: fn(&PipelineHost) -> u64| self.nodes.iter().map(of).sum::<u64>();
        self.messages.shown.again += sum(|node| node.machines.compute.counters().again);
        // A repeated message has another address and would count as another message.
        let strays = self.messages.shown.again
            + sum(|node| {
                node.machines.compute.counters().grants_unasked
                    + node.machines.compute.counters().answers_unasked
            })
            + sum(|node| {
                node.machines.compute.counters().malformed
                    + node.machines.memory.as_ref().map_or(0, |memory| memory.counters().malformed)
            });
        // Attackers and faults of links make frames that match no message.
        self.messages.shown.strays += if self.is_orderly() { strays } else { 0 };
        self.messages.shown.counters = vec![
            ("frames", stats.ports.iter().map(|port| port.rx_frames).sum()),
            ("grants_of_chunks", stats.clones.saturating_sub(stats.recirculations)),
            ("second_passes", stats.resubmits + stats.recirculations),
            ("timeouts", sum(|node| node.machines.compute.counters().timeouts)),
        ];
        self.messages.shown.counters.extend(counted.drops.into_iter().chain(counted.demoted));
        self.messages.shown.counters.extend(self.wires.counters());
    }

    fn handle(&mut self, event: Event, now_ps: u64) {
        match event {
            Event::Message(nth) => {
                let next = self.messages.begins(nth, now_ps);
                self.agenda.extend(next.map(|(at_ps, next)| (at_ps, Event::Message(next))));
                self.created = self.created.max(nth + 1);
                match self.messages.all[nth as usize].is_local() {
                    true => self.stored(nth, now_ps),
                    false => self.agenda.add(now_ps + self.params.modules.request_ps, Event::Ask(nth)),
                }
            }
            Event::Ask(nth) => self.ask(nth, now_ps),
            Event::Poll(node) => {
                if self.nodes[usize::from(node)].uplink.is_due(now_ps) {
                    self.poll(node, now_ps);
                }
            }
            Event::AtSwitch(node, frame) => {
                self.hub.take(node + 1, &frame, now_ps);
                self.frames.release(frame);
                self.transmit(now_ps);
            }
            Event::Switch => {
                if self.hub.is_due(now_ps) {
                    self.transmit(now_ps);
                }
            }
            Event::Arrived(node, frame) => self.arrived(node, frame, now_ps),
            Event::AtHost(node, frame) => self.at_host(node, frame, now_ps),
            Event::Look(nth) if !self.ended[nth as usize] => self.ask_again(nth, now_ps),
            Event::Look(_) => {}
            Event::Timers => {
                for node in 0..self.params.nodes {
                    let compute = &mut self.nodes[usize::from(node)].machines.compute;
                    compute.handle_timeout(CLOCK.nanos(now_ps));
                    self.completed(node, now_ps);
                    self.plan(node, now_ps);
                }
                let waits = |node: &PipelineHost| node.machines.compute.next_timeout().is_some();
                if !self.agenda.is_empty() || self.nodes.iter().any(waits) {
                    self.agenda.add(now_ps + self.timeout.0 * 1_000, Event::Timers);
                }
            }
        }
    }

    /// Whether nothing unexpected may arrive: there are no attackers and no faulty links, which also delay messages.
    fn is_orderly(&self) -> bool {
        self.params.attackers.is_empty() && self.again.is_empty()
    }

    /// Requests a message with lost parts again, unless that has failed too often.
    fn ask_again(&mut self, nth: u32, now_ps: u64) {
        match self.again.get_mut(nth as usize).filter(|times| **times < AGAIN_MAX) {
            Some(times) => {
                *times += 1;
                self.messages.shown.again += 1;
                self.ask(nth, now_ps);
            }
            None => self.ended(nth, now_ps),
        }
    }

    fn ask(&mut self, nth: u32, now_ps: u64) {
        let message = self.messages.all[nth as usize];
        let request = match message.operation {
            Operation::Read => compute::Request::Read(message.bytes),
            Operation::Write => compute::Request::Write(vec![0; message.bytes as usize]),
        };
        let (address, now) = (u64::from(nth % ADDRESSES), CLOCK.nanos(now_ps));
        let node = &mut self.nodes[usize::from(message.compute)];
        match node.machines.compute.handle_request(message.memory, KEY, address, request, now) {
            Ok(_) => node.tokens.push(nth),
            Err(_) => {
                self.messages.shown.refused += 1;
                self.ended(nth, now_ps);
            }
        }
        self.plan(message.compute, now_ps);
    }

    /// Plans the next time to ask a host: when it has a frame and its link is free.
    fn plan(&mut self, nth: u16, now_ps: u64) {
        let node = &mut self.nodes[usize::from(nth)];
        let next = node.next();
        let poll = node.uplink.plan_at(next, None, now_ps);
        self.agenda.extend(poll.map(|at_ps| (at_ps, Event::Poll(nth))));
    }

    fn poll(&mut self, nth: u16, now_ps: u64) {
        let mut payload = std::mem::take(&mut self.payload);
        let node = &mut self.nodes[usize::from(nth)];
        if node.hostile.is_some() {
            self.attack(nth, now_ps);
        } else if let Some(to) = node.machines.poll_first(CLOCK.nanos(now_ps), &mut payload) {
            self.sent(nth, to, &payload, now_ps);
            let mut frame = self.frames.take(true);
            let (dst, src) = (mac_of(to.into()), mac_of(nth.into()));
            edm::emit_frame(dst, src, self.edm.ether_type, &payload, &mut frame);
            let tail_ps = self.nodes[usize::from(nth)].uplink.send(&frame, now_ps);
            self.messages.shown.sent_ps[usize::from(nth)] += tail_ps - now_ps;
            self.rises(nth, frame, tail_ps);
        }
        self.payload = payload;
        self.plan(nth, now_ps);
    }

    /// A frame whose last bit is on its host's link goes to the switch.
    fn rises(&mut self, nth: u16, frame: Frame, tail_ps: u64) {
        let (at_ps, agenda) = (tail_ps + self.params.modules.link_ps, &mut self.agenda);
        self.wires.carry(Direction::Up(nth), frame, at_ps, &mut self.frames, |at_ps, frame| {
            agenda.add(at_ps, Event::AtSwitch(nth, frame));
        });
    }

    /// Sends the switch's frames, and plans the next time to ask it.
    fn transmit(&mut self, now_ps: u64) {
        let modules = &self.params.modules;
        while let Some((port, frame)) = self.hub.poll(now_ps, &mut self.frames) {
            let wire_ps = CLOCK.on_wire(frame.len(), self.params.rate_bps);
            let at_ps = now_ps + modules.forward_ps + wire_ps + modules.link_ps;
            let (to, agenda) = (port - 1, &mut self.agenda);
            self.wires.carry(Direction::Down(to), frame, at_ps, &mut self.frames, |at_ps, frame| {
                agenda.add(at_ps, Event::Arrived(to, frame));
            });
        }
        self.agenda.extend(self.hub.again(now_ps).map(|at_ps| (at_ps, Event::Switch)));
    }

    fn arrived(&mut self, nth: u16, frame: Frame, now_ps: u64) {
        let kind = edm::parse_frame(&frame, self.edm.ether_type).map(|(_, payload)| Kind::of(payload[0]));
        let more_ps = inside_ps(&self.params.modules, self.params.memory_ps, kind.and_then(Result::ok));
        self.agenda.add(now_ps + more_ps, Event::AtHost(nth, frame));
    }

    fn at_host(&mut self, nth: u16, frame: Frame, now_ps: u64) {
        let now = CLOCK.nanos(now_ps);
        if let Some(hostile) = &mut self.nodes[usize::from(nth)].hostile {
            hostile.handle_link(&frame, now, now);
            self.frames.release(frame);
            return self.plan(nth, now_ps);
        }
        let parsed = edm::parse_frame(&frame, self.edm.ether_type);
        let from = parsed.as_ref().and_then(|(ethernet, _)| node_of(ethernet.src));
        if let (Some((_, payload)), Some(from)) = (parsed, from) {
            let node = &mut self.nodes[usize::from(nth)];
            let writes = node.writes();
            node.machines.handle_link((from, payload), now, now);
            let is_whole = node.writes() > writes;
            if self.nodes[usize::from(from)].hostile.is_none() {
                self.received(nth, from, payload, is_whole, now_ps);
            }
            self.completed(nth, now_ps);
        } else if self.is_orderly() {
            self.messages.shown.strays += 1;
        }
        self.frames.release(frame);
        self.plan(nth, now_ps);
    }
}

/// From a host's link to its machines, for a message of this kind.
fn inside_ps(modules: &Modules, memory_ps: u64, kind: Option<Kind>) -> u64 {
    match kind {
        Some(Kind::Rreq) => modules.request_in_ps + modules.grant_queue_ps + modules.data_out_ps + memory_ps,
        Some(Kind::Grant) => modules.grant_in_ps + modules.grant_queue_ps + modules.data_out_ps,
        _ => modules.data_in_ps,
    }
}

/// The node with this address.
fn node_of(mac: MacAddr) -> Option<u16> {
    u16::try_from(crate::message::host_of(&mac.0)?).ok()
}
