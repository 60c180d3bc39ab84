//! Runs steps, counts what passed, failed and was skipped, and closes with one line.

use std::io::{BufRead, BufReader};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

/// What has happened so far.
#[derive(Default)]
pub struct Report {
    passed: u64,
    failed: u64,
    skipped: u64,
    failures: Vec<String>,
}

impl Report {
    /// A step that passes when the command exits with 0.
    pub fn step(&mut self, name: &str, command: &mut Command) -> bool {
        println!("── {name}");
        let start = Instant::now();
        let result = match command.status() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("{command:?} ended with {status}")),
            Err(error) => Err(format!("{command:?} did not start: {error}")),
        };
        let ok = result.is_ok();
        self.check(name, result);
        println!("   {name}: {:.0} s", start.elapsed().as_secs_f64());
        ok
    }

    /// A check made in this process.
    pub fn check(&mut self, name: &str, result: Result<(), String>) {
        match result {
            Ok(()) => self.passed += 1,
            Err(why) => {
                self.failed += 1;
                println!("   {name} failed: {why}");
                self.failures.push(format!("{name}: {why}"));
            }
        }
    }

    /// Something that needs what this machine lacks: counted, never silent.
    pub fn skip(&mut self, name: &str, why: &str) {
        self.skipped += 1;
        println!("── {name}\n   skipped: {why}");
    }

    /// Test runners: shows their output and adds up their own counts (cargo test's and pytest's).
    pub fn tests(&mut self, name: &str, command: &mut Command) {
        println!("── {name}");
        let start = Instant::now();
        let mut child = match command.stdout(Stdio::piped()).spawn() {
            Ok(child) => child,
            Err(error) => return self.check(name, Err(format!("{command:?} did not start: {error}"))),
        };
        let mut failed_here = 0;
        if let Some(stdout) = child.stdout.take() {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                println!("{line}");
                let (passed, failed, skipped) = counts(&line);
                self.passed += passed;
                self.skipped += skipped;
                failed_here += failed;
                if line.starts_with("test ") && line.ends_with("FAILED") || line.starts_with("FAILED ") {
                    self.failures.push(line.clone());
                }
            }
        }
        self.failed += failed_here;
        match child.wait() {
            Ok(status) if status.success() || failed_here > 0 => {}
            Ok(status) => self.check(name, Err(format!("ended with {status}"))),
            Err(error) => self.check(name, Err(error.to_string())),
        }
        println!("   {name}: {:.0} s", start.elapsed().as_secs_f64());
    }

    /// The closing lines and the exit code.
    pub fn close(self) -> ExitCode {
        println!();
        for failure in &self.failures {
            println!("failed: {failure}");
        }
        println!("{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped);
        if self.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

/// Passed, failed and skipped in a runner's summary line, e.g.
/// `test result: ok. 3 passed; 0 failed; 1 ignored; …`, `==== 3 passed, 1 skipped in 2.0s ====`,
/// or one skip that a test reports of itself, `skipped: needs …`.
fn counts(line: &str) -> (u64, u64, u64) {
    if line.trim_start().starts_with("skipped: needs") {
        return (0, 0, 1);
    }
    if !(line.starts_with("test result:") || (line.starts_with("==") && line.contains(" in "))) {
        return (0, 0, 0);
    }
    let words: Vec<&str> = line.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).collect();
    let count = |what: &[&str]| {
        words.windows(2).filter(|w| what.contains(&w[1])).filter_map(|w| w[0].parse::<u64>().ok()).sum()
    };
    (count(&["passed"]), count(&["failed", "error", "errors"]), count(&["skipped", "ignored"]))
}

#[cfg(test)]
mod tests {
    use super::counts;

    #[test]
    fn runner_summaries_are_counted() {
        let cargo = "test result: ok. 3 passed; 1 failed; 2 ignored; 0 measured; 0 filtered out; finished";
        assert_eq!(counts(cargo), (3, 1, 2));
        assert_eq!(counts("===== 4 passed, 1 skipped in 2.01s ====="), (4, 0, 1));
        assert_eq!(counts("skipped: needs root, get it by sudo"), (0, 0, 1));
        assert_eq!(counts("5 passed on to the next stage"), (0, 0, 0));
    }
}
