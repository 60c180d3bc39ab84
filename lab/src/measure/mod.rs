//! The workload under one scheme, and its figures.
//!
//! ```text
//!   lead   warm-up        window                 tail
//! ├──────┼─────────┼──────────────────┼───────────────────────┤
//!        all traffic runs from here …  kill   [reset]   … to here
//! ```

mod edges;
mod losses;
mod programs;

use crate::control::{self, PortStats, SwitchStats};
use crate::error::LabError;
use crate::kill;
use crate::process::Process;
use crate::progress::Progress;
use crate::results::{SchemeResult, Series};
use crate::running::Running;
use crate::sys;
use crate::tors;
use crate::workload::rpc::ClientReport;
use crate::workload::udp::SinkReport;
use crate::workload::{Span, Timeline};
use edges::{Snapshot, goodput_bps, settled};
use losses::fill_drops;
pub(crate) use losses::switch_counts;
use p4rack_codegen::Scheme;
use p4rack_codegen::rack::{Workload, WorkloadKind};
use p4rack_wire::quantiles;
use programs::start_programs;

/// From starting the programs to their traffic; connections are made in between.
const LEAD_NS: u64 = 1_000_000_000;
/// Traffic before the window.
pub const WARM_UP_NS: u64 = 1_000_000_000;
/// Traffic after the window, so that its last requests end under load.
const TAIL_NS: u64 = 500_000_000;

/// Parameters of a run under one scheme.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'a> {
    /// The workload.
    pub workload: &'a Workload,
    /// Duration of the measured window.
    pub window_ns: u64,
    /// Seed of the run.
    pub seed: u64,
}

/// Times of a run, on the monotonic clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) traffic: Span,
    pub(crate) window: Span,
}

/// Runs the workload on a running rack. An `attacker` disturbs it until the traffic ends, and is then
/// stopped.
pub fn run(
    running: &mut Running<'_>,
    plan: Plan<'_>,
    mut attacker: Option<&mut Process>,
    progress: &Progress,
) -> Result<SchemeResult, LabError> {
    let scheme = running.scheme;
    let kill = plan.workload.kill.as_ref().filter(|_| scheme != Scheme::L2);
    let times = plan.times(kill.map_or(TAIL_NS, |_| kill::TAIL_NS));
    running.death = tors::plan(plan.workload, times.window);
    let receivers = indices(running, &plan.workload.receivers)?;
    let mut programs = start_programs(running, plan, times)?;
    let mut in_order = |running: &mut Running<'_>| {
        running.check()?;
        attacker.as_mut().map_or(Ok(()), |attacker| attacker.check_running())?;
        programs.check()
    };

    progress.wait_until(&format!("{scheme}: traffic, warming up"), times.window.start_ns, &mut || {
        in_order(running)
    })?;
    let ceiling_bps = ceiling_bps(running, plan.workload)?;
    let before = Snapshot::take(running, &receivers, ceiling_bps)?;
    let early = control::start_stats_anew(running)?;
    progress.wait_until(&format!("{scheme}: measuring"), times.window.end_ns(), &mut || in_order(running))?;
    let after = Snapshot::take(running, &receivers, ceiling_bps)?;
    let windowed = control::stats(running)?;
    let counts = switch_counts(running, &early, &windowed)?;
    in_order(running)?;

    let killed = match kill {
        None => None,
        Some(kill) => Some(kill::run(running, &kill.host, times.window, progress)?),
    };
    let waiting = format!("{scheme}: waiting for the last answers");
    progress.wait_until(&waiting, times.traffic.end_ns(), &mut || in_order(running))?;
    let reports = programs.finish(running)?;
    if let Some(attacker) = attacker {
        attacker.check_running()?;
        attacker.kill();
    }
    let (last, ends) = settled(running)?;
    running.check()?;

    let mut result = SchemeResult {
        name: scheme.name(),
        goodput_bps: goodput_bps(&before, &after),
        goodput_ceiling_bps: ceiling_bps,
        unsolicited_drops: counts.unsolicited.values().sum(),
        ..SchemeResult::default()
    };
    let window =
        (times.window.start_ns - times.traffic.start_ns, times.window.end_ns() - times.traffic.start_ns);
    result.offered_bps =
        Timeline::sum(reports.senders.values().map(|s| &s.offered)).rate_bps(window.0, window.1) as u64;
    check_sizes(plan.workload, &reports.client)?;
    result.rpc = reports.client.values;
    result.tcp = reports.client.tcp;
    fill_queue(&mut result, running, [&windowed, &last], &receivers, times)?;
    fill_goodput(&mut result, running, &reports.sinks, plan.workload, window)?;
    let who = (receivers.as_slice(), killed.as_ref().map(|killed| killed.host.as_str()));
    result.crossings = crossings(running, &last)?;
    fill_drops(&mut result, running, &counts, [&early, &last], &ends, &reports.senders, who)?;
    let longest_ns = longest_gap_ns(running, &reports.sinks, plan.workload)?;
    let doubled = reports.sinks.iter().flat_map(|sink| sink.repeated.values()).sum();
    result.tor_kill = tors::effects(running.death, longest_ns, Some(doubled))?;
    if let Some(killed) = killed {
        let at_the_end = switch_counts(running, &early, &last)?;
        let lost = at_the_end.since(&counts);
        result.series.kill_ns = Some(killed.kill_ns - times.traffic.start_ns);
        result.series.reset_ns = killed.reset_ns.map(|at| at - times.traffic.start_ns);
        result.host_kill = Some(kill::judge(&killed, &result.series, lost));
    }
    Ok(result)
}

