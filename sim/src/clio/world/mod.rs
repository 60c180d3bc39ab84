//! A run: compute nodes, boards, and the network between them.
//!
//! ```text
//!  thread ─ library ─ adapter ─▶ machine of the link ─▶ switch ─▶ machine of the link ─▶ board
//!    ▲                                                                                     │ stages
//!    └── library ◀─ adapter ◀── machine of the link ◀── switch ◀── machine of the link ◀───┘
//! ```

mod boards;
mod links;
mod threads;

use crate::check::Digest;
use crate::clio::board::{BoardNode, Finished, StageSums, Translations};
use crate::clio::compute::{self, ComputeNode, Library, Stack, Thread, Work};
use crate::clio::experiment::ClioExperiment;
use crate::clio::modelled::{ModelNode, Shape};
use crate::clio::outside::Outside;
use crate::clio::rack::{self, CLOCK, End};
use crate::clio::setup;
use crate::clio::spec::{ClioScheme, Load};
use crate::frames::{Frame, Frames};
use crate::kernel::{Agenda, Due, Hub, Wires};
use crate::random::Random;
use p4rack_fabric::{Endpoint, Machine as _};
use p4rack_wire::{Histogram, Nanos};

/// Frames of a host between its machines and its link: more wait in the machines.
const AHEAD: u32 = 64;
/// First UDP port of processes.
const PORTS: u16 = 10_000;
/// UDP port of boards.
const BOARD_PORT: u16 = p4rack_wire::clio::UDP_PORT;
/// When a run that does not end is given up.
const LIMIT_PS: u64 = 60_000_000_000_000;
/// Threads begin within this time.
const BEGIN_PS: u64 = 2_000_000;

/// A frame whose packet has been found.
#[derive(Debug)]
pub(in crate::clio) struct Parcel {
    frame: Frame,
    from: End,
    /// At a compute node: the process that it is for.
    process: u32,
    start: u16,
    end: u16,
}

impl Parcel {
    fn packet(&self) -> &[u8] {
        self.frame.get(usize::from(self.start)..usize::from(self.end)).unwrap_or_default()
    }
}

#[derive(Debug)]
pub(in crate::clio) enum Event {
    /// A thread calls its library.
    Call(u32),
    /// A frame is at the machine of a host's link.
    Handed(u16, Frame),
    /// The machine of a host's link looks at its clock.
    Link(u16),
    /// The last bit of a frame from this host is at the switch.
    AtSwitch(u16, Frame),
    /// The switch has something to send.
    Switch,
    /// The last bit of a frame is at this host.
    Arrived(u16, Frame),
    /// A packet is at its library.
    Delivered(Parcel),
    /// A library looks at its timers.
    Library(u32),
    /// A packet has left a board's parser.
    Entered(u16, Parcel),
    /// A call of an offload is finished.
    Finished(u16, Box<Finished>),
    /// A board looks at its clock.
    Board(u16),
    /// A registration is done.
    Registered(u64),
}

/// A host with memory.
#[derive(Debug)]
// One per host, used for every packet.
#[allow(clippy::large_enum_variant)]
pub(in crate::clio) enum MemoryNode {
    Board(BoardNode),
    Modelled(ModelNode),
}

/// Measurements.
#[derive(Debug)]
pub(in crate::clio) struct Tally {
    pub latency: Histogram,
    /// Sum of latencies, picoseconds: histograms round.
    pub latency_ps: u128,
    /// Operations that have ended.
    pub ended: u64,
    /// Those that ended well since measuring began.
    pub done: u64,
    /// Bytes of the latter.
    pub bytes: u64,
    pub begun_ps: u64,
    pub end_ps: u64,
    /// Operations that did not end well, also before measuring began.
    pub wrong: u64,
    pub refused: u64,
    pub unknown: u64,
    /// Time in adapters, picoseconds, and frames of compute nodes.
    pub nic_ps: u64,
}

