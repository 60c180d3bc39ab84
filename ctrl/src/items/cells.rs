//! Counters, meters and registers: arrays of cells, or one cell per table entry.

use super::data::{Counts, MeterUnit, Rates};
use super::pairs;
use super::table::TableItem;
use crate::error::CtrlError;
use crate::values::{Description, Format, parse};
use p4rack_p4rt::EntityKind;
use p4rack_p4rt::p4::config::v1::counter_spec::Unit as CounterUnit;
use p4rack_p4rt::p4::config::v1::{Register, p4_bitstring_like_type_spec, p4_data_type_spec};
use p4rack_p4rt::p4::v1::{
    CounterData, CounterEntry, DirectCounterEntry, DirectMeterEntry, Index, MeterCounterData, MeterEntry,
    P4Data, RegisterEntry, p4_data,
};
use p4rack_p4rt::schema::{Schema, id_of, name_of};
use serde::{Deserialize, Serialize};
use std::fmt::{Display, Formatter};

/// A cell of a counter.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CounterItem {
    /// Name of the counter; for direct counters, of the table.
    pub counter: String,
    /// Index of the cell; `None` is all cells.
    pub index: Option<i64>,
    /// The table entry, for direct counters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<TableItem>,
    /// Counts of the cell.
    pub counts: Option<Counts>,
}

/// A cell of a meter.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MeterItem {
    /// Name of the meter; for direct meters, of the table.
    pub meter: String,
    /// Index of the cell; `None` is all cells.
    pub index: Option<i64>,
    /// The table entry, for direct meters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<TableItem>,
    /// Rates; with `None` everything is green.
    pub rates: Option<Rates>,
    /// Counts by colour. In a request, its presence asks for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub colors: Option<Colors>,
}

/// Counts of a meter by colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Colors {
    /// Within the committed rate.
    pub green: Counts,
    /// Within the peak rate.
    pub yellow: Counts,
    /// Beyond the peak rate.
    pub red: Counts,
}

impl Colors {
    fn message(&self) -> MeterCounterData {
        let [green, yellow, red] =
            [&self.green, &self.yellow, &self.red].map(|counts| Some(CounterData::from(counts)));
        MeterCounterData { green, yellow, red }
    }

    fn of(data: &MeterCounterData) -> Colors {
        let counts = |data: &Option<CounterData>| data.as_ref().map(Counts::from).unwrap_or_default();
        Colors { green: counts(&data.green), yellow: counts(&data.yellow), red: counts(&data.red) }
    }
}

/// A cell of a register.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RegisterItem {
    /// Name of the register.
    pub register: String,
    /// Index of the cell; `None` is all cells.
    pub index: Option<i64>,
    /// Value of the cell.
    pub value: Option<String>,
}

fn at(index: Option<i64>) -> Option<Index> {
    index.map(|index| Index { index })
}

impl CounterItem {
    /// The counter's unit, by its declaration.
    fn unit(&self, schema: &Schema) -> Result<CounterUnit, CtrlError> {
        let spec = match &self.entry {
            None => schema.counter(&self.counter)?.spec.as_ref(),
            Some(entry) => {
                let table = id_of(schema.table(&entry.table)?.preamble.as_ref());
                let mut direct = schema.info().direct_counters.iter();
                direct.find(|direct| direct.direct_table_id == table).and_then(|direct| direct.spec.as_ref())
            }
        };
        Ok(spec.map_or(CounterUnit::Unspecified, |spec| spec.unit()))
    }

    /// Refuses counts that the counter would not take.
    fn check(&self, schema: &Schema, counts: &Counts) -> Result<(), CtrlError> {
        let (counts_what, given) = match self.unit(schema)? {
            CounterUnit::Packets if counts.bytes != 0 => ("packets", "bytes"),
            CounterUnit::Bytes if counts.packets != 0 => ("bytes", "packets"),
            _ => return Ok(()),
        };
        Err(CtrlError::Input(format!(
            "counter {} counts {counts_what}, no {given}: leave the number of {given} out",
            self.counter
        )))
    }

