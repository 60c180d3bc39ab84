//! Reads of table entries, default entries and their direct counters and meters.

use super::cells::{counter_message, meter_counts_message, meter_message};
use super::profiles::table_action;
use super::{Answer, Query, ReadResults};
use crate::program::{Program, TableRef};
use crate::{Checked, control, refuse};
use p4rack_p4::ir::{ActionCall, Matcher, TableId};
use p4rack_p4rt::EntityKind;
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::v1::{
    self, DirectCounterEntry, DirectMeterEntry, Entity, TableEntry, table_action as given, table_entry,
};
use p4rack_switch::{self as switch, EntryRef, MeterConfig, Switch};
use p4rack_wire::Nanos;
use std::sync::Arc;

/// Fields that a read returns for each entry.
#[derive(Clone, Copy, Debug)]
enum Shape {
    Entry { counter: bool, meter: bool, colors: bool, last_hit: bool },
    Counter,
    Meter { colors: bool },
}

impl Shape {
    fn of(request: &TableEntry) -> Shape {
        Shape::Entry {
            counter: request.counter_data.is_some(),
            meter: request.meter_config.is_some(),
            colors: request.meter_counter_data.is_some(),
            last_hit: request.time_since_last_hit.is_some(),
        }
    }
}

/// Reads entries of one or all tables.
pub fn read(program: &Arc<Program>, request: &TableEntry) -> Checked<Vec<Query>> {
    queries(program, request, Shape::of(request))
}

/// Reads the entry with a key, which is no wildcard even if it matches anything.
pub fn read_keyed(program: &Arc<Program>, request: &TableEntry) -> Checked<Query> {
    let table = program.table(request.table_id)?;
    let keys = table.matchers(&request.r#match)?;
    query(program, &table, request, Some(keys), Shape::of(request))
}

/// Reads direct counters of one entry, one table or all tables.
pub fn read_direct_counter(program: &Arc<Program>, request: &DirectCounterEntry) -> Checked<Vec<Query>> {
    direct_queries(program, request.table_entry.as_ref(), Shape::Counter)
}

/// Reads direct meters of one entry, one table or all tables.
pub fn read_direct_meter(program: &Arc<Program>, request: &DirectMeterEntry) -> Checked<Vec<Query>> {
    let colors = request.counter_data.is_some();
    direct_queries(program, request.table_entry.as_ref(), Shape::Meter { colors })
}

fn direct_queries(program: &Arc<Program>, request: Option<&TableEntry>, shape: Shape) -> Checked<Vec<Query>> {
    match request {
        Some(request) => queries(program, request, shape),
        None => refuse(Code::InvalidArgument, "table_entry is not set"),
    }
}

fn queries(program: &Arc<Program>, request: &TableEntry, shape: Shape) -> Checked<Vec<Query>> {
    let fits = |table: &TableRef<'_>| match shape {
        Shape::Entry { .. } => true,
        Shape::Counter => table.ir.counter.is_some(),
        Shape::Meter { .. } => table.ir.meter.is_some(),
    };
    if request.table_id == 0 {
        let all =
            program.info.tables.iter().filter_map(|info| program.table(info.preamble.as_ref()?.id).ok());
        let wildcard = TableEntry { is_default_action: request.is_default_action, ..Default::default() };
        return all.filter(fits).map(|table| query(program, &table, &wildcard, None, shape)).collect();
    }
    let table = program.table(request.table_id)?;
    if !fits(&table) {
        let what = if matches!(shape, Shape::Counter) { "counter" } else { "meter" };
        return refuse(Code::InvalidArgument, format!("table {} has no direct {what}", table.name()));
    }
    if request.time_since_last_hit.is_some() && !table.ir.idle_timeout {
        let message = format!("table {} does not keep the time of the last hit", table.name());
        return refuse(Code::InvalidArgument, message);
    }
    let keys = match request.r#match.is_empty() {
        true => None,
        false => match table.matchers(&request.r#match) {
            // No entry has a name that nothing uses.
            Err(error) if error.code == Code::NotFound => return Ok(Vec::new()),
            keys => Some(keys?),
        },
    };
    Ok(vec![query(program, &table, request, keys, shape)?])
}

