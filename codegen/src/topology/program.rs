//! A switch's program, as a device takes it.

use crate::arch::Arch;
use crate::kind::Kind;
use p4rack_p4::{Compiled, Diagnostics, Options, compile, preprocess};
use p4rack_p4rt::diff;
use p4rack_p4rt::p4::config::v1::P4Info;
use std::cell::RefCell;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// A program that the front end has accepted.
#[derive(Clone, Debug)]
pub struct Program {
    /// What the device takes: P4 text, with files of its own that it includes, or BMv2's JSON.
    pub text: String,
    /// Its interface for controllers.
    pub p4info: P4Info,
    /// Its BFRuntime schema, for Tofino's architectures.
    pub bf_rt: Option<String>,
    /// Its architecture, as its text says.
    pub arch: Arch,
    /// What the front end warns of.
    pub warnings: Diagnostics,
}

/// How a program is read.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// Folders of included files, and macros.
    pub options: Options,
    /// Its interface, where the file with the program is BMv2's JSON, which lacks parts of it.
    pub p4info: Option<P4Info>,
    /// Whether the device is BMv2, which takes its JSON.
    pub is_for_bmv2: bool,
}

/// Why a switch's program can't be used.
#[derive(Debug, Error)]
pub enum ProgramError {
    /// The file can't be read.
    #[error("{}: {source}", path.display())]
    Unreadable {
        /// The program.
        path: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
    /// The front end rejects it; the text says where and why.
    #[error("{0}")]
    Refused(String),
}

impl Program {
    /// Reads the program at `path`, P4 text or BMv2's JSON, for the embedded switch or Tofino.
    pub fn load(path: &Path) -> Result<Program, ProgramError> {
        Program::load_as(path, &Reading::default())
    }

    /// Reads the program at `path`, P4 text or BMv2's JSON, for BMv2, which takes its JSON.
    pub fn load_for_bmv2(path: &Path) -> Result<Program, ProgramError> {
        Program::load_as(path, &Reading { is_for_bmv2: true, ..Reading::default() })
    }

    /// Reads the program at `path`, P4 text or BMv2's JSON.
    pub fn load_as(path: &Path, reading: &Reading) -> Result<Program, ProgramError> {
        let (text, file) = read(path)?;
        let options = &reading.options;
        if let Some(mistaken) = Kind::no_program(&text, &file) {
            return Err(ProgramError::Refused(mistaken));
        }
        if p4rack_bmv2::is_json_file(&text, &file) {
            let compiled = p4rack_bmv2::read(&text, &file, reading.p4info.as_ref());
            return Program::new(text, compiled.map_err(ProgramError::Refused)?);
        }
        let compiled = compile(&text, &file, options).map_err(refused)?;
        if let Some(given) = &reading.p4info {
            let differences = diff::differences(given, &compiled.p4info);
            if !differences.is_empty() {
                return Err(ProgramError::Refused(format!(
                    "{file}: the P4Info is not this program's; `p4rack p4 info {file}` prints that:\n  {}",
                    differences.join("\n  ")
                )));
            }
        }
        if reading.is_for_bmv2 {
            let json = p4rack_bmv2::write(&compiled).map_err(refused)?.to_string();
            return Program::new(json, compiled);
        }
        // A device has the built-in files alone, and no macros.
        let is_complete = options.include_dirs.is_empty() && options.defines.is_empty();
        let text = match !is_complete || text.lines().any(includes_own) {
            false => text,
            true => preprocess::run(&text, &file, options).map_err(refused)?.to_marked_text(),
        };
        Program::new(text, compiled)
    }

    fn new(text: String, compiled: Compiled) -> Result<Program, ProgramError> {
        let bf_rt = compiled.bf_rt().map(|schema| schema.to_string());
        let named = compiled.p4info.pkg_info.as_ref().map(|info| info.arch.clone()).unwrap_or_default();
        let arch = named.parse().map_err(ProgramError::Refused)?;
        let Compiled { p4info, warnings, .. } = compiled;
        Ok(Program { text, p4info, bf_rt, arch, warnings })
    }
}

/// The files that the program at `path` is read from: itself, and all places where files that it includes are looked for, as
/// far as its text can be read. Some may not exist.
pub fn files(path: &Path, options: &Options) -> Vec<PathBuf> {
    let looked = RefCell::new(vec![path.to_owned()]);
    if let Ok((text, file)) = read(path)
        && !p4rack_bmv2::is_json_file(&text, &file)
    {
        let load = |included: &Path| {
            looked.borrow_mut().push(included.to_owned());
            preprocess::load(included)
        };
        // Of a text with mistakes, the files before the last of them are known.
        let _ = preprocess::run_with(&text, &file, options, &load);
    }
    let mut looked = looked.into_inner();
    looked.sort();
    looked.dedup();
    looked
}

/// A file's text, and its name for messages.
fn read(path: &Path) -> Result<(String, String), ProgramError> {
    let file = path.display().to_string();
    match crate::text::read(path) {
        Ok(text) => Ok((text, file)),
        Err(error) if error.kind() == ErrorKind::InvalidData => {
            let fault = crate::text::fault(&error, "P4 text, or BMv2's JSON");
            Err(ProgramError::Refused(format!("{file}: {fault}")))
        }
        Err(source) => Err(ProgramError::Unreadable { path: path.to_owned(), source }),
    }
}

fn refused(refused: Diagnostics) -> ProgramError {
    let text = refused.render(false);
    // The caller prints that it is an error.
    ProgramError::Refused(text.strip_prefix("error: ").unwrap_or(&text).trim_end().to_owned())
}

/// Whether a line includes a file beside the program.
fn includes_own(line: &str) -> bool {
    let directive = line.trim_start().strip_prefix('#').map(str::trim_start);
    directive
        .and_then(|rest| rest.strip_prefix("include"))
        .is_some_and(|rest| rest.trim_start().starts_with('"'))
}
