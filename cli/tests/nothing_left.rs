//! However `up` ends, no namespace, interface or process stays behind.

mod common;
use common::{can_make_namespaces, one_at_a_time, p4rack, repo, wait_until};
use std::collections::BTreeSet;
use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Processes whose command line names this test's copy of the description, by pid.
fn processes(mark: &str) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir("/proc").expect("/proc").flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let command = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if String::from_utf8_lossy(&command).contains(mark) {
            found.insert(pid);
        }
    }
    found
}

/// Network namespaces in use by any process we can see.
fn namespaces() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir("/proc").expect("/proc").flatten() {
        if let Ok(link) = fs::read_link(entry.path().join("ns/net")) {
            found.insert(link.to_string_lossy().into_owned());
        }
    }
    found
}

struct Run {
    child: Child,
    mark: String,
    _folder: tempfile::TempDir,
    inside: BTreeSet<String>,
}

/// Starts `up` and waits until its hosts run.
fn start() -> Run {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let path = folder.path().join("rack.toml");
    fs::copy(repo("examples/pl2-incast.toml"), &path).expect("the example is there");
    let mark = path.to_string_lossy().into_owned();
    let child = p4rack()
        .args(["up", "--scheme", "pl2-clock"])
        .arg(&path)
        .env("XDG_RUNTIME_DIR", folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("p4rack starts");
    // A process shows its command line a moment before it enters its namespace: wait for both.
    let ready = wait_until(Duration::from_secs(30), || {
        processes(&mark).len() >= 7 && namespaces_of(&mark).len() >= 6
    });
    let inside = namespaces_of(&mark);
    assert!(
        ready,
        "the hosts did not come up, each in a namespace of its own: {:?}, {inside:?}",
        processes(&mark)
    );
    Run { child, mark, _folder: folder, inside }
}

/// The network namespaces, other than the test's own, that the run's processes are in.
fn namespaces_of(mark: &str) -> BTreeSet<String> {
    processes(mark)
        .iter()
        .filter_map(|pid| fs::read_link(format!("/proc/{pid}/ns/net")).ok())
        .map(|link| link.to_string_lossy().into_owned())
        .filter(|link| Some(link.as_str()) != own_namespace().as_deref())
        .collect()
}

fn own_namespace() -> Option<String> {
    fs::read_link("/proc/self/ns/net").ok().map(|link| link.to_string_lossy().into_owned())
}

/// Ends the run with `signal`, expects everything to go with it.
fn ends_with(signal: &str) {
    if !can_make_namespaces() {
        return;
    }
    let _alone = one_at_a_time();
    let mut run = start();
    let pid = run.child.id().to_string();
    assert!(Command::new("kill").args([signal, &pid]).status().expect("kill").success());
    let status = run.child.wait().expect("the child is ours");
    assert!(!status.success());
    let gone = wait_until(Duration::from_secs(10), || {
        processes(&run.mark).is_empty() && namespaces().is_disjoint(&run.inside)
    });
    assert!(gone, "left: {:?} in {:?}", processes(&run.mark), run.inside);
}

#[test]
fn killed_up_leaves_nothing() {
    ends_with("-KILL");
}

#[test]
fn interrupted_up_leaves_nothing() {
    ends_with("-INT");
}
