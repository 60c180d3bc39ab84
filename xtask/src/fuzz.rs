//! Fuzz targets with libFuzzer on the stable compiler. Coverage comes from LLVM's own pass, so neither a
//! nightly toolchain nor another cargo command is needed.

use crate::lanes::{Lane, Started, patient};
use crate::{cargo, root};
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
    let mut build = patient(&cargo(&["build", "--release", "--target", TARGET]));
    build.args(["--manifest-path", "fuzz/Cargo.toml", "--target-dir", "fuzz/target"]);
    let flags = COVERAGE.split_whitespace().collect::<Vec<_>>().join(" ");
    Started::new("fuzz targets build", build.env("RUSTFLAGS", flags).env_remove(crate::LINTER))
}

/// Runs each target for `secs` seconds, as many at once as there are processors.
pub fn run(lane: &Lane, build: Started, secs: u32) {
    if !lane.finish(build) {
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
        println!("     begins fuzz {}: {secs} s", names.join(", "));
        let running: Vec<_> = names
            .iter()
            .map(|name| Started::new(&format!("fuzz {name}"), &mut patient(&target(name, secs))))
            .collect();
        for started in running {
            lane.finish(started);
        }
    }
}

/// Fuzzes one target for `secs` seconds.
fn target(name: &str, secs: u32) -> Command {
    let corpus = root().join("fuzz/corpus").join(name);
    let artifacts = root().join("fuzz/artifacts").join(name);
    for folder in [&corpus, &artifacts] {
        // Without it the target fails, and says so.
        let _ = fs::create_dir_all(folder);
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
    command
}
