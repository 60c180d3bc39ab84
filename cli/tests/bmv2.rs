//! The control plane against BMv2's `simple_switch_grpc`, where it and p4c are installed.

mod common;

use common::install::{ENTRIES, Files, PROGRAM, replace, report};
use common::switch::{Running, fine, free_addr, run};
use common::{can_make_namespaces, have, one_at_a_time, p4rack, repo, skip, stderr, stdout, wait_until};
use p4rack_codegen::scheme::l2::L2_FORWARD;
use p4rack_ctrl::{ConnectOptions, Session};
use p4rack_lab::process::on_path;
use p4rack_p4rt::bytes;
use p4rack_p4rt::p4::v1::{PacketMetadata, PacketOut};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// How long it may take to start.
const START: Duration = Duration::from_secs(20);
/// The counter of the program.
const COUNTER: &str = "counter(4, CounterType.packets) seen;";

fn installed() -> bool {
    let both = on_path("simple_switch_grpc").is_some() && on_path("p4c-bm2-ss").is_some();
    if !both {
        skip(
            "simple_switch_grpc and p4c-bm2-ss",
            "building p4lang's behavioral-model and p4c (`p4rack doctor`)",
        );
    }
    both
}

fn bmv2(addr: &str, folder: &Path) -> Running {
    let help = Command::new("simple_switch_grpc").arg("--help").output().expect("it starts");
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    let mut command = Command::new("simple_switch_grpc");
    command.args(["--no-p4", "--device-id", "0"]);
    if help.contains("--thrift-port") {
        let thrift = free_addr();
        command.args(["--thrift-port", thrift.rsplit(':').next().unwrap_or_default()]);
    }
    if help.contains("--notifications-addr") {
        command.args(["--notifications-addr", &format!("ipc://{}", folder.join("news.ipc").display())]);
    }
    command.args(["--", "--grpc-server-addr", addr, "--cpu-port", "510", "--priority-queues", "8"]);
    let switch = Running::start(&mut command);
    assert!(wait_until(START, || TcpStream::connect(addr).is_ok()), "it listens");
    switch
}

/// The tests' rack, for BMv2.
fn rack(folder: &Path, name: &str, pl2: &str) -> String {
    let text = std::fs::read_to_string(repo("ptf-tests/rack.toml")).expect("readable");
    let text =
        text.replace("[switch]", "[switch]\ntarget = \"bmv2\"").replace("[pl2]", &format!("[pl2]\n{pl2}"));
    let path = folder.join(name);
    std::fs::write(&path, text).expect("written");
    path.display().to_string()
}

#[test]
fn a_rack_is_deployed_changed_and_kept_across_a_restart() {
    if !installed() {
        return;
    }
    let (addr, folder) = (free_addr(), tempfile::tempdir().expect("a folder"));
    let mut switch = bmv2(&addr, folder.path());
    let described = rack(folder.path(), "rack.toml", "");
    for scheme in ["l2", "pl2-counter", "pl2-clock"] {
        assert!(fine(&addr, &["deploy", &described, "--scheme", scheme]).contains("the switch holds"));
    }
    for clocks in ["chain", "dst", "calendar"] {
        let other = rack(folder.path(), "other.toml", &format!("clocks = \"{clocks}\""));
        assert!(fine(&addr, &["deploy", &other]).contains("the switch holds"), "{clocks}");
    }
    fine(&addr, &["deploy", &described]);
    let again = fine(&addr, &["deploy", &described]);
    assert!(
        again.contains("the program was already installed") && again.contains("nothing to change"),
        "{again}"
    );
    assert!(fine(&addr, &["pl2", "read", &described]).contains("h4"));

    let on = |words: &[&str]| fine(&addr, &[words, &["--device-id", "0"]].concat());
    on(&["table", "delete", "l2_forward", "dstAddr=02:00:00:00:00:02"]);
    let dry = run(&addr, &["deploy", &described, "--dry-run"]);
    assert_eq!(dry.status.code(), Some(1));
    assert!(stdout(&dry).contains(&format!("+ table {L2_FORWARD}")) && stdout(&dry).contains("1 to insert"));
    // BMv2 answers a read of an absent group with an error.
    assert!(on(&["group", "write", "--multicast", "7", "1", "2"]).contains("inserted"));
    assert!(on(&["group", "write", "--multicast", "7", "3"]).contains("modified"));
    assert!(on(&["group", "read"]).contains("3:1"));
    let mut watch = p4rack();
    watch.args(["group", "watch", "--json", "--every", "0.05", "--device-id", "0", "--grpc-addr", &addr]);
    let mut groups = Running::start(&mut watch);
    groups.until("[");
    on(&["group", "insert", "--multicast", "4713", "1", "2"]);
    assert!(groups.until("4713").starts_with('['));
    drop(groups);
    on(&["group", "delete", "--multicast", "4713"]);
    let registers = run(&addr, &["register", "read", "in_reservation", "--device-id", "0"]);
    assert_eq!(registers.status.code(), Some(1));
    assert!(stderr(&registers).contains("not supported"), "{}", stderr(&registers));
    let nobody = run(&addr, &["table", "list"]);
    assert!(stderr(&nobody).contains("give the right --device-id"), "{}", stderr(&nobody));

    let mut command = p4rack();
    command.args(["deploy", &described, "--watch", "--every", "0.2", "--grpc-addr", &addr]);
    let mut controller = Running::start(&mut command);
    controller.until("the switch holds");
    switch.kill();
    let _restarted = bmv2(&addr, folder.path());
    controller.until("installed the program");
    controller.until("the switch holds");
    drop(controller);
    assert_eq!(run(&addr, &["deploy", &described, "--dry-run"]).status.code(), Some(0));
}

