//! Results of a run.

use crate::check::Verdict;
use crate::crew::{Alone, Crew};
use crate::experiment::{Arrivals, Experiment, PaperSpec};
use crate::hostile::OthersOutcome;
use crate::latency::Latency;
use crate::record::Recorder;
use crate::scheme::Watch;
use crate::switch::Model;
use crate::traffic::{Traffic, TrafficStats};
use crate::world::{Counts, FrameWorld, Planted, SimError};
use p4rack_codegen::rack::Rack;
use p4rack_fabric::HostMachine as _;
use p4rack_wire::ethernet::overhead::wire_bytes;
use p4rack_wire::{Histogram, Nanos, quantiles};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The results of one run.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// The experiment's name.
    pub name: String,
    /// Its scheme.
    pub scheme: String,
    /// Its seed.
    pub seed: u64,
    /// Simulated time that was measured, seconds.
    pub measured_s: f64,
    /// Payload that arrived at all hosts in that time.
    pub goodput_gbps: f64,
    /// The same at the host that received the most.
    pub goodput_max_host_gbps: f64,
    /// Maximum payload rate of a host's link towards the host; see docs/sim.md.
    pub ceiling_receive_gbps: f64,
    /// The same in the other direction.
    pub ceiling_send_gbps: f64,
    /// Results per traffic.
    pub traffic: Vec<TrafficOutcome>,
    /// From an RSV's start on the wire to its grant's arrival.
    pub rsv_grt_ns: Latency,
    /// Control frames of the protocol.
    pub control: ControlOutcome,
    /// The switch.
    pub switch: SwitchOutcome,
    /// Frames that the hosts dropped, by reason; only reasons that occurred.
    pub host_drops: BTreeMap<String, u64>,
    /// Sums of the counters of the hosts' machines, without those that are zero.
    pub host_counters: BTreeMap<String, u64>,
    /// Reservations of silent senders that the controller took back: microseconds, sender, destination.
    pub resets: Vec<(f64, String, String)>,
    /// Frames lost on links.
    pub link_losses: u64,
    /// Frames lost anywhere over the whole run, without unsolicited ones that are sent again in their slots.
    pub frames_dropped: u64,
    /// Findings of the checks.
    pub checks: Verdict,
    /// Failed checks; empty if all passed.
    pub problems: Vec<String>,
    /// Figures compared with those of a paper.
    pub paper: Vec<Compared>,
    /// Checksum of everything that happened. The same file and seed give the same digest.
    pub digest: String,
    /// Frames that passed the switch.
    pub frame_hops: u64,
    /// If hosts may be hostile: results of the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub others: Option<OthersOutcome>,
}

/// Results of one traffic.
#[derive(Clone, Debug, Serialize)]
pub struct TrafficOutcome {
    /// Its name.
    pub name: String,
    /// Messages created since the warm-up.
    pub made: u64,
    /// Those of them that arrived completely.
    pub done: u64,
    /// Messages that lost a frame.
    pub lost: u64,
    /// Messages refused because too many waited.
    pub refused: u64,
    /// Payload that arrived.
    pub goodput_gbps: f64,
    /// Retransmissions over the whole run.
    pub retransmissions: u64,
    /// Timeouts of the transport.
    pub timeouts: u64,
    /// What `latency` measures: a message, a request with its answer, or a round.
    pub of: &'static str,
    /// Latency.
    pub latency_ns: Latency,
    /// By message size, if sizes differ.
    pub deciles: Vec<Decile>,
}

/// A tenth of the messages by size.
#[derive(Clone, Debug, Serialize)]
pub struct Decile {
    /// Maximum size in it, bytes; none for the last tenth.
    pub up_to_bytes: Option<u64>,
    /// Latency.
    pub latency_ns: Latency,
}

/// Results of the switch.
#[derive(Clone, Debug, Serialize)]
pub struct SwitchOutcome {
    /// Maximum bytes in one port's queues since the warm-up.
    pub queue_max_bytes: u64,
    /// 99.9 % of the time the fullest port held no more than this.
    pub queue_p999_bytes: u64,
    /// Maximum bytes in the shared buffer.
    pub buffer_max_bytes: u64,
    /// Pauses sent to hosts.
    pub pauses: u64,
    /// Drops by the switch itself over the whole run, by reason.
    pub drops: BTreeMap<String, u64>,
    /// Drops by the program over the whole run, by reason.
    pub program_drops: BTreeMap<String, u64>,
    /// Frames sent as best effort because no reservation covers them, over the whole run, by reason.
    pub demoted: BTreeMap<String, u64>,
    /// RSVs answered with "not now" over the whole run, by reason.
    pub refused: BTreeMap<String, u64>,
    /// Depth of the fullest port over time: microseconds, maximum bytes in that interval.
    pub queue_series: Vec<(f64, u64)>,
}

