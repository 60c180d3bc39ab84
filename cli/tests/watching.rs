//! Commands that show what changes, and files of entries.

mod common;

use common::switch::{Running, fine, free_addr, run, switch, switch_with};
use common::{p4rack, repo, stderr, stdout, wait_until};
use p4rack_codegen::scheme::{l2, pl2};
use std::fs::File;
use std::process::Stdio;
use std::time::Duration;

fn watching(addr: &str, words: &[&str]) -> Running {
    Running::start(p4rack().args(words).args(["--every", "0.05", "--grpc-addr", addr]))
}

#[test]
fn watched_entries_and_cells_are_shown_as_they_change() {
    let addr = free_addr();
    let _switch = switch(&addr, &[]);
    fine(&addr, &["deploy", &repo("examples/two-hosts.toml").display().to_string()]);
    let mut entries = watching(&addr, &["table", "watch", "l2_forward"]);
    entries.until("02:00:00:00:00:02");
    let entry = [
        "l2_forward",
        "dstAddr=02:00:00:00:00:77",
        "--action",
        "forward",
        "slot=1",
        "drop_threshold=4",
        "cells=0",
    ];
    fine(&addr, &[&["table", "insert"], &entry[..], &["port=1"]].concat());
    assert!(entries.until("02:00:00:00:00:77").contains("port=1"));
    fine(&addr, &[&["table", "modify"], &entry[..], &["port=2"]].concat());
    while !entries.until("02:00:00:00:00:77").contains("port=2") {}

    let mut counter = watching(&addr, &["counter", "watch", "drops"]);
    counter.until(l2::DROPS);
    fine(&addr, &["counter", "write", "drops", "--index", "2", "--packets", "4711", "--bytes", "815"]);
    assert!(counter.until("4711").contains("815"));
    let mut register = watching(&addr, &["register", "watch", "in_reservation", "--index", "1"]);
    register.until(pl2::IN_RESERVATION);
    fine(&addr, &["register", "write", "in_reservation", "4712", "--index", "1"]);
    register.until("4712");
    let mut groups = watching(&addr, &["group", "watch", "--json"]);
    groups.until("[");
    fine(&addr, &["group", "insert", "--multicast", "4713", "1", "2"]);
    assert!(groups.until("4713").starts_with('['));
    for words in [
        &["table", "watch", "nobody"],
        &["counter", "watch", "nobody"],
        &["meter", "watch", "nobody"],
        &["register", "watch", "nobody"],
    ] {
        let output = run(&addr, &words[..]);
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        assert!(
            stderr(&output).contains("no") && stderr(&output).contains("`nobody`"),
            "{}",
            stderr(&output)
        );
    }
}

/// A program that reads the log needs no second parser.
#[test]
fn with_json_as_the_log_format_a_controller_prints_nothing_else() {
    let (addr, folder) = (free_addr(), tempfile::tempdir().expect("a folder"));
    let _switch = switch(&addr, &[]);
    let (rack, log) = (folder.path().join("rack.toml"), folder.path().join("log"));
    std::fs::copy(repo("examples/two-hosts.toml"), &rack).expect("copied");
    let mut controller = p4rack();
    controller.args(["--log-format", "json", "deploy", "--watch", "--every", "0.05", "--grpc-addr", &addr]);
    controller.arg(&rack).stdout(Stdio::piped()).stderr(File::create(&log).expect("a file"));
    let mut controller = Running(controller.spawn().expect("it starts"));
    let event =
        |line: String| serde_json::from_str::<serde_json::Value>(&line).expect("JSON")["event"].clone();
    assert_eq!(event(controller.until("primary")), "primary of device 1");
    std::fs::write(&rack, "name = 3\n").expect("written");
    let said = || std::fs::read_to_string(&log).expect("text");
    assert!(wait_until(Duration::from_secs(20), || said().ends_with('\n')), "{}", said());
    for line in said().lines() {
        let line: serde_json::Value = serde_json::from_str(line).expect(line);
        let message = line["fields"]["message"].as_str().unwrap_or_default();
        assert!(message.contains("the new description is not used"), "{line}");
    }
}

#[test]
fn a_meter_is_watched_with_what_it_has_seen() {
    let addr = free_addr();
    let _switch = switch_with(&repo("cli/tests/control.p4").display().to_string(), &addr, &[]);
    let mut meter = watching(&addr, &["meter", "watch", "rates", "--index", "2", "--colors"]);
    meter.until("yellow");
    fine(&addr, &["meter", "write", "rates", "--index", "2", "--cir", "1000", "--cburst", "4714"]);
    assert!(meter.until("4714").contains("0 (0 B)"));
}

#[test]
fn a_file_of_entries_is_carried_out_and_its_faults_are_named() {
    let (addr, folder) = (free_addr(), tempfile::tempdir().expect("a folder"));
    let out = folder.path().display().to_string();
    let rack = repo("examples/two-hosts.toml").display().to_string();
    let made = p4rack().args(["generate", &rack, "-o", &out]).output().expect("p4rack starts");
    assert!(made.status.success(), "{}", stderr(&made));
    let file = |ending: &str| folder.path().join(format!("two-hosts.{ending}")).display().to_string();
    let _switch = switch_with(&file("p4"), &addr, &[]);
    let entries = file("entries.txtpb");
    let said = fine(&addr, &["table", "apply", &entries]);
    assert!(said.starts_with("applied ") && said.ends_with(" updates\n"), "{said}");
    assert!(fine(&addr, &["table", "read", "l2_forward"]).contains(l2::FORWARD));
    assert_eq!(run(&addr, &["deploy", &rack, "--dry-run"]).status.code(), Some(0));

    // All entries exist already: each insertion is refused by name, and nothing else.
    let again = run(&addr, &["table", "apply", &entries]);
    assert_eq!(again.status.code(), Some(1));
    let text = stderr(&again);
    assert!(
        text.contains(&format!("table {} key", l2::L2_FORWARD)) && text.contains("ALREADY_EXISTS"),
        "{text}"
    );
    std::fs::write(&entries, "device_id: 1\nupdates { kind: INSERT }\n").expect("written");
    let wrong = run(&addr, &["table", "apply", &entries]);
    assert_eq!(wrong.status.code(), Some(1));
    assert!(stderr(&wrong).contains("two-hosts.entries.txtpb:2:"), "{}{}", stdout(&wrong), stderr(&wrong));
    let absent = run(&addr, &["table", "apply", "/nowhere/entries.txtpb"]);
    assert!(stderr(&absent).contains("/nowhere/entries.txtpb: No such file"), "{}", stderr(&absent));
}