    pub(super) fn message(&self, schema: &Schema) -> Result<EntityKind, CtrlError> {
        if let Some(counts) = &self.counts {
            self.check(schema, counts)?;
        }
        let data = self.counts.as_ref().map(CounterData::from);
        Ok(match &self.entry {
            Some(entry) => EntityKind::DirectCounterEntry(DirectCounterEntry {
                table_entry: Some(entry.message(schema)?),
                data,
            }),
            None => EntityKind::CounterEntry(CounterEntry {
                counter_id: id_of(schema.counter(&self.counter)?.preamble.as_ref()),
                index: at(self.index),
                data,
            }),
        })
    }

    pub(super) fn of(schema: &Schema, entry: &CounterEntry) -> Result<CounterItem, CtrlError> {
        Ok(CounterItem {
            counter: name_of(schema.counter_by_id(entry.counter_id)?.preamble.as_ref()).into(),
            index: entry.index.map(|index| index.index),
            entry: None,
            counts: entry.data.as_ref().map(Counts::from),
        })
    }

    pub(super) fn of_direct(schema: &Schema, direct: &DirectCounterEntry) -> Result<CounterItem, CtrlError> {
        let entry = TableItem::of(schema, &direct.table_entry.clone().unwrap_or_default())?;
        let counts = direct.data.as_ref().map(Counts::from);
        Ok(CounterItem { counter: entry.table.clone(), index: None, entry: Some(entry), counts })
    }
}

impl MeterItem {
    pub(super) fn message(&self, schema: &Schema) -> Result<EntityKind, CtrlError> {
        let config = |unit| self.rates.as_ref().map(|rates| rates.config(unit, &self.meter)).transpose();
        let counter_data = self.colors.as_ref().map(Colors::message);
        Ok(match &self.entry {
            Some(entry) => {
                let entry = entry.message(schema)?;
                let config = config(MeterUnit::of_table(schema, entry.table_id))?;
                EntityKind::DirectMeterEntry(DirectMeterEntry {
                    table_entry: Some(entry),
                    config,
                    counter_data,
                })
            }
            None => {
                let meter_id = id_of(schema.meter(&self.meter)?.preamble.as_ref());
                let config = config(MeterUnit::of_array(schema, meter_id))?;
                EntityKind::MeterEntry(MeterEntry { meter_id, index: at(self.index), config, counter_data })
            }
        })
    }

    pub(super) fn of(schema: &Schema, entry: &MeterEntry) -> Result<MeterItem, CtrlError> {
        Ok(MeterItem {
            meter: name_of(schema.meter_by_id(entry.meter_id)?.preamble.as_ref()).into(),
            index: entry.index.map(|index| index.index),
            entry: None,
            rates: entry
                .config
                .as_ref()
                .map(|config| Rates::of(config, MeterUnit::of_array(schema, entry.meter_id))),
            colors: entry.counter_data.as_ref().map(Colors::of),
        })
    }

    pub(super) fn of_direct(schema: &Schema, direct: &DirectMeterEntry) -> Result<MeterItem, CtrlError> {
        let entry = direct.table_entry.clone().unwrap_or_default();
        let unit = MeterUnit::of_table(schema, entry.table_id);
        let entry = TableItem::of(schema, &entry)?;
        let rates = direct.config.as_ref().map(|config| Rates::of(config, unit));
        let colors = direct.counter_data.as_ref().map(Colors::of);
        Ok(MeterItem { meter: entry.table.clone(), index: None, entry: Some(entry), rates, colors })
    }
}

impl RegisterItem {
    pub(super) fn message(&self, schema: &Schema) -> Result<RegisterEntry, CtrlError> {
        let register = schema.register(&self.register)?;
        let name = name_of(register.preamble.as_ref());
        let fault = |why: String| CtrlError::Input(format!("register {name}: {why}"));
        let data = match &self.value {
            None => None,
            Some(value) => {
                use p4_data_type_spec::TypeSpec;
                let kind = match register.type_spec.as_ref().and_then(|spec| spec.type_spec.as_ref()) {
                    Some(TypeSpec::Bool(_)) => p4_data::Data::Bool(parse(value, 1).map_err(fault)? == [1]),
                    Some(TypeSpec::Bitstring(bits)) => {
                        p4_data::Data::Bitstring(parse(value, width(&bits.type_spec)).map_err(fault)?)
                    }
                    _ => return Err(fault("its cells are structures; only numbers can be written".into())),
                };
                Some(P4Data { data: Some(kind) })
            }
        };
        let register_id = id_of(register.preamble.as_ref());
        Ok(RegisterEntry { register_id, index: at(self.index), data })
    }

