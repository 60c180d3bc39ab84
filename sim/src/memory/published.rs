//! The model of the EDM authors' own simulator, with all that it leaves out and with its way of counting. It is for
//! calibration; its results are not p4rack's.
//!
//! Time advances in slots of one 8-byte block (0.64 ns at 100 Gb/s); a hop takes 16 slots. In each slot the switch grants, then
//! forwards; each host sends one block; each port of the switch sends one block; then switch and hosts receive.
//!
//! - A host sends granted data first, then notifications and read requests; ties go to read requests, then to the
//!   fewest remaining bytes. Hosts, PHY, pipeline, scheduler and memory take no time.
//! - A read request is two blocks. The switch consumes it; when it grants the answer's first chunk, it sends request and
//!   grant to the memory node, a block each. Every other grant is one block.
//! - The switch looks through all demands by remaining bytes, once a slot, and grants what finds source and destination
//!   free: at most 256 bytes, one chunk at a time of each message. A chunk counts as in flight until its blocks leave the
//!   switch; a destination with 256 bytes or fewer in flight is free, and so is the source that it was locked by.
//!
//! The run ends when the last flow has started; the figure is the mean over flows that are finished then, where a read
//! counts as two flows. The divisor is a formula, not a measured time.

use super::message::{Message, Operation, Shown, Times};
use std::collections::VecDeque;

/// A slot, in picoseconds.
pub const SLOT_PS: u64 = 640;
/// Slots of a hop: 10 ns.
const HOP_SLOTS: u64 = 16;
const BLOCK_BYTES: i64 = 8;
const CHUNK_BYTES: i64 = 256;
const REQUEST_BYTES: i64 = 16;
/// Maximum nodes of a rack.
const NODES_MAX: usize = 512;
/// After this many idle slots in a row, nothing is under way.
const IDLE_SLOTS_MAX: u64 = 4 * HOP_SLOTS;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    Granted,
    ToNotify,
    Waiting,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Request,
    Response,
    Write,
}

/// A stream of blocks from one host to another. A read is two of them.
#[derive(Clone, Debug)]
struct Flow {
    kind: Kind,
    state: State,
    source: usize,
    destination: usize,
    bytes: i64,
    /// Bytes that the message reads or writes.
    asked: i64,
    /// Bytes that it may send now.
    quota: i64,
    sent: i64,
    received: i64,
    slot: u64,
    finished: Option<u64>,
    /// The message that it belongs to.
    message: usize,
    /// A request's response, once it exists.
    response: Option<usize>,
}

impl Flow {
    /// The time by which its own is divided, in slots.
    fn expected_slots(&self, message: &Message) -> u64 {
        expected_slots(self.kind, message.bytes.into())
    }
}

/// The time by which the authors divide that of a flow, in slots, for a message of `bytes`.
fn expected_slots(kind: Kind, bytes: u64) -> u64 {
    let (hop, long) = (HOP_SLOTS, bytes > CHUNK_BYTES as u64);
    let request = REQUEST_BYTES as u64 / 8 + 4 * hop + if long { bytes / 8 + 4 * hop } else { 0 };
    match kind {
        Kind::Request => request,
        Kind::Write => bytes / 8 + 4 * hop + bytes.min(1_024) / 8 + if long { 4 * hop } else { 0 },
        Kind::Response if long => 2 * hop + (bytes / 256 + 1) * 32 + request,
        Kind::Response => bytes / 8 + 2 * hop,
    }
}

/// A flow: kind, bytes, times of creation, start and end.
type FlowTimes = (Kind, u64, u64, Option<u64>, Option<u64>);

/// The mean of this many ratios.
fn mean(sum: f64, count: u32) -> Result<f64, String> {
    match count {
        0 => Err("published normalisation: no flow is finished when the last one starts".to_owned()),
        _ => Ok(sum / f64::from(count)),
    }
}

