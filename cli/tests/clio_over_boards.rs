//! Two boards as processes of their own, used by one client; and what an honest client keeps beside hostile ones.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

mod common;

use common::clio::{Board, compiled};
use common::{have, p4rack, repo, stderr, stdout};
use p4rack_hosts::clio::hostile::Attack;
use serde_json::Value;
use std::fs;
use std::process::{Command, Output};

/// Bytes of each board's memory.
const BYTES: u64 = 1 << 20;

fn boards() -> [Board; 2] {
    [0, 1].map(|_| Board::start(&["--bytes", "1 MiB", "--store", "64 KiB"]))
}

#[test]
fn commands_use_one_region_over_two_boards_and_a_dead_one_is_said() {
    let [first, mut second] = boards();
    let folder = tempfile::tempdir().unwrap();
    let rack = folder.path().join("rack.toml");
    let described = fs::read_to_string(repo("examples/clio-kv.toml")).unwrap();
    fs::write(&rack, described.replace(r#"boards          = ["h1"]"#, r#"boards = ["h1", "h2"]"#)).unwrap();
    let services = format!("{},{}", first.addr, second.addr);
    let memory = |what: &str, at: &str, memory: &str, rest: &[&str]| -> Output {
        let mut command = p4rack();
        command.args(["memory", what]).arg(&rack).args(["--name", "h3", "--at", at, "--way", "clio"]);
        command.args(["--memory", memory]).args(rest).output().unwrap()
    };
    let edge = (BYTES - 6).to_string();
    let written = memory("write", "h1,h2", &services, &["--address", &edge, "--text", "first second"]);
    assert!(written.status.success(), "{}", stderr(&written));
    let read = |at: &str, services: &str, address: u64| {
        let (address, bytes) = (address.to_string(), "6");
        memory("read", at, services, &["--address", &address, "--bytes", bytes, "-o", "-"])
    };
    assert_eq!(stdout(&read("h1,h2", &services, BYTES)), "second");
    assert_eq!(stdout(&read("h2", &second.addr, 0)), "second");
    assert_eq!(stdout(&read("h1", &first.addr, BYTES - 6)), "first ");
    for (at, services, says) in [
        ("h1,h2", &first.addr, "1 addresses of boards for 2 hosts"),
        ("h1,h3", &services, "h3 has no board"),
        ("h1,h1", &services, "h1 is named twice"),
    ] {
        let output = read(at, services, 0);
        assert!(!output.status.success() && stderr(&output).contains(says), "{at}: {}", stderr(&output));
    }
    second.running.kill();
    let gone = read("h1,h2", &services, 0);
    assert!(!gone.status.success() && stderr(&gone).contains(&second.addr), "{}", stderr(&gone));
}

#[test]
fn allocations_and_locks_name_their_board() {
    let [first, second] = boards();
    let both = format!("{},{}", first.addr, second.addr);
    let json = |words: &[&str]| -> Value {
        let output = p4rack().arg("clio").args(words).args(["--board", &both, "--json"]).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", stderr(&output));
        serde_json::from_str(&stdout(&output)).unwrap()
    };
    let address = json(&["alloc", "4 KiB", "--on", "1"])["address"].as_u64().unwrap();
    assert_eq!(address >> 48, 1);
    let (global, local) = (address.to_string(), (address & ((1 << 48) - 1)).to_string());
    json(&["write", &global, "--text", "hello"]);
    assert!(second.fine(&["read", &local, "5"]).contains("hello"));
    let lock = (address & ((1 << 48) - 1)) + 8;
    let thread = json(&["lock", &(address + 8).to_string()])["thread"].as_u64().unwrap();
    assert!(second.refused(&["lock", &lock.to_string()]).contains("has it"));
    assert!(first.refused(&["read", &local, "5"]).contains("refuses"), "the first board has nothing there");
    second.fine(&["unlock", &lock.to_string(), "--thread", &thread.to_string()]);
    json(&["free", &global, "4 KiB"]);
}

#[test]
fn programs_in_c_use_two_boards() {
    if !have("cc", "gcc") {
        return;
    }
    let [first, second] = [0, 1].map(|_| Board::start(&["--bytes", "8 MiB"]));
    let both = format!("{},{}", first.addr, second.addr);
    for (source, says) in
        [("examples/clio.c", "greeting: hello"), ("cli/tests/clio_two_boards.c", "all right")]
    {
        let (_folder, program, libraries) = compiled(source);
        let output = Command::new(&program).arg(&both).env("LD_LIBRARY_PATH", &libraries).output().unwrap();
        assert!(output.status.success() && stdout(&output).contains(says), "{source}: {}", stderr(&output));
    }
}

/// Each attack is made, and the honest client goes on. How much it keeps is measured by hand: here other tests run.
#[test]
fn an_honest_client_is_measured_beside_each_attack() {
    let board = Board::start(&["--bytes", "8 MiB", "--store", "0"]);
    let output = board.run(&["hostile", "--seconds", "0.1", "--rounds", "1", "--json"]);
    let lines: Vec<Value> = stdout(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let attacks: Vec<&str> = lines.iter().filter_map(|line| line["attack"].as_str()).collect();
    assert_eq!(attacks, Attack::ALL.map(|(_, name)| name), "{}", stderr(&output));
    for line in lines.iter().filter(|line| line["event"] == "attack") {
        assert!(line["per_s"].as_f64().unwrap() > 0.0 && line["sent"].as_u64().unwrap() > 0, "{line}");
    }
    let elsewhere = p4rack().args(["clio", "hostile", "--board", "192.0.2.77:9563"]).output().unwrap();
    assert!(stderr(&elsewhere).contains("a board on loopback"), "{}", stderr(&elsewhere));
    assert!(board.refused(&["hostile", "--attack", "kindness"]).contains("none of allocations, bytes"));
}
