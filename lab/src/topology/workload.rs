//! The workload of a topology: datagrams and requests between its hosts, measured.
//!
//! ```text
//!  h2: udp-send ──▶ switches ──▶ h1: udp-sink        all between the same two times of the monotonic clock
//!  h4: rpc-client ◀────────────▶ h1: rpc-server
//! ```

use super::running::Running;
use crate::error::LabError;
use crate::process::{self, Process};
use crate::sys;
use crate::workload::rpc::{ClientReport, ValueReport};
use crate::workload::udp::{SendReport, SinkReport};
use crate::workload::{self, Span, UDP_OVERHEAD_BYTES};
use p4rack_codegen::topology::{Datagrams, Requests, Workload};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::time::Duration;

/// Port of the first sink and of the first server; each of the workload's tables has its own.
const SINK_PORT: usize = 7_000;
const RPC_PORT: usize = 7_500;
/// Time for programs to start before the workload begins.
const LEAD_NS: u64 = 1_000_000_000;
/// How long sinks wait for datagrams that are under way at the end.
const DRAIN_NS: u64 = 500_000_000;
/// How long programs may take to end after their time.
const FINISH: Duration = Duration::from_secs(30);

/// Measurements of a workload.
#[derive(Clone, Debug, Serialize)]
pub struct Traffic {
    /// Its duration.
    pub duration_s: f64,
    /// Datagrams of each sender.
    pub udp: Vec<Flow>,
    /// Requests of each client.
    pub rpc: Vec<Values>,
}

/// Datagrams from a host to another one.
#[derive(Clone, Debug, Serialize)]
pub struct Flow {
    /// The sender.
    pub from: String,
    /// The receiver.
    pub to: String,
    /// Ethernet payload that it offered, in bits per second.
    pub offered_bps: f64,
    /// Ethernet payload that arrived while it offered some, to a tenth of a second.
    pub arrived_bps: f64,
    /// Datagrams that the sender's kernel took.
    pub sent: u64,
    /// Datagrams that arrived until half a second later, each once.
    pub arrived: u64,
    /// Copies of datagrams that had arrived before.
    pub repeated: u64,
    /// Datagrams that did not leave the sender: its queues were full, or it was woken too late.
    pub not_sent: u64,
}

/// Values that a host has requested from another one.
#[derive(Clone, Debug, Serialize)]
pub struct Values {
    /// The client.
    pub from: String,
    /// The server.
    pub to: String,
    /// One entry for each size.
    pub values: Vec<ValueReport>,
}

impl Flow {
    /// Datagrams that were sent and did not arrive.
    pub fn lost(&self) -> u64 {
        self.sent.saturating_sub(self.arrived)
    }
}

/// Starts `p4rack workload ARGS…` on a host.
fn program(running: &Running<'_>, host: usize, args: &[&str]) -> Result<Process, LabError> {
    let (name, ns) = (&running.topology.hosts[host].name, &running.wiring.hosts[host]);
    let what = format!("{} on {name}", args.first().copied().unwrap_or("workload"));
    Process::start(&what, ns, std::iter::once("workload").chain(args.iter().copied()))
}

fn at(span: Span) -> [String; 2] {
    [format!("--start-ns={}", span.start_ns), format!("--duration-ns={}", span.duration_ns)]
}

fn report<T: DeserializeOwned>(process: &mut Process, running: &mut Running<'_>) -> Result<T, LabError> {
    let output = process.finish_beside(FINISH, &mut || running.check())?;
    serde_json::from_str(output.trim()).map_err(|error| process.failure(&format!("wrote no result: {error}")))
}

