//! The packet generators of the pipes. An application sends frames from its pipe's buffer when a timer ends, a port goes
//! down or a frame comes back. A header in front of each names the application that sent it.

use crate::arch::Arch;
use crate::arch::tna::{LOCAL_BITS, origin};
use crate::error::ControlError;
use crate::pool::{Meta, PacketId};
use crate::switch::Switch;
use p4rack_wire::Nanos;
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of a pipe's buffer of frames.
pub const PACKET_BUFFER_BYTES: usize = 16 * 1024;
/// Most batches of a run, and most frames of a batch.
const MOST: u32 = 1 << 16;
/// Frames that an application sends before others, and the queues, get a turn.
const BURST: u32 = 32;
/// The port, within a pipe, by which the first generation's frames come in.
const FIRST_PORT: u16 = 68;

/// Event that starts an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketTrigger {
    /// It runs once, so long after it is enabled.
    OneShot {
        /// Time from enabling to the first frame.
        after_ns: u64,
    },
    /// It runs again and again, first one period after it is enabled.
    Periodic {
        /// Time between the beginnings of two runs.
        period_ns: u64,
    },
    /// A port of its pipe goes down.
    PortDown {
        /// Bit `n`: whether port `n` of the pipe counts.
        ports: u128,
    },
    /// A frame comes back that begins with this pattern of 32 bits, in the second generation 128.
    Recirculated {
        /// The bits.
        value: u128,
        /// Which of them count.
        mask: u128,
    },
}

/// An application of a packet generator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketApp {
    /// Whether it runs. Enabling it starts its timer.
    pub enabled: bool,
    /// Event that starts it.
    pub trigger: PacketTrigger,
    /// Position of its frame in the buffer, in bytes.
    pub offset: usize,
    /// Length of the frame in bytes, without the header in front.
    pub length: usize,
    /// Batches of a run, 1 to 65536.
    pub batches: u32,
    /// Frames of a batch, 1 to 65536.
    pub packets: u32,
    /// Time between the beginnings of two batches; none begins before the last one has ended.
    pub batch_gap_ns: u64,
    /// Time between two frames of a batch.
    pub packet_gap_ns: u64,
    /// Ingress port of the frames, within the pipe.
    pub source_port: u16,
    /// Whether each frame of a batch has the next ingress port.
    pub increments_port: bool,
}

/// Counts of an application.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketCounts {
    /// Runs.
    pub triggers: u64,
    /// Batches.
    pub batches: u64,
    /// Frames.
    pub packets: u64,
}

/// Role of a port in packet generation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketPort {
    /// Whether generated frames may come in by it: port 68 of each pipe, in the second generation the source port.
    pub generates: bool,
    /// Whether frames that come back by it may start applications.
    pub matches: bool,
}

/// Frames that a run has still to send.
#[derive(Clone, Copy, Debug)]
struct Run {
    batch: u32,
    packet: u32,
    /// When the batch has begun.
    begun: Nanos,
    due: Nanos,
    /// Value in the header in place of the batch.
    key: Option<[u8; 3]>,
    /// Bytes behind the header.
    context: Option<[u8; 16]>,
}

#[derive(Clone, Debug)]
struct App {
    config: PacketApp,
    counts: PacketCounts,
    /// When its timer ends.
    timer: Option<Nanos>,
    run: Option<Run>,
}

impl App {
    /// When it has something to do.
    fn due(&self) -> Option<Nanos> {
        self.run.map(|run| run.due).or(self.timer)
    }

    fn start(&mut self, now: Nanos, key: Option<[u8; 3]>, context: Option<[u8; 16]>) {
        self.counts.triggers += 1;
        self.run = Some(Run { batch: 0, packet: 0, begun: now, due: now, key, context });
    }

    /// When the timer has ended, if nothing runs. Sets it again if it is periodic.
    fn rung(&mut self, now: Nanos, catch_up: Nanos) -> Option<Nanos> {
        let at = self.timer.filter(|at| *at <= now && self.run.is_none())?;
        self.timer = match self.config.trigger {
            PacketTrigger::Periodic { period_ns } => {
                Some(at.saturating_add(Nanos(period_ns)).max(now.saturating_sub(catch_up)))
            }
            _ => None,
        };
        Some(at)
    }

