//! Racks with two switches: a switch dies while a workload runs, and nothing is lost, wrong or doubled.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

mod common;

use common::{KeptRack, can_make_namespaces, have, one_at_a_time, p4rack, repo, stderr, stdout, wait_until};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// How long something may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// Results of `p4rack up`. Promises of times are reported, not asserted: a busy machine may break them.
fn up(rack: &str, args: &[&str]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("results.json");
    let mut command = p4rack();
    command.arg("up").arg(repo(rack)).args(args).arg(format!("--json={}", json.display()));
    let output = command.output().unwrap();
    let text = std::fs::read_to_string(&json)
        .unwrap_or_else(|error| panic!("{error}: {}{}", stdout(&output), stderr(&output)));
    assert!(stdout(&output).contains("killed after"), "{}{}", stdout(&output), stderr(&output));
    serde_json::from_str(&text).unwrap()
}

fn scheme<'a>(results: &'a Value, name: &str) -> &'a Value {
    let mut schemes = results["schemes"].as_array().unwrap().iter();
    schemes.find(|scheme| scheme["name"] == name).unwrap_or_else(|| panic!("{name} in {results}"))
}

/// Of a store in EDM's memory, and over TCP.
#[test]
fn a_store_loses_nothing_when_either_switch_dies() {
    if !can_make_namespaces() {
        return;
    }
    let _alone = one_at_a_time();
    for (tor, name) in [(1, "edm-timed-dst"), (2, "edm-timed-dst"), (1, "l2")] {
        let kill = format!("workload.kill_tor={tor}");
        let results = up("examples/two-tors.toml", &["--duration", "2", "--scheme", name, "--set", &kill]);
        let figures = scheme(&results, name);
        assert_eq!(figures["tor_kill"]["tor"], tor, "{figures}");
        let store = &figures["store"];
        assert_eq!(
            (&store["lost"], &store["wrong"]),
            (&0.into(), &0.into()),
            "{name}, switch {tor}: {store}"
        );
        let rates = store["mixes"].as_array().unwrap().iter().map(|mix| mix["ops_per_s"].as_f64().unwrap());
        assert!(rates.clone().all(|rate| rate > 20.0), "{:?}", rates.collect::<Vec<_>>());
    }
}

#[test]
fn datagrams_and_tcp_over_pl2_arrive_once_when_either_switch_dies() {
    if !can_make_namespaces() {
        return;
    }
    let _alone = one_at_a_time();
    for (tor, name) in [(1, "pl2-clock"), (2, "pl2-clock"), (1, "pl2-counter")] {
        let kill = format!("workload.kill_tor={tor}");
        let args = ["--duration", "2", "--scheme", name, "--set", &kill];
        let results = up("examples/two-tors-pl2.toml", &args);
        let figures = scheme(&results, name);
        assert_eq!(figures["tor_kill"]["tor"], tor, "{figures}");
        assert_eq!(figures["tor_kill"]["doubled"], 0, "{figures}");
        assert_eq!(figures["fabric_drops"], 0, "{name}, switch {tor}: {figures}");
        assert!(figures["goodput_bps"].as_f64().unwrap() > 25e6, "{figures}");
        assert!(figures["rpc"][0]["completed"].as_u64().unwrap() > 0, "{figures}");
    }
}

/// Processes of a kept rack's switches, in their order.
fn switches(rack: &KeptRack) -> Vec<u64> {
    let command = rack.command();
    let runtime =
        command.get_envs().find(|(name, _)| *name == "XDG_RUNTIME_DIR").and_then(|(_, value)| value);
    let file = Path::new(runtime.unwrap()).join("p4rack/two-tors-pl2.json");
    let kept: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let switches = kept["switches"].as_array().unwrap();
    switches.iter().map(|switch| switch["process"]["pid"].as_u64().unwrap()).collect()
}

fn is_switch(pid: u64) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "p4rack switch")
}

fn ping(rack: &KeptRack, from: &str, to: &str) -> bool {
    let output = rack.exec(from, &["ping", "-c", "1", "-W", "1", to]).output().unwrap();
    output.status.success()
}

