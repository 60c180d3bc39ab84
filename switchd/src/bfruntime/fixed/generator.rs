//! Packet generators: settings of ports, applications, and the buffer from which they send. Each pipe has its own.

use super::{Fixed, NamedPage, Table, id, in_table, invalid, not_offered};
use p4rack_bfrt::{Entry, Value};
use p4rack_entities::{Change, Checked, refuse};
use p4rack_p4rt::bfrt_proto::update::Type;
use p4rack_p4rt::google::rpc::Code;
use p4rack_switch::{PACKET_BUFFER_BYTES, PacketApp, PacketCounts, PacketPort, PacketTrigger, Pipes, Switch};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A table without a key.
pub const REPLAY: &str = "tf2.pktgen.port_down_replay";
/// Masks of ports, of each pipe, that applications name.
const MASKS: usize = 2;
/// Pipes of the largest device.
const PIPES: usize = 4;
/// The port, within a pipe, by which the first generation's frames come in.
const FIRST_PORT: u16 = 68;

const APP: &str = "app_id";
const PORT: &str = "dev_port";
const OFFSET: &str = "pkt_buffer_offset";
const SIZE: &str = "pkt_buffer_size";
const MASK: &str = "port_mask_sel";

/// Whether this is one of the generators' tables.
pub fn has(table: &str) -> bool {
    table.contains(".pktgen.")
}

/// Whether this is the table of ports by which frames come in, which a driver changes in no transaction.
pub fn is_gate(table: &str) -> bool {
    table.ends_with(".pktgen.port_cfg")
}

/// Fields that the switch does not keep.
#[derive(Clone, Debug, Default)]
struct State {
    /// Masks of ports, by their numbers and pipes.
    masks: [[u128; PIPES]; MASKS],
    /// The mask that an application uses, by its pipe and number.
    used: BTreeMap<(usize, usize), usize>,
}

impl State {
    /// Notes the mask that an application uses in a pipe; `None` if it waits for no ports.
    fn uses(&mut self, pipe: usize, app: usize, mask: Option<usize>) {
        match mask {
            Some(mask) => self.used.insert((pipe, app), mask),
            None => self.used.remove(&(pipe, app)),
        };
    }

    /// Lets an application wait for the ports of its mask in a pipe.
    fn wait(&self, table: &str, switch: &mut Switch, pipe: usize, number: usize) -> Checked<()> {
        let Some(mask) = self.used.get(&(pipe, number)) else { return Ok(()) };
        let ports = self.masks[*mask][pipe];
        let set = |switch: &mut Switch| {
            let Some(app) = switch.packet_app(number)?.0 else { return Ok(()) };
            match app.trigger {
                PacketTrigger::PortDown { .. } => switch
                    .packet_app_set(number, PacketApp { trigger: PacketTrigger::PortDown { ports }, ..app }),
                _ => Ok(()),
            }
        };
        in_table(table, switch.within(Pipes::of([pipe]), set).and_then(|set| set))
    }
}

/// The selected pipes.
fn meant(switch: &Switch) -> Vec<usize> {
    (0..PIPES).filter(|pipe| switch.means(*pipe)).collect()
}

/// The generators of the second generation wait for ports in one of several sets.
#[derive(Debug, Default)]
pub struct Generators(Mutex<State>);

