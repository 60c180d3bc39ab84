//! `p4rack far`: programs whose large allocations lie in remote memory.

mod bench;
mod library;
mod program;
mod report;
mod run;
mod source;
mod top;
mod view;

use std::process::ExitCode;

/// Arguments of `p4rack far`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand, Debug)]
enum Command {
    /// Run a program with its large allocations in remote memory
    ///
    /// The program is not changed: a library is loaded with it. It needs userfaultfd, a program that is dynamically
    /// linked, and one process: processes that the program forks or executes have no far memory. Signals are passed on,
    /// and its exit status is the command's.
    Run(Box<run::Args>),
    /// Compare a Redis server under YCSB in near memory, in far memory and with swap, and the same records in a region
    ///
    /// Starts all servers on this machine. Swap goes to a zram device, with a limit of memory by a cgroup; both are this command's own and are
    /// removed at the end. They need root; without them the other rows are measured.
    Bench(bench::Args),
    /// Watch programs with far memory: faults, where pages come from, bytes both ways, local memory
    Top(top::Args),
}

/// Runs the command.
pub fn run(args: Args) -> ExitCode {
    let done = match args.command {
        Command::Run(args) => run::run(*args),
        Command::Bench(args) => bench::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Top(args) => top::run(&args).map(|()| ExitCode::SUCCESS),
    };
    done.unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::FAILURE
    })
}
