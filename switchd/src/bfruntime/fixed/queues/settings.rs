//! Settings of queues and ports as fields of entries, and back. Settings that the switch doesn't support are refused.

use super::{POOL, Shape, invalid, not_offered};
use p4rack_bfrt::{Entry, Value};
use p4rack_entities::Checked;
use p4rack_switch::{QueueLimit, QueuePlan, Shaping, ShapingUnit};

/// Bits of a rate's unit.
const KILOBIT: u64 = 1000;
/// Priorities by their names; the lowest and the highest have two.
const PRIORITIES: [(&str, u8); 10] =
    [("0", 0), ("1", 1), ("2", 2), ("3", 3), ("4", 4), ("5", 5), ("6", 6), ("7", 7), ("LOW", 0), ("HIGH", 7)];
/// Share that a lone queue ends up with if it may hold 2^n times the free buffer.
const SHARES: [(&str, Option<i8>); 10] = [
    ("DISABLE", None),
    ("1.5%", Some(-6)),
    ("3%", Some(-5)),
    ("6%", Some(-4)),
    ("11%", Some(-3)),
    ("20%", Some(-2)),
    ("33%", Some(-1)),
    ("50%", Some(0)),
    ("66%", Some(1)),
    ("80%", Some(2)),
];

fn truth(entry: &Entry, field: &str, before: bool) -> bool {
    match entry.get(field) {
        Some(Value::Bool(truth)) => *truth,
        _ => before,
    }
}

fn number(entry: &Entry, field: &str) -> Option<u64> {
    entry.get(field).and_then(Value::number)
}

fn text<'a>(entry: &'a Entry, field: &str) -> Option<&'a str> {
    match entry.get(field) {
        Some(Value::Text(text)) => Some(text),
        _ => None,
    }
}

fn named<T: Copy>(entry: &Entry, field: &str, names: &[(&str, T)], before: T) -> Checked<T> {
    let Some(name) = text(entry, field) else { return Ok(before) };
    match names.iter().find(|(own, _)| *own == name) {
        Some((_, value)) => Ok(*value),
        None => invalid(entry, format!("`{field}` is not {name}")),
    }
}

fn name_of<'a, T: PartialEq>(names: &[(&'a str, T)], value: &T) -> &'a str {
    names.iter().find(|(_, own)| own == value).map_or("", |(name, _)| name)
}

/// A shaper after an update; `which` begins the names of its fields.
fn shaping(entry: &Entry, which: &str, before: Shaping) -> Shaping {
    let unit = match text(entry, "unit") {
        Some("PPS") => ShapingUnit::Frames,
        Some(_) => ShapingUnit::Bits,
        None => before.unit,
    };
    // A rate in another unit doesn't affect this one.
    let before =
        if unit == before.unit { before } else { Shaping { enabled: before.enabled, ..Shaping::default() } };
    let factor = if unit == ShapingUnit::Bits { KILOBIT } else { 1 };
    let rate = number(entry, &format!("{which}_rate")).map(|rate| rate * factor);
    let burst = number(entry, &format!("{which}_burst_size"));
    Shaping {
        unit,
        rate_per_s: rate.unwrap_or(before.rate_per_s),
        burst: burst.unwrap_or(before.burst),
        ..before
    }
}

fn shown(entry: Entry, which: &str, shaping: Shaping) -> Entry {
    let factor = if shaping.unit == ShapingUnit::Bits { KILOBIT } else { 1 };
    let rate = (shaping.rate_per_s / factor).min(u32::MAX.into());
    entry
        .data(&format!("{which}_rate"), rate)
        .data(&format!("{which}_burst_size"), shaping.burst.min(u32::MAX.into()))
}

/// The unit of a shaper; rates are exact in any provisioning.
fn unit(entry: Entry, shaping: Shaping) -> Entry {
    let unit = if shaping.unit == ShapingUnit::Bits { "BPS" } else { "PPS" };
    entry.data("unit", unit).data("provisioning", "MIN_ERROR")
}

/// A port's shaper after an update of one of its tables.
pub fn port(entry: &Entry, table: &str, before: Shaping) -> Checked<Shaping> {
    Ok(match table {
        "port.sched_cfg" => Shaping { enabled: truth(entry, "max_rate_enable", before.enabled), ..before },
        _ => shaping(entry, "max", before),
    })
}

/// The same after a reset.
pub fn reset_port(table: &str, before: Shaping) -> Shaping {
    match table {
        "port.sched_cfg" => Shaping { enabled: false, ..before },
        _ => Shaping { enabled: before.enabled, ..Shaping::default() },
    }
}

/// The fields of one of a port's tables.
pub fn port_entry(entry: Entry, table: &str, shaping: Shaping) -> Entry {
    match table {
        "port.sched_cfg" => entry.data("max_rate_enable", shaping.enabled),
        _ => shown(unit(entry, shaping), "max", shaping),
    }
}

