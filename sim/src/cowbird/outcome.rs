//! Runs an experiment on a Cowbird rack and collects its results.

use super::experiment::{CowbirdExperiment, CowbirdScheme};
use super::nic::Nic;
use super::rack::{COMPUTE, HOSTS, POOL, SPOT};
use super::records::CowbirdPlant;
use super::thread::Thread;
use super::world::{Attacker, CowbirdWorld, Mark};
use crate::hostile::OthersOutcome;
use crate::latency::Latency;
use crate::outcome::{Compared, compared, concerns};
use crate::switch::Model;
use p4rack_switch::DropReason;
use p4rack_wire::{Histogram, Nanos};
use serde::Serialize;
use std::collections::BTreeMap;

/// Results of a run.
#[derive(Clone, Debug, Serialize)]
pub struct CowbirdOutcome {
    /// Name of the experiment.
    pub name: String,
    /// Scheme.
    pub scheme: String,
    /// Seed.
    pub seed: u64,
    /// Threads of the compute node.
    pub threads: u16,
    /// Bytes of a record.
    pub record_bytes: u32,
    /// Duration of the measurement in seconds.
    pub measured_s: f64,
    /// Probes that ended during the measurement.
    pub probes: u64,
    /// Of these, probes of remote records.
    pub remote: u64,
    /// Million probes per second of all threads.
    pub mops: f64,
    /// Latency of a remote record, from the request to the arrival at the thread.
    pub latency_ns: Latency,
    /// Share of a thread's time in calls for remote memory: posting, issuing, polling, and waiting in them.
    pub communication_share: f64,
    /// Of that, polls without result.
    pub waiting_share: f64,
    /// A thread's time in calls for remote memory without waiting, for each remote record; none without remote records.
    pub communication_ns: Option<f64>,
    /// Payload of remote records.
    pub remote_gbps: f64,
    /// Load of the hosts' links during the measurement, with preamble, gap and FCS, as a share of the rate.
    pub links: BTreeMap<String, LinkShare>,
    /// The largest of these shares.
    pub fullest_link: f64,
    /// Share of time that the spare host's cores, or I/O threads, spent in rounds with work; none without them.
    pub engine_share: Option<f64>,
    /// Goodput of competing TCP flows; none without them.
    pub competing_gbps: Option<f64>,
    /// Results of the first compute node's threads, if the file has `[[hostile]]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub others: Option<OthersOutcome>,
    /// Requests of a hostile host's rings that the engine completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hostile_requests: Option<u64>,
    /// Records with wrong content.
    pub wrong: u64,
    /// Remote probes that never ended.
    pub lost: u64,
    /// Requests that failed or were wrongly refused.
    pub failed: u64,
    /// Frames that links lost.
    pub lost_frames: u64,
    /// Packets that adapters retransmitted.
    pub repeated: u64,
    /// Longest queue of a port of the switch.
    pub queue_max_bytes: u64,
    /// Frames dropped by the switch, by reason.
    pub drops: BTreeMap<String, u64>,
    /// Frames that came to the switch.
    pub frame_hops: u64,
    /// Checksum of everything that happened. The same file and seed give the same digest.
    pub digest: String,
    /// Comparison with the paper's figures.
    pub paper: Vec<Compared>,
    /// Checks that failed.
    pub problems: Vec<String>,
}

/// Load of a host's link.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct LinkShare {
    /// From the host.
    pub sent: f64,
    /// To the host.
    pub received: f64,
}

/// Runs an experiment. Errors: the generator or an adapter refuses the rack.
pub fn run_cowbird(experiment: &CowbirdExperiment) -> Result<CowbirdOutcome, String> {
    run_planted(experiment, None)
}

/// The same with a planted mistake, which the checks have to find.
pub fn run_planted(
    experiment: &CowbirdExperiment,
    plant: Option<CowbirdPlant>,
) -> Result<CowbirdOutcome, String> {
    let mut world = CowbirdWorld::new(experiment, plant)?;
    world.run();
    Ok(outcome(experiment, &mut world))
}

