//! The workload under one scheme, and its figures.
//!
//! ```text
//!   lead   warm-up        window                 tail
//! ├──────┼─────────┼──────────────────┼───────────────────────┤
//!        all traffic runs from here …  kill   [reset]   … to here
//! ```

use crate::control::{self, SwitchStats};
use crate::error::LabError;
use crate::kill;
use crate::network::{self, InterfaceCounts, TAP_INTERFACE};
use crate::process::{Process, pause};
use crate::progress::Progress;
use crate::results::{SchemeResult, Series};
use crate::running::Running;
use crate::stats::weighted_quantile;
use crate::sys;
use crate::workload::rpc::ClientReport;
use crate::workload::udp::{SendReport, SinkReport};
use crate::workload::{Span, Timeline, UDP_OVERHEAD_BYTES};
use p4rack_codegen::Scheme;
use p4rack_codegen::rack::Workload;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// Port of the sink.
const SINK_PORT: u16 = 7_000;
/// Port of the request/response server.
const RPC_PORT: u16 = 7_001;
/// From starting the programs to their traffic: connections are made meanwhile.
const LEAD_NS: u64 = 1_000_000_000;
/// Traffic before the window.
pub const WARM_UP_NS: u64 = 1_000_000_000;
/// Traffic after the window, so that requests of its last moments end under load.
const TAIL_NS: u64 = 500_000_000;
/// How long programs may take to end after their time.
const FINISH: Duration = Duration::from_secs(10);
/// How long nothing may move for all frames to have arrived, and how often that is tried.
const SETTLE: Duration = Duration::from_millis(150);
const SETTLE_TRIES: usize = 20;
/// Name of the program's counter cell that is not a loss of the fabric.
const UNSOLICITED: &str = "unsolicited_over_threshold";

/// What one scheme is to go through.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'a> {
    /// The workload.
    pub workload: &'a Workload,
    /// Length of the measured window.
    pub window_ns: u64,
    /// Seed of the run.
    pub seed: u64,
}

