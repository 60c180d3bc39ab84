//! Programs in P4 become JSON, are read again, and do what their STF files say.
//!
//! The tests of the repository run this over `tests/stf`. `P4C_TESTDATA=…/p4c/testdata` adds p4c's programs.

use p4rack_p4::{Compiled, Options};
use p4rack_switch::Pipeline;
use std::io::Write;
use std::path::{Path, PathBuf};

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

/// Of p4c's programs, those that BMv2 can't express, and how many others there are at least.
const P4CS_REFUSED: [&str; 3] = ["array-copy-bmv2.p4", "header-stack-ops-bmv2.p4", "issue447-5-bmv2.p4"];
const P4CS_SAME: usize = 187;

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
    assert_eq!((same, refused.len()), (82, 0), "{}", refused.join("\n"));
}

#[test]
fn p4cs_programs_do_the_same_as_json() {
    let Some(testdata) = std::env::var_os("P4C_TESTDATA") else {
        let _ = writeln!(
            std::io::stderr(),
            "skipped: needs p4c's testdata, get it by cloning https://github.com/p4lang/p4c and setting P4C_TESTDATA"
        );
        return;
    };
    let programs = programs(&Path::new(&testdata).join("p4_16_samples"));
    let options = |path: &Path| Options {
        include_dirs: path.parent().map(Path::to_path_buf).into_iter().collect(),
        ..Options::default()
    };
    let (same, refused, differs) = all(&programs, options);
    println!("{same} the same, {} refused:\n{}", refused.len(), refused.join("\n"));
    assert!(differs.is_empty(), "{} differ:\n{}", differs.len(), differs.join("\n"));
    let names: Vec<&str> =
        refused.iter().filter_map(|why| why.split_once(':')).map(|(name, _)| name).collect();
    assert_eq!(names, P4CS_REFUSED);
    assert!(same >= P4CS_SAME, "{same} the same, {P4CS_SAME} expected");
}
