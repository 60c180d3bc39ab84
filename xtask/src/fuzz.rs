//! Fuzz targets with libFuzzer on the stable compiler. Coverage comes from LLVM's own pass, so neither a
//! nightly toolchain nor another cargo command is needed.

use crate::report::{Report, Started};
use crate::{cargo, root, settle};
use std::fs;
use std::process::Command;
use std::thread;

const COVERAGE: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Cdebug-assertions=on -Ccodegen-units=1 --cfg fuzzing";
/// With `--target`, build scripts and macros are not instrumented.
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Starts to build all targets, with the time that others leave of the processors.
pub fn build() -> Started {
    let cargo = cargo(&["build", "--release", "--target", TARGET]);
    let mut build = Command::new("nice");
    build.args(["-n", "19"]).arg(cargo.get_program()).args(cargo.get_args()).current_dir(root());
    build.args(["--manifest-path", "fuzz/Cargo.toml", "--target-dir", "fuzz/target"]);
    settle(&mut build);
    let flags = COVERAGE.split_whitespace().collect::<Vec<_>>().join(" ");
    Started::new("fuzz targets build", build.env("RUSTFLAGS", flags).env_remove(crate::LINTER))
}

/// Runs each target for `secs` seconds, as many at once as there are processors.
pub fn run(report: &mut Report, build: Started, secs: u32) {
    if !report.finish(build) {
        return;
    }
    let folder = root().join("fuzz/fuzz_targets");
    let mut names: Vec<String> = fs::read_dir(&folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.path().file_stem().map(|stem| stem.to_string_lossy().into_owned()))
        .collect();
    names.sort();
    let at_once = thread::available_parallelism().map_or(1, usize::from);
    for names in names.chunks(at_once) {
        println!("── fuzz {}: {secs} s", names.join(", "));
        let ended: Vec<_> = thread::scope(|scope| {
            let running: Vec<_> = names.iter().map(|name| scope.spawn(|| fuzzed(name, secs))).collect();
            running.into_iter().map(|thread| thread.join()).collect()
        });
        for (name, ended) in names.iter().zip(ended) {
            println!("   {name}");
            let ended = ended.unwrap_or_else(|_| Err("its thread panicked".into()));
            report.check(&format!("fuzz {name}"), ended);
        }
    }
}

/// Runs one target for `secs` seconds. Errors: its output, if it found something.
fn fuzzed(name: &str, secs: u32) -> Result<(), String> {
    let corpus = root().join("fuzz/corpus").join(name);
    let artifacts = root().join("fuzz/artifacts").join(name);
    for dir in [&corpus, &artifacts] {
        fs::create_dir_all(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    }
    let seeds = root().join("fuzz/seeds").join(name);
    let mut command = Command::new(root().join("fuzz/target").join(TARGET).join("release").join(name));
    command
        .arg(format!("-max_total_time={secs}"))
        .args(["-timeout=10", "-rss_limit_mb=2048", "-verbosity=0", "-print_final_stats=1"])
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .arg(&corpus);
    if seeds.is_dir() {
        command.arg(seeds);
    }
    let ended = command.output().map_err(|error| format!("{command:?} did not start: {error}"))?;
    let said = String::from_utf8_lossy(&ended.stderr);
    print!("{}{said}", String::from_utf8_lossy(&ended.stdout));
    match ended.status.success() {
        true => Ok(()),
        false => Err(format!("{command:?} ended with {}", ended.status)),
    }
}
