//! `p4rack sim`: racks and topologies in virtual time.

mod faults;
mod files;
mod hostile;
mod kinds;
mod merge;
mod network;
mod report;
mod run;
mod shown;
mod sweep;
pub mod threads;

use p4rack_codegen::kind::Kind;
use p4rack_codegen::text;
use std::io::ErrorKind;
use std::path::Path;
use std::process::ExitCode;

/// Arguments of `p4rack sim`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand, Debug)]
enum Command {
    /// Run one experiment: p4rack sim run examples/paper/pl2/fig9-incast.toml; or try a topology: p4rack sim run examples/pod/pod.toml
    Run(run::RunArgs),
    /// Run an experiment with many parameters and seeds on all cores; resumes where it was stopped
    Sweep(sweep::SweepArgs),
    /// EDM or Clio under faults: many seeds of lost, late and damaged frames, dead nodes, switches and boards that start again
    ///
    /// Every operation on remote memory is checked: an order must explain all results, each must end, atomic operations
    /// must be done once, and all frames must be accounted for. Of Clio, locks and calls of the store are checked, too,
    /// and the memory of ended processes.
    Faults(faults::FaultsArgs),
    /// Merge a folder of results into one CSV table
    Merge(merge::MergeArgs),
    /// Render a folder of results as one HTML page
    Report(report::ReportArgs),
}

/// Exit code for usage errors.
const USAGE: u8 = 2;

/// Runs it: 0 success, 1 a check failed, 2 the file is invalid.
pub fn run(args: Args) -> ExitCode {
    let done = match args.command {
        Command::Run(args) => run_file(&args),
        Command::Sweep(args) => sweep_file(&args),
        Command::Faults(args) => faults::faults(&args),
        Command::Merge(args) => merge::merge(&args),
        Command::Report(args) => report::report(&args),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(USAGE)
        }
    }
}

/// Runs an experiment of any kind.
fn run_file(args: &run::RunArgs) -> Result<bool, String> {
    let help = "give the path of an experiment, e.g. examples/paper/pl2/fig9-incast.toml";
    let (text, name) = read(&args.file, help)?;
    if matches!(Kind::of_file(&text, &args.file), Some(Kind::Topology | Kind::Json)) {
        return kinds::pings(args, &name);
    }
    refuse_others(&text, &name, Kind::Experiment)?;
    (kinds::of_file(&text, &name)?.run)(args, &text, &name)
}

/// Runs a sweep of experiments of any kind: that of the experiment that it varies.
fn sweep_file(args: &sweep::SweepArgs) -> Result<bool, String> {
    let (text, name) = read(&args.file, "give the path of a sweep, e.g. examples/paper/pl2/fig9-sweep.toml")?;
    refuse_others(&text, &name, Kind::Sweep)?;
    // A base that is missing is reported when it is read with the sweep.
    let base = sweep::base_path(&args.file, &text);
    let of_base = text::read(&base).unwrap_or_default();
    let base = base.display().to_string();
    refuse_others(&of_base, &base, Kind::Experiment).map_err(|error| format!("{name}: base: {error}"))?;
    (kinds::of_file(&of_base, &base)?.sweep)(args, &text, &name)
}

/// Text and name of a file.
fn read(file: &Path, help: &str) -> Result<(String, String), String> {
    let name = file.display().to_string();
    match text::read(file) {
        Ok(text) => Ok((text, name)),
        Err(error) if error.kind() == ErrorKind::InvalidData => Err(format!("{name}: is no text; {help}")),
        Err(error) => Err(format!("{name}: can't be read: {error}; {help}")),
    }
}

fn refuse_others(text: &str, name: &str, wanted: Kind) -> Result<(), String> {
    Kind::mistaken(text, name, wanted).map_or(Ok(()), Err)
}
