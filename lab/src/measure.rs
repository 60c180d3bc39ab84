//! The workload under one scheme, and its figures.
//!
//! ```text
//!   lead   warm-up        window                 tail
//! ├──────┼─────────┼──────────────────┼───────────────────────┤
//!        all traffic runs from here …  kill   [reset]   … to here
//! ```

use crate::control::{self, PortStats, SwitchStats};
use crate::ends::{self, End};
use crate::error::LabError;
use crate::kill;
use crate::network::{self, InterfaceCounts};
use crate::process::{Process, pause};
use crate::progress::Progress;
use crate::results::{SchemeResult, Series};
use crate::running::Running;
use crate::sys;
use crate::workload::rpc::ClientReport;
use crate::workload::udp::{SendReport, SinkReport};
use crate::workload::{self, Span, Timeline, UDP_OVERHEAD_BYTES};
use p4rack_codegen::Scheme;
use p4rack_codegen::rack::{Workload, WorkloadKind};
use p4rack_codegen::scheme::{Cost, DropReason};
use p4rack_wire::quantiles;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::time::Duration;

/// Port of the sink.
const SINK_PORT: u16 = 7_000;
/// Port of the request/response server.
const RPC_PORT: u16 = 7_001;
/// From starting the programs to their traffic; connections are made in between.
const LEAD_NS: u64 = 1_000_000_000;
/// Traffic before the window.
pub const WARM_UP_NS: u64 = 1_000_000_000;
/// Traffic after the window, so that its last requests end under load.
const TAIL_NS: u64 = 500_000_000;
/// How long programs may take to end after their time.
const FINISH: Duration = Duration::from_secs(10);
/// How long counters must not change for all frames to have arrived, and the maximum tries.
const SETTLE: Duration = Duration::from_millis(150);
const SETTLE_TRIES: usize = 20;
/// Readings of the receiver's interface at each edge of the window, and the pause after each.
const EDGE_READINGS: usize = 10;
const EDGE_PAUSE: Duration = Duration::from_millis(2);

/// Frames by place and reason of their loss.
type Counts = BTreeMap<String, u64>;

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

/// The programs of a run.
struct Programs {
    sinks: Vec<Process>,
    /// By the host at the other end than the one that all traffic shares.
    senders: Vec<(String, Process)>,
    server: Option<Process>,
    client: Option<Process>,
}

/// Times of a run, on the monotonic clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) traffic: Span,
    pub(crate) window: Span,
}

/// Counts of the switch since the scheme was started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SwitchCounts {
    /// Lost frames by reason, of the traffic manager and the program.
    pub(crate) lost: BTreeMap<String, u64>,
    /// Unsolicited frames over t or T, by reason.
    pub(crate) unsolicited: Counts,
}

impl SwitchCounts {
    fn fabric(&self) -> u64 {
        self.lost.values().sum()
    }