impl Generators {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Every change is a single assignment.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn truth(entry: &Entry, field: &str) -> Option<bool> {
    match entry.get(field) {
        Some(Value::Bool(truth)) => Some(*truth),
        _ => None,
    }
}

/// A number of any width.
fn wide(entry: &Entry, field: &str) -> Option<u128> {
    match entry.get(field) {
        Some(Value::Number(bytes)) => {
            Some(bytes.iter().fold(0u128, |sum, byte| sum << 8 | u128::from(*byte)))
        }
        _ => None,
    }
}

fn number(entry: &Entry, field: &str) -> Option<u64> {
    wide(entry, field).map(|number| number as u64)
}

fn bytes_of(number: u128) -> Value {
    Value::Number(p4rack_p4rt::bytes::from_u128(number))
}

/// Triggers of an application, by the names of its actions.
fn trigger(entry: &Entry, before: Option<&PacketTrigger>) -> Checked<Option<PacketTrigger>> {
    let time = |old: Option<u64>| number(entry, "timer_nanosec").or(old).unwrap_or(0);
    let (value, mask) = (wide(entry, "pattern_value"), wide(entry, "pattern_mask"));
    let pattern = |old: Option<(u128, u128)>| {
        let (old_value, old_mask) = old.unwrap_or((0, 0));
        PacketTrigger::Recirculated { value: value.unwrap_or(old_value), mask: mask.unwrap_or(old_mask) }
    };
    let given = match (entry.action_name(), before) {
        (Some("trigger_timer_one_shot"), Some(PacketTrigger::OneShot { after_ns })) => {
            PacketTrigger::OneShot { after_ns: time(Some(*after_ns)) }
        }
        (Some("trigger_timer_one_shot"), _) => PacketTrigger::OneShot { after_ns: time(None) },
        (Some("trigger_timer_periodic"), Some(PacketTrigger::Periodic { period_ns })) => {
            PacketTrigger::Periodic { period_ns: time(Some(*period_ns)) }
        }
        (Some("trigger_timer_periodic"), _) => PacketTrigger::Periodic { period_ns: time(None) },
        (Some("trigger_port_down"), _) => PacketTrigger::PortDown { ports: u128::MAX },
        (Some("trigger_recirc_pattern"), Some(PacketTrigger::Recirculated { value, mask })) => {
            pattern(Some((*value, *mask)))
        }
        (Some("trigger_recirc_pattern"), _) => pattern(None),
        (Some(other), _) => return not_offered(entry, other),
        (None, before) => return Ok(before.cloned()),
    };
    Ok(Some(given))
}

/// An application after an update; `None` if it is still none, because nothing starts it.
fn app(entry: &Entry, before: Option<PacketApp>, second: bool) -> Checked<Option<PacketApp>> {
    for field in ["ibg_jitter", "ipg_jitter"] {
        if number(entry, field).is_some_and(|jitter| jitter != 0) {
            return not_offered(entry, field);
        }
    }
    if truth(entry, "offset_len_from_recir_pkt_enable") == Some(true) {
        return not_offered(entry, "offset_len_from_recir_pkt_enable");
    }
    let Some(trigger) = trigger(entry, before.as_ref().map(|app| &app.trigger))? else {
        return match truth(entry, "app_enable") {
            Some(true) => invalid(entry, "nothing starts the application; name one of the actions"),
            _ => Ok(None),
        };
    };
    let old = before.unwrap_or(PacketApp {
        enabled: false,
        trigger,
        offset: 0,
        length: 64,
        batches: 1,
        packets: 1,
        batch_gap_ns: 0,
        packet_gap_ns: 0,
        source_port: FIRST_PORT,
        increments_port: false,
    });
    // Counts begin with 0.
    let one_more = |count| u32::try_from(count).unwrap_or(u32::MAX).saturating_add(1);
    let count = |field: &str, old: u32| number(entry, field).map_or(old, one_more);
    let named = number(entry, if second { "assigned_chnl_id" } else { "pipe_local_source_port" });
    Ok(Some(PacketApp {
        enabled: truth(entry, "app_enable").unwrap_or(old.enabled),
        trigger,
        offset: number(entry, OFFSET).map_or(old.offset, |offset| offset as usize),
        length: number(entry, "pkt_len").map_or(old.length, |length| length as usize),
        batches: count("batch_count_cfg", old.batches),
        packets: count("packets_per_batch_cfg", old.packets),
        batch_gap_ns: number(entry, "ibg").unwrap_or(old.batch_gap_ns),
        packet_gap_ns: number(entry, "ipg").unwrap_or(old.packet_gap_ns),
        source_port: named.map_or(old.source_port, |port| u16::try_from(port).unwrap_or(u16::MAX)),
        increments_port: truth(entry, "increment_source_port").unwrap_or(old.increments_port),
    }))
}

/// An application as an entry.
fn shown(table: &str, number: usize, app: &PacketApp, counts: PacketCounts, mask: Option<usize>) -> Entry {
    let second = table.starts_with("tf2.");
    let entry = Entry::of(table).exact(APP, number as u128);
    let entry = match &app.trigger {
        PacketTrigger::OneShot { after_ns } => {
            entry.action("trigger_timer_one_shot").data("timer_nanosec", *after_ns)
        }
        PacketTrigger::Periodic { period_ns } => {
            entry.action("trigger_timer_periodic").data("timer_nanosec", *period_ns)
        }
        PacketTrigger::PortDown { .. } if second => {
            entry.action("trigger_port_down").data(MASK, mask.unwrap_or(0) as u64)
        }
        PacketTrigger::PortDown { .. } => entry.action("trigger_port_down"),
        PacketTrigger::Recirculated { value, mask } => entry
            .action("trigger_recirc_pattern")
            .data("pattern_value", bytes_of(*value))
            .data("pattern_mask", bytes_of(*mask)),
    };
    let port = if second { "assigned_chnl_id" } else { "pipe_local_source_port" };
    entry
        .data("app_enable", app.enabled)
        .data("pkt_len", app.length as u64)
        .data(OFFSET, app.offset as u64)
        .data(port, u64::from(app.source_port))
        .data("increment_source_port", app.increments_port)
        .data("batch_count_cfg", u64::from(app.batches - 1))
        .data("packets_per_batch_cfg", u64::from(app.packets - 1))
        .data("ibg", app.batch_gap_ns)
        .data("ibg_jitter", 0u64)
        .data("ipg", app.packet_gap_ns)
        .data("ipg_jitter", 0u64)
        .data("trigger_counter", counts.triggers)
        .data("batch_counter", counts.batches)
        .data("pkt_counter", counts.packets)
}

impl Fixed {
    /// A driver's rows are always there: they change, or all of a table are reset.
    pub(super) fn generator_step(self: &Arc<Fixed>, kind: Type, entry: Entry, all: bool) -> Checked<Change> {
        let table = entry.table().rsplit('.').next().unwrap_or_default().to_owned();
        match (table.as_str(), kind, all) {
            ("port_down_replay", Type::Modify, _) => match entry.get("replay_mode") {
                Some(Value::Text(mode)) if mode != "REPLAY_NONE" => not_offered(&entry, mode),
                _ => Ok(Box::new(|_, _| Ok(()))),
            },
            ("app_cfg", Type::Delete, true) => Ok(self.apps_clear(&entry)),
            ("port_cfg", Type::Delete, true) => Ok(ports_clear(&entry)),
            ("pkt_buffer", Type::Delete, true) => Ok(buffer_write(&entry, 0, vec![0; PACKET_BUFFER_BYTES])),
            ("port_mask", Type::Delete, true) => {
                let clears = (0..MASKS).map(|at| self.mask_set(&entry, at, 0)).collect::<Vec<_>>();
                Ok(Box::new(move |switch, now| clears.into_iter().try_for_each(|clear| clear(switch, now))))
            }
            ("app_cfg", Type::Modify, false) => self.app_step(entry),
            ("port_cfg", Type::Modify, false) => generator_port(&entry),
            ("pkt_buffer", Type::Modify, false) => buffer(&entry),
            ("port_mask", Type::Modify, false) => self.mask_step(&entry),
            _ => not_offered(&entry, &format!("{} of a row", kind.as_str_name())),
        }
    }

