//! A board of Clio as a process of its own, and commands with it.

use super::switch::Running;
use super::{p4rack, repo, stderr, stdout};
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output};

/// A board, and where its clients join.
pub struct Board {
    pub running: Running,
    pub addr: String,
}

impl Board {
    /// Starts one with these options at free ports, and waits until it is ready.
    pub fn start(options: &[&str]) -> Board {
        let mut command = p4rack();
        command.args([
            "clio",
            "serve",
            "--json",
            "--grpc-server-addr",
            "127.0.0.1:0",
            "--udp-addr",
            "127.0.0.1:0",
        ]);
        let mut running = Running::start(command.args(options));
        let ready: Value = serde_json::from_str(&running.until("ready")).expect("an event");
        Board { running, addr: ready["listens"].as_str().expect("an address").to_owned() }
    }

    /// Runs a command of `p4rack clio` with it.
    pub fn run(&self, words: &[&str]) -> Output {
        p4rack().arg("clio").args(words).args(["--board", &self.addr]).output().expect("it starts")
    }

    /// Runs a command that succeeds; returns its output.
    pub fn fine(&self, words: &[&str]) -> String {
        let output = self.run(words);
        assert!(output.status.success(), "{words:?}: {}", stderr(&output));
        stdout(&output)
    }

    /// Runs a command that succeeds; the JSON that it prints.
    pub fn json(&self, words: &[&str]) -> Value {
        serde_json::from_str(&self.fine(&[words, &["--json"]].concat())).expect("JSON")
    }

    /// Runs a command that is refused; returns its error.
    pub fn refused(&self, words: &[&str]) -> String {
        let output = self.run(words);
        assert!(!output.status.success(), "{words:?}: {}", stdout(&output));
        stderr(&output)
    }
}

/// Compiles a program in C: its folder, the program, and the folder of the library.
pub fn compiled(source: &str) -> (tempfile::TempDir, PathBuf, PathBuf) {
    let folder = tempfile::tempdir().expect("it works");
    let program = folder.path().join("program");
    // The test's own folder has the library that was built with it.
    let libraries = std::env::current_exe().expect("it works").parent().expect("it works").to_owned();
    let compiled = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-pthread"])
        .arg(repo(source))
        .arg("-I")
        .arg(repo("include"))
        .arg("-L")
        .arg(&libraries)
        .args(["-lp4rack_memory", "-o"])
        .arg(&program)
        .output()
        .expect("it works");
    assert!(compiled.status.success(), "{}", stderr(&compiled));
    (folder, program, libraries)
}
