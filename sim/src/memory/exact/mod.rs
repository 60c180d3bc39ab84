//! EDM as the paper describes it: the exact scheduler, hosts that notify and obey grants, links that carry blocks.
//!
//! ```text
//! write   host ─/N/─▶ switch: demand … grant ─/G/─▶ host ─ chunk ─▶ switch ─▶ memory node
//! read    host ─RREQ─▶ switch: demand … grant ─RREQ─▶ memory node ─ chunk ─▶ switch ─▶ host
//! ```
//!
//! Short messages (/N/, /G/, requests) go between the blocks of a chunk, as §3.2.3's multiplexer allows. A chunk's head
//! is forwarded when it comes; only chunks delayed by short messages wait at the switch.

mod hosts;

use super::lane::Lane;
use super::latency::Modules;
use super::message::{Message, Operation, Shown};
use super::messages::Messages;
use crate::kernel::{Agenda, Due};
use p4rack_fabric::edm::blocks::{Content, Framing, block_ps};
use p4rack_fabric::edm::scheduler::{Config, Refusal, Scheduler};
use std::collections::VecDeque;

/// Parameters.
#[derive(Clone, Debug)]
pub struct Params {
    /// The scheduler's.
    pub scheduler: Config,
    /// Latencies of the modules.
    pub modules: Modules,
    /// Time of an access to memory: read data is fetched when its grant comes, written data while its host asks, and
    /// received data is stored.
    pub memory_ps: u64,
    /// A link's rate; 0 leaves out the time that blocks take to send.
    pub rate_bps: u64,
    /// Bytes up to which waiting writes of a pair share a notification; 0: each write has its own.
    pub mega_bytes: u32,
    /// Messages that wait in a host for one other host at most; more are refused.
    pub pending_max: usize,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// A message has arrived.
    Message(u32),
    /// A notification or request is ready for the link.
    Ask(u32),
    /// It is at the scheduler.
    Asked(u32),
    /// The scheduler has something to do.
    Schedule,
    /// A grant or a forwarded request is ready for the link.
    Grant(u32),
    /// The source is ready to send the chunk.
    Send(u32),
    /// A lane of a host, or of the switch to a host, may be done.
    Up(u16),
    Down(u16),
    /// A chunk's head is at its egress.
    Head(u32),
    /// The last chunk of a read is with the application.
    Received(u32),
}

/// Messages that share a demand: one, or several writes.
#[derive(Clone, Copy, Debug)]
struct Batch {
    operation: Operation,
    compute: u16,
    memory: u16,
    id: u8,
    bytes: u32,
    /// Time at which its data is fetched.
    fetched_ps: u64,
    /// Of its messages, in `Exact::batched`.
    first: u32,
    count: u32,
    /// Bytes received, and messages that they complete.
    received: u32,
    complete: u32,
}

#[derive(Clone, Copy, Debug)]
struct Chunk {
    batch: u32,
    bytes: u32,
    blocks: u64,
    first: bool,
    last: bool,
    /// When its last block has left its source.
    up_tail_ps: Option<u64>,
}

/// Messages of a host for another one.
#[derive(Clone, Debug, Default)]
struct Peer {
    /// Reads and writes that wait for one of X.
    pending: [VecDeque<u32>; 2],
    active: [u8; 2],
    next_id: [u8; 2],
}

/// A run.
pub struct Exact<'a> {
    params: &'a Params,
    messages: Messages<'a>,
    nodes: usize,
    block_ps: u64,
    agenda: Agenda<Event>,
    scheduler: Scheduler,
    schedule: Due,
    peers: Vec<Peer>,
    up: Vec<Lane>,
    down: Vec<Lane>,
    batches: Vec<Batch>,
    batched: Vec<u32>,
    chunks: Vec<Chunk>,
    free_chunks: Vec<u32>,
}

impl<'a> Exact<'a> {
    /// A rack with these messages, sorted by time, or of which each node has `in_flight` under way. Errors: parameters that a
    /// scheduler refuses.
    pub fn new(
        params: &'a Params,
        messages: &'a [Message],
        in_flight: Option<u32>,
    ) -> Result<Exact<'a>, &'static str> {
        let batched = Vec::with_capacity(messages.len());
        let nodes = usize::from(params.scheduler.ports);
        let (messages, first) = Messages::new(messages, in_flight, nodes, params.memory_ps);
        let mut agenda = Agenda::default();
        first.into_iter().for_each(|(at_ps, nth)| agenda.add(at_ps, Event::Message(nth)));
        let block_ps = block_ps(params.rate_bps);
        let lane = Lane::new(params.scheduler.framing == Framing::Ethernet);
        Ok(Exact {
            scheduler: Scheduler::new(Config { block_ps, ..params.scheduler.clone() })?,
            params,
            messages,
            nodes,
            block_ps,
            agenda,
            schedule: Due::default(),
            peers: vec![Peer::default(); nodes * nodes],
            up: vec![lane.clone(); nodes],
            down: vec![lane; nodes],
            batches: Vec::new(),
            batched,
            chunks: Vec::new(),
            free_chunks: Vec::new(),
        })
    }

