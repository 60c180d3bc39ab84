//! `p4rack doctor` and `p4rack rack import`.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

mod common;

use common::{can_make_namespaces, p4rack, stderr, stdout};

#[test]
fn the_doctor_lists_what_is_there_and_how_to_get_the_rest() {
    if !can_make_namespaces() {
        return;
    }
    // Without PATH no tool is found, and the embedded target is fine all the same.
    let done = p4rack().args(["doctor", "--json"]).env("PATH", "").output().unwrap();
    assert!(done.status.success(), "{}", stderr(&done));
    let report: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(report["embedded_target"], true);
    let findings = report["findings"].as_array().unwrap();
    let named = |name: &str| findings.iter().find(|finding| finding["name"] == name).unwrap();
    assert_eq!(named("TAP")["ok"], true);
    assert_eq!(named("p4c-bm2-ss")["ok"], false);
    assert!(named("p4c-bm2-ss")["get_it_by"].as_str().unwrap().contains("p4lang/p4c"));
    let done = p4rack().arg("doctor").output().unwrap();
    assert!(done.status.success(), "{}", stdout(&done));
    assert!(
        stdout(&done).contains("everything the embedded target requires is available"),
        "{}",
        stdout(&done)
    );
}

#[test]
fn a_topology_becomes_a_description_that_checks() {
    let folder = std::env::temp_dir().join(format!("p4rack-import-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (topology, rack) = (folder.join("topology.json"), folder.join("calc.toml"));
    let text = r#"{"hosts": {"h1": {"ip": "10.0.1.1/24", "mac": "08:00:00:00:01:01", "commands": ["x"]},
        "h2": {"ip": "10.0.1.2/24", "mac": "08:00:00:00:01:02"}},
        "switches": {"s1": {}}, "links": [["h1", "s1-p1"], ["h2", "s1-p2"]]}"#;
    std::fs::write(&topology, text).unwrap();
    let import = |from: &std::path::Path| {
        p4rack().args(["rack", "import"]).arg(from).arg("-o").arg(&rack).output().unwrap()
    };
    let done = import(&topology);
    assert!(done.status.success(), "{}", stderr(&done));
    assert!(stderr(&done).contains("left out: hosts.h1.commands"), "{}", stderr(&done));
    assert!(p4rack().args(["rack", "check"]).arg(&rack).output().unwrap().status.success());
    std::fs::write(&topology, text.replace("s1-p2", "s1-p1")).unwrap();
    let done = import(&topology);
    assert_eq!(done.status.code(), Some(1));
    assert!(stderr(&done).contains("port 1 is host[0]'s already"), "{}", stderr(&done));
    std::fs::remove_dir_all(folder).unwrap();
}
