//! Digests over BFRuntime.

mod common;

use common::switch::{Running, free_addr, run, switch_with};
use common::{p4rack, repo, stderr, stdout, wait_until};
use std::time::Duration;

/// How long the switch and its commands may take.
const LIMIT: Duration = Duration::from_secs(30);

/// The program sends a digest of each frame's source address and port. The controller's frames come
/// by its own port.
#[test]
fn digests_are_listed_and_watched() {
    let (addr, p4runtime) = (free_addr(), free_addr());
    let program = repo("switchd/tests/bfruntime/rig.p4").display().to_string();
    let _switch = switch_with(&program, &p4runtime, &["--bfrt-addr", &addr, "--cpu-port", "64"]);
    let over_bfrt = |words: &[&str]| {
        let mut command = p4rack();
        command.args(words).args(["--bfrt-addr", &addr]);
        command
    };
    let done = |words: &[&str]| over_bfrt(words).output().expect("p4rack starts");
    assert!(stdout(&done(&["digest", "list"])).contains("D.learn"));
    let configured = stderr(&done(&["digest", "watch", "learn", "--max-list-size", "3"]));
    assert!(configured.contains("leave --max-timeout-ms, --max-list-size"), "{configured}");

    let mut watcher = Running::start(&mut over_bfrt(&["digest", "watch", "learn", "--count", "2", "--json"]));
    let ended = || {
        // It may not be bound yet when the first frame comes.
        let frame = ["packet", "send", "ff:ff:ff:ff:ff:ff 02:00:00:00:00:09 1234"];
        let sent = run(&p4runtime, &frame);
        assert!(sent.status.success(), "{}", stderr(&sent));
        watcher.0.try_wait().is_ok_and(|ended| ended.is_some())
    };
    assert!(wait_until(LIMIT, ended), "two digests end the watcher");
    let said = watcher.until("learn");
    assert!(said.contains(r#""digest":"D.learn""#) && said.contains("{2199023255561, 64}"), "{said}");

    // The switch notices the watcher's end a moment later, and has one bound client.
    let unknown = || stderr(&done(&["digest", "watch", "lern"]));
    assert!(wait_until(LIMIT, || unknown().contains("did you mean")), "{}", unknown());
}
