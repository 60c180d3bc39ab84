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

/// Fields of the rack, of the SDE and of the board that are wrong, one after the other, until everything fits.
#[test]
fn the_doctor_says_what_a_rack_lacks_on_tofino() {
    if !can_make_namespaces() {
        return;
    }
    let folder = std::env::temp_dir().join(format!("p4rack-sde-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("sde/pkgsrc/bf-drivers")).unwrap();
    std::fs::create_dir_all(folder.join("install/bin")).unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    let rack = |cpu_port: u16, rate: &str| {
        let text = format!(
            "name = \"r\"\n[switch]\ncpu_port = {cpu_port}\nport_rate = \"{rate}\"\n[[host]]\nname = \"a\"\nport = 132\n\
             mac = \"02:00:00:00:00:01\"\nip = \"10.0.0.1/24\"\n[[host]]\nname = \"b\"\nport = 140\n\
             mac = \"02:00:00:00:00:02\"\nip = \"10.0.0.2/24\"\n"
        );
        write("rack.toml", &text);
    };
    let line = |port: u16| format!("1/0 |23/0|{port:3}|1/ 4|100G   | NONE|DIS|UP |\n");
    let found = |name: &str, sde: Option<&str>, arch: &str| -> (bool, String) {
        let mut doctor = p4rack();
        doctor.args(["doctor", "--json", "--arch", arch, "--rack"]).arg(folder.join("rack.toml"));
        doctor.arg("--board").arg(folder.join("board.txt")).env_remove("SDE").env_remove("SDE_INSTALL");
        if let Some(sde) = sde {
            doctor.env("SDE", folder.join(sde)).env("SDE_INSTALL", folder.join("install"));
        }
        let done = doctor.output().unwrap();
        let report: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
        let of_name = |one: &&serde_json::Value| one["name"] == name;
        let finding = report["findings"].as_array().unwrap().iter().find(of_name).unwrap().clone();
        assert!(done.status.success() || finding["ok"] == true || finding["get_it_by"].is_string());
        (done.status.success(), finding["found"].as_str().unwrap().to_owned())
    };
    rack(510, "2 Gb/s");
    write("board.txt", "no port\n");
    assert_eq!(found("SDE", None, "tna"), (false, "not set".to_owned()));
    assert_eq!(found("SDE_INSTALL", None, "tna"), (false, "not set".to_owned()));
    assert!(found("SDE", Some("elsewhere"), "tna").1.ends_with("no such folder"));
    assert!(found("SDE", Some("sde"), "tna").1.contains("no version"));
    assert!(found("SDE_INSTALL", Some("sde"), "tna").1.ends_with("bin/bf_switchd: no such file"));
    write("sde/pkgsrc/bf-drivers/VERSION", "9.7.4\n");
    assert_eq!(found("SDE", Some("sde"), "tna").1, "version 9.7.4, expected 9.13");
    assert_eq!(found("CPU port", Some("sde"), "tna").1, "510 is described, the chip's is 64");
    assert_eq!(found("port rates", Some("sde"), "tna").1, "port 132: no port has 2000000000 b/s");
    assert!(found("architecture", Some("sde"), "v1model").1.contains("described for v1model"));
    assert!(found("board", Some("sde"), "tna").1.contains("no lines such as"));
    write("board.txt", &line(132));
    assert!(found("board", Some("sde"), "tna").1.ends_with("port 140 of host b is not on this board"));

    write("sde/bf-sde-9.13.2.manifest", "");
    write("install/bin/bf_switchd", "");
    write("board.txt", &(line(132) + &line(140)));
    rack(64, "100 Gb/s");
    assert_eq!(found("SDE", Some("sde"), "tna"), (true, "9.13.2".to_owned()));
    rack(64, "400 Gb/s");
    assert_eq!(found("port rates", Some("sde"), "tna").1, "port 132: no port has 400000000000 b/s");
    assert_eq!(found("port rates", Some("sde"), "t2na").1, "all known");
    rack(64, "100 Gb/s");
    assert_eq!(found("board", Some("sde"), "tna"), (true, "2 ports".to_owned()));
    assert_eq!(
        found("CPU port", Some("sde"), "t2na"),
        (false, "64 is described, the chip's is 2".to_owned())
    );
    assert_eq!(found("program", Some("sde"), "tna"), (true, "l2".to_owned()));
    let one_pipe = std::fs::read_to_string(folder.join("rack.toml")).unwrap();
    write("rack.toml", &(one_pipe.replace("port = 132", "port = 12") + "[pl2]\nmode = \"counter\"\n"));
    let (fits, why) = found("program", Some("sde"), "tna");
    assert!(
        !fits && why.contains("a (host[0].port = 12) in pipe 0, b (host[1].port = 140) in pipe 1"),
        "{why}"
    );
    std::fs::remove_dir_all(folder).unwrap();
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
