//! The programs of a run: sinks and senders, a server and its client.

use super::{Plan, Times};
use crate::error::LabError;
use crate::process::Process;
use crate::running::Running;
use crate::workload::rpc::ClientReport;
use crate::workload::udp::{SendReport, SinkReport};
use crate::workload::{self, Span, UDP_OVERHEAD_BYTES};
use p4rack_codegen::rack::WorkloadKind;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::time::Duration;

/// Port of the sink.
const SINK_PORT: u16 = 7_000;
/// Port of the request/response server.
const RPC_PORT: u16 = 7_001;
/// How long programs may take to end after their time.
const FINISH: Duration = Duration::from_secs(10);

/// The programs of a run.
pub(super) struct Programs {
    sinks: Vec<Process>,
    /// By the host at the other end than the one that all traffic shares.
    senders: Vec<(String, Process)>,
    server: Option<Process>,
    client: Option<Process>,
}

/// Reports of the programs.
pub(super) struct Reports {
    /// By receiver, as the workload lists them.
    pub sinks: Vec<SinkReport>,
    pub senders: BTreeMap<String, SendReport>,
    pub client: ClientReport,
}

impl Programs {
    /// Fails if one of them has failed, or the server has ended.
    pub fn check(&mut self) -> Result<(), LabError> {
        self.server.as_mut().map_or(Ok(()), Process::check_running)?;
        let senders = self.senders.iter_mut().map(|(_, process)| process);
        self.sinks.iter_mut().chain(&mut self.client).chain(senders).try_for_each(Process::check_not_failed)
    }

    /// Waits for all programs, as long as the rack is in order.
    pub fn finish(mut self, running: &mut Running<'_>) -> Result<Reports, LabError> {
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

/// Starts all of them.
pub(super) fn start_programs(
    running: &Running<'_>,
    plan: Plan<'_>,
    times: Times,
) -> Result<Programs, LabError> {
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

fn report<T: DeserializeOwned>(process: &mut Process, running: &mut Running<'_>) -> Result<T, LabError> {
    let output = process.finish_beside(FINISH, &mut || running.check())?;
    serde_json::from_str(output.trim()).map_err(|error| process.failure(&format!("wrote no result: {error}")))
}
