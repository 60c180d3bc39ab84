//! Commands report promptly that standard output is full or closed, or that a file can't be written.

mod common;

use common::switch::{free_addr, switch};
use common::{p4rack, repo, stderr, stdout};
use p4rack_codegen::scheme::l2::DROPS;
use p4rack_wire::Nanos;
use p4rack_wire::pcap::Writer;
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Commands that aren't run here, and where they are or why they need not be.
const ELSEWHERE: [&str; 17] = [
    "up",      // tests/up.rs
    "exec",    // becomes the command that it runs
    "down",    // tests/kept.rs
    "switch",  // goes on without its reader: see `a_daemon_goes_on`
    "host",    // the same
    "gateway", // the same
    "memory",  // tests/memory.rs
    "roce",    // tests/roce.rs
    "cowbird", // tests/cowbird.rs
    "clio",    // tests/clio_commands.rs
    "balloon", // tests/balloon.rs
    "far",     // tests/far.rs
    "lab",     // tests/topologies.rs
    "mininet", // its output is Python's
    "compat",  // tests/compat.rs
    "queue",   // tests/bfruntime.rs
    "help",
];

/// Files that the commands read.
struct Inputs {
    folder: tempfile::TempDir,
}

impl Inputs {
    fn new() -> Inputs {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let put =
            |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).expect("written");
        let mut capture = Writer::default();
        capture.add(Nanos(1), &[1, 0, 0, 0]);
        put("in.pcap", capture.bytes());
        put("in.lackey", b" L 04222c18,8\n S 0421c7cc,4\n");
        put("case.stf", b"packet 0 00001234\n");
        put(
            "short.toml",
            b"name = \"short\"\nduration_us = 60\nwarmup_us = 10\n[rack]\nhosts = 3\n[scheme]\nkind = \"l2\"\n\
              [[traffic]]\nname = \"incast\"\npattern = \"incast\"\nsenders = [\"h2\"]\nsize = 6000\narrivals = \"saturate\"\n",
        );
        put("sweep.toml", b"name = \"few\"\nbase = \"short.toml\"\nseeds = [1, 2]\n");
        Inputs { folder }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }
}

/// Command lines that need nothing but files, all of which print something.
fn alone(inputs: &Inputs) -> Vec<Vec<String>> {
    let rack = repo("examples/pl2-incast.toml").display().to_string();
    let topology = repo("examples/leaf-spine/leaf-spine.toml").display().to_string();
    let program = repo("tests/stf/table_hit_miss.p4").display().to_string();
    let lpm = repo("tests/stf/table_lpm.p4").display().to_string();
    let at = |name: &str| inputs.path(name);
    let capture = format!("0={}", at("in.pcap"));
    let line = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    vec![
        line(&["--help"]),
        line(&["sim", "run", "--help"]),
        line(&["--version"]),
        line(&["commands"]),
        line(&["trace", "show", &at("in.lackey")]),
        line(&["cache", "policies"]),
        line(&["rack", "check", &rack]),
        line(&["rack", "check", &rack, "--json"]),
        line(&["rack", "schema"]),
        line(&["generate", &rack, "-o", &at("generated")]),
        line(&["generate", &rack, "-o", &at("generated"), "--json"]),
        line(&["generate", &topology, "-o", &at("generated")]),
        line(&["p4", "check", &program]),
        line(&["p4", "check", &program, "--json"]),
        line(&["p4", "info", &program]),
        line(&["p4", "info", &program, "--format", "binary"]),
        line(&["p4", "preprocess", &program]),
        line(&["p4", "stf", &lpm, &at("case.stf")]),
        line(&["p4", "run", &program, "--in", &capture, "--out-dir", &at("out")]),
        line(&["p4", "run", &program, "--in", &capture, "--out-dir", &at("out"), "--trace"]),
        line(&["p4", "run", &program, "--in", &capture, "--out-dir", &at("out"), "--trace=json"]),
        line(&["sim", "run", &at("short.toml")]),
        line(&["sim", "run", &at("short.toml"), "--json"]),
        line(&["sim", "sweep", &at("sweep.toml"), "--out-dir", &at("sweep"), "--list"]),
        line(&["sim", "sweep", &at("sweep.toml"), "--out-dir", &at("sweep")]),
        line(&["sim", "merge", &at("sweep")]),
        line(&["sim", "report", &at("sweep")]),
        line(&["bench", "timers", "--seconds", "0.01", "--json"]),
        line(&["doctor"]),
        line(&["doctor", "--json"]),
        line(&["completions", "bash"]),
    ]
}

