//! A host: scripted senders, and receivers that check what arrives.
//!
//! ```text
//!  OutFlow: Timed, Replay, Requests, TCP's sender, memory's client ─▶ agent, if its rack has them ─▶ queue of the link ─▶
//!  ◀─ InFlow: numbers, latencies; a server's answers; TCP's receiver ◀─ find ◀─ agent ◀─
//!     Machines: memory for others, and frames beside the agent
//! ```

use super::agent::Agent;
use super::counts::Counts;
use super::experiment::Capture;
use super::frame::{Headers, Tag};
use super::memory::{Client, Machines, Setup};
use super::plan::{Flow, Plan};
use super::sender::{Arrived, Replay, Requests, Server, Timed, parts};
use super::spec::SendKind;
use super::stream::{Stream, StreamEnd};
use super::wires::{Outlet, Wires};
use crate::check::Digest;
use crate::frames::Frame;
use crate::random::Random;
use crate::record::FRAMES_MAX;
use p4rack_wire::{Histogram, Nanos};

/// Bit of a part's number: it belongs to an answer.
pub(super) const BACK: u8 = 0x80;

/// State of a flow's sender.
#[derive(Debug)]
pub(super) enum Sender {
    Timed(Timed),
    Replay(Replay),
    Requests(Requests),
    Stream(Box<Stream>),
    Memory(Box<Client>),
}

/// A flow that begins here.
#[derive(Debug)]
pub(super) struct OutFlow {
    pub id: u16,
    pub sender: Sender,
    /// Number of the next frame.
    number: u32,
    /// Frames sent; with `memory` operations.
    pub sent: u64,
    /// With `request-response` and `memory`: answers that have arrived, and their payload bytes in the measured time.
    pub answers: u64,
    pub answer_bytes: u64,
    pub latency: Option<Box<Histogram>>,
}

/// State of a flow's receiver, besides counters.
#[derive(Debug)]
pub(super) enum Receiver {
    Sink,
    Server(Server),
    Stream(Box<StreamEnd>),
    /// None: completed operations count at the sender.
    Memory,
}

/// A flow that ends here.
#[derive(Debug)]
pub(super) struct InFlow {
    pub receiver: Receiver,
    pub arrived: Arrived,
    /// Frames that arrived, each once, and their payload bytes in the measured time.
    pub received: u64,
    pub bytes: u64,
    pub latency: Option<Box<Histogram>>,
}

/// A frame of a captured link.
pub(super) type Captured = (Nanos, Vec<u8>);

/// A host in virtual time.
#[derive(Debug)]
pub(super) struct HostNode {
    /// Position in the topology.
    pub index: usize,
    /// The agent of its rack's protocol.
    pub agent: Option<Box<Agent>>,
    /// Its machines for remote memory.
    pub machines: Option<Box<Machines>>,
    pub outlet: Outlet,
    /// How long frames may wait for the link.
    queue: Nanos,
    pub out: Vec<OutFlow>,
    pub into: Vec<InFlow>,
    pub now: Nanos,
    pub digest: Digest,
    /// Frames dropped because too many waited for the link.
    pub queue_full: u64,
    /// Frames of its link in both directions, if they are captured, and the number of those beyond the limit.
    pub captured: Option<Vec<Captured>>,
    pub uncaptured: u64,
}

