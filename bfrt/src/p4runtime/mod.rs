//! Translates BFRuntime's entries to P4Runtime's entities and back, since a program's tables have both interfaces.
//!
//! ```text
//!  TableEntry ── entity ──▶ Entity       in the switch, whose core takes entities
//!             ◀── entry ───              in a controller, whose descriptions hold entities
//!
//!  tables      keys, actions, priorities, direct objects
//!  profiles    members, groups
//!  cells       counters, meters, registers
//!  sets        value sets, whose members are entries in BFRuntime
//!  digests     lists of learned fields
//! ```
//!
//! Objects are matched by name. In BFRuntime the smaller `$MATCH_PRIORITY` wins, in P4Runtime the larger priority, so each
//! is [`PRIORITIES`] minus the other.

mod cells;
mod digests;
mod info;
mod profiles;
mod sets;
mod tables;

pub use digests::digest_list;
pub use info::info;
pub use sets::ValueSet;
pub use tables::direct::Scratch;

use crate::schema::{Field, Schema, Table};
use crate::value::{Kind, Value, fixed_width, received};
use cells::{CounterPlan, Largest, MeterPlan, RegisterPlan};
use p4rack_p4rt::bfrt_proto::{
    DataField, KeyField, TableEntry, TableKey, data_field, key_field, table_entry, update,
};
use p4rack_p4rt::bytes;
use p4rack_p4rt::errors::UpdateError;
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::config::v1::{P4Info, Preamble};
use p4rack_p4rt::p4::v1::{self, Entity, entity::Entity as Kinds};
use profiles::{GroupPlan, MemberPlan};
use std::borrow::Cow;
use std::collections::HashMap;
use tables::TablePlan;
use tables::direct::{self, Fields, Part};

/// The largest rate of a meter of bytes, by generation, and the largest burst.
const RATES_KBPS: [u64; 2] = [5_195_848_221, 4_087_999_890];
const BURST_KBITS: u64 = 4_380_866_642;
/// The same of a meter of packets. The driver computes both from the clock, in numbers of 24 bits.
const RATES_PPS: [u64; 2] = [649_481_027_584, 510_999_986_176];
const BURST_PACKETS: u64 = 255 << 31;

/// Number of priorities in BFRuntime.
pub const PRIORITIES: u32 = 1 << 24;

/// Type of the tables with members of value sets.
const VALUE_SET: &str = "ParserValueSet";

/// The result of a translation; the error goes to the client.
pub type Translated<T> = Result<T, UpdateError>;

fn refuse<T>(code: Code, message: impl Into<String>) -> Translated<T> {
    Err(UpdateError::new(code, message))
}

fn invalid<T>(message: impl Into<String>) -> Translated<T> {
    refuse(Code::InvalidArgument, message)
}

fn unknown<T>(id: u32) -> Translated<T> {
    refuse(Code::NotFound, format!("the schema has no object with P4Runtime's id {id} (0x{id:08x})"))
}

/// P4Runtime's counterpart of a table of the schema.
#[derive(Clone, Debug)]
enum Object {
    Table(Box<TablePlan>),
    Members(MemberPlan),
    Groups(GroupPlan),
    Counter(CounterPlan),
    Meter(MeterPlan),
    Register(RegisterPlan),
}

/// Kinds of P4Runtime's objects, each with ids of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Sort {
    Table,
    Members,
    Groups,
    Counter,
    Meter,
    Register,
}

/// The two interfaces of a program.
#[derive(Clone, Debug, Default)]
pub struct Translation {
    /// Each with the table's id and name.
    objects: Vec<(u32, String, Object)>,
    by_table: HashMap<u32, usize>,
    by_p4: HashMap<(Sort, u32), usize>,
    sets: Vec<ValueSet>,
    /// Tables of the schema without counterpart in P4Runtime, with their types.
    others: HashMap<u32, (String, String)>,
}

