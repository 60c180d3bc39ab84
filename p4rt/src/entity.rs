//! Table entries by name.
//!
//! ```
//! # use p4rack_p4rt::{entity::Entry, schema::Schema, text};
//! # let info = text::parse(r#"
//! #   tables { preamble { id: 33554433 name: "ingress.dmac" alias: "dmac" }
//! #     match_fields { id: 1 name: "hdr.ethernet.dstAddr" bitwidth: 48 match_type: EXACT }
//! #     action_refs { id: 16777217 } size: 64 }
//! #   actions { preamble { id: 16777217 name: "ingress.forward" alias: "forward" }
//! #     params { id: 1 name: "port" bitwidth: 9 } }"#).unwrap();
//! # let schema = Schema::new(info).unwrap();
//! let entry = Entry::of("dmac")
//!     .exact("hdr.ethernet.dstAddr", [2, 0, 0, 0, 0, 1])
//!     .action("forward")
//!     .param("port", 1)
//!     .build(&schema)?;
//! # assert_eq!(entry.table_id, 33554433);
//! # Ok::<(), p4rack_p4rt::entity::EntityError>(())
//! ```

use crate::EntityKind;
use crate::bytes::{self, BytesError};
use crate::p4::config::v1::{MatchField, Table, match_field};
use crate::p4::v1::{
    Action, Entity, FieldMatch, TableAction, TableEntry, Update, action, field_match,
    field_match::FieldMatchType, table_action, update,
};
use crate::schema::{self, Schema, SchemaError, id_of, name_of};
use crate::values::show_match;
use thiserror::Error;

/// Why an entry does not fit its table.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EntityError {
    /// A name that the program does not have.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// A value that does not fit its field.
    #[error("{field}: {error}")]
    Value {
        /// Key or parameter, with its table or action.
        field: String,
        /// The value's mistake.
        error: BytesError,
    },
    /// Any other mismatch.
    #[error("{0}")]
    Invalid(String),
}

/// A number of any width, big-endian.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value(Vec<u8>);

impl From<u128> for Value {
    fn from(number: u128) -> Value {
        Value(bytes::from_u128(number))
    }
}

macro_rules! value_from {
    ($($type:ty)*) => { $(
        impl From<$type> for Value {
            fn from(number: $type) -> Value {
                Value::from(u128::from(number))
            }
        }
    )* };
}
value_from!(u8 u16 u32 u64 bool);

impl From<i32> for Value {
    /// For literals. A negative number is a bug of the caller and becomes 0.
    fn from(number: i32) -> Value {
        Value::from(u128::try_from(number).unwrap_or(0))
    }
}

impl From<&[u8]> for Value {
    fn from(bytes: &[u8]) -> Value {
        Value(bytes::canonical(bytes))
    }
}

impl<const N: usize> From<[u8; N]> for Value {
    fn from(bytes: [u8; N]) -> Value {
        Value::from(bytes.as_slice())
    }
}

#[derive(Clone, Debug)]
enum Match {
    Exact(Value),
    Lpm(Value, u16),
    Ternary(Value, Value),
    Range(Value, Value),
    Optional(Value),
}

/// A table entry under construction.
#[derive(Clone, Debug)]
pub struct Entry {
    table: String,
    keys: Vec<(String, Match)>,
    action: Option<String>,
    params: Vec<(String, Value)>,
    priority: i32,
    is_default: bool,
}

impl Entry {
    /// An entry of the table with this name.
    pub fn of(table: &str) -> Entry {
        Entry {
            table: table.into(),
            keys: Vec::new(),
            action: None,
            params: Vec::new(),
            priority: 0,
            is_default: false,
        }
    }

    /// The default entry of the table with this name.
    pub fn default_of(table: &str) -> Entry {
        Entry { is_default: true, ..Entry::of(table) }
    }

    fn key(mut self, name: &str, key: Match) -> Entry {
        self.keys.push((name.into(), key));
        self
    }

