//! Updates and reads of a schema's tables, from numbers.

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use p4rack_bfrt::{Field, Key, Kind, MatchType, Table};
use p4rack_p4rt::bfrt_proto::*;
use prost::Message;

/// An update, or a read's request.
#[derive(Arbitrary, Debug)]
pub struct Change {
    pub kind: u8,
    what: u8,
    table: u8,
    /// Bits: omitted parts, and flags.
    shape: u8,
    numbers: [u8; 12],
}

/// The numbers of a change, one after the other; then zeros.
struct Numbers<'a>(&'a [u8]);

impl Numbers<'_> {
    fn next(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().map_or((0, self.0), |(first, rest)| (*first, rest));
        self.0 = rest;
        first
    }

    /// A number of `width` bits: a small one, or one with all bits.
    fn bits(&mut self, width: u32) -> Vec<u8> {
        let number = self.next();
        let mut bytes = vec![if number > 0xfb { 0xff } else { 0 }; width.div_ceil(8) as usize];
        if let Some(last) = bytes.last_mut() {
            *last = number;
        }
        let spare = (8 - width % 8) % 8;
        if let Some(first) = bytes.first_mut() {
            *first &= 0xff >> spare;
        }
        bytes
    }

    fn list<T>(&mut self, one: impl Fn(&mut Self) -> T) -> Vec<T> {
        (0..self.next() % 5).map(|_| one(self)).collect()
    }
}

fn width(kind: &Kind) -> u32 {
    match kind {
        Kind::Bits(width) => *width,
        _ => 8,
    }
}

fn key(key: &Key, numbers: &mut Numbers) -> KeyField {
    let width = width(&key.kind);
    let value = numbers.bits(width);
    let kind = match key.match_type {
        MatchType::Exact => key_field::MatchType::Exact(key_field::Exact { value }),
        MatchType::Ternary => {
            key_field::MatchType::Ternary(key_field::Ternary { value, mask: numbers.bits(width) })
        }
        MatchType::Lpm => {
            let prefix_len = i32::from(numbers.next());
            key_field::MatchType::Lpm(key_field::Lpm { value, prefix_len })
        }
        MatchType::Range => {
            key_field::MatchType::Range(key_field::Range { low: value, high: numbers.bits(width) })
        }
        MatchType::Optional => {
            key_field::MatchType::Optional(key_field::Optional { value, is_valid: numbers.next() & 1 == 0 })
        }
    };
    KeyField { field_id: key.id, match_type: Some(kind) }
}

fn value(field: &Field, numbers: &mut Numbers) -> DataField {
    use data_field::{BoolArray, ContainerArray, IntArray, StrArray, Value};
    let number = |numbers: &mut Numbers| u32::from(numbers.next());
    let value = match &field.kind {
        Kind::Bits(width) => Value::Stream(numbers.bits(*width)),
        Kind::Bool => Value::BoolVal(numbers.next() & 1 == 1),
        Kind::Float => Value::FloatVal(f32::from_bits(number(numbers) << 24)),
        Kind::Text(choices) => {
            let at = usize::from(numbers.next());
            Value::StrVal(choices.get(at % choices.len().max(1)).cloned().unwrap_or_default())
        }
        Kind::Numbers => Value::IntArrVal(IntArray { val: numbers.list(number) }),
        Kind::Octets => Value::Stream(numbers.list(Numbers::next)),
        Kind::Bools => Value::BoolArrVal(BoolArray { val: numbers.list(|numbers| numbers.next() & 1 == 1) }),
        Kind::Texts => Value::StrArrVal(StrArray { val: numbers.list(|numbers| numbers.next().to_string()) }),
        Kind::Groups => Value::ContainerArrVal(ContainerArray::default()),
    };
    DataField { field_id: field.id, value: Some(value) }
}

impl Change {
    fn entry(&self, table: &Table) -> TableEntry {
        let mut numbers = Numbers(&self.numbers);
        // Every other one lacks nothing.
        let shape = if self.shape < 128 { 0 } else { self.shape };
        let lacks = |bit: u8| shape >> bit & 1 == 1;
        let fields = table.keys.iter().map(|one| key(one, &mut numbers)).collect();
        let action = match &table.actions[..] {
            [] => None,
            all => all.get(usize::from(numbers.next()) % all.len()),
        };
        let fields_of = table.fields_of(action).filter(|_| !lacks(4) || numbers.next() & 1 == 0);
        let fields_of: Vec<&Field> = fields_of.collect();
        let data = fields_of.into_iter().map(|field| value(field, &mut numbers)).collect();
        let data = TableData { action_id: action.map_or(0, |action| action.id), fields: data };
        let flag = |bit: u8| numbers.0.first().is_some_and(|flags| flags >> bit & 1 == 1);
        let flags = TableFlags {
            from_hw: flag(0),
            key_only: flag(1),
            mod_del: flag(2),
            reset_ttl: flag(3),
            reset_stats: flag(4),
            ..Default::default()
        };
        TableEntry {
            table_id: table.id,
            value: (!lacks(0)).then_some(table_entry::Value::Key(TableKey { fields })),
            data: (!lacks(1)).then_some(data),
            is_default_entry: shape & 0b1100 == 0b1100,
            table_flags: lacks(5).then_some(flags),
            ..Default::default()
        }
    }

    /// The entity, in one of those tables.
    pub fn entity(&self, tables: &[Table]) -> Option<(u32, Entity)> {
        // The bound client's table more often than others.
        let kept = || tables.iter().position(|table| table.name.ends_with(".kept"));
        let at = if self.table < 192 { usize::from(self.table) % tables.len() } else { kept()? };
        let table = tables.get(at)?;
        let table_id = table.id;
        let entity = match self.what % 16 {
            0 => {
                let bytes = [&[8, 1][..], &self.numbers[..]].concat();
                let attribute = TableAttribute::decode(&bytes[..]).ok()?;
                entity::Entity::TableAttribute(TableAttribute { table_id, ..attribute })
            }
            1 => {
                let names = &table.operations;
                let name = names.get(usize::from(self.shape) % names.len().max(1)).cloned();
                let table_operations_type = name.unwrap_or_else(|| "Sync".into());
                entity::Entity::TableOperation(TableOperation { table_id, table_operations_type })
            }
            2 => entity::Entity::TableUsage(TableUsage { table_id, ..Default::default() }),
            3 => entity::Entity::Handle(HandleId { table_id, ..HandleId::decode(&self.numbers[..]).ok()? }),
            _ => entity::Entity::TableEntry(self.entry(table)),
        };
        Some((table_id, Entity { entity: Some(entity) }))
    }
}
