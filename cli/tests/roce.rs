//! `p4rack roce` as processes of their own: a pool in one namespace, operations by hand from another.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

mod common;

use common::switch::Running;
use common::{can_make_namespaces, one_at_a_time, p4rack, stderr, stdout};
use p4rack_netdev::link::VethEnd;
use p4rack_netdev::{Links, NetNs};
use p4rack_wire::MacAddr;
use serde_json::{Value, json};
use std::net::Ipv4Addr;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

const SETUP: &str = "192.168.9.2:9561";

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

#[test]
fn memory_of_a_pool_is_read_written_and_modified_by_hand() {
    if !can_make_namespaces() {
        return;
    }
    let (a, b) = (NetNs::create().unwrap(), NetNs::create().unwrap());
    for name in ["roce0", "setup0"] {
        Links::add_veth(VethEnd { name, ns: &a, mac: None }, VethEnd { name, ns: &b, mac: None }).unwrap();
    }
    for (ns, host) in [(&a, 1), (&b, 2)] {
        let mut links = Links::open_in(ns).unwrap();
        links.add_address("setup0", Ipv4Addr::new(192, 168, 9, host), 24).unwrap();
        links.set_up("setup0").unwrap();
    }
    let in_namespace = |ns: &NetNs, words: &[&str]| {
        let mut command = p4rack();
        command.arg("roce").args(words).args(["--interface", "roce0"]);
        ns.command(&mut command, true).unwrap();
        command
    };
    let serve = ["serve", "--ip", "10.0.0.2", "--memory", "64 KiB", "--grpc-server-addr", SETUP];
    let refused = in_namespace(&b, &serve).output().unwrap();
    assert!(!refused.status.success() && stderr(&refused).contains("--insecure"), "{}", stderr(&refused));
    let mut pool = Running::start(in_namespace(&b, &serve).arg("--insecure"));
    pool.until("ready");
    let ask = |words: &[&str]| -> Output {
        in_namespace(&a, words).args(["--ip", "10.0.0.1", "--grpc-addr", SETUP]).output().unwrap()
    };
    let fine = |words: &[&str]| {
        let output = ask(words);
        assert!(output.status.success(), "{words:?}: {}", stderr(&output));
        stdout(&output)
    };
    assert_eq!(fine(&["write", "100", "far memory"]), "wrote 10 bytes at offset 0x64\n");
    let shown = fine(&["read", "0x68", "6"]);
    assert!(shown.starts_with("00000068  6d 65 6d 6f 72 79") && shown.ends_with("memory\n"), "{shown}");
    assert_eq!(fine(&["read", "104", "0x6", "--output", "-"]), "memory");
    assert_eq!(
        json(&fine(&["read", "104", "2", "--json"])),
        json!({ "offset": 104, "bytes": 2, "hex": "6d65" })
    );
    assert_eq!(fine(&["add", "8", "5"]), "0 (0x0) was at offset 0x8\n");
    assert_eq!(fine(&["cas", "0x8", "5", "0x7"]), "5 (0x5) was at offset 0x8\n");
    assert_eq!(json(&fine(&["cas", "8", "5", "9", "--lose-per-mille", "100", "--json"]))["old"], 7);
    let modify = |options: &str| fine(&[&["modify", "8", "--operation"][..], &words(options)].concat());
    assert_eq!(modify("cas --expected 7 --operand 0x10"), "7 (0x7) was at offset 0x8\n");
    assert_eq!(modify("fetch-add --operand 1"), "16 (0x10) was at offset 0x8\n");
    assert_eq!(fine(&["write", "16", "--hex", "00ff"]), "wrote 2 bytes at offset 0x10\n");
    for (words, says) in [
        (
            vec!["read", "65530", "16"],
            "reading 16 bytes at offset 0xfffa: the peer's memory does not permit it",
        ),
        (vec!["read", "65530", "16"], "; the pool has 65536 bytes, from offset 0 to 0xffff"),
        (vec!["add", "9", "1"], "a word's address must be a multiple of 8"),
        (vec!["read", "0xg", "1"], "write it in decimal, or as 0x"),
        (vec!["read", "0", "0"], "write 1 to"),
        (vec!["write", "0"], "--hex"),
        (vec!["modify", "8", "--operation", "cas", "--operand", "1"], "cas needs it"),
        (vec!["modify", "8", "--operation", "min", "--operand", "1"], "RDMA has cas and fetch-add"),
        (vec!["read", "0", "8", "--mtu", "256"], "mtu_bytes is 256 there and 1024 here"),
    ] {
        let output = ask(&words);
        assert!(!output.status.success() && stderr(&output).contains(says), "{words:?}: {}", stderr(&output));
    }
    pool.kill();
    let gone = ask(&["read", "0", "1"]);
    assert!(!gone.status.success() && stderr(&gone).contains("can't reach"), "{}", stderr(&gone));
}