/// Command lines on a switch that holds the example's program.
fn on_a_switch(addr: &str) -> Vec<Vec<String>> {
    let rack = repo("examples/pl2-incast.toml").display().to_string();
    let mut lines = Vec::new();
    for words in [
        &["deploy", &rack][..],
        &["deploy", &rack, "--dry-run", "--json"],
        &["table", "list"],
        &["table", "read"],
        &["table", "read", "--json"],
        &["table", "watch", "l2_forward"],
        &[
            "table",
            "insert",
            "l2_forward",
            "dstAddr=0x77",
            "--action",
            "forward",
            "port=3",
            "slot=1",
            "drop_threshold=4",
            "cells=0",
        ],
        &["counter", "list"],
        &["counter", "read", DROPS],
        &["meter", "list"],
        &["register", "list"],
        &["group", "list"],
        &["digest", "list", "--json"],
        &["packet", "list"],
        &["generator", "list", "--json"],
        &["pl2", "read", &rack],
        &["top", "--once", "--every", "0.05"],
    ] {
        let words = words.iter().copied().chain(["--grpc-addr", addr]);
        lines.push(words.map(str::to_owned).collect());
    }
    lines
}

fn to(words: &[String], output: impl Into<Stdio>) -> Output {
    p4rack().args(words).stdout(output).output().expect("p4rack starts")
}

fn full() -> File {
    OpenOptions::new().write(true).open("/dev/full").expect("the kernel has it")
}

/// The writing end of a pipe whose reading end is closed.
fn closed() -> std::io::PipeWriter {
    std::io::pipe().expect("a pipe").1
}

fn is_told(words: &[String]) {
    let output = to(words, full());
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{words:?}: {said}");
    assert!(said.contains("error: standard output: No space left on device\n"), "{words:?}: {said}");
    assert!(!said.contains("panicked"), "{words:?}: {said}");
}

fn ends_quietly(words: &[String]) {
    let output = to(words, closed());
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(141), "{words:?}: {said}");
    assert!(!said.contains("panicked") && !said.contains("roken pipe"), "{words:?}: {said}");
}

#[test]
fn what_a_full_or_closed_output_loses_is_told() {
    let inputs = Inputs::new();
    for words in alone(&inputs) {
        is_told(&words);
        ends_quietly(&words);
    }
}

#[test]
fn what_a_full_or_closed_output_loses_is_told_by_the_commands_on_a_switch() {
    let addr = free_addr();
    let _switch = switch(&addr, &[]);
    let rack = repo("examples/pl2-incast.toml").display().to_string();
    let deployed = p4rack().args(["deploy", &rack, "--grpc-addr", &addr]).output().expect("p4rack starts");
    assert!(deployed.status.success(), "{}", stderr(&deployed));
    for words in on_a_switch(&addr) {
        if words[1] == "insert" {
            // A second one would be refused for another reason.
            is_told(&words);
        } else {
            is_told(&words);
            ends_quietly(&words);
        }
    }
}

/// A command that is added has its place in one of the lists.
#[test]
fn no_command_is_forgotten() {
    let help = stdout(&p4rack().arg("--help").output().expect("p4rack starts"));
    let listed =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let listed: BTreeSet<String> = listed
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next().map(str::to_owned))
        .collect();
    assert!(listed.len() > 20, "{help}");
    let inputs = Inputs::new();
    let lines = alone(&inputs).into_iter().chain(on_a_switch("127.0.0.1:1"));
    let mut known: BTreeSet<String> = lines.map(|words| words[0].clone()).collect();
    known.extend(ELSEWHERE.map(str::to_owned));
    let forgotten: Vec<_> = listed.difference(&known).collect();
    assert!(forgotten.is_empty(), "{forgotten:?}");
}

#[test]
fn a_daemon_goes_on_without_its_reader() {
    let addr = free_addr();
    let mut command = p4rack();
    command.args(["switch", "run", "--no-p4", "--grpc-server-addr", &addr]);
    for output in [Stdio::from(closed()), full().into()] {
        let mut switch = command.stdout(output).stderr(Stdio::null()).spawn().expect("p4rack starts");
        let listens = || std::net::TcpStream::connect(&addr).is_ok();
        let up = common::wait_until(Duration::from_secs(10), listens);
        std::thread::sleep(Duration::from_millis(100));
        let lives = switch.try_wait().expect("ours").is_none();
        let _ = switch.kill();
        let _ = switch.wait();
        assert!(up && lives);
    }
}

