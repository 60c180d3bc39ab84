//! `p4rack gateway`: P4Runtime's commands, against the embedded switch over BFRuntime alone.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

mod common;
#[path = "../../ctrl/tests/common/mod.rs"]
mod rig;
#[path = "../../tests/silent.rs"]
mod silent;

use common::switch::{self, Running};
use common::{p4rack, repo, stderr, stdout};
use p4rack_codegen::Rack;
use p4rack_ctrl::{ConnectOptions, CtrlError, Session};
use rig::start_both;
use std::io::Write;
use std::process::Output;
use tempfile::NamedTempFile;

/// A switch with a gateway in front of it.
struct Gateway {
    switch: Option<rig::Running>,
    file: NamedTempFile,
    process: Running,
    addr: String,
    bfrt_addr: String,
}

impl Gateway {
    async fn start(more: &[&str]) -> Gateway {
        let text = std::fs::read_to_string(repo("examples/pl2-incast.toml")).unwrap();
        let mut file = NamedTempFile::new().unwrap();
        file.write_all(text.replace("[switch]\n", "[switch]\ncpu_port = 64\n").as_bytes()).unwrap();
        let (switch, _, target) = start_both(&Rack::load(file.path()).unwrap()).await;
        let mut gateway = p4rack();
        gateway
            .args(["gateway", "--grpc-server-addr", "127.0.0.1:0", "--bfrt-addr", &target.addr])
            .args(more);
        let mut process = Running::start(&mut gateway);
        let addr = process.until("ready").strip_prefix("ready: P4Runtime at ").unwrap().to_owned();
        Gateway { switch: Some(switch), file, process, addr, bfrt_addr: target.addr }
    }

    fn run(&self, words: &[&str]) -> Output {
        switch::run(&self.addr, words)
    }

    fn fine(&self, words: &[&str]) -> String {
        switch::fine(&self.addr, words)
    }

    fn refused(&self, words: &[&str]) -> String {
        let output = self.run(words);
        assert!(!output.status.success(), "{words:?}: {}", stdout(&output));
        stderr(&output)
    }

    fn deploy(&self) -> String {
        self.fine(&["deploy", &self.file.path().display().to_string(), "--arch", "tna"])
    }

