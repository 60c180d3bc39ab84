//! A P4 program given on the command line.

use p4rack_codegen::kind::Kind;
use p4rack_p4::{Compiled, Diagnostics, Options};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

/// Exit code for usage errors: the file cannot be read or written.
pub const USAGE: u8 = 2;

/// Arguments that name a program.
#[derive(clap::Args, Debug)]
pub struct Source {
    /// The P4 program
    file: PathBuf,
    /// Folder to search for included files; may be repeated
    #[arg(short = 'I', value_name = "DIR")]
    include: Vec<PathBuf>,
    /// Macro to define; may be repeated
    #[arg(short = 'D', value_name = "NAME[=VALUE]")]
    define: Vec<String>,
}

impl Source {
    /// Calls `run` with the program's text, its name and the options.
    pub fn with(&self, run: impl FnOnce(&str, &str, &Options) -> ExitCode) -> ExitCode {
        self.read(false, run)
    }

    /// Whether the file is JSON rather than text.
    pub fn is_json(&self) -> bool {
        std::fs::read_to_string(&self.file).is_ok_and(|text| p4rack_bmv2::is_json(&text))
    }

    /// Calls `run` with a whole program, its text and its name: compiled from text, or read from BMv2's JSON.
    pub fn compiled(&self, run: impl FnOnce(&str, &str, Compiled) -> ExitCode) -> ExitCode {
        self.read(true, |text, name, options| {
            if p4rack_bmv2::is_json(text) {
                return match p4rack_bmv2::read(text, name, None) {
                    Ok(compiled) => run(text, name, compiled),
                    Err(error) => {
                        eprintln!("error: {error}");
                        ExitCode::FAILURE
                    }
                };
            }
            match p4rack_p4::compile(text, name, options) {
                Ok(compiled) => run(text, name, compiled),
                Err(diagnostics) => refuse(&diagnostics),
            }
        })
    }

    fn read(&self, takes_json: bool, run: impl FnOnce(&str, &str, &Options) -> ExitCode) -> ExitCode {
        let text = match std::fs::read_to_string(&self.file) {
            Ok(text) => text,
            Err(error) => {
                eprintln!("error: {}: {error}", self.file.display());
                return ExitCode::from(USAGE);
            }
        };
        // What is called a program is compiled, whatever its lines look like.
        let is_called_p4 = self.file.extension().is_some_and(|extension| extension == "p4")
            || takes_json && p4rack_bmv2::is_json(&text);
        let file = self.file.display().to_string();
        if let Some(mistaken) = Kind::mistaken(&text, &file, Kind::P4).filter(|_| !is_called_p4) {
            eprintln!("error: {mistaken}");
            return ExitCode::from(USAGE);
        }
        let defines = self.define.iter().map(|d| definition(d));
        let options = Options { include_dirs: self.include.clone(), defines: defines.collect() };
        run(&text, &file, &options)
    }
}

/// Name and value of `NAME=VALUE`, or of `NAME`, which is 1.
pub fn definition(text: &str) -> (String, String) {
    let (name, value) = text.split_once('=').unwrap_or((text, "1"));
    (name.to_owned(), value.to_owned())
}

/// Prints diagnostics.
pub fn tell(diagnostics: &Diagnostics) {
    if !diagnostics.is_empty() {
        eprint!("{}", diagnostics.render(std::io::stderr().is_terminal()));
    }
}

/// Prints the diagnostics of a rejected program and returns its exit code.
pub fn refuse(diagnostics: &Diagnostics) -> ExitCode {
    tell(diagnostics);
    ExitCode::FAILURE
}
