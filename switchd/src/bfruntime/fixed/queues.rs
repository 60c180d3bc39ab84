//! Tables of the traffic manager: the queues of ports, how they are served, their limits and counters. All of it is the
//! switch's own state and outlives programs.
//!
//! ```text
//!  pg_id, pg_queue of a pipe ─▶ port, queue       ports come in groups, whose queues are numbered consecutively
//!  sched_cfg, sched_shaping, buffer ─▶ settings   each has a part of the settings of a queue or port
//! ```

mod settings;

use super::{Fixed, NamedPage, Table, id, in_table, invalid, not_offered};
use p4rack_bfrt::{Entry, Value};
use p4rack_entities::{Change, Checked, refuse};
use p4rack_p4rt::bfrt_proto::update::Type;
use p4rack_p4rt::google::rpc::Code;
use p4rack_switch::{QueuePlan, Switch};
use std::sync::Arc;

/// Queues of a port.
const QUEUES: u16 = p4rack_switch::QUEUES as u16;
/// Bits of a port's number within its pipe.
const LOCAL_BITS: u32 = 7;
/// The pool of the switch's only buffer.
const POOL: &str = "EG_APP_POOL_0";
/// Entries of a page of a read.
const PAGE: usize = 64;

/// Differences between the generations.
#[derive(Clone, Copy, Debug)]
struct Shape {
    /// Bytes of a cell.
    cell_bytes: u64,
    /// Ports of a group.
    ports: u16,
    /// Queues of a group.
    queues: u16,
}

impl Shape {
    fn of(second: bool) -> Shape {
        match second {
            false => Shape { cell_bytes: 80, ports: 4, queues: 32 },
            true => Shape { cell_bytes: 176, ports: 8, queues: 128 },
        }
    }

    /// Numbers that a group has for each of its ports.
    fn stride(self) -> u16 {
        self.queues / self.ports
    }

    /// Group, number in the group, of a port.
    fn group(self, port: u16) -> (u16, u16) {
        let local = port & ((1 << LOCAL_BITS) - 1);
        (local / self.ports, local % self.ports)
    }

    /// The port within its pipe, and the queue, that a group's queue is.
    fn place(self, group: u64, queue: u64) -> Option<(u16, u8)> {
        let (port, queue) = (queue / u64::from(self.stride()), queue % u64::from(self.stride()));
        let local = group.checked_mul(self.ports.into())?.checked_add(port)?;
        let exists = port < self.ports.into() && queue < QUEUES.into() && local < 1 << LOCAL_BITS;
        exists.then_some((local as u16, queue as u8))
    }

    fn cells(self, bytes: u64) -> u64 {
        bytes.div_ceil(self.cell_bytes)
    }
}

/// The only table that has a default entry beside rows: the initial limits of queues.
pub fn has_default(table: &str) -> bool {
    kind_of(table) == "queue.buffer"
}

/// Whether a row is one of a queue, which is found in a single pipe.
pub fn is_of_queue(table: &str) -> bool {
    kind_of(table).starts_with("queue.")
}

/// Whether this is one of the traffic manager's tables.
pub fn has(table: &str) -> bool {
    table.contains(".tm.")
}

/// The table's name without that of the generation.
fn kind_of(table: &str) -> &str {
    table.split_once(".tm.").map_or(table, |(_, rest)| rest)
}

/// Front-panel ports in the selected pipes, in order.
fn ports(switch: &Switch) -> Vec<u16> {
    let all = switch.config().ports.iter().map(|port| port.port);
    let mut ports: Vec<u16> = all.filter(|port| switch.means(usize::from(*port >> LOCAL_BITS))).collect();
    ports.sort_unstable();
    ports.dedup();
    ports
}

/// Queues of ports that an entry means; those of all ports if it names none.
#[derive(Clone, Debug)]
enum Wanted {
    All,
    Port(u32),
    /// A port's number within its pipe, and the queue; `None`: no group has such a queue.
    Queue(Option<(u16, u8)>),
}

impl Wanted {
    fn of(entry: &Entry, all: bool, shape: Shape) -> Checked<Wanted> {
        if all {
            return Ok(Wanted::All);
        }
        if kind_of(entry.table()).contains("queue") {
            let place = shape.place(id(entry, "pg_id")?.into(), id(entry, "pg_queue")?.into());
            return Ok(Wanted::Queue(place));
        }
        Ok(Wanted::Port(id(entry, "dev_port")?))
    }