    fn target(&self, election_id: u128) -> ConnectOptions {
        ConnectOptions { election_id, ..ConnectOptions::new(self.addr.clone(), 1) }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rack_is_deployed_over_p4runtime() {
    let gateway = Gateway::start(&[]).await;
    assert!(gateway.refused(&["table", "list"]).contains("runs no program"));
    let said = gateway.deploy();
    assert!(said.contains("installed the program"), "{said}");
    // Meters are in kilobits on the switch, and yet read back as written.
    let said = gateway.deploy();
    assert!(said.contains("already installed") && said.contains("nothing to change"), "{said}");
    assert!(gateway.fine(&["table", "read", "l2_forward"]).contains("02:00:00:00:00:01"));
    assert!(gateway.fine(&["counter", "read", "drops", "--index", "0"]).contains("drops"));

    // Errors are reported per update, as P4Runtime requires.
    let key = |mac: u32| format!("dstAddr=02:00:00:00:00:{mac:02x}");
    let insert = |mac: u32| {
        let (insert, values) =
            (["table", "insert", "l2_forward"], ["port=3", "link=3", "destination=2", "rate=1"]);
        gateway.run(&[&insert[..], &[&key(mac), "--action", "forward"], &values].concat())
    };
    let refused = stderr(&insert(1));
    assert!(refused.contains("ALREADY_EXISTS") && refused.contains("l2_forward"), "{refused}");
    assert!(insert(0x99).status.success());
    assert!(gateway.fine(&["table", "read", "l2_forward"]).contains("02:00:00:00:00:99"));
    gateway.fine(&["table", "delete", "l2_forward", &key(0x99)]);
}

/// A switch ends the streams of clients bound to a program when a program of another name replaces
/// it.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_takes_the_place_of_one_with_another_name() {
    let mut gateway = Gateway::start(&[]).await;
    let rack = gateway.file.path().display().to_string();
    let words = ["deploy", &rack, "--scheme", "l2", "--to", "tofino", "--bfrt-addr", &gateway.bfrt_addr];
    let deployed = p4rack().args(words).output().unwrap();
    assert!(deployed.status.success(), "{}", stderr(&deployed));
    // The gateway is bound to that from here on.
    gateway.fine(&["table", "read", "l2_forward"]);
    for scheme in ["pl2-clock", "l2", "pl2-clock"] {
        let said = gateway.fine(&["deploy", &rack, "--scheme", scheme, "--arch", "tna"]);
        assert!(said.contains("installed the program"), "{scheme}: {said}");
    }
    // It has the same name, whichever way it comes.
    gateway.process.kill();
    let words =
        ["deploy", &rack, "--scheme", "pl2-clock", "--to", "tofino", "--bfrt-addr", &gateway.bfrt_addr];
    let again = p4rack().args(words).output().unwrap();
    assert!(stdout(&again).contains("already installed"), "{} {}", stdout(&again), stderr(&again));
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_connections_keep_nobody_out() {
    let gateway = Gateway::start(&[]).await;
    let silent = silent::connect(&gateway.addr);
    gateway.deploy();
    silent::until_surplus_is_closed(&silent);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_bfruntime_does_not_have_is_refused() {
    let gateway = Gateway::start(&[]).await;
    let rack = gateway.file.path().display().to_string();
    let refused = gateway.refused(&["deploy", &rack, "--arch", "v1model"]);
    assert!(refused.contains("`v1model`") && refused.contains("`tna` or `t2na`"), "{refused}");
    gateway.deploy();
    let refused =
        gateway.refused(&["counter", "write", "drops", "--index", "0", "--packets", "1", "--role", "x"]);
    assert!(refused.contains("roles don't exist"), "{refused}");
    let refused = gateway.refused(&["table", "read", "l2_forward", "--device-id", "7"]);
    assert!(refused.contains("no device 7"), "{refused}");
    let refused = gateway.refused(&["packet", "send", "00", "egress_port=1"]);
    assert!(refused.contains("--cpu-interface"), "{refused}");
    // Refused requests changed nothing.
    assert!(gateway.deploy().contains("nothing to change"));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_controller_writes() {
    let gateway = Gateway::start(&[]).await;
    gateway.deploy();
    let _primary = Session::connect(gateway.target(9)).await.unwrap();
    match Session::connect(gateway.target(8)).await {
        Err(CtrlError::NotPrimary { highest, .. }) => assert_eq!(highest, "0,9"),
        other => panic!("{other:?}"),
    }
    let refused = gateway.refused(&["counter", "write", "drops", "--index", "0", "--packets", "1"]);
    assert!(refused.contains("another primary"), "{refused}");
    assert!(gateway.fine(&["table", "read", "l2_forward"]).contains("02:00:00:00:00:01"), "who reads may");
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_are_limited_and_a_switch_that_goes_is_told() {
    let mut gateway = Gateway::start(&[]).await;
    gateway.deploy();
    let mut sessions = Vec::new();
    let refused = loop {
        match Session::join(gateway.target(100 + sessions.len() as u128)).await {
            Ok(session) => sessions.push(session),
            Err(error) => break error.to_string(),
        }
    };
    assert!(
        sessions.len() == 36 && refused.contains("36 of 64 streams of controllers"),
        "{} {refused}",
        sessions.len()
    );
    drop(sessions);
    drop(gateway.switch.take());
    let read = ["table", "read", "l2_forward"];
    let gone = |output: &Output| !output.status.success();
    let ended = (0..100).map(|_| gateway.run(&read)).find(gone).expect("the switch is still there");
    assert!(stderr(&ended).contains("switch"), "{}", stderr(&ended));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_driver_gets_what_was_compiled_from_that_text() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().display().to_string();
    let gateway = Gateway::start(&["--device-config", &path]).await;
    let rack = gateway.file.path().display().to_string();
    let deploy = ["deploy", &rack, "--arch", "tna"];
    assert!(gateway.refused(&deploy).contains("program.p4"));
    std::fs::write(folder.path().join("program.p4"), "another text").unwrap();
    assert!(gateway.refused(&deploy).contains("compiled from another text"));
    let generated = p4rack().args(["generate", &rack, "--arch", "tna", "-o", &path]).output().unwrap();
    assert!(generated.status.success());
    let stem = gateway.file.path().file_stem().unwrap().to_str().unwrap();
    let made = |ending: &str| {
        let files = std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().path());
        let mut found = files.filter(|file| file.display().to_string().ends_with(ending));
        found.find(|file| !file.ends_with("program.p4")).unwrap_or_else(|| panic!("{stem}: no {ending}"))
    };
    // As the compiler leaves it, for a switch that takes text.
    std::fs::copy(made(".p4"), folder.path().join("program.p4")).unwrap();
    std::fs::create_dir(folder.path().join("pipe")).unwrap();
    std::fs::copy(folder.path().join("program.p4"), folder.path().join("pipe/tofino.bin")).unwrap();
    std::fs::write(folder.path().join("pipe/context.json"), "{}").unwrap();
    std::fs::copy(made(".bf-rt.json"), folder.path().join("bf-rt.json")).unwrap();
    assert!(gateway.fine(&deploy).contains("installed the program"));
}

#[test]
fn others_reach_it_only_if_that_is_confirmed() {
    let done = p4rack().args(["gateway", "--grpc-server-addr", "0.0.0.0:0"]).output().unwrap();
    assert_eq!(done.status.code(), Some(1));
    assert!(stderr(&done).contains("confirm with --insecure"), "{}", stderr(&done));
}
