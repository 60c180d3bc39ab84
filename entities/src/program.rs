//! A program as requests see it: the controller's config, its P4Info, and the mapping from ids to the IR.

use super::digests::Digests;
use super::initial::Initial;
use super::ledger::Ledger;
use super::names::Names;
use super::packets::ControllerHeader;
use super::plain::Plans;
use super::{Checked, refuse};
use p4rack_p4::Compiled;
use p4rack_p4::ir::{self, InstanceId, TableId, ValueSetId};
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::config::v1::{
    ActionProfile, Counter, Meter, P4Info, Preamble, Register, Table, ValueSet,
};
use p4rack_p4rt::p4::v1::{CloneSessionEntry, ForwardingPipelineConfig, MulticastGroupEntry};
use p4rack_switch::Switch;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A program with the lookups that requests need.
#[derive(Debug)]
pub struct Program {
    /// The config as the controller sent it.
    pub config: ForwardingPipelineConfig,
    /// P4Info of the program itself.
    pub info: P4Info,
    /// The program's IR.
    pub ir: ir::Program,
    /// Name of the program: its own, else its file's, or the one that BFRuntime's controller gave it.
    pub name: String,
    /// Its BFRuntime schema, if its architecture has one.
    pub bf_rt: Option<String>,
    /// Header of packets to the controller.
    pub packet_in: ControllerHeader,
    /// Header of packets from the controller.
    pub packet_out: ControllerHeader,
    /// Multicast groups and clone sessions as the controller wrote them.
    groups: Mutex<Groups>,
    /// `max_size` of selector groups as the controller wrote it.
    group_limits: Mutex<GroupLimits>,
    /// Digests to which the controller has subscribed.
    digests: Mutex<Digests>,
    digest_ids: Vec<u32>,
    /// Controllers' names for the values of translated types.
    pub(crate) names: Names,
    /// Entries that the program's text gives its tables.
    pub initial: Initial,
    /// References between entities.
    ledger: Mutex<Ledger>,
    /// Tables whose entries are followed, by number.
    pub(crate) followed: Vec<bool>,
    /// Tables whose entries are written without decoding messages.
    pub plans: Plans,
    actions: Vec<u32>,
    tables: HashMap<u32, (TableId, usize)>,
    counters: HashMap<u32, (InstanceId, usize)>,
    meters: HashMap<u32, (InstanceId, usize)>,
    registers: HashMap<u32, (InstanceId, usize)>,
    profiles: HashMap<u32, (InstanceId, usize)>,
    value_sets: HashMap<u32, (ValueSetId, usize)>,
}

/// `max_size` of groups as the controller wrote it, by selector, pipe and group id: pipes may have groups of their own.
#[derive(Clone, Debug, Default)]
pub struct GroupLimits(BTreeMap<(InstanceId, usize, u32), i32>);

impl GroupLimits {
    /// That of a group of the first pipe that is meant, if it was written.
    pub fn get(&self, switch: &Switch, selector: InstanceId, group: u32) -> Option<i32> {
        let pipe = (0..switch.pipes()).find(|pipe| switch.means(*pipe))?;
        self.0.get(&(selector, pipe, group)).copied()
    }

    /// Sets or forgets it in all pipes that are meant.
    pub fn set(&mut self, switch: &Switch, selector: InstanceId, group: u32, limit: Option<i32>) {
        for pipe in (0..switch.pipes()).filter(|pipe| switch.means(*pipe)) {
            match limit {
                Some(limit) => self.0.insert((selector, pipe, group), limit),
                None => self.0.remove(&(selector, pipe, group)),
            };
        }
    }
}

/// Groups and sessions as the controller wrote them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Groups {
    pub multicast: BTreeMap<u32, MulticastGroupEntry>,
    pub clone: BTreeMap<u32, CloneSessionEntry>,
}

fn positions<'a, T: Copy>(
    preambles: impl Iterator<Item = Option<&'a Preamble>>,
    ids: &[u32],
    make: impl Fn(u32) -> T,
) -> HashMap<u32, (T, usize)> {
    let mut found = HashMap::new();
    for (position, preamble) in preambles.enumerate() {
        let id = preamble.map_or(0, |preamble| preamble.id);
        if let Some(index) = ids.iter().position(|other| *other == id) {
            found.insert(id, (make(index as u32), position));
        }
    }
    found
}

impl Program {
    pub(crate) fn new(config: ForwardingPipelineConfig, compiled: Compiled) -> Program {
        let initial = Initial::of(&compiled);
        let Compiled { program, p4info: info, ids, .. } = compiled;
        let names = Names::new(&program);
        let header = |name: &str| {
            let of = |preamble: &Preamble| preamble.name == name;
            let mut headers = info.controller_packet_metadata.iter();
            let found = headers.find(|header| header.preamble.as_ref().is_some_and(of));
            let declared = program.controller_headers.iter().find(|header| header.named.name == name);
            ControllerHeader::new(found, declared, &names)
        };
        macro_rules! positions {
            ($list:ident, $ids:ident, $make:expr) => {
                positions(info.$list.iter().map(|object| object.preamble.as_ref()), &ids.$ids, $make)
            };
        }
        let (packet_in, packet_out) = (header("packet_in"), header("packet_out"));
        Program {
            packet_in,
            packet_out,
            names,
            initial,
            ledger: Mutex::default(),
            followed: Vec::new(),
            groups: Mutex::default(),
            digests: Mutex::default(),
            digest_ids: ids.digests,
            plans: Plans::default(),
            group_limits: Mutex::default(),
            tables: positions!(tables, tables, TableId),
            counters: positions!(counters, instances, InstanceId),
            meters: positions!(meters, instances, InstanceId),
            registers: positions!(registers, instances, InstanceId),
            profiles: positions!(action_profiles, instances, InstanceId),
            value_sets: positions!(value_sets, value_sets, ValueSetId),
            actions: ids.actions,
            ir: program,
            name: String::new(),
            bf_rt: None,
            config,
            info,
        }
    }

