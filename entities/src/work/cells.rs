//! Counters, meters and registers: arrays of cells.

use super::{Answer, Change, Messages, Query, Snapshot};
use crate::program::Program;
use crate::value::number;
use crate::{Checked, control, refuse};
use num_bigint::BigUint;
use p4rack_p4::ir::{InstanceId, InstanceKind, Unit};
use p4rack_p4rt::EntityKind;
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::config::v1::{Preamble, Register, p4_data_type_spec::TypeSpec};
use p4rack_p4rt::p4::v1::{
    self, CounterEntry, Entity, Index, MeterEntry, P4Data, RegisterEntry, p4_data, update,
};
use p4rack_p4rt::schema::name_of;
use p4rack_switch::{CounterData, MeterConfig, Switch};
use p4rack_wire::Nanos;
use std::sync::Arc;

/// Maximum cells read or written between packets; more take several turns.
const CELLS_A_TURN: u64 = 4096;

/// A counter's data as sent by a controller.
pub fn counter_data(data: &v1::CounterData) -> Checked<CounterData> {
    match (u64::try_from(data.packet_count), u64::try_from(data.byte_count)) {
        (Ok(packets), Ok(bytes)) => Ok(CounterData { packets, bytes }),
        _ => refuse(Code::InvalidArgument, "a counter can't be negative"),
    }
}

/// A counter's data for a controller: only the unit that it counts.
pub fn counter_message(data: CounterData, kind: Option<&InstanceKind>) -> v1::CounterData {
    let unit = match kind {
        Some(InstanceKind::Counter { unit, .. } | InstanceKind::DirectCounter { unit, .. }) => *unit,
        _ => Unit::Both,
    };
    v1::CounterData {
        byte_count: if unit == Unit::Packets { 0 } else { data.bytes as i64 },
        packet_count: if unit == Unit::Bytes { 0 } else { data.packets as i64 },
    }
}

/// A meter's counts by colour as sent by a controller; missing colours are 0.
pub fn meter_counts(data: &v1::MeterCounterData) -> Checked<[CounterData; 3]> {
    let count =
        |data: &Option<v1::CounterData>| data.as_ref().map_or(Ok(CounterData::default()), counter_data);
    Ok([count(&data.green)?, count(&data.yellow)?, count(&data.red)?])
}

/// A meter's counts by colour for a controller.
pub fn meter_counts_message(counts: [CounterData; 3]) -> v1::MeterCounterData {
    let [green, yellow, red] = counts.map(|data| Some(counter_message(data, None)));
    v1::MeterCounterData { green, yellow, red }
}

/// A meter's configuration as sent by a controller.
pub fn meter_config(config: &v1::MeterConfig) -> Checked<MeterConfig> {
    let field = |name: &str, value: i64| match u64::try_from(value) {
        Ok(value) => Ok(value),
        Err(_) => refuse(Code::InvalidArgument, format!("meter: {name} is negative")),
    };
    if config.eburst != 0 {
        return refuse(
            Code::InvalidArgument,
            "meter: eburst belongs to single-rate meters, this has two rates",
        );
    }
    let config = MeterConfig {
        cir: field("cir", config.cir)?,
        cburst: field("cburst", config.cburst)?,
        pir: field("pir", config.pir)?,
        pburst: field("pburst", config.pburst)?,
    };
    if config.pir < config.cir {
        return refuse(Code::InvalidArgument, "meter: pir, the peak rate, is under cir, the committed one");
    }
    Ok(config)
}

/// A meter's configuration for a controller.
pub fn meter_message(config: MeterConfig) -> v1::MeterConfig {
    v1::MeterConfig {
        cir: config.cir as i64,
        cburst: config.cburst as i64,
        pir: config.pir as i64,
        pburst: config.pburst as i64,
        eburst: 0,
    }
}

fn only_modify(what: &str, kind: update::Type) -> Checked<()> {
    match kind {
        update::Type::Modify => Ok(()),
        _ => refuse(Code::InvalidArgument, format!("{what} are always there; they can only be modified")),
    }
}

