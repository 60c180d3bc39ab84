//! Runs steps, counts passes, failures and skips, and prints a summary.

use crate::lanes::{End, Ended, Lanes, News};
use crate::skips;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// Number of the slowest steps that are listed at the end.
const SLOWEST: usize = 24;

/// Exit code of a suite that tests nothing and names its requirements.
const NOTHING_TESTED: i32 = 77;

/// Results so far.
#[derive(Default)]
pub struct Report {
    passed: u64,
    failed: u64,
    failures: Vec<String>,
    /// Skips: the place, and the requirement.
    skips: Vec<(String, String)>,
    /// Command blocks of documents that say why they are not run.
    not_run: Vec<String>,
    /// Each step, or the test binary that it runs, and how long it took beside others.
    took: Vec<(Duration, String)>,
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
        self.took(name, start.elapsed());
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

    /// Counts a skip of something whose requirements this machine lacks.
    pub fn skip(&mut self, name: &str, why: &str) {
        println!("── {name}\n   skipped: {why}");
        self.skips.push((name.to_owned(), why.to_owned()));
    }

    /// A step that passes when the command exits with 0; returns its standard output.
    pub fn output(&mut self, name: &str, command: &mut Command) -> Option<String> {
        println!("── {name}");
        let start = Instant::now();
        let output = command.stderr(Stdio::inherit()).output();
        let result = match output {
            Ok(output) if output.status.success() => Ok(output.stdout),
            Ok(output) => Err(format!("{command:?} ended with {}", output.status)),
            Err(error) => Err(format!("{command:?} did not start: {error}")),
        };
        self.took(name, start.elapsed());
        let written = result.as_ref().ok().map(|written| String::from_utf8_lossy(written).into_owned());
        self.check(name, result.map(drop));
        written
    }

    /// Shows the lanes' reports until all have ended: the output of each step, when it has ended.
    pub fn follow(&mut self, lanes: Lanes) {
        for news in lanes.news() {
            match news {
                News::Ended(ended) => self.ended(ended),
                News::Skipped(name, why) => self.skip(&name, &why),
                News::Failed(name, why) => self.check(&name, Err(why)),
                News::Panicked => self.check("steps", Err("a lane of steps has panicked: see above".into())),
            }
        }
    }

    /// Shows a step's output, and adds up the summaries of its test runners.
    fn ended(&mut self, Ended { name, lines: output, end: End { status, took } }: Ended) {
        println!("── {name}");
        let (failed_before, skips_before) = (self.failed, self.skips.len());
        let mut lines = Lines::new(&name);
        for line in output {
            let line = String::from_utf8_lossy(&line);
            println!("{line}");
            lines.read(&line, self);
        }
        match status {
            // A step without a summary passes as a whole, unless its output says that it was skipped.
            Ok(status) if status.success() => {
                self.passed += u64::from(!lines.has_counted && self.skips.len() == skips_before);
            }
            Ok(_) if self.failed > failed_before => {}
            Ok(status) if status.code() == Some(NOTHING_TESTED) && self.skips.len() > skips_before => {}
            Ok(status) => self.check(&name, Err(format!("ended with {status}"))),
            Err(error) => self.check(&name, Err(error.to_string())),
        }
        println!("   {name}: {:.0} s", took.as_secs_f64());
        self.took.push((took, lines.running));
    }

    fn took(&mut self, name: &str, took: Duration) {
        println!("   {name}: {:.0} s", took.as_secs_f64());
        self.took.push((took, name.to_owned()));
    }

