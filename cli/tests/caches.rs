//! `p4rack trace` and `p4rack cache` from end to end, and their errors for bad input.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

mod common;

use common::{have, repo};
use std::path::Path;
use std::process::Output;

fn run(folder: &Path, arguments: &[&str]) -> Output {
    common::p4rack().args(arguments).current_dir(folder).output().unwrap()
}

fn stdout(folder: &Path, arguments: &[&str]) -> String {
    let output = run(folder, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn refusal(folder: &Path, arguments: &[&str]) -> String {
    let output = run(folder, arguments);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}

const RECIPE: &str =
    "kind = \"ycsb\"\nworkload = \"a\"\nlayout = \"by-insertion\"\nrecords = 500\noperations = 2000\n";

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    std::fs::write(folder.path().join("recipe.toml"), RECIPE).unwrap();
    folder
}

#[test]
fn a_trace_gives_the_same_figures_as_its_recipe() {
    let folder = folder();
    let folder = folder.path();
    stdout(folder, &["trace", "synth", "recipe.toml", "a.trace"]);
    let shown = |name: &str| stdout(folder, &["trace", "show", name, "--json"]);
    assert_eq!(shown("recipe.toml"), shown("a.trace"));
    let compared = |name: &str| stdout(folder, &["cache", "run", name, "--local", "25", "--json"]);
    let figures = compared("a.trace");
    assert_eq!(compared("recipe.toml"), figures);
    let rows: Vec<serde_json::Value> = serde_json::from_str(&figures).unwrap();
    let policies = stdout(folder, &["cache", "policies"]);
    for row in &rows {
        assert!(policies.contains(row["policy"].as_str().unwrap()));
        assert!(row["amat_ns"].as_f64().unwrap() > 80.0, "{row}");
    }
    let of = |name: &str| rows.iter().find(|row| row["policy"] == name).unwrap()["from_remote"].as_u64();
    assert!(of("belady") <= of("lru") && of("lru").unwrap() > 0);
    let table = stdout(folder, &["cache", "run", "a.trace", "--policy", "unimem", "--local", "50"]);
    assert!(table.contains("AMAT ns") && table.contains("unimem"), "{table}");
}

#[test]
fn one_policy_is_compared_with_others_and_with_its_parts() {
    let folder = folder();
    let command = |more: &[&str]| {
        let words =
            [&["cache", "compare", "recipe.toml", "--local", "25", "--profile", "kona"][..], more].concat();
        stdout(folder.path(), &words)
    };
    let table = command(&["--with", "lru", "--with", "kona"]);
    assert!(table.contains("against") && table.contains("mean changes of `runs` over 1 cells"), "{table}");
    let cells: Vec<serde_json::Value> = serde_json::from_str(&command(&["--parts", "--json"])).unwrap();
    let outcomes = cells[0]["outcomes"].as_array().unwrap();
    let misses = |at: usize| outcomes[at]["from_remote"].as_u64().unwrap();
    assert_eq!(outcomes[0]["policy"], "runs");
    assert_eq!(outcomes[1]["policy"], "runs-single");
    // Records of 1 KB are three blocks: one request instead of three.
    assert!(misses(0) < misses(1), "{outcomes:?}");
    let sizes = ["--with", "lru", "--other-block", "64", "--other-block", "4096"];
    let cells: Vec<serde_json::Value> =
        serde_json::from_str(&command(&[&sizes[..], &["--json"]].concat())).unwrap();
    let outcomes = cells[0]["outcomes"].as_array().unwrap();
    let blocks: Vec<_> = outcomes.iter().map(|one| one["block_bytes"].as_u64().unwrap()).collect();
    assert_eq!(blocks, [512, 64, 4096]);
    let table = command(&sizes);
    assert!(table.contains("lru, 64 B") && table.contains("lru, 4096 B"), "{table}");
}

#[test]
fn a_converted_trace_has_the_same_misses() {
    let folder = folder();
    let folder = folder.path();
    let convert = ["trace", "convert", "recipe.toml", "a.oracle", "--as", "oracleGeneral", "--cpu", "small"];
    stdout(folder, &convert);
    stdout(folder, &["trace", "convert", "recipe.toml", "a.trace", "--cpu", "small"]);
    let misses = |name: &str| {
        let command = ["cache", "run", name, "--cpu", "none", "--blocks", "300", "--policy", "lru", "--json"];
        let rows: Vec<serde_json::Value> = serde_json::from_str(&stdout(folder, &command)).unwrap();
        rows[0]["from_remote"].as_u64().unwrap()
    };
    assert_eq!(misses("a.oracle"), misses("a.trace"));
}

#[test]
fn a_programs_accesses_are_recorded() {
    if !have("valgrind", "valgrind") {
        return;
    }
    let folder = folder();
    let folder = folder.path();
    let said = stdout(folder, &["trace", "record", "--out", "true.trace", "--", "/bin/true"]);
    assert!(said.contains("accesses in true.trace"), "{said}");
    let shown: serde_json::Value =
        serde_json::from_str(&stdout(folder, &["trace", "show", "true.trace", "--json"])).unwrap();
    assert!(shown["accesses"].as_u64().unwrap() > 10_000, "{shown}");
    let absent = refusal(folder, &["trace", "record", "--out", "no.trace", "--", "/nowhere/program"]);
    assert!(absent.contains("made no accesses under valgrind"), "{absent}");
}

#[test]
fn the_examples_programs_are_recorded() {
    if !have("valgrind", "valgrind") || !have("cc", "gcc") {
        return;
    }
    let folder = folder();
    let folder = folder.path();
    // A pass over the rows, or over vertices and links, touches at least these bytes.
    for (name, size, bytes) in
        [("pagerank", "2000", 2_000 * (2 * 16 + 8 * 4)), ("regression", "20000", 20_000 * 16)]
    {
        let source = repo(&format!("examples/traces/{name}.c"));
        let warnings = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread"];
        let mut compiler = std::process::Command::new("cc");
        let compiled = compiler.args(warnings).arg(source).arg("-o").arg(folder.join(name)).output().unwrap();
        assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
        let (program, trace) = (format!("./{name}"), format!("{name}.trace"));
        let said = stdout(folder, &["trace", "record", "--out", &trace, "--", &program, size, "1"]);
        assert!(
            said.contains(&format!("{size} {}", if name == "pagerank" { "vertices" } else { "rows" })),
            "{said}"
        );
        let shown: serde_json::Value =
            serde_json::from_str(&stdout(folder, &["trace", "show", &trace, "--json"])).unwrap();
        assert!(shown["lines_bytes"].as_u64().unwrap() > bytes, "{shown}");
    }
}

/// The example's script, with few records: a server's accesses become an experiment.
#[test]
fn a_redis_server_is_recorded_under_ycsb() {
    if !have("valgrind", "valgrind")
        || !have("redis-server", "redis-server")
        || !have("redis-cli", "redis-tools")
    {
        return;
    }
    let folder = folder();
    let trace = folder.path().join("redis.trace").display().to_string();
    let experiment = repo("examples/paper/unimem/redis.toml").display().to_string();
    let words = ["sim", "run", &experiment, "--json", "--set", &format!("load={trace}")];
    let absent = run(folder.path(), &words);
    let absent = String::from_utf8_lossy(&absent.stderr);
    assert!(absent.contains("redis.trace: No such file"), "{absent}");
    assert!(absent.contains("record it first, by: sh examples/traces/redis.sh"), "{absent}");
    // An address of this test's own.
    let recorded = std::process::Command::new("sh")
        .arg(repo("examples/traces/redis.sh"))
        .args([&trace, "40", "60"])
        .envs([("P4RACK", env!("CARGO_BIN_EXE_p4rack")), ("REDIS_IP", "127.0.4.10")])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&recorded.stdout).into_owned();
    assert!(recorded.status.success(), "{said}{}", String::from_utf8_lossy(&recorded.stderr));
    assert!(said.contains("YCSB B: 40 records of 1000 B, 60 operations"), "{said}");
    let shown: serde_json::Value =
        serde_json::from_str(&stdout(folder.path(), &["trace", "show", &trace, "--json"])).unwrap();
    assert!(shown["accesses"].as_u64().unwrap() > 100_000, "{shown}");
    let figures: serde_json::Value = serde_json::from_str(&stdout(folder.path(), &words)).unwrap();
    let figure = |name: &str| figures[name].as_f64().unwrap();
    assert!(figure("miss_share") > 0.0 && figure("miss_share") < 1.0, "{figures}");
    assert!(figure("used_share") > 0.0 && figure("used_share") < 1.0, "{figures}");
}

