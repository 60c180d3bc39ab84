//! `p4rack far` from end to end: real programs whose large allocations are in remote memory, and the command's
//! refusals.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

mod common;

use common::{have, p4rack, repo, skip, stderr, stdout, wait_until};
use p4rack_hosts::paging::check_privileges;
use serde_json::Value;
use std::ffi::OsStr;
use std::fs::Permissions;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// Longer than any step takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);
/// A user without privileges.
const NOBODY: u32 = 65_534;

/// A folder for files and for state of the command.
struct Far {
    folder: tempfile::TempDir,
}

/// Whether programs can have far memory here; says so when not.
fn can_run() -> bool {
    let can = check_privileges();
    if can.is_err() {
        skip("userfaultfd for the kernel's faults", "running the tests as root");
    }
    can.is_ok() && have("cc", "gcc")
}

impl Far {
    fn new() -> Far {
        Far { folder: tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// `p4rack far` with the library that was built with this test.
    fn command(&self) -> Command {
        let library = std::env::current_exe().unwrap().parent().unwrap().join("libp4rack_far.so");
        let mut command = p4rack();
        command.arg("far").env("P4RACK_FAR_LIBRARY", library).env("XDG_RUNTIME_DIR", self.folder.path());
        command
    }

    /// `far run` in local memory, with the figures in a file.
    fn run(&self, local: &str, program: &[&str]) -> Command {
        self.run_with(&["--way", "local", "--local", local], program)
    }

    fn run_with(&self, options: &[&str], program: &[&str]) -> Command {
        let mut command = self.command();
        command.arg("run").args(options).arg("--json").arg(self.path("figures"));
        command.arg("--").args(program);
        command
    }

    /// The figures of the last run, and the ways in which no run may be wrong.
    fn figures(&self) -> Value {
        let all: Value = serde_json::from_slice(&std::fs::read(self.path("figures")).unwrap()).unwrap();
        let number = |name: &str| all["figures"][name].as_u64().unwrap();
        assert_eq!(all["started"], true, "{all}");
        assert!(number("local_max_bytes") <= number("local_limit_bytes"), "{all}");
        assert!(number("in_use_max_bytes") <= number("bytes"), "{all}");
        all["figures"].clone()
    }

    /// The C program.
    fn compiled(&self, more: &[&str]) -> String {
        let program = self.path("program").display().to_string();
        let compiled = Command::new("cc")
            .args(["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread"])
            .args(more)
            .arg(repo("cli/tests/far.c"))
            .args(["-o", &program])
            .output()
            .unwrap();
        assert!(compiled.status.success(), "{}", stderr(&compiled));
        program
    }
}

fn said(output: &Output) -> String {
    format!("{:?}\n{}\n{}", output.status, stdout(output), stderr(output))
}

/// A child that is ended when the test is.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_c_program_runs_as_it_does_without_far_memory() {
    if !can_run() {
        return;
    }
    let far = Far::new();
    let program = far.compiled(&[]);
    let output = far.run("6 MiB", &[&program]).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(stdout(&output), "all as written\n");
    let figures = far.figures();
    let number = |name: &str| figures[name].as_u64().unwrap();
    assert!(number("local_limit_bytes") <= 6 << 20, "{figures}");
    // Far more than fits was used, and all of it freed.
    assert!(number("objects") > 300 && number("mappings") >= 1 && number("refused") == 0, "{figures}");
    assert!(number("in_use_max_bytes") > 12 << 20 && number("in_use_bytes") == 0, "{figures}");
    for name in
        ["read_faults", "write_faults", "zeroed", "filled", "evicted", "fetched_bytes", "written_bytes"]
    {
        assert!(number(name) > 0, "{name}: {figures}");
    }
    assert!(stderr(&output).contains("program: far memory by local"), "{}", said(&output));
}

/// A child that has said that it is ready.
fn started(command: &mut Command) -> Ended {
    let mut child = Ended(command.stdout(Stdio::piped()).spawn().unwrap());
    let mut ready = String::new();
    BufReader::new(child.0.stdout.take().unwrap()).read_line(&mut ready).unwrap();
    assert!(ready.starts_with("ready"), "{ready}");
    child
}

/// The exit status of a child, and its standard error.
fn ended(mut child: Ended) -> (Option<i32>, String) {
    let mut words = String::new();
    child.0.stderr.take().unwrap().read_to_string(&mut words).unwrap();
    (child.0.wait().unwrap().code(), words)
}

/// A server of 64 MiB by TCP that is ready.
fn serve(rack: &str, bind: &str) -> Ended {
    let mut serve = p4rack();
    serve.args(["memory", "serve", rack, "--name", "h2", "--way", "tcp", "--bind", bind]);
    started(serve.args(["--bytes", "64 MiB", "--insecure"]))
}

#[test]
fn remote_memory_is_another_process() {
    if !can_run() {
        return;
    }
    let far = Far::new();
    let program = far.compiled(&[]);
    let rack = repo("examples/two-hosts.toml").display().to_string();
    // An address of this test's own: the port is the way's.
    let (served, memory) = (serve(&rack, "127.0.4.7"), "127.0.4.7:7004");
    let options = [rack.as_str(), "--at", "h2", "--way", "tcp", "--memory", memory, "--local", "8 MiB"];
    let output = far.run_with(&options, &[&program]).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let figures = far.figures();
    assert_eq!(figures["bytes"], 64 << 20, "{figures}");
    assert!(figures["fetched_bytes"].as_u64().unwrap() > 0, "{figures}");
    // Its death is the program's, which says why.
    let lost = started(far.run_with(&options, &[&program, "wait"]).stderr(Stdio::piped()));
    drop(served);
    let (status, words) = ended(lost);
    assert_eq!(status, Some(128 + 7), "SIGBUS: {words}");
    assert!(words.contains("remote memory is lost"), "{words}");
}

#[test]
fn a_program_may_give_back_memory_that_is_lost() {
    if !can_run() {
        return;
    }
    let far = Far::new();
    let program = far.compiled(&[]);
    let rack = repo("examples/two-hosts.toml").display().to_string();
    let served = serve(&rack, "127.0.4.8");
    let options =
        [rack.as_str(), "--at", "h2", "--way", "tcp", "--memory", "127.0.4.8:7004", "--local", "4 MiB"];
    let lost = started(far.run_with(&options, &[&program, "survive"]).stderr(Stdio::piped()));
    drop(served);
    let (status, words) = ended(lost);
    assert_eq!(status, Some(45), "{words}");
}

#[test]
fn the_exit_status_is_the_programs_and_signals_reach_it() {
    if !can_run() {
        return;
    }
    let far = Far::new();
    let program = far.compiled(&[]);
    let code = |words: &[&str]| {
        far.run("4 MiB", &[&[program.as_str()], words].concat()).output().unwrap().status.code()
    };
    assert_eq!(code(&["exit", "7"]), Some(7));
    assert_eq!(code(&["abort"]), Some(128 + 6));
    assert_eq!(code(&["interrupted"]), Some(46));
    // Descriptors that are closed by system calls end in a signal, and never in zeros.
    let closes = far.run("4 MiB", &[&program, "closes"]).output().unwrap();
    assert!(matches!(closes.status.code(), Some(128..)), "{}", said(&closes));
    // Bytes that are no text reach it too; and its status is reported although the figures can't be written.
    let mut odd = far.command();
    odd.args(["run", "--way", "local", "--local", "4 MiB", "--json", "/dev/full", "--", &program, "exit"]);
    let odd = odd.arg(OsStr::from_bytes(b"8\xff")).output().unwrap();
    assert_eq!(odd.status.code(), Some(8), "{}", said(&odd));
    assert!(stderr(&odd).contains("warning: figures: --json"), "{}", said(&odd));
    for (signal, expected) in [("TERM", 41), ("USR1", 40)] {
        let mut run = started(&mut far.run("4 MiB", &[&program, "wait"]));
        let sent =
            Command::new("sh").args(["-c", &format!("kill -{signal} {}", run.0.id())]).status().unwrap();
        assert!(sent.success());
        assert_eq!(run.0.wait().unwrap().code(), Some(expected), "SIG{signal}");
    }
}

#[test]
fn full_far_memory_refuses_or_gives_near_memory() {
    if !can_run() {
        return;
    }
    let far = Far::new();
    let program = far.compiled(&[]);
    let options = ["--way", "local", "--local", "4 MiB", "--reserve", "16 MiB"];
    let output = far.run_with(&options, &[&program, "exhaust"]).output().unwrap();
    // Each object has its page of the allocator's.
    let got: u64 = stdout(&output).trim().parse().unwrap();
    assert!((12..=16).contains(&got), "{}", said(&output));
    assert!(far.figures()["refused"].as_u64().unwrap() >= 1);
    let near = [&options[..], &["--full", "near"]].concat();
    let output = far.run_with(&near, &[&program, "exhaust"]).output().unwrap();
    assert_eq!(stdout(&output), "256\n", "{}", said(&output));
    let figures = far.figures();
    assert_eq!(figures["near"], 256 - figures["objects"].as_u64().unwrap(), "{figures}");
}

/// Bytes of a value of the store: the number, over and over.
fn value(number: usize) -> Vec<u8> {
    number.to_le_bytes().into_iter().cycle().take(4_096).collect()
}

#[test]
fn a_redis_server_keeps_its_values_in_far_memory() {
    const VALUES: usize = 8_000;
    if !can_run() || !have("redis-server", "redis-server") {
        return;
    }
    let far = Far::new();
    // An address of this test's own, so that a port that is free stays free.
    let at = TcpListener::bind("127.0.4.9:0").unwrap().local_addr().unwrap();
    let (ip, port) = (at.ip().to_string(), at.port().to_string());
    let folder = far.folder.path().display().to_string();
    let server = ["redis-server", "--port", &port, "--bind", &ip, "--save", "", "--dir", &folder];
    let mut run = Ended(far.run("8 MiB", &server).stdout(Stdio::null()).spawn().unwrap());
    let mut stream = None;
    assert!(wait_until(LIMIT, || {
        stream = TcpStream::connect(at).ok();
        stream.is_some()
    }));
    let mut requests = stream.unwrap();
    let mut answers = BufReader::new(requests.try_clone().unwrap());
    let mut line = || {
        let mut line = String::new();
        answers.read_line(&mut line).unwrap();
        line
    };
    let ask = |requests: &mut TcpStream, words: &[&[u8]]| {
        let mut request = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            request.extend(format!("${}\r\n", word.len()).bytes());
            request.extend(*word);
            request.extend(b"\r\n");
        }
        requests.write_all(&request).unwrap();
    };
    for number in 0..VALUES {
        ask(&mut requests, &[b"SET", number.to_string().as_bytes(), &value(number)]);
        assert_eq!(line(), "+OK\r\n");
    }
    for number in (0..VALUES).rev() {
        ask(&mut requests, &[b"GET", number.to_string().as_bytes()]);
        let mut header = String::new();
        answers.read_line(&mut header).unwrap();
        assert_eq!(header, "$4096\r\n");
        let mut got = vec![0; 4_098];
        answers.read_exact(&mut got).unwrap();
        assert!(got[..4_096] == value(number), "value {number}");
    }
    if have("redis-benchmark", "redis-tools") {
        let bench =
            ["-h", &ip, "-p", &port, "-t", "set,get", "-n", "2000", "-r", "2000", "-d", "1024", "-P", "16"];
        let output = Command::new("redis-benchmark").args(bench).arg("--csv").output().unwrap();
        let table = stdout(&output);
        assert!(output.status.success(), "{}", said(&output));
        for operation in ["\"SET\",", "\"GET\","] {
            let rate = table.lines().find_map(|line| line.strip_prefix(operation)).unwrap_or_default();
            let rate: f64 = rate.split('"').nth(1).and_then(|rate| rate.parse().ok()).unwrap_or_default();
            assert!(rate > 1.0, "{operation} {table}");
        }
    }
    ask(&mut requests, &[b"SHUTDOWN", b"NOSAVE"]);
    assert_eq!(run.0.wait().unwrap().code(), Some(0));
    let figures = far.figures();
    let number = |name: &str| figures[name].as_u64().unwrap();
    // Four times as much as is local.
    assert!(number("in_use_max_bytes") > 32 << 20 && number("local_max_bytes") <= 8 << 20, "{figures}");
    assert!(number("filled") > 1_000 && number("fetched_bytes") > 1 << 20, "{figures}");
}

