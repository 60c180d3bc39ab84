//! Programs and entries of a topology's switches: what each should hold, and bringing it there as a whole.

use crate::bmv2::Compiler;
use crate::connect::ConnectOptions;
use crate::desired::BfrtProgram;
pub use crate::desired::Desired;
use crate::entries;
use crate::error::CtrlError;
use crate::reconcile::changes;
use crate::session::Session;
use p4rack_codegen::rack;
use p4rack_codegen::topology::{Program, Runs, Switch, Target};
use p4rack_p4rt::p4::v1::Update;
use p4rack_p4rt::schema::{NAMELESS, program_name};

/// What a switch should hold; `None` if a controller brings its program. Errors name the switch, and the file with the place.
pub fn desired(switch: &Switch) -> Result<Option<Desired>, CtrlError> {
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
    let program = match switch.target {
        Target::Bmv2 => Program::load_for_bmv2(path),
        Target::Embedded | Target::Tofino => Program::load(path),
    };
    let program = program.map_err(|error| at(error.to_string()))?;
    if switch.target == Target::Tofino && !program.arch.is_tofino() {
        let arch = program.arch;
        return Err(at(format!(
            "{} is written for {arch}, and the switch's target is tofino",
            path.display()
        )));
    }
    let name = program_name(&program.p4info).unwrap_or_else(|| NAMELESS.to_owned());
    let bfrt = program.bf_rt.map(|bf_rt| BfrtProgram { name, bf_rt, ..Default::default() });
    let mut desired =
        Desired { bfrt, ..Desired::new(program.p4info, program.text.into_bytes(), Vec::new())? };
    if let Some(file) = &switch.entries {
        let in_file = |error: String| at(format!("{}: {error}", file.display()));
        let text = std::fs::read_to_string(file).map_err(|error| in_file(error.to_string()))?;
        desired.entities =
            entries::read(&text, &desired.schema).map_err(|error| in_file(error.to_string()))?;
    }
    Ok(Some(desired))
}

/// Installs a program on a switch that has none, and all its entries in one transaction. Returns their number.
pub async fn install(desired: &Desired, target: ConnectOptions) -> Result<usize, CtrlError> {
    let mut session = Session::connect(target).await?;
    session.set_pipeline(desired.config.clone()).await?;
    let mut updates: Vec<Update> =
        changes(&desired.entities, Vec::new()).phases.into_iter().flatten().collect();
    updates.extend(desired.initial_cells());
    if !updates.is_empty() {
        session.write_whole(&desired.schema, &updates).await?;
    }
    Ok(updates.len())
}
