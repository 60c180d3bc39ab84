//! `p4rack mininet` with Debian's Mininet.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

mod common;

use common::{can_make_namespaces, one_at_a_time, p4rack, repo, skip, stderr, stdout};
use serde_json::json;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn have_mininet() -> bool {
    let there = Path::new("/usr/bin/mn").exists();
    if !there {
        skip("mininet", "sudo apt-get install --no-install-recommends mininet");
    }
    there && can_make_namespaces()
}

#[test]
fn hosts_reach_each_other_and_an_incast_loses_nothing() {
    if !have_mininet() {
        return;
    }
    let _alone = one_at_a_time();
    let rack = repo("examples/pl2-incast.toml");
    let done = p4rack().arg("mininet").arg(rack).args(["--test", "--duration", "2"]).output().unwrap();
    assert!(done.status.success(), "{}{}", stdout(&done), stderr(&done));
    let text = stdout(&done);
    assert!(text.contains("0% dropped (30/30 received)"), "{text}");
    assert!(text.contains("incast: 4 senders to h1 under pl2-clock") && text.contains("passed"), "{text}");
}

#[test]
fn a_topology_runs_with_its_programs_entries_and_links() {
    if !have_mininet() {
        return;
    }
    let _alone = one_at_a_time();
    let pod = repo("examples/pod/pod.toml");
    let done = p4rack().arg("mininet").arg(&pod).arg("--test").output().unwrap();
    assert!(done.status.success(), "{}{}", stdout(&done), stderr(&done));
    assert!(stdout(&done).contains("0% dropped (30/30 received)"), "{}", stdout(&done));
    let done = p4rack().arg("mininet").arg(&pod).args(["--scheme", "l2"]).output().unwrap();
    assert!(stderr(&done).contains("--scheme is for racks"), "{}", stderr(&done));
    // A host's commands run on it, and a mistake is named before anything starts.
    let folder = tempfile::tempdir().unwrap();
    let here = |name: &str| folder.path().join(name);
    std::fs::copy(repo("examples/pod/route.p4"), here("route.p4")).unwrap();
    let text = "name = \"one\"\n[[switch]]\nname = \"s1\"\nprogram = \"route.p4\"\nentries = \"s1.entries\"\n\
        [[host]]\nname = \"h1\"\nip = \"10.0.1.1/24\"\ncommands = [\"echo it is $((40 + 2))\", \"sleep 1000 &\", \"exit 3\"]\n\
        [[link]]\nends = [\"h1\", \"s1:1\"]\nrate = \"10 Mb/s\"\n";
    std::fs::write(here("one.toml"), text).unwrap();
    std::fs::write(here("s1.entries"), "routs dst=10.0.1.0/24 --action drop\n").unwrap();
    let run = || p4rack().arg("mininet").arg(here("one.toml")).output().unwrap();
    let refused = run();
    assert!(stderr(&refused).contains("s1.entries: line 1"), "{}", stderr(&refused));
    std::fs::write(here("s1.entries"), "routes dst=10.0.1.0/24 --action drop\n").unwrap();
    let done = run();
    assert!(
        done.status.success() && stdout(&done).contains("it is 42") && !stdout(&done).contains("within"),
        "{}{}",
        stdout(&done),
        stderr(&done)
    );
    assert!(stdout(&done).contains("h1$ exit 3\n✗ exit code 3\n"), "{}", stdout(&done));
}

#[test]
fn racks_reach_each_other_over_their_agents_interfaces() {
    if !have_mininet() {
        return;
    }
    let _alone = one_at_a_time();
    let folder = tempfile::tempdir().unwrap();
    for name in ["rack-1.toml", "rack-2.toml", "spine.p4", "spine.entries"] {
        std::fs::copy(repo("examples/leaf-spine").join(name), folder.path().join(name)).unwrap();
    }
    let text = std::fs::read_to_string(repo("examples/leaf-spine/leaf-spine.toml")).unwrap();
    let gateway = "gateway = \"10.0.1.254\"\n";
    let with_command = format!("{gateway}commands = [\"ip route show default\"]\n");
    let topology = folder.path().join("leaf-spine.toml");
    std::fs::write(&topology, text.replacen(gateway, &with_command, 1)).unwrap();
    let done = p4rack().arg("mininet").arg(topology).arg("--test").output().unwrap();
    assert!(done.status.success(), "{}{}", stdout(&done), stderr(&done));
    assert!(stdout(&done).contains("0% dropped (30/30 received)"), "{}", stdout(&done));
    assert!(stdout(&done).contains("default via 10.0.1.254 dev app0"), "{}", stdout(&done));
}

