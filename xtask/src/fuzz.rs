//! Fuzz targets with libFuzzer on the stable compiler. Coverage comes from LLVM's own pass, so neither a
//! nightly toolchain nor another cargo command is needed.

use crate::lanes::{Ended, Lane, Started, patient};
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

/// Executions of each target in ten seconds at least, and proportionally in others: a hundredth of those in
/// the runs of docs/fuzzing.md, and no less than [`FEWEST`].
const FLOORS: &[(&str, u64)] = &[
    ("balloon", FEWEST),
    ("bfrt_entry", FEWEST),
    ("bfrt_service", FEWEST),
    ("bmv2_json", FEWEST),
    ("clio_board", FEWEST),
    ("clio_client", FEWEST),
    ("clio_offloads", FEWEST),
    ("cowbird_rings", FEWEST),
    ("edm_hosts", 320),
    ("endpoint", 76),
    ("p4_parse", 46),
    ("p4_program", 15),
    ("region", FEWEST),
    ("roce_adapters", FEWEST),
    ("stf_pcap", 12),
    ("trace_readers", FEWEST),
    ("wire_frames", 7_000),
];
/// The floor of targets without a longer run, too.
const FEWEST: u64 = 10;
/// Seconds of each target in a run of all tests.
pub const IN_TESTS_SECS: u32 = 5;
/// Targets run with the processors' time that others leave. One below its floor runs again, this many times in all.
const ROUNDS: u32 = 6;

/// Runs each target for `secs` seconds, as many side by side as there are processors. One that executes too little fails by its name.
pub fn run(lane: &Lane, build: Started, secs: u32) {
    if !lane.finish(build) {
        return;
    }
    let names = names();
    let at_once = thread::available_parallelism().map_or(1, usize::from);
    for names in names.chunks(at_once) {
        println!("     begins fuzz {}: {secs} s", names.join(", "));
        let start = |name: &String| Started::new(&format!("fuzz {name}"), &mut patient(&target(name, secs)));
        let running: Vec<_> = names.iter().map(|name| (name, start(name))).collect();
        for (name, started) in running {
            if let Err(why) = runs_enough(lane, started, floor(name, secs), || start(name)) {
                lane.fail(&format!("fuzz {name}"), &why);
            }
        }
    }
}

/// All targets.
fn names() -> Vec<String> {
    let folder = root().join("fuzz/fuzz_targets");
    let mut names: Vec<String> = fs::read_dir(&folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.path().file_stem().map(|stem| stem.to_string_lossy().into_owned()))
        .collect();
    names.sort();
    names
}

/// Executions that a target needs in a run of `secs` seconds; `None` if it is not listed.
fn floor(name: &str, secs: u32) -> Option<u64> {
    let listed = FLOORS.iter().find(|(one, _)| *one == name)?;
    Some((listed.1 * u64::from(secs) / 10).max(1))
}

/// Waits for a target, and starts it again while it has executed too little. Errors: it executed too little in all rounds, or has no
/// floor. A run that fails is reported as any step is.
fn runs_enough(
    lane: &Lane,
    first: Started,
    floor: Option<u64>,
    again: impl Fn() -> Started,
) -> Result<(), String> {
    let (mut executed, mut running, mut round) = (0, first, 1);
    loop {
        let ended = running.wait();
        executed += executions(&ended);
        if !lane.report(ended) {
            return Ok(());
        }
        let floor = floor.ok_or("has no floor; add it to FLOORS in xtask/src/fuzz.rs")?;
        if executed >= floor {
            return Ok(());
        }
        if round == ROUNDS {
            return Err(format!(
                "{executed} executions in {ROUNDS} runs; expected {floor} or more: see what it waits for, or lower its floor in xtask/src/fuzz.rs"
            ));
        }
        (running, round) = (again(), round + 1);
    }
}

/// libFuzzer's count of a run: `stat::number_of_executed_units: 4242`.
fn executions(ended: &Ended) -> u64 {
    let count = |line: &Vec<u8>| {
        let line = String::from_utf8_lossy(line);
        line.strip_prefix("stat::number_of_executed_units:")?.trim().parse().ok()
    };
    ended.lines.iter().rev().find_map(count).unwrap_or(0)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::{Lanes, News};
    use std::sync::atomic::{AtomicU32, Ordering};

    fn says(executed: u64, code: u8) -> Started {
        let script =
            format!("echo 'stat::number_of_executed_units: {executed}' >&2; echo 'Done 1 runs'; exit {code}");
        Started::new("fuzz x", Command::new("sh").args(["-c", &script]))
    }

    /// Runs a target with `executed` executions in each run: the result, and the number of runs.
    fn ran(floor: Option<u64>, executed: u64, code: u8) -> (Result<(), String>, u32) {
        let lanes = Lanes::new();
        let lane = lanes.start(move |lane| {
            let runs = AtomicU32::new(0);
            let start = || {
                runs.fetch_add(1, Ordering::Relaxed);
                says(executed, code)
            };
            let result = runs_enough(lane, start(), floor, start);
            (result, runs.into_inner())
        });
        let reported = lanes.news().iter().filter(|news| matches!(news, News::Ended(_))).count();
        let (result, runs) = lane.join().unwrap();
        assert_eq!(reported, runs as usize);
        (result, runs)
    }

    #[test]
    fn a_target_that_executes_too_little_fails() {
        assert_eq!(ran(Some(10), 10, 0), (Ok(()), 1));
        assert_eq!(ran(Some(10), 4, 0), (Ok(()), 3), "on a busy machine");
        let (result, runs) = ran(Some(10), 1, 0);
        assert_eq!(runs, ROUNDS);
        assert!(result.unwrap_err().starts_with("6 executions in 6 runs; expected 10 or more"));
        assert!(ran(None, 10, 0).0.unwrap_err().starts_with("has no floor"));
        assert_eq!(ran(Some(10), 1, 3), (Ok(()), 1), "it has failed already");
    }

    #[test]
    fn every_target_has_a_floor() {
        let names = names();
        assert!(names.len() > 10, "{names:?}");
        for name in &names {
            assert!(floor(name, 10).is_some(), "{name}: add it to FLOORS");
        }
        assert_eq!(FLOORS.len(), names.len());
        assert_eq!(floor("wire_frames", 60), floor("wire_frames", 10).map(|floor| floor * 6));
    }
}
