//! The balloon's processes: memory nodes, the service, and compute nodes that hold extents.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use super::switch::Running;
use super::{p4rack, stderr, stdout};
use serde_json::Value;
use std::process::{Command, Output};

/// A key file, which goes with its folder.
pub fn key() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool.key");
    std::fs::write(&path, [7; 32]).unwrap();
    let path = path.to_str().unwrap().to_owned();
    (folder, path)
}

/// Starts a server; the address at which it listens.
pub fn start(words: &[&str]) -> (Running, String) {
    let mut command = p4rack();
    let mut running =
        Running::start(command.args(words).args(["--json", "--grpc-server-addr", "127.0.0.1:0"]));
    let ready: Value = serde_json::from_str(&running.until("ready")).unwrap();
    (running, ready["listens"].as_str().unwrap().to_owned())
}

/// A board of Clio that lends, and its set-up service.
pub fn board(bytes: &str, key: &str) -> (Running, String) {
    start(&["clio", "serve", "--lend", key, "--store", "0", "--udp-addr", "127.0.0.1:0", "--bytes", bytes])
}

/// Ends a process with SIGTERM, and waits for it.
pub fn end(mut running: Running) {
    let pid = running.0.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert!(running.0.wait().unwrap().success());
}

/// A balloon's service, by its address.
pub struct Pool(pub String);

impl Pool {
    fn command(&self, words: &[&str]) -> Command {
        let mut command = p4rack();
        command.arg("balloon").args(words).args(["--balloon", &self.0]);
        command
    }

    /// Runs a command.
    pub fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    /// A command's JSON output.
    pub fn json(&self, word: &str) -> Value {
        let output = self.run(&[word, "--json"]);
        assert!(output.status.success(), "{}", stderr(&output));
        serde_json::from_str(&stdout(&output)).unwrap()
    }

    /// Free bytes of all memory nodes; `None`: one of them has not joined.
    pub fn free_bytes(&self) -> Option<u64> {
        let pool = self.json("show");
        pool["nodes"].as_array().unwrap().iter().map(|node| node["free_bytes"].as_u64()).sum()
    }

    /// A compute node that holds an extent.
    pub fn hold(&self, holder: &str, size: &str) -> (Running, Value) {
        self.hold_with(holder, size, &[])
    }

    /// The same with more options.
    pub fn hold_with(&self, holder: &str, size: &str, options: &[&str]) -> (Running, Value) {
        let words = [&["reserve", size, "--json", "--holder", holder], options].concat();
        let mut running = Running::start(&mut self.command(&words));
        let reserved = serde_json::from_str(&running.until("reserved")).unwrap();
        (running, reserved)
    }
}
