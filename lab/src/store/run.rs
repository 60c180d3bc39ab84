//! The store's workload on a running rack.

use super::Store;
use super::bulk::{self, BulkReport};
use super::client::{self, ClientConfig, ClientReport};
use super::edm::{EdmStore, OfNode};
use super::figures::{self, Measured};
use super::slot::slot_bytes;
use super::tcp::{self, TcpStore};
use crate::control;
use crate::edm;
use crate::error::LabError;
use crate::measure::Plan;
use crate::network::HOST_INTERFACE;
use crate::process::Process;
use crate::progress::Progress;
use crate::results::SchemeResult;
use crate::running::Running;
use crate::sys;
use crate::text;
use crate::workload::{Span, print_result};
use p4rack_codegen::rack::Store as StoreParameters;
use p4rack_codegen::{Arch, Rack, Scheme};
use p4rack_hosts::memory::{Client, Remote};
use std::path::Path;
use std::time::Duration;

/// Port of the store's TCP server.
const STORE_PORT: u16 = 7_003;
/// From starting the clients to their operations.
const LEAD_NS: u64 = 1_000_000_000;
/// How long loading or reading all records may take.
const ALL_RECORDS: Duration = Duration::from_secs(60);
/// How long the server may take to start.
const START: Duration = Duration::from_secs(20);

/// What a client's process does.
#[derive(Clone, Copy, Debug)]
pub enum Task {
    /// Writes every record once.
    Load,
    /// Runs the mixes.
    Run(Span),
    /// Writes beside the clients, as fast as it can.
    Bulk(Span),
    /// Reads every record.
    Contents,
}

/// Slots of a store: its records', and those that bulk traffic writes over.
pub(super) fn slots(store: &StoreParameters) -> u32 {
    store.records + store.bulk.as_ref().map_or(0, |_| bulk::SLOTS)
}

/// Where bulk traffic writes.
pub(super) fn bulk_place(store: &StoreParameters) -> bulk::Place {
    let slot_bytes = slot_bytes(store.value_bytes as usize);
    bulk::Place { start: u64::from(store.records) * slot_bytes as u64, slot_bytes }
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
    let mut serving = start_server(running, store, server)?;
    serving.wait_for_line("ready", START)?;
    running.serving.push(serving);
    let first = clients.first().map_or("", String::as_str);
    let records = text::count(store.records.into());
    progress.step(
        &format!("{scheme}: writing {records} records"),
        || {
            let mut client = start_client(running, first, plan.seed, Task::Load)?;
            client.finish_beside(ALL_RECORDS, &mut || running.check())
        },
        |_| format!("{scheme}: {records} records written"),
    )?;

    let window = Span { start_ns: sys::monotonic_ns() + LEAD_NS, duration_ns: plan.window_ns };
    let mut processes = Vec::new();
    for (nth, host) in clients.iter().enumerate() {
        let seed = crate::workload::seed(plan.seed, nth + 1);
        processes.push(start_client(running, host, seed, Task::Run(window))?);
    }
    if let Some(bulk) = &store.bulk {
        processes.push(start_client(running, bulk, plan.seed, Task::Bulk(window))?);
    }
    progress.wait_until(&format!("{scheme}: starting the clients"), window.start_ns, &mut || {
        running.check()?;
        processes.iter_mut().try_for_each(Process::check_not_failed)
    })?;
    let early = control::start_stats_anew(running)?;
    figures::watch(progress, running, store, window, &mut processes)?;
    let windowed = control::stats(running)?;
    let bulk = store.bulk.as_ref().and_then(|_| processes.pop());
    let bulk: Option<BulkReport> =
        bulk.map(|mut process| figures::report(&mut process, running)).transpose()?;
    let reports = processes.iter_mut().map(|process| figures::report(process, running));
    let reports: Vec<ClientReport> = reports.collect::<Result<_, _>>()?;
    let contents = progress.step(
        &format!("{scheme}: reading {records} records"),
        || figures::report(&mut start_client(running, first, plan.seed, Task::Contents)?, running),
        |_| format!("{scheme}: {records} records read again"),
    )?;
    running.check()?;
    let last = control::stats(running)?;
    let switch = [early, windowed, last];
    let part_ns = plan.window_ns / store.mixes.len().max(1) as u64;
    let spans_ns = vec![part_ns; store.mixes.len()];
    let measured = Measured { reports: &reports, contents, spans_ns: &spans_ns, window, switch, bulk };
    figures::result(running, store, plan, measured, progress)
}