    /// Runs until nothing is under way.
    pub fn run(mut self) -> Shown {
        while let Some((now_ps, event)) = self.agenda.next() {
            self.handle(event, now_ps);
        }
        let waiting = self.down.iter().map(|lane| lane.waiting_max).max().unwrap_or(0);
        self.messages.shown.queue_max_bytes = waiting * 8;
        self.messages.shown.sent_ps = self.up.iter().map(|lane| lane.blocks * self.block_ps).collect();
        let counters = self.scheduler.counters();
        self.messages.shown.counters = vec![
            ("demands", counters.demands),
            ("grants", counters.grants),
            ("iterations", counters.iterations),
            ("conflicts", counters.conflicts),
            ("notification_queue_max", counters.queue_max.into()),
        ];
        let refused = Refusal::ALL.iter().zip(counters.refused).filter(|(_, count)| *count > 0);
        self.messages.shown.counters.extend(refused.map(|((_, name), count)| (*name, count)));
        self.messages.shown
    }

    fn handle(&mut self, event: Event, now_ps: u64) {
        let modules = &self.params.modules;
        match event {
            Event::Message(nth) => {
                let next = self.messages.begins(nth, now_ps);
                self.agenda.extend(next.map(|(at_ps, next)| (at_ps, Event::Message(next))));
                match self.messages.all[nth as usize].is_local() {
                    true => self.stored(nth, now_ps),
                    false => self.message(nth, now_ps),
                }
            }
            Event::Ask(nth) => {
                let batch = &self.batches[nth as usize];
                let blocks = self.short_blocks(batch.operation == Operation::Read);
                let left_ps = self.up[usize::from(batch.compute)].short(now_ps, blocks, self.block_ps);
                if batch.operation == Operation::Read {
                    self.messages.shown.times[self.batched[batch.first as usize] as usize].asked_ps =
                        Some(now_ps);
                }
                let at_ps = left_ps + modules.link_ps + modules.identify_ps + modules.schedule_more_ps;
                self.agenda.add(at_ps, Event::Asked(nth));
            }
            Event::Asked(nth) => {
                let demand = self.demand(nth);
                let ingress = self.batches[nth as usize].compute;
                if self.scheduler.handle_demand(ingress, demand, now_ps).is_err() {
                    self.messages.shown.strays += 1;
                }
                self.schedule(now_ps);
            }
            Event::Schedule => {
                if self.schedule.is_now(now_ps) {
                    self.schedule(now_ps);
                }
            }
            Event::Grant(nth) => {
                let (chunk, batch) = self.chunk(nth);
                let request = chunk.first && batch.operation == Operation::Read;
                let blocks = self.short_blocks(request);
                let left_ps = self.down[usize::from(source(&batch))].short(now_ps, blocks, self.block_ps);
                let in_ps = if request { modules.request_in_ps } else { modules.grant_in_ps };
                if request {
                    let message = self.batched[batch.first as usize] as usize;
                    self.messages.shown.times[message].reached_ps = Some(left_ps + modules.link_ps);
                }
                let at_ps = left_ps + modules.link_ps + in_ps + modules.grant_queue_ps + modules.data_out_ps;
                let at_ps = match batch.operation {
                    Operation::Read => at_ps + self.params.memory_ps,
                    Operation::Write => at_ps.max(batch.fetched_ps),
                };
                self.agenda.add(at_ps, Event::Send(nth));
            }
            Event::Send(nth) => self.send(nth, now_ps),
            Event::Up(node) => {
                let done = self.up[usize::from(node)].done(now_ps, self.block_ps);
                if let Some(chunk) = done.left {
                    self.chunks[chunk as usize].up_tail_ps = Some(now_ps);
                }
                if let Some(at_ps) = done.again_ps {
                    self.agenda.add(at_ps, Event::Up(node));
                    if done.left.is_some() {
                        self.starts(node);
                    }
                }
            }
            Event::Head(nth) => {
                let (chunk, batch) = self.chunk(nth);
                let node = destination(&batch);
                let (tail_ps, block_ps) = (self.tail_here_ps(nth), self.block_ps);
                let lane = &mut self.down[usize::from(node)];
                if let Some(at_ps) = lane.chunk(now_ps, nth, chunk.blocks, tail_ps, block_ps) {
                    self.agenda.add(at_ps, Event::Down(node));
                }
            }
            Event::Down(node) => {
                // Short messages on the uplink may have delayed its last blocks.
                if let Some((chunk, _)) = self.down[usize::from(node)].current() {
                    let tail_ps = self.tail_here_ps(chunk);
                    self.down[usize::from(node)].hold(tail_ps);
                }
                let done = self.down[usize::from(node)].done(now_ps, self.block_ps);
                if let Some(chunk) = done.left {
                    let at_ps = now_ps + modules.link_ps + modules.data_in_ps;
                    // Only the end of a read lets its node ask for more; the rest can be noted in advance.
                    let (of, batch) = self.chunk(chunk);
                    match of.last && batch.operation == Operation::Read {
                        true => self.agenda.add(at_ps, Event::Received(chunk)),
                        false => self.received(chunk, at_ps),
                    }
                }
                if let Some(at_ps) = done.again_ps {
                    self.agenda.add(at_ps, Event::Down(node));
                }
            }
            Event::Received(nth) => self.received(nth, now_ps),
        }
    }

