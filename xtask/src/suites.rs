//! The workspace's test programs, a few at a time.
//!
//! ```text
//!  in time   programs whose tests wait for clocks, with a claim to the processors: as many beside each other as lanes take them
//!  beside    all others, with the processors' time that those leave
//! ```
//!
//! Cargo would run one after the other, and most of those that wait for clocks leave a processor idle.

use crate::lanes::{Lane, patient};
use crate::report::Report;
use crate::{cargo, settle};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// Arguments of cargo for all tests.
const WORKSPACE: [&str; 4] = ["test", "--workspace", "--profile", "verify"];
/// Crates whose tests run racks, servers or sockets.
const IN_TIME: &[&str] = &["cli", "ctrl", "hosts", "lab", "netdev", "switchd"];

/// A test program that cargo has built.
#[derive(Debug, PartialEq, Eq)]
pub struct Suite {
    /// Folder of its crate.
    folder: PathBuf,
    /// Its source in that folder.
    source: PathBuf,
    program: PathBuf,
}

/// Builds all test programs. Returns those in time, and those beside them.
pub fn build(report: &mut Report) -> (Vec<Suite>, Vec<Suite>) {
    let mut build = cargo(&WORKSPACE);
    build.args(["--no-run", "--message-format=json-render-diagnostics"]);
    let messages = report.output("tests build", &mut build).unwrap_or_default();
    let suites: Vec<Suite> = messages.lines().filter_map(Suite::of).collect();
    if suites.is_empty() {
        report.check("tests build", Err("cargo named no test program".into()));
    }
    suites.into_iter().partition(Suite::is_in_time)
}

/// Runs test programs one after the other, while any is left. Several lanes may take from the same.
pub fn in_time(lane: &Lane, left: &Mutex<Vec<Suite>>) {
    let next = || left.lock().unwrap_or_else(PoisonError::into_inner).pop();
    while let Some(suite) = next() {
        lane.run(&suite.title(), &mut suite.command());
    }
}

/// Runs test programs, and the tests in documentation, with the processors' time that others leave.
pub fn beside(lane: &Lane, suites: &[Suite]) {
    for suite in suites {
        lane.run(&suite.title(), &mut patient(&suite.command()));
    }
    let mut documentation = cargo(&WORKSPACE);
    lane.run("tests in documentation", &mut patient(documentation.args(["--no-fail-fast", "--doc"])));
}

impl Suite {
    /// The test program of one of cargo's messages.
    fn of(message: &str) -> Option<Suite> {
        let text = |key: &str| message.split_once(&format!("\"{key}\":\""))?.1.split('"').next();
        // Targets that have tests are built without them, too, as a program that users start.
        let profile = message.split_once("\"profile\":{")?.1.split('}').next()?;
        if text("reason") != Some("compiler-artifact") || !profile.ends_with("\"test\":true") {
            return None;
        }
        let folder = Path::new(text("manifest_path")?).parent()?;
        let source = Path::new(text("src_path")?);
        let source = source.strip_prefix(folder).unwrap_or(source);
        Some(Suite {
            folder: folder.to_owned(),
            source: source.to_owned(),
            program: text("executable")?.into(),
        })
    }

    fn is_in_time(&self) -> bool {
        IN_TIME.iter().any(|name| self.folder.ends_with(name))
    }

    /// As cargo names it before it runs it.
    fn title(&self) -> String {
        let kind = if self.source.starts_with("tests") { "" } else { "unittests " };
        format!("Running {kind}{} ({})", self.source.display(), self.program.display())
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        settle(command.current_dir(&self.folder));
        command.env("CARGO_MANIFEST_DIR", &self.folder);
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_programs_are_named_by_cargos_messages() {
        let message = |reason: &str, test: bool| {
            let target = r#""kind":["test"],"crate_types":["bin"],"name":"up","src_path":"/w/cli/tests/up.rs","edition":"2024","doc":false,"doctest":false,"test":true"#;
            let profile = r#""opt_level":"3","debuginfo":0,"debug_assertions":true,"overflow_checks":true"#;
            format!(
                r#"{{"reason":"{reason}","package_id":"path+file:///w/cli#p4rack@0.1.0","manifest_path":"/w/cli/Cargo.toml","target":{{{target}}},"profile":{{{profile},"test":{test}}},"features":[],"filenames":["/w/target/verify/deps/up-1"],"executable":"/w/target/verify/deps/up-1","fresh":true}}"#
            )
        };
        let suite = Suite {
            folder: "/w/cli".into(),
            source: "tests/up.rs".into(),
            program: "/w/target/verify/deps/up-1".into(),
        };
        assert_eq!(suite.title(), "Running tests/up.rs (/w/target/verify/deps/up-1)");
        assert!(suite.is_in_time());
        assert_eq!(Suite::of(&message("compiler-artifact", true)), Some(suite));
        assert_eq!(Suite::of(&message("compiler-artifact", false)), None);
        assert_eq!(Suite::of(&message("build-script-executed", true)), None);
        assert_eq!(
            Suite::of(&message("compiler-artifact", true).replace("\"/w/target/verify/deps/up-1\"", "null")),
            None
        );
    }
}
