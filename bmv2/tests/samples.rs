//! Programs in P4 become JSON, are read again, and do what their STF files say.
//!
//! The tests of the repository run this over `tests/stf`. `P4C_TESTDATA=…/p4c/testdata` adds p4c's programs, and with
//! `p4c-bm2-ss` on PATH the JSON that p4c makes of them.

use p4rack_p4::{Compiled, Options};
use p4rack_p4rt::text;
use p4rack_switch::Pipeline;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// What became of a program.
enum End {
    Same,
    /// BMv2 can't express it.
    Refused(String),
    Differs(String),
}

fn stf(compiled: &Compiled, text: &str) -> Result<(), String> {
    let statements = p4rack_stf::parse(text).map_err(|error| error.to_string())?;
    let pipeline = Pipeline::compile(&compiled.program).map_err(|error| format!("the switch: {error}"))?;
    let outcome =
        p4rack_stf::run(&compiled.program, pipeline, &statements).map_err(|error| error.to_string())?;
    if outcome.passed() { Ok(()) } else { Err(outcome.to_string()) }
}

fn round(program: &Path, options: &Options) -> Option<End> {
    let text = std::fs::read_to_string(program).ok()?;
    let packets = std::fs::read_to_string(program.with_extension("stf")).ok()?;
    let name = program.to_string_lossy();
    let compiled = p4rack_p4::compile(&text, &name, options).ok()?;
    stf(&compiled, &packets).ok()?;
    let json = match p4rack_bmv2::write(&compiled) {
        Ok(json) => json.to_string(),
        Err(refused) => {
            return Some(End::Refused(
                refused.items.first().map(|said| said.message.clone()).unwrap_or_default(),
            ));
        }
    };
    for info in [None, Some(&compiled.p4info)] {
        let again = match p4rack_bmv2::read(&json, &name, info) {
            Ok(again) => again,
            Err(error) => return Some(End::Differs(error)),
        };
        if let Err(error) = stf(&again, &packets) {
            return Some(End::Differs(error));
        }
    }
    Some(End::Same)
}

fn programs(folder: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut programs: Vec<PathBuf> = files
        .filter_map(|file| Some(file.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|end| end == "p4") && path.with_extension("stf").exists())
        .collect();
    programs.sort();
    programs
}

/// p4c's compiler for BMv2.
const COMPILER: &str = "p4c-bm2-ss";
/// Of p4c's programs for v1model with an STF file, the one that needs an extern in C++, and the number of the others at least.
const FOREIGN: &str = "extern-funcs-bmv2.p4";
const P4CS: usize = 190;
/// p4c's P4Info of this one has a table that p4c's file lacks, so they are refused together.
const UNLIKE_INFO: &str = "gauntlet_nested_switch-bmv2.p4";
/// Programs that are compiled at the same time.
const AT_ONCE: usize = 4;

/// Runs all programs. Returns how many are the same, how many BMv2 can't express, and what differs.
fn all(programs: &[PathBuf], options: impl Fn(&Path) -> Options) -> (usize, Vec<String>, Vec<String>) {
    let (mut same, mut refused, mut differs) = (0, Vec::new(), Vec::new());
    for program in programs {
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        match round(program, &options(program)) {
            None => {}
            Some(End::Same) => same += 1,
            Some(End::Refused(why)) => refused.push(format!("{name}: {why}")),
            Some(End::Differs(why)) => differs.push(format!("== {name}\n{why}")),
        }
    }
    (same, refused, differs)
}

#[test]
fn own_programs_do_the_same_as_json() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/stf");
    let (same, refused, differs) = all(&programs(&folder), |_| Options::default());
    println!("{same} the same, {} refused:\n{}", refused.len(), refused.join("\n"));
    assert!(differs.is_empty(), "{} differ:\n{}", differs.len(), differs.join("\n"));
    assert_eq!((same, refused.len()), (85, 0), "{}", refused.join("\n"));
}

