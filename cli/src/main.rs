//! The command `p4rack`: parses arguments, calls the crates and prints.
//!
//! Exit codes of all commands: 0 success; 1 rejected input, a broken promise or a result that could not be
//! written; 2 usage error; 3 internal error; 141 the reader of the output is gone.

#[macro_use]
mod output;
mod allocator;
mod cmd;
mod numbers;

use clap::{CommandFactory, Parser, Subcommand};
use std::process::ExitCode;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::writer::BoxMakeWriter;
use tracing_subscriber::prelude::*;

#[global_allocator]
static ALLOCATOR: allocator::Allocator = allocator::Allocator;

/// Networks for disaggregated racks: generates the switch's P4 program, installs it, runs the hosts.
///
/// Start with `p4rack up examples/pl2-incast.toml`: it builds the described rack out of network
/// namespaces on this machine, runs an incast, and compares plain switching with PL2.
#[derive(Parser, Debug)]
#[command(name = "p4rack", version, propagate_version = true, max_term_width = 100)]
struct Cli {
    /// Format of log lines on standard error: text or json; P4RACK_LOG sets the level
    #[arg(long, global = true, default_value = "text", value_parser = ["text", "json"], hide_default_value = true)]
    log_format: String,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Build a rack on this machine, run its workload under each scheme and report; or build a topology of several switches
    Up(cmd::up::UpArgs),
    /// Run a command on a host of a rack or topology that `up --keep` left running
    Exec(cmd::up::ExecArgs),
    /// End a rack or topology that `up --keep` left running
    Down(cmd::up::DownArgs),
    /// Run an exercise of the P4 tutorials, or another topology, with a prompt like Mininet's
    Lab(cmd::topology::LabArgs),
    /// Check and explain rack descriptions
    Rack(cmd::rack::Args),
    /// Write the P4 program, table entries, P4Info and constants of a rack, or of each switch of a topology
    Generate(cmd::generate::Args),
    /// Check P4 programs, print their P4Info, preprocess them
    P4(cmd::p4::Args),
    /// Run the embedded P4 switch
    Switch(cmd::switch::Args),
    /// Control a running switch's packet generators
    Generator(cmd::generator::Args),
    /// Queues of a switch's ports over BFRuntime: list, set, reset
    Queue(cmd::queue::Args),
    /// Install the program and entries of a rack, or of each switch of a topology, over P4Runtime or BFRuntime
    Deploy(Box<cmd::deploy::Args>),
    /// Serve P4Runtime for a switch that speaks BFRuntime, as Tofino's driver does
    Gateway(cmd::gateway::Args),
    /// Table entries on a switch: list, read, watch, insert, modify, write, delete, apply
    Table(cmd::entity::table::Args),
    /// Counters on a switch: list, read, watch, write
    Counter(cmd::entity::cells::CounterArgs),
    /// Meters on a switch: list, read, write, delete
    Meter(cmd::entity::cells::MeterArgs),
    /// Registers on a switch: list, read, watch, write
    Register(cmd::entity::cells::RegisterArgs),
    /// Action profiles, multicast groups, clone sessions, value sets on a switch
    Group(cmd::entity::group::Args),
    /// Digests of a program: list, read, write, delete, watch
    Digest(cmd::entity::stream::DigestArgs),
    /// Packet-in and packet-out: list, send, watch
    Packet(cmd::entity::stream::PacketArgs),
    /// Watch a switch: rates, queues, reservations, drops
    Top(cmd::top::Args),
    /// Run the agent of one host
    Host(cmd::host::Args),
    /// Offer memory to the rack and use that of other hosts by any way: TCP, RDMA, EDM, Cowbird, Clio
    Memory(cmd::memory::Args),
    /// Read and reset PL2's reservations on a running switch
    Pl2(cmd::pl2::Args),
    /// Soft-RoCE: RDMA in user space. Serve memory, access it by hand, measure
    Roce(cmd::roce::Args),
    /// Cowbird: remote memory by loads and stores. Serve rings, verify, measure the cost for a thread
    Cowbird(cmd::cowbird::Args),
    /// Clio: remote memory with virtual addresses over UDP. Serve a board, manage its memory, use its store and offloads, verify
    Clio(cmd::clio::Args),
    /// A pool of several boards: lend extents to compute nodes with leases, list, reserve, release
    Balloon(cmd::balloon::Args),
    /// Traces of memory accesses: record a program's, show, convert, make synthetic ones
    Trace(cmd::trace::Args),
    /// Caches of remote memory: run policies on a trace and compare their costs
    Cache(cmd::cache::Args),
    /// Run unmodified programs with their large allocations in remote memory, and watch them
    Far(cmd::far::Args),
    /// Simulate a rack in virtual time: the generated P4 and the hosts' state machines under one clock
    Sim(cmd::sim::Args),
    /// Check installed requirements, and show how to get missing ones
    Doctor(cmd::doctor::Args),
    /// Run a rack or topology as a Mininet network
    Mininet(cmd::mininet::Args),
    /// Stand in for p4c and BMv2 where scripts start these: commands with their names and options
    Compat(cmd::compat::Args),
    /// Benchmarks on this machine
    Bench(cmd::bench::Args),
    /// Print a table of all commands, as Markdown
    Commands,
    /// Print a completion script for a shell
    Completions {
        /// Name of the shell
        shell: clap_complete::Shell,
    },
    /// Traffic programs that `up` starts on its hosts
    #[command(hide = true)]
    Workload(cmd::workload::WorkloadArgs),
}

