//! A run of an experiment in a few lines, for golden files.

use p4rack_sim::{Latency, Outcome};
use std::collections::BTreeMap;

/// An experiment's entry in a golden file: its digest, which covers every frame, and figures to read.
pub fn summary(outcome: &Outcome) -> String {
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
