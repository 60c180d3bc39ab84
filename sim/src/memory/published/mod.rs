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
//! - The switch looks through all demands by remaining bytes, once a slot, and grants those whose source and
//!   destination are free: at most 256 bytes, one chunk at a time of each message. A chunk counts as in flight until
//!   its blocks leave the switch; a destination with 256 bytes or fewer in flight is free, and so is the source that it
//!   was locked by.
//!
//! The run ends when the last flow has started; the figure is the mean over flows that are finished then, where a read
//! counts as two flows. The divisor is a formula, not a measured time.

mod figure;
mod hosts;

pub use figure::slowdown_of;

use super::message::{Message, Operation, Shown, Times};
use figure::{Kind, expected_slots, mean};
use hosts::Host;
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

    /// One slot, and all slots up to the next flow's if nothing is under way. Returns whether work remains.
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
}

/// Takes the block that arrives in this slot.
fn due(link: &mut VecDeque<(u64, Block)>, slot: u64) -> Option<Block> {
    link.pop_front_if(|(at, _)| *at <= slot).map(|(_, block)| block)
}
