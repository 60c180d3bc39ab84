//! `p4rack clio` as processes of their own: a board on a socket of this machine, without root.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

#[path = "../../tests/certificates.rs"]
mod certificates;
mod common;

use certificates::{Certificates, VALID};
use common::clio::{Board, compiled};
use common::switch::Running;
use common::{have, p4rack, repo, stderr, stdout, wait_until};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);

#[test]
fn memory_is_allocated_locked_and_freed() {
    let board = Board::start(&["--bytes", "4 MiB", "--store", "0"]);
    let allocated = board.json(&["alloc", "100 KiB"]);
    assert_eq!((&allocated["bytes"], &allocated["page_bytes"]), (&(128 << 10).into(), &(64 << 10).into()));
    let address = allocated["address"].as_u64().unwrap().to_string();
    let locked = board.json(&["lock", &address]);
    assert_eq!(locked["state"], "locked");
    let thread = locked["thread"].as_u64().unwrap().to_string();
    let ps = board.json(&["ps"]);
    let all = &ps["processes"].as_array().unwrap().iter().find(|one| one["kind"] == "all").unwrap();
    assert_eq!((&all["locks"], &all["pages"][0]["allocated"]), (&1.into(), &(64 + 2).into()), "{ps}");
    assert_eq!(ps["memory"][0]["frames"], 64);
    // Another command is another client.
    let said = board.refused(&["lock", &address]);
    assert!(said.contains(&format!("thread {thread} of process")) && said.contains("--wait"), "{said}");
    let said = board.refused(&["unlock", &address, "--thread", "61440"]);
    assert!(said.contains("not owner") && said.contains("--thread"), "{said}");
    board.fine(&["unlock", &address, "--thread", &thread]);
    assert_eq!(board.json(&["lock", &address, "--thread", "61440"])["thread"], 61_440);
    board.fine(&["lock", &address, "--thread", "61440", "--wait", "1"]);
    board.fine(&["unlock", &address, "--thread", "61440"]);
    assert!(board.refused(&["lock", "13"]).contains("multiple of 8"));
    let said = board.refused(&["alloc", "5 MiB"]);
    assert!(said.contains("the board refuses: no ") && said.contains("free some first"), "{said}");
    board.fine(&["free", &address, "128 KiB"]);
    let said = board.refused(&["free", &address, "128 KiB"]);
    assert!(said.contains("as `p4rack clio alloc` printed them"), "{said}");
    let shown = board.fine(&["ps"]);
    assert!(shown.contains("memory: 4 MiB in 64 pages of 64 KiB") && shown.contains("chase"), "{shown}");
}

/// The lock is extended until the second command has looked at it, so that its end is the owner's and not the lease's.
#[test]
fn a_command_waits_for_the_lock_of_another_one() {
    let board = Board::start(&["--bytes", "1 MiB", "--store", "0"]);
    let address = board.json(&["alloc", "4 KiB"])["address"].as_u64().unwrap().to_string();
    let first = board.json(&["lock", &address])["thread"].as_u64().unwrap();
    let mut waiting = p4rack();
    waiting.args(["clio", "lock", &address, "--wait", "600", "--json", "--board", &board.addr]);
    let mut waiting = waiting.stdout(Stdio::piped()).spawn().unwrap();
    let first = first.to_string();
    for _ in 0..20 {
        board.fine(&["lock", &address, "--thread", &first]);
        assert!(waiting.try_wait().unwrap().is_none(), "it waits as long as another thread has the lock");
    }
    board.fine(&["unlock", &address, "--thread", &first]);
    let output = waiting.wait_with_output().unwrap();
    assert!(output.status.success());
    let second: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_ne!(second["thread"].as_u64().unwrap().to_string(), first);
}

