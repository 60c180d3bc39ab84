//! The second compute node of a Cowbird rack, at the fourth port: honest or hostile, and its effect on the first one's threads.

use super::{CLOCK, CowbirdWorld, Event};
use crate::cowbird::experiment::{CowbirdExperiment, CowbirdScheme, CowbirdSpec};
use crate::cowbird::nic::{MESSAGE_BYTES_MAX, Nic, ps};
use crate::cowbird::rack::{self, COMPUTE, COMPUTE_QPN, POOL, POOL_QPN, SINK, SPOT};
use crate::cowbird::records::{POOL_KEY, POOL_START, SCRATCH_BYTES};
use crate::cowbird::thread::Thread;
use crate::hostile::OthersOutcome;
use crate::kernel::Direction;
use crate::latency::Latency;
use crate::message::mac_of;
use p4rack_codegen::scheme::cowbird::Cowbird;
use p4rack_cowbird::Layout;
use p4rack_fabric::Machine as _;
use p4rack_fabric::cowbird::{Pool, Set};
use p4rack_fabric::hostile::cowbird::{Aim, Attack, Config, EndlessSet, Machine, Rings};
use p4rack_fabric::roce::Connection;
use p4rack_wire::{Histogram, Nanos};

/// Seed of its random choices.
const SEED: u64 = 7;
/// First number of its queue pairs with the pool.
const DIRECT_QPN: u32 = 0x8000;
/// Longest message that an engine in a switch takes by default, in bytes.
const IN_SWITCH_BYTES_MAX: u32 = 64 << 10;

/// Behaviour of the second compute node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cowbird) enum Second {
    /// There is none.
    Absent,
    /// Honest, with as many threads as the first one.
    Threads,
    /// It attacks.
    Attacks(Attack),
}

impl Second {
    pub fn of(spec: &CowbirdSpec) -> Second {
        match spec.hostile.first().map(|one| one.attack.parse()) {
            None => Second::Absent,
            Some(Ok(attack)) => Second::Attacks(attack),
            Some(Err(_)) => Second::Threads,
        }
    }
}

/// The attacking host, during and after the set-up of its queue pairs.
#[derive(Debug)]
pub(in crate::cowbird) struct Attacker {
    config: Config,
    machine: Option<Machine>,
    /// Whether the engine is in the switch.
    is_in_switch: bool,
    /// When its next frame is on the agenda.
    pub planned_ps: u64,
}

impl Attacker {
    /// An attacker, with queue pairs to the pool if it attacks the pool. Errors: the pool refuses them.
    pub fn new(
        experiment: &CowbirdExperiment,
        nics: &mut [Nic],
        pool_bytes: u64,
    ) -> Result<Option<Attacker>, String> {
        let spec = &experiment.spec;
        let (Second::Attacks(attack), Some(one)) = (Second::of(spec), spec.hostile.first()) else {
            return Ok(None);
        };
        let mut pool = Vec::new();
        let pairs = if attack.needs_engine() { 0 } else { u32::from(one.pairs) };
        for qpn in (0..pairs).map(|nth| DIRECT_QPN + nth) {
            let added = nics[POOL].adapter.add_pair(qpn, rack::connection(POOL, SINK, qpn));
            added.map_err(|error| error.to_string())?;
            pool.push((qpn, rack::connection(SINK, POOL, qpn)));
        }
        let config = Config {
            attack,
            mac: mac_of(SINK),
            adapter: nics[SINK].config().clone(),
            pool,
            key: POOL_KEY,
            address: POOL_START + pool_bytes,
            bytes: SCRATCH_BYTES,
            engine: Vec::new(),
            rings: Rings::default(),
            others: Vec::new(),
            rate_bps: experiment.rate_bps,
            catch_up: Nanos::ZERO,
        };
        Ok(Some(Attacker {
            config,
            machine: None,
            is_in_switch: spec.scheme == CowbirdScheme::CowbirdP4,
            planned_ps: u64::MAX,
        }))
    }

    /// Sets that the engine serves for it.
    pub fn sets(&self, spec: &CowbirdSpec) -> u16 {
        let asked = spec.hostile.first().map_or(0, |one| one.sets);
        if self.config.attack.needs_engine() { asked } else { 0 }
    }