/// The authors' figure for a run of another scheme, with their stop rule and normalisation. An error if no flow has ended
/// by then.
pub fn slowdown_of(messages: &[Message], times: &[Times]) -> Result<f64, String> {
    let mut flows: Vec<FlowTimes> = Vec::new();
    for (message, times) in messages.iter().zip(times) {
        let bytes = u64::from(message.bytes);
        match message.operation {
            Operation::Write => flows.push((Kind::Write, bytes, message.at_ps, times.sent_ps, times.done_ps)),
            Operation::Read => {
                flows.push((Kind::Request, bytes, message.at_ps, times.asked_ps, times.reached_ps));
                if let Some(reached_ps) = times.reached_ps {
                    flows.push((Kind::Response, bytes, reached_ps, times.sent_ps, times.done_ps));
                }
            }
        }
    }
    let stop_ps = stop_ps(&flows);
    let (mut sum, mut count) = (0.0, 0u32);
    for (kind, bytes, created_ps, _, done_ps) in flows {
        if let Some(done_ps) = done_ps.filter(|done_ps| *done_ps <= stop_ps) {
            let expected_ps = expected_slots(kind, bytes) * SLOT_PS;
            sum += ((done_ps - created_ps) as f64 / expected_ps as f64).max(1.0);
            count += 1;
        }
    }
    mean(sum, count)
}

/// The time at which all existing flows have started. An answer exists from the time of its request, all others from the
/// beginning.
fn stop_ps(flows: &[FlowTimes]) -> u64 {
    let started = |first: bool| {
        let of = flows.iter().filter(move |flow| (flow.0 != Kind::Response) == first);
        of.map(|flow| (flow.2, flow.3.unwrap_or(u64::MAX)))
    };
    let mut stop_ps = started(true).map(|(_, started_ps)| started_ps).max().unwrap_or(0);
    // Answers that exist by then but have not started delay it, and so do those created in the meantime.
    let mut answers: Vec<(u64, u64)> = started(false).collect();
    answers.sort_unstable();
    for (created_ps, started_ps) in answers {
        if created_ps > stop_ps {
            break;
        }
        stop_ps = stop_ps.max(started_ps);
    }
    stop_ps
}

/// A demand in the switch.
#[derive(Clone, Debug)]
struct Demand {
    flow: usize,
    source: usize,
    destination: usize,
    remaining: i64,
    /// Bytes of the last granted chunk that have not left the switch.
    in_flight: i64,
    granted: bool,
    request_waits: bool,
}

#[derive(Clone, Copy, Debug)]
enum Block {
    Notification(usize),
    Request { flow: usize, first: bool },
    Grant { flow: usize, bytes: i64 },
    Data(usize),
}

#[derive(Clone, Debug, Default)]
struct Host {
    /// Flows that may send, except the current one.
    ready: Vec<usize>,
    current: Option<usize>,
    /// On the link to the switch, with the slot of arrival.
    up: VecDeque<(u64, Block)>,
    /// In the switch, for this host.
    queue: VecDeque<Block>,
    /// On the link from the switch.
    down: VecDeque<(u64, Block)>,
    /// The source that locks this host as a destination.
    locked_by: Option<usize>,
    /// Bytes granted towards it that have not left the switch.
    in_flight: i64,
}

/// A run of the authors' model.
pub struct Published<'a> {
    messages: &'a [Message],
    flows: Vec<Flow>,
    demands: Vec<Demand>,
    demand_of: Vec<usize>,
    /// Demands with something left to grant, by remaining bytes.
    sorted: Vec<usize>,
    /// Positions in `sorted` whose demands were granted in the last slot.
    changed: Vec<usize>,
    /// Demands that came in the last slot.
    fresh: Vec<usize>,
    /// Flows whose data came in the last slot.
    arrived: Vec<usize>,
    hosts: Vec<Host>,
    slot: u64,
    /// Slots since something was last done.
    idle_slots: u64,
    started: usize,
    starting: VecDeque<usize>,
    queue_max: usize,
}

