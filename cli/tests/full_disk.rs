//! Disks that fill up while a command writes: it says which option's file lacks something, and fails.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

mod common;

use common::switch::{Running, free_addr, switch};
use common::{can_make_namespaces, one_at_a_time, p4rack, repo, skip, stderr, stdout};
use std::io::Read;
use std::process::{Command, Output, Stdio};

const FULL: &str = "No space left on device";

/// Runs the command line in a folder that has a file system of this size at `small`. `None` where there can be none.
fn on_a_small_disk(bytes: u32, line: &str) -> Option<Output> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("small")).unwrap();
    let script = format!("mount -t tmpfs -o size={bytes} none small || exit 77; \"$P4RACK\" {line}");
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", &script])
        .env("P4RACK", env!("CARGO_BIN_EXE_p4rack"))
        .env("EXAMPLES", repo("examples"))
        .env("STF", repo("tests/stf"))
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .output()
        .expect("unshare starts");
    if output.status.code() == Some(77) || stderr(&output).contains("Operation not permitted") {
        skip("root for a file system of its own", "running the tests as root");
        return None;
    }
    Some(output)
}

fn is_told(output: &Output, option: &str) {
    let said = stderr(output);
    assert!(!output.status.success() && !said.contains("panicked"), "{said}");
    let named =
        |line: &str| line.contains(&format!("{option}: ")) && line.contains('/') && line.contains(FULL);
    assert!(said.lines().any(named), "{said}");
}

#[test]
fn folders_of_results_name_their_option() {
    let kept = "name = \"short\"\nduration_us = 60\nwarmup_us = 10\n[rack]\nhosts = 3\n[scheme]\nkind = \"l2\"\n\
                [[traffic]]\nname = \"incast\"\npattern = \"incast\"\nsenders = [\"h2\"]\nsize = 6000\narrivals = \"saturate\"\n";
    let folder = tempfile::tempdir().unwrap();
    let experiment = folder.path().join("short.toml");
    std::fs::write(&experiment, kept).unwrap();
    let experiment = experiment.display();
    for (line, option) in [
        ("generate \"$EXAMPLES/pl2-incast.toml\" -o small".to_owned(), "--output"),
        (format!("sim run {experiment} --pcap h1 --out-dir small"), "--out-dir"),
    ] {
        let Some(output) = on_a_small_disk(4_096, &line) else { return };
        is_told(&output, option);
    }
}

/// The figures of a run are worth nothing to a reader of its captures if these end early.
#[test]
fn captures_of_a_rack_that_lack_frames_fail_the_run() {
    if !can_make_namespaces() {
        return;
    }
    let _alone = one_at_a_time();
    let up = "up \"$EXAMPLES/edm-kv.toml\" --scheme l2 --duration 0.2 --pcap small --quiet";
    let Some(output) = on_a_small_disk(262_144, up) else { return };
    is_told(&output, "--pcap");
    assert_eq!(stdout(&output), "");
}

#[test]
fn a_kept_rack_whose_captures_lack_frames_says_so_when_it_goes_down() {
    if !can_make_namespaces() {
        return;
    }
    let _alone = one_at_a_time();
    let runtime = tempfile::tempdir().unwrap();
    let own = format!("XDG_RUNTIME_DIR={} \"$P4RACK\"", runtime.path().display());
    let line = format!(
        "--version; {own} up \"$EXAMPLES/two-hosts.toml\" --keep --pcap small --quiet || exit 1; \
         {own} exec h1 -- ping -q -c 100 -i 0.002 -s 1400 10.0.0.2; {own} down"
    );
    let Some(output) = on_a_small_disk(131_072, &line) else { return };
    is_told(&output, "--pcap");
    assert!(stdout(&output).contains("two-hosts is down"), "{}", stdout(&output));
}

#[test]
fn the_last_statistics_of_a_switch_are_written_or_it_fails() {
    let addr = free_addr();
    let mut command = p4rack();
    command.args(["switch", "run", "--no-p4", "--grpc-server-addr", &addr, "--stats", "/dev/full"]);
    let mut switch = Running(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    switch.until("ready");
    let told = Command::new("kill").arg(switch.0.id().to_string()).status().unwrap();
    assert!(told.success());
    let mut said = String::new();
    switch.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(switch.0.wait().unwrap().code(), Some(1), "{said}");
    assert!(said.contains("error: --stats: /dev/full: ") && said.contains(FULL), "{said}");
}

/// A request that can't be logged is not sent.
#[test]
fn a_request_that_cannot_be_logged_is_not_sent() {
    let addr = free_addr();
    let _switch = switch(&addr, &[]);
    let rack = repo("examples/pl2-incast.toml").display().to_string();
    let deploy =
        |more: &[&str]| p4rack().args(["deploy", &rack, "--grpc-addr", &addr]).args(more).output().unwrap();
    let refused = deploy(&["--log-requests", "/dev/full"]);
    let said = stderr(&refused);
    assert!(!refused.status.success() && said.contains(FULL) && said.contains("--log-requests"), "{said}");
    let after = deploy(&["--dry-run"]);
    assert!(stdout(&after).contains("program"), "{}", stdout(&after));
}
