//! Tables that every device has: device configuration, ports and their queues, replication, mirror sessions, packet
//! generators.
//!
//! ```text
//!  device        properties of the device, and settings that outlive programs
//!  ports         ports and their statistics
//!  replication   multicast nodes, ECMP groups, groups, LAGs, pruning
//!  mirror        mirror sessions
//!  generator     packet generators of the pipes
//!  queues        how ports serve their queues
//! ```

mod device;
mod generator;
mod mirror;
mod ports;
mod queues;
mod replication;

pub use device::DeviceConfig;
pub use ports::{PORTS, Ports};

use generator::Generators;
use mirror::Sessions;
use p4rack_bfrt::{Entry, Schema};
use p4rack_entities::{Change, Checked, Snapshot, refuse};
use p4rack_p4rt::bfrt_proto::{PreDeviceConfig, TableEntry, update::Type};
use p4rack_p4rt::errors::UpdateError;
use p4rack_p4rt::google::rpc::Code;
use p4rack_switch::{ControlError, Switch};
use p4rack_wire::Nanos;
use std::sync::Arc;
use std::time::Duration;

/// Schemas of the tables; of some each generation has its own.
const SCHEMAS: [[&str; 6]; 2] = [
    [
        include_str!("fixed/schema/device.json"),
        include_str!("fixed/schema/port.json"),
        include_str!("fixed/schema/replication.json"),
        include_str!("fixed/schema/mirror_1.json"),
        include_str!("fixed/schema/generator_1.json"),
        include_str!("fixed/schema/queues_1.json"),
    ],
    [
        include_str!("fixed/schema/device.json"),
        include_str!("fixed/schema/port.json"),
        include_str!("fixed/schema/replication.json"),
        include_str!("fixed/schema/mirror_2.json"),
        include_str!("fixed/schema/generator_2.json"),
        include_str!("fixed/schema/queues_2.json"),
    ],
];
/// Entries of a page of a read.
const PAGE: usize = 64;
/// The table of mirror sessions.
const SESSIONS: &str = "$mirror.cfg";

/// The schema of the tables for a program's architecture.
pub fn fixed_text(arch: &str) -> String {
    let second = is_second(arch);
    let lists = SCHEMAS[usize::from(second)].map(|list| {
        let list = list.trim();
        list.strip_prefix('[').and_then(|list| list.strip_suffix(']')).unwrap_or(list).trim()
    });
    let tables = lists.join(",\n");
    let text =
        format!("{{\"schema_version\": \"1.0.0\", \"tables\": [\n{tables}\n], \"learn_filters\": []}}");
    if second { text.replace("\"tf1.", "\"tf2.") } else { text }
}

/// Whether an architecture is the second generation's.
pub fn is_second(arch: &str) -> bool {
    arch.starts_with("t2")
}

/// State of the tables while one program runs.
#[derive(Debug)]
pub struct Fixed {
    schema: Schema,
    second: bool,
    ports: Ports,
    config: DeviceConfig,
    sessions: Sessions,
    generators: Generators,
}

/// A prepared update: the state to save for undo, and the change.
pub struct Step {
    /// See [`p4rack_entities::snapshot`].
    pub snapshot: Option<Snapshot>,
    /// See [`p4rack_entities::change`].
    pub change: Change,
}

/// A part of a table, and the number of its next entry if there are more.
pub type Page = (Vec<TableEntry>, Option<u64>);
/// A part of a table by names.
type NamedPage = (Vec<Entry>, Option<u64>);
/// Collects the entries of one of the tables.
type Table = Box<dyn FnOnce(&Fixed, &Switch, Nanos) -> Checked<NamedPage> + Send>;
/// A prepared read.
pub type Lookup = Box<dyn FnOnce(&Switch, Nanos) -> Checked<Page> + Send>;

fn missing(entry: &Entry, key: &str) -> String {
    format!("table `{}`: the entry's key needs `{key}`", entry.table())
}

fn not_offered<T>(entry: &Entry, what: &str) -> Checked<T> {
    refuse(Code::Unimplemented, format!("table `{}`: {what} is not offered by this switch", entry.table()))
}

fn invalid<T>(entry: &Entry, what: impl std::fmt::Display) -> Checked<T> {
    refuse(Code::InvalidArgument, format!("table `{}`: {what}", entry.table()))
}

/// An error of the switch, in the terms of a table.
fn in_table<T>(table: &str, result: Result<T, ControlError>) -> Checked<T> {
    p4rack_entities::control(result)
        .map_err(|error| UpdateError::new(error.code, format!("table `{table}`: {}", error.message)))
}

fn id(entry: &Entry, key: &str) -> Checked<u32> {
    let id = entry.exact_number(key).and_then(|id| u32::try_from(id).ok());
    id.map_or_else(|| refuse(Code::InvalidArgument, missing(entry, key)), Ok)
}

/// Adds `more` to a page of entries, each with its number.
fn page<T>(found: impl Iterator<Item = (u64, T)>, one: impl Fn(u64, T) -> Entry) -> NamedPage {
    let found: Vec<(u64, Entry)> = found.take(PAGE).map(|(id, value)| (id, one(id, value))).collect();
    let next = found.last().filter(|_| found.len() == PAGE).and_then(|(id, _)| id.checked_add(1));
    (found.into_iter().map(|(_, entry)| entry).collect(), next)
}

impl Fixed {
    /// Empty tables, except for those that outlive programs.
    pub fn new(schema: Schema, arch: &str, ports: Ports, config: DeviceConfig) -> Fixed {
        let (sessions, generators) = Default::default();
        Fixed { schema, second: is_second(arch), ports, config, sessions, generators }
    }

