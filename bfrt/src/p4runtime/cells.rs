//! Counters, meters and registers: indexed cells, or parts of a table's entries.

use super::{Translated, index, index_id, index_key, invalid, number, number_field, sent, taken};
use crate::schema::{Field, Table};
use crate::value::{Kind, length};
use p4rack_p4rt::bfrt_proto::{DataField, TableData, TableEntry, data_field};
use p4rack_p4rt::bytes;
use p4rack_p4rt::p4::config::v1 as config;
use p4rack_p4rt::p4::config::v1::p4_data_type_spec::TypeSpec;
use p4rack_p4rt::p4::v1::{
    CounterData, CounterEntry, Index, MeterConfig, MeterEntry, P4Data, RegisterEntry, p4_data,
};

/// Bytes per kilobit.
const KILOBIT: u64 = 125;

fn index_of(name: &str, key: u32, entry: &TableEntry) -> Translated<Option<Index>> {
    Ok(index(name, key, entry)?.map(|index| Index { index: index.into() }))
}

fn cell_key(name: &str, key: u32, index: Option<&Index>) -> Translated<TableEntry> {
    let number = index.and_then(|index| u32::try_from(index.index).ok());
    match number {
        Some(number) => Ok(TableEntry { value: index_key(key, number), ..Default::default() }),
        None => invalid(format!("table `{name}`: a cell without a number of 32 bits")),
    }
}

fn data_of(entry: &TableEntry) -> &[DataField] {
    entry.data.as_ref().map_or(&[], |data| &data.fields)
}

/// Counters: an array, or direct counters of a table.
#[derive(Clone, Debug)]
pub(super) struct CounterPlan {
    name: String,
    p4_id: u32,
    key: u32,
    bytes: Option<Field>,
    packets: Option<Field>,
}

impl CounterPlan {
    pub(super) fn new(table: &Table, p4_id: u32) -> Result<CounterPlan, String> {
        let plan = CounterPlan::of_entries(table);
        let plan = plan.ok_or_else(|| format!("counter `{}` counts nothing in the schema", table.name))?;
        Ok(CounterPlan { p4_id, key: index_id(table)?, ..plan })
    }

    /// The direct counter of a table, if it has one.
    pub(super) fn of_entries(table: &Table) -> Option<CounterPlan> {
        let find = |name: &str| table.fields.iter().find(|field| field.name == name).cloned();
        let (bytes, packets) = (find("$COUNTER_SPEC_BYTES"), find("$COUNTER_SPEC_PKTS"));
        let any = bytes.is_some() || packets.is_some();
        any.then(|| CounterPlan { name: table.name.clone(), p4_id: 0, key: 0, bytes, packets })
    }

    pub(super) fn owns(&self, id: u32) -> bool {
        [&self.bytes, &self.packets].into_iter().flatten().any(|field| field.id == id)
    }

    /// The counts in an entry's data; `None` if it contains none.
    pub(super) fn data(&self, fields: &[DataField]) -> Translated<Option<CounterData>> {
        let mut data = None;
        for given in fields {
            let is = |field: &Option<Field>| field.as_ref().is_some_and(|field| field.id == given.field_id);
            let value = |field: &Option<Field>| {
                let field = field.as_ref().map(|field| number(&self.name, field, given.value.as_ref()));
                field.unwrap_or(Ok(0)).map(|number| i64::try_from(number).unwrap_or(i64::MAX))
            };
            let data = if is(&self.bytes) || is(&self.packets) {
                data.get_or_insert_with(CounterData::default)
            } else {
                continue;
            };
            if is(&self.bytes) {
                data.byte_count = value(&self.bytes)?;
            } else {
                data.packet_count = value(&self.packets)?;
            }
        }
        Ok(data)
    }