/// No set-up takes part: each end is told what the other one has. The pool tells what it counted, refusals too.
#[test]
fn values_exchanged_by_hand_connect_too_and_refusals_are_told() {
    if !can_make_namespaces() {
        return;
    }
    let (a, b) = (NetNs::create().unwrap(), NetNs::create().unwrap());
    let macs = [1, 2].map(|host| MacAddr([2, 0, 0, 0, 0, host]));
    let ends = [(&a, macs[0]), (&b, macs[1])];
    let [one, other] = ends.map(|(ns, mac)| VethEnd { name: "roce0", ns, mac: Some(mac) });
    Links::add_veth(one, other).unwrap();
    let in_namespace = |ns: &NetNs, words: &[&str]| {
        let mut command = p4rack();
        command.arg("roce").args(words).args(["--interface", "roce0"]);
        ns.command(&mut command, true).unwrap();
        command
    };
    let folder = tempfile::tempdir().unwrap();
    let stats = folder.path().join("stats.json");
    let words = "serve --ip 10.0.0.2 --memory 4096B --peer-mac 02:00:00:00:00:01 --peer-ip 10.0.0.1 --peer-qpn 0x11 --peer-psn 5 \
                 --qpn 34 --psn 0xffffff --rkey 7 --address 0x1000 --grpc-server-addr 127.0.0.1:0";
    let words: Vec<&str> = words.split_whitespace().collect();
    let mut pool = Running::start(in_namespace(&b, &words).arg("--stats").arg(&stats));
    assert_eq!(
        pool.until("by hand"),
        "by hand: 02:00:00:00:00:02 10.0.0.2 qpn 34 psn 16777215 rkey 7 address 4096"
    );
    pool.until("ready");
    let peer = "--ip 10.0.0.1 --peer-mac 02:00:00:00:00:02 --peer-ip 10.0.0.2 --peer-qpn 34 --peer-psn 0xffffff --qpn 0x11 --psn 5";
    let ask = |words: &[&str]| in_namespace(&a, words).args(peer.split_whitespace()).output().unwrap();
    // One request for each start of both ends: sequence numbers go on.
    let refused = ask(&["read", "0", "8"]);
    assert!(stderr(&refused).contains("--rkey"), "{}", stderr(&refused));
    let written = ask(&["write", "0", "far memory", "--rkey", "7", "--address", "0x1000"]);
    assert!(written.status.success(), "{}", stderr(&written));
    // What makes no sense by hand, without a look at the interface.
    let memory = ["--rkey", "7", "--address", "0x1000"];
    for (words, says) in [
        (&["read", "0", "8", "--grpc-addr", "127.0.0.1:1"][..], "cannot be used with"),
        (&["read", "0", "8", "--ssl", "--cacert", "ca.pem"], "--ssl encrypts a set-up"),
        (&["latency"], "--length"),
        (&["latency", "--length", "4B"], "the memory has 4"),
    ] {
        let refused = ask(&[words, &memory].concat());
        assert!(
            !refused.status.success() && stderr(&refused).contains(says),
            "{words:?}: {}",
            stderr(&refused)
        );
    }
    let large = ask(&["read", "0", "8", "--rkey", "0x100000000", "--address", "0"]);
    assert!(stderr(&large).contains("is more than 4294967295"), "{}", stderr(&large));
    let large = peer.replace("--qpn 0x11", "--qpn 0x1000000");
    let large = in_namespace(&a, &["read", "0", "8"]).args(large.split_whitespace()).output().unwrap();
    assert!(stderr(&large).contains("is not in 0..16777216"), "{}", stderr(&large));
    let half = in_namespace(&a, &["read", "0", "1", "--ip", "10.0.0.1", "--qpn", "4"]).output().unwrap();
    assert!(!half.status.success() && stderr(&half).contains("--peer-mac"), "{}", stderr(&half));
    let told = |signal: &str| {
        assert!(Command::new("kill").args([signal, &pool.0.id().to_string()]).status().unwrap().success());
    };
    told("-USR1");
    let until = Instant::now() + Duration::from_secs(5);
    let report = loop {
        let text = std::fs::read_to_string(&stats).unwrap_or_default();
        if let Ok(report) = serde_json::from_str::<serde_json::Value>(&text) {
            break report;
        }
        assert!(Instant::now() < until, "no statistics on SIGUSR1: {text}");
        std::thread::sleep(Duration::from_millis(20));
    };
    assert_eq!(report["responder"]["writes"], 1, "{report}");
    // A key that nobody has: the peer is told, and the pool counts it.
    let next = "--psn 6 --peer-psn 0xffffff --rkey 8 --address 0x1000";
    let peer = peer.replace("--psn 5", "").replace("--peer-psn 0xffffff", "");
    let wrong = in_namespace(&a, &["read", "0", "8"])
        .args(peer.split_whitespace())
        .args(next.split(' '))
        .output()
        .unwrap();
    let text = stderr(&wrong);
    assert!(text.contains("does not permit it") && text.contains("check --rkey, --address"), "{text}");
    told("-TERM");
    let last = pool.until("adapter");
    assert!(last.contains("refused_access 1") && last.contains("writes 1"), "{last}");
    assert!(pool.0.wait().unwrap().success());
    let report: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&stats).unwrap()).unwrap();
    assert_eq!(report["responder"]["refused_access"], 1, "{report}");
    // Measuring stays within the length that it is told.
    let mut pool = Running::start(in_namespace(&b, &words).arg("--stats").arg(&stats));
    pool.until("ready");
    let measure = [
        "latency",
        "--length",
        "128B",
        "--bytes",
        "64",
        "--seconds",
        "0.05",
        "--rkey",
        "7",
        "--address",
        "0x1f80",
    ];
    let measured = in_namespace(&a, &measure)
        .args(peer.split_whitespace())
        .args(["--psn", "5", "--peer-psn", "0xffffff"])
        .output()
        .unwrap();
    assert!(measured.status.success(), "{}", stderr(&measured));
    assert!(Command::new("kill").args(["-TERM", &pool.0.id().to_string()]).status().unwrap().success());
    let last = pool.until("adapter");
    assert!(!last.contains("refused_access") && last.contains("reads"), "{last}");
}

/// Each option of a command stands under the heading that it belongs to.
#[test]
fn values_by_hand_have_a_heading_of_their_own() {
    for command in ["serve", "read", "latency"] {
        let help = p4rack().args(["roce", command, "--help"]).output().unwrap();
        let help = String::from_utf8(help.stdout).unwrap();
        let (before, below) = help.split_once("Values exchanged by hand").unwrap();
        let options: Vec<&str> = below.lines().map(str::trim).filter(|line| line.starts_with('-')).collect();
        assert_eq!(options.len(), 8, "{command}: {options:?}");
        assert!(before.contains("--interface") && !before.contains("--peer-mac"), "{before}");
    }
}

#[test]
fn the_bench_reports_each_kind_of_message() {
    let _alone = one_at_a_time();
    if !can_make_namespaces() {
        return;
    }
    let output = p4rack().args(["roce", "bench", "--seconds", "0.1", "--json"]).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let rates: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
    let kinds: Vec<&str> = rates.iter().map(|rate| rate["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["write", "read", "add"]);
    for rate in &rates {
        assert!(rate["messages"].as_u64().unwrap() > 0 && rate["responder_cpu_ns"].as_f64().unwrap() > 0.0);
    }
}