/// Both switches are there to use; one may die; a host with one link left to a dead switch is cut off, which shows that the
/// other switch is what helped.
#[test]
fn a_kept_rack_outlives_one_switch_and_ends_with_the_last() {
    if !can_make_namespaces() || !have("ping", "iputils-ping") || !have("ip", "iproute2") {
        return;
    }
    let rack = KeptRack::up(&repo("examples/two-tors-pl2.toml"), "pl2-clock");
    for switch in ["tor1", "tor2"] {
        let top = rack.command().args(["top", "--switch", switch, "--once"]).output().unwrap();
        assert!(top.status.success(), "{switch}: {}", stderr(&top));
    }
    assert!(wait_until(LIMIT, || ping(&rack, "h2", "10.0.0.1")));
    // h3 loses its link to the second switch.
    let down = rack.exec("h3", &["ip", "link", "set", "eth1", "down"]).output().unwrap();
    assert!(down.status.success(), "{}", stderr(&down));
    assert!(wait_until(LIMIT, || ping(&rack, "h3", "10.0.0.1")), "one link is enough");
    let pids = switches(&rack);
    assert_eq!(pids.len(), 2, "{pids:?}");
    assert!(Command::new("kill").args(["-KILL", &pids[0].to_string()]).status().unwrap().success());
    assert!(wait_until(LIMIT, || !is_switch(pids[0])));
    assert!(wait_until(LIMIT, || ping(&rack, "h2", "10.0.0.1")), "over the other switch");
    assert!(!ping(&rack, "h3", "10.0.0.1"), "its only link leads to the dead switch");
    let inside = rack.exec("switch", &["true"]).output().unwrap();
    assert!(inside.status.success(), "{}", stderr(&inside));
    assert!(Command::new("kill").args(["-KILL", &pids[1].to_string()]).status().unwrap().success());
    let ended = || {
        let output = rack.exec("h1", &["true"]).output().unwrap();
        !output.status.success() && stderr(&output).contains("switch")
    };
    assert!(wait_until(LIMIT, ended), "the rack ends with its last switch");
}

#[test]
fn a_description_says_what_two_switches_need() {
    let check = |path: &Path, settings: &[&str]| {
        let mut command = p4rack();
        command.args(["rack", "check"]).arg(path);
        settings.iter().for_each(|setting| _ = command.args(["--set", setting]));
        let output = command.output().unwrap();
        (output.status.success(), format!("{}{}", stdout(&output), stderr(&output)))
    };
    let (ok, said) = check(&repo("examples/two-tors.toml"), &[]);
    assert!(ok && said.contains("2 such switches, P4Runtime at 127.0.0.1:9559 and 127.0.0.1:9560"), "{said}");
    assert!(said.contains("kill: switch 1 of 2"), "{said}");
    for (rack, settings, expected) in [
        ("two-tors", &["switch.tors=3"][..], "switch.tors"),
        ("two-tors", &["switch.tors=1"], "workload.kill_tor: leaves the rack without a switch"),
        ("two-tors", &["edm.ether_type=0x88B5"], "edm: has ether_type 0x88b5"),
        ("two-tors", &["workload.schemes=[\"rdma\"]"], "switch.tors says 2"),
        ("two-tors-pl2", &["pl2.shim=false"], "pl2: has frames without sequence numbers"),
        ("two-tors-pl2", &["pl2.notify_receiver=true"], "pl2: has notify_receiver"),
        ("two-tors-pl2", &["pl2.by_flow=true"], "pl2: has by_flow"),
        ("two-tors-pl2", &["pl2.k=\"backlog\""], "pl2: has by_flow"),
        ("cowbird-switch", &["switch.tors=2"], "cowbird: runs at one switch"),
    ] {
        let (ok, said) = check(&repo(&format!("examples/{rack}.toml")), settings);
        assert!(!ok && said.contains(expected), "{settings:?}: {said}");
    }
    let output = p4rack().args(["up", "--simulate"]).arg(repo("examples/two-tors.toml")).output().unwrap();
    assert!(stderr(&output).contains("--simulate takes racks with one switch"), "{}", stderr(&output));
    let mut run = p4rack();
    run.args(["host", "run", "--name", "h2", "--interface", "eth0,eth0"])
        .arg(repo("examples/two-tors-pl2.toml"));
    let output = run.output().unwrap();
    assert!(stderr(&output).contains("--interface: `eth0,eth0` names `eth0` twice"), "{}", stderr(&output));
}
