//! `p4rack sim`: racks in virtual time.

mod columns;
mod cowbird;
mod faults;
mod files;
mod hostile;
mod memory;
mod report;
mod run;
mod sweep;
pub mod threads;

use std::process::ExitCode;

/// Arguments of `p4rack sim`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand, Debug)]
enum Command {
    /// Run one experiment: p4rack sim run examples/paper/pl2/fig9-incast.toml
    Run(run::RunArgs),
    /// Run an experiment with many parameters and seeds on all cores; resumes where it was stopped
    Sweep(sweep::SweepArgs),
    /// EDM under faults: many seeds of lost, late and damaged frames, dead nodes and switches that start again
    ///
    /// Every operation on remote memory is checked: an order must explain what all of them said, each must end, atomic
    /// operations must be done once, and all frames must be accounted for.
    Faults(faults::FaultsArgs),
    /// Merge a folder of results into one CSV table
    Merge(sweep::MergeArgs),
    /// Render a folder of results as one HTML page
    Report(report::ReportArgs),
}

/// Exit code for usage errors.
const USAGE: u8 = 2;

/// Runs it: 0 success, 1 a check failed, 2 the file is invalid.
pub fn run(args: Args) -> ExitCode {
    let done = match args.command {
        Command::Run(args) => first(&[memory::run, cowbird::run], run::run, &args),
        Command::Sweep(args) => first(&[memory::sweep, cowbird::sweep], sweep::sweep, &args),
        Command::Faults(args) => faults::faults(&args),
        Command::Merge(args) => sweep::merge(&args),
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

/// What is done with files of one kind of racks; none: it is of another kind.
type OfOneKind<A> = fn(&A) -> Result<Option<bool>, String>;

/// Does what the first of these kinds of racks does with a file, or what is done with all others.
fn first<A>(
    kinds: &[OfOneKind<A>],
    others: fn(&A) -> Result<bool, String>,
    args: &A,
) -> Result<bool, String> {
    for kind in kinds {
        if let Some(done) = kind(args)? {
            return Ok(done);
        }
    }
    others(args)
}