/// An entry with the requested properties.
struct FoundEntry {
    entry: switch::TableEntry,
    is_default: bool,
    counter: Option<switch::CounterData>,
    meter: Option<MeterConfig>,
    colors: Option<[switch::CounterData; 3]>,
    idle: Option<u64>,
}

/// Maximum entries read before packets get a turn.
const ENTRIES_A_TURN: usize = 32;
/// The same for plain entries.
const PLAIN_A_TURN: usize = 256;

/// Filter of a read of a table.
struct Wanted {
    program: Arc<Program>,
    id: TableId,
    info_id: u32,
    is_default: bool,
    keys: Option<Vec<Matcher>>,
    needs_priority: bool,
    priority: i32,
    metadata: Vec<u8>,
    action: Option<u32>,
    shape: Shape,
    counter: bool,
    meter: bool,
    colors: bool,
    hit: bool,
    /// Whether it asks for all entries, and for nothing that plain entries lack.
    is_plain: bool,
}

/// Without keys, the query covers all entries.
fn query(
    program: &Arc<Program>,
    table: &TableRef<'_>,
    request: &TableEntry,
    keys: Option<Vec<Matcher>>,
    shape: Shape,
) -> Checked<Query> {
    let action = match request.action.as_ref().and_then(|action| action.r#type.as_ref()) {
        None => None,
        Some(given::Type::Action(action)) => Some(action.action_id),
        Some(_) => return refuse(Code::Unimplemented, "only actions can be filtered by"),
    };
    let (counter, meter, colors, hit) = match shape {
        Shape::Entry { counter, meter, colors, last_hit } => (
            counter && table.ir.counter.is_some(),
            meter && table.ir.meter.is_some(),
            colors && table.ir.meter.is_some(),
            last_hit && table.ir.idle_timeout,
        ),
        Shape::Counter => (true, false, false, false),
        Shape::Meter { colors } => (false, true, colors, false),
    };
    let is_plain = matches!(shape, Shape::Entry { .. })
        && !(counter || meter || colors || hit || request.is_default_action)
        && keys.is_none()
        && action.is_none()
        && request.priority == 0
        && request.metadata.is_empty();
    let wanted = Arc::new(Wanted {
        program: program.clone(),
        id: table.id,
        info_id: table.info.preamble.as_ref().map_or(request.table_id, |preamble| preamble.id),
        is_default: request.is_default_action,
        keys,
        needs_priority: table.needs_priority(),
        priority: request.priority,
        metadata: request.metadata.clone(),
        action,
        shape,
        counter,
        meter,
        colors,
        hit,
        is_plain,
    });
    Ok(Box::new(move |switch: &Switch, now: Nanos| wanted.read(switch, now, 0)))
}

impl Wanted {
    /// Reads up to [`ENTRIES_A_TURN`] entries from a position on.
    fn read(self: Arc<Self>, switch: &Switch, now: Nanos, from: u32) -> Checked<Answer> {
        if let Some((entries, next)) =
            self.is_plain.then(|| self.program.plans.read(self.info_id, switch, from, PLAIN_A_TURN)).flatten()
        {
            let found = ReadResults::Plain(self.program.clone(), entries);
            return Ok(Answer { found, next: self.rest(next) });
        }
        let (entries, next) = match &self.keys {
            _ if self.is_default => (default_entry(switch, self.id)?, None),
            Some(keys) if !self.needs_priority || self.priority != 0 => {
                (switch.entry(self.id, keys, self.priority).ok().into_iter().collect(), None)
            }
            _ => control(switch.entries_from(self.id, from, ENTRIES_A_TURN))?,
        };
        let found: Vec<FoundEntry> = entries
            .into_iter()
            .filter(|entry| self.accepts(entry))
            .map(|entry| self.found(switch, now, entry))
            .collect();
        let next = self.rest(next);
        let messages = Box::new(move || {
            let Ok(table) = self.program.table(self.info_id) else { return Vec::new() };
            found.into_iter().map(|found| message(&table, self.info_id, found, self.shape)).collect()
        });
        Ok(Answer { found: ReadResults::Entities(messages), next })
    }

    /// Reads the rest.
    fn rest(self: &Arc<Self>, next: Option<u32>) -> Option<Query> {
        let (rest, from) = (self.clone(), next?);
        Some(Box::new(move |switch: &Switch, now: Nanos| rest.read(switch, now, from)))
    }