#[test]
fn bad_input_is_named() {
    let folder = folder();
    let folder = folder.path();
    std::fs::write(folder.join("empty"), "").unwrap();
    std::fs::write(folder.join("text"), "hello\n").unwrap();
    std::fs::write(folder.join("cut"), b"p4trace\x01\x00").unwrap();
    std::fs::write(folder.join("wrong.toml"), "kind = \"uniform\"\nobjects = 0\noperations = 1\n").unwrap();
    for (file, said) in [
        ("absent", "absent: No such file"),
        ("empty", "empty: has no accesses"),
        ("text", "text: no known format begins like this"),
        ("cut", "cut: record 1: the end of the file; expected"),
        ("wrong.toml", "wrong.toml: objects: 0; expected 1 to"),
    ] {
        for command in [&["trace", "show"][..], &["cache", "run"]] {
            let error = refusal(folder, &[command, &[file]].concat());
            assert!(error.contains(said), "{error}");
        }
    }
    let small = refusal(folder, &["cache", "run", "recipe.toml", "--blocks", "1", "--policy", "2q"]);
    assert!(small.contains("policy 2q: capacity: 1 blocks of local memory"), "{small}");
}

#[test]
fn examples_run() {
    let folder = folder();
    for recipe in ["ycsb-b", "pagerank", "regression", "mix"] {
        let file = repo(&format!("examples/traces/{recipe}.toml"));
        let file = file.to_str().unwrap();
        let command = ["cache", "run", file, "--local", "10", "--policy", "runs", "--policy", "unimem"];
        assert!(stdout(folder.path(), &command).contains("unimem"));
    }
}