impl Translation {
    /// Matches a program's schema with its P4Info. Errors: only one of them has a certain table, or a part of it.
    pub fn new(schema: &Schema, info: &P4Info) -> Result<Translation, String> {
        let mut translation = Translation::default();
        for table in schema.tables() {
            let found = object(table, schema, info)?;
            match found {
                Some((sort, id, object)) => {
                    let place = translation.objects.len();
                    translation.by_table.insert(table.id, place);
                    translation.by_p4.insert((sort, id), place);
                    translation.objects.push((table.id, table.name.clone(), object));
                }
                None => {
                    let mut sets = info.value_sets.iter().filter(|_| table.table_type == VALUE_SET);
                    if let Some(set) = sets.find(|set| is_named(table, set.preamble.as_ref())) {
                        translation.sets.push(ValueSet::new(table, set)?);
                    }
                    let named = (table.name.clone(), table.table_type.clone());
                    translation.others.insert(table.id, named);
                }
            }
        }
        for wanted in &info.tables {
            let id = id_of(wanted.preamble.as_ref());
            if !translation.by_p4.contains_key(&(Sort::Table, id)) {
                return Err(format!("the schema has no table `{}`", name_of(wanted.preamble.as_ref())));
            }
        }
        Ok(translation)
    }

    /// Knows the largest rate and burst of a device's meters, by its generation: a missing limit is shown as these.
    pub fn set_device(&mut self, is_second: bool) {
        let largest = |rates: [u64; 2], burst| {
            let rate = rates[usize::from(is_second)];
            [rate, rate, burst, burst]
        };
        let most =
            Largest { bytes: largest(RATES_KBPS, BURST_KBITS), packets: largest(RATES_PPS, BURST_PACKETS) };
        for (_, _, object) in &mut self.objects {
            match object {
                Object::Meter(plan) => plan.set_most(&most),
                Object::Table(plan) => plan.set_largest_meter(&most),
                _ => {}
            }
        }
    }

    /// Whether the table with this id has a counterpart in P4Runtime.
    pub fn has(&self, table_id: u32) -> bool {
        self.by_table.contains_key(&table_id)
    }

    fn object(&self, table_id: u32) -> Translated<&Object> {
        if let Some(place) = self.by_table.get(&table_id) {
            return Ok(&self.objects[*place].2);
        }
        match self.others.get(&table_id) {
            Some((name, kind)) => {
                refuse(Code::Unimplemented, format!("table `{name}` ({kind}) is not offered"))
            }
            None => {
                refuse(Code::NotFound, format!("there is no table with id {table_id} (0x{table_id:08x})"))
            }
        }
    }

    /// Whether a table's entries are cells, which always exist.
    pub fn has_cells(&self, table_id: u32) -> bool {
        let object = self.object(table_id);
        matches!(object, Ok(Object::Counter(_) | Object::Meter(_) | Object::Register(_)))
    }

    /// Whether a table's entries are the cells of a register.
    pub fn is_register(&self, table_id: u32) -> bool {
        matches!(self.object(table_id), Ok(Object::Register(_)))
    }

    /// Whether a table's entries have key fields, not a number.
    pub fn has_keys(&self, table_id: u32) -> bool {
        matches!(self.object(table_id), Ok(Object::Table(_)))
    }

    /// The fields of a table's direct counter, with nothing counted; none if it has no counter.
    pub fn zero_counters(&self, table_id: u32) -> Vec<DataField> {
        match self.object(table_id) {
            Ok(Object::Table(plan)) => plan.zero_counters(),
            _ => Vec::new(),
        }
    }

    /// Number of the field with an entry's time to live, if a table has it.
    pub fn ttl_field(&self, table_id: u32) -> Option<u32> {
        match self.object(table_id) {
            Ok(Object::Table(plan)) => plan.ttl_field(),
            _ => None,
        }
    }

