//! A run: hosts, the links and the switch between them, and the agenda of events.
//!
//! ```text
//!   thread ─ step ─▶ adapter ─▶ link ─▶ switch ─▶ link ─▶ adapter ─▶ memory
//!     ▲                 ▲                 ▲ turns                      │ completions
//!     └─────────────────┴──── core of the spare host, server ◀─────────┘
//! ```

mod hostile;
mod hosts;

pub(super) use hostile::{Attacker, home_of, others};

use crate::check::Digest;
use crate::cowbird::competing::Competing;
use crate::cowbird::experiment::{CowbirdExperiment, CowbirdScheme};
use crate::cowbird::nic::{Cause, HostMemory, Nic, ps};
use crate::cowbird::program::Program;
use crate::cowbird::rack::{self, COMPUTE, HOSTS, POOL, SINK};
use crate::cowbird::records::{CowbirdPlant, Records};
use crate::cowbird::redy::IoThread;
use crate::cowbird::server::Server;
use crate::cowbird::spot::Core;
use crate::cowbird::thread::{Plan, Thread};
use crate::frames::{Frame, Frames};
use crate::kernel::{Agenda, Clock, Hub, WIRE_BYTES, Wires};
use crate::random::Random;
use crate::requests::Ended;
use crate::switch::Model;
use hostile::Second;
use p4rack_cowbird::Area;
use p4rack_fabric::Machine as _;
use std::collections::VecDeque;

#[derive(Debug)]
pub(super) enum Event {
    /// A host's link is free: it may send its next frame.
    Link(u16),
    /// A thread does its next step.
    Thread(u16),
    /// The last bit of a frame from this host is at the switch.
    AtSwitch(u16, Frame),
    /// The switch has something to send.
    Switch,
    /// The engine in the switch gets a turn for some sets of a host.
    Turn(u16),
    /// The last bit of a frame is at this host.
    Arrived(u16, Frame),
    /// The frame has reached the host's memory.
    InMemory(u16, Frame),
    /// A round of this core ends, or it is woken.
    Core(u16),
    /// This core looks at its timers.
    Wake(u16),
    /// A server has time.
    Server(u16),
    /// An I/O thread begins its next round.
    Io(u16),
    /// Adapters look at their timers.
    Timers,
    /// Measuring begins, or ends.
    Mark,
    /// A program has seen the end of its next request.
    Ended(u16),
    /// A program's core has posted its next request.
    Posted(u16),
    /// A competing flow looks at its timer.
    Flow(u16),
    /// The hostile host's link is free: it may send its next frame.
    Attack,
}

/// The agenda counts picoseconds.
pub(super) const CLOCK: Clock = Clock::PICOSECONDS;

/// Totals so far: bytes on the wire by host, bytes of competing flows, time that cores worked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    pub sent: [u64; HOSTS],
    pub received: [u64; HOSTS],
    pub competing: Option<u64>,
    pub cores_ps: u64,
}

/// A run.
#[derive(Debug)]
pub(super) struct CowbirdWorld<'a> {
    pub experiment: &'a CowbirdExperiment,
    pub plan: Plan,
    pub agenda: Agenda<Event>,
    pub frames: Frames,
    pub nics: Vec<Nic>,
    pub hub: Hub,
    /// Frames that give the engine in the switch turns, and the time from one to the next.
    turns: Vec<(Vec<u8>, u64)>,
    pub threads: Vec<Thread>,
    /// Programs that ask from outside, in place of threads, and results not yet delivered to them.
    pub programs: Vec<Program>,
    pub over: VecDeque<Ended>,
    /// Threads that have ended.
    ended: usize,
    pub cores: Vec<Core>,
    pub servers: Vec<Server>,
    pub io: Vec<IoThread>,
    pub competing: Option<Competing>,
    pub attacker: Option<Attacker>,
    /// Sets of rings, or queue pairs with the pool, of all compute nodes' threads and of the attacker.
    pub sets: usize,
    /// Totals when the measurement began, and when it ended.
    pub marks: Vec<Mark>,
    pub wires: Wires,
    pub digest: Digest,
    pub frame_hops: u64,
    /// Requests of engines that an adapter refused.
    pub refused: u64,
    pub now_ps: u64,
}

