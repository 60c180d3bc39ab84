//! p4c's programs with STF files, compiled by p4rack, on a real `simple_switch`, by p4c's own runner.
//!
//! `P4C_TESTDATA=…/p4c/testdata` names them. `simple_switch` and `simple_switch_CLI` have to be on PATH, and Python needs the packages
//! that the runner imports: `P4C_PYTHON` names another one than `python3`.

mod common;

use common::{p4rack, skip, stderr, stdout};
use p4rack_lab::process::on_path;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// It needs an extern in C++.
const FOREIGN: &str = "extern-funcs-bmv2";
/// Number of the other programs, at least.
const PROGRAMS: usize = 190;
/// Programs that run at the same time: they mostly wait.
const AT_ONCE: usize = 8;
/// The runner waits a second between entries and packets, which a busy machine does not keep.
const DELAY: (&str, &str) = ("self.packetDelay = 1", "self.packetDelay = 6");

/// p4c's runner, and what it needs.
struct Runner {
    python: String,
    /// Its folder, a copy.
    folder: PathBuf,
    /// p4c's repository.
    p4c: PathBuf,
    /// Where the compiler is.
    build: PathBuf,
}

impl Runner {
    fn new(scratch: &Path, p4c: &Path) -> Runner {
        let (folder, build) = (scratch.join("runner"), scratch.join("build"));
        fs::create_dir(&folder).expect("a folder");
        for file in ["run-bmv2-test.py", "bmv2stf.py"] {
            let from = p4c.join("backends/bmv2").join(file);
            let text =
                fs::read_to_string(&from).unwrap_or_else(|error| panic!("{}: {error}", from.display()));
            fs::write(folder.join(file), text.replace(DELAY.0, DELAY.1)).expect("a copy");
        }
        let installed = p4rack().args(["compat", "install"]).arg(&build).output().expect("p4rack starts");
        assert!(installed.status.success(), "{}", stderr(&installed));
        fs::write(build.join("config.h"), "#define HAVE_SIMPLE_SWITCH 1\n").expect("written");
        let python = std::env::var("P4C_PYTHON").unwrap_or_else(|_| "python3".to_owned());
        Runner { python, folder, p4c: p4c.to_owned(), build }
    }

    /// Runs a program in a folder of its own.
    fn run(&self, program: &Path) -> Output {
        let scratch = tempfile::tempdir().expect("a folder");
        let mut command = Command::new(&self.python);
        command
            .arg(self.folder.join("run-bmv2-test.py"))
            .arg(&self.p4c)
            .arg(program)
            .arg("-bd")
            .arg(&self.build);
        command.current_dir(scratch.path()).output().expect("Python starts")
    }
}

fn programs(samples: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(samples).unwrap_or_else(|error| panic!("{}: {error}", samples.display()));
    let mut programs: Vec<PathBuf> = files.filter_map(|file| Some(file.ok()?.path())).collect();
    programs.retain(|path| {
        let is_program =
            path.extension().is_some_and(|end| end == "p4") && path.with_extension("stf").exists();
        let is_foreign = || path.file_stem().is_some_and(|name| name == FOREIGN);
        let is_for_v1model = || fs::read_to_string(path).is_ok_and(|text| text.contains("v1model.p4"));
        is_program && !is_foreign() && is_for_v1model()
    });
    programs.sort();
    programs
}

/// Runs all of them. Returns those that fail, with what was said.
fn failures(runner: &Runner, programs: &[PathBuf], at_once: usize) -> Vec<(PathBuf, String)> {
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                while let Some(program) = programs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let output = runner.run(program);
                    if !output.status.success() {
                        let said = stdout(&output) + &stderr(&output);
                        let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
                        failed.push((program.clone(), said));
                    }
                }
            });
        }
    });
    failed.into_inner().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn they_do_what_their_files_say() {
    let Some(testdata) = std::env::var_os("P4C_TESTDATA").map(PathBuf::from) else {
        return skip("p4c's testdata", "cloning https://github.com/p4lang/p4c and setting P4C_TESTDATA");
    };
    if ["simple_switch", "simple_switch_CLI"].iter().any(|program| on_path(program).is_none()) {
        return skip(
            "simple_switch beside simple_switch_grpc, and simple_switch_CLI",
            "building p4lang's behavioral-model (`p4rack doctor`)",
        );
    }
    let scratch = tempfile::tempdir().expect("a folder");
    let p4c = testdata.canonicalize().expect("the testdata");
    let runner = Runner::new(scratch.path(), p4c.parent().expect("p4c's repository"));
    let programs = programs(&p4c.join("p4_16_samples"));
    assert!(programs.len() >= PROGRAMS, "{} programs, {PROGRAMS} expected", programs.len());
    let failed: Vec<PathBuf> =
        failures(&runner, &programs, AT_ONCE).into_iter().map(|(program, _)| program).collect();
    // The runner chooses ports at random and waits by the clock, so what fails beside others runs again alone.
    let failed = failures(&runner, &failed, 1);
    println!("p4c's programs on BMv2: {} of {} as expected", programs.len() - failed.len(), programs.len());
    let said: Vec<String> =
        failed.iter().map(|(program, said)| format!("== {}\n{said}", program.display())).collect();
    assert!(failed.is_empty(), "{}", said.join("\n"));
}