#[test]
fn p4cs_programs_do_the_same_as_json() {
    let Some(testdata) = testdata() else { return };
    let programs = programs(&testdata.join("p4_16_samples"));
    let options = |path: &Path| Options {
        include_dirs: path.parent().map(Path::to_path_buf).into_iter().collect(),
        ..Options::default()
    };
    let (same, refused, differs) = all(&programs, options);
    println!("{same} the same, {} refused:\n{}", refused.len(), refused.join("\n"));
    assert!(differs.is_empty(), "{} differ:\n{}", differs.len(), differs.join("\n"));
    assert!(refused.is_empty(), "{}", refused.join("\n"));
    assert!(same >= P4CS, "{same} the same, {P4CS} expected");
}

/// p4c's testdata; says so if it isn't known.
fn testdata() -> Option<PathBuf> {
    let testdata = std::env::var_os("P4C_TESTDATA").map(PathBuf::from);
    if testdata.is_none() {
        let _ = writeln!(
            std::io::stderr(),
            "skipped: needs p4c's testdata, get it by cloning https://github.com/p4lang/p4c and setting P4C_TESTDATA"
        );
    }
    testdata
}

/// Compiles a program by p4c, and runs it with its STF file, without a P4Info and with p4c's.
fn by_p4c(program: &Path, include: &Path, folder: &Path) -> Result<(), String> {
    let (json, info) = (folder.join("program.json"), folder.join("program.p4info.txtpb"));
    let mut command = Command::new(COMPILER);
    command.arg("-I").arg(include).arg("-o").arg(&json).arg("--p4runtime-files").arg(&info).arg(program);
    let output = command.output().map_err(|error| format!("{COMPILER}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{COMPILER}: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let read =
        |file: &Path| std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()));
    let (json, info, packets) = (read(&json)?, read(&info)?, read(&program.with_extension("stf"))?);
    assert!(json.contains("github.com/p4lang/p4c"), "{COMPILER} on PATH is not p4c's");
    let info = text::parse(&info).map_err(|error| format!("P4Info: {error}"))?;
    let name = program.to_string_lossy();
    for (with, info) in [("without", None), ("with", Some(&info))] {
        if info.is_some() && program.ends_with(UNLIKE_INFO) {
            continue;
        }
        let compiled = p4rack_bmv2::read(&json, &name, info);
        let done = compiled.and_then(|compiled| stf(&compiled, &packets));
        done.map_err(|error| format!("{with} P4Info: {error}"))?;
    }
    Ok(())
}

#[test]
#[allow(clippy::disallowed_methods, reason = "p4c's processes run beside each other")]
fn p4cs_json_does_what_its_programs_do() {
    let Some(testdata) = testdata() else { return };
    let folders = std::env::var_os("PATH").unwrap_or_default();
    if !std::env::split_paths(&folders).any(|folder| folder.join(COMPILER).is_file()) {
        let _ = writeln!(
            std::io::stderr(),
            "skipped: needs p4c-bm2-ss, get it by building https://github.com/p4lang/p4c with its backend for BMv2"
        );
        return;
    }
    let mut programs = programs(&testdata.join("p4_16_samples"));
    programs.retain(|program| {
        let text = std::fs::read_to_string(program).unwrap_or_default();
        text.contains("v1model.p4") && !program.ends_with(FOREIGN)
    });
    let include = testdata.join("../p4include");
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                let folder = tempfile::tempdir().expect("a scratch folder");
                while let Some(program) = programs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(why) = by_p4c(program, &include, folder.path()) {
                        let name = program.file_name().unwrap_or_default().to_string_lossy();
                        let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
                        failed.push(format!("== {name}\n{why}"));
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    println!("p4c's JSON: {} of {} as expected", programs.len() - failed.len(), programs.len());
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert!(programs.len() >= P4CS, "{} programs, {P4CS} expected", programs.len());
}