fn outcome(experiment: &CowbirdExperiment, world: &mut CowbirdWorld<'_>) -> CowbirdOutcome {
    let spec = &experiment.spec;
    let measured_ns = (spec.duration_us - spec.warmup_us) * 1_000;
    let sum = |of: fn(&Thread) -> u64| world.threads.iter().map(of).sum::<u64>();
    let (probes, remote) = (sum(|thread| thread.tally.probes), sum(|thread| thread.tally.remote));
    let mut latency = Histogram::new();
    world.threads.iter().for_each(|thread| latency.add(&thread.tally.latency));
    let [work, communication, waiting] = [
        sum(|thread| thread.tally.work_ps),
        sum(|thread| thread.tally.communication_ps),
        sum(|thread| thread.tally.waiting_ps),
    ]
    .map(|ps| ps as f64);
    let whole = (work + communication + waiting).max(1.0);
    let stats = world.hub.model.stats(Nanos(world.now_ps / 1_000));
    // A run ends after its last probe, so both totals exist.
    let zero = Mark { sent: [0; HOSTS], received: [0; HOSTS], competing: None, cores_ps: 0 };
    let [before, after] = [0, 1].map(|nth| world.marks.get(nth).copied().unwrap_or(zero));
    let link_bits = measured_ns as f64 / 1e9 * experiment.rate_bps as f64;
    let share = |before: u64, after: u64| after.saturating_sub(before) as f64 * 8.0 / link_bits;
    let link = |host: usize| LinkShare {
        sent: share(before.sent[host], after.sent[host]),
        received: share(before.received[host], after.received[host]),
    };
    let mut links: BTreeMap<String, LinkShare> =
        [("compute", COMPUTE), ("pool", POOL)].map(|(name, host)| (name.to_owned(), link(host))).into();
    if spec.scheme == CowbirdScheme::CowbirdSpot {
        links.insert("spot".to_owned(), link(SPOT));
    }
    let fullest_link = links.values().map(|link| link.sent.max(link.received)).fold(0.0, f64::max);
    let counted =
        world.hub.model.counted().drops.into_iter().map(|(reason, count)| (reason.to_owned(), count));
    let mut drops: BTreeMap<String, u64> = counted.collect();
    // The program counts its drops by its own reasons.
    let others = stats.drops.iter().filter(|(reason, _)| *reason != DropReason::IngressDrop);
    drops.extend(others.map(|(reason, count)| (reason.name().to_owned(), *count)));
    let failed = sum(|thread| thread.tally.failed)
        + world.refused
        + world.io.iter().map(|io| io.failed).sum::<u64>()
        + world.servers.iter().map(|server| server.failed).sum::<u64>();
    let engines = world.cores.len() + world.io.len();
    let mut digest = world.digest;
    [probes, remote, latency.len(), world.now_ps].into_iter().for_each(|number| digest.add(number));
    let mut outcome = CowbirdOutcome {
        name: spec.name.clone(),
        scheme: spec.scheme.name().to_owned(),
        seed: spec.seed,
        threads: spec.threads,
        record_bytes: spec.record_bytes,
        measured_s: measured_ns as f64 / 1e9,
        probes,
        remote,
        mops: probes as f64 * 1e3 / measured_ns as f64,
        latency_ns: Latency::of(&latency, true),
        communication_share: (communication + waiting) / whole,
        waiting_share: waiting / whole,
        communication_ns: (remote > 0).then(|| communication / 1e3 / remote as f64),
        remote_gbps: remote as f64 * f64::from(spec.record_bytes) * 8.0 / measured_ns as f64,
        links,
        fullest_link,
        engine_share: (engines > 0).then(|| {
            let busy_ps = after.cores_ps.saturating_sub(before.cores_ps);
            busy_ps as f64 / 1e3 / engines as f64 / measured_ns as f64
        }),
        competing_gbps: before
            .competing
            .zip(after.competing)
            .map(|(before, after)| (after - before) as f64 * 8.0 / measured_ns as f64),
        others: super::world::others(spec, &world.threads, measured_ns),
        hostile_requests: world.attacker.as_ref().map(Attacker::served),
        wrong: sum(|thread| thread.tally.wrong),
        lost: sum(Thread::outstanding),
        failed,
        lost_frames: world.wires.lost(),
        repeated: world.nics.iter().map(repeated).sum(),
        queue_max_bytes: stats.ports.iter().map(|port| port.queue_max_bytes).max().unwrap_or(0),
        drops,
        frame_hops: world.frame_hops,
        digest: format!("{:016x}", digest.0),
        paper: Vec::new(),
        problems: Vec::new(),
    };
    outcome.problems = problems(&outcome);
    let settings = serde_json::to_value(spec).unwrap_or_default();
    let papers = spec.paper.iter().filter(|paper| concerns(paper, spec.scheme.name(), &settings));
    outcome.paper = compared(&outcome, papers);
    outcome
}

fn repeated(nic: &Nic) -> u64 {
    let pairs = nic.adapter.pairs();
    pairs.filter_map(|qpn| nic.adapter.requester(qpn)).map(|one| one.counters().repeated_out).sum()
}

pub(super) fn problems(outcome: &CowbirdOutcome) -> Vec<String> {
    let mut problems = Vec::new();
    let mut check = |bad: bool, what: String| problems.extend(bad.then_some(what));
    check(outcome.wrong > 0, format!("{} records had a wrong content", outcome.wrong));
    check(outcome.lost > 0, format!("{} remote probes never ended", outcome.lost));
    check(outcome.failed > 0, format!("{} requests failed", outcome.failed));
    check(outcome.probes == 0, "no probe ended".to_owned());
    problems
}
