//! Entries by name.

use crate::schema::{Action, Field, Key, MatchType, Schema, SchemaError, Table};
use crate::value::{Kind, Value, ValueError, fixed_width, length, received};
use p4rack_p4rt::bfrt_proto::data_field::{self, ContainerArray, container_array::Container};
use p4rack_p4rt::bfrt_proto::key_field::{self, Exact, Lpm, MatchType as Sent, Optional, Range, Ternary};
use p4rack_p4rt::bfrt_proto::table_entry;
use p4rack_p4rt::bfrt_proto::{DataField, KeyField, TableData, TableEntry, TableKey};
use p4rack_p4rt::bytes;
use std::collections::BTreeMap;
use std::fmt;
use thiserror::Error;

/// Why an entry does not fit its table.
#[derive(Debug, Error)]
pub enum EntryError {
    /// The schema does not have this name.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// A value does not fit its field.
    #[error("{field}: {error}")]
    Value {
        /// The key or data field, with its table.
        field: String,
        /// Description of the error.
        error: ValueError,
    },
    /// Anything else.
    #[error("{0}")]
    Invalid(String),
}

/// Match of one key field. Numbers are big-endian, in their shortest form.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Match {
    /// This value; the bytes of a key that is text.
    Exact(Vec<u8>),
    /// This value in the bits of the mask.
    Ternary(Vec<u8>, Vec<u8>),
    /// A prefix of this value.
    Lpm(Vec<u8>, u32),
    /// All values between these two, inclusive.
    Range(Vec<u8>, Vec<u8>),
    /// This value.
    Optional(Vec<u8>),
}

/// An entry by names, of a table with actions or of one with cells. Key fields that match anything are left out.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    table: String,
    keys: BTreeMap<String, Match>,
    action: Option<String>,
    data: BTreeMap<String, Value>,
    is_default: bool,
}

impl Entry {
    /// An empty entry of the table with this name.
    pub fn of(table: &str) -> Entry {
        let (keys, data) = Default::default();
        Entry { table: table.to_owned(), keys, action: None, data, is_default: false }
    }

    /// An empty default entry of the table with this name.
    pub fn default_of(table: &str) -> Entry {
        Entry { is_default: true, ..Entry::of(table) }
    }

    /// Name of its table.
    pub fn table(&self) -> &str {
        &self.table
    }

    /// Name of its action.
    pub fn action_name(&self) -> Option<&str> {
        self.action.as_deref()
    }

    /// The value of a data field.
    pub fn get(&self, field: &str) -> Option<&Value> {
        self.data.get(field)
    }

    /// Overwrites its data with those that another entry has.
    pub fn updated(mut self, by: &Entry) -> Entry {
        self.data.extend(by.data.iter().map(|(name, value)| (name.clone(), value.clone())));
        self.action = by.action.clone().or(self.action);
        self
    }

    /// The same entry with another one's action, and with its values of the fields that this one has.
    pub fn fields_of(&self, other: &Entry) -> Entry {
        let own = other.data.iter().filter(|(name, _)| self.data.contains_key(*name));
        let data = own.map(|(name, value)| (name.clone(), value.clone())).collect();
        Entry { action: other.action.clone(), data, ..self.clone() }
    }

    /// Whether it is the default entry.
    pub fn is_default(&self) -> bool {
        self.is_default
    }

    /// The match of a key field; `None` if it matches anything.
    pub fn matched(&self, name: &str) -> Option<&Match> {
        self.keys.get(name)
    }