    pub(super) fn fields(&self, data: &CounterData) -> Vec<DataField> {
        let both = [(&self.bytes, data.byte_count), (&self.packets, data.packet_count)];
        let one = |(field, count): (&Option<Field>, i64)| {
            Some(number_field(field.as_ref()?, u64::try_from(count).unwrap_or(0)))
        };
        both.into_iter().filter_map(one).collect()
    }

    pub(super) fn request(&self, entry: &TableEntry) -> Translated<CounterEntry> {
        let index = index_of(&self.name, self.key, entry)?;
        Ok(CounterEntry { counter_id: self.p4_id, index, data: None })
    }

    pub(super) fn entity(&self, entry: &TableEntry) -> Translated<CounterEntry> {
        let fields = data_of(entry);
        if let Some(other) = fields.iter().find(|field| !self.owns(field.field_id)) {
            return invalid(format!("table `{}` has no field with id {}", self.name, other.field_id));
        }
        Ok(CounterEntry { data: self.data(fields)?, ..self.request(entry)? })
    }

    /// Whether the data contain all counts.
    pub(super) fn is_whole(&self, entry: &TableEntry) -> bool {
        let given = data_of(entry);
        let all = [&self.bytes, &self.packets].into_iter().flatten();
        all.clone().all(|field| given.iter().any(|given| given.field_id == field.id))
    }

    pub(super) fn entry(&self, entry: &CounterEntry) -> Translated<TableEntry> {
        let made = cell_key(&self.name, self.key, entry.index.as_ref())?;
        let fields = entry.data.as_ref().map(|data| self.fields(data)).unwrap_or_default();
        Ok(TableEntry { data: Some(TableData { action_id: 0, fields }), ..made })
    }
}

/// Largest rates and bursts, in the order of a meter's fields and in BFRuntime's units.
#[derive(Clone, Copy, Debug)]
pub(super) struct Largest {
    /// Of meters of bytes, in kilobits.
    pub(super) bytes: [u64; 4],
    /// Of meters of packets.
    pub(super) packets: [u64; 4],
}

/// Meters: an array, or direct meters of a table.
#[derive(Clone, Debug)]
pub(super) struct MeterPlan {
    name: String,
    p4_id: u32,
    key: u32,
    /// Committed and peak rate, committed and peak burst.
    fields: [Field; 4],
    /// P4Runtime's units (bytes or packets) per unit of BFRuntime (kilobits or packets).
    unit: u64,
    /// The device's largest rate and burst, which mean no limit.
    most: [u64; 4],
}

impl MeterPlan {
    pub(super) fn new(table: &Table, p4_id: u32) -> Result<MeterPlan, String> {
        let plan = MeterPlan::of_entries(table);
        let plan = plan.ok_or_else(|| format!("meter `{}` has no rates in the schema", table.name))?;
        Ok(MeterPlan { p4_id, key: index_id(table)?, ..plan })
    }

    /// The direct meter of a table, if it has one.
    pub(super) fn of_entries(table: &Table) -> Option<MeterPlan> {
        let find = |name: &str| {
            table.fields.iter().find(|field| field.name.strip_prefix("$METER_SPEC_") == Some(name)).cloned()
        };
        let four = |names: [&str; 4]| {
            let [a, b, c, d] = names.map(find);
            Some([a?, b?, c?, d?])
        };
        let bytes = four(["CIR_KBPS", "PIR_KBPS", "CBS_KBITS", "PBS_KBITS"]).map(|fields| (fields, KILOBIT));
        let packets = || four(["CIR_PPS", "PIR_PPS", "CBS_PKTS", "PBS_PKTS"]).map(|fields| (fields, 1));
        let (fields, unit) = bytes.or_else(packets)?;
        Some(MeterPlan { name: table.name.clone(), p4_id: 0, key: 0, fields, unit, most: [u64::MAX; 4] })
    }

    /// Sets the device's largest rates and bursts.
    pub(super) fn set_most(&mut self, most: &Largest) {
        self.most = if self.unit == KILOBIT { most.bytes } else { most.packets };
    }

