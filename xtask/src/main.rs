//! Developer tools. `cargo xtask test` checks everything that must hold before a change is merged.

mod arrows;
mod deny;
mod fuzz;
mod lanes;
mod oldest;
mod picture;
mod report;
mod setup;
mod skips;
mod suites;
mod tidy;

use lanes::{Lane, Lanes};
use report::Report;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::{Arc, LazyLock, Mutex};

const HELP: &str = "\
cargo xtask COMMAND

  test          everything: formatting, lints, crate graph, tests, dependencies, fuzz targets, Python clients, PTF
  test --fast   the same without dependencies, fuzz targets and anything in Python
  fuzz [SECS]   run every fuzz target for SECS seconds each (default 10)
  dependencies  licences, duplicates, sources and known faults of what p4rack is made of
  python        PyPI's P4Runtime clients and the PTF suite against the switch
  tna-examples FOLDER [PART,…]
                open-p4studio's tests, unchanged, against the switch; FOLDER is a copy of it, PART in a test's name
  tidy          only what needs no build: the crate graph, circles of modules, names, lengths
  graph         print who uses whom: the crates, and the modules of each crate
  bless         rewrite the golden files: generated text and code, results; read the diff before you commit it
";

/// The folder of the workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_path_buf).unwrap_or_default()
}

/// `cargo` in the workspace.
fn cargo(args: &[&str]) -> Command {
    let mut command = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".into()));
    settle(command.current_dir(root()).args(args));
    command
}

/// Sets the environment of a command that calls cargo. Cargo's variables about this package are removed: ring's build
/// script watches them, and nearly everything would be rebuilt whenever `cargo xtask` and plain `cargo` alternate.
fn settle(command: &mut Command) {
    let of_this = ["CARGO_PKG_", "CARGO_MANIFEST_"];
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| of_this.iter().any(|start| name.starts_with(start))) {
            command.env_remove(name);
        }
    }
    command.envs(build_settings().iter().cloned());
}

/// Environment for every call of cargo. It is always the same, because a change would rebuild everything. If
/// nothing is built yet, incremental compilation only costs time, as a first run may be the only one; and the
/// linter compiles as well, so that sources are read once. Its output is optimised slightly less.
fn build_settings() -> &'static [(&'static str, String)] {
    static SETTINGS: LazyLock<Vec<(&str, String)>> = LazyLock::new(|| {
        let target =
            std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
        let mut settings = Vec::new();
        if !target.join("verify").exists() {
            settings.push(("CARGO_INCREMENTAL", "0".into()));
            let linter =
                std::env::var("CARGO").map(|cargo| Path::new(&cargo).with_file_name("clippy-driver"));
            if let Some(linter) = linter.ok().filter(|linter| linter.is_file()) {
                settings.push((LINTER, linter.display().to_string()));
                settings.push(("CLIPPY_ARGS", "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__".into()));
            }
        }
        settings
    });
    &SETTINGS
}

/// The test programs that write golden files and snapshots when blessed, each with a part of the names of tests that do.
const BLESSED: &[(&str, &str)] = &[
    ("codegen", "golden::"),
    ("codegen", "lanes::"),
    ("golden", ""),
    ("p4", "syntax::"),
    ("pl2_incast", ""),
    ("sim", "clio_rack::"),
    ("sim", "cowbird::"),
    ("sim", "golden::"),
    ("sim", "workloads::"),
    ("switch", "congestion::"),
];

