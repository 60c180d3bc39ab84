//! The store's workload on a running rack, and its figures.

use super::Store;
use super::client::{self, ClientConfig, ClientReport, Contents, MixReport, SoFar};
use super::edm::EdmStore;
use super::slot::slot_bytes;
use super::tcp::{self, TcpStore};
use crate::control;
use crate::edm;
use crate::error::LabError;
use crate::measure::{self, Plan, Times};
use crate::network::HOST_INTERFACE;
use crate::process::Process;
use crate::progress::Progress;
use crate::results::{MixResult, SchemeResult, StoreResult};
use crate::running::Running;
use crate::stats::{cdf, histogram};
use crate::sys;
use crate::text;
use crate::workload::{Span, print_result};
use p4rack_codegen::rack::Store as StoreParameters;
use p4rack_codegen::{Arch, Rack, Scheme};
use p4rack_hosts::memory::{Client, Remote};
use serde::de::DeserializeOwned;
use std::path::Path;
use std::time::Duration;

/// Port of the store's TCP server.
const STORE_PORT: u16 = 7_003;
/// From starting the clients to their operations.
const LEAD_NS: u64 = 1_000_000_000;
/// How long loading or reading all records may take.
const ALL_RECORDS: Duration = Duration::from_secs(60);
/// How long the server may take to start, and the clients to check their last writes.
const START: Duration = Duration::from_secs(20);
const FINISH: Duration = Duration::from_secs(60);

/// What a client's process does.
#[derive(Clone, Copy, Debug)]
pub enum Task {
    /// Writes every record once.
    Load,
    /// Runs the mixes.
    Run(Span),
    /// Reads every record.
    Contents,
}

/// Checks that the rack's store can be in the memory of its server under a scheme with EDM.
pub fn check(rack: &Rack, store: &StoreParameters, server: &str) -> Result<(), LabError> {
    p4rack_memory::memory_node(rack, server)?;
    let (slot, chunk) =
        (slot_bytes(store.value_bytes as usize), p4rack_memory::edm(rack)?.chunk_bytes as usize);
    if slot > chunk {
        let fits = chunk.saturating_sub(slot - store.value_bytes as usize);
        return Err(LabError::Unfit(format!(
            "a value of {} bytes has a slot of {slot}, but edm.chunk_bytes is {chunk}, and only a chunk is written at once: \
             set workload.value_bytes to {fits} at most, or edm.chunk_bytes to {slot}",
            store.value_bytes
        )));
    }
    Ok(())
}

/// Runs the workload.
pub fn run(
    running: &mut Running<'_>,
    store: &StoreParameters,
    plan: Plan<'_>,
    progress: &Progress,
) -> Result<SchemeResult, LabError> {
    let scheme = running.scheme;
    let (server, clients) = plan.workload.ends();
    let server_index = running.index(server)?;
    let mut serving = start_server(running, store, server)?;
    serving.wait_for_line("ready", START)?;
    let first = clients.first().map_or("", String::as_str);
    let records = text::count(store.records.into());
    progress.step(
        &format!("{scheme}: writing {records} records"),
        || start_client(running, first, plan.seed, Task::Load)?.finish(ALL_RECORDS),
        |_| format!("{scheme}: {records} records written"),
    )?;

    let window = Span { start_ns: sys::monotonic_ns() + LEAD_NS, duration_ns: plan.window_ns };
    let mut processes = Vec::new();
    for (nth, host) in clients.iter().enumerate() {
        let seed = crate::workload::seed(plan.seed, nth + 1);
        processes.push(start_client(running, host, seed, Task::Run(window))?);
    }
    progress.wait_until(&format!("{scheme}: starting the clients"), window.start_ns)?;
    let early = control::start_stats_anew(running)?;
    let part_ns = (plan.window_ns / store.mixes.len().max(1) as u64).max(1);
    let mut live = Live { at_ns: window.start_ns, operations: 0, per_s: 0 };
    progress.watch(window.end_ns(), || {
        let since_ns = sys::monotonic_ns().saturating_sub(window.start_ns);
        let mix = store.mixes.get((since_ns / part_ns) as usize).map_or("", |mix| mix.name());
        let clients: Vec<SoFar> =
            processes.iter().filter_map(|process| SoFar::latest(&process.output())).collect();
        format!("{scheme}, mix {mix}: {}", live.line(&clients, sys::monotonic_ns()))
    })?;
    let windowed = control::stats(running)?;
    let reports: Vec<ClientReport> = processes.iter_mut().map(report).collect::<Result<_, _>>()?;
    let contents = progress.step(
        &format!("{scheme}: reading {records} records"),
        || report(&mut start_client(running, first, plan.seed, Task::Contents)?),
        |_| format!("{scheme}: {records} records read again"),
    )?;
    serving.check_running()?;
    running.check(None)?;
    let last = control::stats(running)?;
    let counts = measure::switch_counts(running, &early, &last)?;
    serving.kill();

    let figures = figures(store, &reports, contents, plan.window_ns);
    for mix in &figures.mixes {
        progress.line(&format!(
            "✓ {scheme}, mix {}: {} operations a second, p50 {}, p99 {}",
            mix.mix,
            text::count(mix.ops_per_s as u64),
            text::micros(mix.p50_us),
            text::micros(mix.p99_us)
        ));
    }
    let values: u64 = reports.iter().flat_map(|report| &report.mixes).map(|mix| mix.values).sum();
    let bits = u128::from(values) * u128::from(store.value_bytes) * 8;
    let values_bps = (bits * 1_000_000_000 / u128::from(plan.window_ns.max(1))) as u64;
    let mut result = SchemeResult {
        name: scheme.name(),
        offered_bps: values_bps,
        goodput_bps: values_bps,
        goodput_ceiling_bps: running.rack.goodput_ceiling_bps(&running.rack.hosts[server_index]),
        fabric_drops: counts.lost.values().sum(),
        unsolicited_drops: counts.unsolicited.values().sum(),
        drops: counts.lost,
        store: Some(figures),
        ..SchemeResult::default()
    };
    let times = Times { traffic: window, window };
    measure::fill_queue(&mut result, running, [&windowed, &last], &[server_index], times)?;
    Ok(result)
}