/// Starts what serves the records under the scheme: a memory node, or a TCP server.
fn start_server(running: &Running<'_>, store: &StoreParameters, server: &str) -> Result<Process, LabError> {
    if p4rack_memory::runs(running.rack) {
        let bytes = u64::from(slots(store)) * slot_bytes(store.value_bytes as usize) as u64;
        let args = edm::serve_args(running, server, bytes);
        return Process::start(&format!("the memory node on {server}"), running.namespace(server)?, args);
    }
    running.program(server, vec!["store-server".to_owned(), running.path.display().to_string()])
}

fn start_client(running: &Running<'_>, host: &str, seed: u64, task: Task) -> Result<Process, LabError> {
    let word = match task {
        Task::Load => "store-load",
        Task::Run(_) => "store-client",
        Task::Bulk(_) => "store-bulk",
        Task::Contents => "store-contents",
    };
    let mut args = vec![word.to_owned(), running.path.display().to_string()];
    let mut push = |option: &str, value: String| args.extend([option.to_owned(), value]);
    push("--name", host.to_owned());
    push("--scheme", running.scheme.name());
    push("--arch", running.rack.switch.arch.name().to_owned());
    push("--seed", seed.to_string());
    if let Task::Run(span) | Task::Bulk(span) = task {
        push("--start-ns", span.start_ns.to_string());
        push("--duration-ns", span.duration_ns.to_string());
    }
    running.program(host, args)
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
    let place = bulk_place(&store);
    let config = ClientConfig { mixes: store.mixes, records: store.records, value_bytes, seed, tells: true };
    if p4rack_memory::runs(&rack) {
        let remote = Remote { node: p4rack_memory::memory_node(&rack, server)?, key: edm::REGION_KEY };
        let node = p4rack_memory::client(&rack, &rack.hosts[usize::from(own)], HOST_INTERFACE)?;
        let mut opened = Client::open(node).map_err(|error| LabError::Unfit(error.to_string()))?;
        if let Task::Bulk(span) = task {
            let done = bulk::over_edm(&mut opened, remote, place, span);
            return told(done.map_err(|error| std::io::Error::other(error.to_string())));
        }
        return operate(
            EdmStore::new(OfNode { client: opened, remote }, value_bytes, own + 1, config.records),
            &config,
            task,
        );
    }
    let at = (rack.hosts[usize::from(p4rack_memory::node(&rack, server)?)].ip, STORE_PORT).into();
    if let Task::Bulk(span) = task {
        return told(bulk::over_tcp(at, span));
    }
    let connected =
        TcpStore::connect(at, value_bytes).map_err(LabError::system("connecting to the store"))?;
    operate(connected, &config, task)
}

fn operate(mut store: impl Store, config: &ClientConfig, task: Task) -> Result<(), LabError> {
    let done = match task {
        Task::Load => client::load(&mut store, config),
        Task::Run(span) => client::run(&mut store, config, span).and_then(|report| print_result(&report)),
        // Not of a client.
        Task::Bulk(_) => Ok(()),
        Task::Contents => {
            client::contents(&mut store, config.records).and_then(|contents| print_result(&contents))
        }
    };
    done.map_err(LabError::system("using the store"))
}

fn told(done: std::io::Result<BulkReport>) -> Result<(), LabError> {
    done.and_then(|report| print_result(&report))
        .map_err(LabError::system("writing beside the store's clients"))
}

fn described(path: &Path) -> Result<(Rack, StoreParameters), LabError> {
    let rack = Rack::load(path)?;
    let store = rack.workload.as_ref().and_then(|workload| workload.store.clone());
    let store =
        store.ok_or_else(|| LabError::Unfit(format!("{}: its workload is no store", path.display())))?;
    Ok((rack, store))
}
