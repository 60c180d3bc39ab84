//! Conformance: results of this front end and switch for a folder of sample programs with known results.
//!
//! The folder has the layout of the P4 reference compiler's `testdata`:
//!
//! ```text
//! p4_16_samples/           programs to accept; NAME.stf: packets and what becomes of them
//! p4_16_samples/FOLDER/…   the same; files without a `main` are parts of programs
//! p4_16_samples_outputs/   NAME.p4.p4info.txtpb: their P4Info
//! p4_16_errors/            programs to refuse
//! p4_16_errors_outputs/    NAME.p4-stderr: what the reference compiler says of them
//! ```
//!
//! Where another switch is at hand, [`random`] generates the input for it and this one.

mod accept;
mod p4info;
pub mod random;
mod refuse;
mod run;
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
    /// Folders searched for included files, after the folder of the program itself.
    pub include_dirs: Vec<PathBuf>,
    /// Macros to define: names and values.
    pub defines: Vec<(String, String)>,
}

/// A part of the checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Programs that include v1model.p4 are accepted, and the switch loads them.
    Accept,
    /// Programs of any architecture are accepted.
    Types,
    /// Programs of any architecture that the switch takes send the same frames as machine code and interpreted,
    /// with random entries and packets.
    Run,
    /// Erroneous programs are rejected on the line where the reference compiler rejects them.
    Refuse,
    /// P4Info equals that of the reference compiler.
    P4Info,
    /// v1model programs with an STF file behave as it says.
    Stf,
}

/// The result of one part.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Name of the part: `accept`, `types`, `run`, `refuse`, `p4info` or `stf`.
    pub part: &'static str,
    /// Number of programs tried.
    pub tried: usize,
    /// Number of programs that behaved as expected.
    pub passed: usize,
    /// Minimum number that must pass.
    pub required: usize,
    /// Other counts, by their names.
    pub counts: BTreeMap<&'static str, usize>,
    /// Programs that did not behave as expected.
    pub failures: Vec<Failure>,
    /// Notes on programs that did.
    pub notes: Vec<Failure>,
}

/// A remark on a program.
#[derive(Clone, Debug, Serialize)]
pub struct Failure {
    /// File name of the program.
    pub file: String,
    /// The remark, on one line.
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

    /// Records the result of one program.
    pub fn enter(&mut self, file: &str, result: Result<(), String>) {
        self.tried += 1;
        match result {
            Ok(()) => self.passed += 1,
            Err(why) => self.failures.push(Failure { file: file.to_owned(), why }),
        }
    }

    /// Increments a count.
    pub fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_insert(0) += 1;
    }

    /// Whether enough programs passed. Trying none is a failure.
    pub fn is_success(&self) -> bool {
        self.tried > 0 && self.passed >= self.required
    }
}

impl Suite {
    /// Checks one part.
    pub fn run(&self, part: Part) -> Result<Outcome, String> {
        match part {
            Part::Accept => self.accept(),
            Part::Types => self.types(),
            Part::Run => self.both(),
            Part::Refuse => self.refuse(),
            Part::P4Info => self.p4info(),
            Part::Stf => self.stf(),
        }
    }

    /// Programs to accept that include v1model.p4, sorted by name.
    pub fn v1model_samples(&self) -> Result<Vec<Sample>, String> {
        let mut samples = self.programs("p4_16_samples")?;
        samples.retain(|sample| sample.includes("v1model.p4"));
        Ok(samples)
    }

    /// Programs in one of the folders, sorted by name, and whole programs in those below it.
    fn programs(&self, folder: &str) -> Result<Vec<Sample>, String> {
        let folder = self.testdata.join(folder);
        let mut samples = Suite::programs_in(&folder)?;
        for inner in folders(&folder)? {
            samples.extend(whole_below(&inner)?);
        }
        for sample in &mut samples {
            if let Ok(path) = sample.path.strip_prefix(&folder) {
                sample.name = path.to_string_lossy().into_owned();
            }
        }
        Ok(samples)
    }

    /// Programs in a folder, sorted by name.
    fn programs_in(folder: &Path) -> Result<Vec<Sample>, String> {
        let entries = std::fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let mut paths: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path())).collect();
        paths.retain(|p| p.extension().is_some_and(|e| e == "p4"));
        paths.sort();
        Ok(paths.into_iter().filter_map(Sample::read).collect())
    }

    /// Options to compile a program of the suite with.
    pub fn options(&self, program: &Path) -> Options {
        let own = program.parent().map(Path::to_path_buf);
        Options {
            include_dirs: own.into_iter().chain(self.include_dirs.clone()).collect(),
            defines: self.defines.clone(),
        }
    }
}

/// Maximum depth below a folder in which programs are looked for.
const MAX_DEPTH: u32 = 8;

/// Programs of a folder and of those below it that instantiate `main`, sorted by path.
fn whole_below(folder: &Path) -> Result<Vec<Sample>, String> {
    let mut samples = below(folder, MAX_DEPTH)?;
    samples.retain(|sample| sample.text.contains(" main;"));
    Ok(samples)
}

fn below(folder: &Path, depth: u32) -> Result<Vec<Sample>, String> {
    let mut samples = Suite::programs_in(folder)?;
    if depth > 0 {
        for inner in folders(folder)? {
            samples.extend(below(&inner, depth - 1)?);
        }
    }
    Ok(samples)
}

/// The folders in a folder, sorted.
fn folders(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = std::fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut folders: Vec<_> = entries.filter_map(|e| Some(e.ok()?.path())).filter(|p| p.is_dir()).collect();
    folders.sort();
    Ok(folders)
}

/// A sample program.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Path of its file.
    pub path: PathBuf,
    /// Name of its file, with the folders below that of the samples.
    pub name: String,
    /// Its P4_16 text.
    pub text: String,
}

impl Sample {
    /// Reads a program. `None` if this compiler cannot be expected to: it is not UTF-8, or a broken link.
    fn read(path: PathBuf) -> Option<Sample> {
        let text = std::fs::read_to_string(&path).ok()?;
        let name = path.file_name()?.to_string_lossy().into_owned();
        Some(Sample { path, name, text })
    }

    /// Whether one of its lines includes a header file.
    fn includes(&self, header: &str) -> bool {
        self.text.lines().any(|line| {
            let line = line.trim_start();
            line.starts_with('#') && line.contains("include") && line.contains(header)
        })
    }
}

/// Runs a compiler stage and turns a panic into an error.
pub fn guarded<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a message");
        format!("internal fault: {text}")
    })
}

/// The first error, on one line.
fn first_error(diagnostics: &p4rack_p4::Diagnostics) -> String {
    let first = diagnostics.items.iter().find(|d| d.severity == p4rack_p4::Severity::Error);
    first.map_or_else(String::new, |d| {
        let at = diagnostics.sources().locate(d.span);
        format!("{}:{}: {}", at.line, at.column, d.message)
    })
}
