//! Tables of a program that P4Runtime does not have, or not as clients expect them: metadata of ports, filters, parameters
//! of registers, members of value sets, groups of selectors, hashes.

mod algorithms;
mod filters;
mod groups;
mod hashes;
mod members;
mod ports;

pub use filters::{config_of, fields_of};

use super::fixed::{DeviceConfig, Step};
use super::outcome::invalid;
use groups::Selector;
use hashes::Aspect;
use num_bigint::BigUint;
use p4rack_bfrt::{Entry, EntryError, Schema, Table, Value};
use p4rack_entities::{Change, Checked, Program, Snapshot, control, refuse};
use p4rack_p4::ir::{InstanceId, InstanceKind, ValueSetId};
use p4rack_p4rt::bfrt_proto::{TableEntry, update::Type};
use p4rack_p4rt::errors::UpdateError;
use p4rack_p4rt::google::rpc::Code;
use p4rack_switch::Switch;
use p4rack_wire::Nanos;
use ports::Ports;
use std::collections::HashMap;
use std::sync::Arc;

/// Suffix of a table that shows which member of a selector's group a hash selects.
const GET_MEMBER: &str = "_get_member";
/// Entries of a page of a read.
const PAGE: u64 = 256;

/// The switch's object behind a table.
#[derive(Clone, Debug)]
enum Kind {
    Ports,
    Filters {
        instance: InstanceId,
        drops: bool,
        size: u64,
    },
    Parameter {
        instance: InstanceId,
        initial: BigUint,
    },
    Members(ValueSetId),
    Groups(Selector),
    /// Which member of a selector's group a hash selects.
    Selected(InstanceId),
    Hash(InstanceId, Aspect),
}

/// Part of a table that an update saves for undo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All.
    Table,
    /// A number of entries.
    Entries(u64),
    /// A number of members of a group.
    Members(usize),
}

/// The tables.
#[derive(Debug)]
pub struct Own {
    program: Arc<Program>,
    schema: Schema,
    /// Pipes of the switch.
    pipes: u32,
    kinds: HashMap<u32, Kind>,
    ports: Ports,
    config: DeviceConfig,
}

/// A part of a table, and the number of its next entry if there are more.
pub type Page = (Vec<TableEntry>, Option<u64>);
/// A prepared read.
pub type Lookup = Box<dyn FnOnce(&Switch) -> Checked<Page> + Send>;

impl Own {
    /// The tables of a program that are in its schema.
    pub fn new(schema: Schema, program: Arc<Program>, pipes: u32, config: DeviceConfig) -> Own {
        let kinds = schema.tables().iter().filter_map(|table| Some((table.id, kind(table, &program)?)));
        Own { kinds: kinds.collect(), program, schema, pipes, ports: Ports::default(), config }
    }

    /// Whether this is one of them.
    pub fn has(&self, table_id: u32) -> bool {
        self.kinds.contains_key(&table_id)
    }

    /// Whether a table holds members of a value set.
    pub fn has_members(&self, table_id: u32) -> bool {
        matches!(self.kinds.get(&table_id), Some(Kind::Members(_)))
    }

    /// Whether a table's entries are of ports, each of which is in one pipe.
    pub fn has_ports(&self, table_id: u32) -> bool {
        matches!(self.kinds.get(&table_id), Some(Kind::Ports))
    }

    /// Part that an update of one entry or, with `all`, of all entries saves for undo.
    pub fn saved(&self, table_id: u32, all: bool) -> Extent {
        match self.kinds.get(&table_id) {
            Some(Kind::Groups(selector)) if !all => Extent::Members(groups::most_members(*selector)),
            // The switch replaces all members together.
            Some(Kind::Members(set)) => {
                Extent::Entries(self.program.ir.value_sets.get(set.0 as usize).map_or(0, |set| set.size))
            }
            Some(Kind::Filters { size, .. }) if all => Extent::Entries(*size),
            Some(_) if all => Extent::Table,
            _ => Extent::Entries(0),
        }
    }

    fn kind(&self, table_id: u32) -> Checked<&Kind> {
        self.kinds.get(&table_id).map_or_else(|| refuse(Code::NotFound, "there is no such table"), Ok)
    }

    /// Checks an update.
    pub fn step(self: &Arc<Own>, kind: Type, message: &TableEntry) -> Checked<Step> {
        let entry = self.read_entry(message)?;
        let all = message.value.is_none();
        if kind == Type::ModifyInc {
            return not_offered(&entry, "MODIFY_INC");
        }
        match self.kind(message.table_id)? {
            Kind::Parameter { instance, initial } => parameter(kind, &entry, *instance, initial),
            Kind::Hash(instance, aspect) => self.hash_step(kind, &entry, *instance, *aspect),
            _ if entry.is_default() => invalid(format!("table `{}` has no default entry", entry.table())),
            _ if all && kind != Type::Delete => {
                invalid(format!("table `{}`: the entry's key is not set", entry.table()))
            }
            Kind::Ports => self.ports_step(kind, &entry, all),
            Kind::Filters { instance, drops, size } => {
                filters::step(kind, &entry, all, *instance, *drops, *size)
            }
            Kind::Members(set) => self.members_step(kind, &entry, all, *set),
            Kind::Groups(selector) => self.groups_step(kind, &entry, all, *selector),
            Kind::Selected(_) => invalid(format!("table `{}` can only be read", entry.table())),
        }
    }