#[test]
fn programs_are_installed_on_it_and_entries_that_fit_stay() {
    if on_path("simple_switch_grpc").is_none() {
        return skip("simple_switch_grpc", "building p4lang's behavioral-model (`p4rack doctor`)");
    }
    let (addr, files) = (free_addr(), Files::new());
    let _switch = bmv2(&addr, Path::new(&files.path("")));
    let on = |words: &[&str]| fine(&addr, &[words, &["--device-id", "0"]].concat());
    let install = |words: &[&str]| report(&addr, &[words, &["--device-id", "0"]].concat());
    let entries = || on(&["table", "read", "--json"]).matches("\"table\"").count();
    let route = repo("examples/pod/route.p4").display().to_string();
    let first = install(&[&route, "--entries", &repo("examples/pod/s1.entries").display().to_string()]);
    assert_eq!((&first["installed"], &first["inserted"]), (&"first program".into(), &6.into()), "{first}");
    // What `p4 compile` writes is the same program.
    let (json, info) = (files.path("route.json"), files.path("route.p4info.txtpb"));
    let words = ["p4", "compile", &route, "-o", &json, "--p4info", &info];
    assert!(p4rack().args(words).status().expect("p4rack starts").success());
    let same = install(&[&json, "--p4info", &info]);
    assert_eq!((&same["dropped"], &same["kept"]), (&serde_json::json!([]), &6.into()), "{same}");
    assert_eq!(entries(), 6);

    // One with counters, an action profile, groups and a default entry.
    let program = files.path("t.p4");
    let other = install(&[&program, "--entries", &files.path("t.entries")]);
    assert_eq!((&other["inserted"], &other["kept"]), (&2.into(), &0.into()), "{other}");
    on(&["table", "insert", "forward", "dst=02:00:00:00:00:03", "--action", "to", "port=3"]);
    on(&["group", "insert", "--profile", "ways", "--member", "7", "--action", "to", "port=4"]);
    on(&["table", "insert", "spread", "src=02:00:00:00:00:09", "--member", "7"]);
    on(&["group", "insert", "--multicast", "5", "1", "2"]);
    on(&["group", "insert", "--clone", "6", "3"]);
    on(&["table", "modify", "forward", "--default", "--action", "to", "port=9"]);
    let groups = on(&["group", "read"]);
    for mark in [2, 3] {
        let text = PROGRAM.replace("mark = 1;", &format!("mark = {mark};"));
        // BMv2 keeps entries only where nothing counts.
        let text = if mark == 2 { text } else { text.replace("seen.count(0);", "").replace(COUNTER, "") };
        replace(&program, &text);
        let next = install(&[&program]);
        assert_eq!((&next["installed"], &next["kept"]), (&"replaced".into(), &8.into()), "{next}");
        assert_eq!((entries(), on(&["group", "read"])), (4, groups.clone()), "{next}");
        assert_eq!(answer(&addr), mark, "packets meet the new program");
        assert_eq!(install(&[&program])["installed"], "same program");
    }
    let dry = run(&addr, &["p4", "install", &program, "--dry-run", "--device-id", "0"]);
    assert_eq!(dry.status.code(), Some(0), "{}", stdout(&dry));

    // Mistakes leave it as it is, and saves are followed.
    let twice = files.write("twice.entries", &ENTRIES.repeat(2));
    let words = ["p4", "install", &program, "--entries", &twice, "--device-id", "0"];
    assert_eq!(run(&addr, &words).status.code(), Some(1));
    assert_eq!((entries(), on(&["group", "read"])), (4, groups), "as before");
    let words = ["p4", "install", &program, "--watch", "--device-id", "0", "--grpc-addr", &addr];
    let mut watches = Running::start(p4rack().args(words));
    watches.until("runs already");
    replace(&program, &PROGRAM.replace("mark = 1;", "mark = 4;"));
    watches.until("installed, 8 entries kept");
    drop(watches);
    assert_eq!((entries(), answer(&addr)), (4, 4));
}

