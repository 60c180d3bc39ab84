//! Programs and entries of a topology's switches: what each should hold, and bringing it there as a whole.

use crate::bmv2::Compiler;
use crate::connect::ConnectOptions;
use crate::desired::BfrtProgram;
pub use crate::desired::Desired;
use crate::entries;
use crate::error::CtrlError;
use crate::reconcile::changes;
use crate::session::Session;
use p4rack_codegen::kind::Kind;
use p4rack_codegen::rack;
use p4rack_codegen::text;
use p4rack_codegen::topology::{Program, Runs, Target, Topology};
use p4rack_p4rt::p4::v1::{Entity, Update};
use p4rack_p4rt::schema::{NAMELESS, Schema, program_name};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// What each switch of a topology should hold; `None` if a controller brings its program. A program that several switches run
/// is compiled once. Errors name the switch, and the file with the place.
pub fn desired_of_all(topology: &Topology) -> Vec<Result<Option<Desired>, CtrlError>> {
    let mut known = Programs::new();
    (0..topology.switches.len()).map(|at| desired_with(topology, at, &mut known)).collect()
}

/// Programs that have been compiled, by path, and whether they are for BMv2.
type Programs = BTreeMap<(PathBuf, bool), Program>;

fn desired_with(topology: &Topology, n: usize, known: &mut Programs) -> Result<Option<Desired>, CtrlError> {
    let switch = &topology.switches[n];
    let at = |error: String| CtrlError::Program(format!("{}: {error}", switch.name));
    let path = match &switch.runs {
        Runs::Nothing => return Ok(None),
        Runs::Rack(_, rack) => {
            let target = match switch.target {
                Target::Bmv2 => rack::Target::Bmv2,
                Target::Embedded | Target::Tofino => rack::Target::Embedded,
            };
            let is_for_tofino = switch.target == Target::Tofino;
            let made = match is_for_tofino {
                true => Desired::for_tofino(rack, rack.scheme(), None),
                false => Desired::of_rack(rack, rack.scheme(), target, None, Compiler::Own),
            };
            return made.map(Some).map_err(|error| at(error.to_string()));
        }
        Runs::Program(path) => path,
    };
    let key = (path.clone(), switch.target == Target::Bmv2);
    let program = match known.get(&key) {
        Some(program) => program.clone(),
        None => {
            let loaded = match switch.target {
                Target::Bmv2 => Program::load_for_bmv2(path),
                Target::Embedded | Target::Tofino => Program::load(path),
            };
            let program = loaded.map_err(|error| at(error.to_string()))?;
            known.insert(key, program.clone());
            program
        }
    };
    if switch.target == Target::Tofino && !program.arch.is_tofino() {
        let (file, name) = (path.display(), &switch.name);
        let message = format!("{name}'s target is tofino, and {file} is written for {}", program.arch);
        let help = "name a program for tna or t2na, or write target = \"embedded\"";
        return Err(CtrlError::Input(topology.mistake_of_switch(n, "target", message, help).to_string()));
    }
    let desired = of_program(program, switch.entries.as_deref()).map_err(|error| at(error.to_string()))?;
    Ok(Some(Desired { is_whole: true, ..desired }))
}

/// The desired state for a program and a file with its entries. Errors name the file, with the place.
pub fn of_program(program: Program, entries: Option<&Path>) -> Result<Desired, CtrlError> {
    let name = program_name(&program.p4info).unwrap_or_else(|| NAMELESS.to_owned());
    let bfrt = program.bf_rt.map(|bf_rt| BfrtProgram { name, bf_rt, ..Default::default() });
    let mut desired =
        Desired { bfrt, ..Desired::new(program.p4info, program.text.into_bytes(), Vec::new())? };
    if let Some(file) = entries {
        desired.entities = entries_of(file, &desired.schema)?;
    }
    Ok(desired)
}

/// The entries of a file. Errors name it, with the place.
pub fn entries_of(file: &Path, schema: &Schema) -> Result<Vec<Entity>, CtrlError> {
    let in_file = |error: String| CtrlError::Input(format!("{}: {error}", file.display()));
    let text = text::read(file).map_err(|error| match error.kind() {
        ErrorKind::InvalidData => {
            in_file("is no text; give a file with entries (docs/topology.md)".to_owned())
        }
        _ => in_file(error.to_string()),
    })?;
    let name = file.display().to_string();
    if let Some(mistaken) = Kind::no_entries(&text, &name) {
        return Err(CtrlError::Input(mistaken));
    }
    if name.ends_with(".json") && !text.trim_start().starts_with('{') {
        return Err(in_file(
            "is no JSON; expected a sN-runtime.json of the P4 tutorials, with table_entries".to_owned(),
        ));
    }
    let each_line = |error: CtrlError| {
        let lines: Vec<String> =
            error.to_string().lines().map(|line| format!("{}: {line}", file.display())).collect();
        CtrlError::Input(lines.join("\n"))
    };
    entries::read(&text, schema).map_err(each_line)
}

/// Updates that bring a switch which has just got its program to what it should hold, in an order in which each is valid.
pub fn updates(desired: &Desired) -> Vec<Update> {
    phases(desired).concat()
}

/// The same, in phases: each needs the one before it.
fn phases(desired: &Desired) -> Vec<Vec<Update>> {
    let entities = changes(&desired.entities, Vec::new()).phases.into_iter();
    entities.chain([desired.initial_cells()]).collect()
}

/// Installs a program on a switch that has none, and all its entries, in one transaction where the switch has that. Returns
/// their number.
pub async fn install(desired: &Desired, target: ConnectOptions) -> Result<usize, CtrlError> {
    let mut session = Session::connect(target).await?;
    session.set_pipeline(desired.config.clone()).await?;
    let phases = phases(desired);
    let phases: Vec<&[Update]> = phases.iter().map(Vec::as_slice).collect();
    session.write_together(&desired.schema, &phases).await?;
    Ok(phases.iter().map(|phase| phase.len()).sum())
}
