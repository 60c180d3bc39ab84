//! Commands that show what changes, files of entries, and topologies that are kept.

mod common;

use common::switch::{Running, fine, free_addr, run, switch, switch_with};
use common::{p4rack, repo, stderr, stdout, wait_until};
use p4rack_codegen::scheme::{l2, pl2};
use std::fs::{self, File};
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

/// What is shown has the form in which it is entered, unless numbers are asked for.
#[test]
fn values_come_back_by_their_types_and_can_be_entered_again() {
    let addr = free_addr();
    let _switch = switch_with(&repo("examples/pod/route.p4").display().to_string(), &addr, &[]);
    let entry = ["routes", "dst=0x0a000200/24", "--action", "to", "next_hop=0x020000000001", "port=0x3"];
    let said = fine(&addr, &[&["table", "insert"], &entry[..]].concat());
    let typed = "hdr.ipv4.dst=10.0.2.0/24 -> PodIngress.to next_hop=02:00:00:00:00:01 port=3";
    assert_eq!(said, format!("inserted table PodIngress.routes {typed}\n"));
    let again = run(&addr, &[&["table", "insert"], &entry[..]].concat());
    let text = stderr(&again);
    assert!(text.contains("table PodIngress.routes key hdr.ipv4.dst=10.0.2.0/24: ALREADY_EXISTS"), "{text}");
    let read = fine(&addr, &["table", "read"]);
    assert!(read.contains("10.0.2.0/24") && read.contains("next_hop=02:00:00:00:00:01"), "{read}");
    let raw = fine(&addr, &["table", "read", "--raw", "--json"]);
    assert!(
        raw.contains("0x0a000200/24") && raw.contains("0x020000000001") && raw.contains("\"0x03\""),
        "{raw}"
    );
    fine(&addr, &["table", "delete", "routes", "hdr.ipv4.dst=10.0.2.0/24"]);
    let back: Vec<&str> = typed.split(" -> ").collect();
    let words: Vec<&str> =
        [&["table", "insert", "routes", back[0], "--action"][..], &back[1].split(' ').collect::<Vec<_>>()]
            .concat();
    assert_eq!(fine(&addr, &words), said);
}

/// Waits for a value.
fn wait_for(mut done: impl FnMut() -> Option<()>) {
    assert!(wait_until(Duration::from_secs(60), || done().is_some()));
}

/// Lines of a process that have been said so far.
fn said_until(watches: &mut Running, wanted: &[&str]) {
    let mut left: Vec<&str> = wanted.to_vec();
    while !left.is_empty() {
        let line = watches.until("s");
        left.retain(|wanted| !line.contains(wanted));
    }
}

#[test]
fn a_topology_is_kept_as_its_files_say_and_only_what_changes_is_deployed() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let write = |name: &str, text: &str| {
        fs::write(folder.path().join(name), text).expect("a file");
        folder.path().join(name)
    };
    let route = fs::read_to_string(repo("examples/pod/route.p4")).expect("the example");
    write("kinds.p4", "const bit<16> IPV4 = 0x0800;\n");
    write("route.p4", &route.replace("const bit<16> IPV4 = 0x0800;", "#include \"kinds.p4\""));
    let entry = |n: u8| format!("routes dst=10.0.{n}.0/24 --action to next_hop=02:00:00:00:00:0{n} port=1\n");
    write("s1.entries", &entry(1));
    write("s2.entries", &entry(2));
    let addrs = [free_addr(), free_addr()];
    let switch_text = |n: usize| {
        let addr = &addrs[n - 1];
        format!(
            "[[switch]]\nname = \"s{n}\"\nprogram = \"route.p4\"\nentries = \"s{n}.entries\"\ngrpc_addr = \"{addr}\"\n"
        )
    };
    let host = |n: u8| {
        format!(
            "[[host]]\nname = \"h{n}\"\nip = \"10.0.{n}.1/24\"\n[[link]]\nends = [\"h{n}\", \"s{n}:1\"]\n"
        )
    };
    let text = format!(
        "name = \"pair\"\n{}{}{}{}[[link]]\nends = [\"s1:2\", \"s2:2\"]\n",
        switch_text(1),
        switch_text(2),
        host(1),
        host(2)
    );
    let topology = write("pair.toml", &text);
    let (_first, mut second) = (switch(&addrs[0], &[]), switch(&addrs[1], &[]));
    let entries = |n: usize| fine(&addrs[n - 1], &["table", "read", "routes"]);
    let holds = |n: usize, wanted: &str| {
        wait_for(|| {
            // A switch that has just restarted has no program yet.
            let read = run(&addrs[n - 1], &["table", "read", "routes"]);
            stdout(&read).contains(wanted).then_some(())
        })
    };
    let mut command = p4rack();
    command.args(["deploy", "--watch", "--every", "0.1"]).arg(&topology);
    let mut watches = Running::start(&mut command);
    said_until(&mut watches, &["s1: the switch holds the 1 entries", "s2: the switch holds the 1 entries"]);
    // The entries of one switch.
    let install_before = fine(&addrs[1], &["table", "list"]);
    write("s1.entries", &format!("{}{}", entry(1), entry(7)));
    said_until(&mut watches, &["s1: wrote 1 changes"]);
    holds(1, "10.0.7.0/24");
    assert_eq!(fine(&addrs[1], &["table", "list"]), install_before);
    assert!(!entries(2).contains("10.0.7.0/24"));
    // A mistake changes nothing; its correction goes to the switch that it concerns.
    write("s2.entries", "routes dst=nonsense --action drop\n");
    write("s1.entries", &entry(1));
    std::thread::sleep(Duration::from_millis(300));
    assert!(entries(1).contains("10.0.7.0/24"));
    write("s2.entries", &entry(8));
    holds(2, "10.0.8.0/24");
    wait_for(|| (!entries(1).contains("10.0.7.0/24")).then_some(()));
    // A switch that restarts.
    second.kill();
    let _second = switch(&addrs[1], &[]);
    holds(2, "10.0.8.0/24");
    // An included file concerns both.
    write("kinds.p4", "const bit<16> IPV4 = 0x0801;\n");
    said_until(&mut watches, &["s1: installed the program", "s2: installed the program"]);
    holds(1, "10.0.1.0/24");
    holds(2, "10.0.8.0/24");
    // What is not described any more is left as it is.
    let one = format!("name = \"pair\"\n{}{}", switch_text(1), host(1));
    fs::write(&topology, one).expect("a file");
    write("s1.entries", &entry(9));
    holds(1, "10.0.9.0/24");
    wait_for(|| {
        run(&addrs[1], &["table", "delete", "routes", "dst=10.0.8.0/24"]);
        std::thread::sleep(Duration::from_millis(500));
        (!entries(2).contains("10.0.8.0/24")).then_some(())
    });
    assert!(watches.0.try_wait().expect("it is known").is_none(), "it goes on");
}

#[test]
fn options_of_racks_and_mistakes_end_the_watch_before_it_begins() {
    let pod = repo("examples/pod/pod.toml").display().to_string();
    let refused = |words: &[&str]| {
        let output = p4rack().args(["deploy", "--watch"]).args(words).output().expect("p4rack starts");
        assert_eq!(output.status.code(), Some(1));
        stderr(&output)
    };
    assert!(refused(&[&pod, "--to", "bmv2"]).contains("--to is for racks"));
    assert!(refused(&[&pod, "--etcd", "127.0.0.1:1"]).contains("--etcd is for racks"));
}