fn main() -> ExitCode {
    allocator::start();
    clap_complete::CompleteEnv::with_factory(Cli::command).complete();
    let Cli { log_format, command } = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return output::usage(&cmd::compat::fitting(error)),
    };
    p4rack_lab::sys::set_process_name(&command.process_name());
    let switch_log = match &command {
        Command::Compat(args) => args.log(),
        _ => None,
    };
    if let Err(error) = log(&log_format, switch_log) {
        eprintln!("error: {error}");
        return ExitCode::FAILURE;
    }
    output::set_json_lines(log_format == "json");
    // A bug of this program has its own exit code; the panic message has been printed.
    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(command)));
    output::finish(done.unwrap_or_else(|_| ExitCode::from(3)))
}

/// Logs what P4RACK_LOG asks for, `warn`, or levels by target, to standard error. A switch in BMv2's place may have a file, or
/// standard output, and a level for all that p4rack logs.
fn log(format: &str, switch: Option<cmd::compat::Log<'_>>) -> Result<(), String> {
    let asked = std::env::var("P4RACK_LOG").ok().and_then(|targets| targets.parse().ok());
    let usual = Targets::new().with_default(LevelFilter::WARN);
    let filter: Targets = asked.unwrap_or_else(|| match &switch {
        Some(log) => usual.with_target("p4rack", log.level),
        None => usual,
    });
    let (writer, is_terminal) = match &switch {
        Some(log) => (log.writer()?, false),
        None => (BoxMakeWriter::new(std::io::stderr), std::io::IsTerminal::is_terminal(&std::io::stderr())),
    };
    let lines = tracing_subscriber::fmt::layer().with_writer(writer).with_ansi(is_terminal);
    // Otherwise a closed standard error would be reported there.
    let lines = lines.log_internal_errors(false);
    match format {
        "json" => tracing_subscriber::registry().with(lines.json().with_filter(filter)).init(),
        _ => tracing_subscriber::registry().with(lines.with_filter(filter)).init(),
    }
    Ok(())
}

impl Command {
    /// Name in `ps` and `top`: which part of a rack this process is. The kernel keeps 15 bytes.
    fn process_name(&self) -> String {
        let role = match self {
            Command::Switch(_) => Some("switch"),
            Command::Host(args) => Some(args.name()),
            Command::Workload(args) => Some(args.name()),
            // Scripts end it by this name.
            Command::Compat(args) => return args.process_name().to_owned(),
            _ => None,
        };
        role.map_or_else(|| "p4rack".to_owned(), |role| format!("p4rack {role}"))
    }
}

fn run(command: Command) -> ExitCode {
    match command {
        Command::Up(args) => cmd::up::up(args),
        Command::Exec(args) => cmd::up::exec(args),
        Command::Down(args) => cmd::up::down(args),
        Command::Lab(args) => cmd::topology::lab(args),
        Command::Workload(args) => cmd::workload::workload(args),
        Command::Rack(args) => cmd::rack::run(args),
        Command::Generate(args) => cmd::generate::run(args),
        Command::P4(args) => cmd::p4::run(args),
        Command::Switch(args) => cmd::switch::run(args),
        Command::Generator(args) => cmd::generator::run(args),
        Command::Queue(args) => cmd::queue::run(args),
        Command::Deploy(args) => cmd::deploy::run(*args),
        Command::Gateway(args) => cmd::gateway::run(args),
        Command::Table(args) => cmd::entity::table::run(args),
        Command::Counter(args) => cmd::entity::cells::counter(args),
        Command::Meter(args) => cmd::entity::cells::meter(args),
        Command::Register(args) => cmd::entity::cells::register(args),
        Command::Group(args) => cmd::entity::group::run(args),
        Command::Digest(args) => cmd::entity::stream::digest(args),
        Command::Packet(args) => cmd::entity::stream::packet(args),
        Command::Top(args) => cmd::top::run(args),
        Command::Host(args) => cmd::host::run(args),
        Command::Memory(args) => cmd::memory::run(args),
        Command::Pl2(args) => cmd::pl2::run(args),
        Command::Roce(args) => cmd::roce::run(args),
        Command::Cowbird(args) => cmd::cowbird::run(args),
        Command::Clio(args) => cmd::clio::run(args),
        Command::Balloon(args) => cmd::balloon::run(args),
        Command::Trace(args) => cmd::trace::run(args),
        Command::Cache(args) => cmd::cache::run(args),
        Command::Far(args) => cmd::far::run(args),
        Command::Sim(args) => cmd::sim::run(args),
        Command::Doctor(args) => cmd::doctor::run(args),
        Command::Mininet(args) => cmd::mininet::run(args),
        Command::Compat(args) => cmd::compat::run(args),
        Command::Bench(args) => cmd::bench::run(args),
        Command::Commands => {
            print!("{}", cmd::commands::markdown(Cli::command()));
            ExitCode::SUCCESS
        }
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "p4rack", &mut script);
            output::write_bytes(&script);
            ExitCode::SUCCESS
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// clap only checks command definitions for contradictions when asked.
    #[test]
    fn commands_are_described_without_contradiction() {
        Cli::command().debug_assert();
    }
}
