//! A P4 program given on the command line.

use p4rack_codegen::kind::Kind;
use p4rack_codegen::text;
use p4rack_p4::{Accepted, Compiled, Diagnostics, Options};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Exit code for usage errors: the file cannot be read or written.
pub const USAGE: u8 = 2;

/// Arguments that name a program.
#[derive(clap::Args, Clone, Debug)]
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

/// Errors: a file that should be a switch's program is of another kind. One that can't be read is left to the switch, and so is
/// what a command writes, which can be read only once.
pub(crate) fn check_program(file: &Path) -> Result<(), String> {
    let Some(text) = file.is_file().then(|| text::read(file).ok()).flatten() else { return Ok(()) };
    Kind::no_program(&text, &file.display().to_string()).map_or(Ok(()), Err)
}

impl Source {
    /// A program in a file, with folders for its includes and its macros.
    pub fn new(file: PathBuf, include: Vec<PathBuf>, define: Vec<String>) -> Source {
        Source { file, include, define }
    }

    /// Calls `run` with the program's text, its name and the options.
    pub fn with(&self, run: impl FnOnce(&str, &str, &Options) -> ExitCode) -> ExitCode {
        self.read(false, run)
    }

    /// Calls `run` with a whole program, its text and its name: compiled from text, or read from BMv2's JSON.
    pub fn compiled(&self, run: impl FnOnce(&str, &str, Compiled) -> ExitCode) -> ExitCode {
        self.read(true, |text, name, options| {
            if p4rack_bmv2::is_json_file(text, name) {
                return from_json(text, name, |compiled| run(text, name, compiled));
            }
            match p4rack_p4::compile(text, name, options) {
                Ok(compiled) => run(text, name, compiled),
                Err(diagnostics) => refuse(&diagnostics),
            }
        })
    }

    /// Calls `run` with the program's name and the verdict on its text. BMv2's JSON is a whole program.
    pub fn checked(&self, run: impl FnOnce(&str, Result<Accepted, Diagnostics>) -> ExitCode) -> ExitCode {
        self.read(true, |text, name, options| match p4rack_bmv2::is_json_file(text, name) {
            true => from_json(text, name, |compiled| run(name, Ok(Accepted::Whole(Box::new(compiled))))),
            false => run(name, p4rack_p4::check(text, name, options)),
        })
    }

    fn read(&self, takes_json: bool, run: impl FnOnce(&str, &str, &Options) -> ExitCode) -> ExitCode {
        match self.text(takes_json) {
            Ok(text) => run(&text, &self.file.display().to_string(), &self.options()),
            Err(error) => {
                eprintln!("error: {error}");
                ExitCode::from(USAGE)
            }
        }
    }

    /// The file's text. Errors: it can't be read, or is no program.
    pub fn text(&self, takes_json: bool) -> Result<String, String> {
        let file = self.file.display().to_string();
        let wanted = if takes_json { "P4 text, or BMv2's JSON" } else { "P4 text" };
        let text =
            text::read(&self.file).map_err(|error| format!("{file}: {}", text::fault(&error, wanted)))?;
        // What is called a program is compiled, whatever its lines look like.
        let is_called_p4 = self.file.extension().is_some_and(|extension| extension == "p4");
        let mistaken = match takes_json {
            true => Kind::no_program(&text, &file),
            false => Kind::mistaken(&text, &file, Kind::P4).filter(|_| !is_called_p4),
        };
        match mistaken {
            Some(mistaken) => Err(mistaken),
            None => Ok(text),
        }
    }

    /// The program's file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Folders of included files, and macros.
    pub fn options(&self) -> Options {
        let defines = self.define.iter().map(|d| definition(d));
        Options { include_dirs: self.include.clone(), defines: defines.collect() }
    }
}

/// Calls `run` with the program that BMv2's JSON describes.
fn from_json(text: &str, name: &str, run: impl FnOnce(Compiled) -> ExitCode) -> ExitCode {
    match p4rack_bmv2::read(text, name, None) {
        Ok(compiled) => run(compiled),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
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