/// Control frames: RSVs towards the switch, grants and their copies towards hosts.
#[derive(Clone, Debug, Serialize)]
pub struct ControlOutcome {
    /// Frames per second from all hosts.
    pub sent_per_s: f64,
    /// The same towards hosts.
    pub received_per_s: f64,
    /// Share of the hosts' links towards the switch that they use.
    pub sent_share: f64,
    /// The same towards hosts.
    pub received_share: f64,
}

impl ControlOutcome {
    /// Rates from frames in both directions and seconds.
    fn of((sent, received): (u64, u64), rack: &Rack, seconds: f64) -> ControlOutcome {
        let rate_bps: u64 = rack.hosts.iter().map(|host| host.rate_bps).sum();
        let per_s = |count: u64| count as f64 / seconds;
        let share = |count: u64| per_s(count) * (wire_bytes(0) * 8) as f64 / rate_bps as f64;
        ControlOutcome {
            sent_per_s: per_s(sent),
            received_per_s: per_s(received),
            sent_share: share(sent),
            received_share: share(received),
        }
    }
}

/// A figure of a paper and the simulated one.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Compared {
    /// Path of the simulated figure in the results.
    pub figure: String,
    /// The paper's figure.
    pub paper: f64,
    /// Whether the paper gives it as a bound.
    pub at_most: bool,
    /// The simulated figure; none if there is no such figure.
    pub ours: Option<f64>,
    /// The simulated figure divided by the paper's.
    pub ratio: Option<f64>,
    /// The paper's words.
    pub source: String,
    /// Why they differ.
    pub why: Option<String>,
}

/// Runs an experiment on one thread, with an optional recorder.
pub fn run(
    experiment: &Experiment,
    recorder: Option<Recorder>,
) -> Result<(Outcome, Option<Recorder>), SimError> {
    run_with_crew(experiment, recorder, &Alone)
}

/// The same with a crew, if the experiment allows it. Experiments with rounds and recorded ones
/// run on one thread.
pub fn run_with_crew(
    experiment: &Experiment,
    recorder: Option<Recorder>,
    crew: &dyn Crew,
) -> Result<(Outcome, Option<Recorder>), SimError> {
    run_with(experiment, recorder, crew, None)
}

pub(crate) fn run_with(
    experiment: &Experiment,
    recorder: Option<Recorder>,
    crew: &dyn Crew,
    planted: Option<Planted>,
) -> Result<(Outcome, Option<Recorder>), SimError> {
    let mut world = FrameWorld::new(experiment.clone(), crew, recorder, planted)?;
    world.run_until(world.plan.sources_end, crew);
    let measured = world.tor.model.stats(world.now);
    let drain = world.plan.sources_end + Nanos::from_micros(experiment.spec.drain_us);
    world.run_until(drain, crew);
    let checks = judge(&mut world, crew);
    let recorder = world.recorder.take().map(|recorder| *recorder);
    let outcome = outcome(&world, measured, checks);
    Ok((outcome, recorder))
}