    /// Counts a frame and plans the next one.
    fn step(&mut self, mut run: Run) {
        self.counts.packets += 1;
        run.packet += 1;
        run.due = run.due.saturating_add(Nanos(self.config.packet_gap_ns));
        if run.packet >= self.config.packets {
            self.counts.batches += 1;
            (run.packet, run.batch) = (0, run.batch + 1);
            run.begun = run.begun.saturating_add(Nanos(self.config.batch_gap_ns)).max(run.due);
            run.due = run.begun;
        }
        self.run = (run.batch < self.config.batches).then_some(run);
    }
}

/// A pipe's generator.
#[derive(Clone, Debug)]
struct Unit {
    buffer: Vec<u8>,
    apps: BTreeMap<usize, App>,
}

/// The generators of all pipes.
#[derive(Clone, Debug, Default)]
pub(crate) struct PacketApps {
    units: Vec<Unit>,
    ports: BTreeMap<u16, PacketPort>,
    /// Ports that have gone down since they were last cleared.
    gone: BTreeSet<u16>,
    /// The frame that is generated.
    frame: Vec<u8>,
    /// Frames that are to come in.
    ready: Vec<PacketId>,
}

impl PacketApps {
    /// When an application has something to do.
    pub fn due(&self) -> Option<Nanos> {
        self.units.iter().flat_map(|unit| unit.apps.values()).filter_map(App::due).min()
    }

    fn unit(&mut self, pipe: usize) -> &mut Unit {
        while self.units.len() <= pipe {
            self.units.push(Unit { buffer: vec![0; PACKET_BUFFER_BYTES], apps: BTreeMap::new() });
        }
        &mut self.units[pipe]
    }

    /// Applications of a port's pipe that are enabled and do nothing.
    fn waiting(&mut self, port: u16) -> impl Iterator<Item = &mut App> {
        let unit = self.units.get_mut(usize::from(port >> LOCAL_BITS));
        let apps = unit.into_iter().flat_map(|unit| unit.apps.values_mut());
        apps.filter(|app| app.config.enabled && app.run.is_none())
    }
}

impl Switch {
    /// Number of applications of each pipe's packet generator; 0 without a program that has any.
    pub fn packet_apps(&self) -> usize {
        match self.arch() {
            Some(Arch::Tna) => 8,
            Some(Arch::SecondTna) => 16,
            _ => 0,
        }
    }

    /// Configures an application in the pipes that are meant. Its counts stay. Fails if there is no such application or
    /// a value is out of range.
    pub fn packet_app_set(&mut self, number: usize, config: PacketApp) -> Result<(), ControlError> {
        let name = self.app_name(number)?;
        let refuse = |what: String| Err(ControlError::Invalid(format!("{name}: {what}")));
        if config.length == 0 || config.offset.saturating_add(config.length) > PACKET_BUFFER_BYTES {
            let (at, length) = (config.offset, config.length);
            return refuse(format!("{length} bytes at {at} of a buffer of {PACKET_BUFFER_BYTES}"));
        }
        for (what, count) in [("batches", config.batches), ("packets a batch", config.packets)] {
            if !(1..=MOST).contains(&count) {
                return refuse(format!("{count} {what}: 1 to {MOST} are possible"));
            }
        }
        if config.source_port >> LOCAL_BITS != 0 {
            return refuse(format!("port {} of a pipe: it has 0 to 127", config.source_port));
        }
        let first = match config.trigger {
            PacketTrigger::Periodic { period_ns: 0 } => return refuse("a period of 0 ns".into()),
            PacketTrigger::OneShot { after_ns: time_ns } | PacketTrigger::Periodic { period_ns: time_ns } => {
                Some(self.now.saturating_add(Nanos(time_ns)))
            }
            _ => None,
        };
        for pipe in self.meant() {
            let apps = &mut self.generators.apps.unit(pipe).apps;
            let old = apps.remove(&number);
            let counts = old.as_ref().map_or_else(PacketCounts::default, |old| old.counts);
            let mut app = App { config: config.clone(), counts, timer: None, run: None };
            match old {
                Some(old) if old.config == config => app = old,
                _ if config.enabled => app.timer = first,
                _ => {}
            }
            apps.insert(number, app);
        }
        self.generators.plan();
        Ok(())
    }