    /// An entry as P4Runtime's entity, to be written.
    pub fn entity(&self, entry: &TableEntry) -> Translated<Entity> {
        let kind = match self.object(entry.table_id)? {
            Object::Table(plan) => Kinds::TableEntry(plan.entity(entry)?),
            Object::Members(plan) => Kinds::ActionProfileMember(plan.entity(entry)?),
            Object::Groups(plan) => Kinds::ActionProfileGroup(plan.entity(entry)?),
            Object::Counter(plan) => Kinds::CounterEntry(plan.entity(entry)?),
            Object::Meter(plan) => Kinds::MeterEntry(plan.entity(entry)?),
            Object::Register(plan) => Kinds::RegisterEntry(plan.entity(entry)?),
        };
        Ok(Entity { entity: Some(kind) })
    }

    /// Appends, to a serialised `WriteRequest` of P4Runtime, the update that a serialised one of BFRuntime means, if it
    /// only inserts or deletes an entry of a table that `may` accepts, for insertions (true) or deletions. Otherwise,
    /// the appended bytes are meaningless.
    pub fn direct(
        &self,
        update: &[u8],
        may: impl FnOnce(u32, bool) -> bool,
        scratch: &mut Scratch,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let (Some(kind), Some(entity)) = direct::pair(update)? else { return None };
        let (p4_kind, inserts) = match update::Type::try_from(i32::try_from(kind.id()?).ok()?).ok()? {
            update::Type::Insert => (v1::update::Type::Insert, true),
            update::Type::Delete => (v1::update::Type::Delete, false),
            _ => return None,
        };
        let (Some(entry), None) = direct::pair(entity.bytes()?)? else { return None };
        let (mut table_id, mut key, mut data) = (None, None, None);
        for field in Fields(entry.bytes()?) {
            match field? {
                (1, id) if table_id.is_none() => table_id = id.id(),
                (2, Part::Bytes(bytes)) if key.is_none() => key = Some(bytes),
                (3, Part::Bytes(bytes)) if data.is_none() => data = Some(bytes),
                _ => return None,
            }
        }
        let (table_id, key) = (table_id?, key?);
        let plan = match self.objects.get(*self.by_table.get(&table_id)?) {
            Some((_, _, Object::Table(plan))) => plan,
            _ => return None,
        };
        if !may(table_id, inserts) || inserts && data.is_none() {
            return None;
        }
        plan.direct(p4_kind as u64, key, data.filter(|_| inserts), scratch, out)
    }

    /// The entity to read from P4Runtime for an entry, or for all of its table if it has no key.
    pub fn request(&self, entry: &TableEntry) -> Translated<Entity> {
        let kind = match self.object(entry.table_id)? {
            Object::Table(plan) => Kinds::TableEntry(plan.request(entry)?),
            Object::Members(plan) => Kinds::ActionProfileMember(plan.request(entry)?),
            Object::Groups(plan) => Kinds::ActionProfileGroup(plan.request(entry)?),
            Object::Counter(plan) => Kinds::CounterEntry(plan.request(entry)?),
            Object::Meter(plan) => Kinds::MeterEntry(plan.request(entry)?),
            Object::Register(plan) => Kinds::RegisterEntry(plan.request(entry)?),
        };
        Ok(Entity { entity: Some(kind) })
    }

