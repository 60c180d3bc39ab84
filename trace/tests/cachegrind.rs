//! The model of a CPU's caches beside Cachegrind's, for the same program.

// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use p4rack_trace::formats::lackey;
use p4rack_trace::{CpuCache, MODELS, Model};
use std::io::{BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// How far the misses may be from Cachegrind's.
const WITHIN: f64 = 0.01;

/// `sort`, with text whose order has nothing to do with how it is sorted, under a tool of valgrind.
fn sort(text: &Path, tool: &[&str]) -> Command {
    let mut command = Command::new("valgrind");
    command.args(tool).arg("sort").arg(text).env("LC_ALL", "C");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

fn text() -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("to-sort.txt");
    let number = |at: u32| at.wrapping_mul(0x9e37_79b9).rotate_left(13).wrapping_mul(0x85eb_ca6b);
    let lines: String = (0..6_000).map(|at| format!("{:010} {:010}\n", number(at), number(at + 1))).collect();
    std::fs::write(&path, lines).unwrap();
    path
}

/// Accesses to data, and how many of them miss in the first and in the last level, as Cachegrind counts.
#[derive(Debug)]
struct Counts {
    accesses: u64,
    misses: [u64; 2],
}

/// From Cachegrind's summary, such as `==1== D1  misses:        70,141  (   51,442 rd   +  18,699 wr)`.
fn cachegrind(text: &Path, model: &Model) -> Counts {
    let option = |name: &str, (bytes, ways): (u64, usize)| format!("--{name}={bytes},{ways},64");
    let [first, last] = [0, 1].map(|level| model.levels[level]);
    // Instructions stay in a cache of their own, as far as Cachegrind lets them: its last level serves both.
    let caches = [option("I1", (1 << 20, 8)), option("D1", first), option("LL", last)];
    let tool = ["--tool=cachegrind", "--cache-sim=yes", "--cachegrind-out-file=/dev/null"];
    let options: Vec<&str> = tool.into_iter().chain(caches.iter().map(String::as_str)).collect();
    let output = sort(text, &options).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    let count = |name: &str| -> u64 {
        let (_, rest) = said.split_once(name).unwrap_or_else(|| panic!("no {name} in {said}"));
        rest.split('(').next().unwrap().trim().replace(',', "").parse().unwrap()
    };
    Counts { accesses: count("D   refs:"), misses: [count("D1  misses:"), count("LLd misses:")] }
}

/// The model behind the accesses that Lackey prints. An access to two lines misses once.
fn ours(text: &Path, model: &Model) -> Counts {
    let mut child = sort(text, &["--tool=lackey", "--basic-counts=no", "--trace-mem=yes"]).spawn().unwrap();
    let printed = BufReader::new(child.stderr.take().unwrap());
    let (mut cpu, mut counts) = (CpuCache::new(model), Counts { accesses: 0, misses: [0; 2] });
    for access in lackey::Reader::new(printed, "sort") {
        let before = [cpu.misses()[0], cpu.misses()[1]];
        cpu.access(&access.unwrap(), &mut |_| {});
        counts.accesses += 1;
        for (level, before) in before.iter().enumerate() {
            counts.misses[level] += u64::from(cpu.misses()[level] > *before);
        }
    }
    assert!(child.wait().unwrap().success());
    counts
}

#[test]
fn misses_are_those_of_cachegrind() {
    if Command::new("valgrind").arg("--version").stdout(Stdio::null()).status().is_err() {
        // Past the test harness, so that the run counts it.
        let _ =
            writeln!(std::io::stderr(), "skipped: needs valgrind, get it by: sudo apt-get install valgrind");
        return;
    }
    let model = MODELS.iter().find(|model| model.name == "small").unwrap();
    let text = text();
    let (ours, theirs) = (ours(&text, model), cachegrind(&text, model));
    println!("{ours:?} here, {theirs:?} there");
    assert_eq!(ours.accesses, theirs.accesses, "the program did the same");
    for (level, (ours, theirs)) in ours.misses.iter().zip(theirs.misses).enumerate() {
        let off = (*ours as f64 / theirs as f64 - 1.0).abs();
        assert!(off <= WITHIN && theirs > 10_000, "level {level}: {ours} misses, Cachegrind has {theirs}");
    }
}