    /// The ports in the selected pipes, each with a queue if one is named.
    fn places(&self, switch: &Switch) -> Vec<(u16, Option<u8>)> {
        let found = ports(switch).into_iter();
        let fits = |port: u16| match self {
            Wanted::All => Some((port, None)),
            Wanted::Port(wanted) => (*wanted == u32::from(port)).then_some((port, None)),
            Wanted::Queue(place) => {
                let (local, queue) = (*place)?;
                (port & ((1 << LOCAL_BITS) - 1) == local).then_some((port, Some(queue)))
            }
        };
        found.filter_map(fits).collect()
    }
}

impl Fixed {
    /// Checks an update.
    pub(super) fn queue_step(self: &Arc<Fixed>, kind: Type, entry: Entry, all: bool) -> Checked<Change> {
        let resets = kind == Type::Delete;
        // The rows are always there: a driver resets all of a table's, and no single one.
        if !(kind == Type::Modify || resets && all) {
            return not_offered(&entry, &format!("{} of a row", kind.as_str_name()));
        }
        let name = kind_of(entry.table()).to_owned();
        if !matches!(&*name, "counter.queue" | "queue.buffer")
            && !name.ends_with("sched_cfg")
            && !name.ends_with("sched_shaping")
        {
            return invalid(&entry, "it can only be read");
        }
        let shape = Shape::of(self.second);
        let wanted = Wanted::of(&entry, all, shape)?;
        let counters = if name == "counter.queue" { Some(cleared(&entry, resets)?) } else { None };
        Ok(Box::new(move |switch, now| {
            let table = entry.table();
            let places = wanted.places(switch);
            if places.is_empty() && !all {
                return refuse(
                    Code::NotFound,
                    format!("table `{table}`: the switch has no such port or queue"),
                );
            }
            for (port, queue) in places {
                if name.starts_with("port.") {
                    let before = in_table(table, switch.port_shaping(port))?;
                    let shaping = match resets {
                        true => settings::reset_port(&name, before),
                        false => settings::port(&entry, &name, before)?,
                    };
                    in_table(table, switch.port_shaping_set(port, shaping, now))?;
                    continue;
                }
                for queue in queue.map_or(0..QUEUES as u8, |queue| queue..queue + 1) {
                    if let Some((drops, maximum)) = counters {
                        in_table(table, switch.queue_reset(port, queue, drops, maximum))?;
                        continue;
                    }
                    let before = in_table(table, switch.queue_plan(port, queue))?;
                    let plan = match resets {
                        true => settings::reset_queue(&name, before, queue),
                        false => {
                            settings::queue(&entry, &name, before, (shape, switch.config().buffer_bytes))?
                        }
                    };
                    in_table(table, switch.queue_plan_set(port, queue, plan, now))?;
                }
            }
            Ok(())
        }))
    }

    /// Checks a read.
    pub(super) fn queue_lookup(&self, entry: &Entry, all: bool, from: u64) -> Checked<Table> {
        let (table, name) = (entry.table().to_owned(), kind_of(entry.table()).to_owned());
        let shape = Shape::of(self.second);
        if name == "cfg" {
            return Ok(Box::new(move |_, switch, _| {
                let bytes = switch.config().buffer_bytes;
                let entry = Entry::default_of(&table).data("cell_size_bytes", shape.cell_bytes);
                Ok((vec![entry.data("total_cells", shape.cells(bytes))], None))
            }));
        }
        if name == "counter.pool" {
            let is_it = all || entry.exact_text("pool").is_some_and(|pool| pool == POOL);
            return Ok(Box::new(move |_, switch, _| {
                let (bytes, most) = switch.buffer_use();
                let entry = Entry::of(&table).exact_text_key("pool", POOL);
                let entry = entry.data("usage_cells", shape.cells(bytes));
                let entry = entry.data("watermark_cells", shape.cells(most));
                Ok((if is_it { vec![entry] } else { Vec::new() }, None))
            }));
        }
        if entry.is_default() {
            return Ok(Box::new(move |_, switch, _| {
                let total = shape.cells(switch.config().buffer_bytes);
                let entry = Entry::default_of(&table);
                Ok((vec![settings::queue_entry(entry, &name, QueuePlan::of(0), shape, total)], None))
            }));
        }
        let wanted = Wanted::of(entry, all, shape)?;
        Ok(Box::new(move |_, switch, _| {
            // A read of all pipes returns the first one's.
            let mut places = wanted.places(switch);
            if matches!(wanted, Wanted::Queue(_)) {
                places.truncate(1);
            }
            if name.starts_with("port.") || name == "counter.eg_port" {
                let one = |(port, _): &(u16, Option<u8>)| port_entry(&table, &name, *port, switch, shape);
                return Ok((places.iter().map(one).collect::<Checked<_>>()?, None));
            }
            let each = |(port, queue): (u16, Option<u8>)| {
                let queues = queue.map_or(0..QUEUES as u8, |queue| queue..queue + 1);
                queues.map(move |queue| (port, queue))
            };
            let first = places.first().map(|(port, _)| port >> LOCAL_BITS);
            let own = places.into_iter().filter(|(port, _)| Some(port >> LOCAL_BITS) == first);
            let page = own.flat_map(each).skip(usize::try_from(from).unwrap_or(usize::MAX)).take(PAGE);
            let one = |(port, queue)| queue_entry(&table, &name, port, queue, switch, shape);
            let found: Vec<Entry> = page.map(one).collect::<Checked<_>>()?;
            let next = (found.len() == PAGE).then_some(from.saturating_add(PAGE as u64));
            Ok::<NamedPage, _>((found, next))
        }))
    }
}