    /// An application's configuration in the first selected pipe, if it has one, and the sum of its counts.
    pub fn packet_app(&self, number: usize) -> Result<(Option<PacketApp>, PacketCounts), ControlError> {
        self.app_name(number)?;
        let mut sum = PacketCounts::default();
        let apps = self.meant().map(|pipe| self.generators.apps.units.get(pipe)?.apps.get(&number));
        let apps: Vec<Option<&App>> = apps.collect();
        for app in apps.iter().flatten() {
            sum.triggers += app.counts.triggers;
            sum.batches += app.counts.batches;
            sum.packets += app.counts.packets;
        }
        Ok((apps.first().copied().flatten().map(|app| app.config.clone()), sum))
    }

    /// Sets the counts of an application: those of the first selected pipe; the others become 0.
    pub fn packet_counts_set(&mut self, number: usize, counts: PacketCounts) -> Result<(), ControlError> {
        self.app_name(number)?;
        for (turn, pipe) in self.meant().enumerate() {
            if let Some(app) = self.generators.apps.unit(pipe).apps.get_mut(&number) {
                app.counts = if turn == 0 { counts } else { PacketCounts::default() };
            }
        }
        Ok(())
    }

    /// Removes an application with its counts.
    pub fn packet_app_remove(&mut self, number: usize) -> Result<(), ControlError> {
        self.app_name(number)?;
        for pipe in self.meant() {
            self.generators.apps.unit(pipe).apps.remove(&number);
        }
        self.generators.plan();
        Ok(())
    }

    /// Writes bytes into the buffers of the pipes that are meant.
    pub fn packet_buffer_write(&mut self, offset: usize, bytes: &[u8]) -> Result<(), ControlError> {
        self.app_name(0)?;
        check_buffer(offset, bytes.len())?;
        for pipe in self.meant() {
            self.generators.apps.unit(pipe).buffer[offset..][..bytes.len()].copy_from_slice(bytes);
        }
        Ok(())
    }

    /// Bytes of the buffer of the first selected pipe.
    pub fn packet_buffer_read(&self, offset: usize, length: usize) -> Result<Vec<u8>, ControlError> {
        self.app_name(0)?;
        check_buffer(offset, length)?;
        let unit = self.meant().next().and_then(|pipe| self.generators.apps.units.get(pipe));
        let bytes = unit.and_then(|unit| unit.buffer.get(offset..)?.get(..length));
        Ok(bytes.map_or_else(|| vec![0; length], <[u8]>::to_vec))
    }

    /// Sets a port's role in packet generation.
    pub fn packet_port_set(&mut self, port: u16, config: PacketPort) -> Result<(), ControlError> {
        self.app_name(0)?;
        if usize::from(port >> LOCAL_BITS) >= self.pipes() {
            return Err(ControlError::NotFound(format!("port {port} (there are {} pipes)", self.pipes())));
        }
        self.generators.apps.ports.insert(port, config);
        Ok(())
    }

    /// Role of a port in packet generation.
    pub fn packet_port(&self, port: u16) -> PacketPort {
        self.generators.apps.ports.get(&port).copied().unwrap_or_default()
    }

    /// Lets a port that has gone down start applications again when it next does.
    pub fn packet_port_clear(&mut self, port: u16) {
        self.generators.apps.gone.remove(&port);
    }

    fn app_name(&self, number: usize) -> Result<String, ControlError> {
        let name = format!("application {number} of the packet generator");
        if number < self.packet_apps() { Ok(name) } else { Err(ControlError::NotFound(name)) }
    }

