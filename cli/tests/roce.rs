//! `p4rack roce` as processes of their own: a pool in one namespace, operations by hand from another.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

mod common;

use common::switch::Running;
use common::{can_make_namespaces, one_at_a_time, p4rack, stderr, stdout};
use p4rack_netdev::link::VethEnd;
use p4rack_netdev::{Links, NetNs};
use std::net::Ipv4Addr;
use std::process::Output;

const SETUP: &str = "192.168.9.2:9561";

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
    assert_eq!(fine(&["write", "100", "far memory"]), "");
    assert_eq!(fine(&["read", "104", "6"]), "memory");
    assert_eq!(fine(&["add", "8", "5"]), "0\n");
    assert_eq!(fine(&["cas", "8", "5", "7"]), "5\n");
    assert_eq!(fine(&["cas", "8", "5", "9", "--lose-per-mille", "100"]), "7\n");
    for (words, says) in [
        (vec!["read", "65530", "16"], "RemoteAccess; the pool has 65536 bytes"),
        (vec!["add", "9", "1"], "Unaligned"),
        (vec!["read", "0", "8", "--mtu", "256"], "mtu_bytes is 256 there and 1024 here"),
    ] {
        let output = ask(&words);
        assert!(!output.status.success() && stderr(&output).contains(says), "{words:?}: {}", stderr(&output));
    }
    pool.kill();
    let gone = ask(&["read", "0", "1"]);
    assert!(!gone.status.success() && stderr(&gone).contains("can't reach"), "{}", stderr(&gone));
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
