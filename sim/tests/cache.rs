//! Policies of a cache of remote memory: the shipped experiments are sound, and their loads exist.

// A test that cannot go on should panic.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use p4rack_sim::{CacheExperiment, CacheOutcome, Sweep};
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/paper/unimem")
}

fn read(name: &str) -> Result<String, String> {
    std::fs::read_to_string(folder().join(name)).map_err(|error| format!("{name}: {error}"))
}

fn place(name: &str) -> PathBuf {
    folder().join(name)
}

#[test]
fn the_examples_are_experiments_and_sweeps_with_loads() {
    let mut tasks = 0;
    for entry in std::fs::read_dir(folder()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let text = read(&name).unwrap();
        if name.ends_with("-sweep.toml") {
            let base = |base: &str| Ok((read(base)?, base.to_owned()));
            let sweep = Sweep::<CacheExperiment>::parse(&text, &name, &[], base);
            let all = sweep.unwrap_or_else(|error| panic!("{error}")).tasks;
            tasks += all.len();
            for task in all {
                is_there_or_can_be_recorded(task.experiment, &name);
            }
        } else {
            let experiment = CacheExperiment::parse(&text, &name).unwrap_or_else(|error| panic!("{error}"));
            is_there_or_can_be_recorded(experiment, &name);
        }
    }
    assert!(tasks > 400, "{tasks}");
}

/// Recorded traces are not part of the repository, but the script is that the error names.
fn is_there_or_can_be_recorded(experiment: CacheExperiment, name: &str) {
    let Err(error) = experiment.read_load(&read, &place) else { return };
    let script = error.split_once("record it first, by: sh ").map(|(_, script)| script.trim());
    let script = script.unwrap_or_else(|| panic!("{name}: {error}"));
    assert!(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(script).is_file(), "{name}: {error}");
}

fn run(policy: &str) -> CacheOutcome {
    let text =
        read("cell.toml").unwrap().replace("policy        = \"unimem\"", &format!("policy = \"{policy}\""));
    let experiment = CacheExperiment::parse(&text, "cell.toml").unwrap().read_load(&read, &place).unwrap();
    let outcome = experiment.run().unwrap();
    assert_eq!((outcome.problems.len(), outcome.scheme), (0, policy));
    outcome
}

/// Figure 10 at 10 %: blocks of 512 B fetch less than pages.
#[test]
fn smaller_blocks_fetch_less_at_equal_bytes() {
    let [kona, unimem, runs] = ["kona", "unimem", "runs"].map(|policy| run(policy).counts.amplification);
    assert!(unimem < kona / 3.0 && runs < kona / 3.0, "{kona} {unimem} {runs}");
}

/// 10 % are stated. The gain over Kona is the memory's.
#[test]
fn the_artifacts_unimem_has_eight_times_the_memory_of_its_kona() {
    let [kona, unimem] = ["kona-artifact", "unimem-artifact"].map(run);
    let times = unimem.counts.local_bytes as f64 / kona.counts.local_bytes as f64;
    assert!((7.5..8.5).contains(&times), "{times}");
    assert!(unimem.counts.amat_ns < kona.counts.amat_ns / 3.0, "{unimem:?} {kona:?}");
}
