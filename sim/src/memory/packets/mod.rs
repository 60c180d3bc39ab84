//! The schemes that EDM is compared with (§4.3), packet by packet, on the same links, hosts and switch latencies.
//!
//! ```text
//! host: flows ─▶ NIC ─▶ link ─▶ [ingress, CXL only] ─▶ egress queue ─▶ link ─▶ host
//!         ▲ credits, acknowledgements, grants: control packets of one block, ahead of data
//! ```
//!
//! A write is a flow of data; a read is a flow of two blocks with the request, then a flow of data. A scheme decides which packet
//! a NIC sends next, what an egress queue does with another packet, and what follows from a packet's arrival. Packets are
//! forwarded as they arrive (cut-through); a packet that is being sent is not interrupted.

mod central;
mod credits;
mod receiver;
mod window;

use super::latency::Modules;
use super::message::{Message, Operation, Shown, Times};
use crate::events::Agenda;
use p4rack_fabric::edm::blocks::{Content, Framing, block_ps};
use std::collections::VecDeque;

/// Packet schemes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Idealised receiver-driven: receivers learn of flows immediately and credit the shortest first.
    Ird,
    /// Windows that shrink with the share of marked packets.
    Dctcp,
    /// DCTCP's windows, queues that send and keep the shortest first.
    Pfabric,
    /// Pauses per ingress port, and DCQCN's rates.
    PfcDcqcn,
    /// Credits hop by hop, first in, first out.
    Cxl,
    /// A server that assigns a time to each packet.
    Fastpass,
}

/// Parameters of these schemes; sizes in bytes.
#[derive(Clone, Debug)]
pub struct Packets {
    /// The scheme.
    pub scheme: Scheme,
    /// Nodes.
    pub nodes: u16,
    /// Links' rate.
    pub rate_bps: u64,
    /// Latencies of hosts, switch and links.
    pub modules: Modules,
    /// Whether packets have Ethernet's headers and gaps.
    pub framing: Framing,
    /// Maximum payload of a packet.
    pub packet: u32,
    /// DCTCP, pFabric: initial window.
    pub window: u32,
    /// Queue length from which packets are marked.
    pub mark: u64,
    /// Maximum egress queue (DCTCP, pFabric); credits of a buffer (CXL).
    pub buffer: u64,
    /// Pauses an ingress port with this much in the switch, until half of it is left.
    pub pause: u64,
    /// Time after which a lost packet is sent again.
    pub again_ps: u64,
}

/// Kind of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Data,
    /// To a flow's source: an acknowledgement, or a congestion notification.
    Ack,
    /// To a flow's source: permission to send this many bytes; with Fastpass, from a given time.
    Credit {
        from_ps: u64,
    },
    /// To the arbiter: a flow has begun.
    Ask,
}

#[derive(Clone, Copy, Debug)]
struct Packet {
    flow: u32,
    kind: Kind,
    bytes: u32,
    marked: bool,
    from: u16,
    to: u16,
    blocks: u64,
    /// Rank: the smaller one goes first, in schemes with priorities.
    rank: u64,
}

#[derive(Clone, Debug)]
struct Flow {
    message: u32,
    request: bool,
    source: u16,
    destination: u16,
    bytes: u32,
    /// Bytes handed to the NIC, without lost ones.
    sent: u32,
    received: u32,
    /// Whether its source knows of it: an answer exists only after its request.
    there: bool,
    window: window::Window,
}

impl Flow {
    fn left(&self) -> u32 {
        self.bytes - self.sent
    }
}

#[derive(Clone, Debug, Default)]
struct Host {
    busy: bool,
    control: VecDeque<Packet>,
    /// Flows that are not completely sent.
    flows: VecDeque<u32>,
    /// Received permissions: flow, bytes, and the time from which they hold.
    credits: Vec<(u32, u32, u64)>,
    receiver: receiver::Receiver,
    paused: bool,
    /// Credits for the switch's ingress buffer (CXL).
    ingress_credit: u64,
}

