//! A log store whose older records are in remote memory, as `up`'s workload: every way to these on one rack, in one table.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

mod common;

use common::{can_make_namespaces, one_at_a_time, p4rack, repo, stderr, stdout};
use serde_json::Value;
use std::fs;
use std::path::Path;

const WAYS: [&str; 8] =
    ["local", "tcp", "rdma-sync", "rdma", "edm-timed-dst", "clio", "cowbird-spot", "cowbird-p4"];

#[test]
fn up_runs_a_log_store_in_every_way_and_reports_all() {
    if !can_make_namespaces() {
        return;
    }
    let _alone = one_at_a_time();
    let folder = tempfile::tempdir().unwrap();
    let (json, html) = (folder.path().join("results.json"), folder.path().join("report.html"));
    let output = p4rack()
        .args(["up", "--duration", "1.2"])
        .args(WAYS.iter().flat_map(|way| ["--scheme", way]))
        .arg(repo("examples/memory-kv.toml"))
        .arg(format!("--json={}", json.display()))
        .arg(format!("--html={}", html.display()))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
    let results: Value = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
    assert_eq!(
        (&results["setting"]["kind"], &results["setting"]["log"]["engine"]),
        (&"store".into(), &"h3".into())
    );
    let schemes = results["schemes"].as_array().unwrap();
    assert_eq!(schemes.iter().map(|scheme| &scheme["name"]).collect::<Vec<_>>(), WAYS);
    for scheme in schemes {
        let store = &scheme["store"];
        assert_eq!((&store["lost"], &store["wrong"]), (&0.into(), &0.into()), "{store}");
        assert_eq!(store["cold_share"].as_f64().unwrap() > 0.05, scheme["name"] != "local", "{store}");
        let mixes = store["mixes"].as_array().unwrap();
        assert_eq!(mixes.iter().map(|mix| &mix["mix"]).collect::<Vec<_>>(), ["A", "B", "C", "F"]);
        for figures in mixes.iter().chain([store]) {
            let number = |key: &str| figures[key].as_f64().unwrap();
            assert!(number("ops_per_s") > 50.0 && number("thread_cpu_ns") > 10.0, "{figures}");
            let quantiles = ["p50_us", "p99_us", "p999_us"].map(number);
            assert!(quantiles[0] > 0.0 && quantiles.is_sorted(), "{figures}");
        }
        // Remote accesses cross the switch.
        assert_eq!(scheme["queue_max_bytes"].as_u64().unwrap() > 0, scheme["name"] != "local", "{scheme}");
    }
    let table = stdout(&output);
    for row in [
        "A: operations a second",
        "F: processor time of the client for each",
        "operations that read remote memory",
    ] {
        assert!(table.contains(row), "{row} in\n{table}");
    }
    let page = fs::read_to_string(&html).unwrap();
    // A latency plot for each mix, a queue of each way's own.
    assert_eq!(page.matches("<svg").count(), 4 + WAYS.len());
    let curves = |way: usize| page.matches(&format!("<g class='series-{way}'")).count();
    assert!((0..WAYS.len()).all(|way| curves(way) == 5), "a curve in each");
    assert!(page.contains("Mix F") && !page.contains("NaN"));
}

/// Captures show a thread's requests, each with all that either engine does for it.
#[test]
fn requests_in_rings_are_followed_from_entry_to_red_block() {
    if !can_make_namespaces() {
        return;
    }
    let _alone = one_at_a_time();
    let folder = tempfile::tempdir().unwrap();
    let rack = repo("examples/memory-kv.toml");
    let ways = ["cowbird-spot", "cowbird-p4"];
    let output = p4rack()
        .args(["up", "--duration", "0.4", "--set", "workload.depth=4"])
        .args(ways.iter().flat_map(|way| ["--scheme", way]))
        .args([rack.as_path(), Path::new("--pcap"), folder.path()])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
    for way in ways {
        let follow = |by: &str, options: &[&str]| {
            let output = p4rack()
                .args(["memory", "follow", "--way", by])
                .args(options)
                .args([&rack, &folder.path().join(way)])
                .output()
                .unwrap();
            assert!(output.status.success(), "{way}: {}", stderr(&output));
            stdout(&output)
        };
        let all: Value = serde_json::from_str(&follow(way, &["--from", "h2", "--json"])).unwrap();
        let all = all.as_array().unwrap();
        let complete = all.iter().filter(|one| one["complete"] == true).count();
        // The run may end with requests under way.
        assert!(complete > 100 && complete + 16 >= all.len(), "{way}: {complete} of {}", all.len());
        for (what, parts) in [
            ("read", ["entry: ", "pool: ", "response: ", "red block: "]),
            ("write", ["entry: ", "payload: ", "pool: ", "red block: "]),
        ] {
            let whole = |one: &&Value| {
                let says =
                    |part: &str| one["events"].as_array().unwrap().iter().any(|event| says(event, part));
                one["what"] == what && parts.into_iter().all(says)
            };
            let kind = all.iter().filter(|one| one["what"] == what && one["complete"] == true).count();
            let found = all.iter().filter(whole).count();
            assert!(found > 0 && found * 100 >= kind * 99, "{way}: {found} of {kind} with {what}");
        }
        let list = follow(way, &["--most", "5"]);
        assert_eq!(list.matches("of h1, asked by h2: complete").count(), 5, "{way}: {list}");
        // The engine's own operations, probes among them.
        let rdma = follow("rdma", &["--most", "5"]);
        assert!(rdma.contains("asked by"), "{way}: {rdma}");
    }
}

fn says(event: &Value, part: &str) -> bool {
    event["says"].as_str().is_some_and(|says| says.starts_with(part))
}

#[test]
fn a_run_that_makes_no_sense_is_refused_before_anything_starts() {
    let folder = tempfile::tempdir().unwrap();
    let example = fs::read_to_string(repo("examples/cowbird-kv.toml")).unwrap();
    let edm = fs::read_to_string(repo("examples/edm-kv.toml")).unwrap();
    let without = |text: &str, line: &str| {
        text.lines().filter(|found| !found.starts_with(line)).collect::<Vec<_>>().join("\n")
    };
    for (text, words, says) in [
        (example.clone(), &["--scheme", "l2"][..], "write one of local, delayed, tcp, rdma-sync"),
        (edm, &["--scheme", "cowbird-spot"], "add [workload.log]"),
        (example.replace("value_bytes = 248", "value_bytes = 250"), &[], "write a multiple of 8"),
        (
            example.replace("clients     = [\"h2\"]", "clients = [\"h2\", \"h3\"]"),
            &[],
            "a log store has one client",
        ),
        (example.replace("engine         = \"h3\"", "engine = \"h1\""), &[], "name a spare host"),
        (without(&example, "engine "), &[], "add engine, the name of one, to [workload.log]"),
        (
            example.replace("compute = [\"h2\", \"h4\"]", "compute = [\"h4\"]"),
            &[],
            "needs h2 among the hosts of cowbird.compute",
        ),
        (
            example.replace("records     = 20000", "records = 200"),
            &[],
            "set workload.records to 1280 or more",
        ),
        (example.replace("value_bytes = 248", "value_bytes = 4096"), &[], "set that to"),
        (example.clone(), &["--keep", "--scheme", "rdma-sync"], "--keep runs no workload"),
    ] {
        let path = folder.path().join("rack.toml");
        fs::write(&path, text).unwrap();
        let output = p4rack().arg("up").args(words).arg(&path).output().unwrap();
        assert!(!output.status.success() && stderr(&output).contains(says), "{says}: {}", stderr(&output));
    }
}
