//! `p4rack compat`: commands with the names and options of p4c and BMv2, for scripts that start these.
//!
//! ```text
//!  tips                  errors of the parser, in words that fit the imitated program
//!  p4c, p4c-bm2-ss ─ p4c ─────▶ p4 compile
//!  simple_switch, _grpc ─ switch ─▶ the daemon ─ P4Runtime
//!                           ├─ packets ─ the log
//!                           └─ runtime ─ commands on the Thrift port ◀─ client ─ simple_switch_CLI
//! ```

mod client;
mod editor;
mod install;
mod p4c;
mod packets;
mod runtime;
mod switch;
mod target;
mod tips;

use clap::{Args as _, CommandFactory};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Mutex;
use tips::{has, with_tip};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::writer::BoxMakeWriter;

/// Arguments of `p4rack compat`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand, Debug)]
enum Command {
    /// Put p4c, p4c-bm2-ss, simple_switch, simple_switch_grpc and simple_switch_CLI into a folder
    Install(install::Args),
    /// Compile as the driver p4c does for BMv2: to FILE.json and FILE.p4i in a folder
    #[command(name = "p4c")]
    P4c(p4c::Args),
    /// Compile as p4c-bm2-ss does: to BMv2's JSON and a P4Info
    #[command(name = "p4c-bm2-ss")]
    P4cBm2Ss(p4c::Args),
    /// Run the embedded switch with the options of simple_switch
    #[command(name = "simple_switch")]
    SimpleSwitch(switch::Args),
    /// Run the embedded switch with the options of simple_switch_grpc
    #[command(name = "simple_switch_grpc")]
    SimpleSwitchGrpc(switch::Args),
    /// Take simple_switch_CLI's commands, from a prompt or standard input, to a switch that simple_switch or simple_switch_grpc has started
    #[command(name = "simple_switch_CLI")]
    SimpleSwitchCli(client::Args),
}

/// Destination and lowest level of a switch's log.
#[derive(Debug)]
pub struct Log<'a> {
    /// The file; standard output without one.
    pub file: Option<&'a Path>,
    /// The lowest level.
    pub level: LevelFilter,
}

impl Log<'_> {
    /// Its destination.
    pub fn writer(&self) -> Result<BoxMakeWriter, String> {
        Ok(match self.file {
            Some(path) => BoxMakeWriter::new(Mutex::new(packets::log_file(path)?)),
            None => BoxMakeWriter::new(std::io::stdout),
        })
    }
}

impl Args {
    /// The log that the options ask for.
    pub fn log(&self) -> Option<Log<'_>> {
        match &self.command {
            Command::SimpleSwitch(args) | Command::SimpleSwitchGrpc(args) => args.log(),
            _ => None,
        }
    }

    /// Name of the process: that of the command in whose place it runs.
    pub fn process_name(&self) -> &'static str {
        match &self.command {
            Command::Install(_) => "p4rack",
            Command::P4c(_) => "p4c",
            Command::P4cBm2Ss(_) => "p4c-bm2-ss",
            Command::SimpleSwitch(_) => "simple_switch",
            Command::SimpleSwitchGrpc(_) => "simple_switch_grpc",
            Command::SimpleSwitchCli(_) => "simple_switch_CLI",
        }
    }
}

/// An error in the arguments of `p4rack`, if these are of a command that stands in for another.
pub fn fitting(error: clap::Error) -> clap::Error {
    let name = std::env::args().skip_while(|word| word != "compat").nth(1).unwrap_or_default();
    match name.as_str() {
        "simple_switch" | "simple_switch_grpc" => with_tip(error, |option| {
            let target = target::TargetArgs::command();
            has(&target, option).then(|| {
                format!("{option} is an option of the target: give it after `--`, as in `{name} FILE -- {option} …`")
            })
        }),
        "p4c" | "p4c-bm2-ss" => with_tip(error, |option| {
            let known = p4c::Args::augment_args(clap::Command::new("p4c"));
            (!has(&known, option)).then(|| {
                format!("`{name} --help` lists the options that are there; leave {option} out if the result does not need it")
            })
        }),
        "simple_switch_CLI" => with_tip(error, |_| None),
        _ => error,
    }
}

/// Runs the command.
pub fn run(args: Args) -> ExitCode {
    match args.command {
        Command::Install(args) => install::run(&args),
        Command::P4c(args) => p4c::driver(args),
        Command::P4cBm2Ss(args) => p4c::compiler(args),
        Command::SimpleSwitch(args) => switch::run(args, false),
        Command::SimpleSwitchGrpc(args) => switch::run(args, true),
        Command::SimpleSwitchCli(args) => client::run(&args),
    }
}
