//! A switch's program, as a device takes it.

use crate::arch::Arch;
use p4rack_p4::{Compiled, Diagnostics, Options, compile, preprocess};
use p4rack_p4rt::p4::config::v1::P4Info;
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
        let (text, file) = read(path)?;
        let (compiled, is_json) = understand(&text, &file)?;
        // A device has the built-in files alone.
        let text = match !is_json && text.lines().any(includes_own) {
            false => text,
            true => preprocess::run(&text, &file, &Options::default()).map_err(refused)?.to_marked_text(),
        };
        Program::new(text, compiled)
    }

    /// Reads the program at `path`, P4 text or BMv2's JSON, for BMv2, which takes its JSON.
    pub fn load_for_bmv2(path: &Path) -> Result<Program, ProgramError> {
        let (text, file) = read(path)?;
        let (compiled, is_json) = understand(&text, &file)?;
        let json = match is_json {
            true => text,
            false => p4rack_bmv2::write(&compiled).map_err(refused)?.to_string(),
        };
        Program::new(json, compiled)
    }

    fn new(text: String, compiled: Compiled) -> Result<Program, ProgramError> {
        let bf_rt = compiled.bf_rt().map(|schema| schema.to_string());
        let named = compiled.p4info.pkg_info.as_ref().map(|info| info.arch.clone()).unwrap_or_default();
        let arch = named.parse().map_err(ProgramError::Refused)?;
        Ok(Program { text, p4info: compiled.p4info, bf_rt, arch })
    }
}

/// A file's text, and its name for messages.
fn read(path: &Path) -> Result<(String, String), ProgramError> {
    let unreadable = |source| ProgramError::Unreadable { path: path.to_owned(), source };
    Ok((std::fs::read_to_string(path).map_err(unreadable)?, path.display().to_string()))
}

/// The program that a text is, and whether it is BMv2's JSON.
fn understand(text: &str, file: &str) -> Result<(Compiled, bool), ProgramError> {
    match p4rack_bmv2::is_json(text) {
        true => p4rack_bmv2::read(text, file, None).map(|read| (read, true)).map_err(ProgramError::Refused),
        false => compile(text, file, &Options::default()).map(|made| (made, false)).map_err(refused),
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
