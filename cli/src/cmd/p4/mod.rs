//! `p4rack p4`: checks, runs and compares P4 programs.

mod against_bmv2;
mod compile;
mod compiler;
mod fit;
pub mod install;
mod run;
mod samples;
mod source;
mod stf;

use crate::output::{self, OutputFile};
use p4rack_p4::arch::{how_to_port, main_packages, supported};
use p4rack_p4::{Accepted, Diagnostics};
use p4rack_p4rt::p4::config::v1::P4Info;
use p4rack_p4rt::text::TextMessage;
use source::USAGE;
pub use source::definition;
pub(super) use source::refuse;
pub(super) use source::tell;
pub(super) use source::{Source, check_program};
use std::path::PathBuf;
use std::process::ExitCode;

/// Arguments of `p4rack p4`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand, Debug)]
enum Command {
    /// Check a program and summarise its declarations
    Check {
        #[command(flatten)]
        source: Source,
        /// Print errors and warnings as a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Print a program's P4Info
    Info {
        #[command(flatten)]
        source: Source,
        /// Output file [default: standard output]
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Format of the P4Info
        #[arg(long, value_enum, default_value_t = Format::Text)]
        format: Format,
    },
    /// Compile a program for v1model to the JSON that BMv2's simple_switch loads
    #[command(after_help = compile::EXAMPLES)]
    Compile {
        #[command(flatten)]
        source: Source,
        #[command(flatten)]
        options: compile::Options,
    },
    /// Install a program and entries on a running switch, and keep the switch's entries that still fit
    #[command(after_help = install::EXAMPLES)]
    Install {
        #[command(flatten)]
        source: Source,
        #[command(flatten)]
        options: Box<install::Options>,
    },
    /// Print a TNA program's interface for BFRuntime (bf-rt.json)
    BfrtInfo {
        #[command(flatten)]
        source: Source,
        /// Output file [default: standard output]
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Estimate whether a program for TNA fits into the chip: stages, memories, rules that it breaks
    Fit {
        #[command(flatten)]
        source: Source,
        #[command(flatten)]
        options: fit::Options,
    },
    /// Run a program against a file of p4c's simple test framework
    Stf {
        #[command(flatten)]
        source: Source,
        /// STF file with packets, entries and expected frames
        stf: PathBuf,
        /// Value of `egress_spec` that means "drop", 1 to 511
        #[arg(long, default_value_t = p4rack_stf::DROP_PORT, value_name = "PORT",
            value_parser = crate::numbers::within::<u16>(1..512))]
        drop_port: u16,
        /// Print how each packet passes: states, tables with keys, entry and action, registers, headers at the end, ports; or
        /// only packets that something else was expected of
        #[arg(long, value_enum, value_name = "PACKETS", num_args = 0..=1, default_missing_value = "all", require_equals = true)]
        trace: Option<stf::Shown>,
    },
    /// Run a program on captures, in simulated time
    Run {
        #[command(flatten)]
        source: Source,
        #[command(flatten)]
        run: self::run::Options,
    },
    /// Print a program with includes and macros resolved
    Preprocess {
        #[command(flatten)]
        source: Source,
        /// Output file [default: standard output]
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Check this compiler against a folder of sample programs with known results
    Samples(samples::Args),
}

/// How a P4Info is written.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// Protobuf text format (.p4info.txtpb)
    Text,
    /// Protobuf wire format
    Binary,
}