/// The programs of a run.
struct Programs {
    sink: Process,
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
#[derive(Clone, Debug, Default)]
pub(crate) struct SwitchCounts {
    /// Frames lost by name: the traffic manager's and the program's reasons.
    pub(crate) lost: BTreeMap<String, u64>,
    /// Unsolicited frames over T.
    pub(crate) unsolicited: u64,
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

/// Runs the workload on a running rack.
pub fn run(running: &mut Running<'_>, plan: Plan<'_>, progress: &Progress) -> Result<SchemeResult, LabError> {
    let scheme = running.scheme;
    let kill = plan.workload.kill.as_ref().filter(|_| scheme != Scheme::L2);
    let times = plan.times(kill.map_or(TAIL_NS, |_| kill::TAIL_NS));
    let receiver = running.index(&plan.workload.receiver)?;
    let programs = start_programs(running, plan, times)?;

    progress.wait_until(&format!("{scheme}: traffic, warming up"), times.window.start_ns)?;
    let before = Snapshot::take(running, receiver)?;
    let early = control::stats(running, true)?;
    progress.wait_until(&format!("{scheme}: measuring"), times.window.end_ns())?;
    let after = Snapshot::take(running, receiver)?;
    let windowed = control::stats(running, false)?;
    let counts = switch_counts(running, &early, &windowed)?;
    running.check(None)?;

    let killed = match kill {
        None => None,
        Some(kill) => Some(kill::run(running, &kill.host, times, progress)?),
    };
    progress.wait_until(&format!("{scheme}: waiting for the last answers"), times.traffic.end_ns())?;
    let killed_index = killed.as_ref().map(|killed| killed.index);
    let reports = programs.finish()?;
    let (last, agents) = settled(running)?;
    running.check(killed_index)?;

    let mut result = SchemeResult {
        name: scheme.name().to_owned(),
        goodput_bps: goodput_bps(&before, &after),
        goodput_ceiling_bps: running.rack.goodput_ceiling_bps(&running.rack.hosts[receiver], scheme),
        unsolicited_drops: counts.unsolicited,
        ..SchemeResult::default()
    };
    let window =
        (times.window.start_ns - times.traffic.start_ns, times.window.end_ns() - times.traffic.start_ns);
    result.offered_bps =
        Timeline::sum(reports.senders.values().map(|s| &s.offered)).rate_bps(window.0, window.1) as u64;
    result.rpc = reports.client.values;
    result.tcp = reports.client.tcp;
    fill_queue(&mut result, running, &windowed, &last, receiver, times);
    fill_goodput(&mut result, running, &reports.sink, plan.workload, window);
    let who = (receiver, killed.as_ref().map(|killed| killed.host.as_str()));
    fill_drops(&mut result, running, &counts, [&early, &last], &agents, &reports.senders, who)?;
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

    let sink_at = format!("{}:{SINK_PORT}", address(&workload.receiver)?);
    let sink = running
        .program(&workload.receiver, command(&["udp-sink", "--bind", &sink_at], span(times.traffic)))?;
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
    let receiver_rate_bps = rack.hosts[running.index(&workload.receiver)?].rate_bps;
    let total_bps = u128::from(receiver_rate_bps) * u128::from(workload.load_percent) / 100;
    let rate_bps = (total_bps / workload.senders.len().max(1) as u128).to_string();
    let payload = u64::from(workload.payload_bytes).saturating_sub(UDP_OVERHEAD_BYTES).to_string();
    let mut senders = Vec::new();
    for (index, host) in workload.senders.iter().enumerate() {
        let seed = plan.seed.wrapping_mul(1_000).wrapping_add(index as u64).to_string();
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
        senders.push((host.clone(), running.program(host, command(&words, span(times.traffic)))?));
    }
    Ok(Programs { sink, senders, server, client })
}

/// What the programs measured.
struct Reports {
    sink: SinkReport,
    senders: BTreeMap<String, SendReport>,
    client: ClientReport,
}

impl Programs {
    /// Waits for all.
    fn finish(mut self) -> Result<Reports, LabError> {
        let sink = report(&mut self.sink)?;
        let client = self.client.as_mut().map(report).transpose()?.unwrap_or_default();
        let mut senders = BTreeMap::new();
        for (host, process) in &mut self.senders {
            senders.insert(host.clone(), report(process)?);
        }
        if let Some(server) = &mut self.server {
            server.check_running()?;
            server.kill();
        }
        Ok(Reports { sink, senders, client })
    }
}

fn report<T: DeserializeOwned>(process: &mut Process) -> Result<T, LabError> {
    let output = process.finish(FINISH)?;
    serde_json::from_str(output.trim()).map_err(|error| process.failure(&format!("wrote no result: {error}")))
}

/// What the receiver's applications had got at a moment.
#[derive(Clone, Copy)]
struct Snapshot {
    at_ns: u64,
    tap: InterfaceCounts,
}

impl Snapshot {
    fn take(running: &Running<'_>, receiver: usize) -> Result<Snapshot, LabError> {
        let tap = network::interface_counts(&running.network.hosts[receiver], TAP_INTERFACE)?;
        Ok(Snapshot { at_ns: sys::monotonic_ns(), tap })
    }
}

/// Ethernet payload that came through the TAP between two moments.
fn goodput_bps(before: &Snapshot, after: &Snapshot) -> u64 {
    const ETHERNET_HEADER: u64 = 14;
    let frames = after.tap.rx_frames.saturating_sub(before.tap.rx_frames);
    let bytes =
        after.tap.rx_bytes.saturating_sub(before.tap.rx_bytes).saturating_sub(frames * ETHERNET_HEADER);
    let span_ns = after.at_ns.saturating_sub(before.at_ns).max(1);
    (bytes as f64 * 8e9 / span_ns as f64) as u64
}

/// The switch's counts and the agents' reports once no frame is on its way any more, so that what one
/// end has sent and the other has seen can be compared.
fn settled(running: &mut Running<'_>) -> Result<(SwitchStats, Vec<(usize, Value)>), LabError> {
    let counters = |reports: &[(usize, Value)]| -> Vec<(u64, u64)> {
        let of = |report: &Value, name: &str| number(&report["endpoint"]["counters"][name]);
        reports.iter().map(|(_, report)| (of(report, "link_in"), of(report, "link_out"))).collect()
    };
    let mut before = running.agent_reports()?;
    for _ in 0..SETTLE_TRIES {
        pause(SETTLE)?;
        let stats = control::stats(running, false)?;
        let after = running.agent_reports()?;
        if counters(&before) == counters(&after) {
            return Ok((stats, after));
        }
        before = after;
    }
    Ok((control::stats(running, false)?, before))
}

/// Everything that the switch has dropped: what the traffic manager says before and after its counts
/// were reset, with the program's own reasons in place of "the program dropped it".
pub(crate) fn switch_counts(
    running: &Running<'_>,
    early: &SwitchStats,
    late: &SwitchStats,
) -> Result<SwitchCounts, LabError> {
    let program = control::program_drops(running)?;
    let mut lost: BTreeMap<String, u64> = BTreeMap::new();
    for (reason, count) in early.drops.iter().chain(&late.drops) {
        *lost.entry(format!("switch.{reason}")).or_default() += count;
    }
    let named: u64 = program.values().sum();
    if let Some(unnamed) = lost.get_mut("switch.ingress_drop") {
        *unnamed = unnamed.saturating_sub(named);
    }
    let mut unsolicited = 0;
    for (reason, count) in program {
        if reason == UNSOLICITED {
            unsolicited = count;
        } else {
            lost.insert(format!("program.{reason}"), count);
        }
    }
    lost.retain(|_, count| *count > 0);
    Ok(SwitchCounts { lost, unsolicited })
}

fn fill_queue(
    result: &mut SchemeResult,
    running: &Running<'_>,
    windowed: &SwitchStats,
    last: &SwitchStats,
    receiver: usize,
    times: Times,
) {
    let number = running.rack.hosts[receiver].port;
    if let Some(port) = windowed.ports.get(&number) {
        result.queue_max_bytes = port.queue_max_bytes;
        // A bin of the histogram may end above the deepest moment.
        result.queue_p999_bytes = weighted_quantile(&port.depth_times, 0.999).min(port.queue_max_bytes);
    }
    let start_ns = times.traffic.start_ns;
    let samples = last.ports.get(&number).map(|port| port.samples.as_slice()).unwrap_or_default();
    result.series = Series {
        queue: samples
            .iter()
            .filter(|(at_ns, _)| *at_ns >= start_ns)
            .map(|(at_ns, depth)| (at_ns - start_ns, *depth))
            .collect(),
        window_ns: (times.window.start_ns - start_ns, times.window.end_ns() - start_ns),
        ..Series::default()
    };
}

fn fill_goodput(
    result: &mut SchemeResult,
    running: &Running<'_>,
    sink: &SinkReport,
    workload: &Workload,
    window_ns: (u64, u64),
) {
    for host in running.rack.hosts.iter().filter(|host| workload.senders.contains(&host.name)) {
        let line = sink.by_source.get(&host.ip.to_string()).cloned().unwrap_or_default();
        let rate = line.rate_bps(window_ns.0, window_ns.1) as u64;
        result.goodput_by_host_bps.insert(host.name.clone(), rate);
        result.series.goodput.insert(host.name.clone(), line);
    }
}

fn fill_drops(
    result: &mut SchemeResult,
    running: &Running<'_>,
    counts: &SwitchCounts,
    switch: [&SwitchStats; 2],
    agents: &[(usize, Value)],
    senders: &BTreeMap<String, SendReport>,
    (receiver, killed): (usize, Option<&str>),
) -> Result<(), LabError> {
    let mut links = BTreeMap::new();
    let mut hosts: BTreeMap<String, u64> = BTreeMap::new();
    for (index, report) in agents {
        let port = running.rack.hosts[*index].port;
        let frames = |of: fn(&control::PortStats) -> u64| -> u64 {
            switch.iter().filter_map(|stats| stats.ports.get(&port)).map(of).sum()
        };
        let counter = |name: &str| number(&report["endpoint"]["counters"][name]);
        // What one end sent and the other never saw.
        *links.entry("link.to_switch".to_owned()).or_insert(0) +=
            counter("link_out").saturating_sub(frames(|port| port.rx_frames));
        *links.entry("link.to_host".to_owned()).or_insert(0) +=
            frames(|port| port.tx_frames).saturating_sub(counter("link_in"));
        for (reason, count) in report["endpoint"]["drops"].as_object().into_iter().flatten() {
            *hosts.entry(format!("agent.{reason}")).or_default() += number(count);
        }
        *hosts.entry("tap.transmit_queue".to_owned()).or_default() +=
            number(&report["tap"]["kernel"]["tx_dropped"]);
        *hosts.entry("tap.refused".to_owned()).or_default() += number(&report["tap"]["refused"]);
    }
    // A dead host's sockets refuse everything; that is no loss of the run.
    let living = senders.iter().filter(|(host, _)| killed != Some(host.as_str()));
    let refused: u64 = living.map(|(_, sender)| sender.no_buffer + sender.errors).sum();
    hosts.insert("socket.refused".to_owned(), refused);
    let buffer = network::udp_buffer_drops(&running.network.hosts[receiver])?;
    hosts.insert("socket.receive_buffer".to_owned(), buffer);

    result.fabric_drops = counts.fabric() + links.values().sum::<u64>();
    result.host_drops = hosts.values().sum();
    result.drops = counts.lost.clone();
    result.drops.insert(format!("program.{UNSOLICITED}"), counts.unsolicited);
    result.drops.extend(links);
    result.drops.extend(hosts);
    result.drops.retain(|_, count| *count > 0);
    Ok(())
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}