    /// The value of an exact key field with at most 64 bits.
    pub fn exact_number(&self, name: &str) -> Option<u64> {
        match self.keys.get(name)? {
            Match::Exact(value) if value.len() <= 8 => {
                Some(value.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
            }
            _ => None,
        }
    }

    /// The value of an exact key field that is text.
    pub fn exact_text(&self, name: &str) -> Option<&str> {
        match self.keys.get(name)? {
            Match::Exact(value) => std::str::from_utf8(value).ok(),
            _ => None,
        }
    }

    /// Adds an exact key field that is text.
    pub fn exact_text_key(self, name: &str, text: &str) -> Entry {
        self.key(name, Match::Exact(text.into()))
    }

    /// Adds a key field.
    pub fn key(mut self, name: &str, key: Match) -> Entry {
        self.keys.insert(name.to_owned(), key);
        self
    }

    /// Adds an exact key field.
    pub fn exact(self, name: &str, number: u128) -> Entry {
        self.key(name, Match::Exact(bytes::from_u128(number)))
    }

    /// Sets the action.
    pub fn action(mut self, name: &str) -> Entry {
        self.action = Some(name.to_owned());
        self
    }

    /// Adds a parameter of the action, or a field of the data.
    pub fn data(mut self, name: &str, value: impl Into<Value>) -> Entry {
        self.data.insert(name.to_owned(), value.into());
        self
    }

    /// Converts it to a message. Errors: it does not fit the schema.
    pub fn build(&self, schema: &Schema) -> Result<TableEntry, EntryError> {
        let table = schema.table(&self.table)?;
        let mut keys = Vec::with_capacity(self.keys.len());
        for (name, key) in &self.keys {
            keys.push(sent(table, table.key(name)?, key)?);
        }
        let given = |key: &Key| keys.iter().any(|sent| sent.field_id == key.id);
        let required = |key: &&Key| key.mandatory || key.match_type == MatchType::Exact;
        if let Some(missing) = table.keys.iter().filter(required).find(|key| !self.is_default && !given(key))
            && !missing.name.starts_with('$')
        {
            let message = format!("an entry of table `{}` needs key `{}`", table.name, missing.name);
            return Err(EntryError::Invalid(message));
        }
        keys.sort_by_key(|key| key.field_id);
        let key = table_entry::Value::Key(TableKey { fields: keys });
        Ok(TableEntry {
            table_id: table.id,
            value: (!self.is_default).then_some(key),
            data: Some(self.build_data(table)?),
            is_default_entry: self.is_default,
            ..Default::default()
        })
    }

    fn build_data(&self, table: &Table) -> Result<TableData, EntryError> {
        let action = self.action.as_deref().map(|name| table.action(name)).transpose()?;
        let wrong_place =
            |action: &&Action| if self.is_default { !action.as_default } else { !action.in_entries };
        if let Some(action) = action.filter(wrong_place) {
            let place = if self.is_default { "the default action" } else { "an entry's action" };
            let message = format!("`{}` can't be {place} of table `{}`", action.name, table.name);
            return Err(EntryError::Invalid(message));
        }
        let mut fields = Vec::with_capacity(self.data.len());
        for (name, value) in &self.data {
            let field = table.field(action, name)?;
            let value = sent_value(table, field, value)?;
            fields.push(DataField { field_id: field.id, value: Some(value) });
        }
        let parameters = action.into_iter().flat_map(|action| &action.fields);
        let mut missing = parameters
            .filter(|field| field.mandatory && !fields.iter().any(|sent| sent.field_id == field.id));
        if let Some(missing) = missing.next() {
            let name = self.action.as_deref().unwrap_or_default();
            return Err(EntryError::Invalid(format!("action `{name}` needs parameter `{}`", missing.name)));
        }
        fields.sort_by_key(|field| field.field_id);
        Ok(TableData { action_id: action.map_or(0, |action| action.id), fields })
    }

    /// Converts from a message. Errors: it does not fit the schema.
    pub fn read(schema: &Schema, message: &TableEntry) -> Result<Entry, EntryError> {
        let unknown = |what: &str, id: u32| EntryError::Invalid(format!("the schema has no {what} {id}"));
        let table = schema.table_by_id(message.table_id).ok_or_else(|| unknown("table", message.table_id))?;
        let mut entry = Entry { is_default: message.is_default_entry, ..Entry::of(&table.name) };
        if let Some(table_entry::Value::Key(key)) = &message.value {
            for field in &key.fields {
                let key = table.keys.iter().find(|key| key.id == field.field_id);
                let key = key.ok_or_else(|| unknown("key", field.field_id))?;
                if let Some(found) = read_key(table, key, field)? {
                    entry.keys.insert(key.name.clone(), found);
                }
            }
        }
        let Some(data) = &message.data else { return Ok(entry) };
        let action = match data.action_id {
            0 => None,
            id => Some(table.action_by_id(id).ok_or_else(|| unknown("action", id))?),
        };
        entry.action = action.map(|action| action.name.clone());
        for sent in &data.fields {
            let field = table.fields_of(action).find(|field| field.id == sent.field_id);
            let field = field.ok_or_else(|| unknown("field", sent.field_id))?;
            let Some(value) = sent.value.as_ref() else { continue };
            entry.data.insert(field.name.clone(), read_value(table, field, value)?);
        }
        Ok(entry)
    }
}

fn field_error<'t>(table: &'t Table, field: &'t Field) -> impl Fn(ValueError) -> EntryError + 't {
    |error| EntryError::Value { field: format!("field `{}` of table `{}`", field.name, table.name), error }
}

/// Converts the value of a field to its form in messages. Groups have no groups.
fn sent_value(table: &Table, field: &Field, value: &Value) -> Result<data_field::Value, EntryError> {
    let Value::Groups(groups) = value else {
        return field.kind.encode(value).map_err(field_error(table, field));
    };
    let mut container = Vec::with_capacity(groups.len());
    for group in groups {
        let mut val = Vec::with_capacity(group.len());
        for (name, value) in group {
            let inner = field.group.iter().find(|inner| inner.name == *name);
            let inner = inner.ok_or_else(|| {
                EntryError::Invalid(format!(
                    "field `{}` of table `{}` has no `{name}`",
                    field.name, table.name
                ))
            })?;
            let value = inner.kind.encode(value).map_err(field_error(table, inner))?;
            val.push(DataField { field_id: inner.id, value: Some(value) });
        }
        container.push(Container { val });
    }
    Ok(data_field::Value::ContainerArrVal(ContainerArray { container }))
}

/// Converts the value of a field from its form in messages.
fn read_value(table: &Table, field: &Field, value: &data_field::Value) -> Result<Value, EntryError> {
    let (Kind::Groups, data_field::Value::ContainerArrVal(array)) = (&field.kind, value) else {
        return field.kind.decode(value).map_err(field_error(table, field));
    };
    let mut groups = Vec::with_capacity(array.container.len());
    for container in &array.container {
        let mut group = Vec::with_capacity(container.val.len());
        for sent in &container.val {
            let inner = field.group.iter().find(|inner| inner.id == sent.field_id);
            let inner = inner.ok_or_else(|| {
                let id = sent.field_id;
                EntryError::Invalid(format!("field `{}` of table `{}` has no {id}", field.name, table.name))
            })?;
            // As with a single field, one without a value is not given.
            let Some(value) = &sent.value else { continue };
            let value = inner.kind.decode(value).map_err(field_error(table, inner))?;
            group.push((inner.name.clone(), value));
        }
        groups.push(group);
    }
    Ok(Value::Groups(groups))
}

/// Converts a key field to a message.
fn sent(table: &Table, key: &Key, wanted: &Match) -> Result<KeyField, EntryError> {
    if let (Kind::Text(_), MatchType::Exact, Match::Exact(text)) = (&key.kind, key.match_type, wanted) {
        let exact = Exact { value: text.clone() };
        return Ok(KeyField { field_id: key.id, match_type: Some(Sent::Exact(exact)) });
    }
    let width = width(table, key)?;
    let fit = |number: &[u8]| fixed_width(number, width).map_err(|error| value_error(table, key, error));
    let sent = match (key.match_type, wanted) {
        (MatchType::Exact, Match::Exact(value)) => Sent::Exact(Exact { value: fit(value)? }),
        (MatchType::Ternary, Match::Ternary(value, mask)) => {
            let (mut value, mask) = (fit(value)?, fit(mask)?);
            value.iter_mut().zip(&mask).for_each(|(byte, mask)| *byte &= mask);
            Sent::Ternary(Ternary { value, mask })
        }
        (MatchType::Lpm, Match::Lpm(value, length)) if *length <= width => {
            let mut value = fit(value)?;
            clear_behind(&mut value, width, *length);
            Sent::Lpm(Lpm { value, prefix_len: i32::try_from(*length).unwrap_or(i32::MAX) })
        }
        (MatchType::Lpm, Match::Lpm(_, length)) => {
            let message = format!("{}: prefix of {length} bits, but the key has {width}", named(table, key));
            return Err(EntryError::Invalid(message));
        }
        (MatchType::Range, Match::Range(low, high)) => {
            let (low, high) = (fit(low)?, fit(high)?);
            if low > high {
                let message = format!("{}: the range ends before it begins", named(table, key));
                return Err(EntryError::Invalid(message));
            }
            Sent::Range(Range { low, high })
        }
        (MatchType::Optional, Match::Optional(value)) => {
            Sent::Optional(Optional { value: fit(value)?, is_valid: true })
        }
        (kind, _) => {
            let message = format!("{} is matched {kind:?}, not as given", named(table, key));
            return Err(EntryError::Invalid(message));
        }
    };
    Ok(KeyField { field_id: key.id, match_type: Some(sent) })
}

/// Converts a key field from a message; `None` if it matches anything.
fn read_key(table: &Table, key: &Key, field: &KeyField) -> Result<Option<Match>, EntryError> {
    if let (Kind::Text(_), Some(Sent::Exact(exact))) = (&key.kind, &field.match_type) {
        return Ok(Some(Match::Exact(exact.value.clone())));
    }
    let width = width(table, key)?;
    let taken = |number: &[u8]| received(number, width).map_err(|error| value_error(table, key, error));
    let zero = |number: &[u8]| number.iter().all(|byte| *byte == 0);
    let sent: Option<&key_field::MatchType> = field.match_type.as_ref();
    Ok(match (key.match_type, sent) {
        (MatchType::Exact, Some(Sent::Exact(exact))) => Some(Match::Exact(taken(&exact.value)?)),
        (MatchType::Ternary, Some(Sent::Ternary(ternary))) => {
            let (value, mask) = (taken(&ternary.value)?, taken(&ternary.mask)?);
            (!zero(&mask)).then_some(Match::Ternary(value, mask))
        }
        (MatchType::Lpm, Some(Sent::Lpm(lpm))) => {
            let value = taken(&lpm.value)?;
            let length = u32::try_from(lpm.prefix_len).ok().filter(|length| *length <= width);
            let length = length.ok_or_else(|| {
                let message = format!("{}: prefix of {} bits", named(table, key), lpm.prefix_len);
                EntryError::Invalid(message)
            })?;
            (length > 0).then_some(Match::Lpm(value, length))
        }
        (MatchType::Range, Some(Sent::Range(range))) => {
            let (low, high) = (taken(&range.low)?, taken(&range.high)?);
            let all = zero(&low) && bytes::bit_length(&high) == u64::from(width) && ones(&high);
            (!all).then_some(Match::Range(low, high))
        }
        (MatchType::Optional, Some(Sent::Optional(optional))) if optional.is_valid => {
            Some(Match::Optional(taken(&optional.value)?))
        }
        (MatchType::Optional, Some(Sent::Optional(_))) => None,
        (kind, _) => {
            return Err(EntryError::Invalid(format!("{} is matched {kind:?}", named(table, key))));
        }
    })
}

/// Whether the ones of a mask are contiguous from the most significant bit.
fn ones(number: &[u8]) -> bool {
    match number.split_first() {
        Some((first, rest)) => {
            first.leading_zeros() + first.count_ones() == 8 && rest.iter().all(|byte| *byte == 0xff)
        }
        None => true,
    }
}

/// Clears all but the first `length` of a number's `width` bits.
pub(crate) fn clear_behind(number: &mut [u8], width: u32, length: u32) {
    let lead = self::length(width) as u32 * 8 - width;
    for bit in lead + length..lead + width {
        if let Some(byte) = number.get_mut(bit as usize / 8) {
            *byte &= !(0x80 >> (bit % 8));
        }
    }
}

fn width(table: &Table, key: &Key) -> Result<u32, EntryError> {
    match key.kind {
        Kind::Bits(width) => Ok(width),
        Kind::Bool => Ok(1),
        _ => Err(EntryError::Invalid(format!("{} is no number", named(table, key)))),
    }
}

fn named(table: &Table, key: &Key) -> String {
    format!("key `{}` of table `{}`", key.name, table.name)
}

fn value_error(table: &Table, key: &Key, error: ValueError) -> EntryError {
    EntryError::Value { field: named(table, key), error }
}

impl fmt::Display for Entry {
    /// Table and key: `pipe.ingress.dmac hdr.ethernet.dstAddr=0x020000000001`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.table)?;
        if self.is_default {
            return f.write_str(" default entry");
        }
        for (name, key) in &self.keys {
            let hex = |number: &[u8]| format!("0x{}", bytes::hex(number));
            match key {
                Match::Exact(value) | Match::Optional(value) => write!(f, " {name}={}", hex(value))?,
                Match::Ternary(value, mask) => write!(f, " {name}={}&{}", hex(value), hex(mask))?,
                Match::Lpm(value, length) => write!(f, " {name}={}/{length}", hex(value))?,
                Match::Range(low, high) => write!(f, " {name}={}..{}", hex(low), hex(high))?,
            }
        }
        Ok(())
    }
}
