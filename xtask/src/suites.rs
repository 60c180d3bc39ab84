//! The workspace's test programs, two at a time.
//!
//! ```text
//!  in time   programs whose tests wait for clocks: one after the other, as if they were alone
//!  beside    all others, with the processors' time that those leave
//! ```
//!
//! Cargo would run one after the other, and most of those that wait for clocks leave a processor idle.

use crate::report::{Report, Started};
use crate::{cargo, settle};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;
use std::thread;

/// Crates whose tests run racks, servers or sockets.
const IN_TIME: &[&str] = &["cli", "ctrl", "hosts", "lab", "netdev", "switchd"];

/// A test program that cargo has built.
#[derive(Debug, PartialEq, Eq)]
struct Suite {
    /// Folder of its crate.
    folder: PathBuf,
    /// Its source in that folder.
    source: PathBuf,
    program: PathBuf,
}

/// Builds all test programs, runs them, and then the tests in documentation.
pub fn run(report: &mut Report) {
    let workspace = ["test", "--workspace", "--profile", "verify"];
    let mut build = cargo(&workspace);
    build.args(["--no-run", "--message-format=json-render-diagnostics"]);
    let Some(messages) = report.output("tests build", &mut build) else { return };
    let suites: Vec<Suite> = messages.lines().filter_map(Suite::of).collect();
    if suites.is_empty() {
        return report.check("tests build", Err("cargo named no test program".into()));
    }
    let (in_time, beside): (Vec<&Suite>, Vec<&Suite>) = suites.iter().partition(|suite| suite.is_in_time());
    println!("── tests: {} programs in time, {} beside them", in_time.len(), beside.len());
    thread::scope(|scope| {
        let (ended, results) = mpsc::channel();
        for (suites, niceness) in [(in_time, "0"), (beside, "19")] {
            let ended = ended.clone();
            scope.spawn(move || {
                for suite in suites {
                    println!("     begins {}", suite.source.display());
                    // The receiver lives until both lanes have ended.
                    let _ = ended.send(Started::new(&suite.title(), &mut suite.command(niceness)).wait());
                }
            });
        }
        drop(ended);
        results.iter().for_each(|ended| report.ended(ended));
    });
    report.tests("tests in documentation", cargo(&workspace).args(["--no-fail-fast", "--doc"]));
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

    fn command(&self, niceness: &str) -> Command {
        let mut command = Command::new("nice");
        settle(command.args(["-n", niceness]).arg(&self.program).current_dir(&self.folder));
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
