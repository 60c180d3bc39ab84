//! Filters: low-pass filters and random early detection.

use super::super::fixed::Step;
use super::super::outcome::invalid;
use p4rack_bfrt::{Entry, Value};
use p4rack_entities::{Change, Checked, Snapshot, control};
use p4rack_p4::ir::InstanceId;
use p4rack_p4rt::bfrt_proto::update::Type;
use p4rack_switch::SmootherConfig;

/// Threshold of a filter that drops nothing.
const NEVER_CELLS: u64 = 0xff00_0000;

/// Names of the fields of a low-pass filter, and of one that decides on drops.
const AVERAGE: [&str; 4] = [
    "$LPF_SPEC_TYPE",
    "$LPF_SPEC_GAIN_TIME_CONSTANT_NS",
    "$LPF_SPEC_DECAY_TIME_CONSTANT_NS",
    "$LPF_SPEC_OUT_SCALE_DOWN_FACTOR",
];
const DROPS: [&str; 4] = [
    "$WRED_SPEC_TIME_CONSTANT_NS",
    "$WRED_SPEC_MIN_THRESH_CELLS",
    "$WRED_SPEC_MAX_THRESH_CELLS",
    "$WRED_SPEC_MAX_PROBABILITY",
];

/// Values shown for an unconfigured filter.
fn unset(drops: bool) -> SmootherConfig {
    match drops {
        false => SmootherConfig::Average { sums: false, gain_ns: 0.0, decay_ns: 0.0, scale_down: 0 },
        true => {
            SmootherConfig::EarlyDrop { time_ns: 0.0, min: NEVER_CELLS, max: NEVER_CELLS, probability: 0.0 }
        }
    }
}

/// A configuration as fields of an entry.
pub fn fields_of(drops: bool, config: Option<SmootherConfig>) -> Vec<(&'static str, Value)> {
    let values = match config.unwrap_or_else(|| unset(drops)) {
        SmootherConfig::Average { sums, gain_ns, decay_ns, scale_down } => (
            AVERAGE,
            [
                Value::from(if sums { "RATE" } else { "SAMPLE" }),
                Value::Float(gain_ns as f32),
                Value::Float(decay_ns as f32),
                Value::from(scale_down),
            ],
        ),
        SmootherConfig::EarlyDrop { time_ns, min, max, probability } => (
            DROPS,
            [
                Value::Float(time_ns as f32),
                Value::from(min),
                Value::from(max),
                Value::Float(probability as f32),
            ],
        ),
    };
    values.0.into_iter().zip(values.1).collect()
}

/// The configuration with the fields that an entry has; the others stay. `None` if it has none of them.
pub fn config_of(
    drops: bool,
    entry: &Entry,
    before: Option<SmootherConfig>,
) -> Checked<Option<SmootherConfig>> {
    let names = if drops { DROPS } else { AVERAGE };
    if names.iter().all(|name| entry.get(name).is_none()) {
        return Ok(None);
    }
    let real = |name: &str, most: f32, set: &mut f64| {
        let Some(Value::Float(value)) = entry.get(name) else { return Ok(()) };
        if !(0.0..=most).contains(value) {
            return invalid(format!("{name} {value} is not 0 to {most}"));
        }
        *set = f64::from(*value);
        Ok(())
    };
    let number = |name: &str| entry.get(name).and_then(Value::number);
    let mut config = before.unwrap_or_else(|| unset(drops));
    match &mut config {
        SmootherConfig::Average { sums, gain_ns, decay_ns, scale_down } => {
            if let Some(Value::Text(kind)) = entry.get(AVERAGE[0]) {
                *sums = kind == "RATE";
            }
            real(AVERAGE[1], f32::MAX, gain_ns)?;
            real(AVERAGE[2], f32::MAX, decay_ns)?;
            if let Some(factor) = number(AVERAGE[3]) {
                *scale_down = match u32::try_from(factor) {
                    Ok(factor @ 0..=31) => factor,
                    _ => return invalid(format!("{} {factor} is not 0 to 31", AVERAGE[3])),
                };
            }
        }
        SmootherConfig::EarlyDrop { time_ns, min, max, probability } => {
            real(DROPS[0], f32::MAX, time_ns)?;
            *min = number(DROPS[1]).unwrap_or(*min);
            *max = number(DROPS[2]).unwrap_or(*max);
            real(DROPS[3], 1.0, probability)?;
        }
    }
    Ok(Some(config))
}

/// The number in an entry's key.
pub(super) fn index(entry: &Entry) -> Checked<u64> {
    let number = entry.exact_number("$LPF_INDEX").or_else(|| entry.exact_number("$WRED_INDEX"));
    number.map_or_else(|| invalid(format!("table `{}`: the entry's key has no number", entry.table())), Ok)
}

/// A cell as an entry.
pub(super) fn entry(table: &str, at: u64, drops: bool, config: Option<SmootherConfig>) -> Entry {
    let key = if drops { "$WRED_INDEX" } else { "$LPF_INDEX" };
    let entry = Entry::of(table).exact(key, at.into());
    fields_of(drops, config).into_iter().fold(entry, |entry, (name, value)| entry.data(name, value))
}

/// An update of one cell, or a reset of all.
pub(super) fn step(
    kind: Type,
    entry: &Entry,
    all: bool,
    instance: InstanceId,
    drops: bool,
    size: u64,
) -> Checked<Step> {
    let cells = if all { 0..size } else { index(entry).map(|at| at..at.saturating_add(1))? };
    let resets = kind == Type::Delete;
    let (entry, saved) = (entry.clone(), cells.clone());
    let snapshot: Snapshot = Box::new(move |switch| {
        let before: Vec<_> = saved.map(|at| (at, switch.smoother_read(instance, at))).collect();
        Box::new(move |switch| {
            for (at, config) in before {
                let _ = config.and_then(|config| switch.smoother_config(instance, at, config));
            }
        })
    });
    let change: Change = Box::new(move |switch, _| {
        for at in cells {
            let before = control(switch.smoother_read(instance, at))?;
            let config = match resets {
                true => None,
                false => config_of(drops, &entry, before)?.or(before),
            };
            control(switch.smoother_config(instance, at, config))?;
        }
        Ok(())
    });
    Ok(Step { snapshot: Some(snapshot), change })
}