impl<'a> CowbirdWorld<'a> {
    /// A rack at time 0. Errors: the generator or an adapter refuses it.
    pub fn new(
        experiment: &'a CowbirdExperiment,
        plant: Option<CowbirdPlant>,
    ) -> Result<CowbirdWorld<'a>, String> {
        let spec = &experiment.spec;
        let pool_bytes = spec.records * u64::from(spec.record_bytes);
        let second = Second::of(spec);
        let threads = u64::from(spec.threads) * if second == Second::Threads { 2 } else { 1 };
        let names = experiment.host_names();
        let plan = Plan {
            cpu: spec.cpu.clone(),
            record_bytes: spec.record_bytes,
            keys: spec.records / threads,
            local: spec.local_percent / 100.0,
            writes: spec.write_percent / 100.0,
            batch: spec.batch,
            window: experiment.window(),
            regions: if spec.scheme == CowbirdScheme::CowbirdSpot { spec.spot.pairs } else { 1 },
            warm_ps: spec.warmup_us * 1_000_000,
            end_ps: spec.duration_us * 1_000_000,
        };
        // The engine in the switch has no such limit, so adapters accept as many READs as it may have in flight.
        let reads = usize::from(spec.nic.reads_max);
        let reads = if spec.scheme == CowbirdScheme::CowbirdP4 {
            reads.max(spec.p4.in_flight as usize)
        } else {
            reads
        };
        let memory = |host: usize| match host {
            POOL => HostMemory::Records(Records::new(pool_bytes, plant)),
            _ => HostMemory::Rings(Area::default()),
        };
        let mut rates_bps = vec![experiment.rate_bps; names.len()];
        rates_bps[SINK] = experiment.competing_bps;
        let nics = rates_bps.iter().enumerate().map(|(host, rate_bps)| (memory(host), *rate_bps));
        let mut nics = nics
            .map(|(memory, rate_bps)| Nic::new(memory, &spec.nic, rate_bps, reads))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| error.to_string())?;
        let attacker = Attacker::new(experiment, &mut nics, pool_bytes)?;
        let sets = threads as u16 + attacker.as_ref().map_or(0, |one| one.sets(spec));
        let hosts = match (experiment.programs, second) {
            (0, Second::Absent) => vec![COMPUTE],
            (0, _) => vec![COMPUTE, SINK],
            (programs, _) => (0..programs.into()).map(home_of).collect(),
        };
        let computes: Vec<String> = hosts.into_iter().map(|host| names[host].clone()).collect();
        let engine =
            (spec.scheme == CowbirdScheme::CowbirdP4).then(|| rack::engine(&spec.p4, sets, computes));
        let class = spec.competing.as_ref().map(|tcp| tcp.class).unwrap_or_default();
        let (random, link) = (Random::stream(spec.seed, 0), experiment.link());
        let wires = Wires::new(CLOCK, ps(spec.nic.link_ns), (&link, None), &names, random)?;
        let mut world = CowbirdWorld {
            hub: Hub::new(
                rack::switch(engine.as_ref(), (&names, &rates_bps), (spec.queueing, class), spec.seed)?,
                CLOCK,
            ),
            turns: Vec::new(),
            agenda: Agenda::default(),
            frames: Frames::default(),
            nics,
            threads: Vec::new(),
            programs: Vec::new(),
            over: VecDeque::new(),
            ended: 0,
            cores: Vec::new(),
            servers: Vec::new(),
            io: Vec::new(),
            competing: spec.competing.as_ref().map(Competing::new),
            attacker,
            sets: sets.into(),
            marks: Vec::new(),
            wires,
            digest: Digest::new(),
            frame_hops: 0,
            refused: 0,
            now_ps: 0,
            plan,
            experiment,
        };
        world.connect(threads as usize, pool_bytes)?;
        if let Some(engine) = engine {
            for set in 0..world.sets {
                world.serve(set, &engine, pool_bytes)?;
            }
            // Packet generators serve the hosts alike, one behind the other.
            let hosts = (0..).zip((0..world.sets).map(|set| world.host_of(set))).collect();
            let every_ps = ps(spec.p4.turn_ns);
            world.turns = rack::turns(&mut world.hub.model, &engine, &hosts, every_ps)?;
            for nth in 0..world.turns.len() as u16 {
                let at_ps = u64::from(nth) * every_ps / u64::from(sets);
                world.agenda.add(at_ps, Event::Turn(nth));
            }
        }
        for nth in 0..world.threads.len() as u16 {
            world.agenda.add(u64::from(nth) * 1_000, Event::Thread(nth));
        }
        for nth in 0..world.cores.len() as u16 {
            world.agenda.add(0, Event::Core(nth));
        }
        for nth in 0..world.io.len() as u16 {
            world.agenda.add(0, Event::Io(nth));
        }
        world.agenda.add(0, Event::Timers);
        world.agenda.add(world.plan.warm_ps, Event::Mark);
        world.agenda.add(world.plan.end_ps, Event::Mark);
        world.resume_flows(0);
        if let Some(attacker) = &mut world.attacker {
            attacker.machine()?;
        }
        world.plan_attack(0);
        Ok(world)
    }

    /// Runs until all threads have ended or the time is over.
    pub fn run(&mut self) {
        let limit_ps = self.plan.end_ps + self.experiment.spec.drain_us * 1_000_000;
        while self.ended < self.threads.len()
            && let Some((now_ps, event)) = self.agenda.next()
            && now_ps <= limit_ps
        {
            self.now_ps = now_ps;
            self.handle(event, now_ps);
        }
    }

    /// Goes on until a program's request has ended, or until this time.
    pub fn next_end(&mut self, until_ps: u64) -> Option<Ended> {
        while self.over.is_empty()
            && let Some((now_ps, event)) = self.agenda.next_until(until_ps)
        {
            self.now_ps = now_ps;
            self.handle(event, now_ps);
        }
        self.over.pop_front()
    }

    fn handle(&mut self, event: Event, now_ps: u64) {
        match event {
            Event::Link(host) => self.link(host.into(), now_ps),
            Event::Thread(nth) => self.step(nth, now_ps),
            Event::AtSwitch(host, frame) => {
                self.frame_hops += 1;
                self.digest.frame(CLOCK.nanos(now_ps), &frame);
                // The frame's digest leaves out queue pair and sequence number.
                let numbers = frame.get(46..54).and_then(|bytes| bytes.try_into().ok());
                self.digest.add(numbers.map_or(0, u64::from_le_bytes));
                self.hub.take(host + 1, &frame, now_ps);
                self.frames.release(frame);
                self.transmit(now_ps);
            }
            Event::Switch => {
                if self.hub.is_due(now_ps) {
                    self.transmit(now_ps);
                }
            }
            Event::Turn(nth) => {
                if let Some((frame, every_ps)) = self.turns.get(usize::from(nth)) {
                    self.hub.take(COMPUTE as u16 + 1, frame, now_ps);
                    self.agenda.add(now_ps + every_ps.max(&1_000), Event::Turn(nth));
                    self.transmit(now_ps);
                }
            }
            Event::Arrived(host, frame) => {
                let at_ps = self.nics[usize::from(host)].arrive(now_ps);
                self.agenda.add(at_ps, Event::InMemory(host, frame));
            }
            Event::InMemory(host, frame) => {
                let (host, now) = (usize::from(host), CLOCK.nanos(now_ps));
                if self.competing.is_some()
                    && let Some(pdu) = Competing::parse(&frame)
                {
                    self.frames.release(frame);
                    return self.segment(host, &pdu, now_ps);
                }
                if let Some(attacker) = self.attacker.as_mut().filter(|_| host == SINK) {
                    if let Ok(machine) = attacker.machine() {
                        machine.handle_link(&frame, now, now);
                    }
                    self.frames.release(frame);
                    return self.plan_attack(now_ps);
                }
                self.nics[host].adapter.handle_link(&frame, now, now);
                self.frames.release(frame);
                self.complete(host, now_ps);
                self.look(host, now_ps);
                self.send(host, now_ps, now_ps, Cause::Frame);
            }
            Event::Posted(nth) => self.post(nth, now_ps),
            Event::Ended(nth) => self.has_ended(nth, now_ps),
            Event::Core(nth) => self.core(nth, now_ps),
            Event::Wake(nth) => {
                let core = &mut self.cores[usize::from(nth)];
                if core.wake_ps == now_ps {
                    core.wake_ps = u64::MAX;
                    if !core.busy {
                        self.core(nth, now_ps);
                    }
                }
            }
            Event::Server(nth) => {
                let (cpu, record_bytes) = (&self.plan.cpu, self.plan.record_bytes);
                let batch = if self.io.is_empty() { 1 } else { self.experiment.spec.redy.batch.into() };
                let server = &mut self.servers[usize::from(nth)];
                let adapter = &mut self.nics[POOL].adapter;
                if let Some(took_ps) = server.answer(adapter, cpu, record_bytes, batch) {
                    self.agenda.add(now_ps + took_ps, Event::Server(nth));
                    self.send(POOL, now_ps, now_ps + took_ps, Cause::Doorbell);
                }
            }
            Event::Io(nth) => {
                let costs = (&self.plan.cpu, &self.experiment.spec.redy, self.plan.record_bytes);
                let adapter = &mut self.nics[COMPUTE].adapter;
                let round = self.io[usize::from(nth)].round(&mut self.threads, adapter, costs);
                self.agenda.add(now_ps + round.took_ps, Event::Io(nth));
                if round.rung {
                    self.send(COMPUTE, now_ps, now_ps + round.took_ps, Cause::Doorbell);
                }
            }
            Event::Timers => {
                for host in 0..self.nics.len() {
                    self.nics[host].adapter.handle_timeout(CLOCK.nanos(now_ps));
                    self.complete(host, now_ps);
                    self.send(host, now_ps, now_ps, Cause::Frame);
                }
                let every_ps = u64::from(self.experiment.spec.nic.timeout_us) * 1_000_000 / 4;
                self.agenda.add(now_ps + every_ps, Event::Timers);
            }
            Event::Mark => self.mark(now_ps),
            Event::Attack => self.attack(now_ps),
            Event::Flow(nth) => {
                let mut frame = self.frames.take(false);
                let Some(competing) = &mut self.competing else { return };
                match competing.timeout(nth.into(), CLOCK.nanos(now_ps), &mut frame) {
                    true => self.nics[COMPUTE].push(now_ps, frame),
                    false => self.frames.release(frame),
                }
                self.resume_flows(now_ps);
            }
        }
    }

    fn mark(&mut self, now_ps: u64) {
        let stats = self.hub.model.stats(CLOCK.nanos(now_ps));
        let received = |host: usize| {
            let port = stats.ports.iter().find(|port| usize::from(port.port) == host + 1);
            // The switch counts frames without FCS, preamble and gap.
            port.map_or(0, |port| port.tx_bytes + WIRE_BYTES * port.tx_frames)
        };
        self.marks.push(Mark {
            sent: std::array::from_fn(|host| self.nics[host].sent_bytes),
            received: std::array::from_fn(received),
            competing: self.competing.as_ref().map(Competing::received),
            cores_ps: self.cores.iter().map(|core| core.busy_ps).sum::<u64>()
                + self.io.iter().map(|io| io.busy_ps).sum::<u64>(),
        });
    }
}