    /// Checks a read of one entry, or of all from a number on.
    pub fn lookup(self: &Arc<Own>, message: &TableEntry, from: u64) -> Checked<Lookup> {
        // The requested fields carry no values.
        let entry = self.read_entry(&TableEntry { data: None, ..message.clone() })?;
        let all = message.value.is_none();
        let own = self.clone();
        match self.kind(message.table_id)?.clone() {
            Kind::Parameter { instance, .. } => {
                let name = entry.table().to_owned();
                Ok(Box::new(move |switch| {
                    let value = control(switch.register_read(instance, 0))?;
                    let entry = Entry::default_of(&name).data("value", Value::Number(value.to_bytes_be()));
                    Ok((vec![own.build(&entry)?], None))
                }))
            }
            Kind::Ports => self.ports_lookup(entry, all),
            Kind::Filters { instance, drops, size } => {
                let name = entry.table().to_owned();
                let wanted = if all { None } else { Some(filters::index(&entry)?) };
                Ok(Box::new(move |switch| {
                    let range = wanted.map_or(from..size.min(from.saturating_add(PAGE)), |at| at..at + 1);
                    let next = Some(range.end).filter(|end| wanted.is_none() && *end < size);
                    let one = |at| {
                        let config = control(switch.smoother_read(instance, at))?;
                        own.build(&filters::entry(&name, at, drops, config))
                    };
                    Ok((range.map(one).collect::<Checked<_>>()?, next))
                }))
            }
            Kind::Members(set) => self.members_lookup(entry, all, set),
            Kind::Groups(selector) => self.groups_lookup(&entry, all, from, selector),
            Kind::Selected(instance) => self.selected_lookup(&entry, instance),
            Kind::Hash(instance, aspect) => self.hash_lookup(entry, instance, aspect),
        }
    }

    fn read_entry(&self, message: &TableEntry) -> Checked<Entry> {
        Entry::read(&self.schema, message).or_else(|error| invalid(error.to_string()))
    }

    fn build(&self, entry: &Entry) -> Checked<TableEntry> {
        let fault = |error: EntryError| UpdateError::new(Code::Internal, error.to_string());
        entry.build(&self.schema).map_err(fault)
    }
}

fn not_offered<T>(entry: &Entry, what: &str) -> Checked<T> {
    refuse(Code::Unimplemented, format!("table `{}`: {what} is not offered", entry.table()))
}

/// The switch's object behind a table, by the table's type and name.
fn kind(table: &Table, program: &Program) -> Option<Kind> {
    let instance = || {
        let all = program.ir.instances.iter().enumerate();
        let (at, found) = all.into_iter().find(|(_, instance)| table.is_named(&instance.named.name))?;
        Some((InstanceId(at as u32), &found.kind))
    };
    match table.table_type.as_str() {
        "PortMetadata" => Some(Kind::Ports),
        "Lpf" | "Wred" => match instance()? {
            (instance, InstanceKind::Smoother { size, drops }) => {
                Some(Kind::Filters { instance, drops: *drops, size: *size })
            }
            _ => None,
        },
        "RegisterParam" => match instance()? {
            (instance, InstanceKind::Register { initial, .. }) => {
                Some(Kind::Parameter { instance, initial: initial.clone() })
            }
            _ => None,
        },
        "Selector" => match instance()? {
            (instance, InstanceKind::ActionSelector { max_group_size, groups, .. }) => {
                let most = u32::try_from(*max_group_size).ok().filter(|most| *most > 0).unwrap_or(u32::MAX);
                Some(Kind::Groups(Selector { instance, most, groups: *groups }))
            }
            _ => None,
        },
        "SelectorGetMember" => {
            let all = program.ir.instances.iter();
            let mut named = all.map(|instance| format!("{}{}", instance.named.name, GET_MEMBER));
            let at = named.position(|name| table.is_named(&name))?;
            Some(Kind::Selected(InstanceId(at as u32)))
        }
        "ParserValueSet" => {
            let at = program.ir.value_sets.iter().position(|set| table.is_named(&set.named.name))?;
            Some(Kind::Members(ValueSetId(at as u32)))
        }
        other => {
            let (aspect, ending) = Aspect::of(other)?;
            let all = program.ir.instances.iter();
            let mut named = all.map(|instance| {
                let is_hash = matches!(instance.kind, InstanceKind::Hash { .. });
                is_hash && table.is_named(&format!("{}{ending}", instance.named.name))
            });
            let at = named.position(|is_it| is_it)?;
            Some(Kind::Hash(InstanceId(at as u32), aspect))
        }
    }
}

/// A parameter of a register: a single value, kept in the default entry.
fn parameter(kind: Type, entry: &Entry, instance: InstanceId, initial: &BigUint) -> Checked<Step> {
    if !entry.is_default() {
        return invalid(format!("table `{}` has nothing but its default entry", entry.table()));
    }
    let value = match kind {
        Type::Delete => initial.clone(),
        _ => match entry.get("value") {
            Some(Value::Number(bytes)) => BigUint::from_bytes_be(bytes),
            Some(Value::Bool(truth)) => BigUint::from(u8::from(*truth)),
            _ => return invalid(format!("table `{}`: `value` is not set", entry.table())),
        },
    };
    let snapshot: Snapshot = Box::new(move |switch| {
        let before = switch.register_read(instance, 0);
        Box::new(move |switch| {
            let _ = before.and_then(|before| switch.register_write(instance, 0, &before));
        })
    });
    let change: Change =
        Box::new(move |switch, _: Nanos| control(switch.register_write(instance, 0, &value)));
    Ok(Step { snapshot: Some(snapshot), change })
}
