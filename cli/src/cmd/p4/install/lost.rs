//! A file for entries that are missing on a switch: the connection was lost between its new program and them.

use p4rack_ctrl::CtrlError;
use p4rack_ctrl::install::{Rules, Unfinished};
use p4rack_ctrl::provision::{Desired, updates};
use p4rack_p4rt::p4::v1::WriteRequest;
use p4rack_p4rt::text;
use std::path::{Path, PathBuf};

/// What the next try has to bring, and a copy of that for a command that ends before.
#[derive(Debug, Default)]
pub struct Lost {
    /// What the switch held before.
    pub unfinished: Unfinished,
    file: Option<PathBuf>,
}

impl Lost {
    /// An installation's error. If entries are missing, they are in a file, and the error has the command that brings them:
    /// `command` writes one for such a file.
    pub fn with_remedy(
        &mut self,
        error: CtrlError,
        command: impl Fn(&Path) -> String,
        (wanted, rules): (&Desired, Rules<'_>),
    ) -> CtrlError {
        let CtrlError::NotInstalled { error, state } = error else { return error };
        let (mut wanted, mut rules) = (wanted.clone(), rules);
        if matches!(*error, CtrlError::Updates { .. }) {
            // What is asked for has been refused, and would be again: only what the switch held is brought.
            wanted.entities.clear();
            rules = Rules::default();
        }
        let entities = self.unfinished.entities(&wanted, rules);
        if self.unfinished.is_empty() || entities.is_empty() {
            return CtrlError::NotInstalled { error, state };
        }
        let count = entities.len();
        let remedy = match self.write(&Desired { entities, ..wanted }) {
            Ok(file) => {
                format!("{count} entries are in {}: `{}` brings them", file.display(), command(file))
            }
            Err(why) => format!("{count} entries could not be put into a file: {why}"),
        };
        CtrlError::NotInstalled { error, state: format!("{state}\n  {remedy}") }
    }

    /// Writes the entries as a WriteRequest. Returns the file's path.
    fn write(&mut self, missing: &Desired) -> Result<&Path, String> {
        let request = WriteRequest { updates: updates(missing), ..WriteRequest::default() };
        let path = match &self.file {
            Some(path) => path.clone(),
            None => {
                let folder = std::env::temp_dir();
                let fault = |error: String| format!("{}: {error}", folder.display());
                let file = tempfile::Builder::new().prefix("p4rack-entries-").suffix(".txtpb").tempfile();
                let kept = file.map_err(|error| fault(error.to_string()))?.keep();
                kept.map_err(|error| fault(error.to_string()))?.1
            }
        };
        let written = std::fs::write(&path, text::print(&request));
        written.map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(self.file.insert(path).as_path())
    }

    /// Removes the file: the switch has its entries.
    pub fn restored(&mut self) {
        if let Some(file) = self.file.take() {
            // Left over, it does no harm.
            let _ = std::fs::remove_file(file);
        }
    }
}