/// The cells that an index selects: one, or all.
fn cells(name: &str, index: Option<&Index>, size: u64) -> Checked<std::ops::Range<u64>> {
    let Some(index) = index else { return Ok(0..size) };
    match u64::try_from(index.index) {
        Err(_) => refuse(Code::InvalidArgument, format!("{name}: index {} is negative", index.index)),
        Ok(index) if index >= size => {
            refuse(Code::OutOfRange, format!("{name}: index {index}, but it has {size} cells"))
        }
        Ok(index) => Ok(index..index + 1),
    }
}

fn size_of(program: &Program, instance: InstanceId) -> u64 {
    match &program.ir.instances[instance.0 as usize].kind {
        InstanceKind::Counter { size, .. }
        | InstanceKind::Meter { size, .. }
        | InstanceKind::Register { size, .. } => *size,
        _ => 0,
    }
}

/// Checks an update of counters.
pub fn write_counter(program: &Arc<Program>, kind: update::Type, entry: &CounterEntry) -> Checked<Change> {
    only_modify("counters", kind)?;
    let (instance, info) = program.counter(entry.counter_id)?;
    let name = format!("counter {}", name_of(info.preamble.as_ref()));
    let cells = cells(&name, entry.index.as_ref(), size_of(program, instance))?;
    let data = entry.data.as_ref().map(counter_data).transpose()?;
    Ok(Box::new(move |switch, _| match data {
        None => Ok(()),
        Some(data) => {
            cells.into_iter().try_for_each(|index| control(switch.counter_write(instance, index, data)))
        }
    }))
}

/// Checks an update of meters.
pub fn write_meter(program: &Arc<Program>, kind: update::Type, entry: &MeterEntry) -> Checked<Change> {
    only_modify("meters", kind)?;
    let (instance, info) = program.meter(entry.meter_id)?;
    let name = format!("meter {}", name_of(info.preamble.as_ref()));
    let cells = cells(&name, entry.index.as_ref(), size_of(program, instance))?;
    let counts = entry.counter_data.as_ref().map(meter_counts).transpose()?;
    let config = entry.config.as_ref().map(meter_config).transpose()?;
    // Counts alone leave the configuration unchanged.
    let configures = config.is_some() || counts.is_none();
    Ok(Box::new(move |switch, _| {
        cells.into_iter().try_for_each(|index| {
            if configures {
                control(switch.meter_config(instance, index, config))?;
            }
            match counts {
                Some(counts) => control(switch.meter_counts_write(instance, index, counts)),
                None => Ok(()),
            }
        })
    }))
}

/// Checks an update of registers.
pub fn write_register(program: &Arc<Program>, kind: update::Type, entry: &RegisterEntry) -> Checked<Change> {
    only_modify("registers", kind)?;
    let (instance, info) = program.register(entry.register_id)?;
    let name = format!("register {}", name_of(info.preamble.as_ref()));
    let cells = cells(&name, entry.index.as_ref(), size_of(program, instance))?;
    let value = register_value(program, &name, instance, info, entry.data.as_ref())?;
    Ok(Box::new(move |switch, _| {
        cells.into_iter().try_for_each(|index| control(switch.register_write(instance, index, &value)))
    }))
}

/// How a register's cell is encoded in messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Carried {
    Bits,
    Bool,
    Enum,
}

fn carried(info: &Register) -> Carried {
    match info.type_spec.as_ref().and_then(|spec| spec.type_spec.as_ref()) {
        Some(TypeSpec::Bool(_)) => Carried::Bool,
        Some(TypeSpec::SerializableEnum(_)) => Carried::Enum,
        _ => Carried::Bits,
    }
}