/// Frames that went from pipe to pipe, of these statistics; `None` where hosts are in one pipe.
pub(crate) fn crossings(running: &Running<'_>, stats: &SwitchStats) -> Result<Option<u64>, LabError> {
    let ports = running.rack.crossing_ports();
    if ports.is_empty() {
        return Ok(None);
    }
    ports.iter().map(|port| stats.port(*port).map(|stats| stats.tx_frames)).sum::<Result<u64, _>>().map(Some)
}

impl Plan<'_> {
    fn times(&self, tail_ns: u64) -> Times {
        let start_ns = sys::monotonic_ns() + LEAD_NS;
        let window = Span { start_ns: start_ns + WARM_UP_NS, duration_ns: self.window_ns };
        Times { traffic: Span { start_ns, duration_ns: WARM_UP_NS + self.window_ns + tail_ns }, window }
    }
}

/// Positions of hosts.
fn indices(running: &Running<'_>, hosts: &[String]) -> Result<Vec<usize>, LabError> {
    hosts.iter().map(|host| running.index(host)).collect()
}

/// The most payload that the link which all traffic shares could carry under the scheme.
fn ceiling_bps(running: &Running<'_>, workload: &Workload) -> Result<u64, LabError> {
    let host = &running.rack.hosts[running.index(workload.ends().0)?];
    Ok(match workload.kind {
        WorkloadKind::Incast | WorkloadKind::Store => running.rack.goodput_ceiling_bps(host),
        WorkloadKind::Outcast => running.rack.send_ceiling_bps(host),
    })
}

/// Checks that every requested value size has figures.
fn check_sizes(workload: &Workload, client: &ClientReport) -> Result<(), LabError> {
    let asked = workload.rpc.iter().flat_map(|rpc| &rpc.value_bytes);
    for size in asked {
        if !client.values.iter().any(|value| value.value_bytes == *size) {
            let why = format!("no figures of requests for {size} bytes");
            return Err(LabError::measurement("result of the request/response client", why));
        }
    }
    Ok(())
}

pub(crate) fn fill_queue(
    result: &mut SchemeResult,
    running: &Running<'_>,
    [windowed, last]: [&SwitchStats; 2],
    receivers: &[usize],
    times: Times,
) -> Result<(), LabError> {
    // Of several the fullest.
    let mut fullest: Option<(u16, &PortStats)> = None;
    for receiver in receivers {
        let number = running.rack.hosts[*receiver].port;
        let port = windowed.port(number)?;
        if port.depth_times.is_empty() {
            let why = format!("port {number} has no depths of its queue");
            return Err(LabError::measurement("the switch's statistics", why));
        }
        if fullest.is_none_or(|(_, fullest)| fullest.queue_max_bytes < port.queue_max_bytes) {
            fullest = Some((number, port));
        }
    }
    let (number, port) = fullest
        .ok_or_else(|| LabError::measurement("the switch's statistics", "the workload has no receiver"))?;
    result.queue_max_bytes = port.queue_max_bytes;
    // A bin of the histogram may end above the maximum depth.
    let depths = port.depth_times.iter().copied();
    let p999_bytes = quantiles::weighted(depths, 0.999).ok_or_else(|| {
        LabError::measurement("the switch's statistics", format!("port {number} had no depth for any time"))
    })?;
    result.queue_p999_bytes = p999_bytes.min(port.queue_max_bytes);
    let start_ns = times.traffic.start_ns;
    let samples = &last.port(number)?.samples;
    result.series = Series {
        queue: samples
            .iter()
            .filter(|(at_ns, _)| *at_ns >= start_ns)
            .map(|(at_ns, depth)| (at_ns - start_ns, *depth))
            .collect(),
        window_ns: (times.window.start_ns - start_ns, times.window.end_ns() - start_ns),
        ..Series::default()
    };
    Ok(())
}

/// For each host at the other end than the one that all traffic shares: the sink of its traffic, and the address that this has there.
type Arrivals<'a> = Vec<(&'a String, Option<&'a SinkReport>, String)>;

fn arrivals<'a>(
    running: &Running<'_>,
    sinks: &'a [SinkReport],
    workload: &'a Workload,
) -> Result<Arrivals<'a>, LabError> {
    let (one, many) = workload.ends();
    let each = many.iter().enumerate().map(|(nth, other)| {
        let (sink, sender) = match workload.kind {
            WorkloadKind::Incast | WorkloadKind::Store => (sinks.first(), other.as_str()),
            WorkloadKind::Outcast => (sinks.get(nth), one),
        };
        Ok((other, sink, running.rack.hosts[running.index(sender)?].ip.to_string()))
    });
    each.collect()
}

/// Longest time without a datagram of a sender; `None` if one of them has none.
fn longest_gap_ns(
    running: &Running<'_>,
    sinks: &[SinkReport],
    workload: &Workload,
) -> Result<Option<u64>, LabError> {
    let arrivals = arrivals(running, sinks, workload)?;
    let gaps = arrivals.into_iter().map(|(_, sink, from)| {
        let sink = sink.filter(|sink| sink.by_source.contains_key(&from))?;
        sink.longest_gap_ns
    });
    Ok(gaps.collect::<Option<Vec<u64>>>().and_then(|gaps| gaps.into_iter().max()))
}

fn fill_goodput(
    result: &mut SchemeResult,
    running: &Running<'_>,
    sinks: &[SinkReport],
    workload: &Workload,
    window_ns: (u64, u64),
) -> Result<(), LabError> {
    for (other, sink, from) in arrivals(running, sinks, workload)? {
        let line = sink.and_then(|sink| sink.by_source.get(&from)).cloned().unwrap_or_default();
        let rate = line.rate_bps(window_ns.0, window_ns.1) as u64;
        result.goodput_by_host_bps.insert(other.clone(), rate);
        result.series.goodput.insert(other.clone(), line);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