/// The live view: what all clients together do at the moment.
struct Live {
    at_ns: u64,
    operations: u64,
    per_s: u64,
}

impl Live {
    fn line(&mut self, clients: &[SoFar], now_ns: u64) -> String {
        let operations: u64 = clients.iter().map(|so_far| so_far.operations).sum();
        if operations > self.operations {
            let took_ns = now_ns.saturating_sub(self.at_ns).max(1);
            let more = u128::from(operations - self.operations);
            self.per_s = (more * 1_000_000_000 / u128::from(took_ns)) as u64;
            (self.operations, self.at_ns) = (operations, now_ns);
        }
        let worst = |of: fn(&SoFar) -> u64| text::micros(clients.iter().map(of).max().unwrap_or(0) as f64);
        format!(
            "{} operations, {} a second, slowest client p50 {}, p99 {}",
            text::count(operations),
            text::count(self.per_s),
            worst(|so_far| so_far.p50_us),
            worst(|so_far| so_far.p99_us)
        )
    }
}

/// Starts what serves the records under the scheme: a memory node, or a TCP server.
fn start_server(running: &Running<'_>, store: &StoreParameters, server: &str) -> Result<Process, LabError> {
    if p4rack_memory::runs(running.rack) {
        let bytes = u64::from(store.records) * slot_bytes(store.value_bytes as usize) as u64;
        let args = edm::serve_args(running, server, bytes);
        return Process::start(&format!("the memory node on {server}"), running.namespace(server)?, args);
    }
    running.program(server, vec!["store-server".to_owned(), running.path.display().to_string()])
}

fn start_client(running: &Running<'_>, host: &str, seed: u64, task: Task) -> Result<Process, LabError> {
    let word = match task {
        Task::Load => "store-load",
        Task::Run(_) => "store-client",
        Task::Contents => "store-contents",
    };
    let mut args = vec![word.to_owned(), running.path.display().to_string()];
    let mut push = |option: &str, value: String| args.extend([option.to_owned(), value]);
    push("--name", host.to_owned());
    push("--scheme", running.scheme.name());
    push("--arch", running.rack.switch.arch.name().to_owned());
    push("--seed", seed.to_string());
    if let Task::Run(span) = task {
        push("--start-ns", span.start_ns.to_string());
        push("--duration-ns", span.duration_ns.to_string());
    }
    running.program(host, args)
}

/// The result of a client, behind its progress lines.
fn report<T: DeserializeOwned>(process: &mut Process) -> Result<T, LabError> {
    let output = process.finish(FINISH)?;
    let line = output.lines().rev().find(|line| line.starts_with('{')).unwrap_or_default();
    serde_json::from_str(line).map_err(|error| process.failure(&format!("wrote no result: {error}")))
}