    /// Prints the summary and returns the exit code.
    pub fn close(mut self) -> ExitCode {
        println!();
        for (name, reason) in &self.skips {
            match skips::allowed(reason) {
                Some(why) => println!("skipped: {name}: {reason} (allowed: {why})"),
                None => {
                    self.failed += 1;
                    self.failures.push(format!(
                        "{name} was skipped, which xtask/src/skips.rs does not allow: {reason}"
                    ));
                }
            }
        }
        for block in &self.not_run {
            println!("{block}");
        }
        // Near the end: logs are often cut at the front.
        self.took.sort_by_key(|(took, _)| std::cmp::Reverse(*took));
        for (took, of) in self.took.iter().take(SLOWEST) {
            println!("{:7.1} s  {of}", took.as_secs_f64());
        }
        for failure in &self.failures {
            println!("failed: {failure}");
        }
        let (skipped, blocks) = (self.skips.len(), self.not_run.len());
        println!(
            "{} passed, {} failed, {skipped} skipped, {blocks} command blocks of documents not run",
            self.passed, self.failed
        );
        if self.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

/// Reads the output of cargo test, pytest and the PTF suite.
struct Lines {
    /// The running step, or the test binary that cargo named last.
    running: String,
    step: String,
    /// Skips that the runner has named since the last summary.
    named: u64,
    /// Whether there was a summary.
    has_counted: bool,
}

impl Lines {
    fn new(step: &str) -> Lines {
        let (running, step_named) = (step.to_owned(), step.to_owned());
        let mut lines = Lines { running, step: step_named, named: 0, has_counted: false };
        lines.take_name(step);
        lines
    }

    /// `     Running tests/x.rs (target/…)`, `   Doc-tests x`
    fn take_name(&mut self, line: &str) {
        let start = line.trim_start();
        if let Some(file) = start.strip_prefix("Running ").or(start.strip_prefix("Doc-tests ")) {
            // Of `unittests src/lib.rs (…/p4rack_wire-0123)` and `tests/all.rs (…/wire-0123)`, the binary's name identifies the crate.
            let (what, binary) = file.split_once(" (").unwrap_or((file, ""));
            let whose = binary.rsplit(['/', '-']).nth(1).unwrap_or_default();
            let needs_crate = what.starts_with("unittests") || what == "tests/all.rs";
            self.running = if needs_crate { format!("{whose} {what}") } else { what.to_owned() };
        }
    }

    fn read(&mut self, line: &str, report: &mut Report) {
        self.take_name(line);
        if line.contains(".md:") && line.contains(": not run: ") {
            report.not_run.push(line.to_owned());
        }
        if let Some((_, reason)) = line.split_once("skipped: needs ") {
            report.skips.push((self.running.clone(), format!("needs {}", reason.trim_end())));
        } else if let Some((test, reason)) =
            line.strip_prefix("test ").and_then(|line| line.split_once(" ... ignored"))
        {
            self.named += 1;
            report.skips.push((test.to_owned(), reason.trim_start_matches(", ").to_owned()));
        } else if let Some((times, reason)) =
            line.strip_prefix("SKIPPED [").and_then(|line| line.split_once("] "))
        {
            self.named += times.parse::<u64>().unwrap_or(1);
            report.skips.push((self.step.clone(), reason.to_owned()));
        }
        if line.starts_with("test ") && line.ends_with("FAILED") || line.starts_with("FAILED ") {
            report.failures.push(line.to_owned());
        }
        if let Some((passed, failed, skipped)) = counts(line) {
            report.passed += passed;
            report.failed += failed;
            self.has_counted = true;
            for _ in self.named..skipped {
                report.skips.push((self.running.clone(), "no reason given".into()));
            }
            self.named = 0;
        }
    }
}

/// Passed, failed and skipped in the summary line of a runner, such as `test result: ok. 3 passed; 0 failed;
/// 1 ignored; …` or `==== 3 passed, 1 skipped in 2.0s ====`.
fn counts(line: &str) -> Option<(u64, u64, u64)> {
    if !(line.starts_with("test result:") || (line.starts_with("==") && line.contains(" in "))) {
        return None;
    }
    let words: Vec<&str> = line.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).collect();
    let count = |what: &[&str]| {
        words.windows(2).filter(|w| what.contains(&w[1])).filter_map(|w| w[0].parse::<u64>().ok()).sum()
    };
    Some((count(&["passed"]), count(&["failed", "error", "errors"]), count(&["skipped", "ignored"])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::Started;

    fn read(text: &str) -> Report {
        let mut report = Report::default();
        let mut lines = Lines::new("step");
        text.lines().for_each(|line| lines.read(line, &mut report));
        report
    }

    fn skips(text: &str) -> Vec<(String, String)> {
        read(text).skips
    }

    fn pair(one: &str, other: &str) -> (String, String) {
        (one.into(), other.into())
    }

    #[test]
    fn runner_summaries_are_counted() {
        let cargo =
            "test result: ok. 3 passed; 1 failed; 2 ignored; 0 measured; 0 filtered out; finished in 1.50s";
        assert_eq!(counts(cargo), Some((3, 1, 2)));
        assert_eq!(counts("===== 4 passed, 1 skipped in 2.01s ====="), Some((4, 0, 1)));
        assert_eq!(counts("5 passed on to the next stage"), None);
    }

    #[test]
    fn programs_count_by_their_summaries_and_their_ends() {
        let run = |script: &str| {
            let mut report = Report::default();
            report.ended(Started::new("it", Command::new("sh").args(["-c", script])).wait());
            (report.passed, report.failed, report.failures)
        };
        // More than a pipe holds, by both ways.
        let long = "for n in $(seq 9000); do echo a line of its output; done";
        let summary = "echo 'test result: ok. 3 passed; 0 failed; 0 ignored' >&2";
        assert_eq!(run(&format!("{long}; {summary}")), (3, 0, Vec::new()));
        let (passed, failed, failures) = run(&format!("{summary}; exit 4"));
        assert_eq!((passed, failed), (3, 1));
        assert!(failures[0].contains("ended with exit status: 4"), "{failures:?}");
        let killed = run("kill -9 $$").2;
        assert!(killed[0].contains("signal: 9"), "{killed:?}");
        assert_eq!(run("exit 0"), (1, 0, Vec::new()));
        for code in [0, NOTHING_TESTED] {
            let skipped = format!("echo 'skipped: needs a target, get it by building it'; exit {code}");
            assert_eq!(run(&skipped), (0, 0, Vec::new()), "what was skipped has not passed");
        }
        let mut report = Report::default();
        report.ended(Started::new("it", &mut Command::new("/no/such/program")).wait());
        assert!(report.failures[0].contains("did not start"), "{:?}", report.failures);
        report.ended(Started::new("it", Command::new("sh").args(["-c", "echo built"])).wait());
        assert_eq!((report.passed, report.failed), (1, 1));
    }

    #[test]
    fn tests_that_skip_themselves_are_named_with_their_file() {
        let text = "     Running tests/tls.rs (target/verify/deps/tls-0123)\ntest a ... skipped: needs openssl, get it by x\nok";
        assert_eq!(skips(text), [pair("tests/tls.rs", "needs openssl, get it by x")]);
        let text = "     Running unittests src/lib.rs (target/verify/deps/p4rack_sim-01)\nskipped: needs y";
        assert_eq!(skips(text), [pair("p4rack_sim unittests src/lib.rs", "needs y")]);
        let text = "     Running tests/all.rs (target/verify/deps/hosts-01)\nskipped: needs z";
        assert_eq!(skips(text), [pair("hosts tests/all.rs", "needs z")]);
    }

    #[test]
    fn runners_own_skips_are_named_once() {
        let pytest = "SKIPPED [2] test_x.py:5: no namespaces\n==== 3 passed, 2 skipped in 1.00s ====";
        assert_eq!(skips(pytest), [pair("step", "test_x.py:5: no namespaces")]);
        let cargo = "test one ... ignored, too long\ntest result: ok. 1 passed; 0 failed; 1 ignored; finished in 0.1s";
        assert_eq!(skips(cargo), [pair("one", "too long")]);
        let unnamed = "==== 3 passed, 1 skipped in 1.00s ====";
        assert_eq!(skips(unnamed), [pair("step", "no reason given")]);
    }

    #[test]
    fn only_what_was_allowed_may_be_skipped() {
        let with = |reason: &str| Report { skips: vec![pair("x", reason)], ..Report::default() };
        assert_eq!(with("needs simple_switch_grpc, get it by …").close(), ExitCode::SUCCESS);
        assert_eq!(with("needs root, get it by sudo").close(), ExitCode::FAILURE);
        assert_eq!(with("no reason given").close(), ExitCode::FAILURE);
    }

    #[test]
    fn what_steps_took_is_named_by_their_test_binaries() {
        let mut report = Report::default();
        let name = "Running tests/a.rs (target/verify/deps/a-1)";
        report.ended(Started::new(name, Command::new("sh").args(["-c", "sleep 0.1"])).wait());
        assert!(report.step("b", Command::new("sh").args(["-c", "sleep 0.2"])));
        let [(a_took, a), (b_took, b)] = &report.took[..] else { panic!("{:?}", report.took) };
        assert_eq!((a.as_str(), b.as_str()), ("tests/a.rs", "b"));
        assert!(*a_took >= Duration::from_millis(100) && *b_took >= Duration::from_millis(200));
    }

    #[test]
    fn both_streams_are_read() {
        let mut report = Report::default();
        let script = "echo 'skipped: needs a'; echo 'skipped: needs b' >&2; exit 3";
        report.ended(Started::new("two", Command::new("sh").args(["-c", script])).wait());
        assert_eq!(report.skips, [pair("two", "needs a"), pair("two", "needs b")]);
        assert_eq!(report.failures, ["two: ended with exit status: 3"]);
    }
}