    /// Converts an entity to an entry.
    pub fn entry(&self, entity: &Entity) -> Translated<TableEntry> {
        let (sort, id) = match &entity.entity {
            Some(Kinds::TableEntry(entry)) => (Sort::Table, entry.table_id),
            Some(Kinds::ActionProfileMember(member)) => (Sort::Members, member.action_profile_id),
            Some(Kinds::ActionProfileGroup(group)) => (Sort::Groups, group.action_profile_id),
            Some(Kinds::CounterEntry(entry)) => (Sort::Counter, entry.counter_id),
            Some(Kinds::MeterEntry(entry)) => (Sort::Meter, entry.meter_id),
            Some(Kinds::RegisterEntry(entry)) => (Sort::Register, entry.register_id),
            _ => return refuse(Code::Unimplemented, "BFRuntime has no table for such an entity"),
        };
        let Some(place) = self.by_p4.get(&(sort, id)) else {
            return unknown(id);
        };
        let (table_id, _, object) = &self.objects[*place];
        let mut made = match (object, &entity.entity) {
            (Object::Table(plan), Some(Kinds::TableEntry(entry))) => plan.entry(entry)?,
            (Object::Members(plan), Some(Kinds::ActionProfileMember(member))) => plan.entry(member)?,
            (Object::Groups(plan), Some(Kinds::ActionProfileGroup(group))) => plan.entry(group)?,
            (Object::Counter(plan), Some(Kinds::CounterEntry(entry))) => plan.entry(entry)?,
            (Object::Meter(plan), Some(Kinds::MeterEntry(entry))) => plan.entry(entry)?,
            (Object::Register(plan), Some(Kinds::RegisterEntry(entry))) => plan.entry(entry)?,
            _ => return refuse(Code::Internal, "objects of different kinds have one number"),
        };
        made.table_id = *table_id;
        Ok(made)
    }

    /// The entries to read from BFRuntime for an entity: a single one, all of a table, or, with id 0, all of a kind.
    pub fn keys(&self, entity: &Entity) -> Translated<Vec<TableEntry>> {
        let (sort, id, all) = match &entity.entity {
            Some(Kinds::TableEntry(entry)) => {
                let all = entry.r#match.is_empty() && entry.priority == 0 && !entry.is_default_action;
                (Sort::Table, entry.table_id, all)
            }
            Some(Kinds::ActionProfileMember(member)) => {
                (Sort::Members, member.action_profile_id, member.member_id == 0)
            }
            Some(Kinds::ActionProfileGroup(group)) => {
                (Sort::Groups, group.action_profile_id, group.group_id == 0)
            }
            Some(Kinds::CounterEntry(entry)) => (Sort::Counter, entry.counter_id, entry.index.is_none()),
            Some(Kinds::MeterEntry(entry)) => (Sort::Meter, entry.meter_id, entry.index.is_none()),
            Some(Kinds::RegisterEntry(entry)) => (Sort::Register, entry.register_id, entry.index.is_none()),
            _ => return refuse(Code::Unimplemented, "BFRuntime has no table for such an entity"),
        };
        if !all {
            return Ok(vec![TableEntry { data: None, ..self.entry(entity)? }]);
        }
        let chosen =
            self.by_p4.iter().filter(|((own, number), _)| *own == sort && (id == 0 || id == *number));
        let mut tables: Vec<u32> = chosen.map(|(_, place)| self.objects[*place].0).collect();
        if tables.is_empty() && id != 0 {
            return unknown(id);
        }
        tables.sort_unstable();
        Ok(tables.into_iter().map(|table_id| TableEntry { table_id, ..Default::default() }).collect())
    }

    /// The value set with P4Runtime's id, or, with 0, all of them.
    pub fn value_sets(&self, id: u32) -> Translated<Vec<&ValueSet>> {
        let found: Vec<&ValueSet> = self.sets.iter().filter(|set| set.is(id)).collect();
        match found.is_empty() && id != 0 {
            true => unknown(id),
            false => Ok(found),
        }
    }

    /// Whether a change gives all of an entry, so that it needs nothing of the old one.
    pub fn is_whole(&self, entry: &TableEntry) -> bool {
        match self.object(entry.table_id) {
            Ok(Object::Table(plan)) => plan.is_whole(entry),
            Ok(Object::Register(plan)) => plan.is_whole(entry),
            Ok(Object::Counter(plan)) => plan.is_whole(entry),
            Ok(Object::Meter(plan)) => plan.is_whole(entry),
            Ok(Object::Groups(_)) => false,
            Ok(Object::Members(_)) | Err(_) => true,
        }
    }
}