    /// Frames lost since `earlier`, by name.
    fn since(&self, earlier: &SwitchCounts) -> BTreeMap<String, u64> {
        let more = |(name, count): (&String, &u64)| {
            let more = count.saturating_sub(earlier.lost.get(name).copied().unwrap_or(0));
            (more > 0).then(|| (name.clone(), more))
        };
        self.lost.iter().filter_map(more).collect()
    }
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
    fill_drops(&mut result, running, &counts, [&early, &last], &ends, &reports.senders, who)?;
    if let Some(killed) = killed {
        let at_the_end = switch_counts(running, &early, &last)?;
        let lost = at_the_end.since(&counts);
        result.series.kill_ns = Some(killed.kill_ns - times.traffic.start_ns);
        result.series.reset_ns = killed.reset_ns.map(|at| at - times.traffic.start_ns);
        result.host_kill = Some(kill::judge(&killed, &result.series, lost));
    }
    Ok(result)
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

fn start_programs(running: &Running<'_>, plan: Plan<'_>, times: Times) -> Result<Programs, LabError> {
    let workload = plan.workload;
    let rack = running.rack;
    let address = |host: &str| Ok::<_, LabError>(rack.hosts[running.index(host)?].ip);
    let span = |span: Span| {
        [("--start-ns", span.start_ns), ("--duration-ns", span.duration_ns)]
            .into_iter()
            .flat_map(|(option, value)| [option.to_owned(), value.to_string()])
            .collect::<Vec<_>>()
    };
    let command = |words: &[&str], more: Vec<String>| {
        words.iter().map(|&word| word.to_owned()).chain(more).collect::<Vec<_>>()
    };

    let sink_at = |receiver: &str| Ok::<_, LabError>(format!("{}:{SINK_PORT}", address(receiver)?));
    let mut sinks = Vec::new();
    for receiver in &workload.receivers {
        let args = command(&["udp-sink", "--bind", &sink_at(receiver)?], span(times.traffic));
        sinks.push(running.program(receiver, args)?);
    }
    let (mut server, mut client) = (None, None);
    if let Some(rpc) = &workload.rpc {
        let at = format!("{}:{RPC_PORT}", address(&rpc.server)?);
        server = Some(running.program(&rpc.server, command(&["rpc-server", "--bind", &at], Vec::new()))?);
        let mut args = command(&["rpc-client", "--to", &at], span(times.traffic));
        args.extend(["--window-start-ns".to_owned(), times.window.start_ns.to_string()]);
        args.extend(["--window-ns".to_owned(), times.window.duration_ns.to_string()]);
        for size in &rpc.value_bytes {
            args.extend(["--value-bytes".to_owned(), size.to_string()]);
        }
        client = Some(running.program(&rpc.client, args)?);
    }
    let (one, many) = workload.ends();
    let rate_bps = workload::rate_bps(rack, workload).to_string();
    let payload = u64::from(workload.payload_bytes).saturating_sub(UDP_OVERHEAD_BYTES).to_string();
    let mut senders = Vec::new();
    for (index, other) in many.iter().enumerate() {
        let (sender, receiver) = match workload.kind {
            WorkloadKind::Incast | WorkloadKind::Store => (other.as_str(), one),
            WorkloadKind::Outcast => (one, other.as_str()),
        };
        let sink_at = sink_at(receiver)?;
        let seed = workload::seed(plan.seed, index).to_string();
        let words = [
            "udp-send",
            "--to",
            &sink_at,
            "--rate-bps",
            &rate_bps,
            "--payload-bytes",
            &payload,
            "--seed",
            &seed,
        ];
        senders.push((other.clone(), running.program(sender, command(&words, span(times.traffic)))?));
    }
    Ok(Programs { sinks, senders, server, client })
}

/// Reports of the programs.
struct Reports {
    /// By receiver, as the workload lists them.
    sinks: Vec<SinkReport>,
    senders: BTreeMap<String, SendReport>,
    client: ClientReport,
}

impl Programs {
    /// Fails if one of them has failed, or the server has ended.
    fn check(&mut self) -> Result<(), LabError> {
        self.server.as_mut().map_or(Ok(()), Process::check_running)?;
        let senders = self.senders.iter_mut().map(|(_, process)| process);
        self.sinks.iter_mut().chain(&mut self.client).chain(senders).try_for_each(Process::check_not_failed)
    }

    /// Waits for all programs, as long as the rack is in order.
    fn finish(mut self, running: &mut Running<'_>) -> Result<Reports, LabError> {
        let sinks = self.sinks.iter_mut().map(|sink| report(sink, running)).collect::<Result<_, _>>()?;
        let client = self.client.as_mut().map(|client| report(client, running));
        let client = client.transpose()?.unwrap_or_default();
        let mut senders = BTreeMap::new();
        for (host, process) in &mut self.senders {
            senders.insert(host.clone(), report(process, running)?);
        }
        if let Some(server) = &mut self.server {
            server.check_running()?;
            server.kill();
        }
        Ok(Reports { sinks, senders, client })
    }
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

fn report<T: DeserializeOwned>(process: &mut Process, running: &mut Running<'_>) -> Result<T, LabError> {
    let output = process.finish_beside(FINISH, &mut || running.check())?;
    serde_json::from_str(output.trim()).map_err(|error| process.failure(&format!("wrote no result: {error}")))
}

/// What the receivers' applications had received at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Snapshot {
    at_ns: u64,
    counts: InterfaceCounts,
}

impl Snapshot {
    /// Of several readings, the one that is least behind a port of `rate_bps`. Frames that the agent delivers
    /// late at the window's edge would otherwise count on the wrong side of it.
    fn take(running: &Running<'_>, receivers: &[usize], rate_bps: u64) -> Result<Snapshot, LabError> {
        let mut readings = Vec::with_capacity(EDGE_READINGS);
        for _ in 0..EDGE_READINGS {
            readings.extend(Snapshot::read(running, receivers)?);
            pause(EDGE_PAUSE)?;
        }
        least_behind(&readings, rate_bps)
            .ok_or_else(|| LabError::measurement("counts of the receivers' interfaces", "none was read"))
    }