/// The checks at the end.
fn judge(world: &mut FrameWorld, crew: &dyn Crew) -> Verdict {
    let counts = world.counts();
    let late_frames =
        world.groups.iter().fold(world.tor.inlets.late_frames, |sum, group| sum + group.inlets.late_frames);
    let mut verdict = Verdict { out_of_order: counts.out_of_order, late_frames, ..Verdict::default() };
    world.tor.watcher.judge(&mut verdict);
    let stats = world.tor.model.stats(world.now);
    // Each link.
    for (stats, in_flight) in world.links() {
        let gone = stats.delivered + losses(&stats) + in_flight as u64;
        verdict.unaccounted_frames += (stats.sent + stats.duplicated) as i64 - gone as i64;
    }
    // The switch: what entered has left, was dropped or waits.
    let before = &world.tor.before;
    let sum = |f: fn(&p4rack_switch::PortStats) -> u64| stats.ports.iter().map(f).sum::<u64>();
    let (rx, tx) = (sum(|port| port.rx_frames) + before.rx, sum(|port| port.tx_frames) + before.tx);
    let queued = sum(|port| port.queues.iter().map(|queue| queue.frames).sum());
    let drops = stats.drops.iter().map(|(_, count)| count).sum::<u64>() + before.drops.values().sum::<u64>();
    let clones = stats.clones + before.clones;
    // A broadcast frame leaves several times; only hostile hosts send them.
    if stats.replicas == 0 {
        verdict.unaccounted_frames += (rx + clones) as i64 - (tx + drops + queued) as i64;
    }
    // Between them.
    // Frames that arrive at shared ports leave by them.
    let delivered_up: u64 = world.tor.inlets.ends.iter().map(|end| end.delivered).sum::<u64>()
        + world.tor.trunks.iter().map(|trunk| trunk.far.delivered).sum::<u64>()
        - world.tor.trunks.iter().map(|trunk| trunk.link.stats.sent).sum::<u64>();
    let managed = world.tor.model.managed();
    let sent_down: u64 = world.tor.lanes.iter().map(|lane| lane.down.stats.sent).sum();
    verdict.unaccounted_frames +=
        (delivered_up + managed).abs_diff(rx) as i64 + tx.abs_diff(sent_down + managed) as i64;
    // From end to end: what never arrived was dropped somewhere.
    let backlog: usize = world.hosts().map(|host| host.endpoint.backlog_frames()).sum();
    let missing =
        counts.frames_given as i64 - counts.frames_delivered as i64 - on_links(world) as i64 - queued as i64;
    let lost = lost_frames(world, &counts) as i64;
    let duplicated: u64 = world.links().map(|(stats, _)| stats.duplicated).sum();
    if missing - backlog as i64 > lost {
        verdict.unaccounted_frames += missing - backlog as i64 - lost;
    } else if counts.frames_delivered > counts.frames_given + duplicated && counts.others.is_none() {
        verdict.unaccounted_frames += missing;
    }
    // Buffers.
    verdict.over_limit += u64::from(stats.buffer_max_bytes > world.tor.model.buffer_limit_bytes());
    if Planted::Overfill.is(world.plan.planted) {
        verdict.over_limit += u64::from(stats.buffer_max_bytes > 0);
    }
    for host in world.hosts() {
        let limit = host.endpoint.station().queue_limit_frames as u64;
        verdict.over_limit += u64::from(host.endpoint.stats().queue_max_frames > limit);
    }
    let failures = lost > 0 || world.hosts().any(|host| host.dies != Nanos::MAX);
    if !failures {
        verdict.stuck_messages = counts.messages_made - counts.messages_ended;
    }
    if let Some(settle) = world.tor.watcher.settles_after() {
        world.run_until(world.now + settle, crew);
        let (tor, rack) = (&mut world.tor, &world.plan.experiment.rack);
        tor.watcher.judge_settled(&mut tor.model, rack, world.now, &mut verdict);
    }
    verdict
}

/// Frames on links.
fn on_links(world: &FrameWorld) -> usize {
    world.links().map(|(_, in_flight)| in_flight).sum()
}

/// Results of the others if hosts may be hostile, over the measured seconds.
fn others(world: &FrameWorld, counts: &Counts, seconds: f64) -> Option<OthersOutcome> {
    let (watched, latency) = (world.plan.watched.as_ref()?, counts.others.as_ref()?);
    let mut arrived = vec![None; world.plan.group_of.len()];
    for (ends, node) in world.plan.flows.iter().zip(world.plan.flows.iter().map(|ends| world.node(ends.dst)))
    {
        if watched.sends(ends) {
            *arrived[usize::from(ends.src)].get_or_insert(0) += node.inflows[ends.into as usize].arrived;
        }
    }
    let gbps = |bytes: u64| bytes as f64 * 8.0 / seconds / 1e9;
    let goodput_gbps =
        (1..).zip(&arrived).filter_map(|(host, bytes)| Some((format!("h{host}"), gbps((*bytes)?))));
    let stats = world.tor.model.stats(world.now);
    let queued: u64 = stats.ports.iter().flat_map(|port| &port.queues).map(|queue| queue.frames).sum();
    let waiting = world.hosts().map(|host| host.endpoint.backlog_frames()).sum::<usize>() + on_links(world);
    Some(OthersOutcome {
        goodput_gbps: goodput_gbps.collect(),
        frames_lost: counts.frames_given.saturating_sub(counts.frames_delivered + waiting as u64 + queued),
        latency_ns: Latency::of(latency, false),
    })
}

