//! A compute node that works while what it depends on is killed again and again.

use super::switch::Running;
use serde_json::Value;
use std::io::Read;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Operations of all threads together: `P4RACK_OPERATIONS`, or so many.
pub fn operations(otherwise: u64) -> u64 {
    let asked = std::env::var("P4RACK_OPERATIONS");
    asked.map_or(otherwise, |count| count.parse().expect("P4RACK_OPERATIONS is a number"))
}

/// Runs `p4rack cowbird verify --json` to its end and calls `kill` every `period`, with the number of calls before. Panics
/// unless all that was asked for was done, and was right. Returns how many engines served, and how many calls there were.
pub fn under_kills(
    verify: &mut Command,
    threads: u64,
    operations: u64,
    period: Duration,
    mut kill: impl FnMut(usize),
) -> (u64, usize) {
    let (each, threads_text) = ((operations / threads).to_string(), threads.to_string());
    verify.args(["--threads", &threads_text, "--operations", &each, "--memory", "16 KiB", "--bytes", "64"]);
    let mut node = Running(
        verify.arg("--json").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts"),
    );
    let (mut out, mut err) = (node.0.stdout.take().expect("piped"), node.0.stderr.take().expect("piped"));
    // It says whenever another engine serves: somebody has to read that meanwhile.
    let told = std::thread::spawn(move || {
        let mut told = String::new();
        out.read_to_string(&mut told).map(|_| told)
    });
    let mut kills = 0;
    let ended = loop {
        std::thread::sleep(period);
        if let Some(ended) = node.0.try_wait().expect("a child") {
            break ended;
        }
        kill(kills);
        kills += 1;
    };
    let (told, mut error) = (told.join().expect("no panic").expect("text"), String::new());
    err.read_to_string(&mut error).expect("text");
    assert!(ended.success(), "{error}");
    let json = told.find('{').expect("a report");
    let report: Value = serde_json::from_str(&told[json..]).expect("JSON");
    // For records of long runs.
    println!("{report}, {kills} kills");
    for thread in report["threads"].as_array().expect("threads") {
        let of = |name: &str| thread[name].as_u64().expect("a count");
        // In the end each record is read once more.
        assert_eq!(of("reads") + of("writes"), operations / threads + (16 << 10) / 64, "{report}");
    }
    (report["engines"].as_u64().expect("a count"), kills)
}