fn object(table: &Table, schema: &Schema, info: &P4Info) -> Result<Option<(Sort, u32, Object)>, String> {
    macro_rules! named {
        ($list:ident) => {
            info.$list.iter().find(|object| is_named(table, object.preamble.as_ref()))
        };
    }
    let missing = || format!("the program has no {} `{}`", table.table_type, table.name);
    Ok(Some(match table.table_type.as_str() {
        kind if kind.starts_with("MatchAction_") => {
            let wanted = named!(tables).ok_or_else(missing)?;
            let plan = TablePlan::new(table, wanted, info)?;
            (Sort::Table, id_of(wanted.preamble.as_ref()), Object::Table(Box::new(plan)))
        }
        "Action" => {
            let of_selector = profiles::of_selector(table, schema, info);
            let Some(profile) = of_selector.or_else(|| named!(action_profiles)) else {
                return Ok(None);
            };
            let id = id_of(profile.preamble.as_ref());
            (Sort::Members, id, Object::Members(MemberPlan::new(table, id, info)?))
        }
        "Selector" => {
            let profile = named!(action_profiles).ok_or_else(missing)?;
            let id = id_of(profile.preamble.as_ref());
            (Sort::Groups, id, Object::Groups(GroupPlan::new(table, id)?))
        }
        "Counter" => {
            let id = id_of(named!(counters).ok_or_else(missing)?.preamble.as_ref());
            (Sort::Counter, id, Object::Counter(CounterPlan::new(table, id)?))
        }
        "Meter" => {
            let id = id_of(named!(meters).ok_or_else(missing)?.preamble.as_ref());
            (Sort::Meter, id, Object::Meter(MeterPlan::new(table, id)?))
        }
        "Register" => {
            let register = named!(registers).ok_or_else(missing)?;
            (
                Sort::Register,
                id_of(register.preamble.as_ref()),
                Object::Register(RegisterPlan::new(table, register)?),
            )
        }
        _ => return Ok(None),
    }))
}

fn id_of(preamble: Option<&Preamble>) -> u32 {
    preamble.map_or(0, |preamble| preamble.id)
}

fn name_of(preamble: Option<&Preamble>) -> &str {
    preamble.map_or("", |preamble| &preamble.name)
}

/// Whether a table of the schema is this object. Its name may begin with the pipeline's.
fn is_named(table: &Table, preamble: Option<&Preamble>) -> bool {
    let name = name_of(preamble);
    table.name == name || table.name.split_once('.').is_some_and(|(_, rest)| rest == name)
}

/// P4Runtime's name of a key field: the validity of a header has another one there.
fn key_name(name: &str) -> Cow<'_, str> {
    match name.strip_suffix("$valid") {
        Some(header) => format!("{header}$valid$").into(),
        None => name.into(),
    }
}

/// Id of a table's data field.
fn field_id(table: &Table, name: &str) -> Option<u32> {
    table.fields.iter().find(|field| field.name == name).map(|field| field.id)
}

/// Id of the single key field of a table of cells, members or groups.
fn index_id(table: &Table) -> Result<u32, String> {
    match &table.keys[..] {
        [key] => Ok(key.id),
        keys => Err(format!(
            "table `{}` has {} key fields, but its entries have a number",
            table.name,
            keys.len()
        )),
    }
}

/// Index of the cell, or id of the member or group, in an entry's key; `None` without a key.
fn index(name: &str, id: u32, entry: &TableEntry) -> Translated<Option<u32>> {
    let fields = match &entry.value {
        Some(table_entry::Value::Key(key)) => &key.fields[..],
        Some(table_entry::Value::HandleId(_)) => return no_handles(name),
        None => return Ok(None),
    };
    match fields {
        [] => Ok(None),
        [KeyField { field_id, match_type: Some(key_field::MatchType::Exact(exact)) }] if *field_id == id => {
            Ok(Some(u32_of(name, &exact.value)?))
        }
        _ => invalid(format!("table `{name}`: its key is one field, id {id}, matched exactly")),
    }
}