    /// Starts the applications that wait for a port to go down.
    pub(in crate::switch) fn port_has_gone(&mut self, port: u16) {
        let apps = &mut self.generators.apps;
        if apps.units.is_empty() || !apps.gone.insert(port) {
            return;
        }
        let (local, [high, low]) = (port & ((1 << LOCAL_BITS) - 1), port.to_be_bytes());
        for app in apps.waiting(port) {
            if matches!(app.config.trigger, PacketTrigger::PortDown { ports } if ports >> local & 1 != 0) {
                app.start(self.now, Some([0, high, low]), None);
            }
        }
        self.generators.plan();
    }

    /// Starts the applications that wait for a frame like this one, which comes back by a port.
    pub(super) fn has_come_back<const SECOND: bool>(&mut self, port: u16, frame: &[u8], now: Nanos) {
        let apps = &mut self.generators.apps;
        if apps.units.is_empty() || !apps.ports.get(&port).is_some_and(|port| port.matches) {
            return;
        }
        let count = if SECOND { 16 } else { 4 };
        let Some(head) = frame.get(..count) else { return };
        let seen = head.iter().fold(0u128, |seen, byte| seen << 8 | u128::from(*byte));
        for app in apps.waiting(port) {
            let PacketTrigger::Recirculated { value, mask } = app.config.trigger else { continue };
            if (seen ^ value) & mask == 0 {
                let [.., a, b, c] = seen.to_be_bytes();
                match SECOND {
                    true => app.start(now, None, Some(seen.to_be_bytes())),
                    false => app.start(now, Some([a, b, c]), None),
                }
            }
        }
        self.generators.plan();
    }

    /// Sends the generated frames that are due.
    pub(in crate::switch) fn run_packet_apps(&mut self, now: Nanos) {
        let Some(arch) = self.arch().filter(|_| !self.generators.apps.units.is_empty()) else { return };
        let mut apps = std::mem::take(&mut self.generators.apps);
        let id_bits = if arch == Arch::SecondTna { 4 } else { 3 };
        let mut ready = std::mem::take(&mut apps.ready);
        for (pipe, unit) in apps.units.iter_mut().enumerate() {
            for (number, app) in &mut unit.apps {
                let rung = app.rung(now, self.config.catch_up);
                let gate = if arch == Arch::SecondTna { app.config.source_port } else { FIRST_PORT };
                let gate = apps.ports.get(&((pipe as u16) << LOCAL_BITS | gate));
                if !gate.is_some_and(|port| port.generates) {
                    app.run = None;
                    continue;
                }
                if let Some(at) = rung {
                    app.start(at, None, None);
                }
                for _ in 0..BURST {
                    let Some(run) = app.run.filter(|run| run.due <= now) else { break };
                    let step = if app.config.increments_port { run.packet as u16 } else { 0 };
                    let local = app.config.source_port.wrapping_add(step) & ((1 << LOCAL_BITS) - 1);
                    let [high, low] = (run.batch as u16).to_be_bytes();
                    apps.frame.clear();
                    apps.frame.push((pipe << id_bits | number) as u8);
                    apps.frame.extend(run.key.unwrap_or([0, high, low]));
                    apps.frame.extend((run.packet as u16).to_be_bytes());
                    apps.frame.extend(run.context.iter().flatten());
                    apps.frame.extend(&unit.buffer[app.config.offset..][..app.config.length]);
                    let ingress_port = (pipe as u16) << LOCAL_BITS | local;
                    let meta =
                        Meta { ingress_port, arrived: now, origin: origin::GENERATED, ..Meta::default() };
                    ready.push(self.pool.alloc(&apps.frame, meta));
                    app.step(run);
                }
            }
        }
        self.generators.apps = apps;
        for id in ready.drain(..) {
            arch.ingress(self, id, now);
        }
        self.generators.apps.ready = ready;
        self.generators.plan();
    }
}

fn check_buffer(offset: usize, length: usize) -> Result<(), ControlError> {
    match offset.checked_add(length) {
        Some(end) if end <= PACKET_BUFFER_BYTES => Ok(()),
        _ => Err(ControlError::Invalid(format!(
            "{length} bytes at {offset} of a packet buffer of {PACKET_BUFFER_BYTES} bytes"
        ))),
    }
}
