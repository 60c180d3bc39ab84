//! Shared parts of the system tests: the binary, the examples, a kept rack that is always taken down.
#![allow(dead_code)]

pub mod balloon;
pub mod clio;
pub mod compat;
pub mod cowbird;
pub mod install;
pub mod switch;

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Racks run one at a time: two on the same cores would disturb each other's schedule.
pub fn one_at_a_time() -> std::sync::MutexGuard<'static, ()> {
    static RUNNING: std::sync::Mutex<()> = std::sync::Mutex::new(());
    RUNNING.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The binary under test.
pub fn p4rack() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_p4rack"));
    command.stdin(Stdio::null());
    command
}

/// A file of the repository.
pub fn repo(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a workspace around the crate").join(path)
}

/// Says that a test cannot run here. Written past the test harness's capture, so that it is counted, and in
/// one write, so that other tests' lines don't fall into it.
pub fn skip(needs: &str, get_it_by: &str) {
    let said = format!("skipped: needs {needs}, get it by: {get_it_by}\n");
    let _ = std::io::stderr().write_all(said.as_bytes());
}

/// Whether network namespaces can be made here; says so when not.
pub fn can_make_namespaces() -> bool {
    let ok = Command::new("unshare").args(["--net", "true"]).status().is_ok_and(|s| s.success())
        || Command::new("unshare").args(["-Urn", "true"]).status().is_ok_and(|s| s.success());
    if !ok {
        skip("root or user namespaces", "running the tests as root");
    }
    ok
}

/// Whether a program is installed; says so when not.
pub fn have(program: &str, package: &str) -> bool {
    let found = std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(program).is_file()));
    if !found {
        skip(program, &format!("sudo apt-get install {package}"));
    }
    found
}

/// Standard error as text, for messages of failed assertions.
pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Standard output as text.
pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Waits until `done` holds, at most `limit`.
pub fn wait_until(limit: Duration, mut done: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while start.elapsed() < limit {
        if done() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    done()
}

/// A rack that `up --keep` left running; taken down when dropped. Each has its own runtime folder,
/// so tests running side by side do not see one another.
pub struct KeptRack {
    runtime: tempfile::TempDir,
    _alone: std::sync::MutexGuard<'static, ()>,
}

impl KeptRack {
    /// Brings the rack of `description` up under `scheme`, without running its workload.
    pub fn up(description: &Path, scheme: &str) -> KeptRack {
        KeptRack::up_with(description, scheme, &[])
    }

    /// The same with more options of `up`.
    pub fn up_with(description: &Path, scheme: &str, options: &[&OsStr]) -> KeptRack {
        let rack =
            KeptRack { _alone: one_at_a_time(), runtime: tempfile::tempdir().expect("a scratch folder") };
        let output = rack
            .command()
            .args(["up", "--keep", "--scheme", scheme])
            .args(options)
            .arg(description)
            .output()
            .expect("p4rack starts");
        assert!(output.status.success(), "up --keep: {}", stderr(&output));
        rack
    }

    /// `p4rack` that sees this rack.
    pub fn command(&self) -> Command {
        let mut command = p4rack();
        command.env("XDG_RUNTIME_DIR", self.runtime.path());
        command
    }

    /// `p4rack exec HOST -- words…`, not started yet.
    pub fn exec(&self, host: &str, words: &[&str]) -> Command {
        let mut command = self.command();
        command.args(["exec", host, "--"]).args(words);
        command
    }
}

impl Drop for KeptRack {
    fn drop(&mut self) {
        let _ = self.command().arg("down").stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
}