impl HostNode {
    /// A host with the flows of `plan` that begin or end at it. Errors: one has no memory in `setup`.
    pub fn new(
        (index, agent): (usize, Option<Box<Agent>>),
        outlet: Outlet,
        plan: &Plan,
        captures: &[Option<Capture>],
        setup: &mut Setup,
        seed: u64,
    ) -> Result<HostNode, String> {
        let (mut out, mut into) = (Vec::new(), Vec::new());
        let coarse = || plan.by_flow.then(|| Box::new(Histogram::coarse()));
        for (id, flow) in plan.flows.iter().enumerate() {
            let traffic = &plan.traffic[usize::from(flow.traffic)];
            let random = |end: u64| Random::stream(seed, (0x666c << 32) + end + 2 * id as u64);
            let send = traffic.spec.send;
            if usize::from(flow.from) == index {
                let sender = match send {
                    SendKind::Constant | SendKind::Poisson => {
                        Sender::Timed(Timed::new(traffic, send == SendKind::Poisson, random(0)))
                    }
                    SendKind::Pcap => {
                        let capture = captures.get(usize::from(flow.traffic)).cloned().flatten();
                        Sender::Replay(Replay::new(traffic, capture.unwrap_or_default()))
                    }
                    SendKind::RequestResponse => Sender::Requests(Requests::new(traffic, random(0))),
                    SendKind::Tcp | SendKind::Cubic | SendKind::Dctcp => {
                        Sender::Stream(Box::new(Stream::new(traffic, plan.tcp, random(0))))
                    }
                    SendKind::Memory => Sender::Memory(Box::new(setup.client(id as u16)?)),
                };
                let latency = coarse();
                out.push(OutFlow {
                    id: id as u16,
                    sender,
                    number: 0,
                    sent: 0,
                    answers: 0,
                    answer_bytes: 0,
                    latency,
                });
            }
            if usize::from(flow.to) == index {
                let receiver = match send {
                    SendKind::RequestResponse => Receiver::Server(Server::new(traffic, random(1))),
                    SendKind::Memory => Receiver::Memory,
                    _ if send.is_tcp() => Receiver::Stream(Box::default()),
                    _ => Receiver::Sink,
                };
                let latency = matches!(send, SendKind::Constant | SendKind::Poisson).then(coarse).flatten();
                into.push(InFlow { receiver, arrived: Arrived::default(), received: 0, bytes: 0, latency });
            }
        }
        Ok(HostNode {
            index,
            agent,
            machines: setup.machines(index).map(Box::new),
            // Without a rate nothing waits.
            queue: Nanos::on_wire(plan.host_queue_bytes, outlet.link.rate_bps()),
            outlet,
            out,
            into,
            now: Nanos::ZERO,
            digest: Digest::new(),
            queue_full: 0,
            captured: None,
            uncaptured: 0,
        })
    }

    /// When a flow's sender has something to do.
    #[inline]
    pub fn due_of(&self, out: usize) -> Nanos {
        match &self.out[out].sender {
            Sender::Timed(timed) => timed.next,
            Sender::Replay(replay) => replay.due(),
            Sender::Requests(requests) => requests.due(),
            Sender::Stream(stream) => stream.due,
            Sender::Memory(client) => client.due(),
        }
    }

    /// The component of its dues for the agent; those before it are the link and senders.
    pub fn agent_component(&self) -> usize {
        self.out.len() + 1
    }

    /// That for machines of remote memory, the last one.
    pub fn memory_component(&self) -> usize {
        self.out.len() + 2
    }

    /// Handles the earliest event: component 0 is the link, then come senders, then the agent.
    #[inline]
    pub fn step(
        &mut self,
        at: usize,
        (component, due): (usize, Nanos),
        plan: &Plan,
        wires: &mut Wires,
        counts: &mut Counts,
    ) {
        self.now = self.now.max(due);
        let changed = match component {
            0 => {
                let inlets = &mut wires.inlets[at];
                let received = inlets.ends[0].receive(self.now);
                inlets.dues.set(0, inlets.ends[0].due());
                let Some(received) = received else { return };
                let changed = self.arrive(&received.frame, received.arrived, plan, wires, counts);
                wires.frames.release(received.frame);
                changed
            }
            _ if component == self.agent_component() => {
                if let Some(agent) = &mut self.agent {
                    agent.wake(self.now);
                }
                None
            }
            _ if component == self.memory_component() => None,
            _ => {
                self.work(component - 1, plan, wires, counts);
                Some(component - 1)
            }
        };
        if let Some(out) = changed {
            let due = self.due_of(out);
            wires.inlets[at].dues.set(out + 1, due);
        }
        if self.machines.is_some() {
            self.serve(at, plan, wires, counts);
        }
        if self.agent.is_some() {
            self.drain(at, wires, counts);
        }
    }

