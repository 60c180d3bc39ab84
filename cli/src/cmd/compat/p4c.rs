//! `p4c` and `p4c-bm2-ss`: their options that matter for BMv2, on `p4rack p4 compile`.

use crate::cmd::p4::{Format, Source, encode, refuse, tell, with_output};
use crate::cmd::refused;
use p4rack_p4::Compiled;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Names of BMv2 among the targets of p4c.
const TARGETS: [&str; 3] = ["bmv2", "bmv2-ss-p4org", "bmv2-v1model"];

/// Arguments of `p4c` and of `p4c-bm2-ss`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Other options of p4c are refused by name. Warnings are p4rack's own, so an option that names one of p4c's has no effect.")]
pub struct Args {
    /// The P4 program
    file: PathBuf,
    /// Folder to search for included files; may be repeated
    #[arg(short = 'I', value_name = "DIR")]
    include: Vec<PathBuf>,
    /// Macro to define; may be repeated
    #[arg(short = 'D', value_name = "NAME[=VALUE]")]
    define: Vec<String>,
    /// p4c: folder of the results, or one file FILE.json; p4c-bm2-ss: the file for BMv2's JSON
    #[arg(short = 'o', value_name = "PATH")]
    output: Option<PathBuf>,
    /// p4c: only preprocess, to FILE.p4i
    #[arg(short = 'E')]
    preprocess: bool,
    /// p4c: compile FILE.p4i of the folder of results, which -E has written
    #[arg(short = 'e', conflicts_with = "preprocess")]
    preprocessed: bool,
    /// Files for the P4Info, separated by commas; their endings select the format: .txt and .txtpb text, .bin binary
    #[arg(long, value_name = "FILES", value_delimiter = ',')]
    p4runtime_files: Vec<PathBuf>,
    /// File for the P4Info, in the format of --p4runtime-format
    #[arg(long, value_name = "FILE")]
    p4runtime_file: Option<PathBuf>,
    /// Format of --p4runtime-file, and of files of --p4runtime-files with other endings [default: binary]
    #[arg(long, value_name = "text|binary", value_parser = format)]
    p4runtime_format: Option<Format>,
    /// Treat warnings as errors; with names of warnings of p4c's: no effect
    #[arg(long = "Werror", value_name = "NAMES", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    errors: Option<String>,
    /// Show no warnings; with names of warnings of p4c's: no effect
    #[arg(long = "Wdisable", value_name = "NAMES", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    quiet: Vec<String>,
    #[command(flatten)]
    accepted: Accepted,
}

/// Options that can have one value, or have no effect.
#[derive(clap::Args, Debug)]
#[group(id = "accepted-by-p4c")]
#[allow(dead_code, reason = "the parser checks them; nothing depends on them")]
struct Accepted {
    /// Target: bmv2
    #[arg(short = 'b', long = "target", visible_alias = "backend", value_name = "TARGET", value_parser = target)]
    target: Option<String>,
    /// Architecture: v1model
    #[arg(short = 'a', long, value_name = "ARCH", value_parser = arch)]
    arch: Option<String>,
    /// Version of the language: p4-16
    #[arg(long = "std", visible_alias = "p4v", value_name = "VERSION", value_parser = language)]
    language: Option<String>,
    /// No effect
    #[arg(long = "Wwarn", value_name = "NAMES", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    warned: Vec<String>,
    /// No effect: programs with externs of their own are refused
    #[arg(long)]
    emit_externs: bool,
    /// No effect
    #[arg(short = 'g')]
    debug: bool,
    /// No effect
    #[arg(short = 'v', long)]
    verbose: bool,
}

fn target(text: &str) -> Result<String, String> {
    match TARGETS.contains(&text) {
        true => Ok(text.to_owned()),
        false => Err(
            "only bmv2 is compiled for; programs for tofino run as text, and `p4c-barefoot` compiles them"
                .to_owned(),
        ),
    }
}

fn arch(text: &str) -> Result<String, String> {
    match text {
        "v1model" => Ok(text.to_owned()),
        "tna" => {
            Err("only v1model is compiled for; programs for tna run as text: `p4rack switch run FILE.p4`"
                .to_owned())
        }
        _ => Err("only v1model is compiled for".to_owned()),
    }
}

fn language(text: &str) -> Result<String, String> {
    match text {
        "16" | "p4-16" | "p4_16" => Ok(text.to_owned()),
        _ => Err("only P4_16 is compiled; p4c translates P4_14 with --pp".to_owned()),
    }
}