fn register_value(
    program: &Program,
    name: &str,
    instance: InstanceId,
    info: &Register,
    data: Option<&P4Data>,
) -> Checked<BigUint> {
    let width = match &program.ir.instances[instance.0 as usize].kind {
        InstanceKind::Register { ty, .. } => ty.width(),
        _ => 0,
    };
    match (carried(info), data.and_then(|data| data.data.as_ref())) {
        (_, None) => refuse(Code::InvalidArgument, format!("{name}: the data are not set")),
        (Carried::Bits, Some(p4_data::Data::Bitstring(value)))
        | (Carried::Enum, Some(p4_data::Data::EnumValue(value))) => number(name, value, width),
        (Carried::Bool, Some(p4_data::Data::Bool(value))) => Ok(BigUint::from(u8::from(*value))),
        (wanted, Some(_)) => {
            refuse(Code::InvalidArgument, format!("{name}: the data are not of its type ({wanted:?})"))
        }
    }
}

fn register_message(value: &BigUint, carried: Carried) -> P4Data {
    let data = match carried {
        Carried::Bits => p4_data::Data::Bitstring(value.to_bytes_be()),
        Carried::Enum => p4_data::Data::EnumValue(value.to_bytes_be()),
        Carried::Bool => p4_data::Data::Bool(*value != BigUint::ZERO),
    };
    P4Data { data: Some(data) }
}

/// The arrays that a read selects: one, or with id 0 all of the kind.
fn selected<'a>(id: u32, all: impl Iterator<Item = Option<&'a Preamble>>) -> Vec<u32> {
    match id {
        0 => all.flatten().map(|preamble| preamble.id).collect(),
        id => vec![id],
    }
}

/// Queries over the cells of an array, one per turn.
fn turns<T: Send + 'static>(
    cells: std::ops::Range<u64>,
    read: impl Fn(&Switch, u64) -> Checked<T> + Clone + Send + 'static,
    message: impl Fn(u64, T) -> EntityKind + Clone + Send + 'static,
) -> Vec<Query> {
    let starts = cells.clone().step_by(CELLS_A_TURN as usize);
    starts
        .map(|start| {
            let turn = start..cells.end.min(start + CELLS_A_TURN);
            let (read, message) = (read.clone(), message.clone());
            Box::new(move |switch: &Switch, _now: Nanos| {
                let values = turn.clone().map(|index| read(switch, index)).collect::<Checked<Vec<T>>>()?;
                let messages: Messages = Box::new(move || {
                    let one = |(index, value)| Entity { entity: Some(message(index, value)) };
                    turn.zip(values).map(one).collect()
                });
                Ok(Answer::whole(messages))
            }) as Query
        })
        .collect()
}

fn index_message(index: u64) -> Option<Index> {
    Some(Index { index: index as i64 })
}

/// Reads counters: one cell, one array, or all arrays.
pub fn read_counter(program: &Arc<Program>, request: &CounterEntry) -> Checked<Vec<Query>> {
    let ids = selected(request.counter_id, program.info.counters.iter().map(|info| info.preamble.as_ref()));
    let mut queries = Vec::new();
    for id in ids {
        let (instance, info) = program.counter(id)?;
        let name = format!("counter {}", name_of(info.preamble.as_ref()));
        let cells = cells(&name, request.index.as_ref(), size_of(program, instance))?;
        let kind = program.ir.instances[instance.0 as usize].kind.clone();
        queries.extend(turns(
            cells,
            move |switch, index| control(switch.counter_read(instance, index)),
            move |index, data| {
                let data = Some(counter_message(data, Some(&kind)));
                EntityKind::CounterEntry(CounterEntry { counter_id: id, index: index_message(index), data })
            },
        ));
    }
    Ok(queries)
}

/// Reads meters: one cell, one array, or all arrays.
pub fn read_meter(program: &Arc<Program>, request: &MeterEntry) -> Checked<Vec<Query>> {
    let counted = request.counter_data.is_some();
    let ids = selected(request.meter_id, program.info.meters.iter().map(|info| info.preamble.as_ref()));
    let mut queries = Vec::new();
    for id in ids {
        let (instance, info) = program.meter(id)?;
        let name = format!("meter {}", name_of(info.preamble.as_ref()));
        let cells = cells(&name, request.index.as_ref(), size_of(program, instance))?;
        queries.extend(turns(
            cells,
            move |switch, index| {
                let counts = counted.then(|| switch.meter_counts(instance, index)).transpose();
                Ok((control(switch.meter_read(instance, index))?, control(counts)?))
            },
            move |index, (config, counts)| {
                EntityKind::MeterEntry(MeterEntry {
                    meter_id: id,
                    index: index_message(index),
                    config: config.map(meter_message),
                    counter_data: counts.map(meter_counts_message),
                })
            },
        ));
    }
    Ok(queries)
}