    /// Whether this is one of the tables.
    pub fn has(&self, table_id: u32) -> bool {
        self.schema.table_by_id(table_id).is_some()
    }

    /// Ports as clients configured them.
    pub fn ports(&self) -> &Ports {
        &self.ports
    }

    /// Maximum time that a digest waits for others.
    pub fn learn_timeout(&self) -> Duration {
        self.config.learn_timeout()
    }

    /// Whether each pipe has a table of its own.
    pub fn has_pipes(&self, table_id: u32) -> bool {
        self.schema
            .table_by_id(table_id)
            .is_some_and(|table| generator::has(&table.name) || queues::has(&table.name))
    }

    /// Whether requests for a table mean the device, whichever program is prepared.
    pub fn is_of_device(&self, table_id: u32) -> bool {
        let is_it = |name: &str| name.starts_with("$PORT") || device::has(name) || queues::has(name);
        self.schema.table_by_id(table_id).is_some_and(|table| is_it(&table.name))
    }

    fn entry(&self, message: &TableEntry) -> Checked<Entry> {
        Entry::read(&self.schema, message).or_else(|error| refuse(Code::InvalidArgument, error.to_string()))
    }

    /// Whether a row of a table is found only in a pipe that the request names.
    pub fn needs_pipe(&self, message: &TableEntry) -> bool {
        let is_row = message.value.is_some() || message.is_default_entry;
        is_row
            && self.schema.table_by_id(message.table_id).is_some_and(|table| queues::is_of_queue(&table.name))
    }

    /// Whether a read names nothing, though a table has nothing but its default entry. A driver calls that an error, after it
    /// has answered.
    pub fn is_nameless(&self, message: &TableEntry) -> bool {
        let names = message.value.is_some() || message.is_default_entry;
        !names && self.schema.table_by_id(message.table_id).is_some_and(|table| table.keys.is_empty())
    }

    /// Checks an update. A driver's transactions don't cover these tables, so nothing is saved to undo it; `is_whole`: it is part
    /// of one.
    pub fn step(self: &Arc<Fixed>, kind: Type, message: &TableEntry, is_whole: bool) -> Checked<Change> {
        let entry = self.entry(message)?;
        let name = entry.table();
        if is_whole && (name == SESSIONS || generator::is_gate(name)) {
            return refuse(
                Code::Unimplemented,
                format!("table `{name}` takes no part in transactions; use CONTINUE_ON_ERROR"),
            );
        }
        if device::has(name) {
            return self.device_step(kind, &entry);
        }
        let all = message.value.is_none();
        if all && kind != Type::Delete && name != generator::REPLAY {
            return invalid(&entry, "the entry's key is not set");
        }
        let takes = message.table_flags.as_ref().is_some_and(|flags| flags.mod_del);
        match name {
            PORTS => self.port_step(kind, entry, all),
            SESSIONS => self.session_step(kind, entry, all),
            name if name.starts_with("$pre.") => replication::step(kind, entry, all, takes),
            name if generator::has(name) => self.generator_step(kind, entry, all),
            name if queues::has(name) => self.queue_step(kind, entry, all),
            _ => refuse(Code::Unimplemented, format!("table `{name}` can only be read here")),
        }
    }

    /// Checks a read of one entry, or of all from a number on.
    pub fn lookup(self: &Arc<Fixed>, message: &TableEntry, from: u64) -> Checked<Lookup> {
        // The requested fields carry no values.
        let entry = self.entry(&TableEntry { data: None, ..message.clone() })?;
        let all = message.value.is_none();
        let name = entry.table().to_owned();
        let is_keyed = self.schema.table_by_id(message.table_id).is_some_and(|table| !table.keys.is_empty());
        if entry.is_default() && is_keyed && !queues::has_default(&name) {
            return not_offered(&entry, "a default entry");
        }
        let found: Table = match name.as_str() {
            name if device::has(name) => self.device_lookup(name),
            PORTS | "$PORT_STAT" => self.port_lookup(&entry, all)?,
            SESSIONS => self.session_lookup(&entry, all, from)?,
            name if name.starts_with("$pre.") => replication::lookup(&entry, all, from)?,
            name if generator::has(name) => self.generator_lookup(&entry, all)?,
            name if queues::has(name) => self.queue_lookup(&entry, all, from)?,
            _ => return not_offered(&entry, "reading"),
        };
        let fixed = self.clone();
        Ok(Box::new(move |switch, now| {
            let (entries, next) = found(&fixed, switch, now)?;
            if entries.is_empty() && !all {
                return refuse(Code::NotFound, format!("table `{name}` has no such entry"));
            }
            let built = entries.iter().map(|entry| entry.build(&fixed.schema));
            let built: Result<Vec<TableEntry>, _> = built.collect();
            Ok((built.or_else(|error| refuse(Code::Internal, error.to_string()))?, next.filter(|_| all)))
        }))
    }

    /// Checks a change of the replication engine's settings.
    pub fn replication_config(&self, given: &PreDeviceConfig) -> Checked<Change> {
        replication::configure(given)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test that cannot go on should panic
mod tests {
    use super::*;

    #[test]
    fn both_generations_have_a_schema() {
        for (arch, device) in [("tna", "tf1"), ("t2na", "tf2")] {
            let schema = Schema::parse(fixed_text(arch).as_bytes()).unwrap();
            for name in ["dev.device_configuration", "pktgen.app_cfg"] {
                assert!(schema.table(&format!("{device}.{name}")).is_ok(), "{arch}: {name}");
            }
            assert!(schema.table("$pre.ecmp").is_ok());
        }
    }
}
