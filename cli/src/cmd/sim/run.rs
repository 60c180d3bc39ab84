//! `p4rack sim run`: runs one experiment of any kind.

use super::network::Shared;
use super::shown::{RunOptions, Shown};
use crate::cmd::settings::Settings;
use crate::output::OutputFile;
use serde::Serialize;
use serde_json::{Value, json};
use std::path::PathBuf;

/// Arguments of `p4rack sim run`.
#[derive(clap::Args, Debug)]
pub struct RunArgs {
    /// The experiment (docs/sim.md lists its fields)
    pub file: PathBuf,
    #[command(flatten)]
    pub settings: Settings,
    /// Print the results as JSON, or write them to a file
    #[arg(long, value_name = "OUT", num_args = 0..=1, require_equals = true)]
    pub json: Option<Option<PathBuf>>,
    #[command(flatten)]
    pub options: RunOptions,
}

/// The result of a run without a sweep, as in its file.
#[derive(Serialize)]
struct RunResult<'a, O: Serialize> {
    kind: &'static str,
    #[serde(flatten)]
    outcome: &'a O,
}

/// Runs an experiment of one kind, whose text was read from the file. Returns whether all checks passed.
pub fn run_kind<E: Shown>(args: &RunArgs, text: &str, name: &str) -> Result<bool, String> {
    let experiment = E::parse_set(text, name, &args.settings.set).map_err(|error| error.to_string())?;
    run_parsed(args, experiment, name)
}

/// Runs an experiment of one kind that has been read from the file called `name`.
pub fn run_parsed<E: Shown>(args: &RunArgs, mut experiment: E, name: &str) -> Result<bool, String> {
    if let Some(seed) = args.options.seed {
        experiment.set_seed(seed);
    }
    let experiment = experiment.complete(&args.file, &mut Shared::default())?;
    experiment.check_options(&args.options)?;
    let json = match &args.json {
        Some(Some(path)) => Some(OutputFile::open("--json", path)?),
        _ => None,
    };
    let mut outcome = experiment.run_for(&args.options, name)?;
    if args.options.twice {
        let first = json!(outcome);
        let again = experiment.run().map_err(|error| format!("{name}: {error}"))?;
        let again = json!(again);
        if again != first {
            E::problems(&mut outcome).push(match (&first["digest"], &again["digest"]) {
                (Value::String(first), Value::String(again)) => {
                    format!("a second run differs: {first} and {again}")
                }
                _ => "a second run differs".to_owned(),
            });
        }
    }
    let result = RunResult { kind: E::NAME, outcome: &outcome };
    let pretty = serde_json::to_string_pretty(&result).expect("structs of numbers and names are JSON");
    if let Some(file) = json {
        file.write(pretty.as_bytes())?;
    }
    match &args.json {
        Some(None) => println!("{pretty}"),
        Some(Some(_)) => {}
        None => print!("{}", E::text(&outcome)),
    }
    let problems = E::problems(&mut outcome);
    for problem in problems.iter() {
        eprintln!("check failed: {problem}");
    }
    Ok(problems.is_empty())
}
