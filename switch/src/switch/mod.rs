//! The switch from outside: ports, queues and a program.

mod arch;
mod arrival;
mod control;
mod elements;
mod event;
mod generator;
mod hashes;
mod idle;
mod keep;
mod meters;
mod packets;
mod pipes;
mod profiles;
mod queues;
mod smoothers;
mod tracer;

pub use arch::{
    PACKET_BUFFER_BYTES, PacketApp, PacketCounts, PacketPort, PacketTrigger, REPLICATION_SET,
    ReplicationConfig, ReplicationGroup, ReplicationLag, ReplicationMember, ReplicationNode, ReplicationPort,
};
pub use event::{Origin, TraceEvent, TracedChange, TracedKey, TracedValue};
pub use generator::{GeneratorConfig, GeneratorStats, MAX_GENERATORS};
pub use keep::Keep;
pub use queues::PortQueues;
pub use tracer::{TraceFilter, TraceState, Traced};

use crate::arch::Arch;
use crate::code::ops::{VARS_WORDS, Vars};
use crate::compile::Pipeline;
use crate::config::Config;
use crate::error::ControlError;
use crate::exec::Requests;
use crate::objects::{CloneSession, Pipes};
use crate::pool::{NONE, Packet, PacketId, Pool};
use crate::replicas::Replicas;
use crate::state::State;
use crate::stats::{DropReason, Stats};
use crate::tm::{TrafficManager, reasons};
use crate::trace::RawEvent;
use arch::{Engine, PortData, Returning};
use generator::Generators;
use p4rack_wire::Nanos;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use tracer::Tracer;

/// Frames that come back in one call of [`Switch::poll_transmit`], so that arrivals get a turn.
const RETURNS: u32 = 256;
/// Ports of a pipe, and the bits of their numbers.
const PIPE_PORTS: u16 = 72;
const PIPE_SHIFT: u32 = 7;

/// A loaded program with its state.
pub(crate) struct Running {
    pub pipeline: Pipeline,
    pub state: State,
}

/// Counts of copies and passes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Passes {
    pub clones: u64,
    pub replicas: u64,
    pub resubmits: u64,
    pub recirculations: u64,
}

/// A switch: ports, queues, and a program if one is loaded.
///
/// ```
/// use p4rack_switch::{Config, Pipeline, PortConfig, Switch};
/// use p4rack_wire::Nanos;
///
/// let text = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/forward.p4"));
/// let compiled = p4rack_p4::compile(text, "forward.p4", &p4rack_p4::Options::default())?;
/// let ports = vec![PortConfig::new(1, 100_000_000), PortConfig::new(2, 100_000_000)];
/// let mut switch = Switch::new(Config { ports, ..Config::default() });
/// switch.load(Pipeline::compile(&compiled.program)?);
///
/// // The program sends what it does not know to port 2.
/// let (mut now, mut out) = (Nanos::ZERO, Vec::new());
/// for number in 0..2 {
///     switch.handle_frame(1, &[number; 60], now);
/// }
/// assert_eq!((switch.poll_transmit(now, &mut out), out[0]), (Some(2), 0));
/// assert_eq!(switch.poll_transmit(now, &mut out), None, "the first is on the wire: 84 bytes at 100 Mb/s");
/// now = switch.next_timeout().ok_or("something waits")?;
/// assert_eq!(now, Nanos(6_720));
/// assert_eq!((switch.poll_transmit(now, &mut out), out[0]), (Some(2), 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Switch {
    pub(crate) config: Config,
    pub(crate) running: Option<Running>,
    pub(crate) vars: Box<Vars>,
    /// The frame that has just arrived.
    pub(crate) arrival: Packet,
    /// The queued packet whose variables are in `vars` and not yet saved with it, or [`NONE`].
    pub(crate) hot: PacketId,
    pub(crate) pool: Pool,
    pub(crate) manager: TrafficManager,
    pub(crate) groups: BTreeMap<u32, Replicas>,
    pub(crate) sessions: BTreeMap<u32, CloneSession>,
    /// Groups of nodes.
    pub(crate) engine: Engine,
    /// Ports that are down.
    pub(crate) down: BTreeSet<u16>,
    /// Whether that changed since the last poll.
    pub(crate) links_changed: bool,
    /// Frames for the controller, already deparsed.
    pub(crate) cpu_queue: VecDeque<PacketId>,
    /// Scratch buffer in which frames for the controller are deparsed.
    pub(crate) cpu_out: Vec<u8>,
    /// Output of the half before the queue, if the half behind parses it.
    pub(crate) middle: Vec<u8>,
    /// Requests of the block that runs.
    pub(crate) requests: Requests,
    /// Metadata that a clone carries.
    pub(crate) for_clone: Vec<u64>,
    /// Metadata that a resubmitted or recirculated packet carries.
    pub(crate) for_pass: Vec<u64>,
    pub(crate) drops: [u64; DropReason::ALL.len()],
    pub(crate) passes: Passes,
    pub(crate) returning: Returning,
    pub(crate) generators: Generators,
    /// Data in front of the packets of each port.
    pub(crate) port_data: PortData,
    /// The active trace, if any.
    pub(crate) tracer: Option<Box<Tracer>>,
    /// Number of the next packet that is traced.
    pub(crate) next_trace: u32,
    /// The pipes that the control plane means.
    pub(crate) meant: Pipes,
    /// The latest time seen.
    pub(crate) now: Nanos,
}