/// A region makes a trace's accesses for real, and fetches about as much as the simulation of its policy with as many
/// blocks.
#[test]
fn a_region_makes_the_accesses_of_a_trace() {
    let folder = folder();
    let folder = folder.path();
    let rack = repo("examples/two-hosts.toml").display().to_string();
    let bench = ["memory", "bench", &rack, "--name", "h1", "--at", "h2", "--way", "delayed"];
    let command = |more: &[&'static str]| {
        [&bench[..], &["--local", "256 KiB", "--trace", "recipe.toml"], more].concat()
    };
    for policy in ["runs", "kona", "lru"] {
        let said = stdout(folder, &command(&["--policy", policy, "--json"]));
        let figures: serde_json::Value = serde_json::from_str(&said).unwrap();
        assert_eq!((&figures["wrong"], &figures["policy"]), (&0.into(), &policy.into()), "{figures}");
        let number = |name: &str| figures[name].as_u64().unwrap();
        assert!(number("local_bytes") <= 256 << 10 && number("written_bytes") > 0, "{figures}");
        let hit_rate = figures["hit_rate"].as_f64().unwrap();
        assert!(number("fetched_bytes") > 0 && hit_rate > 0.0 && hit_rate < 1.0, "{figures}");
        // A sixteenth of local memory each is for views, for accesses that wait, and for prefetches.
        let blocks =
            (number("local_bytes") - number("tables_bytes") - 3 * (16 << 10)) / number("block_bytes");
        let blocks = blocks.to_string();
        let run = ["cache", "run", "recipe.toml", "--cpu", "none", "--one-memory", "--json"];
        let said = stdout(folder, &[&run[..], &["--blocks", &blocks, "--policy", policy]].concat());
        let simulated: Vec<serde_json::Value> = serde_json::from_str(&said).unwrap();
        let [fetched, expected] =
            [&figures, &simulated[0]].map(|figures| figures["fetched_bytes"].as_f64().unwrap());
        assert!(
            (0.9..1.1).contains(&(fetched / expected)),
            "{policy}: {fetched} bytes, {expected} simulated"
        );
    }
    let table = stdout(folder, &command(&["--first", "1000"]));
    assert!(table.starts_with("runs over delayed") && table.contains("hit rate"), "{table}");
    let small = refusal(folder, &command(&["--reserve", "64 KiB"]));
    assert!(small.contains("and the region has 65536: serve more"), "{small}");
    let little = refusal(folder, &[&bench[..], &["--local", "4 KiB", "--trace", "recipe.toml"]].concat());
    assert!(little.contains("capacity: "), "{little}");
}