/// Cargo's variable for the compiler of the workspace's own crates.
const LINTER: &str = "RUSTC_WORKSPACE_WRAPPER";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let mut report = Report::default();
    match args.as_slice() {
        ["test"] => test(&mut report, true),
        ["test", "--fast"] => test(&mut report, false),
        ["tidy"] => tidy(&mut report),
        ["graph"] => match arrows::picture(&root()).and_then(|crates| Ok(crates + &tidy::pictures(&root())?))
        {
            Ok(picture) => {
                print!("{picture}");
                return ExitCode::SUCCESS;
            }
            Err(error) => {
                eprintln!("error: {error}");
                return ExitCode::FAILURE;
            }
        },
        ["fuzz"] => alone(&mut report, |lane| fuzz::run(lane, fuzz::build(), 10)),
        ["fuzz", secs] if secs.parse::<u32>().is_ok() => {
            let secs = secs.parse().unwrap_or(10);
            alone(&mut report, move |lane| fuzz::run(lane, fuzz::build(), secs));
        }
        ["dependencies"] => alone(&mut report, deny::check),
        ["python"] => {
            build_binaries(&mut report);
            alone(&mut report, |lane| {
                setup::python(lane, &setup::environments(lane));
                setup::simulator(lane);
            });
        }
        ["tna-examples", folder, only @ ..] if only.len() <= 1 => {
            build_binaries(&mut report);
            let (folder, only) = (PathBuf::from(folder), only.first().unwrap_or(&"").to_string());
            alone(&mut report, move |lane| setup::tna_examples(lane, &folder, &only));
        }
        ["bless"] => {
            for (program, tests) in BLESSED {
                // With a part of the workspace, dependencies would get other features and be rebuilt.
                let mut command = cargo(&["test", "--profile", "verify", "--workspace", "--test", program]);
                command.args(["--", tests]).env("P4RACK_BLESS", "1").env("INSTA_UPDATE", "always");
                report.step(&format!("golden files: {program} {tests}"), &mut command);
            }
        }
        _ => {
            eprint!("{HELP}");
            return ExitCode::from(2);
        }
    }
    report.close()
}

/// Runs all steps.
///
/// ```text
///  lints ────────┬─ tests in time
///  environments ─┼─ Python, PTF ─ tests in time that are left
///                ├─ other tests ─ fuzz targets run ─ libCacheSim
///                └─ fuzz targets build
/// ```
///
/// The network's time is used beside the compiler's. Of the lanes behind the lints, only the first two have a claim to the
/// processors: their tests wait for clocks and packets.
fn test(report: &mut Report, whole: bool) {
    setup::debian(report);
    let lanes = Lanes::new();
    let environments = whole.then(|| {
        lanes.start(|lane| {
            deny::check(lane);
            setup::environments(lane)
        })
    });
    report.step("formatting", &mut cargo(&["fmt", "--all", "--check"]));
    tidy(report);
    oldest::check(report);
    match build_settings().iter().any(|(name, _)| *name == LINTER) {
        true => report.step(
            "lints",
            &mut cargo(&["test", "--workspace", "--benches", "--tests", "--profile", "verify", "--no-run"]),
        ),
        false => {
            let clippy =
                ["clippy", "--workspace", "--all-targets", "--profile", "verify", "--", "-D", "warnings"];
            report.step("lints", &mut cargo(&clippy))
        }
    };
    let fuzz_targets = whole.then(fuzz::build);
    let (in_time, beside) = suites::build(report);
    println!("── tests: {} programs in time, {} beside them", in_time.len(), beside.len());
    let in_time = Arc::new(Mutex::new(in_time));
    let left = Arc::clone(&in_time);
    lanes.start(move |lane| suites::in_time(lane, &in_time));
    lanes.start(move |lane| {
        if let Some(environments) = environments {
            // A lane that has panicked has said why.
            setup::python(lane, &environments.join().unwrap_or_default());
        }
        suites::in_time(lane, &left);
    });
    lanes.start(move |lane| {
        suites::beside(lane, &beside);
        if let Some(build) = fuzz_targets {
            fuzz::run(lane, build, fuzz::IN_TESTS_SECS);
            setup::simulator(lane);
        }
    });
    report.follow(lanes);
}

/// Runs the steps of a single lane.
fn alone(report: &mut Report, steps: impl FnOnce(&Lane) + Send + 'static) {
    let lanes = Lanes::new();
    lanes.start(steps);
    report.follow(lanes);
}

/// Checks of ARCHITECTURE.md's promises that need only the text of the sources.
fn tidy(report: &mut Report) {
    report.check("crate graph", arrows::check(&root()));
    tidy::check(report, &root());
}

fn build_binaries(report: &mut Report) {
    report
        .step("binaries", &mut cargo(&["build", "--profile", "verify", "-p", "p4rack", "-p", "p4rack-pace"]));
}
