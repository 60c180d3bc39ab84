//! From text, BMv2's JSON or a controller's config to a program that this switch can run.

use super::plain::{Action, MOST_FIELDS, Plan, Plans};
use super::program::Program;
use super::{given, refuse};
use p4rack_p4::{Compiled, Options, preprocess};
use p4rack_p4rt::diff;
use p4rack_p4rt::errors::UpdateError;
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::config::v1::P4Info;
use p4rack_p4rt::p4::config::v1::action_ref::Scope;
use p4rack_p4rt::p4::v1::ForwardingPipelineConfig;
use p4rack_p4rt::schema::{NAMELESS, id_of, program_name};
use p4rack_switch::{CompileError, Pipeline, Switch};
use std::io;
use std::path::Path;
use std::sync::Arc;

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

/// Compiles P4 text, or reads BMv2's JSON, with the P4Info that came with it. The error is a message for the author.
pub fn compiled(
    text: &str,
    file_name: &str,
    options: &Options,
    info: Option<&P4Info>,
) -> Result<Compiled, String> {
    if p4rack_bmv2::is_json_file(text, file_name) {
        return p4rack_bmv2::read(text, file_name, info).map_err(|error| format!("error: {error}"));
    }
    p4rack_p4::compile(text, file_name, options).map_err(|diagnostics| diagnostics.render(false))
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

/// Bytes of a program's text from the network. The front end's output takes about a hundred times the text's size.
const TEXT_BYTES_MAX: usize = 4 << 20;

impl Candidate {
    /// Compiles P4 text, or reads BMv2's JSON. The error is a message for the author.
    pub fn compile(text: &str, file_name: &str, options: &Options) -> Result<Candidate, String> {
        let mut candidate = Candidate::new(text, compiled(text, file_name, options, None)?)?;
        let stem = || Path::new(file_name).file_stem().map(|stem| stem.to_string_lossy().into_owned());
        candidate.program.name = program_name(&candidate.program.info).or_else(stem).unwrap_or_default();
        Ok(candidate)
    }

    /// Checks a compiled program. The error is a message for the author.
    pub fn new(text: &str, compiled: Compiled) -> Result<Candidate, String> {
        let pipeline = Pipeline::compile(&compiled.program).map_err(|error| refusal(&error, &compiled))?;
        Ok(Candidate::translated(text, compiled, pipeline))
    }

    /// Joins a compiled program and its translation, which several switches may share.
    pub fn translated(text: &str, compiled: Compiled, pipeline: Pipeline) -> Candidate {
        let config = ForwardingPipelineConfig {
            p4info: Some(compiled.p4info.clone()),
            p4_device_config: text.into(),
            cookie: None,
        };
        let bf_rt = compiled.bf_rt().map(|schema| schema.to_string());
        let mut program = Program::new(config, compiled);
        program.bf_rt = bf_rt;
        program.follow();
        program.plans = plans(&program, &pipeline);
        Candidate { program, pipeline }
    }

    /// Loads the program into a switch. `pipeline` replaces its usual translation.
    pub fn load(self, pipeline: Option<Pipeline>, switch: &mut Switch) -> Arc<Program> {
        switch.load(pipeline.unwrap_or(self.pipeline));
        Arc::new(self.program)
    }

    /// Compiles text from the network. It may include built-in files but no files of this machine, whose
    /// contents would appear in error messages.
    pub fn received(text: &str, name: &str) -> Result<Candidate, String> {
        Candidate::received_with(text, name, None)
    }

    /// The same with the P4Info that came with the text: BMv2's JSON takes ids and types from it.
    fn received_with(text: &str, name: &str, info: Option<&P4Info>) -> Result<Candidate, String> {
        if text.len() > TEXT_BYTES_MAX {
            let (given, most) = (text.len(), TEXT_BYTES_MAX >> 20);
            return Err(format!(
                "error: {name} has {given} bytes; a program from the network has at most {most} MiB"
            ));
        }
        let options = Options::default();
        if p4rack_bmv2::is_json_file(text, name) {
            return Candidate::new(text, compiled(text, name, &options, info)?);
        }
        let no_files = |_: &Path| Err(io::Error::from(io::ErrorKind::NotFound));
        preprocess::run_with(text, name, &options, &no_files)
            .map_err(|diagnostics| diagnostics.render(false))?;
        Candidate::compile(text, name, &options)
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
                "config.p4_device_config is empty; this switch runs P4_16 text and BMv2's JSON, put the program there",
            );
        }
        let (data, wrapped) = match given::device_data(&config.p4_device_config) {
            Some(data) => (data, ", in a P4DeviceConfig,"),
            None => (&config.p4_device_config[..], ""),
        };
        let text = std::str::from_utf8(data).map_err(|_| {
            invalid(format!(
                "config.p4_device_config{wrapped} is not text; this switch runs P4_16 text and BMv2's JSON"
            ))
        })?;
        let mut candidate = Candidate::received_with(text, NAMELESS, Some(given))
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

/// The tables of a program that can have plain entries.
fn plans(program: &Program, pipeline: &Pipeline) -> Plans {
    let ids = program.info.tables.iter().map(|table| id_of(table.preamble.as_ref()));
    Plans::new(ids.filter_map(|id| plan(program, pipeline, id)).collect())
}

fn plan(program: &Program, pipeline: &Pipeline, info_id: u32) -> Option<Plan> {
    let table = program.table(info_id).ok()?;
    let layout = pipeline.layout(table.id)?;
    let fields = &table.info.match_fields;
    let translated =
        fields.iter().zip(&layout.keys).any(|(field, (_, key))| field.bitwidth as u32 != key.width);
    let is_plain = !table.info.is_const_table
        && !program.follows(table.id)
        && !program.restricts(table.id)
        && fields.len() == layout.keys.len()
        && fields.len() <= MOST_FIELDS
        && !translated
        && table.needs_priority() == layout.needs_priority;
    if !is_plain {
        return None;
    }
    let mut actions: Vec<Action> = Vec::new();
    for (position, (listed, params)) in table.ir.actions.iter().zip(&layout.actions).enumerate() {
        let id = program.action_id(listed.action);
        let reference = table.info.action_refs.iter().find(|reference| reference.id == id);
        let info = program.info.actions.iter().find(|info| id_of(info.preamble.as_ref()) == id);
        let (Some(params), Some(reference), Some(info)) = (params, reference, info) else { continue };
        if reference.scope() == Scope::DefaultOnly {
            continue;
        }
        let fits = params.len() == info.params.len()
            && params.len() <= MOST_FIELDS
            && params.iter().zip(&info.params).all(|(place, param)| place.width == param.bitwidth as u32)
            && params.iter().all(|place| place.width > 0);
        // If two have the same id, the first one counts.
        if fits && actions.iter().all(|action| action.id != id) {
            let params = info.params.iter().map(|param| param.id).zip(params.iter().copied()).collect();
            actions.push(Action { id, position: position as u32, params });
        }
    }
    let fields = fields.iter().map(|field| field.id).collect();
    Some(Plan { info_id, table: table.id, layout, fields, actions })
}
