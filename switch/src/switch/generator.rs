//! Packet generators: frames that the switch itself injects, once, N times or endlessly.
//!
//! A generator is a pure function of time: frame `n` arrives at `start + n * period`. If polled late, it
//! makes up for at most [`crate::Config::catch_up`]; frames that were due earlier are skipped and counted.
//!
//! A thread that runs a switch may let all generators rest ([`Switch::rest_generators`]), so that they don't take all of its time.

use super::arch::PacketApps;
use crate::error::ControlError;
use crate::switch::Switch;
use p4rack_wire::Nanos;
use std::collections::BTreeMap;

/// Maximum number of generators.
pub const MAX_GENERATORS: usize = 256;
/// Frames that a generator injects before others, and the queues, get a turn.
const BURST: u32 = 32;

/// Configuration of a generator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeneratorConfig {
    /// The frame, without FCS.
    pub frame: Vec<u8>,
    /// Port on which it arrives.
    pub port: u16,
    /// Time of the first frame. A time in the past means now.
    pub start: Nanos,
    /// Time between frames; unused if there is only one.
    pub period: Nanos,
    /// Number of frames; 0 is endless.
    pub count: u64,
}

/// Statistics of a generator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GeneratorStats {
    /// Frames injected.
    pub sent: u64,
    /// Frames skipped because the switch was polled too late, or because generators rested.
    pub skipped: u64,
    /// Whether more frames will follow.
    pub active: bool,
}

#[derive(Clone, Debug)]
struct Generator {
    config: GeneratorConfig,
    stats: GeneratorStats,
    /// Time of the next frame.
    due: Nanos,
}

impl Generator {
    /// Advances by `count` frames, which have been sent or skipped.
    fn step(&mut self, count: u64) {
        let total = self.stats.sent + self.stats.skipped;
        self.stats.active = self.config.count == 0 || total < self.config.count;
        self.due = self.due.saturating_add(Nanos(self.config.period.0.saturating_mul(count)));
    }
}

/// All generators of a switch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Generators {
    all: BTreeMap<u32, Generator>,
    /// Those that the device itself has.
    pub apps: PacketApps,
    /// Time at which the first generator is due; `None` if none is.
    due: Option<Nanos>,
    /// Time at which a rest ends. Until then none injects.
    rests_until: Nanos,
    /// Number of times that generators have injected what was due.
    runs: u64,
}

impl Generators {
    /// Time of the next frame of any generator.
    #[inline]
    pub fn due(&self) -> Option<Nanos> {
        self.due.map(|due| due.max(self.rests_until))
    }

    /// Finds out when the next frame is due.
    pub fn plan(&mut self) {
        let active = self.all.values().filter(|one| one.stats.active).map(|one| one.due);
        self.due = active.chain(self.apps.due()).min();
    }

    /// Forgets the program's own state.
    pub fn restart(&mut self) {
        self.apps = PacketApps::default();
        self.plan();
    }
}

impl Switch {
    /// Adds a generator, or replaces and restarts it. Fails if the frame is empty or too long, the port is
    /// unknown or the CPU port, the period is missing, or there are too many generators.
    pub fn generator_set(&mut self, number: u32, mut config: GeneratorConfig) -> Result<(), ControlError> {
        let name = format!("generator {number}");
        if config.frame.is_empty() || config.frame.len() > self.config.max_frame_bytes {
            let (length, most) = (config.frame.len(), self.config.max_frame_bytes);
            return Err(ControlError::Invalid(format!(
                "{name}: a frame has 1 to {most} bytes, not {length}"
            )));
        }
        if self.config.cpu_port == Some(config.port) {
            let port = config.port;
            return Err(ControlError::Invalid(format!(
                "{name}: port {port} is the CPU port, where only the controller's packets come in; give another"
            )));
        }
        if self.manager.find(config.port.into()).is_none() {
            return Err(ControlError::NotFound(format!("{name}: port {}", config.port)));
        }
        if config.count != 1 && config.period == Nanos::ZERO {
            return Err(ControlError::Invalid(format!("{name}: more than one frame needs a period above 0")));
        }
        if self.generators.all.len() >= MAX_GENERATORS && !self.generators.all.contains_key(&number) {
            return Err(ControlError::ResourceExhausted { object: name, limit: MAX_GENERATORS as u64 });
        }
        config.start = config.start.max(self.now);
        let stats = GeneratorStats { active: true, ..GeneratorStats::default() };
        self.generators.all.insert(number, Generator { due: config.start, stats, config });
        self.generators.plan();
        Ok(())
    }

    /// Removes a generator.
    pub fn generator_remove(&mut self, number: u32) -> Result<(), ControlError> {
        let gone = self.generators.all.remove(&number);
        self.generators.plan();
        gone.map(|_| ()).ok_or_else(|| ControlError::NotFound(format!("generator {number}")))
    }

    /// All generators by number, with their statistics.
    pub fn generators(&self) -> Vec<(u32, GeneratorConfig, GeneratorStats)> {
        self.generators.all.iter().map(|(&number, one)| (number, one.config.clone(), one.stats)).collect()
    }

    /// Lets all generators rest until a time. Afterwards an endless one injects a single frame in place of those that were due; the
    /// others are skipped and counted. Finite ones, and applications of a device, make up for the rest as for any delay.
    #[inline]
    pub fn rest_generators(&mut self, until: Nanos) {
        self.generators.rests_until = until;
    }

    /// Number of times that generators have injected frames that were due; `None` while none has frames to inject.
    #[inline]
    pub fn generator_runs(&self) -> Option<u64> {
        self.generators.due.map(|_| self.generators.runs)
    }

    /// Injects frames that are due.
    #[cold]
    pub(crate) fn generate(&mut self, now: Nanos) {
        self.generators.runs += 1;
        let mut all = std::mem::take(&mut self.generators.all);
        for one in all.values_mut() {
            let mut earliest = now.saturating_sub(self.config.catch_up);
            if one.config.count == 0 {
                earliest = earliest.max(self.generators.rests_until.saturating_sub(one.config.period));
            }
            if one.stats.active && one.due < earliest && one.config.period > Nanos::ZERO {
                let late = earliest.saturating_sub(one.due).0.div_ceil(one.config.period.0);
                let left = match one.config.count {
                    0 => u64::MAX,
                    count => count - one.stats.sent - one.stats.skipped,
                };
                let skipped = late.min(left);
                one.stats.skipped += skipped;
                one.step(skipped);
            }
            let mut burst = 0;
            while one.stats.active && one.due <= now && burst < BURST {
                self.handle_generated(one.config.port, &one.config.frame, now);
                one.stats.sent += 1;
                one.step(1);
                burst += 1;
            }
        }
        self.generators.all = all;
        self.run_packet_apps(now);
        self.generators.plan();
    }
}