    pub(super) fn owns(&self, id: u32) -> bool {
        self.fields.iter().any(|field| field.id == id)
    }

    /// The configuration in an entry's data; `None` if it contains none, or no limits. Rates and bursts that are left out
    /// are unlimited.
    pub(super) fn config(&self, fields: &[DataField]) -> Translated<Option<MeterConfig>> {
        let mut values = [u64::MAX; 4];
        for given in fields {
            if let Some(at) = self.fields.iter().position(|field| field.id == given.field_id) {
                let value = number(&self.name, &self.fields[at], given.value.as_ref())?;
                values[at] = if value >= self.most[at] { u64::MAX } else { value };
            }
        }
        if values == [u64::MAX; 4] {
            return Ok(None);
        }
        let [cir, pir, cburst, pburst] =
            values.map(|value| i64::try_from(value.saturating_mul(self.unit)).unwrap_or(i64::MAX));
        Ok(Some(MeterConfig { cir, pir, cburst, pburst, ..Default::default() }))
    }

    pub(super) fn fields(&self, config: Option<&MeterConfig>) -> Vec<DataField> {
        let values =
            config.map_or([i64::MAX; 4], |config| [config.cir, config.pir, config.cburst, config.pburst]);
        let value = |(given, most): (i64, u64)| match given {
            i64::MAX => most,
            given => u64::try_from(given).unwrap_or(0) / self.unit,
        };
        let values = values.into_iter().zip(self.most).map(value);
        self.fields.iter().zip(values).map(|(field, value)| number_field(field, value)).collect()
    }

    pub(super) fn request(&self, entry: &TableEntry) -> Translated<MeterEntry> {
        let index = index_of(&self.name, self.key, entry)?;
        Ok(MeterEntry { meter_id: self.p4_id, index, ..Default::default() })
    }

    pub(super) fn entity(&self, entry: &TableEntry) -> Translated<MeterEntry> {
        let fields = data_of(entry);
        if let Some(other) = fields.iter().find(|field| !self.owns(field.field_id)) {
            return invalid(format!("table `{}` has no field with id {}", self.name, other.field_id));
        }
        Ok(MeterEntry { config: self.config(fields)?, ..self.request(entry)? })
    }

    /// Whether the data contain all rates and bursts.
    pub(super) fn is_whole(&self, entry: &TableEntry) -> bool {
        let given = data_of(entry);
        self.fields.iter().all(|field| given.iter().any(|given| given.field_id == field.id))
    }

    pub(super) fn entry(&self, entry: &MeterEntry) -> Translated<TableEntry> {
        let made = cell_key(&self.name, self.key, entry.index.as_ref())?;
        let fields = self.fields(entry.config.as_ref());
        Ok(TableEntry { data: Some(TableData { action_id: 0, fields }), ..made })
    }
}

/// P4Runtime's type of a register's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Carried {
    Bits,
    Bool,
    Enum,
}

/// A register.
#[derive(Clone, Debug)]
pub(super) struct RegisterPlan {
    name: String,
    p4_id: u32,
    key: u32,
    carried: Carried,
    /// Fields with their widths in bits; the first one is the most significant.
    fields: Vec<(u32, String, u32)>,
}

impl RegisterPlan {
    pub(super) fn new(table: &Table, info: &config::Register) -> Result<RegisterPlan, String> {
        let bits = |field: &Field| match field.kind {
            Kind::Bits(width) => Ok((field.id, field.name.clone(), width)),
            Kind::Bool => Ok((field.id, field.name.clone(), 1)),
            _ => Err(format!("register `{}`: field `{}` is no number", table.name, field.name)),
        };
        let fields = table.fields.iter().map(bits).collect::<Result<Vec<_>, String>>()?;
        if fields.len() != 1 && fields.iter().any(|(_, _, width)| width % 8 != 0) {
            return Err(format!("register `{}`: several fields that are not whole bytes", table.name));
        }
        let carried = match info.type_spec.as_ref().and_then(|spec| spec.type_spec.as_ref()) {
            Some(TypeSpec::Bool(_)) => Carried::Bool,
            Some(TypeSpec::SerializableEnum(_)) => Carried::Enum,
            _ => Carried::Bits,
        };
        let (name, p4_id) = (table.name.clone(), super::id_of(info.preamble.as_ref()));
        Ok(RegisterPlan { name, p4_id, key: index_id(table)?, carried, fields })
    }