#[test]
fn what_was_allocated_is_written_read_and_listed() {
    let board = Board::start(&["--bytes", "1 MiB", "--store", "0"]);
    let shown = board.fine(&["alloc", "100 KiB"]);
    assert!(shown.ends_with("(128 KiB in pages of 64 KiB)\n"), "{shown}");
    let address = shown.split(' ').next().unwrap();
    board.fine(&["write", address, "--text", "hello, board"]);
    assert_eq!(board.json(&["read", address, "5"])["hex"], "68656c6c6f");
    assert!(board.fine(&["read", address, "12 B"]).contains("hello, board"));
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).display().to_string();
    let long: Vec<u8> = (0..70_000u32).map(|nth| (nth / 7) as u8).collect();
    fs::write(file("long"), &long).unwrap();
    assert_eq!(board.json(&["write", address, "--file", &file("long")])["bytes"], 70_000);
    board.fine(&["read", address, "70000", "--output", &file("back")]);
    assert_eq!(fs::read(file("back")).unwrap(), long);
    let read_only = board.json(&["alloc", "1", "--read-only"])["address"].as_u64().unwrap().to_string();
    assert!(board.refused(&["write", &read_only, "--hex", "00"]).contains("--read-only"));
    assert!(board.refused(&["read", &read_only, "65 KiB"]).contains("`p4rack clio ps` lists"));
    assert!(board.refused(&["read", address, "0"]).contains("read 1 to"));
    let ps = board.json(&["ps"]);
    let all = ps["processes"].as_array().unwrap().iter().find(|one| one["kind"] == "all").unwrap();
    let allocated: u64 =
        all["ranges"].as_array().unwrap().iter().map(|range| range["bytes"].as_u64().unwrap()).sum();
    assert_eq!(allocated, (16 + 2 + 1) * (64 << 10), "{ps}");
    assert!(board.fine(&["ps"]).contains("which these commands use"));
}

#[test]
fn a_board_has_the_pages_and_the_table_that_it_is_started_with() {
    let words = ["--bytes", "1 MiB", "--store", "0", "--page-size", "4 KiB", "--slots", "16"];
    let table = ["--spare-percent", "90", "--index", "mixed", "--processes", "1"];
    let board = Board::start(&[&words[..], &table].concat());
    assert_eq!(board.json(&["alloc", "1"])["page_bytes"], 4_096);
    let said = board.refused(&["verify", "--processes", "2", "--operations", "10000000", "--requests", "0"]);
    assert!(said.contains("of 1 processes"), "{said}");
    for (words, says) in [
        (["--page-size", "8 KiB"], "no page size"),
        (["--slots", "5"], "write 4, 8 or 16"),
        (["--index", "other"], "write salted or mixed"),
        (["--spare-percent", "101"], "100"),
        (["--processes", "0"], "1"),
    ] {
        let output = p4rack().args(["clio", "serve"]).args(words).output().unwrap();
        assert!(!output.status.success() && stderr(&output).contains(says), "{}", stderr(&output));
    }
}