    /// The counts of all receivers together, one read after the other within microseconds.
    fn read(running: &Running<'_>, receivers: &[usize]) -> Result<Option<Snapshot>, LabError> {
        let mut all: Option<Snapshot> = None;
        for receiver in receivers {
            let network = running.network;
            let interface = network.application_interface();
            let (at_ns, counts) = network::interface_counts(&network.hosts[*receiver], interface)?;
            all = Some(match all {
                None => Snapshot { at_ns, counts },
                Some(sum) => Snapshot { counts: sum.counts + counts, ..sum },
            });
        }
        Ok(all)
    }

    fn payload_bytes(&self) -> u64 {
        const ETHERNET_HEADER: u64 = 14;
        self.counts.rx_bytes.saturating_sub(self.counts.rx_frames * ETHERNET_HEADER)
    }
}

/// The reading with the largest lead over what `rate_bps` gives until its time.
fn least_behind(readings: &[Snapshot], rate_bps: u64) -> Option<Snapshot> {
    let start_ns = readings.first()?.at_ns;
    let ahead = |reading: &Snapshot| {
        let due_bytes = u128::from(rate_bps) * u128::from(reading.at_ns - start_ns) / 8_000_000_000;
        i128::from(reading.payload_bytes()) - due_bytes as i128
    };
    readings.iter().copied().max_by_key(ahead)
}

/// Rate of Ethernet payload through the TAP between two times. The first frame had started before, so it does
/// not count.
fn goodput_bps(before: &Snapshot, after: &Snapshot) -> u64 {
    let frames = after.counts.rx_frames.saturating_sub(before.counts.rx_frames);
    let bytes = after.payload_bytes().saturating_sub(before.payload_bytes());
    let whole_bytes = u128::from(bytes) * u128::from(frames.saturating_sub(1)) / u128::from(frames.max(1));
    let span_ns = after.at_ns.saturating_sub(before.at_ns).max(1);
    (whole_bytes as f64 * 8e9 / span_ns as f64) as u64
}

/// The counts of the switch and of the hosts once no frame is in flight, so that what one end has sent and the other has
/// received can be compared.
fn settled(running: &mut Running<'_>) -> Result<(SwitchStats, Vec<End>), LabError> {
    let frames = |ends: &[End]| -> Vec<(u64, u64)> {
        ends.iter().map(|end| (end.received_frames, end.sent_frames)).collect()
    };
    let before = frames(&ends::read(running)?);
    unchanged(before, || {
        pause(SETTLE)?;
        let stats = control::stats(running)?;
        let ends = ends::read(running)?;
        Ok((frames(&ends), (stats, ends)))
    })
}

/// The first reading that equals the one before it.
fn unchanged<T>(
    mut before: Vec<(u64, u64)>,
    mut read: impl FnMut() -> Result<(Vec<(u64, u64)>, T), LabError>,
) -> Result<T, LabError> {
    for _ in 0..SETTLE_TRIES {
        let (after, with) = read()?;
        if after == before {
            return Ok(with);
        }
        before = after;
    }
    let why = format!("they still change after {SETTLE_TRIES} readings, so losses cannot be determined");
    Err(LabError::measurement("the hosts' counts of frames once the traffic has ended", why))
}

/// Everything that the switch has dropped: the traffic manager's counts before and after they were reset,
/// with the program's own reasons in place of "the program dropped it".
pub(crate) fn switch_counts(
    running: &Running<'_>,
    early: &SwitchStats,
    late: &SwitchStats,
) -> Result<SwitchCounts, LabError> {
    combined(control::program_drops(running)?, [early, late], &running.rack.drop_reasons())
}

/// Combines the counts of the program's reasons with the traffic manager's.
fn combined(
    mut program: Counts,
    switch: [&SwitchStats; 2],
    reasons: &[DropReason],
) -> Result<SwitchCounts, LabError> {
    let mut lost = Counts::new();
    for (reason, count) in switch.iter().flat_map(|stats| &stats.drops) {
        add(&mut lost, &format!("switch.{reason}"), *count);
    }
    let named: u64 = program.values().sum();
    if let Some(unnamed) = lost.get_mut("switch.ingress_drop") {
        *unnamed = unnamed.saturating_sub(named);
    }
    let mut unsolicited = Counts::new();
    for reason in reasons.iter().filter(|reason| reason.cost != Cost::Frame) {
        let count = program.remove(reason.name).ok_or_else(|| {
            let why = format!("no `{}` among the program's reasons", reason.name);
            LabError::measurement("the program's counter of drops", why)
        })?;
        if reason.cost == Cost::SentAgain {
            unsolicited.insert(format!("program.{}", reason.name), count);
        }
    }
    lost.extend(program.into_iter().map(|(reason, count)| (format!("program.{reason}"), count)));
    lost.retain(|_, count| *count > 0);
    Ok(SwitchCounts { lost, unsolicited })
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

fn fill_goodput(
    result: &mut SchemeResult,
    running: &Running<'_>,
    sinks: &[SinkReport],
    workload: &Workload,
    window_ns: (u64, u64),
) -> Result<(), LabError> {
    let (one, many) = workload.ends();
    for (nth, other) in many.iter().enumerate() {
        let (sink, sender) = match workload.kind {
            WorkloadKind::Incast | WorkloadKind::Store => (sinks.first(), other.as_str()),
            WorkloadKind::Outcast => (sinks.get(nth), one),
        };
        let from = running.rack.hosts[running.index(sender)?].ip.to_string();
        let line = sink.and_then(|sink| sink.by_source.get(&from)).cloned().unwrap_or_default();
        let rate = line.rate_bps(window_ns.0, window_ns.1) as u64;
        result.goodput_by_host_bps.insert(other.clone(), rate);
        result.series.goodput.insert(other.clone(), line);
    }
    Ok(())
}

fn fill_drops(
    result: &mut SchemeResult,
    running: &Running<'_>,
    counts: &SwitchCounts,
    switch: [&SwitchStats; 2],
    ends: &[End],
    senders: &BTreeMap<String, SendReport>,
    (receivers, killed): (&[usize], Option<&str>),
) -> Result<(), LabError> {
    let (mut links, mut hosts) = (Counts::new(), Counts::new());
    for end in ends {
        let port = running.rack.hosts[end.index].port;
        add_host(end, [switch[0].port(port)?, switch[1].port(port)?], &mut links, &mut hosts);
    }
    // A dead host's sockets reject everything, which is not a loss of the run.
    let living = senders.iter().filter(|(host, _)| killed != Some(host.as_str()));
    let refused: u64 = living.map(|(_, sender)| sender.no_buffer + sender.errors).sum();
    hosts.insert("socket.refused".to_owned(), refused);
    for receiver in receivers {
        let buffer = network::udp_buffer_drops(&running.network.hosts[*receiver])?;
        add(&mut hosts, "socket.receive_buffer", buffer);
    }

    result.fabric_drops = counts.fabric() + links.values().sum::<u64>();
    result.host_drops = hosts.values().sum();
    result.drops = counts.lost.clone();
    result.drops.extend(counts.unsolicited.clone());
    result.drops.extend(links);
    result.drops.extend(hosts);
    result.drops.retain(|_, count| *count > 0);
    Ok(())
}

/// Adds the losses of a host and its link. `port` holds its port's statistics before and after they were
/// reset.
fn add_host(end: &End, port: [&PortStats; 2], links: &mut Counts, hosts: &mut Counts) {
    let [rx_frames, tx_frames] = [|port: &PortStats| port.rx_frames, |port: &PortStats| port.tx_frames]
        .map(|of| port.map(of).iter().sum());
    // Sent by one end and never received by the other.
    add(links, "link.to_switch", lost_between(end.sent_frames, rx_frames));
    add(links, "link.to_host", lost_between(tx_frames, end.received_frames));
    for (reason, count) in &end.drops {
        add(hosts, reason, *count);
    }
}

fn add(counts: &mut Counts, name: &str, more: u64) {
    *counts.entry(name.to_owned()).or_default() += more;
}

/// Frames sent but not received. If more were received than sent, the kernel itself sends on the link.
fn lost_between(sent: u64, seen: u64) -> u64 {
    sent.saturating_sub(seen)
}

#[cfg(test)]
#[path = "measure_tests.rs"]
mod tests;
