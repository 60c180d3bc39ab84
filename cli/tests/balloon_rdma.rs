//! A balloon over an RDMA pool, as processes of their own: a pool in one namespace, the service and compute nodes in another one.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

mod common;

use common::balloon::{Pool, end, key, start};
use common::switch::Running;
use common::{can_make_namespaces, p4rack, stderr, stdout, wait_until};
use p4rack_netdev::link::VethEnd;
use p4rack_netdev::{Links, NetNs};
use p4rack_wire::MacAddr;
use serde_json::json;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);
/// The pool's set-up service.
const SETUP: &str = "192.168.9.2:9561";
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

/// Namespaces of h1 and h2, with a link for frames, and one for set-ups.
fn namespaces() -> [NetNs; 2] {
    let all = [1, 2].map(|_| NetNs::create().unwrap());
    let end = |name, nth: usize| {
        let mac = (name == "roce0").then_some(MacAddr([2, 0, 0, 0, 0, nth as u8 + 1]));
        VethEnd { name, ns: &all[nth], mac }
    };
    for name in ["roce0", "setup0"] {
        Links::add_veth(end(name, 0), end(name, 1)).unwrap();
    }
    for (ns, host) in all.iter().zip(1..) {
        let mut links = Links::open_in(ns).unwrap();
        links.add_address("setup0", Ipv4Addr::new(192, 168, 9, host), 24).unwrap();
        links.set_up("setup0").unwrap();
    }
    all
}

/// Uses an extent whose event is in a file, as h1.
fn memory(rack: &Path, what: &str, extent: &Path, options: &[&str]) -> Output {
    let mut command = p4rack();
    command.args(["memory", what]).arg(rack).args(["--name", "h1", "--at", "h2", "--interface", "roce0"]);
    command.arg("--extent").arg(extent).args(options).output().unwrap()
}

#[test]
fn the_next_holder_gets_zeros_and_the_former_one_nothing() {
    if !can_make_namespaces() {
        return;
    }
    let [h1, h2] = namespaces();
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let (_key_folder, key) = key();
    let rack = file("rack.toml");
    std::fs::write(&rack, RACK).unwrap();
    let mut serve = p4rack();
    serve.args(["memory", "serve"]).arg(&rack).args([
        "--name",
        "h2",
        "--way",
        "rdma",
        "--interface",
        "roce0",
    ]);
    serve.args(["--bytes", "4 MiB", "--lend", &key, "--bind", "192.168.9.2", "--insecure"]);
    h2.command(&mut serve, true).unwrap();
    let mut pool = Running::start(&mut serve);
    pool.until("ready");
    h1.run(|| used(&rack, &key, &file)).unwrap();
}

/// What compute nodes do, in the namespace of h1.
fn used(rack: &Path, key: &str, file: &(dyn Fn(&str) -> PathBuf + Sync)) {
    // Long enough for a busy machine to renew.
    let serve = ["balloon", "serve", "--lease", "20", "--key", key, "--node", SETUP];
    let (_service, addr) = start(&serve);
    let balloon = Pool(addr);
    assert!(wait_until(LIMIT, || balloon.free_bytes() == Some(4 << 20)));
    let hold = |holder: &str| {
        let (running, reserved) = balloon.hold(holder, "2 MiB");
        let path = file(holder);
        std::fs::write(&path, reserved.to_string()).unwrap();
        (running, reserved, path)
    };
    let fine = |output: Output| {
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output)
    };
    let (mut dead, first, of_dead) = hold("1");
    assert_eq!((&first["way"], &first["board"], &first["start"]), (&"rdma".into(), &SETUP.into(), &0.into()));
    assert!(first["key"].is_u64() && first["address"].is_u64(), "{first}");
    let write = ["--address", "0x1ffff0", "--text", "of the first"];
    fine(memory(rack, "write", &of_dead, &write));
    let read = ["--address", "0x1ffff0", "--bytes", "12", "--output", "-"];
    assert_eq!(fine(memory(rack, "read", &of_dead, &read)), "of the first");
    let beyond = memory(rack, "read", &of_dead, &["--address", "0x200000", "--bytes", "1"]);
    assert!(stderr(&beyond).contains("out of bounds"), "{}", stderr(&beyond));
    // Killed, it loses the extent with its lease.
    dead.kill();
    assert!(wait_until(LIMIT, || balloon.free_bytes() == Some(4 << 20)));
    let late = stderr(&memory(rack, "read", &of_dead, &read));
    assert!(late.contains("no reservation has this token"), "{late}");
    let (living, second, of_living) = hold("2");
    assert_eq!(second["start"], 0, "it is the same place");
    assert_ne!((&second["key"], &second["access"]), (&first["key"], &first["access"]));
    assert_eq!(fine(memory(rack, "read", &of_living, &read)), "\0".repeat(12));
    let late = stderr(&memory(rack, "write", &of_dead, &write));
    assert!(late.contains("no reservation has this token"), "{late}");
    assert_eq!(fine(memory(rack, "read", &of_living, &read)), "\0".repeat(12));
    // The token of the second with the key of the first: both are fields of the rights, the token the first one.
    let rights = [&first, &second].map(|of| of["access"].as_str().unwrap());
    let token = "12000a10".len().."12000a10".len() + 32;
    let mixed = [&rights[0][..token.start], &rights[1][token.clone()], &rights[0][token.end..]].concat();
    let path = file("mixed");
    let mixed = json!({ "board": SETUP, "bytes": 2 << 20, "access": mixed });
    std::fs::write(&path, mixed.to_string()).unwrap();
    let refused = stderr(&memory(rack, "read", &path, &read));
    assert!(refused.contains("no region"), "{refused}");
    end(living);
    assert!(wait_until(LIMIT, || balloon.free_bytes() == Some(4 << 20)));
}

/// The extent itself says how it is reached.
#[test]
fn options_that_an_extent_would_ignore_are_refused() {
    for (option, value) in [("--way", "rdma"), ("--key", "2"), ("--engine", "a:1"), ("--reserve", "2 MiB")] {
        let output = memory(Path::new("rack.toml"), "read", Path::new("extent.json"), &[option, value]);
        let said = stderr(&output);
        assert!(said.contains("cannot be used with") && said.contains(option), "{said}");
    }
}

#[test]
fn what_does_not_lend_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let rack = folder.path().join("rack.toml");
    std::fs::write(&rack, RACK).unwrap();
    let said = |words: &[&str]| {
        let mut command = p4rack();
        let output = command.args(["memory", "serve"]).arg(&rack).args(["--name", "h2"]).args(words).output();
        let output = output.unwrap();
        assert!(!output.status.success());
        stderr(&output)
    };
    let tcp = said(&["--way", "tcp", "--bytes", "4 MiB", "--lend", "pool.key"]);
    assert!(tcp.contains("--lend: boards of Clio and RDMA pools lend, and this is --way tcp"), "{tcp}");
    let roce = p4rack()
        .args(["roce", "serve", "--interface", "x", "--ip", "10.0.0.1", "--lend", "pool.key"])
        .output();
    assert!(stderr(&roce.unwrap()).contains("--reserve"));
}
