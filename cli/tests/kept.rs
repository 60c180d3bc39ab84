//! Racks that `up --keep` leaves running: one per name, all of them found, no other process
//! touched.

mod common;

use common::{can_make_namespaces, one_at_a_time, p4rack, repo, stderr, stdout, wait_until};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(30);

/// A runtime folder of its own; all its racks go with it.
struct Kept(tempfile::TempDir);

impl Kept {
    fn new() -> Kept {
        Kept(tempfile::tempdir().expect("a scratch folder"))
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = p4rack();
        command.args(words).env("XDG_RUNTIME_DIR", self.0.path());
        command
    }

    fn runtime(&self) -> std::path::PathBuf {
        self.0.path().join("p4rack")
    }

    /// Processes of this folder's supervisors.
    fn supervisors(&self) -> Vec<u32> {
        let folder = self.runtime().display().to_string();
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").expect("/proc").flatten() {
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).into_owned();
            if line.contains("\0supervise\0") && line.contains(&folder) {
                found.extend(entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()));
            }
        }
        found
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = self.command(&["down", "--all"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
}

fn rack() -> String {
    repo("examples/two-hosts.toml").display().to_string()
}

#[test]
fn of_two_that_start_together_one_runs_and_is_reached() {
    if !can_make_namespaces() {
        return;
    }
    let _alone = one_at_a_time();
    let kept = Kept::new();
    let start = || {
        let mut command = kept.command(&["up", "--keep", &rack()]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("p4rack starts")
    };
    let both = [start(), start()].map(|child| child.wait_with_output().expect("ours"));
    let codes = both.each_ref().map(|output| output.status.code());
    let said = both.each_ref().map(stderr);
    assert!(codes.contains(&Some(0)) && codes.contains(&Some(1)), "{codes:?} {said:?}");
    assert!(said.iter().any(|said| said.contains("is already running")), "{said:?}");
    assert_eq!(kept.supervisors().len(), 1);
    let inside = kept.command(&["exec", "switch", "--", "true"]).output().expect("p4rack starts");
    assert!(inside.status.success(), "{}", stderr(&inside));

    // Its processes have telling names.
    let supervisor = kept.supervisors()[0];
    let name =
        |pid: u32| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim().to_owned();
    assert_eq!(name(supervisor), "p4rack rack");
    let children =
        fs::read_to_string(format!("/proc/{supervisor}/task/{supervisor}/children")).expect("children");
    let mut names: Vec<String> =
        children.split_whitespace().filter_map(|pid| pid.parse().ok()).map(name).collect();
    names.sort();
    assert_eq!(names, ["p4rack h1", "p4rack h2", "p4rack switch"]);

    // A command that needs the switch says how to reach it.
    let outside =
        kept.command(&["top", "--once", "--grpc-addr", "127.0.0.1:1"]).output().expect("p4rack starts");
    let said = stderr(&outside);
    assert!(said.contains("p4rack exec switch -- p4rack top --once"), "{said}");

    let down = kept.command(&["down"]).output().expect("p4rack starts");
    assert!(down.status.success(), "{}", stderr(&down));
    assert!(wait_until(LIMIT, || kept.supervisors().is_empty()));
    let left: Vec<_> =
        fs::read_dir(kept.runtime()).expect("the folder").flatten().map(|e| e.file_name()).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn what_runs_on_a_racks_hosts_ends_with_it_and_nothing_else() {
    if !can_make_namespaces() {
        return;
    }
    let _alone = one_at_a_time();
    let kept = Kept::new();
    let up = kept.command(&["up", "--keep", &rack()]).output().expect("p4rack starts");
    assert!(up.status.success(), "{}", stderr(&up));
    let ready = kept.0.path().join("ready");
    // One ends when it is asked to, the other when it has to.
    let stubborn = format!("trap '' TERM; touch {}; while :; do sleep 0.1; done", ready.display());
    let mut residents = [&["sleep", "1000"][..], &["sh", "-c", &stubborn]].map(|words| {
        let words: Vec<&str> = ["exec", "h1", "--"].iter().chain(words).copied().collect();
        kept.command(&words).spawn().expect("p4rack starts")
    });
    let mut outside = Command::new("sleep").arg("1000").spawn().expect("sleep starts");
    assert!(wait_until(LIMIT, || ready.exists()));
    let inside = fs::read_link(format!("/proc/{}/ns/net", residents[0].id())).expect("it runs");
    assert_ne!(inside, fs::read_link("/proc/self/ns/net").expect("this runs"));
    let down = kept.command(&["down"]).output().expect("p4rack starts");
    let ended = residents.each_mut().map(|child| child.try_wait().expect("ours").is_some());
    let lives = outside.try_wait().expect("ours").is_none();
    for child in residents.iter_mut().chain([&mut outside]) {
        let _ = child.kill();
        let _ = child.wait();
    }
    assert!(down.status.success(), "{}", stderr(&down));
    assert!(ended == [true, true] && lives, "{ended:?} {lives}");
}

#[test]
fn a_rack_whose_file_is_gone_is_ended_by_down_all() {
    if !can_make_namespaces() {
        return;
    }
    let _alone = one_at_a_time();
    let kept = Kept::new();
    let up = kept.command(&["up", "--keep", &rack()]).output().expect("p4rack starts");
    assert!(up.status.success(), "{}", stderr(&up));
    for entry in fs::read_dir(kept.runtime()).expect("the folder").flatten() {
        fs::remove_file(entry.path()).expect("removed");
    }
    assert_eq!(kept.command(&["down"]).output().expect("p4rack starts").status.code(), Some(1));
    let down = kept.command(&["down", "--all"]).output().expect("p4rack starts");
    assert!(
        down.status.success() && stdout(&down).contains("without a file"),
        "{}{}",
        stdout(&down),
        stderr(&down)
    );
    assert!(kept.supervisors().is_empty());
    let again = kept.command(&["down", "--all"]).output().expect("p4rack starts");
    assert_eq!((again.status.code(), stdout(&again).as_str()), (Some(0), "no rack is running\n"));
}

/// A state file whose process id now belongs to another process: no process gets a signal.
#[test]
fn down_leaves_alone_whoever_has_a_dead_racks_number() {
    let kept = Kept::new();
    let mut bystander = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("cat");
    let pid = bystander.id();
    let process = serde_json::json!({ "pid": pid, "start": 1 });
    let file = serde_json::json!({
        "name": "old", "scheme": "l2", "supervisor": process, "switch": process, "grpc_addr": "127.0.0.1:1", "hosts": [],
    });
    fs::create_dir(kept.runtime()).expect("made");
    let path = kept.runtime().join("old.json");
    for words in [&["down", "old"][..], &["down", "--all"]] {
        fs::write(&path, file.to_string()).expect("written");
        let output = kept.command(words).output().expect("p4rack starts");
        std::thread::sleep(Duration::from_millis(50));
        assert!(bystander.try_wait().expect("ours").is_none(), "{words:?}: {}", stderr(&output));
        assert!(!Path::new(&path).exists(), "{words:?}");
    }
    drop(bystander.stdin.take());
    assert!(bystander.wait().expect("ours").success());
}

/// The folder of the racks' files is believed only if it is this user's.
#[test]
fn a_folder_of_others_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let kept = Kept::new();
    fs::create_dir(kept.runtime()).expect("made");
    fs::set_permissions(kept.runtime(), fs::Permissions::from_mode(0o777)).expect("opened to all");
    for words in [&["down"][..], &["down", "--all"], &["exec", "h1", "--", "true"]] {
        let output = kept.command(words).output().expect("p4rack starts");
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        assert!(stderr(&output).contains("belongs to you"), "{words:?}: {}", stderr(&output));
    }
    fs::set_permissions(kept.runtime(), fs::Permissions::from_mode(0o700)).expect("closed");
}