/// Figures of all clients together. Records were written once before them.
fn figures(
    store: &StoreParameters,
    reports: &[ClientReport],
    contents: Contents,
    window_ns: u64,
) -> StoreResult {
    let part_ns = window_ns / store.mixes.len().max(1) as u64;
    let of = |nth: usize| reports.iter().filter_map(move |report| report.mixes.get(nth));
    let mixes: Vec<MixResult> = (0..store.mixes.len())
        .map(|nth| mix_figures(store.mixes[nth].name(), &of(nth).collect::<Vec<_>>(), part_ns))
        .collect();
    let all: Vec<&MixReport> = reports.iter().flat_map(|report| &report.mixes).collect();
    let whole = mix_figures("", &all, window_ns);
    let sum = |of: fn(&ClientReport) -> u64| reports.iter().map(of).sum::<u64>();
    // Each confirmed write is a version of its own. Of lost operations nobody knows whether they wrote.
    let readable = u64::from(store.records).saturating_sub(contents.lost + contents.wrong);
    let (written, there) = (sum(|report| report.writes), contents.versions.saturating_sub(readable));
    let unreadable = contents.lost + contents.wrong > 0;
    let overwritten = if unreadable { 0 } else { written.saturating_sub(there) };
    let invented = there.saturating_sub(written + whole.lost);
    StoreResult {
        ops_per_s: whole.ops_per_s,
        p50_us: whole.p50_us,
        p99_us: whole.p99_us,
        p999_us: whole.p999_us,
        lost: whole.lost + sum(|report| report.lost_writes) + contents.lost + overwritten,
        wrong: whole.wrong + contents.wrong + invented,
        mixes,
    }
}

fn mix_figures(mix: &str, reports: &[&MixReport], span_ns: u64) -> MixResult {
    let mut latencies = histogram();
    for (latency_ns, count) in reports.iter().flat_map(|report| &report.latencies) {
        latencies.saturating_record_n(*latency_ns, *count);
    }
    let sum = |of: fn(&MixReport) -> u64| reports.iter().map(|report| of(report)).sum::<u64>();
    let quantile_us = |q: f64| latencies.value_at_quantile(q) as f64 / 1e3;
    MixResult {
        mix: mix.to_owned(),
        ops_per_s: sum(|report| report.operations) as f64 * 1e9 / span_ns.max(1) as f64,
        p50_us: quantile_us(0.5),
        p99_us: quantile_us(0.99),
        p999_us: quantile_us(0.999),
        lost: sum(|report| report.lost),
        wrong: sum(|report| report.wrong),
        cdf: cdf(&latencies),
    }
}

/// Serves the store of a description over TCP until a signal ends the process.
pub fn serve(path: &Path) -> Result<(), LabError> {
    let (rack, store) = described(path)?;
    let server = rack.workload.as_ref().map_or("", |workload| workload.ends().0);
    let host = &rack.hosts[usize::from(p4rack_memory::node(&rack, server)?)];
    let at = (host.ip, STORE_PORT).into();
    tcp::serve(at, store.records, store.value_bytes as usize).map_err(LabError::system("serving the store"))
}

/// Uses the store of a description from one of its hosts under a scheme, and prints the result as JSON.
pub fn use_store(
    path: &Path,
    name: &str,
    scheme: Scheme,
    arch: Arch,
    seed: u64,
    task: Task,
) -> Result<(), LabError> {
    let (rack, store) = described(path)?;
    let rack = rack.on(arch).under(scheme).map_err(|error| LabError::Unfit(error.to_string()))?;
    let server = rack.workload.as_ref().map_or("", |workload| workload.ends().0);
    let (own, value_bytes) = (p4rack_memory::node(&rack, name)?, store.value_bytes as usize);
    let config = ClientConfig { mixes: store.mixes, records: store.records, value_bytes, seed };
    if p4rack_memory::runs(&rack) {
        let remote = Remote { node: p4rack_memory::memory_node(&rack, server)?, key: edm::REGION_KEY };
        let node = p4rack_memory::client(&rack, &rack.hosts[usize::from(own)], HOST_INTERFACE)?;
        let opened = Client::open(node).map_err(|error| LabError::Unfit(error.to_string()))?;
        return operate(EdmStore::new(opened, remote, value_bytes, own + 1, config.records), &config, task);
    }
    let at = (rack.hosts[usize::from(p4rack_memory::node(&rack, server)?)].ip, STORE_PORT).into();
    let connected =
        TcpStore::connect(at, value_bytes).map_err(LabError::system("connecting to the store"))?;
    operate(connected, &config, task)
}

