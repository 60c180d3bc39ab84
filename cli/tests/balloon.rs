//! `p4rack balloon` as processes of their own: boards, the service, and compute nodes that hold extents.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

mod common;

use common::switch::Running;
use common::{p4rack, stderr, stdout, wait_until};
use serde_json::Value;
use std::process::{Command, Output};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);

/// Starts a server; the address at which it listens.
fn start(words: &[&str]) -> (Running, String) {
    let mut command = p4rack();
    let mut running =
        Running::start(command.args(words).args(["--json", "--grpc-server-addr", "127.0.0.1:0"]));
    let ready: Value = serde_json::from_str(&running.until("ready")).unwrap();
    (running, ready["listens"].as_str().unwrap().to_owned())
}

fn board(bytes: &str) -> (Running, String) {
    start(&["clio", "serve", "--lend", "--store", "0", "--udp-addr", "127.0.0.1:0", "--bytes", bytes])
}

/// Ends a process with SIGTERM, and waits for it.
fn end(mut running: Running) {
    let pid = running.0.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert!(running.0.wait().unwrap().success());
}

struct Pool(String);

impl Pool {
    fn run(&self, words: &[&str]) -> Output {
        p4rack().arg("balloon").args(words).args(["--balloon", &self.0]).output().unwrap()
    }

    fn json(&self, word: &str) -> Value {
        let output = self.run(&[word, "--json"]);
        assert!(output.status.success(), "{}", stderr(&output));
        serde_json::from_str(&stdout(&output)).unwrap()
    }

    fn free_bytes(&self) -> u64 {
        let pool = self.json("show");
        pool["nodes"].as_array().unwrap().iter().map(|node| node["free_bytes"].as_u64().unwrap()).sum()
    }

    /// A compute node that holds an extent.
    fn hold(&self, holder: &str, size: &str) -> (Running, Value) {
        let mut command = p4rack();
        command.args(["balloon", "reserve", size, "--json", "--holder", holder, "--balloon", &self.0]);
        let mut running = Running::start(&mut command);
        let reserved = serde_json::from_str(&running.until("reserved")).unwrap();
        (running, reserved)
    }
}

#[test]
fn extents_are_lent_listed_and_come_back() {
    let (_first, one) = board("4 MiB");
    let (_second, two) = board("8 MiB");
    let words =
        ["balloon", "serve", "--lease", "3", "--quota", "9=2 MiB:4 MiB", "--node", &one, "--node", &two];
    let (service, addr) = start(&words);
    let pool = Pool(addr);
    assert!(wait_until(LIMIT, || pool.free_bytes() == 12 << 20));
    let (kept, first) = pool.hold("1", "4 MiB");
    assert_eq!((&first["node"], &first["start"], &first["bytes"]), (&0.into(), &0.into(), &(4 << 20).into()));
    let (mut killed, second) = pool.hold("2", "2 MiB");
    assert_eq!((&second["node"], &second["board"]), (&1.into(), &two.as_str().into()));
    let extents = pool.json("list")["extents"].clone();
    let states: Vec<_> = extents.as_array().unwrap().iter().map(|of| (&of["state"], &of["holder"])).collect();
    assert_eq!(states, [(&"lent".into(), &1.into()), (&"lent".into(), &2.into())]);
    let shown = stdout(&pool.run(&["show"]));
    assert!(shown.contains(&one) && shown.contains("4 MiB"), "{shown}");
    let shown = stdout(&pool.run(&["list"]));
    assert!(shown.contains("lent") && shown.contains("0x0"), "{shown}");
    // 2 of the 6 MiB that are left are kept for compute node 9.
    let refused = stderr(&pool.run(&["reserve", "8 MiB", "--holder", "3"]));
    assert!(refused.contains("no memory node has a free range"), "{refused}");
    let refused = stderr(&pool.run(&["reserve", "3 MiB", "--holder", "3"]));
    assert!(refused.contains("a power of two"), "{refused}");
    let refused = stderr(&pool.run(&["release", "5"]));
    assert!(refused.contains("no session"), "{refused}");
    killed.kill();
    assert!(wait_until(LIMIT, || pool.free_bytes() == 8 << 20));
    // The service goes, what is lent stays, and the next one learns it.
    let at = pool.0.clone();
    end(service);
    let words = ["balloon", "serve", "--lease", "3", "--json", "--node", &one, "--node", &two];
    let mut command = p4rack();
    let mut next = Running::start(command.args(words).args(["--grpc-server-addr", &at]));
    next.until("ready");
    assert!(wait_until(LIMIT, || pool.json("show")["serving"] == true));
    assert_eq!(pool.json("list")["extents"][0]["holder"], 1);
    end(kept);
    assert!(wait_until(LIMIT, || pool.free_bytes() == 12 << 20));
    let (mut other, _) = pool.hold("4", "2 MiB");
    assert!(stdout(&pool.run(&["release", "4"])).contains("held 1 extents"));
    // It learns that it has lost everything.
    assert_eq!(other.0.wait().unwrap().code(), Some(1));
    assert!(wait_until(LIMIT, || pool.free_bytes() == 12 << 20));
}

#[test]
fn what_is_missing_is_said() {
    let said = stderr(&Pool("127.0.0.1:1".to_owned()).run(&["show"]));
    assert!(said.contains("p4rack balloon serve"), "{said}");
    let output = p4rack().args(["balloon", "serve"]).output().unwrap();
    assert!(!output.status.success() && stderr(&output).contains("--node"), "{}", stderr(&output));
    let words = ["balloon", "serve", "--node", "127.0.0.1:1", "--quota", "1=4 MiB:2 MiB"];
    let said = stderr(&p4rack().args(words).args(["--grpc-server-addr", "127.0.0.1:0"]).output().unwrap());
    assert!(said.contains("raise the limit"), "{said}");
}