    /// Puts frames of the agent into the queue of the link.
    fn drain(&mut self, at: usize, wires: &mut Wires, counts: &mut Counts) {
        let Some(mut agent) = self.agent.take() else { return };
        while let Some(frame) = agent.next(self.now, &mut wires.frames) {
            self.put(frame, wires, counts);
        }
        wires.inlets[at].dues.set(self.agent_component(), agent.due(self.now));
        self.agent = Some(agent);
    }

    /// Handles the timeout of a sender.
    fn work(&mut self, out: usize, plan: &Plan, wires: &mut Wires, counts: &mut Counts) {
        let flow = &plan.flows[usize::from(self.out[out].id)];
        match &mut self.out[out].sender {
            Sender::Timed(timed) => {
                let bytes = timed.create();
                for bytes in parts(bytes) {
                    let number = self.out[out].number;
                    self.out[out].number = number.wrapping_add(1);
                    let tag = self.tag(self.out[out].id, number, (0, 0));
                    self.datagram(out, (&flow.headers, tag), bytes, plan, wires, counts);
                }
            }
            Sender::Replay(replay) => {
                let mut frame = wires.frames.take(false);
                replay.take(&mut frame);
                self.count(out, plan, counts);
                self.send(frame, wires, counts);
            }
            Sender::Requests(_) => self.ask(out, flow, plan, wires, counts),
            Sender::Stream(_) => self.drive(out, plan, wires, counts),
            Sender::Memory(_) => self.operate(out, plan, wires, counts),
        }
    }

    fn tag(&self, flow: u16, number: u32, (part, last): (u8, u8)) -> Tag {
        Tag { flow, number, time: self.now, part, last }
    }

    fn ask(&mut self, out: usize, flow: &Flow, plan: &Plan, wires: &mut Wires, counts: &mut Counts) {
        while let Sender::Requests(requests) = &mut self.out[out].sender
            && let Some((number, bytes)) = requests.create(self.now)
        {
            let last = parts(bytes).count().saturating_sub(1) as u8;
            for (part, bytes) in parts(bytes).enumerate() {
                let tag = self.tag(self.out[out].id, number, (part as u8, last));
                self.datagram(out, (&flow.headers, tag), bytes, plan, wires, counts);
            }
        }
    }

    /// Counts a frame of a flow that begins here.
    #[inline]
    fn count(&mut self, out: usize, plan: &Plan, counts: &mut Counts) {
        self.out[out].sent += 1;
        let traffic = plan.flows[usize::from(self.out[out].id)].traffic;
        counts.traffic[usize::from(traffic)].sent += 1;
    }

    #[inline]
    fn datagram(
        &mut self,
        out: usize,
        (headers, tag): (&Headers, Tag),
        bytes: usize,
        plan: &Plan,
        wires: &mut Wires,
        counts: &mut Counts,
    ) {
        let mut frame = wires.frames.take(bytes < 200);
        headers.datagram(&tag, bytes, &mut frame);
        self.count(out, plan, counts);
        self.send(frame, wires, counts);
    }

    /// Gives a sender's frame to the agent, or else to the link.
    #[inline]
    pub(super) fn send(&mut self, frame: Frame, wires: &mut Wires, counts: &mut Counts) {
        match &mut self.agent {
            Some(agent) => {
                agent.give(&frame, self.now);
                wires.frames.release(frame);
            }
            None => self.put(frame, wires, counts),
        }
    }

    /// Puts a frame into the queue of the link.
    #[inline]
    pub(super) fn put(&mut self, mut frame: Frame, wires: &mut Wires, counts: &mut Counts) {
        counts.sent += 1;
        if self.outlet.link.backlog(self.now) > self.queue {
            counts.queue_full += 1;
            self.queue_full += 1;
            return wires.frames.release(frame);
        }
        if self.captured.is_some() {
            self.capture(&frame);
        }
        frame.hops = 0;
        wires.send(&mut self.outlet, frame, self.now);
    }

    #[cold]
    pub(super) fn capture(&mut self, frame: &[u8]) {
        match &mut self.captured {
            Some(captured) if captured.len() < FRAMES_MAX => captured.push((self.now, frame.to_vec())),
            _ => self.uncaptured += 1,
        }
    }
}