    /// Bytes of its longest message: the engine's maximum.
    fn message_bytes(&self) -> u32 {
        if self.is_in_switch { IN_SWITCH_BYTES_MAX } else { MESSAGE_BYTES_MAX }
    }

    /// Sizes of its rings.
    pub fn layout(&self) -> Layout {
        let ring = 2 * u64::from(self.message_bytes());
        Layout { entries: 1_024, request_bytes: ring, response_bytes: ring }
    }

    /// Adds a queue pair with the engine.
    pub fn add_engine(&mut self, qpn: u32, connection: Connection) {
        self.config.engine.push((qpn, connection));
    }

    /// Adds rings that the engine serves.
    pub fn add_rings(&mut self, rings: (u32, u64)) {
        let contents = self.config.attack.rings();
        let set = EndlessSet::new(rings, self.layout(), contents, SCRATCH_BYTES, self.message_bytes());
        self.config.rings.0.push(set);
    }

    /// Adds a connection between other hosts to its knowledge.
    pub fn knows(&mut self, connection: &Connection) {
        let Connection { path, peer_qpn, send_psn, .. } = *connection;
        self.config.others.push(Aim { path, qpn: peer_qpn, psn: send_psn });
    }

    /// Its machine, made at the first use.
    pub fn machine(&mut self) -> Result<&mut Machine, String> {
        if self.machine.is_none() {
            let machine = Machine::new(self.config.clone(), SEED, Nanos::ZERO);
            self.machine = Some(machine.map_err(|error| error.to_string())?);
        }
        self.machine.as_mut().ok_or_else(|| "the hostile host has no machine".to_owned())
    }

    /// Requests of its rings that the engine completed.
    pub fn served(&self) -> u64 {
        self.machine.as_ref().map_or(0, |machine| machine.rings().0.iter().map(EndlessSet::done).sum())
    }
}

/// Connects the spare host, with an engine, with the attacker.
pub(in crate::cowbird) fn connect_spot(
    nics: &mut [Nic],
    attacker: &mut Attacker,
    qpn: u32,
) -> Result<(), String> {
    let added = nics[SPOT].adapter.add_pair(qpn, rack::connection(SPOT, SINK, qpn));
    added.map_err(|error| error.to_string())?;
    attacker.add_engine(qpn, rack::connection(SINK, SPOT, qpn));
    Ok(())
}

/// The host of a program: the first compute node, then the fourth host and those behind it.
pub(in crate::cowbird) fn home_of(program: usize) -> usize {
    if program == 0 { COMPUTE } else { SINK + program - 1 }
}

