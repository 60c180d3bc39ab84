//! Stores in cached regions of a pool's memory, as `up`'s workload; and a compute node that is killed, whose memory another one gets.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

mod common;

use common::{can_make_namespaces, one_at_a_time, p4rack, repo, stderr, stdout};
use serde_json::Value;
use std::fs;

/// A small variant: two percentages, each region in two extents.
const SMALL: [&str; 4] = ["--duration", "1", "--set", "workload.cache.local_percent=[100, 20]"];

#[test]
fn up_runs_stores_in_regions_by_every_way_and_another_node_gets_a_killed_ones_memory() {
    if !can_make_namespaces() {
        return;
    }
    let _alone = one_at_a_time();
    let folder = tempfile::tempdir().unwrap();
    let (json, html) = (folder.path().join("results.json"), folder.path().join("report.html"));
    let output = p4rack()
        .arg("up")
        .args(SMALL)
        .args(["--simulate"])
        .arg(repo("examples/unimem.toml"))
        .arg(format!("--json={}", json.display()))
        .arg(format!("--html={}", html.display()))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
    assert!(stderr(&output).contains("stores in cached regions are not run in virtual time"));
    let results: Value = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
    assert_eq!(results["setting"]["cache"]["pool"]["memory"], serde_json::json!(["m1", "m2"]));
    let schemes = results["schemes"].as_array().unwrap();
    let names: Vec<&str> = schemes.iter().map(|scheme| scheme["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["local", "rdma", "edm-timed-dst", "cowbird-spot", "cowbird-p4", "clio"]);
    for scheme in schemes {
        let store = &scheme["store"];
        assert_eq!((&store["lost"], &store["wrong"]), (&0.into(), &0.into()), "{scheme}");
        let mixes = store["mixes"].as_array().unwrap();
        let percents: Vec<&Value> = mixes.iter().map(|mix| &mix["cache"]["local_percent"]).collect();
        assert_eq!(percents, [100, 20]);
        for mix in mixes {
            let number = |value: &Value| value.as_f64().unwrap();
            let cache = &mix["cache"];
            assert!(number(&mix["ops_per_s"]) > 0.0 && number(&mix["p50_us"]) > 0.0, "{mix}");
            assert!((0.0..=1.0).contains(&number(&cache["hit_share"])), "{mix}");
            assert!(number(&cache["local_bytes"]) <= number(&cache["limit_bytes"]), "{mix}");
        }
        let hits = |nth: usize| mixes[nth]["cache"]["hit_share"].as_f64().unwrap();
        assert!(hits(0) > hits(1), "{mixes:?}");
        // Remote accesses cross the switch, at one memory node at least.
        assert_eq!(scheme["queue_max_bytes"].as_u64().unwrap() > 0, scheme["name"] != "local", "{scheme}");
        let takeover = &store["takeover"];
        if scheme["name"] != "clio" && scheme["name"] != "rdma" {
            assert!(takeover.is_null());
            continue;
        }
        assert_eq!((&takeover["host"], &takeover["by"]), (&"c1".into(), &"c2".into()));
        assert_eq!((&takeover["extents"], &takeover["taken"]), (&2.into(), &2.into()), "{takeover}");
        for none in ["foreign_bytes", "unlike_bytes", "owned_twice"] {
            assert_eq!(takeover[none], 0, "{none}: {takeover}");
        }
        // Not before its lease had ended: it was renewed at most a third of it, and a pause of a busy machine, before the kill.
        assert!(takeover["after_ms"].as_u64().unwrap() > 300, "{takeover}");
    }
    let table = stdout(&output);
    for row in [
        "B, 100 %: operations a second",
        "B, 20 %: uses of blocks that were local",
        "B, 20 %: moved for each operation",
        "c1’s memory at c2 after a kill",
    ] {
        assert!(table.contains(row), "{row} in\n{table}");
    }
    let page = fs::read_to_string(&html).unwrap();
    // Two plots by local memory, a latency for each percentage, a queue of each way's own.
    assert_eq!(page.matches("<svg").count(), 2 + 2 + names.len());
    assert!(page.contains("By local memory") && !page.contains("NaN"));
}

#[test]
fn regions_that_cannot_be_are_refused_with_the_field() {
    for (settings, wanted) in [
        (&["workload.cache.policy=lfu"][..], "workload.cache.policy: `lfu`; expected one of"),
        (&["workload.cache.policy=belady"], "policy belady"),
        (&["workload.records=1", "workload.value_bytes=8"], "workload.cache: local_percent"),
        (&["workload.schemes=[\"rdma-sync\", \"clio\"]"], "rdma-sync has one request under way"),
        (
            &["cowbird.message_bytes_max=4096", "workload.schemes=[\"cowbird-p4\", \"clio\"]"],
            "cowbird.message_bytes_max",
        ),
        (
            &["workload.schemes=[\"edm-timed-dst\"]"],
            "workload.kill: kills no client: no way of workload.schemes lends",
        ),
        (&["edm.memory=[\"m1\"]"], "m2"),
        (&["pool.memory=[\"m9\"]"], "there is no host `m9`"),
    ] {
        let set = settings.iter().flat_map(|setting| ["--set", setting]);
        let output = p4rack().arg("up").args(set).arg(repo("examples/unimem.toml")).output().unwrap();
        assert!(
            !output.status.success() && stderr(&output).contains(wanted),
            "{wanted}: {}",
            stderr(&output)
        );
    }
}
