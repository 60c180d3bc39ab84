//! `p4rack p4 fit`, and the comparison of `p4rack p4 samples FOLDER fit`.

use super::compiler::Compiler;
use super::source::{Source, USAGE, refuse, tell};
use p4rack_conformance::{Sample, Suite, guarded};
use p4rack_lab::rows::Live;
use p4rack_p4::fit::{self, Chip, Report, chip};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Programs whose stages must be within [`NEAR`] of the compiler's, in percent.
const REQUIRED_PERCENT: usize = 80;
/// Stages that an estimate may be off.
const NEAR: usize = 1;

/// The chip's own compiler.
#[derive(clap::Args, Debug)]
pub struct CompilerArgs {
    /// The chip's compiler, p4c with its Tofino backend [default: bf-p4c, p4c-barefoot or p4c on PATH]
    #[arg(long, value_name = "PROGRAM")]
    compiler: Option<PathBuf>,
    /// Time limit of the compiler, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = crate::numbers::number::<u64>)]
    timeout_s: u64,
}

impl CompilerArgs {
    fn find(&self) -> Result<Compiler, String> {
        Compiler::find(self.compiler.as_deref(), self.timeout_s)
    }
}

/// Options of `p4rack p4 fit`.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// The chip [default: the program's own]
    #[arg(long, value_enum)]
    chip: Option<ChipName>,
    #[command(flatten)]
    compiler: CompilerArgs,
    /// Print the estimate as JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum ChipName {
    /// The first generation
    Tofino,
    /// The second generation
    Tofino2,
}

impl ChipName {
    fn chip(self) -> &'static Chip {
        match self {
            ChipName::Tofino => &chip::FIRST,
            ChipName::Tofino2 => &chip::SECOND,
        }
    }
}

/// Runs `p4rack p4 fit`.
pub fn run(source: &Source, options: &Options) -> ExitCode {
    source.with(|text, name, given| {
        let compiled = match p4rack_p4::compile(text, name, given) {
            Ok(compiled) => compiled,
            Err(diagnostics) => return refuse(&diagnostics),
        };
        let Some(own) = fit::chip_of(&compiled.program) else {
            eprintln!("error: {name}: a program for {} is for no chip", compiled.program.arch);
            eprintln!("  p4rack p4 fit takes programs for tna and t2na");
            return ExitCode::from(USAGE);
        };
        let chip = options.chip.map_or(own, ChipName::chip);
        if chip.stages < own.stages {
            eprintln!("error: {name}: a program for {own} does not run on {chip}");
            return ExitCode::from(USAGE);
        }
        let report = fit::check(&compiled, chip);
        let beside = match options.compiler.find() {
            Ok(compiler) => compiler.stages(Path::new(name), chip, &given.include_dirs, &given.defines),
            Err(why) => Err(why),
        };
        if options.json {
            let mut value = report.json();
            value["compiler"] = match &beside {
                Ok(placed) => placed.json(),
                Err(why) => json!({ "error": why }),
            };
            println!("{value:#}");
        } else {
            tell(&compiled.warnings);
            tell(&report.warnings());
            tell(&report.diagnostics());
            print!("{}", report.text());
            match &beside {
                Ok(placed) => print!("{}", placed.text()),
                Err(why) => println!("compiler: {why}"),
            }
        }
        if report.fits() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    })
}

/// One program, estimated and compiled.
struct Row {
    program: String,
    chip: &'static str,
    /// The estimate's stages; why there is none.
    ours: Result<Estimate, String>,
    /// The compiler's stages; why there are none.
    theirs: Result<usize, String>,
}

struct Estimate {
    stages: usize,
    refused: Option<String>,
}

impl Row {
    /// Stages of the estimate less those of the compiler.
    fn difference(&self) -> Option<isize> {
        let ours = self.ours.as_ref().ok()?.stages;
        Some(ours as isize - *self.theirs.as_ref().ok()? as isize)
    }

    /// Whether the estimate agrees with the compiler's result; `None` if there is none.
    fn agrees(&self) -> Option<bool> {
        self.theirs.as_ref().ok()?;
        let refused = self.ours.as_ref().map_or(true, |estimate| estimate.refused.is_some());
        Some(!refused && self.difference().is_some_and(|off| off.unsigned_abs() <= NEAR))
    }

    fn cells(&self) -> Vec<String> {
        let ours = match &self.ours {
            Ok(Estimate { stages, refused: None }) => stages.to_string(),
            Ok(Estimate { stages, refused: Some(_) }) => format!("{stages}, refused"),
            Err(_) => "-".to_owned(),
        };
        let theirs = self.theirs.as_ref().map_or("-".to_owned(), ToString::to_string);
        let off = self.difference().map_or(String::new(), |off| format!("{off:+}"));
        vec![self.program.clone(), self.chip.to_owned(), ours, theirs, off]
    }