    /// A type that is translated to strings, if the program has one.
    pub fn translated_to_strings(&self) -> Option<&str> {
        self.names.text_type()
    }

    /// Whether the references of a table's entries are followed.
    pub(crate) fn follows(&self, table: TableId) -> bool {
        self.followed.get(table.0 as usize).copied().unwrap_or(false)
    }

    /// References between entities.
    pub(crate) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        // Every change is a single count, so a panic elsewhere leaves it consistent.
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Multicast groups and clone sessions as the controller wrote them.
    pub(crate) fn groups(&self) -> MutexGuard<'_, Groups> {
        // Every change is a single insertion or removal, so a panic elsewhere leaves it consistent.
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `max_size` of selector groups.
    pub fn group_limits(&self) -> MutexGuard<'_, GroupLimits> {
        // Every change is a single insertion or removal, so a panic elsewhere leaves it consistent.
        self.group_limits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Digests to which the controller has subscribed.
    pub fn digests(&self) -> MutexGuard<'_, Digests> {
        // Nothing in the critical sections can panic in the middle of a change.
        self.digests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// P4Info id of a digest.
    pub fn digest_id(&self, digest: u32) -> u32 {
        self.digest_ids.get(digest as usize).copied().unwrap_or(0)
    }

    /// Number of the digest with a P4Info id.
    pub fn digest(&self, id: u32) -> Checked<u32> {
        match self.digest_ids.iter().position(|found| *found == id) {
            Some(digest) => Ok(digest as u32),
            None if id == 0 => refuse(Code::InvalidArgument, "the digest's id is not set"),
            None => refuse(Code::NotFound, format!("the program has no digest with id {id} (0x{id:08x})")),
        }
    }

    /// P4Info id of an action.
    pub fn action_id(&self, action: ir::ActionId) -> u32 {
        self.actions.get(action.0 as usize).copied().unwrap_or(0)
    }

    /// P4Info id of a table.
    pub fn table_id(&self, table: TableId) -> Option<u32> {
        self.tables.iter().find(|(_, (found, _))| *found == table).map(|(id, _)| *id)
    }

    /// A table by id.
    pub fn table(&self, id: u32) -> Checked<TableRef<'_>> {
        let (table, position) = find(&self.tables, "table", id)?;
        Ok(TableRef {
            program: self,
            id: table,
            ir: &self.ir.tables[table.0 as usize],
            info: &self.info.tables[position],
        })
    }

    /// A counter by id.
    pub fn counter(&self, id: u32) -> Checked<(InstanceId, &Counter)> {
        let (instance, position) = find(&self.counters, "counter", id)?;
        Ok((instance, &self.info.counters[position]))
    }

    /// A meter by id.
    pub fn meter(&self, id: u32) -> Checked<(InstanceId, &Meter)> {
        let (instance, position) = find(&self.meters, "meter", id)?;
        Ok((instance, &self.info.meters[position]))
    }

    /// A register by id.
    pub fn register(&self, id: u32) -> Checked<(InstanceId, &Register)> {
        let (instance, position) = find(&self.registers, "register", id)?;
        Ok((instance, &self.info.registers[position]))
    }

    /// An action profile or selector by id.
    pub fn profile(&self, id: u32) -> Checked<(InstanceId, &ActionProfile)> {
        let (instance, position) = find(&self.profiles, "action profile", id)?;
        Ok((instance, &self.info.action_profiles[position]))
    }

    /// A parser value set by id.
    pub fn value_set(&self, id: u32) -> Checked<(ValueSetId, &ValueSet)> {
        let (set, position) = find(&self.value_sets, "value set", id)?;
        Ok((set, &self.info.value_sets[position]))
    }
}

fn find<T: Copy>(map: &HashMap<u32, (T, usize)>, kind: &str, id: u32) -> Checked<(T, usize)> {
    match map.get(&id) {
        Some(found) => Ok(*found),
        None if id == 0 => refuse(Code::InvalidArgument, format!("the {kind}'s id is not set")),
        None => refuse(Code::NotFound, format!("the program has no {kind} with id {id} (0x{id:08x})")),
    }
}

/// A table of a program.
#[derive(Clone, Copy, Debug)]
pub struct TableRef<'a> {
    /// The program it belongs to.
    pub program: &'a Program,
    /// Number of the table in the switch.
    pub id: TableId,
    /// The table in the IR.
    pub ir: &'a ir::Table,
    /// The table in P4Info.
    pub info: &'a Table,
}
