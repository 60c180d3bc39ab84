//! `p4rack up` from its first step to its last, and the use of its figures.

mod common;

use common::{can_make_namespaces, one_at_a_time, p4rack, repo, stderr};
use serde_json::Value;
use std::fs::{self, OpenOptions};
use std::path::Path;
use tempfile::TempDir;

/// The example with a window of two seconds.
fn short(folder: &TempDir) -> std::path::PathBuf {
    let text = fs::read_to_string(repo("examples/pl2-incast.toml")).expect("the example is there");
    let lines = text.lines().map(|line| match line.trim_start().starts_with("duration_s") {
        true => "duration_s = 2".to_owned(),
        false => line.to_owned(),
    });
    let shortened = lines.collect::<Vec<_>>().join("\n");
    assert!(shortened.contains("duration_s = 2\n"), "{shortened}");
    let path = folder.path().join("rack.toml");
    fs::write(&path, shortened).expect("written");
    path
}

/// Results of `p4rack up` with these arguments, whose exit code is their verdict.
fn up(folder: &TempDir, rack: &Path, args: &[&str]) -> Value {
    let json = folder.path().join("results.json");
    let mut command = p4rack();
    command.arg("up").arg(rack).args(args).arg(format!("--json={}", json.display()));
    let output = command.output().expect("p4rack starts");
    let text = fs::read_to_string(&json).unwrap_or_else(|error| panic!("{error}: {}", stderr(&output)));
    let results: Value = serde_json::from_str(&text).expect("JSON");
    let failures = results["failures"].as_array().expect("a list");
    assert_eq!(output.status.code(), Some(i32::from(!failures.is_empty())), "{failures:?}");
    results
}

fn names(results: &Value) -> Vec<&str> {
    results["schemes"].as_array().into_iter().flatten().filter_map(|scheme| scheme["name"].as_str()).collect()
}

fn number(scheme: &Value, key: &str) -> u64 {
    scheme[key].as_u64().unwrap_or_else(|| panic!("{key} in {scheme}"))
}

/// Whether goodput equals a port's capacity: at most one frame more, which spans an end of the window.
fn fills_the_port(results: &Value, scheme: &Value) -> bool {
    let window_s = results["duration_s"].as_f64().expect("seconds");
    let frame_bits = 8.0 * number(&results["setting"], "mtu_frame_bytes") as f64;
    let most = number(scheme, "goodput_ceiling_bps") + (frame_bits / window_s) as u64;
    (50_000_000..=most).contains(&number(scheme, "goodput_bps"))
}

#[test]
fn up_runs_to_its_end_and_its_exit_code_is_its_verdict() {
    if !can_make_namespaces() {
        return;
    }
    let _alone = one_at_a_time();
    let folder = tempfile::tempdir().expect("a scratch folder");
    let results = up(&folder, &short(&folder), &[]);
    assert_eq!(results["duration_s"], 2.0);
    assert!(results["promises"].as_array().is_some_and(|promises| promises.len() > 10));
    assert_eq!(names(&results), ["l2", "pl2-counter", "pl2-clock"]);
    let schemes = results["schemes"].as_array().expect("a list");
    for scheme in schemes {
        assert!(number(scheme, "offered_bps") > 120_000_000, "more than the port carries: {scheme}");
        assert!(fills_the_port(&results, scheme), "{scheme}");
    }
    assert!(number(&schemes[0], "fabric_drops") > 0, "plain switching drops: {}", schemes[0]);
    for scheme in &schemes[1..] {
        assert_eq!(number(scheme, "fabric_drops"), 0, "{scheme}");
        assert_eq!(scheme["host_kill"]["fabric_drops"], 0, "{scheme}");
        assert!(scheme["rpc"].as_array().is_some_and(|rpc| rpc.iter().all(|v| number(v, "completed") > 0)));
    }
}

/// The same hosts, with a switch that runs the programs for Tofino. Promises that a busy machine may break are
/// reported, not asserted.
#[test]
fn the_main_job_runs_on_the_programs_for_tofino() {
    if !can_make_namespaces() {
        return;
    }
    let _alone = one_at_a_time();
    let folder = tempfile::tempdir().expect("a scratch folder");
    let example = repo("examples/pl2-incast.toml");
    let results = up(&folder, &example, &["--arch", "tna", "--duration", "1"]);
    assert_eq!(results["setting"]["arch"], "tna");
    assert!(
        results["command"].as_str().is_some_and(|again| again.contains(" --arch tna ")),
        "{}",
        results["command"]
    );
    assert_eq!(names(&results), ["l2", "pl2-counter", "pl2-clock"]);
    for scheme in &results["schemes"].as_array().expect("a list")[1..] {
        assert_eq!(number(scheme, "fabric_drops"), 0, "{scheme}");
        assert_eq!(scheme["host_kill"]["fabric_drops"], 0, "{scheme}");
        assert!(fills_the_port(&results, scheme), "{scheme}");
        assert!(scheme["rpc"].as_array().is_some_and(|rpc| rpc.iter().all(|v| number(v, "completed") > 0)));
    }
}

