//! Runs statements on a switch and compares its frames.

use crate::StfError;
use crate::command::{Command, EntryAction, Index, Statement};
use crate::compare::{Failure, Output, differences};
use crate::names;
use crate::play::{Fate, Player, Sent};
use num_bigint::BigUint;
use p4rack_p4::ir::{InstanceKind, Matcher, Program, TableId};
use p4rack_switch::{
    CloneSession, Config, CounterData, EntryRef, Indirect, MeterConfig, Pipeline, PortConfig, Replica,
    Switch, TableEntry,
};
use p4rack_wire::Nanos;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Time between packets.
const PACKET_GAP: Nanos = Nanos::from_millis(1);
/// Time after a control-plane operation, and for `wait`.
const PAUSE: Nanos = Nanos::from_secs(1);
/// Maximum multicast groups, nodes and clone sessions of a file.
const MAX_GROUPS: usize = 256;
/// Maximum events of a file that are kept.
pub const MAX_EVENTS: usize = 1_000_000;
/// The default port that means "drop".
pub const DROP_PORT: u16 = 511;
/// Ports of the switch under test, including the drop port.
const PORTS: u16 = 512;

/// The result of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Deviations; empty if the program behaves as the file says.
    pub failures: Vec<Failure>,
    /// Values that statements read, by line.
    pub notes: Vec<(u32, String)>,
    /// Packets sent to the switch.
    pub packets: usize,
    /// Frames expected.
    pub expected: usize,
    /// What became of each packet, if the program is traced.
    pub traces: Vec<Traced>,
    /// Packets without a trace, because there were [`MAX_EVENTS`] events before.
    pub untraced: usize,
}

/// What became of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traced {
    /// Line of its statement.
    pub line: u32,
    /// Port on which it arrived; `None` for what happens during a `wait`.
    pub port: Option<u16>,
    /// Its length in bytes.
    pub bytes: usize,
    /// Events, messages and frames.
    pub fate: Fate,
}

impl Outcome {
    /// Whether the program behaves as the file says.
    pub fn passed(&self) -> bool {
        self.failures.is_empty()
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for failure in &self.failures {
            writeln!(f, "line {}: {}", failure.line, failure.what)?;
        }
        Ok(())
    }
}

/// An entry with a handle.
struct Handle {
    table: TableId,
    keys: Vec<Matcher>,
    priority: i32,
}

/// A run in progress.
struct Runner<'p> {
    program: &'p Program,
    player: Player,
    outcome: Outcome,
    /// Ports that the file names. Frames of other ports are ignored.
    watched: BTreeSet<u16>,
    sent: BTreeMap<u16, Vec<Output>>,
    /// Ports on which the last packet was sent, among those that the file names.
    last: Vec<u16>,
    handles: BTreeMap<String, Handle>,
    /// Nodes: RID and ports.
    nodes: Vec<(u16, Vec<u16>)>,
    groups: BTreeMap<u32, Vec<u32>>,
    /// Port or group of each clone session.
    mirrors: BTreeMap<u32, Mirror>,
    /// Whether groups and sessions have changed since the switch was updated.
    stale: bool,
    /// Trace events so far, and the line of the last packet.
    events: usize,
    last_line: Option<u32>,
}

/// Destinations of a session's clones: a port, a group, or both.
#[derive(Clone, Copy, Default)]
struct Mirror {
    port: Option<u16>,
    group: Option<u32>,
}

/// Runs a file against a program on a switch with the drop port [`DROP_PORT`]. Errors: the file is malformed
/// or does not fit the program.
pub fn run(program: &Program, pipeline: Pipeline, statements: &[Statement]) -> Result<Outcome, StfError> {
    run_with_drop_port(program, pipeline, statements, DROP_PORT)
}