/// Runs the command.
pub fn run(args: Args) -> ExitCode {
    match args.command {
        Command::Samples(args) => samples::run(args),
        Command::Check { source, json } => source.checked(|name, result| check(name, result, json)),
        Command::Compile { source, options } => compile::run(&source, options),
        Command::Install { source, options } => install::run(&source, *options),
        Command::Info { source, output, format } => with_output(output, |write| {
            source.checked(|name, result| match result {
                // Nothing to control.
                Ok(accepted @ Accepted::Types { main: None, .. }) => {
                    tell(accepted.warnings());
                    write(&encode(&accepted.into_p4info(), format))
                }
                Ok(Accepted::Types { warnings, .. }) => {
                    tell(&warnings);
                    eprintln!(
                        "error: {name}: there is no `main` of {}, so it has no P4Info",
                        main_packages()
                    );
                    eprintln!("  {}; {}", supported(), how_to_port());
                    ExitCode::FAILURE
                }
                Ok(accepted @ Accepted::Whole(_)) => {
                    tell(accepted.warnings());
                    write(&encode(&accepted.into_p4info(), format))
                }
                Err(diagnostics) => refuse(&diagnostics),
            })
        }),
        Command::BfrtInfo { source, output } => with_output(output, |write| {
            source.with(|text, name, options| match p4rack_p4::compile(text, name, options) {
                Ok(compiled) => {
                    tell(&compiled.warnings);
                    let Some(schema) = compiled.bf_rt() else {
                        let arch = &compiled.program.arch;
                        eprintln!("error: {name}: programs for {arch} have no interface for BFRuntime");
                        eprintln!("  print the P4Info instead: p4rack p4 info {name}");
                        return ExitCode::FAILURE;
                    };
                    write(format!("{schema:#}\n").as_bytes())
                }
                Err(diagnostics) => refuse(&diagnostics),
            })
        }),
        Command::Fit { source, options } => fit::run(&source, &options),
        Command::Run { source, run } => self::run::run(&source, &run),
        Command::Stf { source, stf, drop_port, trace } => stf::run(&source, &stf, drop_port, trace),
        Command::Preprocess { source, output } => with_output(output, |write| {
            source.with(|text, name, options| match p4rack_p4::preprocess(text, name, options) {
                Ok(text) => write(text.as_bytes()),
                Err(diagnostics) => refuse(&diagnostics),
            })
        }),
    }
}

fn check(name: &str, result: Result<Accepted, Diagnostics>, json: bool) -> ExitCode {
    match result {
        Ok(accepted) if json => {
            println!("{}", accepted.warnings().to_json());
            ExitCode::SUCCESS
        }
        Ok(Accepted::Whole(compiled)) => {
            tell(&compiled.warnings);
            println!("{name}: accepted: {}", contents(&compiled.p4info));
            ExitCode::SUCCESS
        }
        Ok(Accepted::Types { main, warnings }) => {
            tell(&warnings);
            match main {
                Some(package) => println!("{name}: accepted: types only, `main` is a `{}`", package.name),
                None => println!("{name}: accepted: declarations only, there is no `main`"),
            }
            println!("  to run it or to get its P4Info, {} ({})", how_to_port(), supported());
            ExitCode::SUCCESS
        }
        Err(diagnostics) if json => {
            println!("{}", diagnostics.to_json());
            ExitCode::FAILURE
        }
        Err(diagnostics) => refuse(&diagnostics),
    }
}

/// `3 tables, 5 actions, 2 registers`
fn contents(info: &P4Info) -> String {
    let counts = [
        (info.tables.len(), "table"),
        (info.actions.len(), "action"),
        (info.registers.len(), "register"),
        (info.counters.len() + info.direct_counters.len(), "counter"),
        (info.meters.len() + info.direct_meters.len(), "meter"),
        (info.action_profiles.len(), "action profile"),
        (info.digests.len(), "digest"),
        (info.value_sets.len(), "value set"),
        (info.controller_packet_metadata.len(), "controller header"),
    ];
    let parts = counts.into_iter().filter(|(n, what)| *n > 0 || matches!(*what, "table" | "action"));
    let parts: Vec<String> =
        parts.map(|(n, what)| format!("{n} {what}{}", if n == 1 { "" } else { "s" })).collect();
    parts.join(", ")
}

/// A P4Info as bytes of a file.
pub(super) fn encode(info: &P4Info, format: Format) -> Vec<u8> {
    match format {
        Format::Text => p4rack_p4rt::text::print(info).into_bytes(),
        Format::Binary => wire_format(info),
    }
}

fn wire_format<M: TextMessage>(message: &M) -> Vec<u8> {
    message.encode_to_vec()
}

/// Consumer of the result: the file of `--output`, or standard output.
pub(super) type Take<'a> = &'a mut dyn FnMut(&[u8]) -> ExitCode;

/// Opens the output before the work that produces it.
pub(super) fn with_output(path: Option<PathBuf>, work: impl FnOnce(Take<'_>) -> ExitCode) -> ExitCode {
    let failed = |error: String| {
        eprintln!("error: {error}");
        ExitCode::from(USAGE)
    };
    let mut file = match path.map(|path| OutputFile::open("--output", &path)).transpose() {
        Ok(file) => file,
        Err(error) => return failed(error),
    };
    work(&mut |bytes| match file.take() {
        Some(file) => file.write(bytes).map_or_else(failed, |()| ExitCode::SUCCESS),
        None => {
            output::write_bytes(bytes);
            ExitCode::SUCCESS
        }
    })
}
