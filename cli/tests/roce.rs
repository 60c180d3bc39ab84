//! `p4rack roce` as processes of their own: a pool in one namespace, which is used and measured from another.
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

/// Two hosts, with the addresses of the ends of a link.
const RACK: &str = r#"
name = "two"
[switch]
target    = "embedded"
port_rate = "1 Gb/s"
[[host]]
name = "h1"
port = 1
mac  = "02:00:00:00:00:01"
ip   = "10.0.0.1/24"
[[host]]
name = "h2"
port = 2
mac  = "02:00:00:00:00:02"
ip   = "10.0.0.2/24"
"#;

/// A link between both, which has these addresses.
fn link(ends: [&NetNs; 2]) {
    let end = |nth: usize| {
        let mac = MacAddr([2, 0, 0, 0, 0, nth as u8 + 1]);
        VethEnd { name: "roce0", ns: ends[nth], mac: Some(mac) }
    };
    Links::add_veth(end(0), end(1)).unwrap();
}

/// `roce` offers memory, and `memory` uses it.
#[test]
fn memory_of_a_pool_is_read_written_and_modified() {
    if !can_make_namespaces() {
        return;
    }
    let (a, b) = (NetNs::create().unwrap(), NetNs::create().unwrap());
    link([&a, &b]);
    Links::add_veth(
        VethEnd { name: "setup0", ns: &a, mac: None },
        VethEnd { name: "setup0", ns: &b, mac: None },
    )
    .unwrap();
    for (ns, host) in [(&a, 1), (&b, 2)] {
        let mut links = Links::open_in(ns).unwrap();
        links.add_address("setup0", Ipv4Addr::new(192, 168, 9, host), 24).unwrap();
        links.set_up("setup0").unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let rack = folder.path().join("rack.toml");
    std::fs::write(&rack, RACK).unwrap();
    let in_namespace = |ns: &NetNs, command: &str, words: &[&str]| {
        let mut command_line = p4rack();
        command_line.arg(command).args(words).args(["--interface", "roce0"]);
        ns.command(&mut command_line, true).unwrap();
        command_line
    };
    let serve = ["serve", "--ip", "10.0.0.2", "--memory", "64 KiB", "--grpc-server-addr", SETUP];
    let refused = in_namespace(&b, "roce", &serve).output().unwrap();
    assert!(!refused.status.success() && stderr(&refused).contains("--insecure"), "{}", stderr(&refused));
    let mut pool = Running::start(in_namespace(&b, "roce", &serve).arg("--insecure"));
    pool.until("ready");
    let ask = |words: &[&str]| -> Output {
        let (what, options) = words.split_first().unwrap();
        let there = ["--name", "h1", "--at", "h2", "--way", "rdma", "--memory", SETUP];
        let words = [&[*what, rack.to_str().unwrap()], options, &there].concat();
        in_namespace(&a, "memory", &words).output().unwrap()
    };
    let fine = |line: &str| {
        let output = ask(&words(line));
        assert!(output.status.success(), "{line}: {}", stderr(&output));
        stdout(&output)
    };
    let written = ask(&["write", "--address", "100", "--text", "far memory"]);
    assert_eq!(
        stdout(&written),
        "wrote 10 bytes at 0x64 of h2, and read them back\n",
        "{}",
        stderr(&written)
    );
    let shown = fine("read --address 0x68 --bytes 6");
    assert!(shown.starts_with("00000068  6d 65 6d 6f 72 79") && shown.ends_with("memory\n"), "{shown}");
    assert_eq!(fine("read --address 104 --bytes 0x6 --output -"), "memory");
    assert_eq!(
        json(&fine("read --address 104 --bytes 2 --json")),
        json!({ "address": 104, "bytes": 2, "hex": "6d65" })
    );
    assert_eq!(fine("add --address 8 5"), "0 (0x0) was at 0x8 of h2\n");
    assert_eq!(fine("cas --address 0x8 5 0x7"), "5 (0x5) was at 0x8 of h2\n");
    assert_eq!(json(&fine("cas --address 8 5 9 --json"))["old"], 7);
    let modify = |options: &str| fine(&format!("modify --address 8 --operation {options}"));
    assert_eq!(modify("cas --expected 7 --operand 0x10"), "7 (0x7) was at 0x8 of h2\n");
    assert_eq!(modify("fetch-add --operand 1"), "16 (0x10) was at 0x8 of h2\n");
    assert_eq!(fine("write --address 16 --hex 00ff"), "wrote 2 bytes at 0x10 of h2, and read them back\n");
    for (line, says) in [
        ("read --address 65530 --bytes 16", "reading 16 bytes at 0xfffa of h2: out of bounds"),
        ("add --address 9 1", "no multiple of eight"),
        ("read --address 0xg --bytes 1", "write it in decimal, or as 0x"),
        ("read --bytes 0", "it has no bytes"),
        ("write", "--hex"),
        ("modify --address 8 --operation cas --operand 1", "cas needs it"),
        ("modify --address 8 --operation min --operand 1", "this way has no such operation"),
    ] {
        let output = ask(&words(line));
        assert!(!output.status.success() && stderr(&output).contains(says), "{line}: {}", stderr(&output));
    }
    let other = ["latency", "--ip", "10.0.0.1", "--mtu", "256", "--grpc-addr", SETUP];
    let other = in_namespace(&a, "roce", &other).output().unwrap();
    let said = stderr(&other);
    assert!(!other.status.success() && said.contains("mtu_bytes is 256 there and 1024 here"), "{said}");
    pool.kill();
    let gone = ask(&["read", "--bytes", "1"]);
    assert!(!gone.status.success() && stderr(&gone).contains("can't reach"), "{}", stderr(&gone));
}

/// No set-up service takes part: each end gets the other's values by hand. The pool reports its counters,
/// refusals included.
#[test]
fn values_exchanged_by_hand_connect_too_and_refusals_are_told() {
    if !can_make_namespaces() {
        return;
    }
    let (a, b) = (NetNs::create().unwrap(), NetNs::create().unwrap());
    link([&a, &b]);
    let in_namespace = |ns: &NetNs, words: &[&str]| {
        let mut command = p4rack();
        command.arg("roce").args(words).args(["--interface", "roce0"]);
        ns.command(&mut command, true).unwrap();
        command
    };
    let folder = tempfile::tempdir().unwrap();
    let stats = folder.path().join("stats.json");
    let serve = words(
        "serve --ip 10.0.0.2 --memory 4096B --peer-mac 02:00:00:00:00:01 --peer-ip 10.0.0.1 --peer-qpn 0x11 --peer-psn 5 \
         --qpn 34 --psn 0xffffff --rkey 7 --address 0x1000 --grpc-server-addr 127.0.0.1:0",
    );
    let mut pool = Running::start(in_namespace(&b, &serve).arg("--stats").arg(&stats));
    assert_eq!(
        pool.until("by hand"),
        "by hand: 02:00:00:00:00:02 10.0.0.2 qpn 34 psn 16777215 rkey 7 address 4096"
    );
    pool.until("ready");
    let peer = "--ip 10.0.0.1 --peer-mac 02:00:00:00:00:02 --peer-ip 10.0.0.2 --peer-qpn 34 --peer-psn 0xffffff --qpn 0x11 --psn 5";
    let ask = |line: &str| in_namespace(&a, &words(line)).args(peer.split_whitespace()).output().unwrap();
    // Values by hand that make no sense are refused without a look at the interface.
    for (line, says) in [
        ("latency", "--rkey"),
        ("latency --rkey 7 --address 0x1000 --grpc-addr 127.0.0.1:1", "cannot be used with"),
        ("latency --rkey 7 --address 0x1000 --length 64B --ssl --cacert ca.pem", "--ssl encrypts a set-up"),
        ("latency --rkey 7 --address 0x1000", "--length"),
        ("latency --rkey 7 --address 0x1000 --length 4B", "the memory has 4"),
        ("latency --rkey 0x100000000 --address 0", "is more than 4294967295"),
    ] {
        let refused = ask(line);
        let said = stderr(&refused);
        assert!(!refused.status.success() && said.contains(says), "{line}: {said}");
    }
    let large = peer.replace("--qpn 0x11", "--qpn 0x1000000");
    let large = in_namespace(&a, &["latency"]).args(large.split_whitespace()).output().unwrap();
    assert!(stderr(&large).contains("is not in 0..16777216"), "{}", stderr(&large));
    let half = in_namespace(&a, &words("latency --ip 10.0.0.1 --qpn 4")).output().unwrap();
    assert!(!half.status.success() && stderr(&half).contains("--peer-mac"), "{}", stderr(&half));
    // A key that does not exist: the peer gets an error, and the pool counts it.
    let wrong = ask("latency --length 64B --bytes 8 --seconds 0.05 --rkey 8 --address 0x1000");
    assert!(!wrong.status.success() && stderr(&wrong).contains("were not done"), "{}", stderr(&wrong));
    let told = |pool: &Running, signal: &str| {
        assert!(Command::new("kill").args([signal, &pool.0.id().to_string()]).status().unwrap().success());
    };
    told(&pool, "-USR1");
    let until = Instant::now() + Duration::from_secs(5);
    let report = loop {
        let text = std::fs::read_to_string(&stats).unwrap_or_default();
        if let Ok(report) = serde_json::from_str::<serde_json::Value>(&text) {
            break report;
        }
        assert!(Instant::now() < until, "no statistics on SIGUSR1: {text}");
        std::thread::sleep(Duration::from_millis(20));
    };
    assert_eq!(
        (&report["responder"]["refused_access"], &report["responder"]["writes"]),
        (&1.into(), &0.into()),
        "{report}"
    );
    told(&pool, "-TERM");
    let last = pool.until("adapter");
    assert!(last.contains("refused_access 1") && !last.contains("writes"), "{last}");
    assert!(pool.0.wait().unwrap().success());
    let report: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&stats).unwrap()).unwrap();
    assert_eq!(report["responder"]["refused_access"], 1, "{report}");
    // Measurements stay within `--length`.
    let mut pool = Running::start(in_namespace(&b, &serve).args(["--json", "--stats"]).arg(&stats));
    let by_hand = json(&pool.until("by_hand"));
    assert_eq!((&by_hand["qpn"], &by_hand["address"]), (&34.into(), &4096.into()), "{by_hand}");
    assert_eq!(json(&pool.until("ready"))["interface"], "roce0");
    let measured = ask("latency --length 128B --bytes 64 --seconds 0.05 --rkey 7 --address 0x1f80");
    assert!(measured.status.success(), "{}", stderr(&measured));
    told(&pool, "-TERM");
    let last = json(&pool.until("\"end\""));
    let of = |name: &str| last["responder"][name].as_u64().unwrap();
    assert!(of("refused_access") == 0 && of("reads") > 0 && of("writes") > 0, "{last}");
}

/// Each option of a command is under the heading that it belongs to.
#[test]
fn values_by_hand_have_a_heading_of_their_own() {
    for command in ["serve", "latency"] {
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