impl std::fmt::Debug for Switch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Switch").field("config", &self.config).field("now", &self.now).finish_non_exhaustive()
    }
}

impl Switch {
    /// A switch without a program, which drops everything. If two ports have the same number, the first one
    /// counts; a port with the number of the drop port does not exist.
    pub fn new(config: Config) -> Switch {
        let vars = vec![0; VARS_WORDS].into_boxed_slice();
        Switch {
            manager: TrafficManager::new(&config),
            running: None,
            vars: vars.try_into().expect("allocated with that size"),
            arrival: Packet::default(),
            hot: NONE,
            pool: Pool::default(),
            groups: BTreeMap::new(),
            sessions: BTreeMap::new(),
            engine: Engine::default(),
            down: BTreeSet::new(),
            links_changed: false,
            cpu_queue: VecDeque::with_capacity(config.cpu_queue_frames.min(64 * 1024)),
            cpu_out: Vec::new(),
            middle: Vec::new(),
            requests: Requests::default(),
            for_clone: Vec::new(),
            for_pass: Vec::new(),
            drops: [0; DropReason::ALL.len()],
            passes: Passes::default(),
            returning: Returning::default(),
            generators: Generators::default(),
            port_data: PortData::default(),
            tracer: None,
            next_trace: 1,
            meant: Pipes::ALL,
            now: Nanos::ZERO,
            config,
        }
    }

    /// Its configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Architecture of the loaded program.
    #[inline(always)]
    pub(crate) fn arch(&self) -> Option<Arch> {
        Some(self.running.as_ref()?.pipeline.arch)
    }

    /// Runs egress for a packet that has left the queue of the port at position `at`; `left` packets remain
    /// in it. Returns true if `out` holds the frame to send, in which case the caller still owns the packet,
    /// and false if the packet went elsewhere.
    #[inline(always)]
    fn egress(&mut self, id: PacketId, at: usize, left: u64, now: Nanos, out: &mut Vec<u8>) -> bool {
        match self.arch() {
            Some(arch) => arch.egress(self, id, at, left, now, out),
            None => {
                self.end(id, DropReason::NoProgram, Some(at));
                false
            }
        }
    }

    /// The latest time seen.
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// Whether a program is loaded.
    pub fn is_loaded(&self) -> bool {
        self.running.is_some()
    }

    /// Replaces the program. Tables, registers, groups and so on start as the program defines; queued frames
    /// are dropped; ports and their counters stay.
    pub fn load(&mut self, pipeline: Pipeline) {
        let mut state = pipeline.initial_state(&self.config);
        state.down.clone_from(&self.down);
        self.groups.clear();
        self.sessions.clear();
        self.engine = Engine::default();
        self.start(Running { pipeline, state });
    }