fn no_handles<T>(name: &str) -> Translated<T> {
    refuse(
        Code::Unimplemented,
        format!("table `{name}`: entries are named by their keys here, not by handles"),
    )
}

/// The key field for a cell, member or group.
fn index_key(id: u32, number: u32) -> Option<table_entry::Value> {
    let exact = key_field::Exact { value: number.to_be_bytes().to_vec() };
    let field = KeyField { field_id: id, match_type: Some(key_field::MatchType::Exact(exact)) };
    Some(table_entry::Value::Key(TableKey { fields: vec![field] }))
}

fn u32_of(what: &str, value: &[u8]) -> Translated<u32> {
    match <[u8; 4]>::try_from(value) {
        Ok(four) => Ok(u32::from_be_bytes(four)),
        Err(_) => invalid(format!("{what}: {} bytes, but a number of 32 bits takes 4", value.len())),
    }
}

/// Parses the received value of a field.
fn taken(what: &str, name: &str, value: &[u8], width: u32) -> Translated<Vec<u8>> {
    received(value, width).or_else(|error| invalid(format!("{what}: field `{name}`: {error}")))
}

/// Pads P4Runtime's value to the field's length. Errors: it is empty or too wide, with the words and the code of a switch that
/// speaks P4Runtime itself.
fn sent(what: &str, name: &str, value: &[u8], width: u32) -> Translated<Vec<u8>> {
    if let Err(error) = bytes::check(value, width) {
        return refuse(Code::OutOfRange, format!("{what}: field `{name}`: {error}"));
    }
    fixed_width(value, width).or_else(|error| invalid(format!("{what}: field `{name}`: {error}")))
}

/// The value of a field with at most 64 bits.
fn number(table: &str, field: &Field, value: Option<&data_field::Value>) -> Translated<u64> {
    let decoded = value.map(|value| field.kind.decode(value));
    match decoded {
        Some(Ok(Value::Number(number))) => {
            Ok(number.iter().fold(0u64, |sum, byte| sum << 8 | u64::from(*byte)))
        }
        Some(Ok(_)) => invalid(format!("table `{table}`: field `{}` holds no number", field.name)),
        Some(Err(error)) => invalid(format!("table `{table}`: field `{}`: {error}", field.name)),
        None => invalid(format!("table `{table}`: field `{}` has no value", field.name)),
    }
}

/// Bits of a field that holds a number.
fn bits_of(field: &Field) -> u32 {
    match field.kind {
        Kind::Bits(width) => width,
        _ => 64,
    }
}

/// The largest number that a field holds.
fn largest(field: &Field) -> u64 {
    u64::MAX >> 64u32.saturating_sub(bits_of(field)).min(63)
}

/// P4Runtime's id of member and group 0; there 0 means all.
const NUMBER_0: u32 = u32::MAX;

/// The number of a member or group in P4Runtime. Errors, which name the table: it is none of a member or group.
pub fn to_number(name: &str, id: u32) -> Translated<u32> {
    match id {
        0 => Ok(NUMBER_0),
        NUMBER_0 => {
            invalid(format!("table `{name}`: members and groups are numbered up to {}", NUMBER_0 - 1))
        }
        id => Ok(id),
    }
}

/// The reverse of [`to_number`].
pub fn from_number(number: u32) -> u32 {
    if number == NUMBER_0 { 0 } else { number }
}

/// A data field with a number, or with the largest one that it holds.
fn number_field(field: &Field, number: u64) -> DataField {
    let number = number.min(largest(field));
    let value = fixed_width(&bytes::from_u128(number.into()), bits_of(field)).unwrap_or_default();
    DataField { field_id: field.id, value: Some(data_field::Value::Stream(value)) }
}