/// A queue after an update of one of its tables, with a buffer of `buffer_bytes`.
pub fn queue(
    entry: &Entry,
    table: &str,
    before: QueuePlan,
    (shape, buffer_bytes): (Shape, u64),
) -> Checked<QueuePlan> {
    Ok(match table {
        "queue.sched_cfg" => {
            let weight = number(entry, "dwrr_weight").unwrap_or(before.weight.into());
            let enabled = |field: &str, before: Shaping| Shaping {
                enabled: truth(entry, field, before.enabled),
                ..before
            };
            let priority = |field: &str, before: u8| named(entry, field, &PRIORITIES, before);
            QueuePlan {
                enabled: truth(entry, "scheduling_enable", before.enabled),
                guaranteed: enabled("min_rate_enable", before.guaranteed),
                guaranteed_priority: priority("min_priority", before.guaranteed_priority)?,
                most: enabled("max_rate_enable", before.most),
                priority: priority("max_priority", before.priority)?,
                weight: u16::try_from(weight).unwrap_or(u16::MAX),
                ..before
            }
        }
        "queue.sched_shaping" => {
            let mut guaranteed = shaping(entry, "min", before.guaranteed);
            // A guarantee without a rate in the new unit would be one of everything.
            guaranteed.enabled &=
                guaranteed.unit == before.guaranteed.unit || number(entry, "min_rate").is_some();
            QueuePlan { guaranteed, most: shaping(entry, "max", before.most), ..before }
        }
        _ => {
            let limit = limit(entry, before.limit, shape)?;
            // Initially a queue may use the whole buffer.
            let limits = limit.bytes < buffer_bytes || limit.share_log2.is_some();
            QueuePlan { limit: limits.then_some(limit), ..before }
        }
    })
}

/// Limits of a queue.
fn limit(entry: &Entry, before: Option<QueueLimit>, shape: Shape) -> Checked<QueueLimit> {
    if entry.action_name() == Some("buffer_only") {
        return not_offered(entry, "buffer_only (the switch reserves no cells for a queue)");
    }
    for field in ["guaranteed_cells", "hysteresis_cells"] {
        if number(entry, field).is_some_and(|cells| cells > 0) {
            return not_offered(entry, &format!("{field} above 0"));
        }
    }
    if !truth(entry, "tail_drop_enable", true) {
        return not_offered(entry, "a queue that never drops");
    }
    if text(entry, "pool_id").is_some_and(|pool| pool != POOL) {
        return not_offered(entry, &format!("another pool than {POOL}"));
    }
    // At first a queue has all of the buffer.
    let before = before.unwrap_or(QueueLimit { bytes: u64::MAX, share_log2: None });
    let cells = number(entry, "pool_max_cells").map(|cells| cells * shape.cell_bytes);
    let limit = QueueLimit {
        bytes: cells.unwrap_or(before.bytes),
        share_log2: named(entry, "dynamic_baf", &SHARES, before.share_log2)?,
    };
    if limit.bytes == 0 && limit.share_log2.is_none() {
        return invalid(entry, "the queue could hold nothing; give it pool_max_cells or a dynamic_baf");
    }
    Ok(limit)
}

/// The same after a reset.
pub fn reset_queue(table: &str, before: QueuePlan, queue: u8) -> QueuePlan {
    let own = QueuePlan::of(queue);
    let rate = |shaping: Shaping| Shaping { enabled: shaping.enabled, ..Shaping::default() };
    let off = |shaping: Shaping| Shaping { enabled: false, ..shaping };
    match table {
        "queue.sched_cfg" => QueuePlan {
            guaranteed: off(before.guaranteed),
            most: off(before.most),
            limit: before.limit,
            ..own
        },
        "queue.sched_shaping" => {
            QueuePlan { guaranteed: Shaping::default(), most: rate(before.most), ..before }
        }
        _ => QueuePlan { limit: None, ..before },
    }
}

/// The fields of one of a queue's tables; `total` is its default limit in cells.
pub fn queue_entry(entry: Entry, table: &str, plan: QueuePlan, shape: Shape, total: u64) -> Entry {
    match table {
        "queue.sched_cfg" => entry
            .data("scheduling_enable", plan.enabled)
            .data("min_rate_enable", plan.guaranteed.enabled)
            .data("min_priority", name_of(&PRIORITIES, &plan.guaranteed_priority))
            .data("max_rate_enable", plan.most.enabled)
            .data("max_priority", name_of(&PRIORITIES, &plan.priority))
            .data("dwrr_weight", plan.weight),
        "queue.sched_shaping" => {
            shown(shown(unit(entry, plan.most), "min", plan.guaranteed), "max", plan.most)
        }
        _ => {
            let limit = plan.limit.unwrap_or(QueueLimit { bytes: u64::MAX, share_log2: None });
            entry
                .action("shared_pool")
                .data("pool_id", POOL)
                .data("pool_max_cells", shape.cells(limit.bytes).min(total))
                .data("dynamic_baf", name_of(&SHARES, &limit.share_log2))
                .data("guaranteed_cells", 0u32)
                .data("hysteresis_cells", 0u32)
                .data("tail_drop_enable", true)
        }
    }
}
