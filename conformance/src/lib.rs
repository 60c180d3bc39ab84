//! Conformance: what this front end and switch make of a folder of sample programs with known results.
//!
//! The folder has the layout of the P4 reference compiler's `testdata`:
//!
//! ```text
//! p4_16_samples/           programs to accept; NAME.stf: packets and what becomes of them
//! p4_16_samples_outputs/   NAME.p4.p4info.txtpb: their P4Info
//! p4_16_errors/            programs to refuse
//! p4_16_errors_outputs/    NAME.p4-stderr: what the reference compiler says of them
//! ```
//!
//! Where another switch is at hand, [`random`] makes what to give it and this one.

mod accept;
mod p4info;
pub mod random;
mod refuse;
mod stf;

use p4rack_p4::Options;
use serde::Serialize;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// A folder of sample programs.
#[derive(Clone, Debug)]
pub struct Suite {
    /// The folder, laid out as this crate's documentation says.
    pub testdata: PathBuf,
    /// Folders to search for included files, after the one of the program itself.
    pub include_dirs: Vec<PathBuf>,
}

/// What is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Programs that include v1model.p4 are accepted, and the switch takes them.
    Accept,
    /// Erroneous programs are refused, where the reference compiler refuses them.
    Refuse,
    /// P4Info equals the reference compiler's.
    P4Info,
    /// v1model programs with an STF file do what it says.
    Stf,
}

/// What came of one part.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// `accept`, `refuse`, `p4info`, `stf`.
    pub part: &'static str,
    /// How many programs were tried.
    pub tried: usize,
    /// How many went as expected.
    pub passed: usize,
    /// The least that must pass.
    pub required: usize,
    /// Other counts, by what they count.
    pub counts: BTreeMap<&'static str, usize>,
    /// Programs that did not go as expected.
    pub failures: Vec<Failure>,
    /// What is worth knowing of programs that did.
    pub notes: Vec<Failure>,
}

/// A program and what is to be said of it.
#[derive(Clone, Debug, Serialize)]
pub struct Failure {
    /// File name.
    pub file: String,
    /// In one line.
    pub why: String,
}

impl Outcome {
    /// An empty result.
    pub fn new(part: &'static str) -> Outcome {
        Outcome {
            part,
            tried: 0,
            passed: 0,
            required: 0,
            counts: BTreeMap::new(),
            failures: vec![],
            notes: vec![],
        }
    }

    /// Enters one program.
    pub fn enter(&mut self, file: &str, result: Result<(), String>) {
        self.tried += 1;
        match result {
            Ok(()) => self.passed += 1,
            Err(why) => self.failures.push(Failure { file: file.to_owned(), why }),
        }
    }

    /// Adds one to a count.
    pub fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_insert(0) += 1;
    }

    /// Whether enough passed; nothing tried is no success.
    pub fn is_success(&self) -> bool {
        self.tried > 0 && self.passed >= self.required
    }
}

impl Suite {
    /// Checks one part.
    pub fn run(&self, part: Part) -> Result<Outcome, String> {
        match part {
            Part::Accept => self.accept(),
            Part::Refuse => self.refuse(),
            Part::P4Info => self.p4info(),
            Part::Stf => self.stf(),
        }
    }

    /// Programs to accept that include v1model.p4, by name.
    pub fn v1model_samples(&self) -> Result<Vec<Sample>, String> {
        let mut samples = self.programs("p4_16_samples")?;
        samples.retain(|sample| sample.includes("v1model.p4"));
        Ok(samples)
    }

    /// Programs of one of its folders, by name.
    fn programs(&self, folder: &str) -> Result<Vec<Sample>, String> {
        let folder = self.testdata.join(folder);
        let entries = std::fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let mut paths: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path())).collect();
        paths.retain(|p| p.extension().is_some_and(|e| e == "p4"));
        paths.sort();
        Ok(paths.into_iter().filter_map(Sample::read).collect())
    }

    /// How to compile a program of it.
    pub fn options(&self, program: &Path) -> Options {
        let own = program.parent().map(Path::to_path_buf);
        Options { include_dirs: own.into_iter().chain(self.include_dirs.clone()).collect(), defines: vec![] }
    }
}

/// A program's text.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Its file.
    pub path: PathBuf,
    /// The file's name.
    pub name: String,
    /// P4_16.
    pub text: String,
}

impl Sample {
    /// `None` for one that another compiler than this would have to take: not UTF-8, a broken link.
    fn read(path: PathBuf) -> Option<Sample> {
        let text = std::fs::read_to_string(&path).ok()?;
        let name = path.file_name()?.to_string_lossy().into_owned();
        Some(Sample { path, name, text })
    }

    /// Whether one of its lines includes this header.
    fn includes(&self, header: &str) -> bool {
        self.text.lines().any(|line| {
            let line = line.trim_start();
            line.starts_with('#') && line.contains("include") && line.contains(header)
        })
    }
}

/// Runs a compiler stage; a panic in it is its result.
pub fn guarded<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a message");
        format!("internal fault: {text}")
    })
}

/// The first error on one line.
fn first_error(diagnostics: &p4rack_p4::Diagnostics) -> String {
    let first = diagnostics.items.iter().find(|d| d.severity == p4rack_p4::Severity::Error);
    first.map_or_else(String::new, |d| {
        let at = diagnostics.sources().locate(d.span);
        format!("{}:{}: {}", at.line, at.column, d.message)
    })
}
