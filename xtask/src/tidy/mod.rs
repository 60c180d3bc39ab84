//! Checks of the source files themselves, as ARCHITECTURE.md promises.

mod architectures;
mod circles;
mod pages;
mod programs;
mod schemes;
mod units;

use crate::picture;
use crate::report::Report;
use std::fs;
use std::path::{Path, PathBuf};

/// Folders without sources: output of builds and runs, and generated files.
const NO_SOURCES: &[&str] =
    &["target", "corpus", "artifacts", "golden", "generated", "snapshots", "__pycache__"];
/// Extensions of text files written by hand.
const WRITTEN: &[&str] = &["rs", "py", "p4", "hbs", "md", "html", "css", "toml", "js", "sh", "proto", "yml"];
/// Files must stay below this many lines.
const LINES_MAX: usize = 800;
/// Files with more lines are listed.
const LINES_MANY: usize = 400;
/// Top-level folders that are specific to one machine.
const OF_ONE_MACHINE: &[&str] = &["root", "home", "work", "Users"];

/// A check of single files: its name, and a function that returns problems.
type Check = (&'static str, fn(&Source) -> Vec<String>);

/// A file as the checks see it.
struct Source {
    /// Path from the workspace.
    path: PathBuf,
    text: String,
}

impl Source {
    fn ends_in(&self, endings: &[&str]) -> bool {
        self.path.extension().is_some_and(|ending| endings.iter().any(|one| ending == *one))
    }

    fn is_test(&self) -> bool {
        let stem = self.path.file_stem().unwrap_or_default().to_string_lossy();
        stem.ends_with("tests") || self.path.iter().any(|folder| folder == "tests" || folder == "fuzz")
    }

    fn place(&self, line: usize) -> String {
        format!("{}:{line}", self.path.display())
    }
}

/// The top-level modules of each crate and their dependencies. Errors: a circle, or a file that can't be read.
pub fn pictures(root: &Path) -> Result<String, String> {
    let pictures = circles::uses(&sources(root)?);
    pictures.iter().map(|(folder, uses)| Ok(format!("\n{}", picture::draw(folder, uses)?))).collect()
}

fn sources(root: &Path) -> Result<Vec<Source>, String> {
    let mut sources = Vec::new();
    collect(root, root, &mut sources)?;
    sources.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(sources)
}

/// Runs all checks.
pub fn check(report: &mut Report, root: &Path) {
    let sources = match sources(root) {
        Ok(sources) => sources,
        Err(error) => return report.check("sources", Err(error)),
    };
    let long: Vec<String> = sources.iter().filter_map(|source| longer(source, LINES_MANY)).collect();
    println!("── files of more than {LINES_MANY} lines: {}\n   {}", long.len(), long.join("\n   "));
    let each: [Check; 5] = [
        ("lengths of files", |source| longer(source, LINES_MAX - 1).into_iter().collect()),
        ("units of times and rates", units_of),
        ("paths of one machine", paths_of_one_machine),
        ("skips are said past the harness", hidden_skips),
        ("pages and comments in plain words", pages::vague_words),
    ];
    for (name, find) in each {
        report.check(name, result(sources.iter().flat_map(find).collect()));
    }
    report.check("links between pages", result(pages::dead_links(&sources)));
    report.check("test programs name all files", result(programs::left_out(&sources)));
    report.check("seeds of past failures are replayed", result(forgotten_seeds(&sources)));
    report.check("an architecture's names stay in its modules", result(architectures::strays(&sources)));
    report.check("a protocol's names stay in its modules", result(schemes::strays(&sources)));
    report.check("ARCHITECTURE.md names what a protocol touches", result(schemes::untold(&sources)));
    report.check("modules without circles", result(circles::problems(&sources)));
}

fn result(problems: Vec<String>) -> Result<(), String> {
    if problems.is_empty() { Ok(()) } else { Err(problems.join("; ")) }
}

/// Reads every text file below a folder.
fn collect(root: &Path, folder: &Path, sources: &mut Vec<Source>) -> Result<(), String> {
    let failed = |error| format!("{}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        let kind = entry.file_type().map_err(failed)?;
        if kind.is_dir() {
            let hidden = name.starts_with('.') && name != ".ci";
            if !hidden && !NO_SOURCES.contains(&name.as_str()) {
                collect(root, &path, sources)?;
            }
        } else if kind.is_file()
            && let Ok(text) = fs::read_to_string(&path)
        {
            // In a linked work tree, `.git` is a file.
            if name == ".git" {
                continue;
            }
            let path = path.strip_prefix(root).unwrap_or(&path).to_owned();
            sources.push(Source { path, text });
        }
    }
    Ok(())
}

/// The file and its length, if that exceeds `limit`.
fn longer(source: &Source, limit: usize) -> Option<String> {
    let lines = source.text.lines().count();
    (source.ends_in(WRITTEN) && lines > limit).then(|| format!("{}: {lines} lines", source.path.display()))
}

fn units_of(source: &Source) -> Vec<String> {
    if !source.ends_in(&["rs"]) || source.is_test() {
        return Vec::new();
    }
    let without = |(line, name): (usize, String)| format!("{}: `{name}` names no unit", source.place(line));
    units::without(&source.text).into_iter().map(without).collect()
}

fn paths_of_one_machine(source: &Source) -> Vec<String> {
    let starts: Vec<String> = OF_ONE_MACHINE.iter().map(|root| format!("/{root}/")).collect();
    let is_one = |line: &str| {
        starts.iter().any(|start| {
            line.match_indices(start.as_str()).any(|(at, _)| {
                // `…/tests/work/` is not at the root.
                !line[..at].ends_with(|c: char| c.is_alphanumeric() || "._-}$~*".contains(c))
            })
        })
    };
    let lines = source.text.lines().enumerate().filter(|(_, line)| is_one(line));
    lines.map(|(n, line)| format!("{}: {}", source.place(n + 1), line.trim())).collect()
}

/// The test harness captures a passing test's output through macros, so such a skip would not be counted.
/// Standard error has no buffer: a line with values in it leaves in pieces, and other tests' lines between them.
fn hidden_skips(source: &Source) -> Vec<String> {
    if !source.ends_in(&["rs"]) {
        return Vec::new();
    }
    let said = ["\"skipped: ", "needs "].concat();
    let mut problems = Vec::new();
    for (at, _) in source.text.match_indices(&said) {
        let before = source.text[..at].trim_end();
        if before.ends_with("println!(") {
            let line = before.lines().count();
            problems.push(format!("{}: write skips by `writeln!` to standard error", source.place(line)));
        }
        let literal = source.text[at + 1..].split('"').next().unwrap_or_default();
        if before.ends_with("stderr(),") && literal.contains('{') {
            let line = before.lines().count();
            problems.push(format!("{}: write a skip with values by `format!`, at once", source.place(line)));
        }
    }
    problems
}

/// Each file of seeds is beside a test that declares to read it.
fn forgotten_seeds(sources: &[Source]) -> Vec<String> {
    const ENDING: &str = "proptest-regressions";
    let reads = format!("FileFailurePersistence::WithSource(\"{ENDING}\")");
    let seeds = sources.iter().filter(|source| source.ends_in(&[ENDING]));
    let forgotten = seeds.filter(|seeds| {
        let test = seeds.path.with_extension("rs");
        !sources.iter().any(|source| source.path == test && source.text.contains(&reads))
    });
    forgotten.map(|seeds| format!("{}: no test beside it has {reads}", seeds.path.display())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source { path: path.into(), text: text.into() }
    }

    #[test]
    fn long_files_are_found() {
        let long = source("a.rs", &"x\n".repeat(LINES_MAX));
        assert_eq!(longer(&long, LINES_MAX - 1), Some("a.rs: 800 lines".into()));
        assert_eq!(longer(&source("a.rs", &"x\n".repeat(LINES_MAX - 1)), LINES_MAX - 1), None);
        for name in ["a.js", "a.sh", "a.proto", "a.yml"] {
            assert!(longer(&source(name, &long.text), LINES_MAX - 1).is_some(), "{name}");
        }
        assert_eq!(longer(&source("a.lock", &long.text), LINES_MAX - 1), None);
    }

    #[test]
    fn paths_of_one_machine_are_found() {
        let path = |start: &str| format!("cd {start}{}/me/x", OF_ONE_MACHINE[1]);
        assert_eq!(paths_of_one_machine(&source("a.md", &path("/"))).len(), 1);
        assert_eq!(paths_of_one_machine(&source("a.md", &path("tests/"))).len(), 0);
    }

    #[test]
    fn skips_that_the_harness_hides_are_found() {
        let said = ["(\n  \"skipped: ", "needs x\");"].concat();
        let hidden = source("a.rs", &format!("eprintln!{said}"));
        assert_eq!(hidden_skips(&hidden), ["a.rs:1: write skips by `writeln!` to standard error"]);
        assert!(hidden_skips(&source("a.rs", &format!("writeln!(out, {}", &said[1..]))).is_empty());
        let torn = source("a.rs", &format!("writeln!(stderr(),{}", said[1..].replace('x', "{x}")));
        assert_eq!(hidden_skips(&torn), ["a.rs:1: write a skip with values by `format!`, at once"]);
    }

    #[test]
    fn seeds_that_nobody_reads_are_found() {
        let seeds = || source("t/a.proptest-regressions", "cc 00");
        let test = |text: &str| source("t/a.rs", text);
        let reads = "Box::new(FileFailurePersistence::WithSource(\"proptest-regressions\"))";
        assert!(forgotten_seeds(&[seeds(), test(reads)]).is_empty());
        assert_eq!(forgotten_seeds(&[seeds(), test("failure_persistence: None")]).len(), 1);
        assert_eq!(forgotten_seeds(&[seeds()]).len(), 1);
    }

    #[test]
    fn this_workspace_is_tidy() {
        let mut report = Report::default();
        check(&mut report, &crate::root());
        assert_eq!(report.close(), std::process::ExitCode::SUCCESS);
    }
}