    /// Adds an exact key.
    pub fn exact(self, name: &str, value: impl Into<Value>) -> Entry {
        self.key(name, Match::Exact(value.into()))
    }

    /// Adds an LPM key. Bits beyond the prefix are cleared; length 0 means "don't care".
    pub fn lpm(self, name: &str, value: impl Into<Value>, prefix_len: u16) -> Entry {
        self.key(name, Match::Lpm(value.into(), prefix_len))
    }

    /// Adds a ternary key. Bits outside the mask are cleared; mask 0 means "don't care".
    pub fn ternary(self, name: &str, value: impl Into<Value>, mask: impl Into<Value>) -> Entry {
        self.key(name, Match::Ternary(value.into(), mask.into()))
    }

    /// Adds a range key, both ends included. The full range means "don't care".
    pub fn range(self, name: &str, low: impl Into<Value>, high: impl Into<Value>) -> Entry {
        self.key(name, Match::Range(low.into(), high.into()))
    }

    /// Adds an optional key that must be equal.
    pub fn optional(self, name: &str, value: impl Into<Value>) -> Entry {
        self.key(name, Match::Optional(value.into()))
    }

    /// Sets the priority; the larger one wins. Required exactly if the table has a ternary, range or optional
    /// key.
    pub fn priority(mut self, priority: i32) -> Entry {
        self.priority = priority;
        self
    }

    /// Sets the action.
    pub fn action(mut self, name: &str) -> Entry {
        self.action = Some(name.into());
        self
    }

    /// Adds an argument of the action.
    pub fn param(mut self, name: &str, value: impl Into<Value>) -> Entry {
        self.params.push((name.into(), value.into()));
        self
    }