    fn accepts(&self, entry: &switch::TableEntry) -> bool {
        self.keys.as_ref().is_none_or(|keys| entry.keys == *keys)
            && (self.priority == 0 || entry.priority == self.priority)
            && (self.metadata.is_empty() || entry.metadata == self.metadata)
            && self.action.is_none_or(|action| self.program.action_of(self.id, &entry.call) == Some(action))
    }

    fn found(&self, switch: &Switch, now: Nanos, entry: switch::TableEntry) -> FoundEntry {
        let (id, is_default) = (self.id, self.is_default);
        let reference =
            if is_default { EntryRef::Default } else { EntryRef::Keys(&entry.keys, entry.priority) };
        let counter = self.counter.then(|| switch.direct_counter_read(id, reference).ok()).flatten();
        let meter = self.meter.then(|| switch.direct_meter_read(id, reference).ok()).flatten().flatten();
        let colors = self.colors.then(|| switch.direct_meter_counts(id, reference).ok()).flatten();
        let hit = self.hit.then(|| switch.last_hit(id, &entry.keys, entry.priority).ok()).flatten();
        let idle = hit.map(|hit| now.saturating_sub(hit).0);
        FoundEntry { entry, is_default, counter, meter, colors, idle }
    }
}

fn default_entry(switch: &Switch, table: TableId) -> Checked<Vec<switch::TableEntry>> {
    let default = control(switch.default_entry(table))?;
    // A table without a default action shows an entry without action: `u32::MAX` is no action.
    let call = default.call.unwrap_or(ActionCall { action: u32::MAX, args: Vec::new() });
    Ok(vec![switch::TableEntry { indirect: default.indirect, ..switch::TableEntry::new(Vec::new(), call) }])
}

fn message(table: &TableRef<'_>, table_id: u32, found: FoundEntry, shape: Shape) -> Entity {
    let FoundEntry { entry, is_default, counter, meter, colors, idle } = found;
    let colors = colors.map(meter_counts_message);
    let counter = counter.map(|data| {
        let unit = table.ir.counter.map(|instance| &table.program.ir.instances[instance.0 as usize].kind);
        counter_message(data, unit)
    });
    let key = TableEntry {
        table_id,
        r#match: table.field_matches(&entry.keys),
        priority: entry.priority,
        is_default_action: is_default,
        ..Default::default()
    };
    let entity = match shape {
        Shape::Entry { .. } => EntityKind::TableEntry(TableEntry {
            action: table_action(table, &entry),
            metadata: entry.metadata,
            is_const: entry.is_const || (is_default && table.ir.default_is_const),
            counter_data: counter,
            meter_config: meter.map(meter_message),
            meter_counter_data: colors,
            idle_timeout_ns: entry.idle_timeout_ns as i64,
            time_since_last_hit: idle.map(|idle| table_entry::IdleTimeout { elapsed_ns: idle as i64 }),
            ..key
        }),
        Shape::Counter => EntityKind::DirectCounterEntry(DirectCounterEntry {
            table_entry: Some(key),
            data: Some(counter.unwrap_or_default()),
        }),
        Shape::Meter { .. } => EntityKind::DirectMeterEntry(DirectMeterEntry {
            table_entry: Some(key),
            config: meter.map(meter_message),
            counter_data: colors,
        }),
    };
    v1::Entity { entity: Some(entity) }
}

/// An entry in the form for a notification.
pub fn idle_message(program: &Program, table: TableId, entry: &switch::TableEntry) -> Option<TableEntry> {
    let table_id = program.table_id(table)?;
    Some(TableEntry {
        table_id,
        r#match: program.table(table_id).ok()?.field_matches(&entry.keys),
        priority: entry.priority,
        metadata: entry.metadata.clone(),
        idle_timeout_ns: entry.idle_timeout_ns as i64,
        ..Default::default()
    })
}

impl Program {
    fn action_of(&self, table: TableId, call: &ActionCall) -> Option<u32> {
        let offered = self.ir.tables.get(table.0 as usize)?.actions.get(call.action as usize)?;
        Some(self.action_id(offered.action))
    }
}