/// Which counters an update sets to 0: drops, and the most that waited.
fn cleared(entry: &Entry, resets: bool) -> Checked<(bool, bool)> {
    let is_zero = |field: &str| match entry.get(field).and_then(Value::number) {
        _ if resets => Ok(true),
        None => Ok(false),
        Some(0) => Ok(true),
        Some(other) => invalid(entry, format!("`{field}` can only be set to 0, not {other}")),
    };
    if entry.get("usage_cells").is_some() {
        return invalid(entry, "`usage_cells` can only be read");
    }
    Ok((is_zero("drop_count_packets")?, is_zero("watermark_cells")?))
}

fn port_entry(table: &str, name: &str, port: u16, switch: &Switch, shape: Shape) -> Checked<Entry> {
    let entry = Entry::of(table).exact("dev_port", port.into());
    Ok(match name {
        "port.cfg" => {
            let (group, number) = shape.group(port);
            // Queues are named by their numbers, larger ones are the last.
            let map = (0..u32::from(shape.stride())).map(|queue| queue.min(u32::from(QUEUES) - 1));
            let own = (0..QUEUES).map(|queue| u32::from(number * shape.stride() + queue));
            entry
                .data("pg_id", group)
                .data("pg_port_nr", number)
                .data("port_queues_count", QUEUES)
                .data("ingress_qid_map", Value::Numbers(map.collect()))
                .data("egress_qid_queues", Value::Numbers(own.collect()))
        }
        "counter.eg_port" => {
            let found = in_table(table, switch.port_queues(port))?;
            let drops: u64 = found.queues.iter().map(|queue| queue.drops).sum();
            entry
                .data("drop_count_packets", drops)
                .data("usage_cells", shape.cells(found.bytes))
                .data("watermark_cells", shape.cells(found.max_bytes))
        }
        _ => settings::port_entry(entry, name, in_table(table, switch.port_shaping(port))?),
    })
}

fn queue_entry(
    table: &str,
    name: &str,
    port: u16,
    queue: u8,
    switch: &Switch,
    shape: Shape,
) -> Checked<Entry> {
    let (group, number) = shape.group(port);
    let of_group = number * shape.stride() + u16::from(queue);
    let entry = Entry::of(table).exact("pg_id", group.into()).exact("pg_queue", of_group.into());
    Ok(match name {
        "queue.map" => entry.data("dev_port", port).data("queue_nr", u16::from(queue)),
        "counter.queue" => {
            let found = in_table(table, switch.port_queues(port))?.queues[usize::from(queue)];
            entry
                .data("drop_count_packets", found.drops)
                .data("usage_cells", shape.cells(found.bytes))
                .data("watermark_cells", shape.cells(found.max_bytes))
        }
        _ => {
            let plan = in_table(table, switch.queue_plan(port, queue))?;
            let config = switch.config().ports.iter().find(|own| own.port == port);
            let most = config.and_then(|port| port.queue_limit_bytes);
            let total = shape.cells(most.unwrap_or(switch.config().buffer_bytes));
            settings::queue_entry(entry, name, plan, shape, total)
        }
    })
}
