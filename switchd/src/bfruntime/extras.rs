//! Fields of entries that P4Runtime does not have: the configuration of their filter, their element of a direct register,
//! whether they were hit.

use super::fixed::Step;
use super::outcome::invalid;
use super::own::{config_of, fields_of};
use num_bigint::BigUint;
use p4rack_bfrt::{Entry, Field, Kind, Schema, Table, Value};
use p4rack_entities::{Change, Checked, Program, Snapshot, Undo, control, refuse};
use p4rack_p4::ir::{InstanceKind, Matcher, TableId};
use p4rack_p4rt::bfrt_proto::{DataField, TableEntry};
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::v1;
use p4rack_switch::{EntryRef, Pipes, Switch};
use p4rack_wire::Nanos;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The field that says whether an entry was hit, and its values.
const HIT_STATE: &str = "$ENTRY_HIT_STATE";
const ACTIVE: &str = "ENTRY_ACTIVE";
const IDLE: &str = "ENTRY_IDLE";
/// Maximum entries of a table whose state was set since the last update of all.
const MOST: usize = 1 << 16;

/// Fields that the entries of a table have.
#[derive(Clone, Debug)]
struct Extra {
    id: TableId,
    /// Whether its filters decide on drops.
    filter: Option<bool>,
    /// Parts of an element with their widths; the first one is the most significant.
    parts: Vec<(Field, u32)>,
    has_hit_state: bool,
}

/// Whether P4Runtime's entries have no such field: parts of elements have the program's names.
fn is_own(field: &str) -> bool {
    let own = ["$LPF_SPEC_", "$WRED_SPEC_", HIT_STATE];
    !field.starts_with('$') || own.iter().any(|name| field.starts_with(name))
}

/// When the hit states of a table were updated: an entry is active if it was hit between the last two times.
#[derive(Debug, Default)]
struct Hits {
    previous: Nanos,
    last: Nanos,
    /// States that clients have set since.
    set: HashMap<String, bool>,
}

/// The tables with such fields.
#[derive(Debug)]
pub struct Extras {
    program: Arc<Program>,
    schema: Schema,
    tables: HashMap<u32, Extra>,
    hits: Mutex<HashMap<u32, Hits>>,
}

/// An entry of a table: its key and priority, or the default entry.
#[derive(Clone, Debug)]
pub struct EntryAddress {
    table: TableId,
    entry: Option<(Vec<Matcher>, i32)>,
}

impl EntryAddress {
    fn entry(&self) -> EntryRef<'_> {
        self.entry.as_ref().map_or(EntryRef::Default, |(keys, priority)| EntryRef::Keys(keys, *priority))
    }

    fn name(&self) -> String {
        format!("{:?}", self.entry)
    }
}

impl Extra {
    /// `None` if the table has none of these fields.
    fn of(table: &Table, program: &Program) -> Option<Extra> {
        let at = program.ir.tables.iter().position(|found| table.is_named(&found.named.name))?;
        let id = TableId(at as u32);
        let filter = program.ir.instances.iter().find_map(|instance| match &instance.kind {
            InstanceKind::DirectSmoother { table: Some(table), drops } if *table == id => Some(*drops),
            _ => None,
        });
        let part = |field: &Field| {
            let width = match field.kind {
                Kind::Bits(width) => width,
                Kind::Bool => 1,
                _ => return None,
            };
            (!field.name.starts_with('$')).then(|| (field.clone(), width))
        };
        let parts: Vec<(Field, u32)> = table.fields.iter().filter_map(part).collect();
        let has_hit_state = table.fields.iter().any(|field| field.name == HIT_STATE);
        let any = filter.is_some() || !parts.is_empty() || has_hit_state;
        any.then_some(Extra { id, filter, parts, has_hit_state })
    }

