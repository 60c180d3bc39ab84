//! Collects the results of a run.

use super::judge::{losses, lost_frames, on_links};
use super::papers::{compared, concerns};
use super::{ControlOutcome, Decile, Outcome, SwitchOutcome, TrafficOutcome};
use crate::check::Verdict;
use crate::experiment::{Arrivals, PaperSpec};
use crate::hostile::OthersOutcome;
use crate::latency::Latency;
use crate::scheme::Watch;
use crate::switch::Model;
use crate::traffic::{Traffic, TrafficStats};
use crate::world::{Counts, FrameWorld};
use p4rack_codegen::rack::Rack;
use p4rack_fabric::HostMachine as _;
use p4rack_wire::ethernet::overhead::wire_bytes;
use p4rack_wire::{Histogram, Nanos, quantiles};
use std::collections::BTreeMap;

/// All results; `measured` are the switch's figures at the end of the measured time.
pub(super) fn outcome(world: &FrameWorld, measured: p4rack_switch::Stats, checks: Verdict) -> Outcome {
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