#[test]
fn commands_act_in_a_process_that_is_held() {
    let board = Board::start(&["--bytes", "1 MiB", "--store", "0"]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("process");
    let held = file.to_str().unwrap();
    let mut command = p4rack();
    command.args(["clio", "hold", held, "--reserve", "128 KiB", "--limit", "256 KiB", "--json"]);
    let mut holding = Running::start(command.args(["--share-limit", "0", "--board", &board.addr]));
    let ready: Value = serde_json::from_str(&holding.until("ready")).unwrap();
    assert_eq!((&ready["limit_bytes"], &ready["share_limit_bytes"]), (&(256 << 10).into(), &0.into()));
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let address = board.json(&["alloc", "128 KiB", "--in", held])["address"].as_u64().unwrap().to_string();
    assert!(board.refused(&["alloc", "1", "--in", held]).contains("no memory"));
    board.fine(&["write", &address, "--text", "mine", "--in", held]);
    assert_eq!(board.json(&["read", &address, "4", "--in", held])["hex"], "6d696e65");
    // The same address is another one's in the process that is offered to all.
    let other = board.run(&["read", &address, "4", "--json"]);
    assert!(!stdout(&other).contains("6d696e65"), "{}", stdout(&other));
    let with = format!("{}:{}", ready["pid"], ready["epoch"]);
    let said = board.refused(&["share", &address, "--bytes", "1", "--with", &with]);
    assert!(said.contains("the process takes nothing from others"), "{said}");
    board.fine(&["free", &address, "128 KiB", "--in", held]);
    board.fine(&["alloc", "64 KiB", "--in", held]);
    let id = holding.0.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    assert!(holding.0.wait().unwrap().success() && !file.exists());
    let said = board.refused(&["alloc", "1", "--in", held]);
    assert!(said.contains("--in:"), "{said}");
    let is_gone = || board.json(&["ps"])["processes"].as_array().unwrap().len() == 2;
    assert!(wait_until(LIMIT, is_gone), "{}", board.fine(&["ps"]));
}

#[test]
fn one_host_leaves_half_of_the_bytes_for_others_unless_it_is_the_only_one() {
    use p4rack_memory::clio::Session;
    for (tenants, most_kib) in [("8", 576), ("1", 1_024)] {
        let board = Board::start(&["--bytes", "1 MiB", "--store", "0", "--tenants", tenants]);
        let server = p4rack_hosts::roce::setup::Server { addr: board.addr.clone(), tls: None };
        let open = |kib: u64| Session::open(&server, kib << 10, Default::default());
        let said = open(most_kib + 4).err().unwrap().to_string();
        assert!(said.contains("bytes to reserve"), "{said}");
        assert_eq!(said.contains("fewer --tenants"), tenants == "8", "{said}");
        open(most_kib).unwrap();
    }
}

#[test]
fn memory_is_shared_with_a_process_that_takes_it() {
    use p4rack_memory::clio::{Session, Wanted};
    let board = Board::start(&["--bytes", "1 MiB", "--store", "0"]);
    let address = board.json(&["alloc", "8 KiB"])["address"].as_u64().unwrap().to_string();
    let server = p4rack_hosts::roce::setup::Server { addr: board.addr.clone(), tls: None };
    let wanted = Wanted { share_limit_bytes: Some(4_096), ..Wanted::bytes(4_096) };
    let mut other = Session::open_as(&server, wanted, None, Default::default()).unwrap();
    let with = format!("{}:{}", other.credentials().pid, other.credentials().epoch);
    let share =
        |bytes: &str, with: &str| ["share", &address, "--bytes", bytes, "--with", with].map(str::to_owned);
    let words = share("4 KiB", &with);
    let words = words.each_ref().map(String::as_str);
    let there = board.json(&words)["address"].as_u64().unwrap();
    assert_eq!(other.read(there, 5).unwrap(), [0; 5]);
    assert!(other.write(there, b"x").unwrap_err().to_string().contains("not permitted"));
    let shown = board.fine(&["ps"]);
    assert!(shown.contains("1 of 1") && shown.contains(&with), "{shown}");
    for (bytes, with, says) in [
        ("4 KiB", &*with, "it may take no more"),
        ("4 KiB", "77:1", "lists the processes"),
        ("4 KiB", "77", "write a PID and an epoch"),
        ("1 MiB", &*with, "as `p4rack clio alloc` printed them"),
    ] {
        let words = share(bytes, with);
        let said = board.refused(&words.each_ref().map(String::as_str));
        assert!(said.contains(says), "{said}");
    }
}

#[test]
fn keys_and_values_come_back_whatever_their_length() {
    let board = Board::start(&["--bytes", "4 MiB", "--store", "1 MiB"]);
    let folder = tempfile::tempdir().unwrap();
    let (long, back) = (folder.path().join("long"), folder.path().join("back"));
    fs::write(&long, vec![7; 65_536]).unwrap();
    let [long, back] = [&long, &back].map(|path| path.to_str().unwrap());
    board.fine(&["kv", "put", "name", "value of it"]);
    assert_eq!(board.fine(&["kv", "get", "name"]), "value of it\n");
    assert_eq!(board.json(&["kv", "put", "name", "--file", long])["bytes"], 65_536);
    board.fine(&["kv", "get", "name", "--output", back]);
    assert_eq!(fs::read(back).unwrap(), vec![7; 65_536]);
    board.fine(&["kv", "delete", "name"]);
    for words in [&["kv", "get", "name"], &["kv", "delete", "name"]] {
        assert!(board.refused(words).contains("key `name`: there is no such key"));
    }
    fs::write(long, vec![7; 65_537]).unwrap();
    assert!(board.refused(&["kv", "put", "name", "--file", long]).contains("at most 65536 bytes"));
    assert!(board.refused(&["kv", "put", "", "x"]).contains("1 to 255 bytes"));
    let none = Board::start(&["--bytes", "1 MiB", "--store", "0"]);
    assert!(none.refused(&["kv", "get", "name"]).contains("start it with --store"));
}

/// A module in text form, in binary form in a file.
fn module(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, wat::parse_str(text).unwrap()).unwrap();
    path.display().to_string()
}