/// A run.
#[derive(Debug)]
pub(in crate::clio) struct ClioWorld<'a> {
    pub experiment: &'a ClioExperiment,
    pub agenda: Agenda<Event>,
    frames: Frames,
    pub hub: Option<Hub>,
    links: Vec<Endpoint>,
    due: Vec<Due>,
    pub wires: Wires,
    computes: Vec<ComputeNode>,
    pub stacks: Vec<Stack>,
    pub threads: Vec<Thread>,
    pub nodes: Vec<MemoryNode>,
    /// Frames of boards between their machines and their links.
    crossing: Vec<u32>,
    pub work: Work,
    /// Requests of programs from outside, in place of threads.
    pub outside: Option<Outside>,
    pub tally: Tally,
    /// Sums of the boards' stages when measuring began.
    pub before: StageSums,
    pub digest: Digest,
    pub frame_hops: u64,
    pub now_ps: u64,
    out: Vec<u8>,
}

impl<'a> ClioWorld<'a> {
    /// A rack at the beginning. Errors: the generator or a board refuses it.
    pub fn new(experiment: &'a ClioExperiment) -> Result<ClioWorld<'a>, String> {
        let spec = &experiment.spec;
        let (hosts, per_node) = (experiment.hosts(), usize::from(spec.processes));
        let mut start = Nanos::ZERO;
        let (mut nodes, mut at, mut checked) = (Vec::new(), Vec::new(), true);
        for nth in 0..spec.boards {
            match spec.scheme {
                ClioScheme::Clio => {
                    let ready = setup::board(experiment, nth.into())?;
                    start = start.max(ready.at);
                    checked &= ready.node.machine.memory().is_kept();
                    nodes.push(MemoryNode::Board(ready.node));
                    at.push(ready.processes);
                }
                scheme => {
                    let shape = Shape {
                        inline_bytes: experiment.compute.inline_bytes,
                        fetch_ns: experiment.compute.fetch_ns,
                        regions: experiment.regions(),
                        touched: spec.touched,
                        is_shared: spec.load == Load::Kv,
                    };
                    nodes.push(MemoryNode::Modelled(ModelNode::new(scheme, experiment.rdma, shape)));
                }
            }
        }
        let count = usize::from(spec.compute_nodes) * per_node;
        let process = |number: usize| at.iter().map(|at| at[number]).collect::<Vec<setup::At>>();
        let together = usize::from(experiment.processes_together());
        let stack = |first: usize| {
            let processes: Vec<_> = (first..first + together).map(process).collect();
            Stack::new(experiment, first as u32, &processes)
        };
        let stacks: Vec<Stack> = (0..count).step_by(together).map(stack).collect();
        let thread = |number: usize| {
            let random = Random::stream(spec.seed, 0xc100_0000 + number as u64);
            Thread::new(experiment, number as u32, random)
        };
        let threads: Vec<Thread> = (0..count * usize::from(spec.threads)).map(thread).collect();
        let names: Vec<String> = (0..hosts).map(|host| experiment.name_of(host)).collect();
        let link_ps = u64::from(spec.network.link_ns) * 1_000;
        let random = Random::stream(spec.seed, 0);
        let wires = Wires::new(CLOCK, link_ps, (&spec.link, None), &names, random)?;
        let (hub, links) = match spec.network.direct {
            true => (None, Vec::new()),
            false => {
                let (switch, links) = rack::build(experiment)?;
                (Some(Hub::new(switch, CLOCK)), links)
            }
        };
        let start_ps = CLOCK.ticks(start);
        let mut world = ClioWorld {
            agenda: Agenda::default(),
            frames: Frames::default(),
            hub,
            due: vec![Due::default(); links.len()],
            links,
            wires,
            computes: (0..spec.compute_nodes).map(|nth| ComputeNode::new(experiment, nth)).collect(),
            stacks,
            threads,
            crossing: vec![0; nodes.len()],
            nodes,
            work: Work::new(experiment, checked),
            outside: experiment.is_outside.then(|| Outside::new(spec.compute_nodes)),
            tally: Tally {
                latency: Histogram::new(),
                latency_ps: 0,
                ended: 0,
                done: 0,
                bytes: 0,
                begun_ps: start_ps,
                end_ps: start_ps,
                wrong: 0,
                refused: 0,
                unknown: 0,
                nic_ps: 0,
            },
            before: StageSums::default(),
            digest: Digest::new(),
            frame_hops: 0,
            now_ps: start_ps,
            out: Vec::new(),
            experiment,
        };
        world.begin(start_ps);
        Ok(world)
    }

    fn begin(&mut self, start_ps: u64) {
        let mut random = Random::stream(self.experiment.spec.seed, 1);
        for nth in 0..self.threads.len() {
            self.threads[nth].free_ps = start_ps + random.below(BEGIN_PS);
        }
        for board in 0..self.nodes.len() {
            self.plan_board(board, start_ps);
        }
        for host in 0..self.links.len() {
            self.drain(host, start_ps);
        }
        for node in 0..self.computes.len() {
            let (first, end) = self.computes[node].threads;
            self.computes[node].begin(&mut self.threads);
            (first..end).for_each(|thread| self.go_on(thread, start_ps));
        }
        if self.experiment.spec.warmup == 0 {
            self.begin_measuring(start_ps);
        }
    }

    fn begin_measuring(&mut self, now_ps: u64) {
        self.tally.begun_ps = now_ps;
        self.before = self.sums();
        self.tally.nic_ps = 0;
        for node in &mut self.nodes {
            if let MemoryNode::Board(node) = node {
                node.translations = Translations::default();
            }
        }
    }

    /// Sums of the stages of all boards.
    pub fn sums(&self) -> StageSums {
        let mut sums = StageSums::default();
        for node in &self.nodes {
            if let MemoryNode::Board(BoardNode { sums: one, .. }) = node {
                sums = sums.plus(one);
            }
        }
        sums
    }

    /// Runs until all operations have ended.
    pub fn run(&mut self) {
        let limit_ps = self.now_ps + LIMIT_PS;
        let operations = self.experiment.spec.warmup + self.experiment.spec.operations;
        while self.tally.ended < operations
            && let Some((now_ps, event)) = self.agenda.next()
            && now_ps <= limit_ps
        {
            self.now_ps = now_ps;
            self.handle(event, now_ps);
        }
    }

    /// Handles the next event, if one is due until this time.
    pub fn step(&mut self, until_ps: u64) -> bool {
        let Some((now_ps, event)) = self.agenda.next_until(until_ps) else { return false };
        self.now_ps = now_ps;
        self.handle(event, now_ps);
        true
    }

    fn handle(&mut self, event: Event, now_ps: u64) {
        match event {
            Event::Call(thread) => self.call(thread, now_ps),
            Event::Handed(host, frame) => self.handed(host, frame, now_ps),
            Event::Link(host) => {
                if self.due[usize::from(host)].is_now(now_ps) {
                    self.drain(host.into(), now_ps);
                }
            }
            Event::AtSwitch(host, frame) => {
                if let Some(hub) = &mut self.hub {
                    hub.take(host + 1, &frame, now_ps);
                }
                self.frames.release(frame);
                self.transmit(now_ps);
            }
            Event::Switch => {
                if self.hub.as_mut().is_some_and(|hub| hub.is_due(now_ps)) {
                    self.transmit(now_ps);
                }
            }
            Event::Arrived(host, frame) => self.arrived(host, frame, now_ps),
            Event::Delivered(parcel) => self.delivered(parcel, now_ps),
            Event::Library(nth) => {
                let stack = &mut self.stacks[nth as usize];
                if stack.due.is_now(now_ps) {
                    if let Library::Clio(client) = &mut stack.library {
                        client.handle_timeout(CLOCK.nanos(now_ps));
                    }
                    self.complete(nth, now_ps);
                    self.pump(nth, now_ps);
                }
            }
            Event::Entered(board, parcel) => self.entered(board.into(), parcel, now_ps),
            Event::Finished(board, finished) => {
                if let MemoryNode::Board(node) = &mut self.nodes[usize::from(board)] {
                    node.finish(*finished, CLOCK.nanos(now_ps));
                }
                self.pump_board(board.into(), now_ps);
            }
            Event::Board(board) => {
                if let MemoryNode::Board(node) = &mut self.nodes[usize::from(board)]
                    && node.due.is_now(now_ps)
                {
                    node.timeout(CLOCK.nanos(now_ps));
                    self.pump_board(board.into(), now_ps);
                }
            }
            Event::Registered(tag) => self.ended(tag, compute::Ending::Done, now_ps),
        }
    }
}

/// The eight bytes of a frame from there on, or 0.
fn word(frame: &[u8], at: usize) -> u64 {
    let bytes = frame.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
    bytes.map_or(0, u64::from_le_bytes)
}
