//! `p4rack cowbird`.

mod bench;
mod engine;
mod hash;
mod verify;

use std::process::ExitCode;

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
    /// Prints a line "ready …" when compute nodes can connect, and what it did when SIGTERM or SIGINT ends it.
    Engine(Box<engine::Args>),
    /// Read and write a pool through an engine at random, and check every byte that comes back
    ///
    /// The compute node with all of its threads. The pool needs --reserve. Prints a line "ready …" when an engine serves it.
    Verify(Box<verify::Args>),
    /// Processor time that a thread spends for each operation: issuing it and fetching its response
    ///
    /// Beside it, in the same run, a queue as RDMA verbs have it: lock, fences and doorbell, in ordinary memory.
    /// A real doorbell costs more.
    Bench(bench::Args),
    /// Look up keys whose records are in remote memory: Cowbird beside RDMA and beside local memory
    ///
    /// The paper's hash-index probe on real packets, between namespaces of this machine: compute node, engine and pool.
    Hash(hash::Args),
}

/// Runs the command.
pub fn run(args: Args) -> ExitCode {
    let done = match args.command {
        Command::Engine(args) => engine::run(*args),
        Command::Verify(args) => verify::run(*args),
        Command::Bench(args) => {
            bench::run(&args);
            Ok(())
        }
        Command::Hash(args) => hash::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