/// The mark with which the program answers a packet of the controller.
fn answer(addr: &str) -> u128 {
    let target = ConnectOptions { election_id: 9, ..ConnectOptions::new(addr.to_owned(), 0) };
    tokio::runtime::Runtime::new().expect("a runtime").block_on(async {
        let mut session = Session::connect(target).await.expect("primary");
        let metadata = vec![PacketMetadata { metadata_id: 1, value: vec![7] }];
        session.packet_out(PacketOut { payload: vec![0; 60], metadata }).await.expect("sent");
        let until = tokio::time::Instant::now() + START;
        let packet = session.packet_in(until).await.expect("a session").expect("an answer");
        bytes::to_u128(&packet.metadata[0].value).expect("a number")
    })
}

#[test]
fn both_switches_are_measured_in_one_run() {
    if !installed() {
        return;
    }
    let words = ["bench", "p4runtime", "--beside-bmv2", "--only", "push", "--json"];
    let output = p4rack().args(words).output().expect("p4rack starts");
    assert!(output.status.success(), "{}", stderr(&output));
    let figures: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    for switch in ["switch", "bmv2"] {
        assert_eq!(figures[switch][0]["name"], "pipeline push to first packet", "{figures:#}");
    }
}

#[test]
fn frames_are_forwarded_by_both_in_one_run() {
    if !installed() || !can_make_namespaces() {
        return;
    }
    let _alone = one_at_a_time();
    let words = ["bench", "forward", "--beside-bmv2", "--io", "packet", "--seconds", "0.1", "--rounds", "1"];
    let output = p4rack().args(words).arg("--json").output().expect("p4rack starts");
    assert!(output.status.success(), "{}", stderr(&output));
    let figures: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    let beside = &figures["beside_bmv2"][0];
    for switch in [&figures["forward"][0]["switch"], &beside["switch"], &beside["other"]] {
        let frames_per_s = switch["frames_per_s"].as_f64();
        assert!(frames_per_s.is_some_and(|rate| rate > 0.0), "{figures:#}");
    }
}

#[test]
fn mininet_hosts_reach_each_other_over_it() {
    if !installed() || !have("mn", "mininet") || !can_make_namespaces() {
        return;
    }
    let _alone = one_at_a_time();
    let folder = tempfile::tempdir().expect("a folder");
    let described = rack(folder.path(), "rack.toml", "");
    let words = ["mininet", &described, "--switch", "bmv2", "--test", "--duration", "1"];
    let done = p4rack().args(words).output().expect("p4rack starts");
    assert!(done.status.success(), "{}{}", stdout(&done), stderr(&done));
    assert!(stdout(&done).contains("0% dropped (12/12 received)"), "{}", stdout(&done));
}

#[test]
fn random_packets_and_entries_become_the_same_on_both() {
    if !installed() {
        return;
    }
    let folder = samples();
    let words =
        ["p4", "samples", &folder.path().display().to_string(), "--against-bmv2", "1", "--packets", "20"];
    let output = p4rack().args(words).output().expect("p4rack starts");
    let said = stdout(&output);
    assert!(output.status.success(), "{said}{}", stderr(&output));
    assert!(said.contains("bmv2    seed 1: ") && !said.contains("seed 1: 0 programs"), "{said}");
}

/// The programs of `tests/stf`, as a folder of samples.
fn samples() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let programs = folder.path().join("p4_16_samples");
    std::fs::create_dir(&programs).expect("a folder");
    for file in std::fs::read_dir(repo("tests/stf")).expect("a folder") {
        let path = file.expect("a file").path();
        if path.extension().is_some_and(|ending| ending == "p4") {
            std::fs::copy(&path, programs.join(path.file_name().expect("a name"))).expect("copied");
        }
    }
    folder
}

#[test]
fn without_bmv2_nothing_is_compared_and_that_is_said() {
    let folder = samples();
    let words = ["p4", "samples", &folder.path().display().to_string(), "--against-bmv2", "1"];
    let output = p4rack().args(words).env("PATH", "/nonexistent").output().expect("p4rack starts");
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).contains("skipped: needs simple_switch_grpc and p4c-bm2-ss, get them by"));
}

/// With a stand-in. Tests the options for a BMv2 built without Thrift and nanomsg, and that its own messages are
/// shown.
#[test]
fn one_that_ends_at_once_says_why() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = |name: &str, body: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{body}\n")).expect("written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("executable");
    };
    script("p4c-bm2-ss", "echo '{}' > \"$4\"");
    script(
        "simple_switch_grpc",
        "case \"$*\" in *--help*) echo '  --device-id arg'; exit;; *thrift*|*notifications*) echo unknown option; exit 1;; esac\n\
         echo no room today >&2; exit 7",
    );
    let path = format!("{}:/usr/bin:/bin", folder.path().display());
    let words = ["bench", "p4runtime", "--beside-bmv2", "--only", "push"];
    let output = p4rack().args(words).env("PATH", path).output().expect("p4rack starts");
    assert!(!output.status.success());
    let said = stderr(&output);
    assert!(said.contains("ended immediately: exit status: 7\nno room today"), "{said}");
}