impl CowbirdWorld<'_> {
    /// The host of a thread, or of a program.
    pub(in crate::cowbird) fn home(&self, thread: usize) -> usize {
        if self.experiment.programs > 0 {
            return home_of(thread);
        }
        if thread < usize::from(self.experiment.spec.threads) { COMPUTE } else { SINK }
    }

    fn is_hostile(&self, set: usize) -> bool {
        set >= self.threads.len() + self.programs.len()
    }

    /// The host of a set that the switch's engine serves.
    pub(in crate::cowbird) fn host_of(&self, set: usize) -> usize {
        if self.is_hostile(set) { SINK } else { self.home(set) }
    }

    /// Connects two hosts, perhaps to serve a third. The hostile host learns of the connection.
    pub(in crate::cowbird) fn link_pairs(
        &mut self,
        (from, to): (usize, usize),
        served: Option<usize>,
        qpn: u32,
    ) -> Result<(), String> {
        if let Some(attacker) = &mut self.attacker {
            attacker.knows(&rack::connection(from, to, qpn));
            attacker.knows(&rack::connection(to, from, qpn));
        }
        rack::connect(&mut self.nics, (from, to), served, qpn)
    }

    /// Rings of the hostile host, which a core of the spare host serves.
    pub(in crate::cowbird) fn hostile_rings(&mut self, set: usize, pool_bytes: u64) -> Result<(), String> {
        let Some(attacker) = &mut self.attacker else { return Ok(()) };
        let (to_compute, to_pool) = (COMPUTE_QPN + set as u32, POOL_QPN + set as u32);
        connect_spot(&mut self.nics, attacker, to_compute)?;
        rack::connect(&mut self.nics, (SPOT, POOL), Some(SINK), to_pool)?;
        let (key, address) = rack::rings_of(set);
        attacker.add_rings((key, address));
        let pool =
            Pool { qpn: to_pool, key: POOL_KEY, address: POOL_START + pool_bytes, bytes: SCRATCH_BYTES };
        let (owner, layout, regions) = (SINK as u32, attacker.layout(), vec![pool]);
        let cores = self.cores.len();
        let set = (set, Set { owner, qpn: to_compute, key, address, layout, regions });
        self.cores[set.0 % cores]
            .engine
            .add(set.1, Nanos::ZERO)
            .map(|_| ())
            .map_err(|error| error.to_string())
    }

    /// Adds a set to the engine in the switch.
    pub(in crate::cowbird) fn serve(
        &mut self,
        set: usize,
        engine: &Cowbird,
        pool_bytes: u64,
    ) -> Result<(), String> {
        let (is_hostile, host) = (self.is_hostile(set), self.host_of(set));
        let (layout, pool) = match self.attacker.as_ref().filter(|_| is_hostile) {
            Some(attacker) => (attacker.layout(), (POOL_START + pool_bytes, SCRATCH_BYTES)),
            None => (rack::layout(self.plan.window, self.plan.record_bytes), (POOL_START, pool_bytes)),
        };
        let served = rack::Served { set, host, layout, pool };
        let pairs = rack::serve(&mut self.hub.model, &mut self.nics, engine, served)?;
        for (qpn, connection) in pairs {
            match &mut self.attacker {
                Some(attacker) if is_hostile => attacker.add_engine(qpn, connection),
                attacker => {
                    if let Some(attacker) = attacker {
                        attacker.knows(&connection);
                    }
                    self.nics[host].adapter.add_pair(qpn, connection).map_err(|error| error.to_string())?;
                }
            }
        }
        if let Some(attacker) = self.attacker.as_mut().filter(|_| is_hostile) {
            attacker.add_rings(rack::rings_of(set));
        }
        Ok(())
    }

    /// Puts the hostile host's next frame on the agenda.
    pub(in crate::cowbird) fn plan_attack(&mut self, now_ps: u64) {
        let Some(attacker) = &mut self.attacker else { return };
        let planned_ps = attacker.planned_ps;
        let Ok(machine) = attacker.machine() else { return };
        let due = machine.next_timeout().unwrap_or(Nanos::MAX);
        let at_ps = CLOCK.ticks(due).max(self.nics[SINK].free_ps).max(now_ps);
        if due < Nanos::MAX && at_ps < planned_ps {
            attacker.planned_ps = at_ps;
            self.agenda.add(at_ps, Event::Attack);
        }
    }

    /// Sends the hostile host's next frame.
    pub(in crate::cowbird) fn attack(&mut self, now_ps: u64) {
        let Some(attacker) = self.attacker.as_mut().filter(|one| one.planned_ps == now_ps) else { return };
        attacker.planned_ps = u64::MAX;
        let Ok(machine) = attacker.machine() else { return };
        let mut frame = self.frames.take(true);
        if machine.poll_link(CLOCK.nanos(now_ps), &mut frame).is_some() {
            let tail_ps = self.nics[SINK].transmit(now_ps, frame.len());
            let at_ps = tail_ps + ps(self.experiment.spec.nic.link_ns);
            self.carry(Direction::Up(SINK as u16), frame, at_ps);
        } else {
            self.frames.release(frame);
        }
        self.plan_attack(now_ps);
    }
}

/// Results of the first compute node's threads.
pub(in crate::cowbird) fn others(
    spec: &CowbirdSpec,
    threads: &[Thread],
    measured_ns: u64,
) -> Option<OthersOutcome> {
    if spec.hostile.is_empty() {
        return None;
    }
    let first = &threads[..threads.len().min(spec.threads.into())];
    let mut latency = Histogram::new();
    first.iter().for_each(|thread| latency.add(&thread.tally.latency));
    let remote: u64 = first.iter().map(|thread| thread.tally.remote).sum();
    let gbps = remote as f64 * f64::from(spec.record_bytes) * 8.0 / measured_ns as f64;
    Some(OthersOutcome {
        goodput_gbps: [("compute".to_owned(), gbps)].into(),
        frames_lost: first.iter().map(|one| one.outstanding() + one.tally.failed + one.tally.wrong).sum(),
        latency_ns: Latency::of(&latency, false),
    })
}