fn format(text: &str) -> Result<Format, String> {
    match text {
        "text" => Ok(Format::Text),
        "binary" => Ok(Format::Binary),
        "json" => Err("P4Info isn't written as JSON; take text or binary".to_owned()),
        _ => Err("is neither text nor binary".to_owned()),
    }
}

/// The format that a file's name asks for.
fn format_of(path: &Path, otherwise: Option<Format>) -> Result<Format, String> {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("txt" | "txtpb") => Ok(Format::Text),
        Some("bin") => Ok(Format::Binary),
        Some("json") if otherwise.is_none() => Err(format!(
            "--p4runtime-files: {}: P4Info isn't written as JSON; name it .txtpb or .bin",
            path.display()
        )),
        _ => otherwise.ok_or_else(|| {
            format!(
                "--p4runtime-files: {}: name it .txtpb or .bin, or give --p4runtime-format",
                path.display()
            )
        }),
    }
}

/// Runs `p4c`: results are named after the program, in a folder.
pub fn driver(mut args: Args) -> ExitCode {
    let output = args.output.clone().unwrap_or_else(|| PathBuf::from("."));
    let is_file = output.extension().is_some_and(|extension| extension == "json");
    if is_file && (args.preprocess || args.preprocessed) {
        return refused(format!("-o: {} is a file; with -E and -e, give a folder", output.display()));
    }
    if is_file {
        return compile(args, Some(output));
    }
    if let Err(error) = fs::create_dir_all(&output) {
        return refused(format!("-o: {}: {error}", output.display()));
    }
    let stem = args.file.file_stem().unwrap_or_default();
    let named = |ending: &str| {
        let mut name = stem.to_owned();
        name.push(ending);
        output.join(name)
    };
    let (json, text) = (named(".json"), named(".p4i"));
    if args.preprocessed {
        args.file = text;
        return compile(args, Some(json));
    }
    let source = Source::new(args.file.clone(), args.include.clone(), args.define.clone());
    if !args.preprocess {
        let done = compile(args, Some(json));
        if done != ExitCode::SUCCESS {
            return done;
        }
    }
    with_output(Some(text), |write| {
        source.with(|text, name, options| match p4rack_p4::preprocess(text, name, options) {
            Ok(text) => write(text.as_bytes()),
            Err(diagnostics) => refuse(&diagnostics),
        })
    })
}

/// Runs `p4c-bm2-ss`: without -o the program is only checked, and its P4Info written.
pub fn compiler(args: Args) -> ExitCode {
    if args.preprocess || args.preprocessed {
        return refused("-E and -e are options of p4c: start `p4c` with them");
    }
    let output = args.output.clone();
    compile(args, output)
}

fn compile(args: Args, json: Option<PathBuf>) -> ExitCode {
    let files = args.p4runtime_files.into_iter().map(|path| {
        let format = format_of(&path, args.p4runtime_format)?;
        Ok((path, format))
    });
    let mut infos = match files.collect::<Result<Vec<_>, String>>() {
        Ok(infos) => infos,
        Err(error) => return refused(error),
    };
    infos.extend(args.p4runtime_file.map(|path| (path, args.p4runtime_format.unwrap_or(Format::Binary))));
    let is_strict = args.errors.as_deref() == Some("");
    let is_quiet = args.quiet.iter().any(String::is_empty);
    Source::new(args.file, args.include, args.define).compiled(|_, _, compiled| {
        if !is_quiet || is_strict {
            tell(&compiled.warnings);
        }
        if is_strict && !compiled.warnings.is_empty() {
            return refused("--Werror: warnings count as errors");
        }
        write(&compiled, &infos, json)
    })
}

fn write(compiled: &Compiled, infos: &[(PathBuf, Format)], json: Option<PathBuf>) -> ExitCode {
    let text = match p4rack_bmv2::write(compiled) {
        Ok(json) => format!("{json:#}\n"),
        Err(refused) => return refuse(&refused),
    };
    for (path, format) in infos {
        let done = with_output(Some(path.clone()), |write| write(&encode(&compiled.p4info, *format)));
        if done != ExitCode::SUCCESS {
            return done;
        }
    }
    match json {
        Some(path) => with_output(Some(path), |write| write(text.as_bytes())),
        None => ExitCode::SUCCESS,
    }
}
