//! Writes of table entries, default entries and their direct counters and meters.

use super::cells::{counter_data, meter_config, meter_counts};
use super::profiles::{Doing, doing};
use super::{Change, Snapshot, Undo};
use crate::ledger::Uses;
use crate::names::{Held, Look};
use crate::program::{Program, TableRef};
use crate::{Checked, control, refuse};
use p4rack_p4::ir::{ActionCall, Matcher, TableId};
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::v1::{DirectCounterEntry, DirectMeterEntry, TableEntry, update};
use p4rack_switch::{self as switch, EntryRef, MeterConfig, Switch};
use std::sync::Arc;

/// An entry of a table, or its default entry.
#[derive(Clone, Debug)]
enum Which {
    Default,
    Keys(Vec<Matcher>, i32),
}

impl Which {
    fn reference(&self) -> EntryRef<'_> {
        match self {
            Which::Default => EntryRef::Default,
            Which::Keys(keys, priority) => EntryRef::Keys(keys, *priority),
        }
    }
}

/// The entry that a message refers to.
fn which(table: &TableRef<'_>, entry: &TableEntry, look: Look<'_>) -> Checked<Which> {
    let invalid =
        |message: String| refuse(Code::InvalidArgument, format!("table {}: {message}", table.name()));
    if entry.is_default_action {
        if !entry.r#match.is_empty() || entry.priority != 0 {
            return invalid("the default entry has neither keys nor priority".into());
        }
        return Ok(Which::Default);
    }
    if table.info.match_fields.is_empty() {
        return invalid("it has no keys, so it holds its default entry only; set is_default_action".into());
    }
    match (table.needs_priority(), entry.priority) {
        (true, ..=0) => {
            return invalid(format!(
                "priority {} is given, but it must be positive: there is a ternary, range or optional key",
                entry.priority
            ));
        }
        (false, priority) if priority != 0 => {
            return invalid(format!(
                "priority {priority} is given, but it must be 0: no key is ternary, range or optional"
            ));
        }
        _ => {}
    }
    Ok(Which::Keys(table.matchers_with(&entry.r#match, look)?, entry.priority))
}

/// Direct resources in an entry's message.
struct Direct {
    /// `Some(None)` resets to "everything is green".
    meter: Option<Option<MeterConfig>>,
    counter: Option<switch::CounterData>,
    /// Counts of its meter, by colour.
    colors: Option<[switch::CounterData; 3]>,
}

impl Direct {
    fn of(table: &TableRef<'_>, entry: &TableEntry) -> Checked<Direct> {
        let name = table.name();
        if entry.counter_data.is_some() && table.ir.counter.is_none() {
            return refuse(Code::InvalidArgument, format!("table {name} has no direct counter"));
        }
        if table.ir.meter.is_none() {
            if entry.meter_config.is_some() || entry.meter_counter_data.is_some() {
                return refuse(Code::InvalidArgument, format!("table {name} has no direct meter"));
            }
            return Ok(Direct {
                meter: None,
                counter: entry.counter_data.as_ref().map(counter_data).transpose()?,
                colors: None,
            });
        }
        Ok(Direct {
            meter: Some(entry.meter_config.as_ref().map(meter_config).transpose()?),
            counter: entry.counter_data.as_ref().map(counter_data).transpose()?,
            colors: entry.meter_counter_data.as_ref().map(meter_counts).transpose()?,
        })
    }

    fn is_empty(&self) -> bool {
        self.meter.is_none() && self.counter.is_none() && self.colors.is_none()
    }

    fn apply(self, switch: &mut Switch, table: TableId, which: &Which) -> Checked<()> {
        if let Some(config) = self.meter {
            control(switch.direct_meter_config(table, which.reference(), config))?;
        }
        if let Some(data) = self.counter {
            control(switch.direct_counter_write(table, which.reference(), data))?;
        }
        if let Some(counts) = self.colors {
            control(switch.direct_meter_counts_write(table, which.reference(), counts))?;
        }
        Ok(())
    }
}

/// Checks an update of a table entry. Only the switch can still reject the resulting change.
pub fn write(program: &Arc<Program>, kind: update::Type, entry: &TableEntry) -> Checked<Change> {
    let table = program.table(entry.table_id)?;
    let (id, name) = (table.id, table.name());
    if table.info.is_const_table && !entry.is_default_action {
        let action_kept = kind == update::Type::Modify && entry.action.is_none();
        if !action_kept {
            return refuse(Code::PermissionDenied, format!("table {name} is constant in the program"));
        }
        let (which, direct) = (which(&table, entry, Look::Find)?, Direct::of(&table, entry)?);
        return Ok(Box::new(move |switch, _| direct.apply(switch, id, &which)));
    }
    // Names that the entry uses, held until it is inserted.
    let mut held = Vec::new();
    let look = if kind == update::Type::Insert { Look::Take(&mut held) } else { Look::Find };
    let which = which(&table, entry, look)?;
    if kind == update::Type::Delete {
        return match which {
            Which::Default => refuse(
                Code::InvalidArgument,
                format!(
                    "table {name}: the default entry can't be deleted; modify it without action to reset it"
                ),
            ),
            Which::Keys(keys, priority) => {
                let program = program.clone();
                Ok(Box::new(move |switch, _| {
                    let before = uses_of(&program, switch, id, &keys, priority);
                    program.exchange(&before, &Uses::default(), || {
                        let gone = switch.delete(id, &keys, priority);
                        program.of_entry(switch, (id, &keys), gone)
                    })
                }))
            }
        };
    }
    if entry.is_const {
        return refuse(Code::InvalidArgument, format!("table {name}: is_const can't be set in a write"));
    }
    #[allow(deprecated)]
    if entry.controller_metadata != 0 {
        let message = format!("table {name}: controller_metadata is not kept; use metadata");
        return refuse(Code::Unimplemented, message);
    }
    let direct = Direct::of(&table, entry)?;
    let timeout = idle_timeout(&table, entry)?;
    let action = entry.action.as_ref();
    let action = action.map(|action| doing(&table, action, entry.is_default_action, &mut held));
    let action = action.transpose()?;
    match which {
        Which::Default => {
            let call = action.and_then(|doing| match doing {
                Doing::Call(call) => Some(call),
                Doing::Indirect(_) => None,
            });
            write_default(program, &table, kind, call, direct, held)
        }
        Which::Keys(keys, priority) => {
            let (call, indirect) = match action {
                Some(Doing::Call(call)) => (call, None),
                Some(Doing::Indirect(indirect)) => {
                    (ActionCall { action: 0, args: Vec::new() }, Some(indirect))
                }
                None => return refuse(Code::InvalidArgument, format!("table {name}: the action is not set")),
            };
            table.restrict(&keys, priority)?;
            let which = (!direct.is_empty()).then(|| Which::Keys(keys.clone(), priority));
            let entry = switch::TableEntry {
                keys,
                priority,
                call,
                indirect,
                is_const: false,
                metadata: entry.metadata.clone(),
                idle_timeout_ns: timeout,
            };
            let (program, follows) = (program.clone(), program.follows(id));
            Ok(Box::new(move |switch, _| {
                let put = |switch: &mut Switch, entry| match kind {
                    update::Type::Insert => switch.insert(id, entry),
                    _ => switch.modify(id, entry),
                };
                if follows {
                    let before = uses_of(&program, switch, id, &entry.keys, entry.priority);
                    let after = program.uses_of_entry(id, &entry);
                    let keys = entry.keys.clone();
                    program.exchange(&before, &after, || {
                        let done = put(switch, entry);
                        program.of_entry(switch, (id, &keys), done)
                    })?;
                } else {
                    control(put(switch, entry))?;
                }
                drop(held);
                match which {
                    Some(which) => direct.apply(switch, id, &which),
                    None => Ok(()),
                }
            }))
        }
    }
}

/// References of an existing entry.
fn uses_of(program: &Program, switch: &Switch, table: TableId, keys: &[Matcher], priority: i32) -> Uses {
    if !program.follows(table) {
        return Uses::default();
    }
    let entry = switch.entry(table, keys, priority).ok();
    entry.map_or_else(Uses::default, |entry| program.uses_of_entry(table, &entry))
}

/// References of the default entry.
fn uses_of_default(program: &Program, switch: &Switch, table: TableId) -> Uses {
    if !program.follows(table) {
        return Uses::default();
    }
    let default = switch.default_entry(table).ok().and_then(|entry| entry.call);
    program.uses_of_call(table, default.as_ref())
}

fn write_default(
    program: &Arc<Program>,
    table: &TableRef<'_>,
    kind: update::Type,
    call: Option<ActionCall>,
    direct: Direct,
    held: Vec<Held>,
) -> Checked<Change> {
    let (id, name) = (table.id, table.name());
    if kind != update::Type::Modify {
        let message = format!("table {name}: the default entry is always there; it can only be modified");
        return refuse(Code::InvalidArgument, message);
    }
    if table.ir.default_is_const {
        return refuse(
            Code::PermissionDenied,
            format!("table {name}: the default action is constant in the program"),
        );
    }
    let program = program.clone();
    Ok(Box::new(move |switch, _| {
        let reset = call.is_none();
        let before = uses_of_default(&program, switch, id);
        let own = program.ir.tables[id.0 as usize].default_action.as_ref();
        let after = match program.follows(id) {
            true => program.uses_of_call(id, call.as_ref().or(own)),
            false => Uses::default(),
        };
        program.exchange(&before, &after, || control(switch.set_default(id, call)))?;
        drop(held);
        let direct = match direct {
            // A reset includes the direct counter.
            Direct { counter: None, .. } if reset && switch_has_counter(switch, id) => {
                Direct { counter: Some(switch::CounterData::default()), ..direct }
            }
            direct => direct,
        };
        direct.apply(switch, id, &Which::Default)
    }))
}

fn switch_has_counter(switch: &Switch, table: TableId) -> bool {
    switch.direct_counter_read(table, EntryRef::Default).is_ok()
}

fn idle_timeout(table: &TableRef<'_>, entry: &TableEntry) -> Checked<u64> {
    let name = table.name();
    if (entry.idle_timeout_ns != 0 || entry.time_since_last_hit.is_some())
        && (!table.ir.idle_timeout || entry.is_default_action)
    {
        return refuse(Code::InvalidArgument, format!("table {name}: no idle timeout is possible here"));
    }
    if entry.time_since_last_hit.is_some() {
        return refuse(Code::InvalidArgument, format!("table {name}: time_since_last_hit can't be written"));
    }
    match u64::try_from(entry.idle_timeout_ns) {
        Ok(timeout_ns) => Ok(timeout_ns),
        Err(_) => refuse(Code::InvalidArgument, format!("table {name}: negative idle timeout")),
    }
}

/// Checks an update of a direct counter.
pub fn write_direct_counter(
    program: &Arc<Program>,
    kind: update::Type,
    entry: &DirectCounterEntry,
) -> Checked<Change> {
    let (table, which) = direct_target(program, kind, "direct counter", entry.table_entry.as_ref())?;
    if table.ir.counter.is_none() {
        return refuse(Code::InvalidArgument, format!("table {} has no direct counter", table.name()));
    }
    let data = entry.data.as_ref().map(counter_data).transpose()?;
    direct_change(program, table, which, Direct { meter: None, counter: data, colors: None })
}

/// Checks an update of a direct meter.
pub fn write_direct_meter(
    program: &Arc<Program>,
    kind: update::Type,
    entry: &DirectMeterEntry,
) -> Checked<Change> {
    let (table, which) = direct_target(program, kind, "direct meter", entry.table_entry.as_ref())?;
    if table.ir.meter.is_none() {
        return refuse(Code::InvalidArgument, format!("table {} has no direct meter", table.name()));
    }
    let colors = entry.counter_data.as_ref().map(meter_counts).transpose()?;
    let config = entry.config.as_ref().map(meter_config).transpose()?;
    // Counts alone leave the configuration unchanged.
    let meter = (config.is_some() || colors.is_none()).then_some(config);
    direct_change(program, table, which, Direct { meter, counter: None, colors })
}

fn direct_target<'a>(
    program: &'a Program,
    kind: update::Type,
    what: &str,
    entry: Option<&TableEntry>,
) -> Checked<(TableRef<'a>, Which)> {
    if kind != update::Type::Modify {
        return refuse(
            Code::InvalidArgument,
            format!("a {what} lives with its entry; it can only be modified"),
        );
    }
    let Some(entry) = entry else {
        return refuse(Code::InvalidArgument, format!("the table_entry of the {what} is not set"));
    };
    let table = program.table(entry.table_id)?;
    let which = which(&table, entry, Look::Find)?;
    Ok((table, which))
}

fn direct_change(
    program: &Arc<Program>,
    table: TableRef<'_>,
    which: Which,
    direct: Direct,
) -> Checked<Change> {
    let id = table.id;
    let program = program.clone();
    Ok(Box::new(move |switch, _| {
        if let Which::Keys(keys, priority) = &which {
            let entry = switch.entry(id, keys, *priority);
            program.of_entry(switch, (id, keys), entry)?;
        }
        direct.apply(switch, id, &which)
    }))
}

/// Saves an entry and its direct resources for an undo, which cannot fail because they existed before.
pub fn snapshot(program: &Arc<Program>, entry: Option<&TableEntry>) -> Checked<Snapshot> {
    let Some(entry) = entry else {
        return refuse(Code::InvalidArgument, "table_entry is not set");
    };
    let table = program.table(entry.table_id)?;
    let (id, which) = (table.id, which(&table, entry, Look::Find)?);
    let program = program.clone();
    Ok(Box::new(move |switch| {
        let counter = switch.direct_counter_read(id, which.reference()).ok();
        let meter = switch.direct_meter_read(id, which.reference()).ok();
        let colors = switch.direct_meter_counts(id, which.reference()).ok();
        let restore: Undo = match which.clone() {
            Which::Default => {
                let before = switch.default_entry(id).ok();
                let uses = uses_of_default(&program, switch, id);
                let held = uses.hold();
                Box::new(move |switch| {
                    program.replace(&uses_of_default(&program, switch, id), &uses);
                    drop(held);
                    let _ = match before {
                        Some(switch::DefaultEntry { indirect: Some(indirect), .. }) => {
                            switch.set_default_indirect(id, indirect)
                        }
                        Some(before) => switch.set_default(id, before.call.filter(|_| !before.is_initial)),
                        None => Ok(()),
                    };
                })
            }
            Which::Keys(keys, priority) => {
                let before = switch.entry(id, &keys, priority).ok();
                let uses = uses_of(&program, switch, id, &keys, priority);
                let held = uses.hold();
                Box::new(move |switch| {
                    program.replace(&uses_of(&program, switch, id, &keys, priority), &uses);
                    drop(held);
                    let _ = match (before, switch.entry(id, &keys, priority).is_ok()) {
                        (Some(before), true) => switch.modify(id, before),
                        (Some(before), false) => switch.insert(id, before),
                        (None, true) => switch.delete(id, &keys, priority),
                        (None, false) => Ok(()),
                    };
                })
            }
        };
        Box::new(move |switch| {
            restore(switch);
            if let Some(data) = counter {
                let _ = switch.direct_counter_write(id, which.reference(), data);
            }
            if let Some(config) = meter {
                let _ = switch.direct_meter_config(id, which.reference(), config);
            }
            if let Some(counts) = colors {
                let _ = switch.direct_meter_counts_write(id, which.reference(), counts);
            }
        })
    }))
}