/// Like [`run`], with another drop port, 1 to 511.
pub fn run_with_drop_port(
    program: &Program,
    pipeline: Pipeline,
    statements: &[Statement],
    drop_port: u16,
) -> Result<Outcome, StfError> {
    let loops = pipeline.loop_ports();
    let ports = (0..PORTS).filter(|port| *port != drop_port && !loops.contains(port));
    let ports = ports.map(|port| PortConfig::new(port, 0)).collect();
    // BMv2 counts in microseconds and has no CPU port.
    let config = Config {
        ports,
        cpu_port: None,
        drop_port,
        time_unit_ns: 1000,
        max_frame_bytes: 16 * 1024,
        buffer_bytes: 16 << 20,
        samples: 0,
        ..Config::default()
    };
    let mut switch = Switch::new(config);
    switch.load(pipeline);
    let watched = statements.iter().filter_map(|statement| match statement.command {
        Command::Packet { port, .. } | Command::Expect { port, .. } => Some(port),
        _ => None,
    });
    let mut runner = Runner {
        program,
        player: Player::new(switch, PAUSE),
        outcome: Outcome::default(),
        watched: watched.collect(),
        sent: BTreeMap::new(),
        last: Vec::new(),
        handles: BTreeMap::new(),
        nodes: Vec::new(),
        groups: BTreeMap::new(),
        mirrors: BTreeMap::new(),
        stale: false,
        events: 0,
        last_line: None,
    };
    for statement in statements {
        runner.step(statement).map_err(|what| StfError::new(statement.line, what))?;
    }
    Ok(runner.finish(statements))
}