    /// Takes over the program, tables, groups and so on of another switch. Of counters, meters and registers that both
    /// programs have in common, `keep` says which keep the values they have here. Ports stay. Queued frames are dropped.
    pub fn adopt(&mut self, other: Switch, keep: Keep) {
        let Some(mut running) = other.running else { return };
        running.state.down.clone_from(&self.down);
        if let Some(before) = self.running.take() {
            running.keep_cells(before, keep);
        }
        (self.groups, self.sessions, self.engine) = (other.groups, other.sessions, other.engine);
        self.route_copies();
        self.start(running);
        self.port_data = other.port_data;
        self.generators.apps = other.generators.apps;
        self.generators.plan();
    }

    fn start(&mut self, running: Running) {
        for (at, count) in self.manager.flush(&mut self.pool, self.now).into_iter().enumerate() {
            self.drops[DropReason::ProgramReplaced as usize] += count;
            self.manager.port_mut(at).drops[DropReason::ProgramReplaced as usize] += count;
        }
        self.drop_returning();
        self.generators.restart();
        self.port_data = PortData::default();
        self.hot = NONE;
        self.tracer = None;
        self.vars.fill(0);
        for &(slot, value) in &running.pipeline.code.constants {
            self.vars[slot as usize] = value;
        }
        let ports = self.config.ports.iter().map(|port| port.port);
        // A port of each pipe.
        let pipes = (0..running.state.pipes() as u16).map(|pipe| pipe << PIPE_SHIFT);
        let mut loops = running.pipeline.arch.loops(&mut ports.chain(self.config.cpu_port).chain(pipes));
        if !loops.is_empty() {
            let internal = self.config.internal_pipes.iter().filter(|pipe| **pipe < running.state.pipes());
            loops.extend(
                internal
                    .flat_map(|pipe| (0..PIPE_PORTS).map(move |port| (*pipe as u16) << PIPE_SHIFT | port)),
            );
            loops.sort_unstable();
            loops.dedup();
        }
        self.manager.set_loops(&loops, &self.config);
        self.running = Some(running);
    }

    /// Changes the rate of a port, in both directions; 0 is no limit.
    pub fn set_port_rate(&mut self, port: u16, rate_bps: u64) -> Result<(), ControlError> {
        let at =
            self.manager.find(port.into()).ok_or_else(|| ControlError::NotFound(format!("port {port}")))?;
        self.manager.set_rate(at, rate_bps, &self.config);
        Ok(())
    }

    /// The next frame to send now. Call until it returns `None`. Frames that come back may make it pause before all is
    /// done; [`Switch::next_timeout`] is then in the past.
    pub fn poll_transmit(&mut self, now: Nanos, out: &mut Vec<u8>) -> Option<u16> {
        self.now = self.now.max(now);
        if self.generators.due().is_some_and(|due| due <= now) {
            self.generate(now);
        }
        if self.alarm().is_some_and(|due| due <= now) {
            self.age(now);
        }
        if self.returning.due().is_some_and(|due| due <= now) {
            self.come_back(now);
        }
        let mut returned = 0;
        while returned < RETURNS {
            let at = self.manager.ready(now)?;
            // Otherwise its time is later.
            let Some((id, left)) = self.manager.dequeue(&mut self.pool, at, now) else { continue };
            self.pool.go_on(id);
            let is_nowhere = self.manager.is_nowhere(at);
            returned += u32::from(is_nowhere || self.manager.is_loop(at));
            let sent = self.egress(id, at, left, now, out);
            if self.manager.cpu_waits {
                self.serve_cpu(now);
            }
            if sent && is_nowhere {
                self.manager.sent(at, out.len(), now);
                self.end(id, DropReason::NoSuchPort, None);
            } else if sent {
                let number = self.manager.number(at);
                if self.pool.get(id).meta.trace != 0 {
                    self.tell_sent(id, Some(number), out.len(), now);
                }
                self.pool.release(id);
                self.manager.sent(at, out.len(), now);
                return Some(number);
            }
        }
        None
    }

    /// Gives frames that arrive from now on a number. Their copies have it, too.
    #[inline]
    pub fn set_tag(&mut self, tag: u16) {
        self.pool.tag = tag;
    }

    /// The number of the frame that [`Switch::forward_given`] or [`Switch::poll_transmit`] has just returned.
    #[inline]
    pub fn tag(&self) -> u16 {
        self.pool.tag
    }