    fn app_step(self: &Arc<Fixed>, entry: Entry) -> Checked<Change> {
        let number = id(&entry, APP)? as usize;
        let mask = wide(&entry, MASK).map(|mask| mask as usize);
        if mask.is_some_and(|mask| mask >= MASKS) {
            return invalid(&entry, format!("{MASK} is 0 to {}", MASKS - 1));
        }
        let (fixed, second) = (self.clone(), self.second);
        Ok(Box::new(move |switch, _| {
            let table = entry.table();
            let (before, mut counts) = in_table(table, switch.packet_app(number))?;
            let is_new = before.is_none();
            let Some(app) = app(&entry, before, second)? else { return Ok(()) };
            let waits = matches!(app.trigger, PacketTrigger::PortDown { .. });
            in_table(table, switch.packet_app_set(number, app))?;
            for (field, count) in [
                ("trigger_counter", &mut counts.triggers),
                ("batch_counter", &mut counts.batches),
                ("pkt_counter", &mut counts.packets),
            ] {
                *count = self::number(&entry, field).unwrap_or(*count);
            }
            let given = ["trigger_counter", "batch_counter", "pkt_counter"];
            if is_new || given.iter().any(|field| entry.get(field).is_some()) {
                in_table(table, switch.packet_counts_set(number, counts))?;
            }
            if second && waits {
                let mut state = fixed.generators.lock();
                for pipe in meant(switch) {
                    let mask = mask.or(state.used.get(&(pipe, number)).copied()).unwrap_or(0);
                    state.uses(pipe, number, Some(mask));
                    state.wait(table, switch, pipe, number)?;
                }
            }
            Ok(())
        }))
    }

