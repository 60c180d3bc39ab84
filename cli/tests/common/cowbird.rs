//! A compute node that works while its servers are killed again and again.

use super::switch::Running;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Operations of all threads together: `P4RACK_OPERATIONS` if it is set.
pub fn operations(otherwise: u64) -> u64 {
    let asked = std::env::var("P4RACK_OPERATIONS");
    asked.map_or(otherwise, |count| count.parse().expect("P4RACK_OPERATIONS is a number"))
}

/// Runs `p4rack cowbird verify --json` to its end and calls `kill` with the number of calls before, `period` after another
/// engine serves and at most ten of them apart. Panics unless all that was asked for was done, and was right. Returns how many
/// engines served, and how many calls there were.
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
    let (out, mut err) = (node.0.stdout.take().expect("piped"), node.0.stderr.take().expect("piped"));
    // Each line is an event. It reports whenever another engine serves, and in the last line all that was done.
    let served = Arc::new(AtomicU64::new(0));
    let serves = Arc::clone(&served);
    let told = std::thread::spawn(move || {
        let mut told = String::new();
        for line in BufReader::new(out).lines() {
            let line = line?;
            serves.fetch_add(u64::from(line.contains("\"state\":\"served\"")), Ordering::Relaxed);
            told = line;
        }
        std::io::Result::Ok(told)
    });
    let (mut kills, mut before, mut since) = (0, 0, Instant::now());
    let ended = loop {
        std::thread::sleep(period);
        if let Some(ended) = node.0.try_wait().expect("a child") {
            break ended;
        }
        // A slow machine gets time to recover. The engine that was killed may not have been the serving one.
        if served.load(Ordering::Relaxed) == before && since.elapsed() < 10 * period {
            continue;
        }
        before = served.load(Ordering::Relaxed);
        kill(kills);
        since = Instant::now();
        kills += 1;
    };
    let (told, mut error) = (told.join().expect("no panic").expect("text"), String::new());
    err.read_to_string(&mut error).expect("text");
    assert!(ended.success(), "{error}");
    // Lines are events; the last one reports.
    let report: Value = serde_json::from_str(&told).expect("JSON");
    // For records of long runs.
    println!("{report}, {kills} kills");
    for thread in report["threads"].as_array().expect("threads") {
        let of = |name: &str| thread[name].as_u64().expect("a count");
        // In the end each record is read once more.
        assert_eq!(of("reads") + of("writes"), operations / threads + (16 << 10) / 64, "{report}");
    }
    (report["engines"].as_u64().expect("a count"), kills)
}