    /// The next frame for the controller.
    pub fn poll_cpu(&mut self, out: &mut Vec<u8>) -> bool {
        let Some(id) = self.cpu_queue.pop_front() else {
            return false;
        };
        out.clear();
        out.extend_from_slice(self.pool.get(id).frame());
        self.pool.release(id);
        true
    }

    /// When to call [`Switch::poll_transmit`] again; a time in the past means now.
    #[inline]
    pub fn next_timeout(&self) -> Option<Nanos> {
        let both = |one: Option<Nanos>, other: Option<Nanos>| match (one, other) {
            (one, None) => one,
            (None, other) => other,
            (one, other) => one.min(other),
        };
        let seldom = both(both(self.generators.due(), self.alarm()), self.returning.due());
        both(self.manager.next_timeout(), seldom)
    }

    /// The next time at which an entry may be idle.
    #[inline]
    fn alarm(&self) -> Option<Nanos> {
        self.running.as_ref()?.state.aging.next()
    }

    /// Bytes queued at a port now, with FCS; 0 for an unknown port.
    pub fn queued_bytes(&self, port: u16) -> u64 {
        self.manager.find(port.into()).map_or(0, |at| self.manager.queued_bytes(at))
    }

    /// Bytes in the shared buffer now.
    pub fn buffered_bytes(&self) -> u64 {
        self.manager.buffer().0
    }

    /// Counters of the switch, as of `now`.
    pub fn stats(&self, now: Nanos) -> Stats {
        let (buffer_bytes, buffer_max_bytes) = self.manager.buffer();
        let state = self.running.as_ref().map(|running| &running.state);
        Stats {
            ports: self.manager.stats(now),
            drops: reasons(&self.drops),
            nowhere_frames: self.manager.nowhere_frames(),
            buffer_bytes,
            buffer_max_bytes,
            clones: self.passes.clones,
            replicas: self.passes.replicas,
            copies: self.pool.copies,
            resubmits: self.passes.resubmits,
            recirculations: self.passes.recirculations,
            digests_lost: state.map_or(0, |state| state.digests.lost),
            log_messages: state.map_or(0, |state| state.log.count),
        }
    }

    /// Resets the counters to zero; depths restart from the current queues.
    pub fn reset_stats(&mut self, now: Nanos) {
        self.manager.reset(now);
        self.drops.fill(0);
        self.passes = Passes::default();
        self.pool.copies = 0;
        if let Some(running) = &mut self.running {
            running.state.digests.lost = 0;
            running.state.log.count = 0;
        }
    }

    /// Counts a dropped frame, for the port it was meant for if that is known.
    #[cold]
    #[inline(never)]
    pub(crate) fn drop_frame(&mut self, reason: DropReason, at: Option<usize>) {
        self.drops[reason as usize] += 1;
        let at = at.filter(|at| !self.manager.is_nowhere(*at));
        if let Some(at) = at {
            self.manager.port_mut(at).drops[reason as usize] += 1;
        }
        if let Some(running) = &mut self.running
            && running.state.trace.is_recording()
        {
            let port = at.map(|at| self.manager.number(at));
            running.state.trace.push(self.now, RawEvent::Drop { reason, port });
        }
    }

    /// Runs egress for everything sent to the CPU port, so that [`Switch::poll_cpu`] needs no time parameter.
    #[inline(never)]
    pub(crate) fn serve_cpu(&mut self, now: Nanos) {
        let Some(at) = self.manager.cpu() else {
            return;
        };
        while let Some((id, left)) = self.manager.dequeue(&mut self.pool, at, now) {
            let mut out = std::mem::take(&mut self.cpu_out);
            if self.egress(id, at, left, now, &mut out) {
                if self.cpu_queue.len() >= self.config.cpu_queue_frames {
                    self.end(id, DropReason::CpuQueueFull, Some(at));
                } else {
                    if self.pool.get(id).meta.trace != 0 {
                        self.tell_sent(id, None, out.len(), now);
                    }
                    self.pool.get_mut(id).set_frame(&out);
                    self.manager.sent(at, out.len(), now);
                    self.cpu_queue.push_back(id);
                }
            }
            self.cpu_out = out;
        }
    }
}