    pub(super) fn request(&self, entry: &TableEntry) -> Translated<RegisterEntry> {
        let index = index_of(&self.name, self.key, entry)?;
        Ok(RegisterEntry { register_id: self.p4_id, index, data: None })
    }

    /// Without data the value is zero. If a field has several values, one per pipe, the first one counts.
    pub(super) fn entity(&self, entry: &TableEntry) -> Translated<RegisterEntry> {
        let given = data_of(entry);
        let of = format!("table `{}`", self.name);
        if let Some(other) =
            given.iter().find(|field| !self.fields.iter().any(|(id, ..)| *id == field.field_id))
        {
            return invalid(format!("{of} has no field with id {}", other.field_id));
        }
        let mut value = Vec::new();
        for (id, name, width) in &self.fields {
            match given.iter().find(|field| field.field_id == *id).and_then(|field| field.value.as_ref()) {
                Some(data_field::Value::Stream(bytes)) => {
                    taken(&of, name, bytes, *width)?;
                    value.extend_from_slice(bytes);
                }
                Some(data_field::Value::BoolVal(truth)) if *width == 1 => value.push(u8::from(*truth)),
                Some(_) => return invalid(format!("{of}: field `{name}` holds a number")),
                None => value.resize(value.len() + length(*width), 0),
            }
        }
        let value = bytes::canonical(&value);
        let data = match self.carried {
            Carried::Bits => p4_data::Data::Bitstring(value),
            Carried::Enum => p4_data::Data::EnumValue(value),
            Carried::Bool => p4_data::Data::Bool(value != [0]),
        };
        Ok(RegisterEntry { data: Some(P4Data { data: Some(data) }), ..self.request(entry)? })
    }

    pub(super) fn entry(&self, entry: &RegisterEntry) -> Translated<TableEntry> {
        let made = cell_key(&self.name, self.key, entry.index.as_ref())?;
        let of = format!("table `{}`", self.name);
        let data = entry.data.as_ref().and_then(|data| data.data.as_ref());
        let truth;
        let value: &[u8] = match data {
            None => &[0],
            Some(p4_data::Data::Bitstring(value) | p4_data::Data::EnumValue(value)) => value,
            Some(p4_data::Data::Bool(value)) => {
                truth = [u8::from(*value)];
                &truth
            }
            Some(_) => return invalid(format!("{of}: a value that is no number")),
        };
        let total: u32 = self.fields.iter().map(|(_, _, width)| width).sum();
        let whole = sent(&of, "value", value, total)?;
        let (mut fields, mut rest) = (Vec::with_capacity(self.fields.len()), &whole[..]);
        for (id, _, width) in &self.fields {
            let (own, other) = rest.split_at(length(*width).min(rest.len()));
            rest = other;
            let value = match self.carried {
                Carried::Bool => data_field::Value::BoolVal(own.iter().any(|byte| *byte != 0)),
                _ => data_field::Value::Stream(own.to_vec()),
            };
            fields.push(DataField { field_id: *id, value: Some(value) });
        }
        Ok(TableEntry { data: Some(TableData { action_id: 0, fields }), ..made })
    }

    /// Whether the data contain all fields, or none, which resets the cell.
    pub(super) fn is_whole(&self, entry: &TableEntry) -> bool {
        let given = data_of(entry);
        given.is_empty() || self.fields.iter().all(|(id, ..)| given.iter().any(|field| field.field_id == *id))
    }
}