#[test]
fn offloads_are_loaded_called_listed_and_removed() {
    let board = Board::start(&["--bytes", "4 MiB"]);
    let folder = tempfile::tempdir().unwrap();
    let sum = fs::read_to_string(repo("examples/offload/sum.wat")).unwrap();
    let path = module(folder.path(), "sum.wasm", &sum);
    let loaded = board.json(&["offload", "load", &path, "--memory", "64 KiB"]);
    assert_eq!((&loaded["name"], &loaded["number"]), (&"sum".into(), &2.into()));
    assert_eq!(board.fine(&["offload", "call", "sum", "2", "--hex", "0500000000000000"]), "done\n");
    board.fine(&["offload", "call", "sum", "2", "--hex", "0600000000000000"]);
    assert_eq!(board.fine(&["offload", "call", "sum", "3"]), "0b00000000000000\n");
    let said = board.refused(&["offload", "load", &path]);
    assert!(said.contains("has an offload `sum` already"), "{said}");
    let endless = r#"(module (memory (export "memory") 1)
        (func (export "call") (param i32 i32) (result i32) (loop $again (br $again)) (i32.const 0)))"#;
    let endless = module(folder.path(), "endless.wasm", endless);
    board.fine(&["offload", "load", &endless]);
    // On a machine that others keep busy, the client may give up before.
    let is_stopped = || {
        board.refused(&["offload", "call", "endless"]).contains("offload failed; `p4rack clio offload list`")
    };
    assert!(wait_until(LIMIT, is_stopped), "{}", board.fine(&["offload", "list"]));
    let listed = board.json(&["offload", "list"]);
    let names: Vec<_> = listed.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["chase", "kv", "sum", "endless"]);
    assert!(
        listed[3]["failed"].as_u64() >= Some(1) && listed[3]["failure"] == "it has used up its fuel",
        "{listed}"
    );
    assert_eq!((&listed[2]["calls"], &listed[2]["failed"]), (&3.into(), &0.into()));
    let ps = board.json(&["ps"]);
    let kinds: Vec<_> =
        ps["processes"].as_array().unwrap().iter().map(|one| one["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["chase", "kv", "all", "sum", "endless"]);
    board.fine(&["offload", "remove", "endless"]);
    let said = board.refused(&["offload", "call", "endless"]);
    assert!(said.contains("the board has no offload `endless`; it has chase, kv, sum"), "{said}");
    assert!(board.refused(&["offload", "remove", "kv"]).contains("the board's own"));
    assert!(board.refused(&["offload", "remove", "endless"]).contains("has no offload `endless`"));
    assert!(board.refused(&["offload", "load", &path, "--name", "a/b"]).contains("write 1 to 64 letters"));
    let said = board.refused(&["offload", "load", &path, "--name", "other", "--memory", "1 GiB"]);
    assert!(said.contains("memory_bytes"), "{said}");
}

/// One client can't take the places of all others.
#[test]
fn offloads_of_a_client_are_limited() {
    let board = Board::start(&["--bytes", "4 MiB"]);
    let folder = tempfile::tempdir().unwrap();
    let nothing = r#"(module (memory (export "memory") 1)
        (func (export "call") (param i32 i32) (result i32) (i32.const 0)))"#;
    let path = module(folder.path(), "nothing.wasm", nothing);
    let load =
        |nth: u32| board.run(&["offload", "load", &path, "--memory", "4 KiB", "--name", &nth.to_string()]);
    let mut loaded = (0..40).map(load).take_while(|output| output.status.success()).count();
    assert_eq!(loaded, 18);
    assert!(stderr(&load(99)).contains("holds 18 of 32 offloads"), "{}", stderr(&load(99)));
    board.fine(&["offload", "remove", "3"]);
    loaded = (40..42).map(load).take_while(|output| output.status.success()).count();
    assert_eq!(loaded, 1);
}