/// Reads registers: one cell, one array, or all arrays.
pub fn read_register(program: &Arc<Program>, request: &RegisterEntry) -> Checked<Vec<Query>> {
    let ids = selected(request.register_id, program.info.registers.iter().map(|info| info.preamble.as_ref()));
    let mut queries = Vec::new();
    for id in ids {
        let (instance, info) = program.register(id)?;
        let name = format!("register {}", name_of(info.preamble.as_ref()));
        let cells = cells(&name, request.index.as_ref(), size_of(program, instance))?;
        let carried = carried(info);
        queries.extend(turns(
            cells,
            move |switch, index| control(switch.register_read(instance, index)),
            move |index, value: BigUint| {
                EntityKind::RegisterEntry(RegisterEntry {
                    register_id: id,
                    index: index_message(index),
                    data: Some(register_message(&value, carried)),
                })
            },
        ));
    }
    Ok(queries)
}

/// Saves cells: `write` restores what `read` returns.
fn remember<T: Send + 'static>(
    cells: std::ops::Range<u64>,
    read: impl Fn(&Switch, u64) -> Option<T> + Send + 'static,
    write: impl Fn(&mut Switch, u64, T) + Send + 'static,
) -> Snapshot {
    Box::new(move |switch| {
        let before: Vec<Option<T>> = cells.clone().map(|index| read(switch, index)).collect();
        Box::new(move |switch| {
            for (index, value) in cells.zip(before) {
                if let Some(value) = value {
                    write(switch, index, value);
                }
            }
        })
    })
}

/// Saves counter cells for an undo.
pub fn snapshot_counter(program: &Arc<Program>, entry: &CounterEntry) -> Checked<Snapshot> {
    let (instance, _) = program.counter(entry.counter_id)?;
    Ok(remember(
        cells("counter", entry.index.as_ref(), size_of(program, instance))?,
        move |switch, index| switch.counter_read(instance, index).ok(),
        move |switch, index, data| {
            let _ = switch.counter_write(instance, index, data);
        },
    ))
}

/// Saves meter cells for an undo; their buckets are full afterwards.
pub fn snapshot_meter(program: &Arc<Program>, entry: &MeterEntry) -> Checked<Snapshot> {
    let (instance, _) = program.meter(entry.meter_id)?;
    Ok(remember(
        cells("meter", entry.index.as_ref(), size_of(program, instance))?,
        move |switch, index| {
            switch.meter_read(instance, index).ok().zip(switch.meter_counts(instance, index).ok())
        },
        move |switch, index, (config, counts)| {
            let _ = switch.meter_config(instance, index, config);
            let _ = switch.meter_counts_write(instance, index, counts);
        },
    ))
}

/// Saves register cells for an undo.
pub fn snapshot_register(program: &Arc<Program>, entry: &RegisterEntry) -> Checked<Snapshot> {
    let (instance, _) = program.register(entry.register_id)?;
    Ok(remember(
        cells("register", entry.index.as_ref(), size_of(program, instance))?,
        move |switch, index| switch.register_read(instance, index).ok(),
        move |switch, index, value| {
            let _ = switch.register_write(instance, index, &value);
        },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registers_value_is_shown_in_its_type() {
        let shown = |value: u8, carried| register_message(&BigUint::from(value), carried).data;
        assert_eq!(shown(0, Carried::Bool), Some(p4_data::Data::Bool(false)));
        assert_eq!(shown(1, Carried::Bool), Some(p4_data::Data::Bool(true)));
        assert_eq!(shown(5, Carried::Bits), Some(p4_data::Data::Bitstring(vec![5])));
        assert_eq!(shown(5, Carried::Enum), Some(p4_data::Data::EnumValue(vec![5])));
    }
}