/// Runs it with an output that can't be made; it must say so by the option's name before it does anything.
fn refuses(words: &[&str], option: &str) {
    let started = Instant::now();
    let output = p4rack().args(words).output().expect("p4rack starts");
    let said = stderr(&output);
    assert!(matches!(output.status.code(), Some(1 | 2)), "{words:?}: {said}");
    assert!(
        said.starts_with(&format!("error: {option}: ")) || said.starts_with(&format!("{option}: ")),
        "{words:?}: {said}"
    );
    assert!(started.elapsed() < Duration::from_secs(5), "{words:?}");
    assert_eq!(stdout(&output), "", "{words:?}");
}

#[test]
fn files_and_folders_that_cannot_be_written_are_refused_before_the_work() {
    let inputs = Inputs::new();
    let rack = repo("examples/pl2-incast.toml").display().to_string();
    let program = repo("tests/stf/table_hit_miss.p4").display().to_string();
    let (experiment, sweep) = (inputs.path("short.toml"), inputs.path("sweep.toml"));
    let capture = format!("0={}", inputs.path("in.pcap"));
    let (file, dir) = ("/nonexistent/x.json", inputs.path("in.pcap"));
    let with = |option: &str, value: &str| format!("{option}={value}");
    refuses(&["up", &rack, &with("--json", file)], "--json");
    refuses(&["up", &rack, "--html", file], "--html");
    refuses(&["up", &rack, "--pcap", &dir], "--pcap");
    refuses(&["up", &rack, "--keep", "--pcap", &dir], "--pcap");
    refuses(&["sim", "run", &experiment, &with("--json", file)], "--json");
    refuses(&["sim", "run", &experiment, "--pcap", "h1", "--out-dir", &dir], "--out-dir");
    refuses(&["sim", "sweep", &sweep, "--out-dir", &dir], "--out-dir");
    refuses(&["sim", "merge", inputs.folder.path().to_str().expect("text"), "--csv", file], "--csv");
    refuses(&["sim", "report", inputs.folder.path().to_str().expect("text"), "--output", file], "--output");
    refuses(&["p4", "run", &program, "--in", &capture, "--out-dir", &dir], "--out-dir");
    refuses(&["p4", "info", &program, "-o", file], "--output");
    refuses(&["p4", "preprocess", &program, "-o", file], "--output");
    refuses(&["generate", &rack, "-o", &dir], "--output");
    refuses(&["switch", "run", "--no-p4", "--stats", file], "--stats");
    refuses(&["switch", "run", "--no-p4", &with("--pcap", &dir)], "--pcap");
    refuses(&["host", "run", &rack, "--name", "h1", "--stats", file], "--stats");
    let memory = repo("examples/edm-kv.toml").display().to_string();
    refuses(&["memory", "serve", &memory, "--name", "h1", "--bytes", "8", "--stats", file], "--stats");
    refuses(
        &["memory", "read", &memory, "--name", "h2", "--at", "h1", "--bytes", "8", "-o", file],
        "--output",
    );
    refuses(&["bench", "p4runtime", "--write-program", file], "--write-program");
    refuses(&["rack", "import", &dir, "-o", file], "--output");
    refuses(&["rack", "import-entries", &dir, "--p4info", &dir, "-o", file], "--output");
    assert!(Path::new(&dir).is_file(), "what was there is there");
}

#[test]
fn a_sweep_is_no_experiment_and_an_action_is_no_key() {
    let inputs = Inputs::new();
    let output = p4rack().args(["sim", "run", &inputs.path("sweep.toml")]).output().expect("p4rack starts");
    assert!(stderr(&output).contains("p4rack sim sweep"), "{}", stderr(&output));
    let words = ["table", "insert", "t", "dst=1", "I.fwd", "port=2"];
    let output = Command::new(env!("CARGO_BIN_EXE_p4rack")).args(words).output().expect("p4rack starts");
    assert!(stderr(&output).contains("--action I.fwd port=2"), "{}", stderr(&output));
}
