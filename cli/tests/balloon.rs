//! `p4rack balloon` as processes of their own: boards, the service, and compute nodes that hold extents.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

mod common;

use common::balloon::{Pool, board, end, key, start};
use common::switch::Running;
use common::{p4rack, stderr, stdout, wait_until};
use std::io::Read as _;
use std::process::{Command, Stdio};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);

/// Waits for a process to end. Returns its exit code, and its output.
fn until_end(mut running: Running) -> (Option<i32>, String) {
    assert!(wait_until(LIMIT, || running.0.try_wait().unwrap().is_some()), "it does not end");
    let mut said = String::new();
    running.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    (running.0.wait().unwrap().code(), said)
}

#[test]
fn extents_are_lent_listed_and_come_back() {
    let (_folder, key) = key();
    let (_first, one) = board("4 MiB", &key);
    let (_second, two) = board("8 MiB", &key);
    // Long enough for a busy machine to renew, or to start another service.
    let serve = ["balloon", "serve", "--lease", "20", "--key", &key, "--node", &one, "--node", &two];
    let (service, addr) = start(&[&serve[..], &["--quota", "9=4 MiB:4 MiB"]].concat());
    let pool = Pool(addr);
    assert!(wait_until(LIMIT, || pool.free_bytes() == Some(12 << 20)));
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
    assert!(stdout(&pool.run(&["offline", "1"])).contains("memory node 1 lends nothing more"));
    assert_eq!(pool.json("show")["nodes"][1]["leaves"], true);
    assert!(stdout(&pool.run(&["show"])).contains("memory node 1 goes offline"));
    let refused = stderr(&pool.run(&["reserve", "4 MiB", "--holder", "3"]));
    assert!(refused.contains("no memory node has a free range"), "{refused}");
    killed.until("leaves");
    assert!(stdout(&pool.run(&["offline", "1", "--end"])).contains("lends again"));
    let refused = stderr(&pool.run(&["offline", "7"]));
    assert!(refused.contains("memory node 7; the last one is 1"), "{refused}");
    // 4 of the 6 MiB that are left are kept for compute node 9, which may have no more.
    let refused = stderr(&pool.run(&["reserve", "4 MiB", "--holder", "3"]));
    assert!(refused.contains("no memory node has a free range"), "{refused}");
    // A refusal leaves no session behind.
    let refused = stderr(&pool.run(&["release", "3"]));
    assert!(refused.contains("no session"), "{refused}");
    let (nine, kept_for_it) = pool.hold("9", "4 MiB");
    assert_eq!(kept_for_it["node"], 1);
    let refused = stderr(&pool.run(&["reserve", "3 MiB", "--holder", "3"]));
    assert!(refused.contains("a power of two"), "{refused}");
    end(nine);
    killed.kill();
    assert!(wait_until(LIMIT, || pool.free_bytes() == Some(8 << 20)));
    // The service ends, extents stay lent, and the next service learns of them.
    let at = pool.0.clone();
    end(service);
    let mut command = p4rack();
    let mut next = Running::start(command.args(serve).args(["--json", "--grpc-server-addr", &at]));
    next.until("ready");
    assert!(wait_until(LIMIT, || pool.json("show")["serving"] == true));
    assert_eq!(pool.json("list")["extents"][0]["holder"], 1);
    end(kept);
    assert!(wait_until(LIMIT, || pool.free_bytes() == Some(12 << 20)));
    let (mut other, _) = pool.hold("4", "2 MiB");
    assert!(stdout(&pool.run(&["release", "4"])).contains("held 1 extents"));
    // It learns that it has lost everything.
    assert!(wait_until(LIMIT, || other.0.try_wait().unwrap().is_some()));
    assert_eq!(other.0.wait().unwrap().code(), Some(1));
    assert!(wait_until(LIMIT, || pool.free_bytes() == Some(12 << 20)));
}

#[test]
fn a_service_that_is_superseded_or_has_a_board_twice_ends() {
    let (_folder, key) = key();
    let (_board, addr) = board("4 MiB", &key);
    let serve = |nodes: &[&str]| {
        let mut command = p4rack();
        command.args(["balloon", "serve", "--json", "--grpc-server-addr", "127.0.0.1:0", "--key", &key]);
        for node in nodes {
            command.args(["--node", node]);
        }
        Running(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    };
    let (code, said) = until_end(serve(&[&addr, &addr]));
    assert!(code == Some(1) && said.contains("name each node once"), "{code:?}: {said}");
    let serves = |addr: &str| wait_until(LIMIT, || Pool(addr.to_owned()).json("show")["serving"] == true);
    let mut first = serve(&[&addr]);
    let ready: serde_json::Value = serde_json::from_str(&first.until("ready")).unwrap();
    // The one that takes the board later has the later term, whichever started first.
    assert!(serves(ready["listens"].as_str().unwrap()));
    let (_next, next) = start(&["balloon", "serve", "--key", &key, "--node", &addr]);
    assert!(serves(&next));
    let (code, said) = until_end(first);
    assert!(code == Some(1) && said.contains("superseded: the service of term"), "{code:?}: {said}");
}

#[test]
fn a_memory_node_that_has_not_joined_has_no_bytes() {
    let (_folder, key) = key();
    let (_service, addr) = start(&["balloon", "serve", "--key", &key, "--node", "127.0.0.1:1"]);
    let pool = Pool(addr);
    let node = pool.json("show")["nodes"][0].clone();
    for field in ["bytes", "free_bytes", "longest_free_bytes", "free_ranges", "lent_bytes"] {
        assert!(node.as_object().unwrap().contains_key(field) && node[field].is_null(), "{field}: {node}");
    }
    let shown = stdout(&pool.run(&["show"]));
    assert!(shown.contains('–') && !shown.contains("0 B"), "{shown}");
}

#[test]
fn a_compute_node_ends_while_the_service_is_away() {
    let (_folder, key) = key();
    let (_board, addr) = board("4 MiB", &key);
    let (mut service, at) = start(&["balloon", "serve", "--lease", "86400", "--key", &key, "--node", &addr]);
    let (mut holder, _) = Pool(at).hold("1", "2 MiB");
    service.kill();
    let pid = holder.0.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert!(wait_until(LIMIT, || holder.0.try_wait().unwrap().is_some()), "it does not end");
    assert_eq!(holder.0.wait().unwrap().code(), Some(1));
}

#[test]
fn what_is_missing_is_said() {
    let (_folder, key) = key();
    let said = stderr(&Pool("127.0.0.1:1".to_owned()).run(&["show"]));
    assert!(said.contains("p4rack balloon serve"), "{said}");
    let serve = |words: &[&str]| {
        let output =
            p4rack().args(["balloon", "serve", "--grpc-server-addr", "127.0.0.1:0"]).args(words).output();
        let output = output.unwrap();
        assert!(!output.status.success());
        stderr(&output)
    };
    assert!(serve(&["--key", &key]).contains("--node"));
    assert!(serve(&["--node", "127.0.0.1:1"]).contains("--key"));
    let at = ["--node", "127.0.0.1:1", "--key"];
    assert!(serve(&[&at[..], &["/no/such/file"]].concat()).contains("makes a key"));
    for (quotas, wanted) in [
        (["--quota", "1=4 MiB:2 MiB", "--quota", "2=0 B:2 MiB"], "raise the limit"),
        (["--quota", "1=0 B:2 MiB", "--quota", "1=0 B:4 MiB"], "has two"),
    ] {
        let said = serve(&[&at[..], &[&key], &quotas].concat());
        assert!(said.contains(wanted), "{said}");
    }
}
