//! A switch's program, as a device takes it.

use crate::arch::Arch;
use p4rack_p4::{Diagnostics, Options, compile, preprocess};
use p4rack_p4rt::p4::config::v1::P4Info;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// A program that the front end has accepted.
#[derive(Clone, Debug)]
pub struct Program {
    /// Its text. Files of its own that it includes are part of it.
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
    /// Compiles the program at `path`.
    pub fn load(path: &Path) -> Result<Program, ProgramError> {
        let unreadable = |source| ProgramError::Unreadable { path: path.to_owned(), source };
        let text = std::fs::read_to_string(path).map_err(unreadable)?;
        let (file, options) = (path.display().to_string(), Options::default());
        let refused = |refused: Diagnostics| {
            let text = refused.render(false);
            // The caller prints that it is an error.
            ProgramError::Refused(text.strip_prefix("error: ").unwrap_or(&text).trim_end().to_owned())
        };
        let compiled = compile(&text, &file, &options).map_err(refused)?;
        let bf_rt = compiled.bf_rt().map(|schema| schema.to_string());
        let named = compiled.p4info.pkg_info.as_ref().map(|info| info.arch.clone()).unwrap_or_default();
        let arch = named.parse().map_err(ProgramError::Refused)?;
        // A device has the built-in files alone.
        let text = match text.lines().any(includes_own) {
            false => text,
            true => preprocess::run(&text, &file, &options).map_err(refused)?.to_marked_text(),
        };
        Ok(Program { text, p4info: compiled.p4info, bf_rt, arch })
    }
}

/// Whether a line includes a file beside the program.
fn includes_own(line: &str) -> bool {
    let directive = line.trim_start().strip_prefix('#').map(str::trim_start);
    directive
        .and_then(|rest| rest.strip_prefix("include"))
        .is_some_and(|rest| rest.trim_start().starts_with('"'))
}
