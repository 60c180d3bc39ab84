//! `[[hostile]]` on racks of generated EDM programs: nodes that break the rules, and how the others fare.

use super::message::{Message, Shown};
use super::spec::{HostileNodeSpec, MemorySpec};
use crate::experiment::{Check, NO_ATTACK};
use crate::hostile::OthersOutcome;
use crate::latency::Latency;
use p4rack_fabric::hostile::edm::Attack;
use p4rack_wire::Histogram;
use std::collections::BTreeMap;
use std::ops::Range;

/// Checks them.
pub(super) fn check(spec: &MemorySpec, check: &mut Check<'_>) {
    for (nth, one) in spec.hostile.iter().enumerate() {
        for (key, node) in [("node", one.node), ("victim", one.victim)] {
            if node >= spec.nodes {
                check.problem("hostile", nth, key, format!("{node} is no node; there are {}", spec.nodes));
            }
        }
        if one.node == one.victim {
            check.problem("hostile", nth, "victim", "is the node itself; write another");
        }
        if one.attack != NO_ATTACK
            && let Err(error) = one.attack.parse::<Attack>()
        {
            check.problem("hostile", nth, "attack", format!("{error}, or {NO_ATTACK}"));
        }
        if spec.scheme.mode().is_none() || spec.nodes < 3 || spec.workload.in_flight.is_none() {
            let what = "attacks are on generated programs: write such a scheme, three nodes or more, and \
                        workload.in_flight";
            check.problem("hostile", nth, "node", what);
        }
    }
}

/// Nodes that run an attack: number, attack, victim.
pub(super) fn attackers(spec: &MemorySpec) -> Vec<(u16, Attack, u16)> {
    let attacker = |one: &HostileNodeSpec| Some((one.node, one.attack.parse().ok()?, one.victim));
    spec.hostile.iter().filter_map(attacker).collect()
}

/// Messages without those of nodes that attack instead, and which of them are measured.
pub(super) fn but_attackers(
    spec: &MemorySpec,
    messages: Vec<Message>,
    measured: Range<usize>,
) -> (Vec<Message>, Range<usize>) {
    let attackers = attackers(spec);
    let stays = |message: &Message| attackers.iter().all(|(node, ..)| *node != message.compute);
    let left = |before: usize| messages[..before].iter().filter(|message| stays(message)).count();
    let measured = left(measured.start)..left(measured.end);
    (messages.into_iter().filter(stays).collect(), measured)
}

/// Results of the nodes that are not in `[[hostile]]`; `None` if that is empty.
pub(super) fn others(
    spec: &MemorySpec,
    messages: &[Message],
    shown: &Shown,
    measured: Range<usize>,
) -> Option<OthersOutcome> {
    if spec.hostile.is_empty() {
        return None;
    }
    let mut latency_ns = Histogram::new();
    let mut lost = shown.again;
    // By node: when it began, when it ended, bytes.
    let mut spans: BTreeMap<u16, (u64, u64, u64)> = BTreeMap::new();
    for (message, times) in messages[measured.clone()].iter().zip(&shown.times[measured]) {
        if spec.hostile.iter().any(|one| one.node == message.compute) {
            continue;
        }
        let span = spans.entry(message.compute).or_insert((u64::MAX, 0, 0));
        match times.completion_ps(message) {
            Some(took_ps) => {
                latency_ns.record(took_ps / 1_000);
                let ended_ps = message.at_ps + took_ps;
                *span = (span.0.min(message.at_ps), span.1.max(ended_ps), span.2 + u64::from(message.bytes));
            }
            None => lost += 1,
        }
    }
    let goodput = |(node, (from_ps, until_ps, bytes)): (u16, (u64, u64, u64))| {
        let span_ns = until_ps.saturating_sub(from_ps) as f64 / 1e3;
        (format!("node {node}"), if span_ns > 0.0 { bytes as f64 * 8.0 / span_ns } else { 0.0 })
    };
    Some(OthersOutcome {
        goodput_gbps: spans.into_iter().map(goodput).collect(),
        frames_lost: lost,
        latency_ns: Latency::of(&latency_ns, false),
    })
}