    fn json(&self) -> Value {
        json!({
            "program": self.program,
            "chip": self.chip,
            "stages": self.ours.as_ref().ok().map(|estimate| estimate.stages),
            "refused": match &self.ours { Ok(estimate) => estimate.refused.clone(), Err(why) => Some(why.clone()) },
            "compiler_stages": self.theirs.as_ref().ok(),
            "compiler_error": self.theirs.as_ref().err(),
            "difference": self.difference(),
        })
    }
}

/// Runs `p4rack p4 samples FOLDER fit`.
pub fn samples(suite: &Suite, compiler: &CompilerArgs, json: bool, verbose: bool) -> ExitCode {
    let samples = match suite.any_programs() {
        Ok(samples) => samples,
        Err(why) => {
            eprintln!("error: {why}");
            return ExitCode::from(USAGE);
        }
    };
    let compiler = compiler.find();
    let widest =
        samples.iter().map(|sample| name_of(suite, sample)).max_by_key(String::len).unwrap_or_default();
    let live = Live::new(
        &["program", "chip", ">estimate", ">compiler", ">off"],
        &[&widest, "tofino2", "12, refused", "12", "+12"],
    );
    if !json {
        println!("{}", live.header());
    }
    let mut rows = Vec::new();
    for sample in &samples {
        let Some(row) = row(suite, sample, compiler.as_ref()) else { continue };
        if !json {
            println!("{}", live.line(row.cells()));
            if verbose {
                let reasons = [row.ours.as_ref().err(), row.theirs.as_ref().err()];
                reasons.into_iter().flatten().for_each(|why| println!("    {why}"));
                if let Ok(Estimate { refused: Some(why), .. }) = &row.ours {
                    println!("    {why}");
                }
            }
        }
        rows.push(row);
    }
    let known: Vec<bool> = rows.iter().filter_map(Row::agrees).collect();
    let agree = known.iter().filter(|agrees| **agrees).count();
    let required = (known.len() * REQUIRED_PERCENT).div_ceil(100);
    if json {
        let all: Vec<Value> = rows.iter().map(Row::json).collect();
        println!(
            "{:#}",
            json!({ "programs": all, "compiled": known.len(), "near": agree, "required": required })
        );
    } else {
        match &compiler {
            Ok(_) => println!(
                "{agree} of {} programs that the compiler takes are within {NEAR} stage of it, {required} required",
                known.len()
            ),
            Err(why) => println!("compiler: {why}\n1 skipped"),
        }
    }
    // Nothing to compare is no success, unless there is nothing to compare with.
    let fine = rows.iter().any(|row| row.ours.is_ok())
        && (compiler.is_err() || !known.is_empty() && agree >= required);
    if fine { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A sample's path in the suite.
fn name_of(suite: &Suite, sample: &Sample) -> String {
    sample.path.strip_prefix(&suite.testdata).unwrap_or(&sample.path).to_string_lossy().into_owned()
}

/// A program's row; `None` if it is for no chip.
fn row(suite: &Suite, sample: &Sample, compiler: Result<&Compiler, &String>) -> Option<Row> {
    let options = suite.options(&sample.path);
    let program = name_of(suite, sample);
    let name = sample.path.to_string_lossy();
    let checked = guarded(|| {
        let compiled = match p4rack_p4::compile(&sample.text, &name, &options) {
            Ok(compiled) => compiled,
            Err(diagnostics) => return Some(Err(diagnostics.items.first().map(|d| d.message.clone()))),
        };
        let chip = fit::chip_of(&compiled.program)?;
        Some(Ok((chip, fit::check(&compiled, chip))))
    });
    let (chip, ours): (&'static Chip, _) = match checked {
        Ok(None) => return None,
        Ok(Some(Ok((chip, report)))) => (chip, Ok(estimate(&report))),
        // Refused by the front end: of interest only if it is for one of the chips.
        Ok(Some(Err(why))) => {
            let second = sample.text.contains("t2na.p4");
            if !second && !sample.text.contains("tna.p4") {
                return None;
            }
            (if second { &chip::SECOND } else { &chip::FIRST }, Err(why.unwrap_or_default()))
        }
        Err(why) => (&chip::FIRST, Err(why)),
    };
    let theirs = match compiler {
        Ok(compiler) => compiler
            .stages(&sample.path, chip, &options.include_dirs, &options.defines)
            .map(|placed| placed.stages()),
        Err(why) => Err(why.clone()),
    };
    Some(Row { program, chip: chip.name, ours, theirs })
}

fn estimate(report: &Report) -> Estimate {
    let refused = report.diagnostics().items.first().map(|first| {
        let line = report.diagnostics().sources().locate(first.span).line;
        format!("line {line}: {}", first.message)
    });
    Estimate { stages: report.stages(), refused }
}
