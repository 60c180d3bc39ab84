//! The schemes that EDM is compared with (§4.3), packet by packet, on the same links, hosts and switch latencies.
//!
//! ```text
//! host: flows ─▶ NIC ─▶ link ─▶ [ingress, CXL only] ─▶ egress queue ─▶ link ─▶ host
//!         ▲ credits, acknowledgements, grants: control packets of one block, ahead of data
//! ```
//!
//! A write is a flow of data; a read is a flow of two blocks with the request, then a flow of data. A scheme decides which packet
//! a NIC sends next, how an egress queue handles another packet, and how a host reacts to a packet's arrival. Packets
//! are forwarded as they arrive (cut-through); a packet that is being sent is not interrupted.

mod central;
mod credits;
mod headers;
mod nic;
mod receiver;
mod switch;
mod window;

use super::latency::Modules;
use super::message::{Message, Operation, Shown};
use super::messages::Messages;
use crate::kernel::Agenda;
pub use headers::Headers;
use p4rack_fabric::edm::blocks::{Content, block_ps};
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
    /// Bytes of packets in addition to their payload.
    pub headers: Headers,
    /// An access to memory: data is fetched before it is sent, and stored when it has come.
    pub memory_ps: u64,
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
struct SwitchPort {
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
    messages: Messages<'a>,
    block_ps: u64,
    agenda: Agenda<Event>,
    hosts: Vec<Host>,
    ports: Vec<SwitchPort>,
    flows: Vec<Flow>,
    central: central::Central,
}

impl<'a> Run<'a> {
    /// A rack with these messages, sorted by time, or of which each node has `in_flight` under way.
    pub fn new(params: &'a Packets, messages: &'a [Message], in_flight: Option<u32>) -> Run<'a> {
        // The last one is Fastpass's server.
        let nodes = usize::from(params.nodes) + 1;
        let flows = Vec::with_capacity(messages.len());
        let (messages, first) = Messages::new(messages, in_flight, nodes, params.memory_ps);
        let mut agenda = Agenda::default();
        first.into_iter().for_each(|(at_ps, nth)| agenda.add(at_ps, Event::Message(nth)));
        let host = Host { ingress_credit: params.buffer, ..Host::default() };
        Run {
            params,
            messages,
            block_ps: block_ps(params.rate_bps),
            agenda,
            hosts: vec![host; nodes],
            ports: vec![SwitchPort::default(); nodes],
            flows,
            central: central::Central::new(nodes),
        }
    }

    /// Runs until nothing is under way.
    pub fn run(mut self) -> Shown {
        while let Some((now_ps, event)) = self.agenda.next() {
            self.handle(event, now_ps);
        }
        self.messages.shown
    }

    fn handle(&mut self, event: Event, now_ps: u64) {
        match event {
            Event::Message(nth) => {
                let message = self.messages.all[nth as usize];
                let next = self.messages.begins(nth, now_ps);
                self.agenda.extend(next.map(|(at_ps, next)| (at_ps, Event::Message(next))));
                let fetched_ps = match message.operation {
                    Operation::Read => now_ps,
                    Operation::Write => now_ps + self.params.memory_ps,
                };
                match message.is_local() {
                    true => self.stored(nth, now_ps),
                    false => self.begin(nth, &message, fetched_ps + self.params.modules.request_ps),
                }
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
                self.messages.shown.again += 1;
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
                if self.messages.all[self.flows[nth as usize].message as usize].operation == Operation::Write
                {
                    self.known(nth, now_ps);
                }
            }
            Scheme::Fastpass if !request => self.ask_centre(nth, now_ps),
            _ => self.offer(source, nth),
        }
        self.agenda.add(now_ps, Event::Nic(source));
    }

    /// Blocks of a packet of this flow on a link.
    fn blocks(&self, flow: &Flow, bytes: u32) -> u64 {
        let content = match self.messages.all[flow.message as usize].operation {
            Operation::Read if flow.request => Content::ReadRequest,
            Operation::Read => Content::Response(bytes),
            Operation::Write => Content::Write(bytes),
        };
        self.params.headers.blocks(content)
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
            blocks: self.blocks(flow, bytes),
            rank: flow.left().into(),
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
            self.messages.shown.times[message].reached_ps = Some(now_ps);
            // The flow of the answer was made just before the request's.
            self.start(packet.flow - 1, now_ps + self.params.memory_ps + self.params.modules.data_out_ps);
        } else if whole {
            self.stored(message as u32, now_ps);
        }
    }

    /// A message's last byte has arrived, and goes into memory, which lets another one begin in a closed loop.
    fn stored(&mut self, nth: u32, now_ps: u64) {
        let next = self.messages.stored(nth, now_ps);
        self.agenda.extend(next.map(|(at_ps, next)| (at_ps, Event::Message(next))));
    }
}