impl Runner<'_> {
    fn step(&mut self, statement: &Statement) -> Result<(), String> {
        let line = statement.line;
        match &statement.command {
            Command::Packet { port, bytes } => return self.packet(line, *port, bytes),
            Command::Expect { .. } => {
                self.outcome.expected += 1;
                return Ok(());
            }
            Command::NoPacket => {
                if !self.last.is_empty() {
                    let ports: Vec<String> = self.last.iter().map(u16::to_string).collect();
                    self.fail(line, format!("no frame was expected, but port {} sent one", ports.join(", ")));
                }
                return Ok(());
            }
            Command::Wait => {
                let end = self.player.now().saturating_add(PAUSE);
                let fate = self.player.until(end).map_err(|error| error.to_string())?;
                self.note_trace(line, None, 0, &fate);
                self.take(fate, line);
            }
            Command::CheckCounter { counter, index, bytes, compare, value } => {
                let data = self.counter(counter, index)?;
                let (found, unit) = if *bytes { (data.bytes, "bytes") } else { (data.packets, "packets") };
                if !compare.holds(&found, value) {
                    let symbol = compare.symbol();
                    self.fail(
                        line,
                        format!("{counter} counts {found} {unit}, expected was {symbol} {value}"),
                    );
                }
                return Ok(());
            }
            Command::CheckRegister { register, index, compare, value } => {
                let found = self.register(register, *index)?;
                if !compare.holds(&found, value) {
                    let symbol = compare.symbol();
                    self.fail(line, format!("{register}[{index}] is {found}, expected was {symbol} {value}"));
                }
                return Ok(());
            }
            Command::CounterRead(name, index) => {
                let data = self.counter(name, &Index::Number(*index))?;
                let note = format!("{name}[{index}] = {} packets, {} bytes", data.packets, data.bytes);
                self.outcome.notes.push((line, note));
            }
            Command::RegisterRead(name, index) => {
                let note = format!("{name}[{index}] = {}", self.register(name, *index)?);
                self.outcome.notes.push((line, note));
            }
            Command::MeterGet(name, index) => {
                let meter = names::instance(self.program, "meter", name)?;
                let found =
                    self.player.switch.meter_read(meter, *index).map_err(|error| error.to_string())?;
                let note = match found {
                    None => format!("{name}[{index}] has no rates: everything is green"),
                    Some(MeterConfig { cir, cburst, pir, pburst }) => {
                        format!(
                            "{name}[{index}]: committed {cir}/s burst {cburst}, peak {pir}/s burst {pburst}"
                        )
                    }
                };
                self.outcome.notes.push((line, note));
            }
            other => {
                self.control(other)?;
                self.player.skip(PAUSE);
            }
        }
        Ok(())
    }

    /// Runs a statement that changes tables or objects.
    fn control(&mut self, command: &Command) -> Result<(), String> {
        let text = |error: p4rack_switch::ControlError| error.to_string();
        match command {
            Command::Add { table, priority, keys, target, handle } => {
                self.add(table, *priority, keys, target, handle.as_deref())?;
            }
            Command::RemoveAll => {
                for table in (0..self.program.tables.len() as u32).map(TableId) {
                    for entry in self.player.switch.entries(table).map_err(text)? {
                        if !entry.is_const {
                            self.player.switch.delete(table, &entry.keys, entry.priority).map_err(text)?;
                        }
                    }
                }
                self.handles.clear();
            }
            Command::SetDefault { table, call } => {
                let table = names::table(self.program, table)?;
                let call = names::call(self.program, table, call)?;
                self.player.switch.set_default(table, Some(call)).map_err(text)?;
            }
            Command::CounterWrite(name, index, packets, bytes) => {
                let counter = names::instance(self.program, "counter", name)?;
                let data = CounterData { packets: *packets, bytes: *bytes };
                self.player.switch.counter_write(counter, *index, data).map_err(text)?;
            }
            Command::RegisterWrite(name, index, value) => {
                let register = names::instance(self.program, "register", name)?;
                self.player.switch.register_write(register, *index, value).map_err(text)?;
            }
            Command::RegisterReset(name) => {
                let register = names::instance(self.program, "register", name)?;
                for index in 0..self.player.switch.instance_size(register).map_err(text)? {
                    self.player.switch.register_write(register, index, &BigUint::ZERO).map_err(text)?;
                }
            }
            Command::MeterSet { meter, index, rates: [(cir, cburst), (pir, pburst)] } => {
                let meter = names::instance(self.program, "meter", meter)?;
                let config = MeterConfig { cir: *cir, cburst: *cburst, pir: *pir, pburst: *pburst };
                let cells = match index {
                    Some(index) => *index..index.saturating_add(1),
                    None => 0..self.player.switch.instance_size(meter).map_err(text)?,
                };
                for index in cells {
                    self.player.switch.meter_config(meter, index, Some(config)).map_err(text)?;
                }
            }
            Command::MemberAdd { profile, member, call } => {
                let (profile, table) = self.profile(profile)?;
                let call = names::call(self.program, table, call)?;
                self.player.switch.member_set(profile, *member, call).map_err(text)?;
            }
            Command::GroupAdd { profile, group, members } => {
                let (profile, _) = self.profile(profile)?;
                let members = members.iter().map(|&member| (member, 1.into())).collect();
                self.player.switch.group_set(profile, *group, members).map_err(text)?;
            }
            Command::ValueSetAdd(name, keys) => self.value_set_add(name, keys)?,
            _ => self.replication(command)?,
        }
        Ok(())
    }

    /// Runs a statement about mirroring or multicast.
    fn replication(&mut self, command: &Command) -> Result<(), String> {
        let no_group = |group: &u32| format!("multicast group {group} does not exist");
        let no_node = |node: &u32| format!("node {node} does not exist; nodes are numbered from 0");
        match command {
            Command::MirrorPort(session, port) => {
                self.mirrors.entry(*session).or_default().port = Some(*port)
            }
            Command::MirrorGroup(session, group) => {
                self.mirrors.entry(*session).or_default().group = Some(*group);
            }
            Command::MirrorDelete(session) => {
                self.mirrors.remove(session).ok_or(format!("session {session} does not exist"))?;
                if self.player.switch.clone_session_get(*session).is_some() {
                    self.player.switch.clone_session_remove(*session).map_err(|error| error.to_string())?;
                }
            }
            Command::MirrorGet(session) => {
                return match self.mirrors.contains_key(session) {
                    true => Ok(()),
                    false => Err(format!("session {session} does not exist")),
                };
            }
            Command::GroupCreate(group) => {
                self.groups.entry(*group).or_default();
            }
            Command::NodeCreate(rid, ports) => self.nodes.push((*rid, ports.clone())),
            Command::NodeUpdate(node, ports) => {
                let found = self.nodes.get_mut(*node as usize).ok_or_else(|| no_node(node))?;
                found.1.clone_from(ports);
            }
            Command::NodeAssociate(group, node) => {
                self.nodes.get(*node as usize).ok_or_else(|| no_node(node))?;
                self.groups.get_mut(group).ok_or_else(|| no_group(group))?.push(*node);
            }
            _ => {}
        }
        if self.nodes.len() > MAX_GROUPS || self.groups.len() > MAX_GROUPS || self.mirrors.len() > MAX_GROUPS
        {
            return Err(format!("more than {MAX_GROUPS} groups, nodes or sessions"));
        }
        self.stale = true;
        Ok(())
    }

    /// Updates all groups and sessions of the switch.
    fn replicate(&mut self) -> Result<(), p4rack_switch::ControlError> {
        self.stale = false;
        let replicas = |group: &[u32]| -> Vec<Replica> {
            let nodes = group.iter().filter_map(|&node| self.nodes.get(node as usize));
            let all = nodes.flat_map(|(rid, ports)| {
                let ports: BTreeSet<u16> = ports.iter().copied().collect();
                ports.into_iter().map(|port| Replica { port, instance: *rid })
            });
            all.collect()
        };
        for (&group, nodes) in &self.groups {
            self.player.switch.multicast_group_set(group, replicas(nodes))?;
        }
        for (&session, mirror) in &self.mirrors {
            let group = mirror.group.and_then(|group| self.groups.get(&group));
            let mut copies = group.map(|nodes| replicas(nodes)).unwrap_or_default();
            copies.extend(mirror.port.map(|port| Replica { port, instance: 0 }));
            let config = CloneSession { replicas: copies.into(), ..CloneSession::default() };
            self.player.switch.clone_session_set(session, config)?;
        }
        Ok(())
    }

    fn add(
        &mut self,
        table: &str,
        priority: Option<u32>,
        keys: &[(String, crate::command::KeyText)],
        target: &EntryAction,
        handle: Option<&str>,
    ) -> Result<(), String> {
        let table = names::table(self.program, table)?;
        let keys = names::keys(self.program, table, keys)?;
        let mut entry = match target {
            EntryAction::Call(call) => TableEntry::new(keys, names::call(self.program, table, call)?),
            EntryAction::Member(member) => TableEntry::indirect(keys, Indirect::Member(*member)),
            EntryAction::Group(group) => TableEntry::indirect(keys, Indirect::Group(*group)),
        };
        // The file counts from 0, the switch from 1.
        let priority = i32::try_from(priority.unwrap_or(0)).ok().and_then(|priority| priority.checked_add(1));
        if self.player.switch.needs_priority(table).map_err(|error| error.to_string())? {
            entry.priority = priority.ok_or("the priority is too large")?;
        }
        let found = Handle { table, keys: entry.keys.clone(), priority: entry.priority };
        self.player.switch.insert(table, entry).map_err(|error| error.to_string())?;
        if let Some(handle) = handle {
            self.handles.insert(handle.into(), found);
        }
        Ok(())
    }

    fn value_set_add(&mut self, name: &str, keys: &[crate::command::KeyText]) -> Result<(), String> {
        let set = names::value_set(self.program, name)?;
        let fields = &self.program.value_sets[set.0 as usize].fields;
        if keys.len() != fields.len() {
            return Err(format!("value set {name} has {} fields, not {}", fields.len(), keys.len()));
        }
        let member =
            keys.iter().zip(fields).map(|(key, (_, ty, kind))| names::matcher(*kind, ty.width(), key));
        let member: Vec<Matcher> = member.collect::<Result<_, String>>()?;
        let mut members = self.player.switch.value_set_get(set).map_err(|error| error.to_string())?.to_vec();
        members.push(member);
        self.player.switch.value_set_set(set, members).map_err(|error| error.to_string())
    }

    /// An action profile, and a table that uses it.
    fn profile(&self, name: &str) -> Result<(p4rack_p4::ir::InstanceId, TableId), String> {
        let profile = names::instance(self.program, "action profile", name)?;
        let table = self.program.tables.iter().position(|table| table.implementation == Some(profile));
        let table = table.ok_or_else(|| format!("{name} is not an action profile of a table"))?;
        Ok((profile, TableId(table as u32)))
    }

    fn counter(&self, name: &str, index: &Index) -> Result<CounterData, String> {
        let text = |error: p4rack_switch::ControlError| error.to_string();
        if let Index::Handle(handle) = index {
            let found =
                self.handles.get(handle).ok_or_else(|| format!("no entry has the handle {handle}"))?;
            let entry = EntryRef::Keys(&found.keys, found.priority);
            return self.player.switch.direct_counter_read(found.table, entry).map_err(text);
        }
        let Index::Number(index) = index else { return Ok(CounterData::default()) };
        let counter = names::instance(self.program, "counter", name)?;
        if let InstanceKind::DirectCounter { table: Some(table), .. } =
            self.program.instances[counter.0 as usize].kind
        {
            let entries = self.player.switch.entries(table).map_err(text)?;
            let entry = usize::try_from(*index).ok().and_then(|index| entries.get(index));
            let entry = entry.ok_or_else(|| format!("the table of {name} has {} entries", entries.len()))?;
            let entry = EntryRef::Keys(&entry.keys, entry.priority);
            return self.player.switch.direct_counter_read(table, entry).map_err(text);
        }
        self.player.switch.counter_read(counter, *index).map_err(text)
    }

    fn register(&self, name: &str, index: u64) -> Result<BigUint, String> {
        let register = names::instance(self.program, "register", name)?;
        self.player.switch.register_read(register, index).map_err(|error| error.to_string())
    }

    fn packet(&mut self, line: u32, port: u16, bytes: &[u8]) -> Result<(), String> {
        if port >= PORTS {
            return Err(format!("port {port} is not within 0 to {}", PORTS - 1));
        }
        if self.stale {
            self.replicate().map_err(|error| error.to_string())?;
        }
        self.outcome.packets += 1;
        self.player.skip(PACKET_GAP);
        self.last.clear();
        let fate = self.player.send(port, bytes, self.player.now()).map_err(|error| error.to_string())?;
        self.last_line = Some(line);
        self.note_trace(line, Some(port), bytes.len(), &fate);
        self.take(fate, line);
        Ok(())
    }

    /// Keeps the trace of a packet, if there is one.
    fn note_trace(&mut self, line: u32, port: Option<u16>, bytes: usize, fate: &Fate) {
        if fate.trace.is_empty() {
            return;
        }
        self.events += fate.trace.len();
        match self.events > MAX_EVENTS {
            true => self.outcome.untraced += 1,
            false => self.outcome.traces.push(Traced { line, port, bytes, fate: fate.clone() }),
        }
    }

    /// Records frames sent on ports that the file names.
    fn take(&mut self, fate: Fate, line: u32) {
        for Sent { port, frame, .. } in fate.sent {
            if let Some(port) = port.filter(|port| self.watched.contains(port)) {
                self.last.push(port);
                self.sent.entry(port).or_default().push(Output { frame, line });
            }
        }
    }

    fn fail(&mut self, line: u32, what: String) {
        self.outcome.failures.push(Failure { line, what, packet: self.last_line });
    }

    /// Compares each port's frames with the expected ones.
    fn finish(mut self, statements: &[Statement]) -> Outcome {
        self.outcome.failures.extend(differences(statements, &self.sent));
        let drops = self.player.switch.stats(self.player.now()).drops;
        if !self.outcome.passed() && !drops.is_empty() {
            let drops: Vec<String> = drops.iter().map(|(why, n)| format!("{} {n}", why.name())).collect();
            self.outcome.notes.push((0, format!("drops: {}", drops.join(", "))));
        }
        self.outcome.failures.sort_by_key(|failure| failure.line);
        self.outcome
    }
}