    /// Removes all applications, which have to be disabled.
    fn apps_clear(self: &Arc<Fixed>, entry: &Entry) -> Change {
        let (fixed, table) = (self.clone(), entry.table().to_owned());
        Box::new(move |switch, _| {
            for number in 0..switch.packet_apps() {
                if in_table(&table, switch.packet_app(number))?.0.is_some_and(|app| app.enabled) {
                    let message =
                        format!("table `{table}`: application {number} is enabled; disable it first");
                    return refuse(Code::Unavailable, message);
                }
            }
            let pipes = meant(switch);
            fixed.generators.lock().used.retain(|(pipe, _), _| !pipes.contains(pipe));
            (0..switch.packet_apps())
                .try_for_each(|number| in_table(&table, switch.packet_app_remove(number)))
        })
    }

    /// A mask of ports, of the second generation.
    fn mask_step(self: &Arc<Fixed>, entry: &Entry) -> Checked<Change> {
        let at = id(entry, MASK)? as usize;
        if at >= MASKS {
            return invalid(entry, format!("{MASK} is 0 to {}", MASKS - 1));
        }
        let Some(mask) = wide(entry, "mask") else { return invalid(entry, "`mask` is not set") };
        Ok(self.mask_set(entry, at, mask))
    }

    fn mask_set(self: &Arc<Fixed>, entry: &Entry, at: usize, mask: u128) -> Change {
        let (fixed, table) = (self.clone(), entry.table().to_owned());
        Box::new(move |switch, _| {
            let mut state = fixed.generators.lock();
            for pipe in meant(switch) {
                state.masks[at][pipe] = mask;
            }
            let own = state.used.iter().filter(|((pipe, _), used)| switch.means(*pipe) && **used == at);
            let places: Vec<(usize, usize)> = own.map(|(place, _)| *place).collect();
            places.into_iter().try_for_each(|(pipe, app)| state.wait(&table, switch, pipe, app))
        })
    }