#[test]
fn a_command_that_does_not_end_is_killed() {
    if !have_mininet() {
        return;
    }
    // The script with a short limit. Its agent and its `deploy` do nothing.
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("p4rack");
    std::fs::write(&program, "#!/bin/sh\necho ready\nif [ \"$1\" = host ]; then exec sleep 1000; fi\n")
        .unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let agent = json!({ "rack": "r.toml", "scheme": "l2", "arch": "v1model" });
    let command = "sleep 1000 & sleep 1000";
    // Only the agent is left, once what the command has started is gone, too.
    let others_end = "while [ \"$(ps -e -o args | grep -cx 'sleep 1000')\" != 1 ]; do sleep 0.1; done";
    let host = json!({ "name": "h1", "ip": "10.0.0.1", "mac": "02:00:00:00:00:01", "gateway": null, "agent": agent,
        "commands": [command, others_end] });
    let config = json!({ "binary": program, "test": true, "duration_s": 1, "switches": [], "hosts": [host], "links": [],
        "deploy": [], "workload": null, "thrift_port": null, "command_limit_s": 10 });
    let script = include_str!("../src/cmd/mininet.py");
    let done =
        Command::new("/usr/bin/python3").arg("-c").arg(script).arg(config.to_string()).output().unwrap();
    let said = stdout(&done);
    let failure = format!("h1$ {command}\n✗ it did not end within 10 s");
    assert!(done.status.success() && said.contains(&failure), "{said}{}", stderr(&done));
    assert_eq!(said.matches("did not end").count(), 1, "{said}");
}

#[test]
fn plain_switching_loses_what_does_not_fit() {
    if !have_mininet() {
        return;
    }
    let _alone = one_at_a_time();
    let rack = repo("examples/pl2-incast.toml");
    let args = ["--test", "--duration", "1", "--scheme", "l2"];
    let done = p4rack().arg("mininet").arg(rack).args(args).output().unwrap();
    assert!(done.status.success(), "{}{}", stdout(&done), stderr(&done));
    // Without scheduled frames nothing is kept free for them, so the whole buffer fills up.
    let text = stdout(&done);
    assert!(text.contains("lost in the switch: ") && text.contains(" frames for buffer_full\n"), "{text}");
}

#[test]
fn commands_run_on_hosts_and_nothing_is_left_after_a_kill() {
    if !have_mininet() {
        return;
    }
    let _alone = one_at_a_time();
    use std::io::{BufRead, BufReader, Write};
    let mut child = p4rack()
        .arg("mininet")
        .arg(repo("examples/two-hosts.toml"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    writeln!(input, "h1 ping -c 1 -W 2 10.0.0.2").unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("1 packets transmitted, 1 received")));
    let tag = format!("{}", repo("examples/two-hosts.toml").canonicalize().unwrap().display());
    assert!(running(&tag) > 0);
    child.kill().unwrap();
    child.wait().unwrap();
    let start = Instant::now();
    while running(&tag) > 0 {
        assert!(start.elapsed() < Duration::from_secs(5), "processes of the network are left");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Agents that run for this description.
fn running(rack: &str) -> usize {
    let listed = Command::new("ps").args(["-eo", "args"]).output().unwrap();
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    text.lines().filter(|line| line.contains("host run") && line.contains(rack)).count()
}

#[test]
fn bmv2_is_asked_for_where_it_is_missing() {
    if !have_mininet() {
        return;
    }
    if Command::new("simple_switch_grpc").arg("--version").output().is_ok() {
        return skip("a machine without BMv2", "taking simple_switch_grpc from PATH");
    }
    let rack = repo("examples/two-hosts.toml");
    let done = p4rack().arg("mininet").arg(rack).args(["--switch", "bmv2", "--test"]).output().unwrap();
    assert_eq!(done.status.code(), Some(1));
    assert!(
        stderr(&done).contains("simple_switch_grpc") && stderr(&done).contains("p4rack doctor"),
        "{}",
        stderr(&done)
    );
}