/// Hosts on all pipes of a chip, each with registers of its own. Promises that a busy machine may break are reported, not
/// asserted.
#[test]
fn hosts_on_all_pipes_of_a_chip_lose_nothing() {
    if !can_make_namespaces() {
        return;
    }
    let _alone = one_at_a_time();
    let folder = tempfile::tempdir().expect("a scratch folder");
    let example = repo("examples/pl2-pipes.toml");
    let results = up(&folder, &example, &["--duration", "1", "--scheme", "pl2-clock"]);
    assert_eq!(results["setting"]["arch"], "tna");
    let scheme = &results["schemes"][0];
    assert_eq!(number(scheme, "fabric_drops"), 0, "{scheme}");
    assert_eq!(scheme["host_kill"]["fabric_drops"], 0, "{scheme}");
    assert!(number(scheme, "crossings") > 0, "requests go from pipe to pipe: {scheme}");
    assert!(fills_the_port(&results, scheme), "{scheme}");
    assert!(scheme["rpc"].as_array().is_some_and(|rpc| rpc.iter().all(|v| number(v, "completed") > 0)));
}

/// The same of remote memory: clients in all pipes read and write what one host of the first has.
#[test]
fn memory_in_another_pipe_of_a_chip_loses_nothing() {
    if !can_make_namespaces() {
        return;
    }
    let _alone = one_at_a_time();
    let folder = tempfile::tempdir().expect("a scratch folder");
    let args = ["--duration", "2", "--scheme", "edm-timed-dst"];
    let results = up(&folder, &repo("examples/edm-pipes.toml"), &args);
    assert_eq!(results["setting"]["arch"], "tna");
    let scheme = &results["schemes"][0];
    assert_eq!(number(scheme, "fabric_drops"), 0, "{scheme}");
    assert!(number(scheme, "crossings") > 0, "demands go from pipe to pipe: {scheme}");
    let store = &scheme["store"];
    assert_eq!((number(store, "lost"), number(store, "wrong")), (0, 0), "{store}");
    assert!(store["ops_per_s"].as_f64().is_some_and(|rate| rate > 50.0), "{store}");
}

/// One sender and many receivers, and beside the real figures those of virtual time.
#[test]
fn an_outcast_runs_in_both_worlds() {
    if !can_make_namespaces() {
        return;
    }
    let _alone = one_at_a_time();
    let folder = tempfile::tempdir().expect("a scratch folder");
    let html = folder.path().join("report.html");
    let html_arg = format!("--html={}", html.display());
    let args = ["--simulate", "--duration", "1", "--scheme", "l2", "--scheme", "pl2-clock", &html_arg];
    let results = up(&folder, &repo("examples/pl2-outcast.toml"), &args);
    assert_eq!(results["setting"]["kind"], "outcast");
    for world in ["schemes", "simulated"] {
        let schemes = results[world].as_array().unwrap_or_else(|| panic!("{world} in {results}"));
        assert_eq!(schemes.iter().map(|s| &s["name"]).collect::<Vec<_>>(), ["l2", "pl2-clock"], "{world}");
        for scheme in schemes {
            let by_host = scheme["goodput_by_host_bps"].as_object().map_or(0, |hosts| hosts.len());
            assert!(world == "simulated" || by_host == 4, "four receivers: {scheme}");
            assert!(fills_the_port(&results, scheme), "{world}: {scheme}");
            let (goodput, ceiling) = (number(scheme, "goodput_bps"), number(scheme, "goodput_ceiling_bps"));
            assert!(world != "simulated" || goodput <= ceiling, "goodput {goodput}, ceiling {ceiling}");
            assert_eq!(scheme["fabric_drops"], 0, "an outcast waits in its sender: {world} {scheme}");
        }
    }
    let page = fs::read_to_string(&html).expect("the report");
    assert!(page.contains("Real and simulated") && page.contains("the same order"), "one page has both");
}

#[test]
fn figures_that_find_no_room_are_no_success() {
    if !can_make_namespaces() {
        return;
    }
    let _alone = one_at_a_time();
    let folder = tempfile::tempdir().expect("a scratch folder");
    let full = OpenOptions::new().write(true).open("/dev/full").expect("the kernel has it");
    let output = p4rack()
        .args(["up", "--scheme", "l2", "--duration", "0.2", "--json"])
        .arg(short(&folder))
        .stdout(full)
        .output()
        .expect("p4rack starts");
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("error: standard output: No space left on device"),
        "{}",
        stderr(&output)
    );
}