/// Frames of any kind dropped anywhere, without those that are sent again anyway.
fn lost_frames(world: &FrameWorld, counts: &Counts) -> u64 {
    let switch = world.tor.model.stats(world.now);
    let since: u64 = switch.drops.iter().map(|(_, count)| count).sum();
    let switch = since + world.tor.before.drops.values().sum::<u64>();
    let links: u64 = world.links().map(|(stats, _)| losses(&stats)).sum();
    let hosts: u64 = world.hosts().map(|host| host.endpoint.stats().app_frames_dropped()).sum();
    let sent_again = world.tor.watcher.sent_again(&world.tor.model.counted());
    switch + links + hosts + counts.frames_to_dead - sent_again
}

fn losses(stats: &crate::link::LinkStats) -> u64 {
    stats.lost + stats.corrupted + stats.down + stats.overflow
}

fn outcome(world: &FrameWorld, measured: p4rack_switch::Stats, checks: Verdict) -> Outcome {
    let (experiment, counts) = (&world.plan.experiment, world.counts());
    let spec = &experiment.spec;
    let seconds = (spec.duration_us - spec.warmup_us) as f64 / 1e6;
    let gbps = |bytes: u64| bytes as f64 * 8.0 / seconds / 1e9;
    let fullest = measured.ports.iter().max_by_key(|port| port.queue_max_bytes);
    let (mut host_drops, mut host_counters) = (BTreeMap::new(), BTreeMap::new());
    for host in world.hosts() {
        let stats = host.endpoint.stats();
        for (name, count) in stats.drops().filter(|(_, count)| *count > 0) {
            *host_drops.entry(name.to_owned()).or_insert(0) += count;
        }
        for (name, count) in host.endpoint.counters().into_iter().filter(|(_, count)| *count > 0) {
            *host_counters.entry(name.to_owned()).or_insert(0) += count;
        }
    }
    let end = world.tor.model.stats(world.now);
    let mut drops = world.tor.before.drops.clone();
    for (reason, count) in &end.drops {
        *drops.entry(reason.name()).or_default() += count;
    }
    let drops = drops
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| (name.to_owned(), count))
        .collect();
    let first = &experiment.rack.hosts[0];
    let counted = world.tor.model.counted();
    let by_traffic = world.plan.traffic.iter().zip(&counts.traffic);
    let mut outcome = Outcome {
        name: spec.name.clone(),
        scheme: experiment.scheme.name(),
        seed: spec.seed,
        measured_s: seconds,
        goodput_gbps: gbps(world.nodes().map(|node| node.received).sum()),
        goodput_max_host_gbps: gbps(world.nodes().map(|node| node.received).max().unwrap_or(0)),
        ceiling_receive_gbps: experiment.runs.goodput_ceiling_bps(first) as f64 / 1e9,
        ceiling_send_gbps: experiment.runs.send_ceiling_bps(first) as f64 / 1e9,
        traffic: by_traffic.map(|(traffic, stats)| traffic_outcome(traffic, stats, &gbps)).collect(),
        rsv_grt_ns: Latency::of(&counts.scheme.rsv_grt, true),
        control: ControlOutcome::of(counts.scheme.control, &experiment.rack, seconds),
        switch: SwitchOutcome {
            queue_max_bytes: fullest.map_or(0, |port| port.queue_max_bytes),
            queue_p999_bytes: fullest.map_or(0, |port| depth_quantile(port, 0.999)),
            buffer_max_bytes: measured.buffer_max_bytes,
            pauses: world.tor.pauses,
            drops,
            program_drops: named(counted.drops),
            demoted: named(counted.demoted),
            refused: named(counted.refused),
            queue_series: fullest.map_or(Vec::new(), series),
        },
        host_drops,
        host_counters,
        resets: world.tor.watcher.forgotten().iter().take(1_000).map(reset).collect(),
        link_losses: world.links().map(|(stats, _)| losses(&stats)).sum(),
        frames_dropped: lost_frames(world, &counts),
        problems: checks.problems(),
        checks,
        paper: Vec::new(),
        digest: format!("{:016x}", world.digest()),
        frame_hops: world.tor.hops,
        others: others(world, &counts, seconds),
    };
    let transport = spec.traffic[0].transport;
    let settings = serde_json::to_value(spec).unwrap_or_default();
    let runs = |paper: &&PaperSpec| paper.transport.is_none_or(|one| one == transport);
    let papers = spec.paper.iter().filter(runs).filter(|paper| concerns(paper, &outcome.scheme, &settings));
    outcome.paper = compared(&outcome, papers);
    outcome
}