#[test]
fn modules_are_refused_with_their_file_and_the_reason() {
    let board = Board::start(&["--bytes", "1 MiB"]);
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, bytes: &[u8]| {
        fs::write(folder.path().join(name), bytes).unwrap();
        folder.path().join(name).display().to_string()
    };
    let foreign = module(folder.path(), "foreign.wasm", r#"(module (import "env" "print" (func)))"#);
    let elf = put("elf.wasm", b"\x7fELF and so on");
    let text = put("text.wat", b"(module)");
    let wrong = put("wrong.wat", b"module");
    let elf_wat = put("elf.wat", b"\xff\xfe");
    let large = put("large.wasm", b"");
    fs::File::options().write(true).open(&large).unwrap().set_len(100 << 20).unwrap();
    for (path, says) in [
        (&foreign, "imports `env.print`; it may import from `clio`: arguments, read, write"),
        (&elf, "no WebAssembly module"),
        (&text, "has to export its memory as `memory`"),
        (&wrong, "expected `(`"),
        (&elf_wat, "utf-8"),
        (&large, "104857600 bytes, and a board takes 262144"),
        (&"/nonexistent.wasm".to_owned(), "No such file"),
    ] {
        let said = board.refused(&["offload", "load", path]);
        assert!(said.contains(&**path) && said.contains(says), "{said}");
    }
    assert_eq!(board.json(&["offload", "list"]).as_array().unwrap().len(), 2);
}

#[test]
fn processes_find_what_they_wrote_and_leave_nothing_behind() {
    let board = Board::start(&["--bytes", "8 MiB"]);
    let words =
        ["verify", "--processes", "3", "--operations", "4000", "--requests", "600", "--memory", "200 KiB"];
    let said = board.fine(&[&words[..], &["--json"]].concat());
    let end: Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
    for one in end["processes"].as_array().unwrap() {
        let of = |name: &str| one[name].as_u64().unwrap();
        // At last, all of the memory is read: 200 KiB in reads of 20,000 bytes.
        assert_eq!(of("reads") + of("writes") + of("atomics"), 4_000 + 11, "{one}");
        assert!(of("requests") >= 600, "{one}");
    }
    let is_clean = || board.json(&["ps"])["processes"].as_array().unwrap().len() == 3;
    assert!(wait_until(LIMIT, is_clean), "{}", board.fine(&["ps"]));
    let said = board.refused(&["verify", "--memory", "1 GiB"]);
    assert!(said.contains("bytes to reserve"), "{said}");
}

#[test]
fn a_chase_follows_a_list_that_the_rust_interface_wrote() {
    use p4rack_memory::clio::{Operation, Session};
    let board = Board::start(&["--bytes", "1 MiB"]);
    let server = p4rack_hosts::roce::setup::Server { addr: board.addr.clone(), tls: None };
    let mut session = Session::open(&server, 0, Default::default()).unwrap();
    let start = session.range().0;
    let node = |key: u64, next: u64| [key, next, key * 10].map(u64::to_le_bytes).concat();
    let nodes = [node(1, start + 24), node(2, start + 48), node(3, start)].concat();
    session.ask(Operation::Write { address: start, bytes: &nodes }).unwrap();
    let at = start.to_string();
    let found = board.json(&["chase", &at, "2"]);
    assert_eq!((&found["address"], &found["value"]), (&(start + 24).into(), &"1400000000000000".into()));
    let said = board.refused(&["chase", &at, "9"]);
    assert!(said.contains("a circle"), "{said}");
    assert!(board.refused(&["chase", "77777777777", "9"]).contains("leads out of the process's memory"));
}

/// Operations of each test with random ones: few, or what `P4RACK_OPERATIONS` says.
fn random_operations() -> String {
    std::env::var("P4RACK_OPERATIONS").unwrap_or_else(|_| "3000".to_owned())
}

/// `P4RACK_OPERATIONS=1000000 cargo test --profile verify --workspace --test clio_commands -- random_operations --nocapture` takes a million
/// operations by either interface.
#[test]
fn random_operations_from_rust_and_c_agree_with_an_array() {
    let board = Board::start(&["--bytes", "16 MiB"]);
    let operations = random_operations();
    let verify = ["verify", "--processes", "1", "--requests", "0", "--operations", &operations];
    print!("{}", board.fine(&verify));
    if !have("cc", "gcc") {
        return;
    }
    let (_folder, program, libraries) = compiled("cli/tests/clio_random.c");
    let mut command = Command::new(&program);
    let output =
        command.args([&board.addr, &operations, "1"]).env("LD_LIBRARY_PATH", &libraries).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    print!("from C: {}", stdout(&output));
    assert!(stdout(&output).ends_with("all right\n"), "{}", stdout(&output));
}

/// The same with [`random_operations`]: a client that is killed again and again harms neither the other one nor the board, which loses
/// 1 % of all packets.
#[test]
fn losses_and_killed_clients_do_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let stats = file("stats").display().to_string();
    let mut board = Board::start(&["--bytes", "16 MiB", "--lose-per-mille", "10", "--stats", &stats]);
    let verify = |processes: &str, seed: u64, operations: u64, requests: u64| {
        let mut command = p4rack();
        command.args(["clio", "verify", "--json", "--board", &board.addr, "--processes", processes]);
        command.args(["--seed", &seed.to_string(), "--operations", &operations.to_string()]);
        command.args(["--requests", &requests.to_string()]);
        command
    };
    // A number and an epoch identify a process uniquely.
    let processes = || -> BTreeSet<(u64, u64)> {
        let ps = board.json(&["ps"]);
        let of = |one: &Value| (one["pid"].as_u64().unwrap(), one["epoch"].as_u64().unwrap());
        ps["processes"].as_array().unwrap().iter().map(of).collect()
    };
    let before = processes();
    let operations: u64 = random_operations().parse().unwrap();
    let mut alive = verify("2", 1, operations, operations / 10);
    let [out, err] = ["out", "err"].map(|name| fs::File::create(file(name)).unwrap());
    let mut alive = Running(alive.stdout(out).stderr(err).spawn().unwrap());
    let mut has_ended = || alive.0.try_wait().unwrap().is_some();
    assert!(wait_until(LIMIT, || processes().len() == before.len() + 2 || has_ended()), "{:?}", processes());
    let mut kills = 0;
    while kills < 3 || !has_ended() {
        // It is killed amid its operations or its requests: there are more than it gets time for.
        let (operations, requests) =
            if kills % 2 == 0 { (100_000_000, 100_000_000) } else { (0, 100_000_000) };
        let known = processes();
        let mut victim = Running::start(&mut verify("1", 100 + kills, operations, requests));
        let has_begun = || !processes().is_subset(&known);
        assert!(wait_until(LIMIT, has_begun), "no process begins beside {known:?}");
        victim.kill();
        kills += 1;
    }
    let status = alive.0.wait().unwrap();
    let [end, said] = ["out", "err"].map(|name| fs::read_to_string(file(name)).unwrap());
    assert!(status.success(), "{status}: {end}{said}");
    assert!(wait_until(LIMIT, || processes() == before), "{:?} instead of {before:?}", processes());
    let id = board.running.0.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    assert!(board.running.0.wait().unwrap().success());
    let stats: Value = serde_json::from_str(&fs::read_to_string(&stats).unwrap()).unwrap();
    let [lost_in, lost_out] = ["lost_in", "lost_out"].map(|name| stats["socket"][name].as_u64().unwrap());
    let end = end.lines().last().unwrap_or_default();
    println!("{kills} kills, {lost_in} packets lost on their way in and {lost_out} on their way out: {end}");
    assert!(lost_in > 0 && lost_out > 0, "{stats}");
}

