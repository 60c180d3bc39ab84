//! A program as the server holds it: the controller's config, its P4Info, and the mapping from ids to the IR.

use super::digests::Digests;
use super::packets::ControllerHeader;
use super::plain::Plans;
use super::replication::Groups;
use super::{Checked, given, refuse};
use p4rack_p4::ir::{self, InstanceId, TableId, ValueSetId};
use p4rack_p4::{Compiled, Options, preprocess};
use p4rack_p4rt::diff;
use p4rack_p4rt::errors::UpdateError;
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::config::v1::{
    ActionProfile, Counter, Meter, P4Info, Preamble, Register, Table, ValueSet,
};
use p4rack_p4rt::p4::v1::ForwardingPipelineConfig;
use p4rack_switch::{CompileError, Pipeline, Switch};
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum differences between two P4Infos that a message lists.
const DIFFERENCES: usize = 5;

/// A program that this switch can run: checked, but not running yet.
#[derive(Debug)]
pub struct Candidate {
    /// The server's part.
    pub program: Program,
    /// The switch's part.
    pub pipeline: Pipeline,
}

/// A program with the lookups that requests need.
#[derive(Debug)]
pub struct Program {
    /// The config as the controller sent it.
    pub config: ForwardingPipelineConfig,
    /// P4Info of the program itself.
    pub info: P4Info,
    /// The program's IR.
    pub ir: ir::Program,
    /// Header of packets to the controller.
    pub packet_in: ControllerHeader,
    /// Header of packets from the controller.
    pub packet_out: ControllerHeader,
    /// Multicast groups and clone sessions as the controller wrote them.
    pub(crate) groups: Mutex<Groups>,
    /// `max_size` of selector groups as the controller wrote it.
    group_limits: Mutex<BTreeMap<(InstanceId, u32), i32>>,
    /// Digests to which the controller has subscribed.
    digests: Mutex<Digests>,
    digest_ids: Vec<u32>,
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

/// Why the switch does not run a program, with the place in its text where that is known.
pub fn refusal(error: &CompileError, compiled: &Compiled) -> String {
    match error.span() {
        Some(span) => {
            let at = compiled.warnings.sources().locate(span);
            format!("{}:{}:{}: {error}", at.file, at.line, at.column)
        }
        None => error.to_string(),
    }
}

impl Candidate {
    /// Compiles P4 text. The error is a message for the author.
    pub fn compile(text: &str, file_name: &str, options: &Options) -> Result<Candidate, String> {
        if let Some(what) = given::other_than_p4(text) {
            return Err(format!("error: {file_name} is {what}"));
        }
        let compiled =
            p4rack_p4::compile(text, file_name, options).map_err(|diagnostics| diagnostics.render(false))?;
        Candidate::new(text, compiled)
    }

    /// Checks a compiled program. The error is a message for the author.
    pub fn new(text: &str, compiled: Compiled) -> Result<Candidate, String> {
        let pipeline = Pipeline::compile(&compiled.program).map_err(|error| refusal(&error, &compiled))?;
        let config = ForwardingPipelineConfig {
            p4info: Some(compiled.p4info.clone()),
            p4_device_config: text.into(),
            cookie: None,
        };
        let mut program = Program::new(config, compiled);
        program.plans = Plans::new(&program, &pipeline);
        Ok(Candidate { program, pipeline })
    }

    /// Loads the program into a switch. `pipeline` replaces its usual translation.
    pub fn load(self, pipeline: Option<Pipeline>, switch: &mut Switch) -> Arc<Program> {
        switch.load(pipeline.unwrap_or(self.pipeline));
        Arc::new(self.program)
    }

    /// Compiles text from the network. It may include built-in files but no files of this machine, whose
    /// contents would appear in error messages.
    fn received(text: &str) -> Result<Candidate, String> {
        const NAME: &str = "p4_device_config";
        let options = Options::default();
        let no_files = |_: &Path| Err(io::Error::from(io::ErrorKind::NotFound));
        preprocess::run_with(text, NAME, &options, &no_files)
            .map_err(|diagnostics| diagnostics.render(false))?;
        Candidate::compile(text, NAME, &options)
    }

    /// Checks a controller's config: the program compiles, fits this switch, and the P4Info is the program's.
    pub fn verify(config: ForwardingPipelineConfig) -> Result<Candidate, UpdateError> {
        let invalid = |message: String| UpdateError::new(Code::InvalidArgument, message);
        let Some(given) = &config.p4info else {
            return refuse(Code::InvalidArgument, "config.p4info is not set");
        };
        if config.p4_device_config.is_empty() {
            return refuse(
                Code::InvalidArgument,
                "config.p4_device_config is empty; this switch runs P4_16 text, put the program there",
            );
        }
        let (data, wrapped) = match given::device_data(&config.p4_device_config) {
            Some(data) => (data, ", in a P4DeviceConfig,"),
            None => (&config.p4_device_config[..], ""),
        };
        let text = std::str::from_utf8(data).map_err(|_| {
            invalid(format!(
                "config.p4_device_config{wrapped} is not text; this switch runs P4_16 text, not a compiler's output"
            ))
        })?;
        if let Some(what) = given::other_than_p4(text) {
            return Err(invalid(format!("config.p4_device_config{wrapped} is {what}")));
        }
        let mut candidate = Candidate::received(text)
            .map_err(|error| invalid(format!("the program can't be installed:\n{error}")))?;
        let differences = diff::differences(given, &candidate.program.info);
        if !differences.is_empty() {
            let more = match differences.len().saturating_sub(DIFFERENCES) {
                0 => String::new(),
                more => format!("\nand {more} more"),
            };
            let shown = differences[..differences.len().min(DIFFERENCES)].join("\n");
            let message = format!("the P4Info given is not the program's:\n{shown}{more}");
            return Err(invalid(message));
        }
        candidate.program.config = config;
        Ok(candidate)
    }
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
    fn new(config: ForwardingPipelineConfig, compiled: Compiled) -> Program {
        let Compiled { program, p4info: info, ids, .. } = compiled;
        let header = |name: &str| {
            let of = |preamble: &Preamble| preamble.name == name;
            let mut headers = info.controller_packet_metadata.iter();
            ControllerHeader::new(headers.find(|header| header.preamble.as_ref().is_some_and(of)))
        };
        macro_rules! positions {
            ($list:ident, $ids:ident, $make:expr) => {
                positions(info.$list.iter().map(|object| object.preamble.as_ref()), &ids.$ids, $make)
            };
        }
        Program {
            packet_in: header("packet_in"),
            packet_out: header("packet_out"),
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
            config,
            info,
        }
    }

    /// `max_size` of groups, by selector and group id.
    pub fn group_limits(&self) -> MutexGuard<'_, BTreeMap<(InstanceId, u32), i32>> {
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