    /// The element that an entry gives; parts that it does not give are as before. `None` if it gives none.
    fn element(&self, entry: &Entry, before: &BigUint) -> Option<BigUint> {
        let given = |(field, _): &(Field, u32)| entry.get(&field.name).is_some();
        if !self.parts.iter().any(given) {
            return None;
        }
        let (mut whole, mut behind) = (BigUint::default(), self.parts.iter().map(|(_, width)| width).sum());
        for (field, width) in &self.parts {
            behind -= width;
            let value = match entry.get(&field.name) {
                Some(Value::Number(number)) => BigUint::from_bytes_be(number),
                Some(Value::Bool(truth)) => BigUint::from(u8::from(*truth)),
                _ => part(before, behind, *width),
            };
            whole |= value << behind;
        }
        Some(whole)
    }

    /// The parts of an element as fields.
    fn fields(&self, element: &BigUint) -> Checked<Vec<DataField>> {
        let mut behind: u32 = self.parts.iter().map(|(_, width)| width).sum();
        let one = |(field, width): &(Field, u32)| {
            behind -= width;
            let number = part(element, behind, *width);
            let value = match field.kind {
                Kind::Bool => Value::Bool(number.bit(0)),
                _ => Value::Number(number.to_bytes_be()),
            };
            sent(field, &value)
        };
        self.parts.iter().map(one).collect()
    }
}

fn part(element: &BigUint, behind: u32, width: u32) -> BigUint {
    element >> behind & ((BigUint::from(1u8) << width) - 1u8)
}

fn sent(field: &Field, value: &Value) -> Checked<DataField> {
    match field.kind.encode(value) {
        Ok(value) => Ok(DataField { field_id: field.id, value: Some(value) }),
        Err(error) => refuse(Code::Internal, format!("field `{}`: {error}", field.name)),
    }
}

impl Extras {
    /// Those of a program's tables.
    pub fn new(schema: Schema, program: Arc<Program>) -> Extras {
        let tables = schema.tables().iter().filter(|table| table.table_type.starts_with("MatchAction_"));
        let tables = tables.filter_map(|table| Some((table.id, Extra::of(table, &program)?))).collect();
        Extras { program, schema, tables, hits: Mutex::default() }
    }

    /// Whether the entries of a table have any.
    pub fn has(&self, table_id: u32) -> bool {
        self.tables.contains_key(&table_id)
    }

    /// Whether a field of a table's entries is one of them.
    pub fn owns(&self, table_id: u32, field_id: u32) -> bool {
        let Some(table) = self.schema.table_by_id(table_id).filter(|_| self.has(table_id)) else {
            return false;
        };
        let field = table.fields.iter().find(|field| field.id == field_id);
        field.is_some_and(|field| is_own(&field.name))
    }