#[test]
fn a_program_in_c_is_the_papers_figure_1() {
    if !have("cc", "gcc") {
        return;
    }
    let board = Board::start(&["--bytes", "16 MiB"]);
    let (_folder, program, libraries) = compiled("examples/clio.c");
    let run =
        |board: &str| Command::new(&program).arg(board).env("LD_LIBRARY_PATH", &libraries).output().unwrap();
    for _ in 0..3 {
        let output = run(&board.addr);
        let said = stdout(&output);
        assert!(output.status.success() && said.contains("greeting: hello"), "{said}{}", stderr(&output));
    }
    let output = run("127.0.0.1:1");
    assert!(!output.status.success() && stderr(&output).contains("can't reach"), "{}", stderr(&output));
}

/// Runs a test program in C with these arguments, which has to find all right.
fn calls_from_c(arguments: &[&str]) {
    let (_folder, program, libraries) = compiled("cli/tests/clio_calls.c");
    let output = Command::new(&program).args(arguments).env("LD_LIBRARY_PATH", &libraries).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(stdout(&output), "all right\n");
}

#[test]
fn programs_in_c_have_limits_rights_and_shared_memory() {
    if !have("cc", "gcc") {
        return;
    }
    let board = Board::start(&["--bytes", "16 MiB", "--fence-all"]);
    calls_from_c(&[&board.addr]);
    calls_from_c(&[&board.addr, "", &repo("examples/clio-kv.toml").display().to_string()]);
}