fn named(counts: Vec<(&'static str, u64)>) -> BTreeMap<String, u64> {
    counts.into_iter().map(|(name, count)| (name.to_owned(), count)).collect()
}

fn reset((at, sender, destination): &(Nanos, usize, usize)) -> (f64, String, String) {
    (at.0 as f64 / 1e3, format!("h{}", sender + 1), format!("h{}", destination + 1))
}

fn traffic_outcome(traffic: &Traffic, stats: &TrafficStats, gbps: &impl Fn(u64) -> f64) -> TrafficOutcome {
    let decile = |(n, histogram): (usize, &Histogram)| Decile {
        up_to_bytes: traffic.limits().get(n).copied(),
        latency_ns: Latency::of(histogram, false),
    };
    TrafficOutcome {
        name: traffic.spec.name.clone(),
        made: stats.made,
        done: stats.done,
        lost: stats.lost,
        refused: stats.refused,
        goodput_gbps: gbps(stats.bytes),
        retransmissions: stats.retransmissions,
        timeouts: stats.timeouts,
        of: match traffic.spec.arrivals {
            Arrivals::Saturate | Arrivals::Poisson | Arrivals::Trace => "message",
            Arrivals::Rpc => "request and answer",
            Arrivals::Rounds => "round",
        },
        latency_ns: Latency::of(&stats.latency, true),
        deciles: stats.deciles.iter().enumerate().map(decile).collect(),
    }
}

/// The depth that a port's queue did not exceed for a share of the time.
pub(crate) fn depth_quantile(port: &p4rack_switch::PortStats, share: f64) -> u64 {
    let bins = port.histogram.iter().map(|bin| (bin.depth_bytes, bin.nanos));
    // A bin of the histogram may end above the maximum depth.
    quantiles::weighted(bins, share).unwrap_or(u64::MAX).min(port.queue_max_bytes)
}

/// Reduces a curve to at most a thousand points.
fn series(port: &p4rack_switch::PortStats) -> Vec<(f64, u64)> {
    let every = port.samples.len().div_ceil(1_000).max(1);
    let point = |samples: &[p4rack_switch::DepthSample]| {
        let most = samples.iter().map(|sample| sample.depth_bytes).max().unwrap_or(0);
        (samples[0].time.0 as f64 / 1e3, most)
    };
    port.samples.chunks(every).map(point).collect()
}

fn pointer(path: &str) -> String {
    format!("/{}", path.replace('/', "~1").replace('.', "/"))
}

/// A figure of a run's results: a path such as `goodput_gbps`, or two whose quotient it is: `PATH / PATH`.
pub fn figure(outcome: &serde_json::Value, path: &str) -> Option<f64> {
    let one = |path: &str| outcome.pointer(&pointer(path.trim())).and_then(serde_json::Value::as_f64);
    match path.split_once(" / ") {
        None => one(path),
        Some((of, by)) => Some(one(of)? / one(by).filter(|by| *by != 0.0)?),
    }
}

/// Whether a paper's figure is one of an experiment with this scheme and these settings.
pub(crate) fn concerns(paper: &PaperSpec, scheme: &str, settings: &serde_json::Value) -> bool {
    let is_set = |(path, values): (&String, &Vec<toml::Value>)| {
        let set = settings.pointer(&pointer(path));
        values.iter().any(|value| serde_json::to_value(value).ok().as_ref() == set)
    };
    paper.scheme.as_ref().is_none_or(|name| scheme.starts_with(name.as_str())) && paper.at.iter().all(is_set)
}

/// The papers' figures beside those of an outcome.
pub(crate) fn compared<'a>(
    outcome: &impl Serialize,
    papers: impl Iterator<Item = &'a PaperSpec>,
) -> Vec<Compared> {
    let json = serde_json::to_value(outcome).unwrap_or_default();
    let compare = |paper: &PaperSpec| {
        let ours = figure(&json, &paper.figure);
        Compared {
            figure: paper.figure.clone(),
            paper: paper.says,
            at_most: paper.at_most,
            ours,
            ratio: ours.filter(|_| paper.says != 0.0).map(|ours| ours / paper.says),
            source: paper.source.clone(),
            why: paper.why.clone(),
        }
    };
    papers.map(compare).collect()
}