    fn hits(&self) -> MutexGuard<'_, HashMap<u32, Hits>> {
        // No change can panic half-way.
        self.hits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The entry of P4Runtime's message.
    pub fn place(&self, entry: &v1::TableEntry) -> Checked<EntryAddress> {
        let table = self.program.table(entry.table_id)?;
        let keys = || Ok((table.matchers(&entry.r#match)?, entry.priority));
        let entry = if entry.is_default_action { None } else { Some(keys()?) };
        Ok(EntryAddress { table: table.id, entry })
    }

    /// The update's effect on these fields, applied after the rest; `None` if it names none of them.
    pub fn step(self: &Arc<Extras>, message: &TableEntry, place: EntryAddress) -> Checked<Option<Step>> {
        let Some(extra) = self.tables.get(&message.table_id) else { return Ok(None) };
        let given = Entry::read(&self.schema, message).or_else(|error| invalid(error.to_string()))?;
        let filter = match extra.filter {
            Some(drops) => config_of(drops, &given, None)?.map(|_| drops),
            None => None,
        };
        let is_active = match given.get(HIT_STATE) {
            Some(Value::Text(state)) => Some(state == ACTIVE),
            _ => None,
        };
        let has_element = extra.element(&given, &BigUint::default()).is_some();
        if filter.is_none() && is_active.is_none() && !has_element {
            return Ok(None);
        }
        let (saved, before, table_id) = (place.clone(), self.clone(), message.table_id);
        let snapshot: Snapshot = Box::new(move |switch| {
            let table = saved.table;
            let config = switch.direct_smoother_read(table, saved.entry());
            let element = switch.direct_register_read(table, saved.entry());
            let state = before.hits().get(&table_id).and_then(|hits| hits.set.get(&saved.name()).copied());
            let undo: Undo = Box::new(move |switch| {
                if let Some(hits) = before.hits().get_mut(&table_id) {
                    match state {
                        Some(state) => hits.set.insert(saved.name(), state),
                        None => hits.set.remove(&saved.name()),
                    };
                }
                let _ = config.and_then(|config| switch.direct_smoother_config(table, saved.entry(), config));
                let _ = element.and_then(|old| switch.direct_register_write(table, saved.entry(), &old));
            });
            undo
        });
        let (extras, extra) = (self.clone(), extra.clone());
        let change: Change = Box::new(move |switch, _| {
            if let Some(drops) = filter {
                let before = control(switch.direct_smoother_read(extra.id, place.entry()))?;
                let config = config_of(drops, &given, before)?;
                control(switch.direct_smoother_config(extra.id, place.entry(), config))?;
            }
            if has_element {
                let before = control(switch.direct_register_read(extra.id, place.entry()))?;
                let element = extra.element(&given, &before).unwrap_or(before);
                control(switch.direct_register_write(extra.id, place.entry(), &element))?;
            }
            if let Some(is_active) = is_active {
                let mut hits = extras.hits();
                let set = &mut hits.entry(table_id).or_default().set;
                if set.len() >= MOST {
                    let message = format!("the state of {MOST} entries was set; execute UpdateHitState");
                    return refuse(Code::ResourceExhausted, message);
                }
                set.insert(place.name(), is_active);
            }
            Ok(())
        });
        Ok(Some(Step { snapshot: Some(snapshot), change }))
    }

    /// Updates the hit states of a table's entries.
    pub fn update_hits(&self, table_id: u32, now: Nanos) {
        let mut hits = self.hits();
        let own = hits.entry(table_id).or_default();
        (own.previous, own.last) = (own.last, now);
        own.set.clear();
    }

    /// The fields of an entry. With `pipes`, elements have one value per pipe.
    pub fn read(
        &self,
        switch: &mut Switch,
        table_id: u32,
        place: &EntryAddress,
        pipes: Option<u32>,
    ) -> Checked<Vec<DataField>> {
        let (Some(extra), Some(table)) = (self.tables.get(&table_id), self.schema.table_by_id(table_id))
        else {
            return Ok(Vec::new());
        };
        let mut fields = Vec::new();
        if let Some(drops) = extra.filter {
            let config = control(switch.direct_smoother_read(extra.id, place.entry()))?;
            for (name, value) in fields_of(drops, config) {
                let field = table.field(None, name).or_else(|error| invalid(error.to_string()))?;
                fields.push(sent(field, &value)?);
            }
        }
        if !extra.parts.is_empty() {
            let read = |switch: &mut Switch| control(switch.direct_register_read(extra.id, place.entry()));
            match pipes {
                None => fields.extend(extra.fields(&read(switch)?)?),
                Some(pipes) => {
                    for pipe in 0..pipes {
                        let element = control(switch.within(Pipes::of([pipe as usize]), read))??;
                        fields.extend(extra.fields(&element)?);
                    }
                }
            }
        }
        if let (true, Some((keys, priority))) = (extra.has_hit_state, &place.entry) {
            let hit = control(switch.last_hit(extra.id, keys, *priority))?;
            let hits = self.hits();
            let is_active = hits.get(&table_id).is_some_and(|own| {
                own.set.get(&place.name()).copied().unwrap_or(own.previous < hit && hit <= own.last)
            });
            let field = table.field(None, HIT_STATE).or_else(|error| invalid(error.to_string()))?;
            fields.push(sent(field, &Value::from(if is_active { ACTIVE } else { IDLE }))?);
        }
        Ok(fields)
    }
}