    /// Blocks of a request, or of a notification or grant.
    fn short_blocks(&self, request: bool) -> u64 {
        let framing = self.params.scheduler.framing;
        if request { framing.blocks(Content::ReadRequest) } else { framing.short_blocks() }
    }

    fn chunk(&self, nth: u32) -> (Chunk, Batch) {
        let chunk = self.chunks[nth as usize];
        (chunk, self.batches[chunk.batch as usize])
    }

    fn peer(&mut self, compute: u16, memory: u16) -> &mut Peer {
        &mut self.peers[usize::from(compute) * self.nodes + usize::from(memory)]
    }

    fn schedule(&mut self, now_ps: u64) {
        while let Some(grant) = self.scheduler.poll_grant(now_ps) {
            let chunk = Chunk {
                batch: grant.demand.token,
                bytes: grant.bytes,
                blocks: self
                    .params
                    .scheduler
                    .framing
                    .blocks(grant.demand.kind.chunk(grant.bytes, grant.is_first())),
                first: grant.is_first(),
                last: grant.is_last(),
                up_tail_ps: None,
            };
            let nth = self.free_chunks.pop().unwrap_or(self.chunks.len() as u32);
            match self.chunks.get_mut(nth as usize) {
                Some(free) => *free = chunk,
                None => self.chunks.push(chunk),
            }
            self.agenda.add(now_ps + self.params.modules.grant_out_ps, Event::Grant(nth));
        }
        let again = self.scheduler.next_timeout().and_then(|at_ps| self.schedule.plan(at_ps, now_ps));
        self.agenda.extend(again.map(|at_ps| (at_ps, Event::Schedule)));
    }

    fn send(&mut self, nth: u32, now_ps: u64) {
        let (chunk, batch) = self.chunk(nth);
        let node = source(&batch);
        if let Some(at_ps) = self.up[usize::from(node)].chunk(now_ps, nth, chunk.blocks, 0, self.block_ps) {
            self.agenda.add(at_ps, Event::Up(node));
            self.starts(node);
        }
        // After a write's last grant the switch has forgotten the demand.
        if chunk.last && batch.operation == Operation::Write {
            self.retire(&batch, now_ps);
        }
    }

    /// A lane to the switch has started with a chunk, whose head will be at its egress.
    fn starts(&mut self, node: u16) {
        if let Some((chunk, tail_ps)) = self.up[usize::from(node)].current() {
            let start_ps = tail_ps - self.chunks[chunk as usize].blocks * self.block_ps;
            let batch = &self.batches[self.chunks[chunk as usize].batch as usize];
            for message in &self.batched[batch.first as usize..(batch.first + batch.count) as usize] {
                self.messages.shown.times[*message as usize].sent_ps.get_or_insert(start_ps);
            }
            self.agenda.add(start_ps + self.on_ps(), Event::Head(chunk));
        }
    }

    /// From a host's lane to the lane of the switch.
    fn on_ps(&self) -> u64 {
        let modules = &self.params.modules;
        modules.link_ps + modules.identify_ps + modules.forward_ps
    }

    /// When a chunk's last block has left the switch, at the earliest.
    fn tail_here_ps(&self, nth: u32) -> u64 {
        let (chunk, batch) = self.chunk(nth);
        let lane = &self.up[usize::from(source(&batch))];
        let up_tail_ps = chunk.up_tail_ps.or_else(|| lane.current().map(|(_, tail_ps)| tail_ps));
        up_tail_ps.unwrap_or(0) + self.on_ps()
    }
}

/// Sender of a batch's data.
fn source(batch: &Batch) -> u16 {
    if batch.operation == Operation::Read { batch.memory } else { batch.compute }
}

/// Its receiver.
fn destination(batch: &Batch) -> u16 {
    if batch.operation == Operation::Read { batch.compute } else { batch.memory }
}

/// Parameters of the paper's simulations (§4.3): the testbed's latencies without load, a scheduler of 3 GHz.
pub fn paper(nodes: u16, rate_bps: u64) -> Params {
    let scheduler = Config { framing: Framing::Payload, ..Config::new(nodes, rate_bps) };
    Params {
        modules: Modules::testbed(scheduler.cycle_ps),
        scheduler,
        memory_ps: 0,
        rate_bps,
        mega_bytes: 0,
        pending_max: 1 << 16,
    }
}
