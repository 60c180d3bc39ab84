//! Short experiments of every kind, tests/experiments/, and what each shows, tests/golden.txt.
//!
//! Whatever changes what a rack does, anywhere between the P4 templates and the hosts' machines, changes a digest here.
//! `cargo xtask bless` writes the file anew; its diff says what the change costs or gains.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use p4rack_sim::{Experiment, Latency, Outcome, run};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

/// What the file says of an experiment: its digest, which covers every frame, and figures to read.
fn summary(outcome: &Outcome) -> String {
    let latency = |one: &Latency| format!("p50 {} ns, p99 {} ns, max {} ns", one.p50, one.p99, one.max);
    let counts = |counts: &BTreeMap<String, u64>| match counts.is_empty() {
        true => "none".to_owned(),
        false => counts.iter().map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>().join(", "),
    };
    let switch = &outcome.switch;
    let mut lines = vec![
        format!("{}: digest {}, {} frame-hops", outcome.name, outcome.digest, outcome.frame_hops),
        format!("goodput {:.3} Gb/s, {} frames dropped", outcome.goodput_gbps, outcome.frames_dropped),
        format!(
            "queue at most {} bytes, buffer {} bytes, {} pauses",
            switch.queue_max_bytes, switch.buffer_max_bytes, switch.pauses
        ),
    ];
    for one in &outcome.traffic {
        let (name, made, done, lost) = (&one.name, one.made, one.done, one.lost);
        let again = format!("{} sent again, {} timeouts", one.retransmissions, one.timeouts);
        lines.push(format!("traffic {name}: {made} made, {done} done, {lost} lost, {again}"));
        lines.push(format!("  {:.3} Gb/s, {}", one.goodput_gbps, latency(&one.latency_ns)));
    }
    if outcome.scheme != "l2" {
        let checks = &outcome.checks;
        lines.push(format!("RSV to GRT: {}", latency(&outcome.rsv_grt_ns)));
        lines.push(format!("grants: {}, {} overlapping", checks.grants, checks.overlapping_grants));
        lines.push(format!("hosts counted: {}", counts(&outcome.host_counters)));
    }
    for (by, drops) in [
        ("switch", &switch.drops),
        ("program", &switch.program_drops),
        ("hosts", &outcome.host_drops),
        ("links", &BTreeMap::from([("lost".to_owned(), outcome.link_losses)])),
    ] {
        if drops.values().any(|count| *count > 0) {
            lines.push(format!("drops, {by}: {}", counts(drops)));
        }
    }
    for (what, frames) in [("demoted", &switch.demoted), ("not now", &switch.refused)] {
        if !frames.is_empty() {
            lines.push(format!("{what}: {}", counts(frames)));
        }
    }
    for (at_us, sender, destination) in &outcome.resets {
        lines.push(format!("taken back at {at_us} us: {sender} to {destination}"));
    }
    lines.extend(outcome.problems.iter().map(|problem| format!("problem: {problem}")));
    lines.join("\n    ") + "\n"
}

#[test]
fn experiments_show_what_they_showed() {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(tests().join("experiments")).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    let mut shown = String::new();
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap();
        let experiment = Experiment::parse(&text, &path.display().to_string());
        let experiment = experiment.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(Some(experiment.spec.name.as_str()), path.file_stem().unwrap().to_str(), "names its file");
        let (outcome, _) =
            run(&experiment, None).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        shown += &summary(&outcome);
    }
    let golden = tests().join("golden.txt");
    if std::env::var_os("P4RACK_BLESS").is_some() {
        return std::fs::write(&golden, &shown).unwrap();
    }
    let before = std::fs::read_to_string(&golden).unwrap_or_default();
    let differs = changed(&before, &shown);
    assert!(
        differs.is_empty() && before == shown,
        "experiments show something else than tests/golden.txt:\n{}\nIf that is meant, run `cargo xtask bless` \
         and read the diff.",
        differs.join("\n")
    );
}

/// Lines that one of two summaries has and the other has not, under the experiment's first line.
fn changed(before: &str, after: &str) -> Vec<String> {
    let blocks = |text: &str| -> BTreeMap<String, Vec<String>> {
        let mut blocks = BTreeMap::new();
        let mut name = String::new();
        for line in text.lines() {
            if !line.starts_with(' ') {
                name = line.split(':').next().unwrap_or_default().to_owned();
            }
            blocks.entry(name.clone()).or_insert_with(Vec::new).push(line.trim().to_owned());
        }
        blocks
    };
    let (before, after) = (blocks(before), blocks(after));
    let none = Vec::new();
    let names: std::collections::BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let mut lines = Vec::new();
    for name in names {
        let (old, new) = (before.get(name).unwrap_or(&none), after.get(name).unwrap_or(&none));
        if old != new {
            lines.push(format!("{name}:"));
            lines.extend(old.iter().filter(|line| !new.contains(line)).map(|line| format!("  - {line}")));
            lines.extend(new.iter().filter(|line| !old.contains(line)).map(|line| format!("  + {line}")));
        }
    }
    lines
}