#[derive(Clone, Debug, Default)]
struct Port {
    busy: bool,
    control: VecDeque<Packet>,
    queue: VecDeque<Packet>,
    bytes: u64,
    /// Packets that came by this port and wait for room at their egress (CXL).
    ingress: VecDeque<Packet>,
    /// Bytes from this port that are in the switch; whether it is paused.
    from_here: u64,
    paused: bool,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Message(u32),
    /// A host's NIC is free, or has something new.
    Nic(u16),
    NicDone(u16),
    AtSwitch(Packet),
    PortDone(u16),
    AtHost(Packet),
    /// A receiver may credit again.
    Credit(u16),
    /// A dropped packet is missed.
    Missed(Packet),
    Pause(u16, bool),
    Returned(u16, u64),
    /// The source has looked at its flow's rate.
    Rate(u32),
}

/// A run.
pub struct Run<'a> {
    params: &'a Packets,
    messages: &'a [Message],
    block_ps: u64,
    agenda: Agenda<Event>,
    hosts: Vec<Host>,
    ports: Vec<Port>,
    flows: Vec<Flow>,
    central: central::Central,
    shown: Shown,
}

impl<'a> Run<'a> {
    /// A rack with these messages, sorted by time.
    pub fn new(params: &'a Packets, messages: &'a [Message]) -> Run<'a> {
        // The last one is Fastpass's server.
        let nodes = usize::from(params.nodes) + 1;
        let host = Host { ingress_credit: params.buffer, ..Host::default() };
        Run {
            params,
            messages,
            block_ps: block_ps(params.rate_bps),
            agenda: Agenda::default(),
            hosts: vec![host; nodes],
            ports: vec![Port::default(); nodes],
            flows: Vec::with_capacity(messages.len()),
            central: central::Central::new(nodes),
            shown: Shown { times: vec![Times::default(); messages.len()], ..Shown::default() },
        }
    }

    /// Runs until nothing is under way.
    pub fn run(mut self) -> Shown {
        if let Some(first) = self.messages.first() {
            self.agenda.add(first.at_ps, Event::Message(0));
        }
        while let Some((now_ps, event)) = self.agenda.next() {
            self.handle(event, now_ps);
        }
        self.shown
    }

    fn handle(&mut self, event: Event, now_ps: u64) {
        match event {
            Event::Message(nth) => {
                let message = self.messages[nth as usize];
                if let Some(next) = self.messages.get(nth as usize + 1) {
                    self.agenda.add(next.at_ps.max(now_ps), Event::Message(nth + 1));
                }
                self.begin(nth, &message, now_ps + self.params.modules.request_ps);
            }
            Event::Nic(host) => self.nic(host, now_ps),
            Event::NicDone(host) => {
                self.hosts[usize::from(host)].busy = false;
                self.nic(host, now_ps);
            }
            Event::AtSwitch(packet) => self.at_switch(packet, now_ps),
            Event::PortDone(port) => {
                self.ports[usize::from(port)].busy = false;
                self.port(port, now_ps);
            }
            Event::AtHost(packet) => self.at_host(packet, now_ps),
            Event::Credit(host) => self.give_credit(host, now_ps),
            Event::Missed(packet) => {
                let flow = &mut self.flows[packet.flow as usize];
                flow.sent -= packet.bytes;
                flow.window.missed(packet.bytes);
                let source = flow.source;
                self.shown.again += 1;
                self.offer(source, packet.flow);
                self.nic(source, now_ps);
            }
            Event::Pause(host, paused) => {
                self.hosts[usize::from(host)].paused = paused;
                self.nic(host, now_ps);
            }
            Event::Returned(host, bytes) => {
                self.hosts[usize::from(host)].ingress_credit += bytes;
                self.nic(host, now_ps);
            }
            Event::Rate(flow) => self.raise(flow, now_ps),
        }
    }

    fn begin(&mut self, nth: u32, message: &Message, now_ps: u64) {
        let read = message.operation == Operation::Read;
        let flow = |request: bool, source, destination, bytes| Flow {
            message: nth,
            request,
            source,
            destination,
            bytes,
            sent: 0,
            received: 0,
            there: !read || request,
            window: window::Window::new(self.params),
        };
        let (compute, memory) = (message.compute, message.memory);
        let data = if read { (memory, compute) } else { (compute, memory) };
        let data = flow(false, data.0, data.1, message.bytes);
        let request = read.then(|| flow(true, compute, memory, Content::ReadRequest.blocks() as u32 * 8));
        self.flows.push(data);
        let data = self.flows.len() as u32 - 1;
        // The receiver of an answer knows of it before its source does.
        if read && self.params.scheme == Scheme::Ird {
            self.known(data, now_ps);
        }
        let first = match request {
            Some(request) => {
                self.flows.push(request);
                data + 1
            }
            None => data,
        };
        self.start(first, now_ps);
    }

    /// A flow starts at its source.
    fn start(&mut self, nth: u32, now_ps: u64) {
        let flow = &mut self.flows[nth as usize];
        flow.there = true;
        let (source, request) = (flow.source, flow.request);
        match self.params.scheme {
            Scheme::Ird if !request => {
                if self.messages[self.flows[nth as usize].message as usize].operation == Operation::Write {
                    self.known(nth, now_ps);
                }
            }
            Scheme::Fastpass if !request => self.ask_centre(nth, now_ps),
            _ => self.offer(source, nth),
        }
        self.agenda.add(now_ps, Event::Nic(source));
    }

    /// Adds a flow to those of which its source may send.
    fn offer(&mut self, source: u16, nth: u32) {
        let flows = &mut self.hosts[usize::from(source)].flows;
        if !flows.contains(&nth) {
            flows.push_back(nth);
        }
    }

    /// Blocks of a packet on a link.
    fn blocks(&self, bytes: u32) -> u64 {
        match self.params.framing {
            Framing::Payload => u64::from(bytes).div_ceil(8),
            // Headers of Ethernet, IP and a transport, FCS, preamble and gap; at least a frame of 64 bytes.
            Framing::Blocks | Framing::Ethernet => (u64::from(bytes) + 14 + 40 + 4).max(64).div_ceil(8) + 3,
        }
    }

    fn packet(&self, nth: u32, bytes: u32) -> Packet {
        let flow = &self.flows[nth as usize];
        Packet {
            flow: nth,
            kind: Kind::Data,
            bytes,
            marked: false,
            from: flow.source,
            to: flow.destination,
            blocks: self.blocks(bytes),
            rank: flow.left().into(),
        }
    }

    /// Sends a control packet.
    fn control(&mut self, packet: Packet, now_ps: u64) {
        let from = packet.from;
        self.hosts[usize::from(from)].control.push_back(packet);
        self.nic(from, now_ps);
    }

    fn nic(&mut self, nth: u16, now_ps: u64) {
        let host = &mut self.hosts[usize::from(nth)];
        if host.busy {
            return;
        }
        let packet = match host.control.pop_front() {
            Some(control) => Some(control),
            None if host.paused => None,
            None => self.next_packet(nth, now_ps),
        };
        let Some(packet) = packet else { return };
        self.hosts[usize::from(nth)].busy = true;
        if packet.kind == Kind::Data {
            let flow = &self.flows[packet.flow as usize];
            let times = &mut self.shown.times[flow.message as usize];
            let first = if flow.request { &mut times.asked_ps } else { &mut times.sent_ps };
            first.get_or_insert(now_ps);
        }
        let modules = &self.params.modules;
        let head_ps = now_ps + modules.link_ps + modules.identify_ps + modules.forward_ps;
        self.agenda.add(now_ps + packet.blocks * self.block_ps, Event::NicDone(nth));
        self.agenda.add(head_ps, Event::AtSwitch(packet));
    }

    /// The next packet of a host's flows.
    fn next_packet(&mut self, host: u16, now_ps: u64) -> Option<Packet> {
        let (flow, bytes) = match self.params.scheme {
            Scheme::Ird | Scheme::Fastpass => self.credited(host, now_ps)?,
            Scheme::Cxl => self.next_with_credit(host)?,
            Scheme::Dctcp | Scheme::Pfabric | Scheme::PfcDcqcn => self.next_in_window(host, now_ps)?,
        };
        let packet = self.packet(flow, bytes);
        let of = &mut self.flows[flow as usize];
        of.sent += bytes;
        of.window.sent(bytes);
        let (left, flows) = (of.left(), &mut self.hosts[usize::from(host)].flows);
        // Those with more to send take turns.
        if let Some(at) = flows.iter().position(|other| *other == flow) {
            flows.remove(at);
            if left > 0 {
                flows.push_back(flow);
            }
        }
        Some(packet)
    }

    /// The requests of reads, which need no permission.
    fn next_request(&self, host: u16) -> Option<(u32, u32)> {
        let flow = *self.hosts[usize::from(host)].flows.front()?;
        Some((flow, self.flows[flow as usize].left()))
    }

    fn at_switch(&mut self, packet: Packet, now_ps: u64) {
        let port = &mut self.ports[usize::from(packet.to)];
        if packet.kind != Kind::Data {
            port.control.push_back(packet);
        } else {
            match self.params.scheme {
                Scheme::Cxl => self.ports[usize::from(packet.from)].ingress.push_back(packet),
                Scheme::Ird | Scheme::Fastpass => self.enqueue(packet),
                Scheme::Dctcp | Scheme::Pfabric | Scheme::PfcDcqcn => self.admit(packet, now_ps),
            }
            if self.params.scheme == Scheme::Cxl {
                self.cross(packet.from, now_ps);
            }
        }
        self.port(packet.to, now_ps);
    }

    fn enqueue(&mut self, packet: Packet) {
        let port = &mut self.ports[usize::from(packet.to)];
        port.bytes += u64::from(packet.bytes);
        port.queue.push_back(packet);
        // What is being sent does not wait.
        let waiting = port.bytes - if port.busy { 0 } else { u64::from(packet.bytes) };
        self.shown.queue_max_bytes = self.shown.queue_max_bytes.max(waiting);
    }

    fn port(&mut self, nth: u16, now_ps: u64) {
        let port = &mut self.ports[usize::from(nth)];
        if port.busy {
            return;
        }
        let packet = match port.control.pop_front() {
            Some(control) => control,
            None => {
                // The first of the best rank: all have the same, except pFabric's.
                let best = match self.params.scheme {
                    Scheme::Pfabric => (0..port.queue.len()).min_by_key(|at| port.queue[*at].rank),
                    _ => Some(0),
                };
                let Some(packet) = best.and_then(|at| port.queue.remove(at)) else { return };
                port.bytes -= u64::from(packet.bytes);
                packet
            }
        };
        port.busy = true;
        let done_ps = now_ps + packet.blocks * self.block_ps;
        self.agenda.add(done_ps, Event::PortDone(nth));
        self.agenda.add(
            done_ps + self.params.modules.link_ps + self.params.modules.data_in_ps,
            Event::AtHost(packet),
        );
        if packet.kind == Kind::Data {
            self.left_switch(&packet, now_ps);
        }
    }

    /// A packet has left its queue.
    fn left_switch(&mut self, packet: &Packet, now_ps: u64) {
        match self.params.scheme {
            Scheme::Cxl => self.cross_all(packet.to, now_ps),
            Scheme::PfcDcqcn => self.unpause(packet, now_ps),
            _ => {}
        }
    }

    fn at_host(&mut self, packet: Packet, now_ps: u64) {
        match packet.kind {
            Kind::Data => self.received(packet, now_ps),
            Kind::Ack => {
                self.acknowledged(&packet, now_ps);
                self.nic(packet.to, now_ps);
            }
            Kind::Credit { from_ps } => {
                self.hosts[usize::from(packet.to)].credits.push((packet.flow, packet.bytes, from_ps));
                self.agenda.add(now_ps.max(from_ps), Event::Nic(packet.to));
            }
            Kind::Ask => self.asked(packet.flow, now_ps),
        }
    }

    fn received(&mut self, packet: Packet, now_ps: u64) {
        let flow = &mut self.flows[packet.flow as usize];
        flow.received += packet.bytes;
        let (message, whole, request) = (flow.message as usize, flow.received >= flow.bytes, flow.request);
        if self.params.scheme == Scheme::Ird && !request {
            self.arrived(packet.to, packet.bytes, now_ps);
        }
        self.acknowledge(&packet, now_ps);
        if whole && request {
            self.shown.times[message].reached_ps = Some(now_ps);
            // The flow of the answer was made just before the request's.
            self.start(packet.flow - 1, now_ps + self.params.modules.data_out_ps);
        } else if whole {
            self.shown.times[message].done_ps = Some(now_ps);
        }
    }
}