#[test]
fn the_set_up_is_encrypted_where_asked_for() {
    let Some(files) = Certificates::new() else { return };
    files.sign("server", "ca", "IP:127.0.0.1", VALID);
    let path = |name: &str| files.file(name).display().to_string();
    let board = Board::start(&[
        "--bytes",
        "16 MiB",
        "--fence-all",
        "--grpc-server-ssl",
        "--grpc-server-cert",
        &path("server.pem"),
        "--grpc-server-key",
        &path("server.key"),
    ]);
    let trusted = ["--ssl", "--cacert", &path("ca.pem")];
    board.fine(&[&["kv", "put", "a", "b"][..], &trusted].concat());
    assert_eq!(board.fine(&[&["kv", "get", "a"][..], &trusted].concat()), "b\n");
    if have("cc", "gcc") {
        calls_from_c(&[&board.addr, &path("ca.pem")]);
    }
    assert!(board.refused(&["ps"]).contains("give --ssl and --cacert"), "{}", board.refused(&["ps"]));
    let open = p4rack().args(["clio", "serve", "--grpc-server-addr", "0.0.0.0:0"]).output().unwrap();
    assert!(!open.status.success() && stderr(&open).contains("--insecure"), "{}", stderr(&open));
}

#[test]
fn statistics_have_the_boards_counters() {
    let folder = tempfile::tempdir().unwrap();
    let stats = folder.path().join("stats");
    let board = Board::start(&["--bytes", "1 MiB", "--stats", stats.to_str().unwrap()]);
    board.fine(&["kv", "put", "a", "b"]);
    let id = board.running.0.id().to_string();
    assert!(Command::new("kill").args(["-USR1", &id]).status().unwrap().success());
    let counted = || {
        let stats: Value =
            fs::read_to_string(&stats).ok().and_then(|text| serde_json::from_str(&text).ok())?;
        stats["board"]["offloads"].as_u64().filter(|count| *count == 1)
    };
    assert!(wait_until(LIMIT, || counted().is_some()));
}

#[test]
fn without_a_board_commands_say_what_to_do() {
    let output = p4rack().args(["clio", "ps", "--board", "127.0.0.1:1"]).output().unwrap();
    assert!(stderr(&output).contains("start one with `p4rack clio serve`"), "{}", stderr(&output));
}
