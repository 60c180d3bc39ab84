//! Topologies whose switches are BMv2, where it is installed; and what is said where it isn't.

mod common;

use common::{can_make_namespaces, have, one_at_a_time, p4rack, repo, skip, stderr, stdout};
use p4rack_lab::process::on_path;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A device id that no other test has: BMv2 names files after it.
const DEVICE_ID: u64 = 40_417;

/// A folder for descriptions and for what runs, which ends with it.
struct Lab(tempfile::TempDir);

impl Lab {
    fn new() -> Lab {
        Lab(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// h1 at s1, h2 at s2. `first` is a part of s1, `link` of the link between h1 and s1, and `more` follows the rest.
    fn topology(&self, first: &str, link: &str, more: &str) -> String {
        fs::copy(repo("examples/pod/route.p4"), self.path("route.p4")).expect("a copy");
        for (switch, ports) in [("s1", [1, 2]), ("s2", [2, 1])] {
            let route = |host: usize| {
                let port = ports[host - 1];
                format!(
                    "routes dst=10.0.{host}.0/24 --action to next_hop=02:00:00:00:00:0{host} port={port}\n"
                )
            };
            fs::write(self.path(&format!("{switch}.entries")), route(1) + &route(2)).expect("entries");
        }
        let switch = |name: &str| {
            format!("[[switch]]\nname = \"{name}\"\nprogram = \"route.p4\"\nentries = \"{name}.entries\"\n")
        };
        let host = |n: usize| {
            format!(
                "[[host]]\nname = \"h{n}\"\nip = \"10.0.{n}.1/24\"\ngateway = \"10.0.{n}.254\"\ngateway_mac = \"02:00:00:00:01:00\"\n\
                 [[link]]\nends = [\"h{n}\", \"s{n}:1\"]\n"
            )
        };
        let (s1, s2, h1, h2) = (switch("s1"), switch("s2"), host(1), host(2));
        let text = format!(
            "name = \"two\"\n{s1}{first}\n{s2}{h1}{link}\n{h2}[[link]]\nends = [\"s1:2\", \"s2:2\"]\n{more}"
        );
        fs::write(self.path("two.toml"), text).expect("written");
        self.path("two.toml").display().to_string()
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = p4rack();
        command.args(words).env("XDG_RUNTIME_DIR", self.0.path());
        command
    }

    fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().expect("p4rack starts")
    }

    fn fine(&self, words: &[&str]) -> String {
        let output = self.run(words);
        assert!(output.status.success(), "{words:?}: {}{}", stdout(&output), stderr(&output));
        stdout(&output)
    }

    /// Runs it with only this on PATH. Returns its errors.
    fn refused(&self, words: &[&str], path: &str) -> String {
        let output = self.command(words).env("PATH", path).output().expect("p4rack starts");
        assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
        self.is_empty();
        stderr(&output)
    }

    /// Nothing is left in the runtime folder.
    fn is_empty(&self) {
        let left: Vec<_> = fs::read_dir(self.path("p4rack")).into_iter().flatten().flatten().collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = self.run(&["down", "--all"]);
    }
}

/// Part of a switch that makes it BMv2.
fn bmv2() -> String {
    format!("target = \"bmv2\"\ndevice_id = {DEVICE_ID}")
}

fn able() -> bool {
    if on_path("simple_switch_grpc").is_none() {
        skip("simple_switch_grpc", "building p4lang's behavioral-model (`p4rack doctor`)");
        return false;
    }
    can_make_namespaces() && have("ping", "iputils-ping")
}

#[test]
fn one_is_kept_beside_an_embedded_switch_and_leaves_nothing() {
    if !able() {
        return;
    }
    let (lab, _alone) = (Lab::new(), one_at_a_time());
    let captures = lab.path("captures").display().to_string();
    let two = lab.topology(&bmv2(), "", "");
    let up = lab.fine(&["up", "--keep", "--pcap", &captures, &two]);
    assert!(up.contains("s1 127.0.0.1:9559, s2 127.0.0.1:9560"), "{up}");
    lab.fine(&["exec", "h1", "--", "ping", "-c", "3", "-i", "0.2", "-W", "5", "10.0.2.1"]);
    let binary = env!("CARGO_BIN_EXE_p4rack");
    let on_s1 = ["--device-id", &DEVICE_ID.to_string()];
    let entries = lab.fine(&[&["exec", "s2", "--", binary, "table", "read"], &on_s1[..]].concat());
    assert!(entries.contains("10.0.2.0/24"), "{entries}");
    // Its ports are the kernel's interfaces; what waits in it is unknown.
    for (switch, is_known) in [("s1", false), ("s2", true)] {
        let top: Value =
            serde_json::from_str(&lab.fine(&["top", "--switch", switch, "--json", "--every", "0.1"]))
                .expect("JSON");
        let ports = top["ports"].as_array().expect("ports");
        assert!(ports.len() >= 2, "{top}");
        assert!(ports.iter().all(|port| port["queue_bytes"].is_u64() == is_known), "{top}");
    }
    let kept: Value = serde_json::from_str(&fs::read_to_string(lab.path("p4rack/two.json")).expect("a file"))
        .expect("JSON");
    let pid = kept["switches"][0]["process"]["pid"].to_string();
    let program = fs::read_link(Path::new("/proc").join(&pid).join("exe")).expect("it runs");
    assert!(program.ends_with("simple_switch_grpc"), "{}", program.display());
    lab.fine(&["down"]);
    assert!(!Path::new("/proc").join(&pid).exists(), "{pid}");
    lab.is_empty();
    let left = format!("/tmp/bmv2-{DEVICE_ID}-notifications.ipc");
    assert!(!Path::new(&left).exists(), "{left}");
    for capture in ["s1/s1-eth1_in.pcap", "s1/s1-eth2_out.pcap", "s2/s2-eth1_out.pcap"] {
        let bytes = fs::read(lab.path("captures").join(capture)).expect(capture);
        let frames = p4rack_wire::pcap::Reader::new(&bytes).expect(capture).count();
        assert!(frames >= 3, "{capture}: {frames} frames");
    }
}

#[test]
fn a_workload_runs_over_it() {
    if !able() {
        return;
    }
    let (lab, _alone) = (Lab::new(), one_at_a_time());
    let workload = "[workload]\nduration_s = 1\n[[workload.udp]]\nsenders = [\"h1\"]\nreceiver = \"h2\"\nrate = \"1 Mb/s\"\n\
                    [[workload.rpc]]\nclient = \"h2\"\nserver = \"h1\"\nvalue_bytes = [1024]\n";
    let two = lab.topology(&bmv2(), "", workload);
    let outcome: Value = serde_json::from_str(&lab.fine(&["up", "--json", &two])).expect("JSON");
    let traffic = &outcome["traffic"];
    assert!(traffic["udp"][0]["arrived"].as_u64() > Some(0), "{traffic}");
    assert!(traffic["rpc"][0]["values"][0]["completed"].as_u64() > Some(0), "{traffic}");
    lab.is_empty();
}

#[test]
fn start_up_is_measured_beside_it() {
    if !able() {
        return;
    }
    let (lab, _alone) = (Lab::new(), one_at_a_time());
    let words = ["bench", "start", "--size", "2,1,2", "--rounds", "1", "--beside-bmv2", "--json"];
    let figures: Value = serde_json::from_str(&lab.fine(&words)).expect("JSON");
    for (row, kind) in ["embedded", "bmv2"].into_iter().enumerate() {
        let figures = &figures["start"][row];
        assert_eq!(figures["switch"], kind, "{figures}");
        assert!(figures["up_s"][1].as_f64() > Some(0.0), "{figures}");
        assert!(figures["memory_bytes"][1].as_u64() > Some(1 << 20), "{figures}");
    }
    lab.is_empty();
}

#[test]
fn the_start_of_embedded_switches_is_measured_without_it() {
    if !can_make_namespaces() {
        return;
    }
    let (lab, _alone) = (Lab::new(), one_at_a_time());
    let words = ["bench", "start", "--size", "2,2,3", "--rounds", "1"];
    let text = lab.fine(&words);
    assert!(text.contains("4 switches, 3 hosts, 7 links") && text.contains("load average"), "{text}");
    let without = lab.refused(&[&words[..], &["--beside-bmv2"]].concat(), "/nonexistent");
    assert!(without.contains("simple_switch_grpc is not on PATH"), "{without}");
}

#[test]
fn switches_that_cannot_be_started_are_refused_before_anything_starts() {
    let lab = Lab::new();
    let kinds = [
        (
            bmv2(),
            "",
            "two.toml:N: switch[0].target: s1's target is bmv2: simple_switch_grpc is not on PATH; `p4rack doctor` shows",
        ),
        (
            bmv2(),
            "delay = \"1 ms\"",
            "two.toml:N: link[0].delay: BMv2 makes no rate, delay or loss of a link, and s1:1 is BMv2's; leave",
        ),
        (
            "target = \"tofino\"".to_owned(),
            "",
            "two.toml:N: switch[0].target: s1's target is tofino, and p4rack starts embedded",
        ),
        (
            "grpc_addr = \"10.9.8.7:9559\"".to_owned(),
            "",
            "two.toml:N: switch[0].grpc_addr: 10.9.8.7 is not in the namespace of the switches, where s1 is to serve it; write 127.0.0.1",
        ),
    ];
    for (switch, link, wanted) in kinds {
        let topology = lab.topology(&switch, link, "");
        // The line that has the key which the field names.
        let key = wanted.split(": ").nth(1).and_then(|field| field.rsplit('.').next()).expect("a field");
        let text = fs::read_to_string(&topology).expect("a topology");
        let line = text.lines().position(|line| line.starts_with(&format!("{key} = "))).expect("its line");
        let wanted = wanted.replace(":N:", &format!(":{}:", line + 1));
        for command in ["up", "lab"] {
            let said = lab.refused(&[command, &topology], "/nonexistent");
            assert!(said.contains(&wanted), "{command}: {said}\n{wanted}");
            assert!(!said.contains("namespaces"), "{said}");
        }
        // Mininet's switches are in this machine's own namespace.
        let in_mininet = wanted.replace(
            "is not in the namespace of the switches, where s1 is to serve it",
            "is no address of this machine: ",
        );
        let said = lab.refused(&["mininet", &topology], "/nonexistent");
        assert!(said.contains(in_mininet.split("machine: ").next().unwrap_or_default()), "{said}");
        // Without a machine in mind it is a topology, as long as its programs are for its targets.
        let checked = lab.run(&["rack", "check", &topology]);
        let (fits, said) = (stderr(&checked).is_empty(), stdout(&checked) + &stderr(&checked));
        assert_eq!(fits, !wanted.contains("tofino"), "{said}");
        assert_eq!(said.contains(&wanted), fits && !wanted.contains("not on PATH"), "{said}");
        let other = format!("two.toml:{}: switch[0].target: s1's target is tofino, and ", line + 1);
        assert_eq!(
            said.contains(&other) && said.contains("route.p4 is written for v1model"),
            !fits,
            "{said}"
        );
    }
}

/// With a stand-in: what it says is shown, and the other switch ends.
#[test]
fn one_that_ends_early_takes_the_topology_down_and_says_why() {
    if !can_make_namespaces() {
        return;
    }
    let (lab, _alone) = (Lab::new(), one_at_a_time());
    let program = lab.path("simple_switch_grpc");
    let script = "#!/bin/sh\ncase \"$*\" in *--help*) exit;; esac\necho no room today >&2; exit 7\n";
    fs::write(&program, script).expect("written");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("executable");
    let path = format!("{}:/usr/bin:/bin", lab.0.path().display());
    for words in [&["up"][..], &["up", "--keep"]] {
        let said = lab.refused(&[words, &[&lab.topology(&bmv2(), "", "")]].concat(), &path);
        assert!(
            said.contains("switch s1 ended early, exit code 7") && said.contains("no room today"),
            "{said}"
        );
    }
}