fn operate(mut store: impl Store, config: &ClientConfig, task: Task) -> Result<(), LabError> {
    let done = match task {
        Task::Load => client::load(&mut store, config),
        Task::Run(span) => client::run(&mut store, config, span).and_then(|report| print_result(&report)),
        Task::Contents => {
            client::contents(&mut store, config.records).and_then(|contents| print_result(&contents))
        }
    };
    done.map_err(LabError::system("using the store"))
}

fn described(path: &Path) -> Result<(Rack, StoreParameters), LabError> {
    let rack = Rack::load(path)?;
    let store = rack.workload.as_ref().and_then(|workload| workload.store.clone());
    let store =
        store.ok_or_else(|| LabError::Unfit(format!("{}: its workload is no store", path.display())))?;
    Ok((rack, store))
}

#[cfg(test)]
mod tests {
    use super::*;
    use p4rack_codegen::rack::Mix;

    fn mix(mix: &str, operations: u64, us: u64) -> MixReport {
        let (mix, latencies) = (mix.to_owned(), vec![(us * 1_000, operations)]);
        MixReport { mix, operations, latencies, ..MixReport::default() }
    }

    /// Ten records, two clients with 100 and 200 operations of mix A and 300 of mix C, and 30 and 60 writes.
    fn together(change: impl FnOnce(&mut [ClientReport; 2], &mut Contents)) -> StoreResult {
        let store = StoreParameters { records: 10, value_bytes: 8, mixes: vec![Mix::A, Mix::C] };
        let client = |n: u64| ClientReport {
            mixes: vec![mix("A", 100 * n, 10 * n), mix("C", 300, 5)],
            writes: 30 * n,
            lost_writes: 0,
        };
        let (mut clients, mut contents) = ([client(1), client(2)], Contents::default());
        contents.versions = 10 + 90;
        change(&mut clients, &mut contents);
        figures(&store, &clients, contents, 2_000_000_000)
    }

    #[test]
    fn figures_are_those_of_all_clients_together() {
        let figures = together(|_, _| {});
        assert_eq!((figures.lost, figures.wrong, figures.ops_per_s), (0, 0, 450.0));
        let names: Vec<(&str, f64)> =
            figures.mixes.iter().map(|mix| (mix.mix.as_str(), mix.ops_per_s)).collect();
        assert_eq!(names, [("A", 300.0), ("C", 600.0)]);
        assert!((figures.mixes[0].p50_us - 20.0).abs() < 0.1 && (figures.mixes[1].p99_us - 5.0).abs() < 0.1);
        assert_eq!(figures.mixes[0].cdf.last().map(|point| point.1), Some(1.0));
    }

    #[test]
    fn whatever_is_lost_or_wrong_counts() {
        type Change = fn(&mut [ClientReport; 2], &mut Contents);
        let cases: [(Change, (u64, u64)); 7] = [
            (|clients, _| clients[0].mixes[1].lost = 2, (2, 0)),
            (|clients, _| clients[1].mixes[0].wrong = 3, (0, 3)),
            (|clients, _| clients[1].lost_writes = 1, (1, 0)),
            // Two clients have written the same version.
            (|_, contents| contents.versions -= 1, (1, 0)),
            (|_, contents| contents.versions += 1, (0, 1)),
            // Perhaps the lost operation has written.
            (|clients, contents| (clients[0].mixes[0].lost, contents.versions) = (1, 101), (1, 0)),
            (|_, contents| (contents.wrong, contents.versions) = (1, 60), (0, 1)),
        ];
        for (nth, (change, expected)) in cases.into_iter().enumerate() {
            let figures = together(change);
            assert_eq!((figures.lost, figures.wrong), expected, "case {nth}");
        }
    }

    #[test]
    fn the_live_view_shows_the_rate_since_the_last_look() {
        let mut live = Live { at_ns: 0, operations: 0, per_s: 0 };
        let client = |operations, p99_us| SoFar { operations, p50_us: 40, p99_us };
        let line = live.line(&[client(100, 90), client(150, 80)], 500_000_000);
        assert_eq!(line, "250 operations, 500 a second, slowest client p50 40 µs, p99 90 µs");
        let line = live.line(&[client(100, 90), client(150, 80)], 600_000_000);
        assert!(line.contains("500 a second"), "nothing new was told: {line}");
        assert!(
            live.line(&[client(400, 90), client(150, 80)], 800_000_000).contains("1\u{202f}000 a second")
        );
    }
}