    pub(super) fn generator_lookup(&self, entry: &Entry, all: bool) -> Checked<Table> {
        let table = entry.table().to_owned();
        let key = match table.rsplit('.').next().unwrap_or_default() {
            "app_cfg" => APP,
            "port_cfg" => PORT,
            "pkt_buffer" => OFFSET,
            "port_mask" => MASK,
            _ => {
                let shown = Entry::default_of(&table).data("replay_mode", "REPLAY_NONE");
                return Ok(Box::new(move |_, _, _| Ok((vec![shown], None))));
            }
        };
        let only = if all { None } else { Some(id(entry, key)?) };
        let size = match (key, only) {
            (OFFSET, Some(_)) => id(entry, SIZE)? as usize,
            // As with the driver, which has only applications to list.
            (PORT | OFFSET | MASK, None) => return not_offered(entry, "reading without a key"),
            _ => 0,
        };
        Ok(Box::new(move |fixed, switch, _| {
            let is_wanted = |number: u32| only.is_none_or(|only| only == number);
            let found: Vec<Entry> = match key {
                APP => {
                    let mut found = Vec::new();
                    for number in (0..switch.packet_apps()).filter(|number| is_wanted(*number as u32)) {
                        let (app, counts) = in_table(&table, switch.packet_app(number))?;
                        let pipe = meant(switch).first().copied().unwrap_or(0);
                        let mask = fixed.generators.lock().used.get(&(pipe, number)).copied();
                        found.extend(app.map(|app| shown(&table, number, &app, counts, mask)));
                    }
                    found
                }
                PORT => ports(switch)
                    .filter(|port| is_wanted(u32::from(*port)))
                    .map(|port| port_entry(&table, switch, port))
                    .collect(),
                OFFSET => {
                    let offset = only.unwrap_or(0);
                    let bytes = in_table(&table, switch.packet_buffer_read(offset as usize, size))?;
                    let bytes = bytes.into_iter().map(u32::from).collect();
                    let keyed = Entry::of(&table).exact(OFFSET, offset.into()).exact(SIZE, size as u128);
                    vec![keyed.data("buffer", Value::Numbers(bytes))]
                }
                _ => {
                    let masks = fixed.generators.lock().masks;
                    let pipe = meant(switch).first().copied().unwrap_or(0);
                    let one = |(at, masks): (usize, &[u128; PIPES])| {
                        Entry::of(&table).exact(MASK, at as u128).data("mask", bytes_of(masks[pipe]))
                    };
                    masks.iter().enumerate().filter(|(at, _)| is_wanted(*at as u32)).map(one).collect()
                }
            };
            Ok::<NamedPage, _>((found, None))
        }))
    }
}

/// Ports that may have to do with generators: the switch's own and those that come back.
fn ports(switch: &Switch) -> impl Iterator<Item = u16> {
    let mut all: Vec<u16> = switch.config().ports.iter().map(|port| port.port).collect();
    all.extend((0..(switch.pipes() << 7) as u16).filter(|port| switch.comes_back(*port)));
    all.sort_unstable();
    all.dedup();
    all.into_iter()
}

fn port_entry(table: &str, switch: &Switch, port: u16) -> Entry {
    let config = switch.packet_port(port);
    Entry::of(table)
        .exact(PORT, port.into())
        .data("recirculation_enable", switch.comes_back(port))
        .data("pktgen_enable", config.generates)
        .data("pattern_matching_enable", config.matches)
        .data("clear_port_down_enable", false)
}

/// A port's generator settings; every port has an entry.
fn generator_port(entry: &Entry) -> Checked<Change> {
    let port = id(entry, PORT)?;
    let Ok(port) = u16::try_from(port) else { return invalid(entry, format!("there is no port {port}")) };
    let (generates, matches) = (truth(entry, "pktgen_enable"), truth(entry, "pattern_matching_enable"));
    let returns = truth(entry, "recirculation_enable");
    let clears = truth(entry, "clear_port_down_enable") == Some(true);
    let table = entry.table().to_owned();
    Ok(Box::new(move |switch, _| {
        if returns.is_some_and(|returns| returns != switch.comes_back(port)) {
            let message =
                format!("table `{table}`: whether frames come back by port {port} is fixed on this switch");
            return refuse(Code::Unimplemented, message);
        }
        let before = switch.packet_port(port);
        let config = PacketPort {
            generates: generates.unwrap_or(before.generates),
            matches: matches.unwrap_or(before.matches),
        };
        in_table(&table, switch.packet_port_set(port, config))?;
        if clears {
            switch.packet_port_clear(port);
        }
        Ok(())
    }))
}

/// Resets the settings of all ports in the selected pipes.
fn ports_clear(entry: &Entry) -> Change {
    let table = entry.table().to_owned();
    Box::new(move |switch, _| {
        let all: Vec<u16> = ports(switch).filter(|port| switch.means(usize::from(*port >> 7))).collect();
        all.into_iter()
            .try_for_each(|port| in_table(&table, switch.packet_port_set(port, PacketPort::default())))
    })
}

/// Bytes of the buffer.
fn buffer(entry: &Entry) -> Checked<Change> {
    let (offset, size) = (id(entry, OFFSET)? as usize, id(entry, SIZE)? as usize);
    match entry.get("buffer") {
        Some(Value::Numbers(bytes)) if bytes.len() == size => {
            Ok(buffer_write(entry, offset, bytes.iter().map(|byte| *byte as u8).collect()))
        }
        Some(Value::Numbers(bytes)) => invalid(entry, format!("{} bytes, and {SIZE} is {size}", bytes.len())),
        _ => invalid(entry, "`buffer` is not set"),
    }
}

fn buffer_write(entry: &Entry, offset: usize, bytes: Vec<u8>) -> Change {
    let table = entry.table().to_owned();
    Box::new(move |switch, _| in_table(&table, switch.packet_buffer_write(offset, &bytes)))
}
