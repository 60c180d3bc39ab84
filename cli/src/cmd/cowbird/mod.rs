//! `p4rack cowbird`.

mod bench;
mod engine;
mod hash;
mod in_switch;
mod store;
mod switch;
mod verify;

use std::process::ExitCode;

/// Note of comparisons of ways on their adapters.
const NO_ICRC: &str = "no adapter checked iCRCs, which a switch that rewrites frames can't compute";

/// Arguments of `p4rack cowbird`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand, Debug)]
enum Command {
    /// Serve the rings of compute nodes: the offload engine on a spare host
    ///
    /// Prints a line "ready …" when compute nodes can connect, and its counters when SIGTERM or SIGINT ends it.
    Engine(Box<engine::Args>),
    /// Have the switch of a rack serve the rings of compute nodes: the offload engine in its program
    ///
    /// Deploys the rack without sets, and installs those that compute nodes request over P4Runtime. Prints a line
    /// "ready …" when they can connect, and its counters when SIGTERM or SIGINT ends it.
    Switch(Box<switch::Args>),
    /// Read and write a pool through an engine at random, and check every byte that comes back
    ///
    /// The compute node with all of its threads. The pool needs --reserve. Prints a line "ready …" when an engine serves it.
    Verify(Box<verify::Args>),
    /// Measure a thread's processor time for each operation: issuing it and fetching its response
    ///
    /// Compares it, in the same run, with a queue like that of RDMA verbs: lock, fences and doorbell, in ordinary
    /// memory. A real doorbell costs more.
    Bench(bench::Args),
    /// Look up keys whose records are in remote memory: Cowbird beside RDMA and beside local memory
    ///
    /// The paper's hash-index probe on real packets, between namespaces of this machine: compute node, engine and pool.
    Hash(hash::Args),
    /// Run YCSB on a key-value store whose older records are in remote memory: Cowbird beside RDMA and beside local memory
    ///
    /// A log in FASTER's manner: new records in local memory, the rest in the pool, on real packets between namespaces of this
    /// machine. Every value that comes back is checked.
    Store(store::Args),
}

/// Runs the command.
pub fn run(args: Args) -> ExitCode {
    let done = match args.command {
        Command::Engine(args) => engine::run(*args),
        Command::Switch(args) => switch::run(*args),
        Command::Verify(args) => verify::run(*args),
        Command::Bench(args) => {
            bench::run(&args);
            Ok(())
        }
        Command::Hash(args) => hash::run(&args),
        Command::Store(args) => store::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