/// Runs the workload to its end.
pub(super) fn run(running: &mut Running<'_>, workload: &Workload) -> Result<Traffic, LabError> {
    let duration_ns = (workload.duration_s * 1e9) as u64;
    let span = Span { start_ns: sys::monotonic_ns() + LEAD_NS, duration_ns };
    let mut udp = Vec::new();
    for (nth, group) in workload.udp.iter().enumerate() {
        udp.push(start_datagrams(running, (nth, group), workload.seed, span)?);
    }
    let mut rpc = Vec::new();
    for (nth, requests) in workload.rpc.iter().enumerate() {
        rpc.push(start_requests(running, (nth, requests), span)?);
    }
    let name = |running: &Running<'_>, host: usize| running.topology.hosts[host].name.clone();
    let mut flows = Vec::new();
    for (group, (mut sink, senders)) in workload.udp.iter().zip(udp) {
        let arrived: SinkReport = report(&mut sink, running)?;
        for (host, mut sender) in group.senders.iter().zip(senders) {
            let sent: SendReport = report(&mut sender, running)?;
            let address = running.topology.hosts[*host].ip.to_string();
            let line = arrived.by_source.get(&address).cloned().unwrap_or_default();
            let datagrams = line.bytes.iter().sum::<u64>() / u64::from(group.payload_bytes);
            let repeated = arrived.repeated.get(&address).copied().unwrap_or(0);
            flows.push(Flow {
                from: name(running, *host),
                to: name(running, group.receiver),
                offered_bps: sent.offered.rate_bps(0, duration_ns),
                arrived_bps: line.rate_bps(0, duration_ns),
                sent: sent.datagrams,
                arrived: datagrams.saturating_sub(repeated),
                repeated,
                not_sent: sent.no_buffer + sent.errors + sent.skipped,
            });
        }
    }
    let mut values = Vec::new();
    for (requests, (mut server, mut client)) in workload.rpc.iter().zip(rpc) {
        let answered: ClientReport = report(&mut client, running)?;
        server.check_running()?;
        process::stop([&mut server]);
        let (from, to) = (name(running, requests.client), name(running, requests.server));
        values.push(Values { from, to, values: answered.values });
    }
    Ok(Traffic { duration_s: workload.duration_s, udp: flows, rpc: values })
}

/// The sink and the senders of a group.
fn start_datagrams(
    running: &Running<'_>,
    (nth, group): (usize, &Datagrams),
    seed: u64,
    span: Span,
) -> Result<(Process, Vec<Process>), LabError> {
    let to = format!("{}:{}", running.topology.hosts[group.receiver].ip, SINK_PORT + nth);
    let [start, longer] = at(Span { duration_ns: span.duration_ns + DRAIN_NS, ..span });
    let sink = program(running, group.receiver, &["udp-sink", "--bind", &to, &start, &longer])?;
    let (rate, payload) = (
        format!("--rate-bps={}", group.rate_bps),
        format!("--payload-bytes={}", u64::from(group.payload_bytes).saturating_sub(UDP_OVERHEAD_BYTES)),
    );
    let [start, duration] = at(span);
    let senders = group.senders.iter().map(|host| {
        let seed = format!("--seed={}", workload::seed(seed, nth * 1_000 + host));
        program(running, *host, &["udp-send", "--to", &to, &rate, &payload, &seed, &start, &duration])
    });
    Ok((sink, senders.collect::<Result<_, _>>()?))
}

/// The server and its client.
fn start_requests(
    running: &Running<'_>,
    (nth, requests): (usize, &Requests),
    span: Span,
) -> Result<(Process, Process), LabError> {
    let to = format!("{}:{}", running.topology.hosts[requests.server].ip, RPC_PORT + nth);
    let server = program(running, requests.server, &["rpc-server", "--bind", &to])?;
    let [start, duration] = at(span);
    let window =
        [format!("--window-start-ns={}", span.start_ns), format!("--window-ns={}", span.duration_ns)];
    let sizes: Vec<String> =
        requests.value_bytes.iter().map(|size| format!("--value-bytes={size}")).collect();
    let mut args = vec!["rpc-client", "--to", &to, &start, &duration, &window[0], &window[1]];
    args.extend(sizes.iter().map(String::as_str));
    Ok((server, program(running, requests.client, &args)?))
}