impl<'a> Published<'a> {
    /// A rack of `nodes` with these messages, sorted by time.
    pub fn new(nodes: usize, messages: &'a [Message]) -> Published<'a> {
        let flow = |(nth, message): (usize, &Message)| {
            let read = message.operation == Operation::Read;
            Flow {
                kind: if read { Kind::Request } else { Kind::Write },
                state: State::ToNotify,
                source: message.compute.into(),
                destination: message.memory.into(),
                bytes: if read { REQUEST_BYTES } else { message.bytes.into() },
                asked: message.bytes.into(),
                quota: if read { REQUEST_BYTES } else { 0 },
                sent: 0,
                received: 0,
                slot: message.at_ps / SLOT_PS,
                finished: None,
                message: nth,
                response: None,
            }
        };
        let flows: Vec<Flow> = messages.iter().enumerate().map(flow).collect();
        Published {
            messages,
            demands: Vec::new(),
            demand_of: vec![usize::MAX; flows.len()],
            sorted: Vec::new(),
            changed: Vec::new(),
            fresh: Vec::new(),
            arrived: Vec::new(),
            hosts: vec![Host::default(); nodes],
            slot: 0,
            idle_slots: 0,
            started: 0,
            starting: (0..flows.len()).collect(),
            queue_max: 0,
            flows,
        }
    }

    /// The authors' figure: the mean of max(1, time ÷ expected) over the flows that have ended when the last one starts.
    ///
    /// An error if some never start: of a size that is no whole number of blocks, hosts never send the last block, and enough
    /// of them lock a destination for good.
    pub fn slowdown(mut self) -> Result<f64, String> {
        while self.started < self.flows.len() {
            if !self.advance() {
                let stuck = self.flows.len() - self.started;
                return Err(format!(
                    "published normalisation: {stuck} of {} flows never start, as in the authors' simulator",
                    self.flows.len()
                ));
            }
        }
        let (mut sum, mut count) = (0.0, 0u32);
        for flow in &self.flows {
            if let Some(finished) = flow.finished {
                let slots = (finished - flow.slot) as f64;
                sum += (slots / flow.expected_slots(&self.messages[flow.message]) as f64).max(1.0);
                count += 1;
            }
        }
        mean(sum, count)
    }

    /// Runs until all messages are complete. Sizes are rounded up to whole blocks, because the authors' hosts never send the
    /// last block of other sizes: a rest of less than a block makes them wait for a grant that has been used.
    pub fn run(mut self) -> Shown {
        for flow in &mut self.flows {
            flow.asked = (flow.asked + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
            flow.bytes = (flow.bytes + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
        }
        while self.advance() {}
        let mut times = vec![Times::default(); self.messages.len()];
        for flow in self.flows.iter().filter(|flow| flow.kind != Kind::Request) {
            // The authors' times start with slots, not with the message's own time.
            let message = &self.messages[flow.message];
            let since_ps = |slot: u64| message.at_ps + (slot - message.at_ps / SLOT_PS) * SLOT_PS;
            times[flow.message].done_ps = flow.finished.map(since_ps);
        }
        Shown { times, queue_max_bytes: self.queue_max as u64 * BLOCK_BYTES as u64, ..Shown::default() }
    }

    /// One slot, and all slots up to the next flow's if nothing is under way. Returns whether there is more to do.
    fn advance(&mut self) -> bool {
        self.idle_slots = if self.step() { 0 } else { self.idle_slots + 1 };
        if self.idle_slots < IDLE_SLOTS_MAX {
            return true;
        }
        let Some(&next) = self.starting.front() else { return false };
        self.slot = self.slot.max(self.flows[next].slot);
        true
    }

    /// One slot. Returns whether anything happened.
    fn step(&mut self) -> bool {
        while let Some(&flow) = self.starting.front()
            && self.flows[flow].slot <= self.slot
        {
            self.starting.pop_front();
            let source = self.flows[flow].source;
            self.hosts[source].ready.push(flow);
        }
        let granted = self.grant();
        let mut busy = granted;
        for host in 0..self.hosts.len() {
            busy |= self.send(host);
        }
        for host in 0..self.hosts.len() {
            busy |= self.forward(host);
        }
        for host in 0..self.hosts.len() {
            self.receive_at_switch(host);
        }
        for host in 0..self.hosts.len() {
            self.receive(host);
        }
        self.slot += 1;
        busy
    }

    /// The switch: unlocks destinations, then grants from the shortest demand to the longest.
    fn grant(&mut self) -> bool {
        let mut legal = [true; NODES_MAX];
        for host in &mut self.hosts {
            if host.in_flight <= 2 * BLOCK_BYTES * HOP_SLOTS as i64 {
                host.locked_by = None;
            }
            if let Some(source) = host.locked_by {
                legal[source] = false;
            }
        }
        self.sort();
        let mut any = false;
        for position in 0..self.sorted.len() {
            let nth = self.sorted[position];
            let demand = &mut self.demands[nth];
            let (source, destination) = (demand.source, demand.destination);
            if demand.granted || self.hosts[destination].locked_by.is_some() || !legal[source] {
                continue;
            }
            let bytes = demand.remaining.min(CHUNK_BYTES);
            (demand.granted, demand.in_flight) = (true, bytes);
            demand.remaining -= bytes;
            legal[source] = false;
            self.hosts[destination].locked_by = Some(source);
            self.hosts[destination].in_flight += bytes;
            let queue = &mut self.hosts[source].queue;
            if std::mem::take(&mut demand.request_waits) {
                queue.push_back(Block::Request { flow: demand.flow, first: false });
            }
            queue.push_back(Block::Grant { flow: demand.flow, bytes });
            self.changed.push(position);
            any = true;
        }
        // Arrivals of the last slot are forwarded in this one.
        for flow in std::mem::take(&mut self.arrived) {
            let queue = &mut self.hosts[self.flows[flow].destination].queue;
            queue.push_back(Block::Data(flow));
            self.queue_max = self.queue_max.max(queue.len());
        }
        any
    }

    /// Sorts demands by remaining bytes; ties keep their order.
    fn sort(&mut self) {
        let mut moved: Vec<usize> = self.changed.iter().map(|position| self.sorted[*position]).collect();
        for position in self.changed.drain(..).rev() {
            self.sorted.remove(position);
        }
        moved.append(&mut self.fresh);
        for nth in moved {
            let remaining = self.demands[nth].remaining;
            if remaining > 0 {
                let position =
                    self.sorted.partition_point(|other| self.demands[*other].remaining <= remaining);
                self.sorted.insert(position, nth);
            }
        }
    }

    /// A host: chooses a flow and sends one block of it.
    fn send(&mut self, nth: usize) -> bool {
        let key = |flow: &Flow| {
            let remaining = if flow.kind == Kind::Request { -1 } else { flow.bytes - flow.sent };
            (flow.state, remaining, flow.slot)
        };
        let host = &mut self.hosts[nth];
        let best = (0..host.ready.len()).min_by_key(|at| key(&self.flows[host.ready[*at]]));
        if host.current.is_some_and(|flow| self.flows[flow].state == State::Waiting) {
            host.current = None;
        }
        if host.current.is_none() {
            host.current = best.map(|at| host.ready.remove(at));
        }
        let Some(number) = host.current else { return false };
        let (flow, arrives) = (&mut self.flows[number], self.slot + HOP_SLOTS);
        if flow.state == State::ToNotify && flow.kind != Kind::Request {
            flow.state = State::Waiting;
            host.up.push_back((arrives, Block::Notification(number)));
            return true;
        }
        if flow.state == State::Waiting || flow.quota <= 0 {
            return false;
        }
        let first = flow.sent == 0;
        host.up.push_back((
            arrives,
            match flow.kind {
                Kind::Request => Block::Request { flow: number, first },
                _ => Block::Data(number),
            },
        ));
        if first {
            self.started += 1;
            if flow.kind == Kind::Request {
                flow.state = State::Granted;
            }
        }
        flow.sent += BLOCK_BYTES;
        flow.quota -= BLOCK_BYTES;
        if flow.sent >= flow.bytes {
            host.current = None;
        } else if flow.quota < BLOCK_BYTES && flow.kind != Kind::Request {
            flow.state = State::Waiting;
            host.current = None;
        }
        true
    }

    /// A port of the switch: sends one block to its host.
    fn forward(&mut self, nth: usize) -> bool {
        let Some(block) = self.hosts[nth].queue.pop_front() else { return false };
        self.hosts[nth].down.push_back((self.slot + HOP_SLOTS, block));
        if let Block::Data(flow) = block {
            let demand = &mut self.demands[self.demand_of[self.flows[flow].message]];
            let counted = demand.in_flight.min(BLOCK_BYTES);
            demand.in_flight -= counted;
            self.hosts[demand.destination].in_flight -= counted;
            if demand.in_flight < 1 {
                demand.granted = false;
            }
        }
        true
    }

    fn receive_at_switch(&mut self, nth: usize) {
        let Some(block) = due(&mut self.hosts[nth].up, self.slot) else { return };
        let (number, bytes) = match block {
            Block::Notification(flow) | Block::Request { flow, first: true } => {
                (flow, self.flows[flow].asked)
            }
            Block::Data(flow) => return self.arrived.push(flow),
            Block::Request { .. } | Block::Grant { .. } => return,
        };
        let flow = &self.flows[number];
        let request = flow.kind == Kind::Request;
        let (source, destination) =
            if request { (flow.destination, flow.source) } else { (flow.source, flow.destination) };
        self.demand_of[flow.message] = self.demands.len();
        self.fresh.push(self.demands.len());
        self.demands.push(Demand {
            flow: number,
            source,
            destination,
            remaining: bytes,
            in_flight: 0,
            granted: false,
            request_waits: request,
        });
    }

    fn receive(&mut self, nth: usize) {
        let Some(block) = due(&mut self.hosts[nth].down, self.slot) else { return };
        match block {
            Block::Data(flow) | Block::Request { flow, .. } => self.received(flow),
            Block::Grant { flow, bytes } if self.flows[flow].kind == Kind::Write => {
                self.granted(nth, flow, bytes)
            }
            Block::Grant { flow, bytes } => match self.flows[flow].response {
                Some(response) => self.granted(nth, response, bytes),
                None => {
                    let request = &self.flows[flow];
                    let response = Flow {
                        kind: Kind::Response,
                        state: State::Granted,
                        source: nth,
                        destination: request.source,
                        bytes: request.asked,
                        quota: bytes,
                        sent: 0,
                        slot: self.slot + 1,
                        ..request.clone()
                    };
                    self.flows[flow].response = Some(self.flows.len());
                    self.starting.push_front(self.flows.len());
                    self.flows.push(Flow { received: 0, finished: None, ..response });
                    self.received(flow);
                }
            },
            Block::Notification(_) => {}
        }
    }

    fn granted(&mut self, host: usize, flow: usize, bytes: i64) {
        if self.flows[flow].state == State::Waiting && self.hosts[host].current != Some(flow) {
            self.hosts[host].ready.push(flow);
        }
        (self.flows[flow].state, self.flows[flow].quota) = (State::Granted, bytes);
    }

    fn received(&mut self, flow: usize) {
        let flow = &mut self.flows[flow];
        flow.received += BLOCK_BYTES;
        if flow.finished.is_none() && flow.received >= flow.bytes {
            flow.finished = Some(self.slot);
        }
    }
}

/// Takes the block that arrives in this slot.
fn due(link: &mut VecDeque<(u64, Block)>, slot: u64) -> Option<Block> {
    link.pop_front_if(|(at, _)| *at <= slot).map(|(_, block)| block)
}