    pub(super) fn of(schema: &Schema, entry: &RegisterEntry) -> Result<RegisterItem, CtrlError> {
        let register = schema.register_by_id(entry.register_id)?;
        Ok(RegisterItem {
            register: name_of(register.preamble.as_ref()).into(),
            index: entry.index.map(|index| index.index),
            value: entry.data.as_ref().map(|data| match &data.data {
                // Its name says nothing: many registers of 48 bits hold times.
                Some(p4_data::Data::Bitstring(value)) => format_of(register).show(value),
                _ => show_data(data),
            }),
        })
    }
}

/// The format of a register's cells: decimal, unless an annotation says another.
fn format_of(register: &Register) -> Format {
    let annotations = register.preamble.as_ref().map_or(&[][..], |preamble| &preamble.annotations);
    Format::of(Description { bitwidth: 1, annotations, ..Description::default() })
}

fn width(spec: &Option<p4_bitstring_like_type_spec::TypeSpec>) -> i32 {
    use p4_bitstring_like_type_spec::TypeSpec;
    match spec {
        Some(TypeSpec::Bit(bit)) => bit.bitwidth,
        Some(TypeSpec::Int(int)) => int.bitwidth,
        Some(TypeSpec::Varbit(varbit)) => varbit.max_bitwidth,
        None => 0,
    }
}

/// A value of the data plane as text.
pub fn show_data(data: &P4Data) -> String {
    use p4_data::Data;
    let list = |members: &[P4Data]| {
        format!("{{{}}}", members.iter().map(show_data).collect::<Vec<String>>().join(", "))
    };
    match &data.data {
        Some(Data::Bitstring(value)) | Some(Data::EnumValue(value)) => Format::Decimal.show(value),
        Some(Data::Varbit(varbit)) => Format::Hex.show(&varbit.bitstring),
        Some(Data::Bool(value)) => value.to_string(),
        Some(Data::Tuple(value)) | Some(Data::Struct(value)) => list(&value.members),
        Some(Data::Header(header)) if !header.is_valid => "(invalid)".into(),
        Some(Data::Header(header)) => {
            let fields: Vec<String> =
                header.bitstrings.iter().map(|value| Format::Decimal.show(value)).collect();
            format!("{{{}}}", fields.join(", "))
        }
        Some(Data::Enum(name)) | Some(Data::Error(name)) => name.clone(),
        Some(Data::HeaderUnion(_) | Data::HeaderStack(_) | Data::HeaderUnionStack(_)) => "(headers)".into(),
        None => String::new(),
    }
}

fn place(index: Option<i64>, entry: Option<&TableItem>) -> String {
    match (index, entry) {
        (_, Some(entry)) => pairs(&entry.keys),
        (Some(index), None) => format!(" index {index}"),
        (None, None) => String::new(),
    }
}

impl Display for CounterItem {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "counter {}{}", self.counter, place(self.index, self.entry.as_ref()))?;
        match self.counts {
            Some(Counts { packets, bytes }) => write!(f, " packets={packets} bytes={bytes}"),
            None => Ok(()),
        }
    }
}

impl Display for MeterItem {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "meter {}{}", self.meter, place(self.index, self.entry.as_ref()))?;
        match self.rates {
            Some(Rates { cir, cburst, pir, pburst, unit }) => {
                let unit = unit.map_or(String::new(), |unit| format!(" {}", unit.name()));
                write!(f, " cir={cir} cburst={cburst} pir={pir} pburst={pburst}{unit}")
            }
            None => Ok(()),
        }
    }
}

impl Display for RegisterItem {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "register {}{}", self.register, place(self.index, None))?;
        match &self.value {
            Some(value) => write!(f, " value={value}"),
            None => Ok(()),
        }
    }
}