    /// Builds the message.
    pub fn build(&self, schema: &Schema) -> Result<TableEntry, EntityError> {
        let table = schema.table(&self.table)?;
        let mut keys = Vec::with_capacity(self.keys.len());
        for (name, key) in &self.keys {
            let field = schema::key(table, name)?;
            if let Some(field_match_type) = field_match(table, field, key)? {
                keys.push(FieldMatch { field_id: field.id, field_match_type: Some(field_match_type) });
            }
        }
        keys.sort_by_key(|key| key.field_id);
        let action = match &self.action {
            Some(name) => Some(self.build_action(schema, table, name)?),
            None => None,
        };
        Ok(TableEntry {
            table_id: id_of(table.preamble.as_ref()),
            r#match: keys,
            action: action.map(|action| TableAction { r#type: Some(table_action::Type::Action(action)) }),
            priority: self.priority,
            is_default_action: self.is_default,
            ..Default::default()
        })
    }

    /// Builds an update that inserts the entry (or sets the default entry).
    pub fn update(&self, schema: &Schema) -> Result<Update, EntityError> {
        let kind = if self.is_default { update::Type::Modify } else { update::Type::Insert };
        Ok(table_update(kind, self.build(schema)?))
    }

    fn build_action(&self, schema: &Schema, table: &Table, name: &str) -> Result<Action, EntityError> {
        let action = schema.action(name)?;
        let id = id_of(action.preamble.as_ref());
        if !table.action_refs.iter().any(|reference| reference.id == id) {
            let message = format!("table `{}` does not offer action `{name}`", self.table);
            return Err(EntityError::Invalid(message));
        }
        let mut params = Vec::with_capacity(self.params.len());
        for (name, value) in &self.params {
            let param = schema::param(action, name)?;
            let owner = name_of(action.preamble.as_ref());
            let value = fit(&format!("parameter `{name}` of action `{owner}`"), value, param.bitwidth)?;
            params.push(action::Param { param_id: param.id, value });
        }
        params.sort_by_key(|param| param.param_id);
        if let Some(missing) =
            action.params.iter().find(|param| !params.iter().any(|given| given.param_id == param.id))
        {
            let message = format!("action `{name}` needs parameter `{}`", missing.name);
            return Err(EntityError::Invalid(message));
        }
        Ok(Action { action_id: id, params })
    }
}

/// An update of a table entry.
pub fn table_update(kind: update::Type, entry: TableEntry) -> Update {
    Update { r#type: kind as i32, entity: Some(Entity { entity: Some(EntityKind::TableEntry(entry)) }) }
}

/// Checks the width of a value; a width of 0 (a string) fits anything.
fn fit(field: &str, value: &Value, bitwidth: i32) -> Result<Vec<u8>, EntityError> {
    match u32::try_from(bitwidth) {
        Ok(0) | Err(_) => Ok(value.0.clone()),
        Ok(width) => {
            bytes::check(&value.0, width).map_err(|error| EntityError::Value { field: field.into(), error })
        }
    }
}

fn field_match(
    table: &Table,
    field: &MatchField,
    key: &Match,
) -> Result<Option<FieldMatchType>, EntityError> {
    use match_field::MatchType;
    let owner = name_of(table.preamble.as_ref());
    let what = format!("key `{}` of table `{owner}`", field.name);
    let fit = |value: &Value| fit(&what, value, field.bitwidth);
    let kind = schema::match_type(field);
    Ok(match key {
        Match::Exact(value) if kind == MatchType::Exact => {
            Some(FieldMatchType::Exact(field_match::Exact { value: fit(value)? }))
        }
        Match::Optional(value) if kind == MatchType::Optional => {
            Some(FieldMatchType::Optional(field_match::Optional { value: fit(value)? }))
        }
        Match::Lpm(value, prefix_len) if kind == MatchType::Lpm => {
            let width = field.bitwidth.max(0);
            let length = i32::from(*prefix_len);
            if length > width {
                let message = format!("{what}: prefix of {length} bits, but the key has {width}");
                return Err(EntityError::Invalid(message));
            }
            let mask = bytes::leading_ones(width as usize, length as usize);
            let value = bytes::and(&fit(value)?, &mask);
            (length > 0).then_some(FieldMatchType::Lpm(field_match::Lpm { value, prefix_len: length }))
        }
        Match::Ternary(value, mask) if kind == MatchType::Ternary => {
            let mask = fit(mask)?;
            let value = bytes::and(&fit(value)?, &mask);
            (mask != [0]).then_some(FieldMatchType::Ternary(field_match::Ternary { value, mask }))
        }
        Match::Range(low, high) if kind == MatchType::Range => {
            let (low, high) = (fit(low)?, fit(high)?);
            if (low.len(), &low) > (high.len(), &high) {
                return Err(EntityError::Invalid(format!("{what}: the range ends before it begins")));
            }
            let width = field.bitwidth.max(0) as usize;
            let all = low == [0] && high == bytes::canonical(&bytes::leading_ones(width, width));
            (!all).then_some(FieldMatchType::Range(field_match::Range { low, high }))
        }
        _ => {
            let kind = kind.as_str_name();
            return Err(EntityError::Invalid(format!("{what} is matched {kind}, not as given")));
        }
    })
}

/// Table and key of an entry in words: `table ingress.dmac key hdr.dst=02:00:00:00:00:01`.
pub fn describe(schema: &Schema, entry: &TableEntry) -> String {
    let Ok(table) = schema.table_by_id(entry.table_id) else {
        return format!("table 0x{:08x}", entry.table_id);
    };
    let name = name_of(table.preamble.as_ref());
    if entry.is_default_action {
        return format!("table {name} default entry");
    }
    let keys: Vec<String> = entry
        .r#match
        .iter()
        .map(|key| match table.match_fields.iter().find(|field| field.id == key.field_id) {
            Some(field) => format!("{}={}", field.name, show_match(key.field_match_type.as_ref(), field)),
            None => format!("#{}={}", key.field_id, describe_match(key)),
        })
        .collect();
    let priority = if entry.priority == 0 { String::new() } else { format!(" priority {}", entry.priority) };
    format!("table {name} key {}{priority}", if keys.is_empty() { "*".into() } else { keys.join(",") })
}

/// A key that the table does not have.
fn describe_match(key: &FieldMatch) -> String {
    let hex = |bytes: &[u8]| format!("0x{}", bytes::hex(bytes));
    match &key.field_match_type {
        Some(FieldMatchType::Exact(key)) => hex(&key.value),
        Some(FieldMatchType::Optional(key)) => hex(&key.value),
        Some(FieldMatchType::Lpm(key)) => format!("{}/{}", hex(&key.value), key.prefix_len),
        Some(FieldMatchType::Ternary(key)) => format!("{}&{}", hex(&key.value), hex(&key.mask)),
        Some(FieldMatchType::Range(key)) => format!("{}..{}", hex(&key.low), hex(&key.high)),
        Some(FieldMatchType::Other(_)) => "(other)".into(),
        None => "(unset)".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text;

    fn schema() -> Schema {
        let info = text::parse(
            r#"
            tables {
              preamble { id: 33554433 name: "ingress.acl" alias: "acl" }
              match_fields { id: 1 name: "port" bitwidth: 9 match_type: EXACT }
              match_fields { id: 2 name: "dst" bitwidth: 32 match_type: LPM }
              match_fields { id: 3 name: "src" bitwidth: 12 match_type: TERNARY }
              match_fields { id: 4 name: "sport" bitwidth: 16 match_type: RANGE }
              match_fields { id: 5 name: "vid" bitwidth: 12 match_type: OPTIONAL }
              action_refs { id: 16777217 }
            }
            actions {
              preamble { id: 16777217 name: "ingress.set" alias: "set" }
              params { id: 1 name: "a" bitwidth: 9 }
              params { id: 2 name: "b" bitwidth: 4 }
            }
            actions { preamble { id: 16777218 name: "ingress.other" alias: "other" } }"#,
        )
        .unwrap();
        Schema::new(info).unwrap()
    }

    #[test]
    fn names_become_ids_and_masked_bits_zero() {
        let entry = Entry::of("acl")
            .ternary("src", 0xfff, 0x0f0)
            .exact("port", 257)
            .lpm("dst", [10, 1, 2, 3], 12)
            .action("set")
            .param("b", 15)
            .param("a", 3)
            .priority(7)
            .build(&schema())
            .unwrap();
        assert_eq!(
            describe(&schema(), &entry),
            "table ingress.acl key port=257,dst=10.0.0.0/12,src=0xf0&0xf0 priority 7"
        );
        let Some(table_action::Type::Action(action)) = entry.action.unwrap().r#type else { panic!() };
        assert_eq!(action.params.iter().map(|p| p.param_id).collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn dont_care_is_left_out() {
        let entry = Entry::of("ingress.acl")
            .exact("port", 1)
            .lpm("dst", [10, 1, 2, 3], 0)
            .ternary("src", 3, 0)
            .range("sport", 0, 0xffff)
            .build(&schema())
            .unwrap();
        assert_eq!(entry.r#match.len(), 1);
    }

    #[test]
    fn faults_are_named() {
        let fault = |entry: Entry| entry.build(&schema()).unwrap_err().to_string();
        assert_eq!(fault(Entry::of("acls")), "there is no table `acls`; did you mean ingress.acl?");
        assert_eq!(
            fault(Entry::of("acl").exact("port", 512)),
            "key `port` of table `ingress.acl`: 512 needs 10 bits, but the field has 9"
        );
        assert_eq!(
            fault(Entry::of("acl").exact("dst", 1)),
            "key `dst` of table `ingress.acl` is matched LPM, not as given"
        );
        assert_eq!(fault(Entry::of("acl").action("set").param("a", 1)), "action `set` needs parameter `b`");
        assert_eq!(fault(Entry::of("acl").action("other")), "table `acl` does not offer action `other`");
        assert_eq!(
            fault(Entry::of("acl").range("sport", 0x100, 0xff)),
            "key `sport` of table `ingress.acl`: the range ends before it begins"
        );
        assert_eq!(
            fault(Entry::of("acl").lpm("dst", 1, 33)),
            "key `dst` of table `ingress.acl`: prefix of 33 bits, but the key has 32"
        );
    }
}