/// The interpreter itself: `python3` may be a script that executes it.
fn python() -> Option<String> {
    if !have("python3", "python3") {
        return None;
    }
    let asked = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output().unwrap();
    Some(stdout(&asked).trim().to_owned())
}

#[test]
fn python_runs_in_far_memory() {
    const PROGRAM: &str = "
import subprocess, threading
words = {str(n): [n] * 20 for n in range(60000)}
large = [bytes([n % 251]) * 200000 for n in range(100)]
assert all(words[str(n)][19] == n for n in range(60000))
assert all(one.count(one[:1]) == 200000 for one in large)
def sort():
    numbers = [(n * 7919) % 100003 for n in range(100003)]
    numbers.sort()
    assert numbers == list(range(100003))
threads = [threading.Thread(target=sort) for _ in range(4)]
[one.start() for one in threads]
[one.join() for one in threads]
assert subprocess.run(['sh', '-c', 'echo $LD_PRELOAD.'], capture_output=True).stdout == b'.\\n'
print('as computed')
";
    let Some(python) = python().filter(|_| can_run()) else { return };
    let far = Far::new();
    let options = ["--way", "local", "--local", "16 MiB", "--reserve", "256 MiB"];
    let output = far.run_with(&options, &[&python, "-c", PROGRAM]).output().unwrap();
    assert_eq!(stdout(&output), "as computed\n", "{}", said(&output));
    let figures = far.figures();
    let number = |name: &str| figures[name].as_u64().unwrap();
    assert!(
        number("in_use_max_bytes") > 40 << 20 && number("filled") > 0 && number("mappings") > 10,
        "{figures}"
    );
    let dictionary = repo("examples/far/dictionary.py").display().to_string();
    let output = far.run_with(&options, &[&python, &dictionary, "20000", "80"]).output().unwrap();
    assert!(stdout(&output).starts_with("built in "), "{}", said(&output));
    assert!(far.figures()["filled"].as_u64().unwrap() > 0);
    let has_tests = Command::new(&python).args(["-c", "import test.test_list"]).output().unwrap();
    if !has_tests.status.success() {
        return skip("Python's own tests", "sudo apt-get install libpython3-testsuite");
    }
    let tests = [&python, "-m", "test", "test_list", "test_array"];
    let output = far.run_with(&options, &tests).current_dir(far.folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
}

#[test]
fn programs_with_far_memory_are_watched() {
    if !can_run() {
        return;
    }
    let far = Far::new();
    let program = far.compiled(&[]);
    let top = |more: &[&str]| far.command().args(["top", "--every", "0.2"]).args(more).output().unwrap();
    assert!(stdout(&top(&[])).starts_with("no program has far memory"));
    let mut run = started(&mut far.run("4 MiB", &[&program, "wait"]));
    let pid = run.0.id().to_string();
    let mut shown = Value::Null;
    // The program's figures are written ten times a second: the first look may be older than its faults.
    assert!(wait_until(LIMIT, || {
        shown = serde_json::from_slice(&top(&["--json", "--pid", &pid]).stdout).unwrap_or_default();
        shown["programs"][0]["faults_per_s"].as_f64().is_some_and(|rate| rate > 0.0)
    }));
    // Other files in the folder don't hide it.
    let folder = far.path("p4rack");
    std::fs::write(folder.join("0.new"), "of a command that was killed").unwrap();
    let other = std::fs::File::create(folder.join("1\u{1b}.far")).unwrap();
    other.lock_shared().unwrap();
    let beside = top(&["--json"]);
    assert_eq!(serde_json::from_slice::<Value>(&beside.stdout).unwrap()["programs"][0]["program"], "program");
    let words = stderr(&beside);
    assert!(words.contains("warning: ") && words.contains("not figures of far memory; skipped"), "{words}");
    assert!(!words.contains('\u{1b}') && !folder.join("0.new").exists(), "{words}");
    drop(other);
    let one = &shown["programs"][0];
    assert_eq!((&one["program"], &one["way"]), (&"program".into(), &"local".into()), "{shown}");
    assert!(one["local_bytes"].as_u64() <= one["local_limit_bytes"].as_u64(), "{shown}");
    assert!(one["in_use_bytes"].as_u64().unwrap() >= 8 << 20, "{shown}");
    let table = stdout(&top(&["--pid", "program"]));
    assert!(table.contains("faults/s") && table.contains("program"), "{table}");
    let other = top(&["--pid", "1"]);
    assert!(!other.status.success() && stderr(&other).contains("--pid: no program"), "{}", said(&other));
    // A command that is killed leaves a file, which the next look removes once the program has ended too.
    let program = one["pid"].as_u64().unwrap();
    let kill = format!("kill -9 {pid} {program}");
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    run.0.wait().unwrap();
    assert!(wait_until(LIMIT, || stdout(&top(&[])).starts_with("no program has far memory")));
    assert!(!far.path("p4rack").join(format!("{pid}.far")).exists());
}

#[test]
fn redis_is_compared_in_near_memory_in_far_memory_with_swap_and_beside_a_region() {
    if !can_run() || !have("redis-server", "redis-server") {
        return;
    }
    let far = Far::new();
    let load = ["--records", "3000", "--operations", "3000", "--mix", "A", "--local", "50"];
    let bench = far.command().arg("bench").args(load).arg("--json").output().unwrap();
    assert!(bench.status.success(), "{}", said(&bench));
    let all: Value = serde_json::from_slice(&bench.stdout).unwrap();
    let rows = all["rows"].as_array().unwrap();
    let of = |system: &str, percent: u64| {
        let is_it = |row: &&Value| row["system"] == system && row["local_percent"] == percent;
        rows.iter().find(is_it).unwrap_or_else(|| panic!("{system}: {all:#}"))
    };
    let moved = |row: &Value| [0, 1].map(|way| row["moved_bytes"][way].as_u64().unwrap());
    assert_eq!((&rows[0]["system"], &rows[0]["moved_bytes"]), (&"near memory".into(), &Value::Null));
    assert_eq!(moved(of("far run", 100)), [0, 0], "{all:#}");
    assert_eq!(moved(of("region", 100))[1], 0, "all has room: {all:#}");
    for system in ["far run", "region"] {
        let row = of(system, 50);
        assert!(moved(row).iter().all(|bytes| *bytes > 1 << 18), "{all:#}");
        assert!(row["per_s"].as_f64().unwrap() > 0.0 && row["p99_us"].as_f64() >= row["p50_us"].as_f64());
    }
    // Swap was measured, or the output says what it needs.
    let swap = rows.last().unwrap();
    assert_eq!(swap["system"], "swap to zram");
    match swap["skipped"].as_str() {
        Some(needs) => assert!(needs.contains("get it by"), "{needs}"),
        None => {
            assert!(swap["load_moved_bytes"][1].as_u64().unwrap() > 1 << 18, "{all:#}");
            assert!(swap["limit_bytes"].as_u64() > swap["local_bytes"].as_u64(), "{all:#}");
        }
    }
}

#[test]
fn what_cannot_have_far_memory_is_refused() {
    if !can_run() {
        return;
    }
    let far = Far::new();
    let program = far.compiled(&[]);
    let refusal = |options: &[&str], program: &[&str]| {
        let output = far.run_with(options, program).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        assert_eq!(stdout(&output), "");
        stderr(&output)
    };
    let local = ["--way", "local", "--local", "4 MiB"];
    // Programs.
    let of = |name: &Path| refusal(&local, &[name.to_str().unwrap(), "exit", "0"]);
    assert!(
        refusal(&local, &["no-such-program"])
            .contains("no-such-program: no folder of PATH has such a program")
    );
    assert!(of(Path::new("/nowhere/program")).contains("/nowhere/program: No such file"));
    let changed = |name: &str, mode: u32, change: &dyn Fn(&mut Vec<u8>)| {
        let (mut bytes, path) = (std::fs::read(&program).unwrap(), far.path(name));
        change(&mut bytes);
        std::fs::write(&path, bytes).unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        of(&path)
    };
    assert!(changed("plain", 0o644, &|_| {}).contains("not an executable file"));
    assert!(changed("set-uid", 0o4755, &|_| {}).contains("it is set-uid or set-gid"));
    assert!(
        changed("narrow", 0o755, &|bytes| bytes[4] = 1).contains("a program of 32 bits; expected one of 64")
    );
    assert!(
        changed("text", 0o755, &|bytes| *bytes = b"hello".to_vec())
            .contains("neither an ELF program nor a script")
    );
    let odd = changed("script", 0o755, &|bytes| *bytes = b"#!/usr/bin/env -S sh -e\n".to_vec());
    assert!(odd.contains("options to env"), "{odd}");
    let long = changed("long", 0o755, &|bytes| *bytes = [b"#!/bin/sh -", [b'x'; 300].as_slice()].concat());
    assert!(long.contains("first line is longer than the kernel's limit"), "{long}");
    // The compiler names its path only if there is one.
    let archive = Command::new("cc").arg("-print-file-name=libc.a").output().unwrap();
    if stdout(&archive).contains('/') {
        let linked = far.compiled(&["-static"]);
        assert!(refusal(&local, &[&linked]).contains("statically linked: no library can be loaded with it"));
    } else {
        skip("libc.a, the C library's archive", "sudo apt-get install libc6-dev");
    }
    // Memory.
    let run = |options: &[&str]| refusal(options, &["true"]);
    assert!(run(&["--way", "local", "--local", "64 KiB"]).contains("expected at least"));
    let small = run(&["--way", "local", "--local", "4 MiB", "--reserve", "1 MiB"]);
    assert!(small.contains("has 1048576 bytes, and local memory may take 4194304"), "{small}");
    assert!(run(&["--way", "tcp", "--local", "4 MiB"]).contains("name a rack description"));
    let rack = repo("examples/two-hosts.toml").display().to_string();
    let away = run(&[&rack, "--at", "h2", "--way", "tcp", "--memory", "127.0.0.1:1", "--local", "4 MiB"]);
    assert!(away.contains("far memory by tcp from h2: 127.0.0.1:1: Connection refused"), "{away}");
    // A pool that ends as the program starts: it accepts, and is gone.
    let pool = TcpListener::bind("127.0.4.10:0").unwrap();
    let at = pool.local_addr().unwrap().to_string();
    pool.set_nonblocking(true).unwrap();
    let died = std::thread::scope(|scope| {
        let asked =
            scope.spawn(|| run(&[&rack, "--at", "h2", "--way", "tcp", "--memory", &at, "--local", "4 MiB"]));
        assert!(wait_until(LIMIT, || pool.accept().is_ok()), "{}", asked.join().unwrap());
        drop(pool);
        asked.join().unwrap()
    });
    assert!(
        died.contains(&format!("far memory by tcp from h2: {at}: the server of bytes has ended")),
        "{died}"
    );
    assert!(
        run(&[&rack, "--at", "h9", "--way", "tcp", "--local", "4 MiB"])
            .contains("--at: no host is called `h9`")
    );
    assert!(run(&[&rack, "--way", "tcp", "--local", "4 MiB"]).contains("--at: name the host"));
    assert!(run(&[&local[..], &["--min", "1 KiB"]].concat()).contains("--min: 1024 bytes"));
    // The library.
    let absent = far.run("4 MiB", &["true"]).env("P4RACK_FAR_LIBRARY", "/nowhere/far.so").output().unwrap();
    assert!(
        stderr(&absent).contains("P4RACK_FAR_LIBRARY: /nowhere/far.so: No such file"),
        "{}",
        said(&absent)
    );
    let alone = far.path("p4rack-alone");
    std::fs::hard_link(env!("CARGO_BIN_EXE_p4rack"), &alone).unwrap();
    let absent = Command::new(&alone)
        .args(["far", "run", "--way", "local", "--local", "4 MiB", "--", "true"])
        .env_remove("P4RACK_FAR_LIBRARY")
        .output()
        .unwrap();
    assert!(stderr(&absent).contains("cargo build --release -p p4rack-far"), "{}", said(&absent));
}

#[test]
fn without_privileges_the_command_says_what_is_missing() {
    if !can_run() {
        return;
    }
    // A folder that other users can enter.
    let folder = tempfile::tempdir().unwrap();
    let open = |path: &Path| std::fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    open(folder.path());
    let own = folder.path().join("p4rack");
    std::fs::copy(env!("CARGO_BIN_EXE_p4rack"), &own).unwrap();
    open(&own);
    std::fs::write(folder.path().join("libp4rack_far.so"), "").unwrap();
    let mut run = Command::new(&own);
    run.args(["far", "run", "--way", "local", "--local", "4 MiB", "--", "true"]).uid(NOBODY).gid(NOBODY);
    run.current_dir(folder.path()).env_remove("XDG_RUNTIME_DIR").env_remove("P4RACK_FAR_LIBRARY");
    let output = run.output().unwrap();
    // The dynamic linker ignores the empty file.
    if output.status.success() {
        return skip(
            "a kernel that denies userfaultfd to users",
            "sudo sysctl vm.unprivileged_userfaultfd=0",
        );
    }
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let words = stderr(&output);
    assert!(words.contains("userfaultfd") && words.contains("vm.unprivileged_userfaultfd"), "{words}");
}
