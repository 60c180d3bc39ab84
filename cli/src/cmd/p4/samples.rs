//! `p4rack p4 samples`.

use super::{against_bmv2, fit, source};
use p4rack_conformance::{Outcome, Part, Suite};
use p4rack_lab::bmv2::PROGRAM;
use p4rack_lab::process::on_path;
use std::path::PathBuf;
use std::process::ExitCode;

/// Arguments of `p4rack p4 samples`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Folder with p4_16_samples, p4_16_samples_outputs, p4_16_errors and p4_16_errors_outputs
    testdata: PathBuf,
    /// Parts to check [default: all]
    #[arg(value_enum)]
    what: Vec<What>,
    /// Folder to search for included files; may be repeated
    #[arg(short = 'I', value_name = "DIR")]
    include: Vec<PathBuf>,
    /// Macro to define; may be repeated
    #[arg(short = 'D', value_name = "NAME[=VALUE]")]
    define: Vec<String>,
    /// Instead, send random packets and entries, generated from this seed, through this switch's core and
    /// BMv2's simple_switch_grpc, and compare the frames that leave, port by port; simple_switch_grpc and p4c-bm2-ss
    /// must be on PATH
    #[arg(long, value_name = "SEED", conflicts_with = "what", value_parser = crate::numbers::number::<u64>)]
    against_bmv2: Option<u64>,
    /// Packets per program
    #[arg(long, value_name = "N", default_value_t = 40, requires = "against_bmv2", value_parser = crate::numbers::number::<usize>)]
    packets: usize,
    /// Only the program with this file name
    #[arg(long, value_name = "NAME", requires = "against_bmv2")]
    program: Option<String>,
    #[command(flatten)]
    compiler: fit::CompilerArgs,
    /// List failures even if enough programs pass, and the entries of packets that differ
    #[arg(short, long)]
    verbose: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// Programs that include v1model.p4 are accepted
    Accept,
    /// Programs of any architecture are accepted; TESTDATA may be any folder, subfolders are included
    Types,
    /// Programs of any architecture do the same as machine code and interpreted, with random entries and packets;
    /// only if asked for
    Run,
    /// Erroneous programs are rejected on the right line
    Refuse,
    /// P4Info is as expected
    P4info,
    /// Programs with an STF file behave as it says
    Stf,
    /// Programs for TNA: stages as estimated, and as the chip's compiler has them, if it is installed; only if asked
    /// for, and alone
    Fit,
}

/// Runs the command.
pub fn run(args: Args) -> ExitCode {
    let defines = args.define.iter().map(|d| source::definition(d)).collect();
    let suite = Suite { testdata: args.testdata, include_dirs: args.include, defines };
    if let Some(seed) = args.against_bmv2 {
        let Args { packets, program: only, verbose, json, .. } = args;
        return against_bmv2(&suite, &against_bmv2::Plan { seed, packets, only, verbose }, json);
    }
    if args.what.contains(&What::Fit) {
        return fit::samples(&suite, &args.compiler, args.json, args.verbose);
    }
    let wanted = |what: What| args.what.is_empty() && what != What::Run || args.what.contains(&what);
    let parts = [
        (What::Accept, Part::Accept),
        (What::Types, Part::Types),
        (What::Run, Part::Run),
        (What::Refuse, Part::Refuse),
        (What::P4info, Part::P4Info),
        (What::Stf, Part::Stf),
    ];
    // A panic of the compiler is one of the results; its backtrace would clutter the output.
    std::panic::set_hook(Box::new(|_| {}));
    let mut outcomes = Vec::new();
    for (_, part) in parts.into_iter().filter(|(what, _)| wanted(*what)) {
        match suite.run(part) {
            Ok(outcome) => outcomes.push(outcome),
            Err(why) => {
                eprintln!("error: {why}");
                return ExitCode::from(2);
            }
        }
    }
    if args.json {
        println!("{}", serde_json::to_string_pretty(&outcomes).unwrap_or_default());
    } else {
        outcomes.iter().for_each(|outcome| print(outcome, args.verbose));
    }
    if outcomes.iter().all(Outcome::is_success) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Compares with BMv2, if it and its compiler are installed.
fn against_bmv2(suite: &Suite, plan: &against_bmv2::Plan, json: bool) -> ExitCode {
    if [PROGRAM, "p4c-bm2-ss"].iter().any(|program| on_path(program).is_none()) {
        println!(
            "bmv2    skipped: needs simple_switch_grpc and p4c-bm2-ss, get them by building p4lang's behavioral-model \
             and p4c (`p4rack doctor`)\n        1 skipped"
        );
        return ExitCode::SUCCESS;
    }
    std::panic::set_hook(Box::new(|_| {}));
    match against_bmv2::run(suite, plan) {
        Ok(report) => {
            if json {
                println!("{}", serde_json::to_string_pretty(&report).unwrap_or_default());
            } else {
                print!("{}", report.text());
            }
            if report.is_success() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::from(2)
        }
    }
}

fn print(outcome: &Outcome, verbose: bool) {
    let verdict = if outcome.is_success() { "ok" } else { "FAILED" };
    println!(
        "{:7} {} of {} as expected, {} required: {verdict}",
        outcome.part, outcome.passed, outcome.tried, outcome.required
    );
    for (what, count) in &outcome.counts {
        println!("        {count} {what}");
    }
    if verbose || !outcome.is_success() {
        for failure in &outcome.failures {
            println!("        {}: {}", failure.file, failure.why);
        }
    }
    if verbose {
        for note in &outcome.notes {
            println!("        note: {}: {}", note.file, note.why);
        }
    }
}
